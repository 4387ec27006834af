"""Predictors of scikit-learn pipelines around our estimators."""

from types import SimpleNamespace

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from svmosaic.export.description import take_apart
from svmosaic.export.preparation import PreparationError
from svmosaic.table.columns import MISSING, TABLE, VALUE, Column
from svmosaic.table.frames import NUMBER, TEXT
from svmosaic.table.table_predictor import PreparedPredictor, TablePredictor


def make_predictor(model):
    """Compile an estimator, or a pipeline that ends in one, for many small calls.

    Steps that the exporters support (imputers, scalers, one-hot and ordinal encoders, alone or in a
    `ColumnTransformer`) are reduced to a few lookups and products: a row is a dict or an array, and scikit-learn is not
    called. Such a predictor can be written to a file by `svmosaic.export.files.save_predictor`. Text unknown to a
    one-hot encoder then belongs to none of its categories, as in the exports. Other steps, such as a `TfidfVectorizer`,
    are called without changes.

    Parameters
    ----------
    model : fitted estimator with `predictor()`, or fitted Pipeline whose last step is one

    Returns
    -------
    Predictor, TablePredictor or PipelinePredictor

    See Also
    --------
    svmosaic.export.files.save_predictor : Write it to a file.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from svmosaic import KMeansSVC
    >>> from svmosaic.datasets import make_xor
    >>> from svmosaic.table.pipelines import make_predictor
    >>> X, y = make_xor(random_state=0)
    >>> pipeline = make_pipeline(StandardScaler(), KMeansSVC(4, random_state=0)).fit(X, y)
    >>> bool(make_predictor(pipeline).predict(X[0]) == pipeline.predict(X[:1])[0])
    True
    """
    if hasattr(model, "predictor"):
        return model.predictor()
    if not isinstance(model, Pipeline) or not hasattr(model[-1], "predictor"):
        last = model[-1] if isinstance(model, Pipeline) else model
        raise TypeError(f"a predictor needs an estimator of svmosaic, alone or last in a Pipeline, got {last!r}")
    check_is_fitted(model[-1])
    packed = model[-1].predictor()
    if len(model.steps) == 1:
        return packed
    try:
        whole = take_apart(model, SimpleNamespace(language="a row", error=PreparationError))
    except PreparationError:
        return PipelinePredictor(packed, model[:-1])
    prepared = whole.preparation
    if isinstance(packed, TablePredictor) or prepared.part:
        return PipelinePredictor(packed, model[:-1])
    return TablePredictor(packed, _folded(prepared, whole.named))


def _folded(prepared, named):
    """What a `TablePredictor` takes: columns as they are read, and one scaling behind all features."""
    n_features = len(prepared.source)
    center, factor, fill = np.zeros(n_features), np.ones(n_features), np.full(n_features, np.nan)
    for step in prepared.steps:
        # The first step that replaces missing values does, in the units that the column has there.
        fill = np.where(np.isnan(fill), step.fill / factor + center, fill)
        center, factor = center + step.center / factor, factor * step.factor
    columns = []
    in_order = np.array_equal(list(dict.fromkeys(prepared.source.tolist())), np.arange(prepared.n_columns))
    if not named and not in_order:  # rows of arrays have all columns, in their order
        columns = [Column(name, TEXT, [], []) for name in prepared.names]
    for places in _runs(prepared):
        j = int(prepared.source[places[0]])
        if prepared.kinds[j] == "text":
            columns.append(_text_column(prepared, j, places))
        else:
            columns.append(Column(prepared.names[j], NUMBER, [(VALUE, None)], [float(fill[places[0]])]))
    return SimpleNamespace(columns_=columns, center_=center, factor_=factor)


def _runs(prepared) -> list:
    """Features that stand side by side and are made of the same text; of numbers, each on its own."""
    runs: list = []
    for f, j in enumerate(prepared.source):
        if runs and prepared.kinds[j] == "text" and prepared.source[runs[-1][0]] == j:
            runs[-1].append(f)
        else:
            runs.append([f])
    return runs


def _text_column(prepared, j, places) -> Column:
    """A column of text whose features are looked up."""
    every, texts, lines = prepared.lines_of_text(j)
    lines = lines[:, np.searchsorted(every, places)]
    table = {text: line.tolist() for text, line in zip([*texts, MISSING], lines, strict=False)}
    return Column(
        prepared.names[j], TEXT, [(TABLE, k) for k in range(len(places))], [np.nan] * len(places), table,
        lines[-1].tolist(), [str(k) for k in range(len(places))],
    )  # fmt: skip


class PipelinePredictor(PreparedPredictor):
    """A compiled estimator after steps of a pipeline that are called without changes. Created by `make_predictor`.

    It takes the input of the steps, or a single row: a string is one document, a dict with columns as keys is one row
    of a table, and a one-dimensional array is one row of numbers.

    Parameters
    ----------
    predictor : Predictor or TablePredictor
    steps : Pipeline
        The steps before it.

    See Also
    --------
    make_predictor : Creates it.
    """

    def __init__(self, predictor, steps):
        self._predictor, self._steps = predictor, steps

    def _asked(self, what, X, n_threads):
        rows, is_one = X, False
        if isinstance(X, (str, dict)) or (isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype.kind in "fiub"):
            rows, is_one = self._one(X), True
        found = getattr(self._predictor, what)(self._steps.transform(rows), n_threads)
        return found[0] if is_one else found

    def _one(self, row):
        """A batch of one row."""
        if isinstance(row, str):
            return [row]
        if not isinstance(row, dict):
            return row[None]
        import pandas as pd

        return pd.DataFrame([row])
