"""A model as C: one C99 file and its header, without malloc, and of libm only expf and sqrtf."""

import re
from pathlib import Path

from svmosaic.atomic import write_text
from svmosaic.export.c.tables import CExportError
from svmosaic.export.c.target import CTarget
from svmosaic.export.visitor import write

__all__ = ["CExportError", "CTarget", "to_c"]


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
    text, head = write(estimator, CTarget(name, header.name), explain=None)
    # The header first: a source without its header would not compile.
    write_text(header, head)
    write_text(source, text)
    return source, header
