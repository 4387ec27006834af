"""A model as C: one C99 file and its header, without malloc, and of libm only expf and sqrtf."""

import re
from pathlib import Path

import numpy as np

from svmosaic import __version__
from svmosaic.atomic import write_text
from svmosaic.export import _c_mixtures as mixtures
from svmosaic.export._c_calibrations import CALIBRATIONS
from svmosaic.export._c_tables import CExportError, array, number
from svmosaic.export._reasons import NO_TILES
from svmosaic.export._tree import choice_in_c
from svmosaic.maps.scaling import Scaling


def to_c(estimator, path, *, name=None):
    """Write a fitted estimator as `path` (C99) and the header beside it.

    The C functions take one row of float32. Products of rows with weights are accumulated in float32, as by the scoring
    engine; what decides the weights of a gate once its tiles are chosen is accumulated in double.

    Parameters
    ----------
    estimator : fitted classifier of this library
        Without a feature map.
    path : str or path
        Of the C file; its header gets the suffix .h.
    name : str, optional
        Prefix of the functions; the name of the file if not given.

    Returns
    -------
    source, header : Path
    """
    source = Path(path)
    if not re.fullmatch(r"[\w.+ -]+\.c", source.name, flags=re.ASCII):  # it is written into the source
        raise CExportError(f"path must end in .c, after letters, digits, blanks and _+-. only, got {str(path)!r}")
    name = re.sub(r"\W", "_", source.stem) if name is None else name
    if not re.fullmatch(r"[A-Za-z_]\w*", name, flags=re.ASCII):
        raise CExportError(f"name must be a C identifier, got {name!r}")
    header = source.with_suffix(".h")
    classes, model = estimator.classes_, type(estimator).__name__
    if model == "GaussianMixtureClassifier":
        n_tiles, has_probabilities, body = len(estimator.means_), True, [mixtures.gaussian_mixture(estimator)]
    elif hasattr(estimator, "mosaic_"):
        n_tiles, body = estimator.mosaic_.n_tiles, _mosaic(estimator)
        has_probabilities = getattr(estimator, "calibration_", None) is not None
    else:
        raise CExportError(f"{model} cannot be written as C: {REASONS.get(model, 'it is not made of tiles')}")
    values = dict(
        NAME=name, GUARD=f"{name.upper()}_H", HEADER=header.name, VERSION=__version__, MODEL=model,
        CLASSES=len(classes), OUTPUTS=1 if len(classes) == 2 else len(classes), FEATURES=estimator.n_features_in_,
        TILES=n_tiles,
    )  # fmt: skip
    parts = [_TOP, *body]
    labels = ", ".join(_c_string(label) for label in classes)
    parts.append(f"const char *const @NAME@_classes[@CLASSES@] = {{{labels}}};\n")
    head = _HEADER.replace("@PROBABILITIES@", _PROBABILITIES_HEADER if has_probabilities else "")
    # The header first: a source without its header would not compile.
    write_text(header, _fill(head, values))
    write_text(source, _fill("\n".join(parts), values))
    return source, header


def _mosaic(estimator):
    """Tables and functions of a gate and its tiles, and of a calibration if there is one."""
    mosaic = estimator.mosaic_
    scaling = mosaic.feature_map if isinstance(mosaic.feature_map, Scaling) else None
    if mosaic.feature_map is not scaling:
        raise CExportError(
            f"the feature map {type(mosaic.feature_map.transformer).__name__} cannot be written as C: "
            "apply it to the rows, and export a model fitted to them"
        )
    kind = type(mosaic.gate).__name__
    if kind not in GATES:
        raise CExportError(f"the gate {kind} cannot be written as C; known are {', '.join(GATES)}")
    calibration = getattr(estimator, "calibration_", None)
    _, n_outputs, n_features = mosaic.coef.shape
    return [
        array("intercept", mosaic.intercept),
        array("coef", mosaic.coef),
        _DOT,
        GATES[kind](mosaic.gate, n_features),
        _LINKS[mosaic.link],
        _SCORES if scaling is None else _scaled_scores(scaling),
        _PREDICT_BY_SCORE if calibration is None else CALIBRATIONS[type(calibration).__name__](calibration, n_outputs),
    ]


