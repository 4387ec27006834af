"""Models as C: one C99 file and its header, without malloc, and of libm only expf and sqrtf."""

import re
from dataclasses import replace

from svmosaic._version import __version__
from svmosaic.export.c.calibrations import CALIBRATIONS
from svmosaic.export.c.curves import curves, straight_tiles
from svmosaic.export.c.densities import FORMS
from svmosaic.export.c.gates import GATES
from svmosaic.export.c.preparation import TEXT_HEADER, raw_features, text_function
from svmosaic.export.c.tables import CExportError, array, c_string, inside, number
from svmosaic.export.preparation import Affine
from svmosaic.export.visitor import Target, Whole


class CTarget(Target):
    """The text of one source file and its header.

    Parameters
    ----------
    name : str
        Prefix of the functions.
    header : str
        Name of the header file.
    """

    language = "C"
    error = CExportError
    gates = GATES
    calibrations = CALIBRATIONS
    forms = FORMS
    links = ("identity", "vote", "posterior")
    heads = ("Classify", "Regress")
    refused = {
        "FusedSVC": "its blend of kernels and densities is beyond the range of float; its parts are svm_ and mixture_"
    }

    def __init__(self, name: str, header: str):
        self.name, self.header = name, header
        self.sections: list[str] = []
        self.steps: list[Affine] = []
        self.columns = ""
        self.raw: tuple[list[str], str] | None = None
        self.n_outputs = self.n_tiles = 1
        self.explanation = self.intervals = ""
        self.curves = self.flat = False

    def begin(self, whole: Whole):
        """Nothing but the steps of the preparation: they are written in front of the scores."""
        preparation = whole.preparation
        if not preparation.takes_numbers or any(preparation.part):
            self.raw = raw_features(preparation)
        self.n_outputs = whole.n_outputs
        self.steps = list(preparation.steps)
        if not preparation.takes_columns_as_they_are:
            self.columns = array("column_of", preparation.source, "int")
        return "FEATURES"

    def scale(self, center, factor, rows):
        """One more step of the preparation."""
        self.steps.append(Affine.of(len(factor), center=0.0 if center is None else center, factor=factor))
        return rows

    def bend(self, mosaic, rows):
        """Tables of the curves: a row is bent once, and then costs a tile two values per curve, or is straight."""
        self.curves = True
        mosaic, flat = mosaic.split_flat()
        coef, ((center, scale, _, _, column, start, knot, _), _) = mosaic.features.pack(mosaic.coef)
        self.sections += [_DOT, curves(center, scale, column, start, knot)]
        if flat is not None:
            self.flat = True
            self.sections.append(straight_tiles(flat, mosaic.n_tiles))
        return replace(mosaic, coef=coef[..., :-1], feature_map=None), rows  # without the values of a row of zeros

    def score(self, mosaic, rows, codes):
        """Tables and functions of the gate and the tiles."""
        self.n_tiles = mosaic.n_tiles
        # Tiles that are only a number have no weights, and C no empty arrays.
        tables = [array("intercept", mosaic.intercept), array("coef", mosaic.coef if mosaic.coef.size else [0.0])]
        if mosaic.sloped is None:
            tables.append(self._of_tiles(_WEIGHTS))
        else:
            tables += [array("place_of", mosaic.place_of_tile, "int"), self._of_tiles(_SOME_WEIGHTS)]
        if self.offset.any():
            tables.append(array("offset", self.offset, "double"))
        dot = [] if self.curves else [_DOT]
        scores = self._of_tiles(_SCORES).replace("@START@", "offset[c]" if self.offset.any() else "0")
        self.sections += [*tables, *dot, codes, _LINKS[mosaic.link], self.prepared(scores)]

    def explain(self, whole, mosaic, rows, codes):
        """Contributions of the columns."""
        given, prepare = self._names()
        column = "column_of[f]" if self.columns else "f"
        add = _ADD_CURVES if self.curves else _ADD_PRODUCTS
        if self.curves and self.columns:
            add = add.replace("straight_of[f]", "column_of[straight_of[f]]").replace(
                "curve_of[f]", "column_of[curve_of[f]]"
            )
        text = self._of_tiles(_EXPLAIN).replace("@ADD@", add + (_ADD_FLAT if self.flat else ""))
        text = text.replace("@PREPARE@", prepare).replace("@GIVEN@", given).replace("@COLUMN@", column)
        self.sections += [text] if self.raw is None else [self.columns, text]
        self.explanation = _EXPLAIN_HEADER

    def interval(self, whole: Whole, rows, write_tiles, margin):
        """Tables and functions of the quantiles, all their names with a suffix, and the function that sorts them."""
        inner = CTarget(self.name, self.header)
        write_tiles(inner, inner.begin(whole))
        sizes = f"#define OUTPUTS 2\n#define TILES {inner.n_tiles}\n"
        self.sections.append(inside("\n".join([sizes, *inner.sections]), "interval"))
        self.sections.append(_INTERVAL.replace("@MARGIN@", number(repr(float(margin)))))
        self.intervals = _INTERVAL_HEADER

    def _of_tiles(self, text):
        """A template with the products of a row and a tile filled in."""
        margin, size = ("bent(&b, w)", "VALUES") if self.curves else ("dot(x, w, FEATURES)", "FEATURES")
        margin = f"(w ? (double){margin} : 0)"
        bend = "  Bent b;\n  bend(x, &b);\n" if self.curves else ""
        flat = ""
        if self.flat:
            margin += " + (v ? (double)dot(z, v, FEATURES) : 0)"
            bend += "  float z[FEATURES];\n  straighten(x, z);\n"
            flat = "      const float *v = flat_weights_of(tile[a], c);\n"
        text = text.replace("@MARGIN@", margin).replace("@SIZE@", size).replace("@BEND@", bend)
        return text.replace("@FLAT@", flat)

    def prepared(self, text):
        """A template of a function that takes rows as they are given, with their preparation."""
        given, prepare = self._names()
        if given == "x":
            return text.replace("@GIVEN@", given).replace("@PREPARE@", prepare)
        tables, lines = [self.columns] if self.columns and self.raw is None else [], []
        for k, step in enumerate(self.steps):
            if step.fills:
                tables.append(array(f"fill_{k}", step.fill, missing=True))
                lines.append(f"    if (value != value) value = fill_{k}[f];\n")
            if step.moves:
                tables += [array(f"center_{k}", step.center), array(f"factor_{k}", step.factor)]
                lines.append(f"    value = (value - center_{k}[f]) * factor_{k}[f];\n")
        column = "column_of[f]" if self.columns else "f"
        function = _PREPARE.replace("@STEPS@", "".join(lines))
        if self.raw is None:
            function = function.replace("@RAW@", "").replace("@VALUE@", f"given[{column}]")
        else:
            tables += self.raw[0]
            function = function.replace("@RAW@", self.raw[1]).replace("@VALUE@", "x[f]")
        text = text.replace("@GIVEN@", given).replace("@PREPARE@", prepare)
        return "\n".join([*tables, function, text])

    def _names(self):
        """What rows are called as they are given, and the line that prepares them."""
        if not self.steps and not self.columns:
            return "x", ""
        return "given", "  float x[FEATURES];\n  prepare(given, x);\n"

    def finish(self, whole: Whole, scores, probabilities):
        """Text of the source and of the header."""
        values = {
            "NAME": self.name,
            "GUARD": f"{self.name.upper()}_H",
            "HEADER": self.header,
            "VERSION": __version__,
            "MODEL": whole.name,
            "CLASSES": 0 if whole.classes is None else len(whole.classes),
            "OUTPUTS": whole.n_outputs,
            "FEATURES": len(whole.preparation.source),
            "COLUMNS": whole.preparation.n_columns,
            "TILES": self.n_tiles,
        }
        parts = [_TOP, *self.sections, _SCORES_FUNCTION]
        if whole.classes is None:
            parts.append(_PREDICT_VALUE if whole.one_value else _PREDICT_VALUES)
            head = _VALUES_HEADER.replace("@PREDICT@", _VALUE_HEADER if whole.one_value else _SEVERAL_VALUES_HEADER)
            head = head.replace("@INTERVAL@", self.intervals)
        else:
            labels = ", ".join(c_string(label) for label in whole.classes)
            parts.append(_PREDICT_BY_SCORE if probabilities is None else probabilities)
            parts.append(f"const char *const @NAME@_classes[@CLASSES@] = {{{labels}}};\n")
            head = _HEADER.replace("@PROBABILITIES@", "" if probabilities is None else _PROBABILITIES_HEADER)
        text = bool(whole.preparation.text_columns)
        head = head.replace("@TEXT@", TEXT_HEADER if text else "")
        if text:
            parts.append(text_function(whole.preparation))
        named = whole.named and not whole.preparation.takes_numbers
        head = head.replace("@NAMES@", _NAMES_HEADER if named else "")
        if named:
            names = ", ".join(map(c_string, whole.preparation.names))
            parts.append(f"const char *const @NAME@_columns[@COLUMNS@] = {{{names}}};\n")
        parts[0] = parts[0].replace("@STRINGS@", "#include <string.h>\n" if text else "")
        head = head.replace("@EXPLAIN@", self.explanation or f"/* There is no explain: {self.unexplained}. */\n")
        return _fill("\n".join(parts), values), _fill(head, values)


