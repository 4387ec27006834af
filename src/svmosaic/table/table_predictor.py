"""Predictors of models that were fitted to a table: one row as a dict, without pandas."""

import numpy as np

from svmosaic.table.columns import PreparedColumns


class TablePredictor:
    """A predictor that takes a row as a dict of columns, or several rows as a list of dicts or as a frame.

    An array has one value for each of `columns`. None, NaN and "" are missing values.
    Columns that the model does not know are ignored; for categories that did not occur in training, see
    `TablePreparation`. Dicts need only NumPy and the core. Obtain a predictor from `estimator.predictor()`.

    Parameters
    ----------
    predictor : Predictor
        Of rows of numbers.
    preparation : TablePreparation

    See Also
    --------
    svmosaic.model.predictor.Predictor : Takes rows of numbers.
    svmosaic.export.files.save_predictor : Writes it to a file.
    """

    def __init__(self, predictor, preparation):
        self.__setstate__((predictor, preparation.columns_, preparation.center_, preparation.factor_))

    def __getstate__(self):
        return self._predictor, self._prepared.columns_, self._prepared.center_, self._prepared.factor_

    def __setstate__(self, state):
        self._predictor, *prepared = state
        self._prepared = PreparedColumns(*prepared)
        self._features_of_row = self._prepared.row_function()

    @property
    def classes(self):
        """The classes, or None if `predict` returns numbers."""
        return self._predictor.classes

    @property
    def columns(self) -> list[str]:
        """The columns that a row needs."""
        return [column.name for column in self._prepared.columns_]

    def __call__(self, X):
        """The same as `predict`."""
        return self._predictor.predict(self._rows(X))

    def predict(self, X, n_threads=1):
        """Predict one row or several rows.

        Parameters
        ----------
        X : dict, array of one row, list of dicts, frame or array of objects
        n_threads : int, default=1
            For several rows.
        """
        return self._predictor.predict(self._rows(X), n_threads)

    def decision_function(self, X, n_threads=1):
        """Return the scores of one row or of several rows; parameters as for `predict`."""
        return self._predictor.decision_function(self._rows(X), n_threads)

    def predict_proba(self, X, n_threads=1):
        """Predict probabilities of the classes, for one row or for several rows; parameters as for `predict`."""
        return self._predictor.predict_proba(self._rows(X), n_threads)

    def predict_interval(self, X, n_threads=1):
        """Predict lower and upper ends in units of y; parameters as for `predict`."""
        return self._predictor.predict_interval(self._rows(X), n_threads)

    def _rows(self, X):
        if isinstance(X, dict):
            return self._features_of_row(X)
        if isinstance(X, np.ndarray) and X.ndim == 1:
            columns = self.columns
            if len(X) != len(columns):
                raise ValueError(f"a row has {len(columns)} values ({', '.join(columns)}), got {len(X)}")
            return self._features_of_row(dict(zip(columns, X.tolist(), strict=True)))
        if not isinstance(X, (list, tuple)):
            return self._prepared.features_of(X, self.columns if isinstance(X, np.ndarray) else None)
        other = next((row for row in X if not isinstance(row, dict)), None)
        if other is not None:
            raise TypeError(
                f"a list must hold rows as dicts, got {other!r:.60}: for one row pass a dict, or an array of the "
                "values of `columns`"
            )
        n_features = sum(len(column.features) for column in self._prepared.columns_)
        return np.array([self._features_of_row(row) for row in X]).reshape(len(X), n_features)
