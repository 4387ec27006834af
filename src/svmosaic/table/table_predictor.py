"""Predictors of models that were fitted to a table: one row as a dict, without pandas."""

import math

import numpy as np

from svmosaic.export.calendar import part_of_date
from svmosaic.table.columns import GONE, MISSING, VALUE
from svmosaic.table.frames import CONTAINERS, NUMBER, TEXT, days_of, is_missing, number_of, text_of

NOTHING = "column {!r} is missing, and the model has nothing to put in its place"


class RowPreparation:
    """One row, given as a dict by column, as the array that a predictor takes.

    Parameters
    ----------
    columns : list of Column
    center, factor : ndarray or None
        A scaling behind the features.
    """

    def __init__(self, columns, center=None, factor=None):
        self.columns, self.center, self.factor = columns, center, factor
        self.numbers, self.texts, self.dates, start = [], [], [], 0
        for column in columns:
            place = slice(start, start := start + len(column.features))
            if column.kind == TEXT:
                lines = dict(zip([*column.texts(), None], column.lines(), strict=True))
                unknown = lines.pop(None)
                self.texts.append((column.name, place, lines, unknown))
            elif column.kind == NUMBER:
                at = {form: place.start + f for f, (form, _) in enumerate(column.features)}
                fill = next(
                    (v for v, (form, _) in zip(column.fill, column.features, strict=True) if form == VALUE), 0.0
                )
                self.numbers.append((column.name, at.get(VALUE), at.get(GONE), fill))
            else:
                self.dates.append((column.name, place, column))
        self.n_features = start

    def __call__(self, row) -> np.ndarray:
        """The features of a row."""
        try:
            return self._features(row)
        except KeyError:
            lacking = [column.name for column in self.columns if column.name not in row]
            if not lacking:
                raise
            raise ValueError(f"the row lacks {', '.join(map(repr, lacking))}; pass None for a missing value") from None

    def _features(self, row):
        x = np.zeros(self.n_features)
        for name, at, gone, fill in self.numbers:
            value = row[name]
            if type(value) is not float:
                value = _number(value, name)
            if value != value:
                value = fill
                if fill != fill:
                    raise ValueError(NOTHING.format(name))
                if gone is not None:
                    x[gone] = 1.0
            if at is not None:
                x[at] = value
        for name, place, lines, unknown in self.texts:
            value = row[name]
            if type(value) is not str or not value:
                value = _text(value, name)
            x[place] = lines.get(value, unknown)
        for name, place, column in self.dates:
            x[place] = _date(row[name], name, column)
        return x if self.center is None else (x - self.center) * self.factor


def _number(value, name) -> float:
    try:
        value = number_of(value)
    except (TypeError, ValueError):
        raise ValueError(f"column {name!r} must be a number, or None for a missing value, got {value!r}") from None
    return value


def _text(value, name) -> str:
    if isinstance(value, CONTAINERS):
        raise ValueError(f"column {name!r} must be text, or None for a missing value, got {value!r}")
    return MISSING if is_missing(value) else text_of(value)


def _date(value, name, column):
    try:
        days = days_of(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"column {name!r} must be a date, text such as 2026-01-31 or None for a missing value, got {value!r}"
        ) from None
    if days != days:
        return [1.0 if form == GONE else fill for (form, _), fill in zip(column.features, column.fill, strict=True)]
    # Of a single number the floor of numpy takes ten times as long.
    return [0.0 if form == GONE else part_of_date(form, days, math.floor) for form, _ in column.features]


class PreparedPredictor:
    """A predictor behind a preparation of its rows, which may be given one at a time.

    A subclass has `_predictor` and `_asked(what, X, n_threads)`, the answer of that method of it.
    """

    @property
    def classes(self):
        """The classes, or None if `predict` returns numbers."""
        return self._predictor.classes

    def __call__(self, X):
        """The same as `predict`."""
        return self.predict(X)

    def predict(self, X, n_threads=1):
        """Predict one row or several rows.

        Parameters
        ----------
        X : one row or several, as the class says
        n_threads : int, default=1
            For several rows.
        """
        return self._asked("predict", X, n_threads)

    def decision_function(self, X, n_threads=1):
        """Return the scores of one row or of several rows.

        Parameters
        ----------
        X : as for `predict`
        n_threads : int, default=1
        """
        return self._asked("decision_function", X, n_threads)

    def predict_proba(self, X, n_threads=1):
        """Predict probabilities of the classes, for one row or for several rows.

        Parameters
        ----------
        X : as for `predict`
        n_threads : int, default=1
        """
        return self._asked("predict_proba", X, n_threads)

    def predict_interval(self, X, n_threads=1):
        """Predict lower and upper ends in units of y, for one row or for several rows.

        Parameters
        ----------
        X : as for `predict`
        n_threads : int, default=1
        """
        return self._asked("predict_interval", X, n_threads)


class TablePredictor(PreparedPredictor):
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
        return self._predictor, self._prepare.columns, self._prepare.center, self._prepare.factor

    def __setstate__(self, state):
        self._predictor, *prepared = state
        self._prepare = RowPreparation(*prepared)

    @property
    def columns(self) -> list[str]:
        """The columns that a row needs."""
        return list(dict.fromkeys(column.name for column in self._prepare.columns))

    def _asked(self, what, X, n_threads):
        return getattr(self._predictor, what)(self._rows(X), n_threads)

    def _by_name(self, row) -> dict:
        if len(row) != len(self.columns):
            raise ValueError(f"a row has {len(self.columns)} values ({', '.join(self.columns)}), got {len(row)}")
        return dict(zip(self.columns, row, strict=True))

    def _rows(self, X):
        if isinstance(X, dict):
            return self._prepare(X)
        if isinstance(X, np.ndarray) and X.ndim == 1:
            return self._prepare(self._by_name(X.tolist()))
        if isinstance(X, (list, tuple)):
            other = next((row for row in X if not isinstance(row, dict)), None)
            if other is not None:
                raise TypeError(
                    f"a list must hold rows as dicts, got {other!r:.60}: for one row pass a dict, or an array of the "
                    "values of `columns`"
                )
            return np.array([self._prepare(row) for row in X]).reshape(len(X), self._prepare.n_features)
        from svmosaic.table.table_preparation import transform_columns

        names = self.columns if isinstance(X, np.ndarray) else None
        rows = transform_columns(X, self._prepare.columns, self._prepare.center, self._prepare.factor, names)
        if np.isnan(rows).any():
            at = int(np.isnan(rows).any(axis=0).argmax())
            ends = np.cumsum([len(column.features) for column in self._prepare.columns])
            raise ValueError(NOTHING.format(self._prepare.columns[np.searchsorted(ends, at, side="right")].name))
        return rows
