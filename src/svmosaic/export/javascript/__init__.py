"""A model as JavaScript: one ES module without dependencies, for browsers and Node."""

from svmosaic.atomic import write_text
from svmosaic.export.javascript.target import JavaScriptExportError, JavaScriptTarget
from svmosaic.export.visitor import write

__all__ = ["JavaScriptExportError", "JavaScriptTarget", "to_javascript"]


def to_javascript(estimator, path=None, *, weight_digits=None):
    """A fitted estimator as an ES module.

    The module exports `predict(row)`, `scores(row)`, `predictProba(row)` and `explain(row)`, and the constants
    `columns`, `classes` and `outputs`. A row is an object keyed by the columns, or an array in their order; null is a
    missing value. All is computed in double precision. Of a regressor, `classes` is null, and `predict` and `scores`
    give values; `predictInterval(row)` gives the lower and the upper end for a `MosaicRegressor` with `quantiles`.

    `explain` gives contributions of the columns, which add up to the scores with the intercept, and the tiles that the
    row belongs to. Where scores are no sums over columns (the vote links of the mixtures, densities), contributions are
    null and a reason is given.

    Parameters
    ----------
    estimator : fitted estimator of this library, pipeline that ends in one, or TrainedModel
        Without a feature map. Of pipelines, imputers, scalers and one-hot encoders are known.
    path : str or path, optional
        Where to write the module, by custom with the suffix .js or .mjs.
    weight_digits : int, optional
        Significant digits of the weights of the tiles, for a smaller file; all of them if not given.

    Returns
    -------
    str
        The text of the module.
    """
    text = write(estimator, JavaScriptTarget(weight_digits), explain=None)
    if path is not None:
        write_text(path, text)
    return text
