"""A fitted model seen in the columns and units of its table, and which of these columns matter."""

import contextlib
from dataclasses import dataclass, replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import sparse

from svmosaic._validation import validate
from svmosaic.explain.contributions import Table, deviations, explain, names_of
from svmosaic.export.description import take_apart
from svmosaic.export.preparation import BLANKS, Preparation, PreparationError, columns_as_features
from svmosaic.gates import SeveralGates
from svmosaic.gates.composed import n_choices
from svmosaic.maps.protocol import dense
from svmosaic.model import registry
from svmosaic.model.heads import Regress, head_of, home_tiles
from svmosaic.rows import evenly

MISSING = "(missing)"
# Numbers that an explanation may take at a time, and the contributions of all rows.
BLOCK, MOST_NUMBERS = 4_000_000, 10_000_000
# Rows by which it is decided whether scores are made of contributions, or of tiles that are only numbers.
COMPARED_ROWS = 1000
# Rows that are scored with shuffled columns, all columns together, and for each of them.
MOST_SHUFFLED, FEWEST_ROWS, MOST_ROWS = 20_000, 50, 1000
# All that `take_apart` asks of the language that it reads a model for.
READER: Any = SimpleNamespace(language="columns", error=PreparationError)


@dataclass(frozen=True, eq=False)
class Column:
    """A column of the table, and the features that the estimator gets from it; dates are days since 1970-01-01."""

    name: str
    is_text: bool
    features: np.ndarray
    is_date: bool = False


