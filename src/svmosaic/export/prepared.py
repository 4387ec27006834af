"""Models with the preparation of their rows, as ONNX and as C: both take the columns as they stand in the table."""

import re

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from svmosaic.atomic import write_text
from svmosaic.export._c_tables import CExportError, array
from svmosaic.export.c import to_c


def prepared_to_onnx(model):
    """A trained model as ONNX, converted by skl2onnx.

    Parameters
    ----------
    model : TrainedModel
        Where all columns are numbers, the graph has one input X with all of them. Otherwise it has one a column, of
        shape (n, 1), called as the column (letters, digits and underscores), and missing text is "".

    Returns
    -------
    onnx.ModelProto
    """
    from svmosaic.export.onnx import OPSET, OnnxExportError, register, to_onnx

    if "text" not in model.kinds:
        return to_onnx(model.pipeline)
    from skl2onnx import convert_sklearn
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    names = _unique([re.sub(r"\W", "_", str(name)) for name in model.feature_names])
    types = {"number": FloatTensorType, "text": StringTensorType}
    register()
    try:
        return convert_sklearn(
            model.pipeline, target_opset=OPSET, options={id(model.estimator): {"zipmap": False}},
            initial_types=[(name, types[kind]([None, 1])) for name, kind in zip(names, model.kinds, strict=True)],
        )  # fmt: skip
    except RuntimeError as error:  # how skl2onnx says no
        raise OnnxExportError(f"skl2onnx cannot convert this model: {' '.join(str(error).split())}") from error


def _unique(names):
    taken = set()
    for name in names:
        while name in taken:
            name += "_"
        taken.add(name)
        yield name


def prepared_to_c(model, path, *, name=None):
    """A trained model as C: missing values (NaN) become the median, and rows are scaled, before the model sees them.

    Parameters
    ----------
    model : TrainedModel
        All of whose columns are numbers.
    path, name
        As for `svmosaic.export.c.to_c`.

    Returns
    -------
    source, header : Path
    """
    if "text" in model.kinds:
        words = [str(n) for n, kind in zip(model.feature_names, model.kinds, strict=True) if kind == "text"]
        raise CExportError(
            f"the C functions take numbers only, and the model has columns of text ({', '.join(words[:5])}): export it "
            "as ONNX, or train it with --drop on these columns, or with columns of numbers in their place"
        )
    if getattr(model.estimator, "mosaic_", None) is None:
        raise CExportError(f"{type(model.estimator).__name__} cannot be written as C: it is no mosaic")
    source, header = to_c(model.estimator, path, name=name)
    fill, center, factor = _affine(model.pipeline.steps[0][1], len(model.feature_names))
    write_text(source, _with_preparation(source.read_text(), fill, center, factor))
    return source, header


def _affine(preparation, n_features):
    """A preparation of numbers as three arrays: z = ((x, or fill if that is missing) - center) * factor."""
    fill, center, factor = np.zeros(n_features), np.zeros(n_features), np.ones(n_features)
    for step in [step for _, step in getattr(preparation, "steps", [("", preparation)])]:
        if isinstance(step, SimpleImputer):
            fill = step.statistics_
        elif isinstance(step, StandardScaler):
            center, factor = step.mean_, 1.0 / step.scale_
        elif isinstance(step, MaxAbsScaler):
            factor = 1.0 / step.scale_
        else:
            raise CExportError(f"the preparation {type(step).__name__} cannot be written as C")
    return fill, center, factor


# All functions of the file score by this one, whose place it takes.
_SCORES_OF = re.compile(r"^static void scores_of\(const float \*\w+, double \*scores\) \{$.*?^\}$", re.M | re.S)

_PREPARE = """
/* Rows as they are measured; a missing value is NaN. */
static void scores_of(const float *measured, double *scores) {
  float prepared[FEATURES];
  for (int f = 0; f < FEATURES; ++f) {
    const float value = measured[f] != measured[f] ? fill_in[f] : measured[f];
    prepared[f] = (value - shift_by[f]) * scale_by[f];
  }
  scores_of_prepared(prepared, scores);
}"""


def _with_preparation(text, fill, center, factor):
    found = list(_SCORES_OF.finditer(text))
    if len(found) != 1:
        raise CExportError("the C file has no single function that scores, so its rows cannot be prepared")
    inner = found[0].group().replace("scores_of(", "scores_of_prepared(", 1)
    tables = "\n".join(array(n, v) for n, v in (("fill_in", fill), ("shift_by", center), ("scale_by", factor)))
    start, end = found[0].span()
    return f"{text[:start]}{tables}\n{inner}\n{_PREPARE}{text[end:]}"
