"""A fitted model taken apart, with rows in the columns of the user's table."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import sparse

from svmosaic._validation import validate
from svmosaic.explain.contributions import explain, names_of
from svmosaic.export.description import take_apart
from svmosaic.export.preparation import BLANKS, Preparation, PreparationError, columns_as_features
from svmosaic.gates import SeveralGates
from svmosaic.gates.several import n_choices
from svmosaic.model import registry
from svmosaic.model.heads import Regress, head_of, home_tiles
from svmosaic.rows import evenly

MISSING = "(missing)"
# Numbers that an explanation may take at a time.
BLOCK = 4_000_000
# Numbers that the contributions of all rows may take.
MOST_NUMBERS = 10_000_000
# Rows by which it is decided whether scores are made of contributions, or of tiles that are only numbers.
COMPARED_ROWS = 1000


@dataclass(frozen=True, eq=False)
class Column:
    """A column of the table.

    Attributes
    ----------
    name : str
    is_text : bool
    features : ndarray of int
        The features that the estimator gets from it.
    is_date : bool
        Its values are days since 1970-01-01.
    """

    name: str
    is_text: bool
    features: np.ndarray
    is_date: bool = False


class Subject:
    """A model and some rows.

    Parameters
    ----------
    model : fitted estimator with tiles, pipeline that ends in one, or TrainedModel
    X : table, array or sparse matrix, as it enters the model
    feature_names : list of str, optional
        Names of the columns, if X has none.

    Attributes
    ----------
    model, estimator, head, mosaic : the parts of the model
    entered, X : rows as the model and as its estimator take them
    preparation : Preparation
        From columns to features. If the steps in front of the estimator cannot be read, or its tiles see the features
        of a transformer, these features are the columns.
    whole : bool
        Whether the columns are those of the table.
    columns : list of Column
    """

    def __init__(self, model, X, feature_names=None):
        self.model = model
        pipeline = getattr(model, "pipeline", model)
        self.entered = model.rows(X) if pipeline is not model else X
        steps = getattr(pipeline, "steps", None)
        self.estimator = pipeline if steps is None else steps[-1][1]
        self.mosaic = mosaic_of(self.estimator)
        self.head: Any = head_of(self.estimator)
        prepared = self.entered if steps is None or len(steps) == 1 else pipeline[:-1].transform(self.entered)
        # An estimator that prepares tables itself makes matrices of them.
        as_rows = getattr(self.estimator, "_rows", None)
        self.X = validate(self.estimator, prepared, reset=False) if as_rows is None else as_rows(prepared)
        self.preparation, self.whole = self._read(pipeline, feature_names)
        self.columns = [
            Column(name, kind == "text", np.flatnonzero(self.preparation.source == j), kind == "date")
            for j, (name, kind) in enumerate(zip(self.preparation.names, self.preparation.kinds, strict=True))
        ]

    def _read(self, pipeline, feature_names) -> tuple[Preparation, bool]:
        table = getattr(self.estimator, "_table", None)
        if table is not None:
            return table.plain(), True
        features = self.mosaic.features
        before = pipeline[:-1] if hasattr(pipeline, "steps") and len(pipeline.steps) > 1 else None
        if features.portable:
            try:
                whole = take_apart(self.model, READER)
                given = whole.preparation.names if feature_names is None else [str(name) for name in feature_names]
                _check_names(given, whole.preparation.n_columns)
                return replace(whole.preparation, names=given), True
            except PreparationError:
                pass
        names: Any = getattr(self.estimator, "feature_names_in_", None)
        if names is None and before is not None:
            try:
                names = before.get_feature_names_out()
            except (AttributeError, ValueError):
                names = None
        names = names_of(self.mosaic, names) if feature_names is None else list(feature_names)
        _check_names(names, len(names_of(self.mosaic, None)))
        return columns_as_features(names), False

    @property
    def n_rows(self) -> int:
        return self.X.shape[0]

    def text_of(self, rule) -> str:
        """A rule in words."""
        dates = [column.is_date for column in self.columns]
        return rule.text(self.names, dates)

    @property
    def names(self) -> list[str]:
        """Of the columns."""
        return [column.name for column in self.columns]

    def values(self, j):
        """A column of the table: float64 with NaN for missing numbers, texts, or dates as days."""
        if not self.whole:
            return self._features_as_columns[:, j]
        X, column = self._shown, self.columns[j]
        if hasattr(X, "iloc"):
            found = X.iloc[:, j].to_numpy()
        elif sparse.issparse(X):
            found = np.asarray(X[:, [j]].toarray()).ravel()
        else:
            found = np.asarray(X)[:, j]
        if column.is_date:
            times = np.array(["NaT" if v is None or v != v else str(v) for v in found], dtype="datetime64[us]")
            return (times - np.datetime64(0, "us")) / np.timedelta64(1, "D")
        return self._texts(found, j) if column.is_text else found.astype(np.float64)

    def _texts(self, values, j):
        """Text as the preparation reads it; what is missing is called so."""
        texts = np.array(["" if v is None or v != v else str(v) for v in values], dtype=object)
        if self.preparation.missing_texts is not None:
            texts = np.array([text.strip(BLANKS) for text in texts], dtype=object)
            texts[np.isin(texts, self.preparation.missing_texts)] = ""
        texts[texts == ""] = self.missing_text(j)
        return texts

    @cached_property
    def _shown(self):
        """The rows as they enter the model, with its columns in their order."""
        table = getattr(self.estimator, "_table", None) or getattr(self.model, "table_preparation", None)
        return self.entered if table is None else table.shown(self.entered)

    @cached_property
    def _features_as_columns(self):
        return self.mosaic.features.values(self.X)

    def missing_text(self, j) -> str:
        """The value that marks missing text in a column."""
        return self.preparation.missing.get(j, MISSING)

    def categories(self, j) -> list[str]:
        """Texts of a column that have features of their own."""
        return [c for f in self.columns[j].features if (c := self.preparation.category[f]) is not None]

    def features_at(self, j, values):
        """The estimator's features of a column at some of its values, of shape (n_values, n_features of the column)."""
        own = self.columns[j].features
        found = self.preparation.features_of(j, values)
        for step in self.preparation.steps:
            filled = np.where(np.isnan(found) & ~np.isnan(step.fill[own]), step.fill[own], found)
            found = (filled - step.center[own]) * step.factor[own]
        return found

    # ---- scores ---------------------------------------------------------------------------------------------

    @cached_property
    def scale(self):
        """What scores are multiplied by to be in the units of the answer, per output."""
        return np.atleast_1d(self.head.scale) if isinstance(self.head, Regress) else np.ones(self.head.n_outputs)

    @cached_property
    def scores(self):
        """Scores of all rows, of shape (n_rows, n_outputs)."""
        return self.mosaic.decision_function(self.X)

    @cached_property
    def codes(self):
        """Tiles and weights of all rows, the weights never None."""
        gate_rows, _ = self.mosaic.features.rows(self.X)
        tile, weight = self.mosaic.gate.code(gate_rows)
        return tile, np.ones(tile.shape) if weight is None else weight

    @cached_property
    def owned(self):
        """The tiles of the gate that regions are those of.

        A model may have several gates, or trees: a row then belongs to a region of each. Regions are those of the gate
        with the largest factor that has several tiles, or of all tiles if there is one gate.
        """
        gate = self.mosaic.gate
        if not isinstance(gate, SeveralGates):
            return np.arange(gate.n_tiles)
        owner = gate.gate_of_tile
        factors = np.concatenate([[f] * n_choices(g) for g, f in zip(gate.gates, gate.factors, strict=True)])
        several = np.bincount(owner) > 1
        return np.flatnonzero(owner == (np.where(several, factors, -np.inf).argmax() if several.any() else 0))

    @cached_property
    def is_soft(self) -> bool:
        """Whether rows share several regions."""
        tile, weight = self.codes
        return bool(((weight != 0) & np.isin(tile, self.owned)).sum(axis=1).max(initial=0) > 1)

    @cached_property
    def n_gates(self) -> int:
        """How many gates or trees with several tiles there are."""
        gate = self.mosaic.gate
        return int((np.bincount(gate.gate_of_tile) > 1).sum()) if isinstance(gate, SeveralGates) else 1

    @cached_property
    def home(self):
        """The tile that each row belongs to most, among those of one gate."""
        tile, weight = self.codes
        mine = np.isin(tile, self.owned)
        return home_tiles((tile, np.where(mine, weight, -np.inf)))

    @cached_property
    def has_contributions(self) -> bool:
        """Whether columns add more to the scores than tiles that are only numbers do; else most is in the gate."""
        mosaic = self.mosaic
        n_sloped = np.count_nonzero(mosaic.coef.any(axis=(1, 2)))
        if n_sloped in (0, mosaic.n_tiles) or mosaic.link != "identity":
            return len(mosaic.coef) > 0
        some = evenly(self.n_rows, COMPARED_ROWS)
        added = self.contributions_of(some).sum(axis=2)
        rest = self.scale * mosaic.decision_function(self.X[some]) - added
        return bool(added.std(axis=0).sum() >= rest.std(axis=0).sum())

    def scores_with(self, X, j, features):
        """Scores of rows X, as the estimator takes them, with other features of column j, in the units of the answer.

        Parameters
        ----------
        X : ndarray or CSR matrix
        j : int
        features : ndarray of shape (n_rows or 1, n_features of the column)
        """
        own = self.columns[j].features
        changed = X.toarray() if sparse.issparse(X) else X.copy()
        changed[:, own] = features
        changed = sparse.csr_array(changed) if sparse.issparse(X) else changed
        return self.scale * self.mosaic.decision_function(changed)

    def explanations(self, rows=None) -> Iterator:
        """(rows, Explanation) of all rows, or of those listed, some at a time."""
        rows = np.arange(self.n_rows) if rows is None else rows
        _, n_outputs, n_features = self.mosaic.coef.shape
        step = max(1, BLOCK // (getattr(self.mosaic.gate, "width", self.mosaic.n_tiles) * n_outputs * n_features))
        for start in range(0, len(rows), step):
            here = rows[start : start + step]
            yield here, explain(self.mosaic, self.X[here], self.head)

    @cached_property
    def contributions(self):
        """What each column adds to the scores, of shape (n_rows, n_outputs, n_columns).

        In the units of the answer for regression. Where scores are votes of tiles, to the margin of the row's region.
        """
        return self.contributions_of(np.arange(self.n_rows))

    def contributions_of(self, rows):
        """The same for some of the rows, given by their places."""
        parts = [np.empty((0, self.head.n_outputs, len(self.columns)))]
        for here, account in self.explanations(rows):
            if account.link == "identity":
                found = account.contributions
            else:
                at = (account.tile == self.home[here][:, None]).argmax(axis=1)
                found = account.tile_contributions[np.arange(len(at)), at]
            parts.append((found.reshape(-1, found.shape[-1]) @ self.regroup).reshape(len(here), *parts[0].shape[1:]))
        return np.concatenate(parts)

    @cached_property
    def regroup(self):
        """The matrix that adds up the features of each column, of shape (n_features, n_columns)."""
        source = self.preparation.source
        places = np.arange(len(source)), source
        return sparse.csr_array((np.ones(len(source)), places), shape=(len(source), len(self.columns)))


def take(X, rows):
    """Rows of a table, an array or a sparse matrix."""
    if hasattr(X, "column_names"):  # PyArrow's, whose brackets take slices and names alone
        return X.take(rows)
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def some_rows(model, X, most=20_000):
    """Indices of at most so many rows of X, drawn evenly: fewer if their contributions would take too much memory."""
    estimator = getattr(model, "pipeline", model)
    estimator = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    mosaic_of(estimator)
    n_numbers = X.shape[1] * head_of(estimator).n_outputs
    return evenly(X.shape[0], int(np.clip(MOST_NUMBERS // max(n_numbers, 1), 100, most)))


def sampled(model, X) -> Subject:
    """A model and at most 20,000 of some rows, drawn evenly."""
    X = X if hasattr(X, "shape") else np.asarray(X)
    rows = some_rows(model, X)
    return Subject(model, X if len(rows) == X.shape[0] else take(X, rows))


def mosaic_of(model):
    """Return the mosaic of a model, or raise an error with the reason why it has none."""
    if hasattr(model, "mosaic_"):
        return model.mosaic_
    known = registry.find(type(model))
    is_fitted = hasattr(model, "classes_") or not hasattr(model, "fit")
    state = "has no tiles" if is_fitted else "is not fitted"
    why = f" ({known.no_tiles})" if known is not None and known.no_tiles and is_fitted else ""
    raise TypeError(f"{type(model).__name__} {state}{why}: pass a fitted model of svmosaic that has mosaic_")


# All that `take_apart` asks of the language that it reads a model for.
READER: Any = SimpleNamespace(language="columns", error=PreparationError)


def _check_names(names, n_columns):
    if len(names) != n_columns:
        raise ValueError(f"feature_names must have one name for each of the {n_columns} columns, got {len(names)}")
