"""A model as C: one C99 file and its header, without malloc, and of libm only expf and sqrtf."""

import re
from pathlib import Path

from svmosaic._version import __version__
from svmosaic.atomic import write_text
from svmosaic.export.c.tables import C, CExportError, Tables, runtime
from svmosaic.export.description import describe

__all__ = ["C", "CExportError", "to_c"]


def to_c(estimator, path, *, name=None):
    """Write a fitted estimator as `path` (C99) and the header next to it.

    The C functions take one row of float32. Products of rows with weights are accumulated in float32, as in the scoring
    engine; the weights of a gate, once its tiles are chosen, are computed in double precision.

    For a pipeline of imputers, scalers and one-hot encoders, a trained model, or a model that was fitted to a table,
    they take the columns of the table, with NaN for a missing value. Text is passed as the number that `NAME_text`
    returns for it, and a date as days since 1970-01-01. `NAME_predict` of a regressor returns
    the value (with several targets, it writes the values), and there are no classes; `NAME_predict_interval` writes the
    lower and the upper end for a `MosaicRegressor` with `quantiles`. `NAME_explain` exists for models
    whose scores are sums over features; otherwise, the header states why it does not.

    Parameters
    ----------
    estimator : fitted estimator of this library, pipeline that ends in one, or TrainedModel
        Without a feature map.
    path : str or path
        The C file; its header gets the suffix .h.
    name : str, optional
        Prefix of the functions; the file name if not given.

    Returns
    -------
    source, header : Path

    See Also
    --------
    svmosaic.export.onnx.to_onnx : Writes ONNX.
    svmosaic.export.javascript.to_javascript : Writes JavaScript.
    """
    source = Path(path)
    if not re.fullmatch(r"[\w.+ -]+\.c", source.name, flags=re.ASCII):  # it is written into the source
        raise CExportError(f"path must end in .c, after letters, digits, blanks and _+-. only, got {str(path)!r}")
    name = re.sub(r"\W", "_", source.stem) if name is None else name
    if not re.fullmatch(r"[A-Za-z_]\w*", name, flags=re.ASCII):
        raise CExportError(f"name must be a C identifier, got {name!r}")
    header = source.with_suffix(".h")
    described = describe(estimator, C)
    tables = Tables(described)
    _, _, types, _, functions = runtime(tables.has)
    sizes = "".join(f"#define {size} {value}\n" for size, value in tables.sizes.items())
    text = "".join([_TOP, "#include <string.h>\n" * ("TEXT" in tables.has), "\n", sizes, types])
    text = "\n".join([text, *tables.text, functions])
    values = {
        "GUARD": f"{name.upper()}_H", "HEADER": header.name, "MODEL": described["name"], "VERSION": __version__,
        "UNEXPLAINED": described["unexplained"], **tables.sizes,
        "TILES": tables.sizes.get("DENSITIES") if described["form"] else described["mosaic"]["gate"]["n_tiles"],
    }  # fmt: skip

    def written(text):
        text = re.sub(r"@([A-Z]+)@", lambda match: str(values[match[1]]), text)
        return re.sub(r"\bmodel_(?=[a-z])", f"{name}_", text)

    if "CLASSES" in tables.has:
        kind, enumerated, scores, predict = "@CLASSES@ classes", ", model_n_classes = @CLASSES@", _SCORES, _PREDICT
    else:
        kind, enumerated, scores = "@OUTPUTS@ targets", "", _VALUES
        predict = _PREDICT_VALUE if "ONE_VALUE" in tables.has else _PREDICT_VALUES
    parts = [
        _HEADER_TOP.replace("@KIND@", kind).replace("@ENUMERATED@", enumerated),
        _CLASSES if "CLASSES" in tables.has else "",
        _COLUMNS if "COLUMN_NAMES" in tables.has else "",
        _TEXT if "TEXT" in tables.has else "",
        scores,
        _PROBABILITIES if "CALIBRATION" in tables.has else "",
        predict,
        _INTERVAL if "INTERVAL" in tables.has else "",
        _EXPLAIN if "EXPLAIN" in tables.has else "/* There is no explain: @UNEXPLAINED@. */\n",
        "#ifdef __cplusplus\n}\n#endif\n#endif\n",
    ]
    # The header first: a source without its header would not compile.
    write_text(header, written("\n".join(part for part in parts if part)))
    write_text(source, written(text))
    return source, header


_TOP = """/* @MODEL@ written by svmosaic @VERSION@. C99; needs expf and sqrtf, and no memory but the stack. */
#include "@HEADER@"

#include <math.h>
#include <stddef.h>
"""

_HEADER_TOP = """/* @MODEL@ of svmosaic @VERSION@: @TILES@ tiles, @COLUMNS@ features, @KIND@. */
#ifndef @GUARD@
#define @GUARD@

#ifdef __cplusplus
extern "C" {
#endif

enum { model_n_features = @COLUMNS@, model_n_outputs = @OUTPUTS@@ENUMERATED@ };
"""

_CLASSES = """/* The names of the classes, in the order of predict. */
extern const char *const model_classes[@CLASSES@];
"""

_COLUMNS = """\
/* The columns of a row, in its order. A missing value is NAN, a date its days since 1970-01-01, and a text the number
   that model_text gives for it. */
extern const char *const model_columns[@COLUMNS@];
"""

_TEXT = """\
/* What stands for a text in a row: its index among those of the column, -1 if the model does not know it, NAN if it is
   missing. Text is in UTF-8. */
float model_text(int column, const char *text);
"""

_SCORES = """/* Scores of one row: one for two classes (positive: the second), else one per class. */
void model_scores(const float *x, float *scores);
"""

_VALUES = """/* The values of one row, one per target. */
void model_scores(const float *x, float *values);
"""

_PROBABILITIES = """/* Calibrated probabilities of the classes. */
void model_probabilities(const float *x, float *probabilities);
"""

_PREDICT = """/* The index of the winning class. */
int model_predict(const float *x);
"""

_PREDICT_VALUE = """/* The value of one row. */
float model_predict(const float *x);
"""

_PREDICT_VALUES = """/* The same as scores. */
void model_predict(const float *x, float *values);
"""

_INTERVAL = """/* The lower and the upper end of the interval of one row. */
void model_predict_interval(const float *x, float *ends);
"""

_EXPLAIN = """/* Contributions of the features to the scores: contributions[output * @COLUMNS@ + feature].
   With the intercept of the output, which includes the rounding of the scores to float, they add up to the result of
   scores. */
void model_explain(const float *x, double *contributions, double *intercept);
"""
