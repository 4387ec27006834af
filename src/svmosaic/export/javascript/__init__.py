"""A model as JavaScript: one ES module without dependencies, for browsers and Node."""

from svmosaic.atomic import write_text
from svmosaic.export.javascript.target import JavaScriptExportError, JavaScriptTarget
from svmosaic.export.visitor import write

__all__ = ["JavaScriptExportError", "JavaScriptTarget", "to_javascript"]


def to_javascript(estimator, path=None, *, weight_digits=None):
    """Return a fitted estimator as an ES module.

    The module exports `predict(row)`, `scores(row)`, `predictProba(row)` and `explain(row)`, and the constants
    `columns`, `classes` and `outputs`. A row is an object keyed by the columns, or an array in their order; null is a
    missing value. Everything is computed in double precision. For a regressor, `classes` is null, and `predict` and
    `scores` return values; `predictInterval(row)` returns both ends for a `MosaicRegressor` with `quantiles`.

    `explain` returns the contributions of the columns, which together with the intercept add up to the scores, and the
    tiles that the row belongs to. If scores are not sums over columns (mixtures that vote, densities), contributions
    are null and a reason is given.

    Parameters
    ----------
    estimator : fitted estimator of this library, pipeline that ends in one, or TrainedModel
        Without a feature map. In pipelines, imputers, scalers and one-hot encoders are supported.
    path : str or path, optional
        If given, the module is also written to this file, usually with the suffix .js or .mjs.
    weight_digits : int, optional
        Number of significant digits of the weights of the tiles, for a smaller file; all digits if not given.

    Returns
    -------
    str
        The text of the module.

    See Also
    --------
    svmosaic.export.onnx.to_onnx : Writes ONNX.
    svmosaic.export.c.to_c : Writes C.
    """
    text = write(estimator, JavaScriptTarget(weight_digits), explain=None)
    if path is not None:
        write_text(path, text)
    return text