def _scaled_scores(scaling):
    """The scores of a row as it is measured."""
    center = np.zeros_like(scaling.factor) if scaling.center is None else scaling.center
    first, rest = _SCORES.split("\n", 1)
    scale = "  float x[FEATURES];\n  for (int f = 0; f < FEATURES; ++f) x[f] = (raw[f] - center[f]) * factor_of[f];\n"
    arrays = array("center", center) + "\n" + array("factor_of", scaling.factor)
    return arrays + "\n" + first.replace("*x", "*raw") + "\n" + scale + rest


def _fill(text, values):
    return re.sub(r"@([A-Z]+)@", lambda match: str(values[match[1]]), text)


def _c_string(label):
    # Everything but plain characters as three octal digits: no escape can run into what follows it.
    plain = set(range(32, 127)) - set(b'"\\?@')
    return '"' + "".join(chr(b) if b in plain else f"\\{b:03o}" for b in str(label).encode()) + '"'


# ---- gates: each gives constants, and `static void choose(const float *x, int *tile, double *weight)` ----------------


def _single_cell(gate, n_features):
    return """#define WIDTH 1

static void choose(const float *x, int *tile, double *weight) {
  (void)x;
  tile[0] = 0;
  weight[0] = 1;
}
"""


def _distance(gate, n_features):
    centers = np.asarray(gate.centers, dtype=np.float64)
    # As in the core: measured from the mean of the centres, in float32 throughout.
    mean = centers.mean(axis=0).astype(np.float32)
    shifted = centers.astype(np.float32) - mean
    half_norms = 0.5 * (shifted.astype(np.float64) ** 2).sum(axis=1)
    log_prior = np.zeros(len(centers)) if gate.log_prior is None else np.maximum(gate.log_prior, -1e300)
    parts = [
        f"#define WIDTH {gate.width}\n",
        array("mean", mean),
        array("centers", shifted),
    ]
    if gate.width < len(centers):
        parts.append(array("half_norms", half_norms))
    if gate.coding == "softmax":
        parts.append(array("log_prior", log_prior, "double"))
    if gate.factor is not None:
        parts.append(array("factor", gate.factor, "double"))
    if gate.coding not in _WEIGHTS:
        raise CExportError(f"the coding {gate.coding!r} cannot be written as C")
    locality = "" if gate.coding != "llc" else _LOCALITY
    weights = _WEIGHTS[gate.coding].replace("@SCALE@", number(repr(float(gate.scale)))).replace("@LOCALITY@", locality)
    factor = "" if gate.factor is None else "    weight[a] *= factor[tile[a]];\n"
    parts.append(_NEAREST)
    parts.append(weights + _CHOOSE.replace("@FACTOR@", factor))
    return "\n".join(parts)


def _projected(gate, n_features):
    n_components = len(gate.projection)
    inner = GATES[type(gate.inner).__name__](gate.inner, n_components)
    inner = inner.replace("FEATURES", "COMPONENTS").replace("void choose(", "void share(")
    table = array("projection", np.asarray(gate.projection, dtype=np.float32))
    return f"#define COMPONENTS {n_components}\n\n{table}\n{inner}{_PROJECT}"


def _tree(gate, n_features):
    return choice_in_c(gate, array)


GATES = {
    "SingleCell": _single_cell,
    "DistanceGate": _distance,
    "ProjectedGate": _projected,
    "RBFGate": mixtures.softmax_tree,
    "HierarchicalGate": mixtures.softmax_tree,
    "GaussianGate": mixtures.gaussian,
    "TreeGate": _tree,
}
REASONS = {
    **NO_TILES,
    "FusedSVC": "its blend of kernels and densities is beyond the range of float; its parts are svm_ and mixture_",
}