def _fill(text, values):
    return re.sub(r"@([A-Z]+)@", lambda match: str(values[match[1]]), text)


# ---- the text ----------------------------------------------------------------------------------------------------

_HEADER = """/* @MODEL@ of svmosaic @VERSION@: @TILES@ tiles, @COLUMNS@ features, @CLASSES@ classes. */
#ifndef @GUARD@
#define @GUARD@

#ifdef __cplusplus
extern "C" {
#endif

enum { @NAME@_n_features = @COLUMNS@, @NAME@_n_outputs = @OUTPUTS@, @NAME@_n_classes = @CLASSES@ };

/* The names of the classes, in the order of predict. */
extern const char *const @NAME@_classes[@CLASSES@];

@NAMES@@TEXT@
/* Scores of one row: one for two classes (positive: the second), else one per class. */
void @NAME@_scores(const float *x, float *scores);
@PROBABILITIES@
/* The index of the winning class. */
int @NAME@_predict(const float *x);

@EXPLAIN@
#ifdef __cplusplus
}
#endif
#endif
"""

_NAMES_HEADER = """
/* The columns of a row, in its order. A missing value is NAN, a date its days since 1970-01-01, and a text the number
   that @NAME@_text gives for it. */
extern const char *const @NAME@_columns[@COLUMNS@];
"""