class Subject:
    """A fitted model with tiles (or a pipeline, or a trained model) and some rows, as they enter it.

    Attributes
    ----------
    model, before, estimator, head, mosaic : the parts of the model
        The steps before its estimator are None if there are none.
    entered, X : rows as the model and as its estimator take them
    preparation : Preparation
        From columns to features. If the steps in front of the estimator cannot be read, or its tiles see the features
        of a transformer, these features are the columns.
    whole : bool
        The columns are those of the table.
    columns : list of Column
    """

    def __init__(self, model, X, feature_names=None):
        self.model = model
        pipeline = getattr(model, "pipeline", model)
        self.entered = model.rows(X) if pipeline is not model else X
        steps = getattr(pipeline, "steps", [("", pipeline)])
        self.estimator, self.before = steps[-1][1], pipeline[:-1] if len(steps) > 1 else None
        self.mosaic = mosaic_of(self.estimator)
        self.head: Any = head_of(self.estimator)
        prepared = self.entered if self.before is None else self.before.transform(self.entered)
        # An estimator that prepares tables itself makes matrices of them.
        self._table = getattr(self.estimator, "preparation_", None)
        self.X = (
            validate(self.estimator, prepared, reset=False)
            if self._table is None
            else np.asarray(self._table.transform(prepared))
        )
        self.n_rows = self.X.shape[0]
        self.preparation, self.whole = self._read(feature_names)
        self.names = self.preparation.names
        self.columns = [
            Column(name, kind == "text", np.flatnonzero(self.preparation.source == j), kind == "date")
            for j, (name, kind) in enumerate(zip(self.names, self.preparation.kinds, strict=True))
        ]

    def _read(self, given) -> tuple[Preparation, bool]:
        if self._table is not None:
            return self._table.plain(), True
        if self.mosaic.features.portable:
            try:
                found = take_apart(self.model, READER).preparation
                return replace(found, names=_named(given, found.names)), True
            except PreparationError:
                pass
        return columns_as_features(_named(given, self.feature_names)), False

    @cached_property
    def feature_names(self) -> list[str]:
        """Names of the features as the tiles see them."""
        if self._table is not None:
            return names_of(self.mosaic, self._table.get_feature_names_out())
        names: Any = getattr(self.estimator, "feature_names_in_", None)
        if names is None and self.before is not None:
            with contextlib.suppress(AttributeError, ValueError):
                names = self.before.get_feature_names_out()
        return names_of(self.mosaic, names)

    def text_of(self, rule) -> str:
        """A rule in words."""
        return rule.text(self.names, [column.is_date for column in self.columns])

    def values(self, j):
        """A column of the table: float64 with NaN for missing numbers, texts, or dates as days."""
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
        if not column.is_text:
            return found.astype(np.float64)
        # As the preparation reads it; what is missing is called so.
        texts = np.array(["" if v is None or v != v else str(v) for v in found], dtype=object)
        if self.preparation.missing_texts is not None:
            texts = np.array([text.strip(BLANKS) for text in texts], dtype=object)
            texts[np.isin(texts, self.preparation.missing_texts)] = ""
        texts[texts == ""] = self.missing_text(j)
        return texts

    @cached_property
    def _shown(self):
        """The rows as they enter the model, with its columns in their order; or features, if they are the columns."""
        if not self.whole:
            return self.mosaic.features.values(self.X)
        table = self._table or getattr(self.model, "table_preparation", None)
        return self.entered if table is None else table.shown(self.entered)

    def missing_text(self, j) -> str:
        """The value that marks missing text in a column."""
        return self.preparation.missing.get(j, MISSING)

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
        """Factor of each output that brings scores to the units of the answer."""
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
        """Rows share several regions."""
        tile, weight = self.codes
        return bool(((weight != 0) & np.isin(tile, self.owned)).sum(axis=1).max(initial=0) > 1)

    @cached_property
    def n_gates(self) -> int:
        """Number of gates or trees with several tiles."""
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
        """Columns add more to the scores than tiles that are only numbers do; else most is in the gate."""
        mosaic = self.mosaic
        n_sloped = np.count_nonzero(mosaic.coef.any(axis=(1, 2)))
        if n_sloped in (0, mosaic.n_tiles) or mosaic.link != "identity":
            return len(mosaic.coef) > 0
        some = evenly(self.n_rows, COMPARED_ROWS)
        added = self.contributions_of(some).sum(axis=2)
        rest = self.scale * mosaic.decision_function(self.X[some]) - added
        return bool(added.std(axis=0).sum() >= rest.std(axis=0).sum())

    def scores_with(self, X, j, features):
        """Scores of rows with other features of column j (one line, or one per row), in the units of the answer."""
        own = self.columns[j].features
        changed = X.toarray() if sparse.issparse(X) else X.copy()
        changed[:, own] = features
        changed = sparse.csr_array(changed) if sparse.issparse(X) else changed
        return self.scale * self.mosaic.decision_function(changed)

    @cached_property
    def contributions(self):
        """Contributions of the columns to the scores, of shape (n_rows, n_outputs, n_columns).

        In the units of the answer for regression. Where scores are votes of tiles, to the margin of the row's region.
        """
        return self.contributions_of(np.arange(self.n_rows))

    def contributions_of(self, rows):
        """Contributions in some of the rows, given by their indices."""
        found = np.empty((len(rows), self.head.n_outputs, len(self.columns)))
        # The matrix that adds up the features of each column.
        source = self.preparation.source
        places = np.arange(len(source)), source
        regroup = sparse.csr_array((np.ones(len(source)), places), shape=(len(source), len(self.columns)))
        _, n_outputs, n_features = self.mosaic.coef.shape
        step = max(1, BLOCK // (getattr(self.mosaic.gate, "width", self.mosaic.n_tiles) * n_outputs * n_features))
        for start in range(0, len(rows), step):
            here = rows[start : start + step]
            account = explain(self.mosaic, self.X[here], self.head)
            if account.link == "identity":
                parts = account.contributions
            else:
                at = (account.tile == self.home[here][:, None]).argmax(axis=1)
                parts = account.tile_contributions[np.arange(len(at)), at]
            grouped = parts.reshape(-1, parts.shape[-1]) @ regroup
            found[start : start + step] = grouped.reshape(len(here), *found.shape[1:])
        return found

    # ---- importances ----------------------------------------------------------------------------------------

    @cached_property
    def importance(self):
        """Importance of each column over all rows."""
        return self.importances_in(np.zeros(self.n_rows, dtype=np.intp), 1)[0]

    def importances_in(self, group, n_groups):
        """Importance of each column within each group of rows, of shape (n_groups, n_columns).

        By contributions, or, if there are hardly any, by shuffling the columns of some rows.
        """
        if self.has_contributions:
            n_outputs = self.head.n_outputs
            total = sum(deviations(self.contributions[:, c], group, n_groups) for c in range(n_outputs)) / n_outputs
        else:
            rows, changes = self._changes_by_shuffling
            group = group[rows]
            total = np.stack([np.bincount(group, change, n_groups) for change in changes], axis=1)
        return total / np.maximum(np.bincount(group, minlength=n_groups), 1)[:, None]

    @cached_property
    def _changes_by_shuffling(self):
        """Some rows, and the mean absolute change of their scores if they exchange their values of each column."""
        n_rows = int(np.clip(MOST_SHUFFLED // max(len(self.columns), 1), FEWEST_ROWS, MOST_ROWS))
        rows = evenly(self.n_rows, n_rows)
        X = self.X[rows]
        before = self.scale * self.mosaic.decision_function(X)
        order = np.random.RandomState(0).permutation(len(rows))
        changes = np.zeros((len(self.columns), len(rows)))
        for j, column in enumerate(self.columns):
            if len(column.features):
                after = self.scores_with(X, j, dense(X[:, column.features])[order])
                changes[j] = np.abs(after - before).mean(axis=1)
        return rows, changes


def importances(model, X) -> Table:
    """Rank columns by the mean absolute deviation of their contributions to the scores from the mean contribution.

    This is weight times spread: a column that hardly varies, or that the model hardly uses, is not important. One-hot
    columns are combined. Contributions are exact; for regressors, they are in units of the target; for several outputs,
    their mean is used; and if scores are votes of tiles, they are contributions to the margin of the row's region.

    In kernel machines, and forests whose leaves are numbers, columns only decide which tiles answer, and contribute
    nothing themselves. There, the importance is the mean absolute change of the scores if the column is shuffled.

    Parameters
    ----------
    model : fitted estimator with tiles, pipeline that ends in one, or TrainedModel
    X : table, array or sparse matrix
        Rows in the form that the model takes. At most 20,000 evenly spaced rows are used.

    Returns
    -------
    Table
        Columns "feature" and "importance", largest first.

    See Also
    --------
    effects : The effect of each column.
    describe_regions : Describes regions in words.

    Examples
    --------
    >>> from svmosaic import LinearSVC
    >>> from svmosaic.datasets import make_xor
    >>> from svmosaic.explain import importances
    >>> X, y = make_xor(random_state=0)
    >>> len(importances(LinearSVC(random_state=0).fit(X, y), X))
    2
    """
    subject = sampled(model, X)
    order = np.argsort(-subject.importance, kind="stable")
    names = np.array(subject.names, dtype=object)[order]
    return Table({"feature": names, "importance": subject.importance[order]})


def take(X, rows):
    """Rows of a table, an array or a sparse matrix, by their indices or by a mask; X itself if it leaves none out."""
    if rows.dtype == bool and rows.all():
        return X
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


def _named(given, names) -> list[str]:
    """Names of columns, or those given in their place."""
    if given is None:
        return list(names)
    if len(given) != len(names):
        raise ValueError(f"feature_names must have one name for each of the {len(names)} columns, got {len(given)}")
    return [str(name) for name in given]