# ---- the text ----------------------------------------------------------------------------------------------------

_HEADER = """/* @MODEL@ of svmosaic @VERSION@: @TILES@ tiles, @FEATURES@ features, @CLASSES@ classes. */
#ifndef @GUARD@
#define @GUARD@

#ifdef __cplusplus
extern "C" {
#endif

enum { @NAME@_n_features = @FEATURES@, @NAME@_n_outputs = @OUTPUTS@, @NAME@_n_classes = @CLASSES@ };

/* The names of the classes, in the order of predict. */
extern const char *const @NAME@_classes[@CLASSES@];

/* Scores of one row: one for two classes (positive: the second), else one a class. */
void @NAME@_scores(const float *x, float *scores);
@PROBABILITIES@
/* The place of the winning class. */
int @NAME@_predict(const float *x);

#ifdef __cplusplus
}
#endif
#endif
"""

_PROBABILITIES_HEADER = """
/* Calibrated probabilities of the classes. */
void @NAME@_probabilities(const float *x, float *probabilities);
"""

_TOP = """/* @MODEL@ written by svmosaic @VERSION@. C99; needs expf and sqrtf, and no memory but the stack. */
#include "@HEADER@"

#include <math.h>

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

_NEAREST = """/* The WIDTH centres nearest to z, best first; of equals, the first. */
static void nearest(const float *z, int *tile) {
#if WIDTH == TILES
  (void)z;
  for (int j = 0; j < TILES; ++j) tile[j] = j;
#else
  float closeness[WIDTH];
  int n = 0;
  for (int j = 0; j < TILES; ++j) {
    const float close = dot(z, centers + (long)j * FEATURES, FEATURES) - half_norms[j];
    int at;
    if (n == WIDTH && !(close > closeness[WIDTH - 1])) continue;
    at = n < WIDTH ? n++ : WIDTH - 1;
    for (; at > 0 && close > closeness[at - 1]; --at) {
      closeness[at] = closeness[at - 1];
      tile[at] = tile[at - 1];
    }
    closeness[at] = close;
    tile[at] = j;
  }
#endif
}
"""

_WEIGHTS = {
    "nearest": """static void weigh(const float *z, const int *tile, double *weight) {
  (void)z;
  (void)tile;
  weight[0] = 1;
}
""",
    "softmax": """static void weigh(const float *z, const int *tile, double *weight) {
  const float *from = centers + (long)tile[0] * FEATURES;
  double largest = 0;
  for (int a = 0; a < WIDTH; ++a) {
    /* |z - c|^2 less that of the first centre, which keeps its digits far from all of them */
    const float *c = centers + (long)tile[a] * FEATURES;
    double beyond = 0;
    for (int f = 0; f < FEATURES; ++f)
      beyond += (((double)z[f] - from[f]) + ((double)z[f] - c[f])) * ((double)from[f] - c[f]);
    weight[a] = log_prior[tile[a]] - @SCALE@ * beyond;
    if (a == 0 || weight[a] > largest) largest = weight[a];
  }
  for (int a = 0; a < WIDTH; ++a) weight[a] = expf((float)(weight[a] - largest));
}
""",
    "inverse": """static void weigh(const float *z, const int *tile, double *weight) {
  double smallest = 0;
  for (int a = 0; a < WIDTH; ++a) {
    const float *c = centers + (long)tile[a] * FEATURES;
    weight[a] = 0;
    for (int f = 0; f < FEATURES; ++f) weight[a] += ((double)z[f] - c[f]) * ((double)z[f] - c[f]);
    if (a == 0 || weight[a] < smallest) smallest = weight[a];
  }
  /* on a centre it takes all; ties share */
  for (int a = 0; a < WIDTH; ++a)
    weight[a] = smallest > 0 ? sqrtf((float)(smallest / weight[a])) : (weight[a] > 0 ? 0.0 : 1.0);
}
""",
}
_WEIGHTS["llc"] = _WEIGHTS[
    "lle"
] = """/* The weights that rebuild z from its centres: (D D^T + ridge) w = 1, by elimination. */
static void weigh(const float *z, const int *tile, double *weight) {
  double system[WIDTH][WIDTH];
  double average = 0, farthest = 0;
  for (int a = 0; a < WIDTH; ++a) {
    const float *p = centers + (long)tile[a] * FEATURES;
    for (int b = 0; b <= a; ++b) {
      const float *q = centers + (long)tile[b] * FEATURES;
      double sum = 0;
      for (int f = 0; f < FEATURES; ++f) sum += ((double)z[f] - p[f]) * ((double)z[f] - q[f]);
      system[a][b] = system[b][a] = sum;
    }
    average += system[a][a] / WIDTH;
    if (system[a][a] > farthest) farthest = system[a][a];
  }
  for (int a = 0; a < WIDTH; ++a) {
    double ridge = @SCALE@ * average;
@LOCALITY@    system[a][a] += ridge > 0 ? ridge : 1e-12;
    weight[a] = 1;
  }
  for (int k = 0; k < WIDTH; ++k)
    for (int a = k + 1; a < WIDTH; ++a) {
      const double share = system[a][k] / system[k][k];
      for (int b = k; b < WIDTH; ++b) system[a][b] -= share * system[k][b];
      weight[a] -= share * weight[k];
    }
  for (int k = WIDTH - 1; k >= 0; --k) {
    for (int b = k + 1; b < WIDTH; ++b) weight[k] -= system[k][b] * weight[b];
    weight[k] /= system[k][k];
  }
}
"""
_LOCALITY = """    if (farthest > 0) {
      const double locality = expf(sqrtf((float)(system[a][a] / farthest)) - 1);
      ridge *= locality * locality;
    }