_VALUES_HEADER = """/* @MODEL@ of svmosaic @VERSION@: @TILES@ tiles, @COLUMNS@ features, @OUTPUTS@ targets. */
#ifndef @GUARD@
#define @GUARD@

#ifdef __cplusplus
extern "C" {
#endif

enum { @NAME@_n_features = @COLUMNS@, @NAME@_n_outputs = @OUTPUTS@ };

@NAMES@@TEXT@
/* The values of one row, one per target. */
void @NAME@_scores(const float *x, float *values);

@PREDICT@
@INTERVAL@@EXPLAIN@
#ifdef __cplusplus
}
#endif
#endif
"""

_VALUE_HEADER = """/* The value of one row. */
float @NAME@_predict(const float *x);
"""

_INTERVAL_HEADER = """/* The lower and the upper end of the interval of one row. */
void @NAME@_predict_interval(const float *x, float *ends);

"""

_SEVERAL_VALUES_HEADER = """/* The same as scores. */
void @NAME@_predict(const float *x, float *values);
"""

_PROBABILITIES_HEADER = """
/* Calibrated probabilities of the classes. */
void @NAME@_probabilities(const float *x, float *probabilities);
"""

_EXPLAIN_HEADER = """/* Contributions of the features to the scores: contributions[output * @COLUMNS@ + feature].
   With the intercept of the output, which includes the rounding of the scores to float, they add up to the result of
   scores. */
void @NAME@_explain(const float *x, double *contributions, double *intercept);
"""

_TOP = """/* @MODEL@ written by svmosaic @VERSION@. C99; needs expf and sqrtf, and no memory but the stack. */
#include "@HEADER@"

#include <math.h>
@STRINGS@
#define COLUMNS @COLUMNS@
#define FEATURES @FEATURES@
#define OUTPUTS @OUTPUTS@
#define TILES @TILES@
"""

_DOT = """/* Eight partial sums: more exact than one, and a compiler can keep them in vectors. */
static float dot(const float *u, const float *v, int n) {
  float s[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  int f = 0;
  for (; f + 8 <= n; f += 8)
    for (int l = 0; l < 8; ++l) s[l] += u[f + l] * v[f + l];
  for (int l = 0; f < n; ++f, ++l) s[l] += u[f] * v[f];
  return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}
"""

_LINKS = {
    "identity": """static double score_of(double s) { return s; }
""",
    "vote": """static double score_of(double s) {
  const float against = s < 1 ? (float)(1 - s) : 0, in_favor = s > -1 ? (float)(1 + s) : 0;
  return (double)expf(-against) - (double)expf(-in_favor);
}
""",
    "posterior": """static double score_of(double s) {
  const double yes = expf(s < 1 ? (float)(s - 1) : 0), no = expf(s > -1 ? (float)(-1 - s) : 0);
  return (yes - no) / (yes + no);
}
""",
}