"""

_CHOOSE = """
static void choose(const float *x, int *tile, double *weight) {
  float z[FEATURES];
  double total = 0;
  for (int f = 0; f < FEATURES; ++f) z[f] = x[f] - mean[f];
  nearest(z, tile);
  weigh(z, tile, weight);
  for (int a = 0; a < WIDTH; ++a) total += weight[a];
  for (int a = 0; a < WIDTH; ++a) {
    weight[a] /= total;
@FACTOR@  }
}
"""

_PROJECT = """
static void choose(const float *x, int *tile, double *weight) {
  float z[COMPONENTS];
  for (int q = 0; q < COMPONENTS; ++q) z[q] = dot(x, projection + (long)q * FEATURES, FEATURES);
  share(z, tile, weight);
}
"""

_LINKS = {
    "identity": """static double score_of(double s) { return s; }
""",
    "vote": """static double score_of(double s) {
  const float against = s < 1 ? (float)(1 - s) : 0, in_favour = s > -1 ? (float)(1 + s) : 0;
  return (double)expf(-against) - (double)expf(-in_favour);
}
""",
    "posterior": """static double score_of(double s) {
  const double yes = expf(s < 1 ? (float)(s - 1) : 0), no = expf(s > -1 ? (float)(-1 - s) : 0);
  return (yes - no) / (yes + no);
}
""",
}

_SCORES = """static void scores_of(const float *x, double *scores) {
  int tile[WIDTH];
  double weight[WIDTH];
  choose(x, tile, weight);
  for (int c = 0; c < OUTPUTS; ++c) scores[c] = 0;
  for (int a = 0; a < WIDTH; ++a) {
    if (weight[a] == 0) continue;
    for (int c = 0; c < OUTPUTS; ++c) {
      const long k = (long)tile[a] * OUTPUTS + c;
      scores[c] += weight[a] * score_of((double)dot(x, coef + k * FEATURES, FEATURES) + intercept[k]);
    }
  }
}

void @NAME@_scores(const float *x, float *scores) {
  double exact[OUTPUTS];
  scores_of(x, exact);
  for (int c = 0; c < OUTPUTS; ++c) scores[c] = (float)exact[c];
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