_WEIGHTS = """static const float *weights_of(int tile, int c) { return coef + ((long)tile * OUTPUTS + c) * @SIZE@; }
"""

_SOME_WEIGHTS = """/* A tile without weights is only its intercept. */
static const float *weights_of(int tile, int c) {
  return place_of[tile] < 0 ? 0 : coef + ((long)place_of[tile] * OUTPUTS + c) * @SIZE@;
}
"""

_SCORES = """static void scores_of(const float *@GIVEN@, double *scores) {
@PREPARE@  int tile[WIDTH];
  double weight[WIDTH];
@BEND@  choose(x, tile, weight);
  for (int c = 0; c < OUTPUTS; ++c) scores[c] = @START@;
  for (int a = 0; a < WIDTH; ++a) {
    if (weight[a] == 0) continue;
    for (int c = 0; c < OUTPUTS; ++c) {
      const float *w = weights_of(tile[a], c);
@FLAT@      scores[c] += weight[a] * score_of(@MARGIN@ + intercept[(long)tile[a] * OUTPUTS + c]);
    }
  }
}
"""

_PREDICT_BY_SCORE = """int @NAME@_predict(const float *x) {
  double scores[OUTPUTS];
  int best = 0;
  scores_of(x, scores);
#if OUTPUTS == 1
  best = scores[0] > 0;
#else
  for (int c = 1; c < OUTPUTS; ++c)
    if (scores[c] > scores[best]) best = c;
#endif
  return best;
}
"""

_PREDICT_VALUE = """float @NAME@_predict(const float *x) {
  double value[OUTPUTS];
  scores_of(x, value);
  return (float)value[0];
}
"""

_INTERVAL = """void @NAME@_predict_interval(const float *x, float *ends) {
  double quantile[2], low, high, middle;
  scores_of_interval(x, quantile);
  low = (quantile[0] < quantile[1] ? quantile[0] : quantile[1]) - (@MARGIN@);
  high = (quantile[0] < quantile[1] ? quantile[1] : quantile[0]) + (@MARGIN@);
  middle = 0.5 * (low + high);
  ends[0] = (float)(low < middle ? low : middle);
  ends[1] = (float)(high > middle ? high : middle);
}
"""

_PREDICT_VALUES = """void @NAME@_predict(const float *x, float *values) { @NAME@_scores(x, values); }
"""

_SCORES_FUNCTION = """void @NAME@_scores(const float *x, float *scores) {
  double exact[OUTPUTS];
  scores_of(x, exact);
  for (int c = 0; c < OUTPUTS; ++c) scores[c] = (float)exact[c];
}
"""

_PREPARE = """/* Unscaled rows; a missing value is NaN. */
static void prepare(const float *given, float *x) {
@RAW@  for (int f = 0; f < FEATURES; ++f) {
    float value = @VALUE@;
@STEPS@    x[f] = value;
  }
}
"""

_EXPLAIN = """void @NAME@_explain(const float *@GIVEN@, double *contributions, double *intercept) {
  int tile[WIDTH];
  double weight[WIDTH];
  float scores[OUTPUTS];
@PREPARE@@BEND@  choose(x, tile, weight);
  @NAME@_scores(@GIVEN@, scores);
  for (int k = 0; k < OUTPUTS * COLUMNS; ++k) contributions[k] = 0;
  for (int c = 0; c < OUTPUTS; ++c) {
    double total = 0;
    for (int a = 0; a < WIDTH; ++a) {
      const float *w = weights_of(tile[a], c);
@FLAT@      if (weight[a] == 0) continue;
@ADD@    }
    for (int f = 0; f < COLUMNS; ++f) total += contributions[c * COLUMNS + f];
    intercept[c] = scores[c] - total;
  }
}
"""

_ADD_PRODUCTS = """      for (int f = 0; w && f < FEATURES; ++f)
        contributions[c * COLUMNS + @COLUMN@] += weight[a] * ((double)w[f] * x[f]);
"""

_ADD_CURVES = """      for (int f = 0; w && f < STRAIGHT; ++f)
        contributions[c * COLUMNS + straight_of[f]] += weight[a] * ((double)w[f] * b.straight[f]);
      for (int f = 0; w && f < CURVES; ++f)
        contributions[c * COLUMNS + curve_of[f]] += weight[a] * (double)curve(&b, w, f);
"""

_ADD_FLAT = """      for (int f = 0; v && f < FEATURES; ++f)
        contributions[c * COLUMNS + @COLUMN@] += weight[a] * ((double)v[f] * z[f]);
"""
