"""One partition of the rows, and what is computed on it. Functions are pure: a lost partition can be made again."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array, column_or_1d

from svmosaic._validation import DTYPES, check_norms, check_weight, numbers_of
from svmosaic.couplings import Coupling
from svmosaic.explain.contributions import count_regions
from svmosaic.losses import Loss
from svmosaic.model.calibration import N_FOLDS
from svmosaic.model.heads import signs_of
from svmosaic.packing import without_duplicates
from svmosaic.rows import Rows
from svmosaic.solvers import Problem, Sight
from svmosaic.solvers.problem import at
from svmosaic.solvers.share import Share


def size_of(*values) -> int:
    """Bytes of arrays, tables and sparse matrices: a scheduler that does not know it moves large partitions around."""
    total = 0
    for value in values:
        if sparse.issparse(value):
            total += value.data.nbytes + value.indices.nbytes + value.indptr.nbytes
        elif hasattr(value, "memory_usage"):
            total += int(np.sum(value.memory_usage(deep=False)))
        else:
            total += getattr(value, "nbytes", 0)
    return total


@dataclass(frozen=True, eq=False)
class Raw:
    """Rows, labels and weights before validation; `where` names the partition in messages."""

    X: object
    y: object
    weight: object
    where: str

    def __sizeof__(self):
        return size_of(self.X, self.y, self.weight)


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of one partition, and what a fit stores for them.

    Attributes
    ----------
    X : ndarray or CSR matrix; None while it is not in memory
    label : ndarray of int32, places of the classes; or of float64, the values of a regression
    weight : ndarray of float64, sample weight times class weight
    first : int, how many rows come before this partition
    class_first : ndarray of int, how many rows of each class do
    bias : float, the constant of the intercepts
    kept : ndarray of int or None, the rows of the source that have weight
    tile, code : codes over the tiles, as a gate gives them
    cost : ndarray of float64, one per problem row
    duals : dict of slot to ndarray, the centers of the proximal steps; zero if there is none
    feature_map : FeatureMap or None, what the tiles see instead of the rows
    head : Regress or None, that of values
    """

    X: Any
    label: np.ndarray
    weight: np.ndarray
    first: int
    class_first: np.ndarray
    bias: float
    kept: np.ndarray | None = None
    tile: Any = None
    code: Any = None
    cost: Any = None
    duals: dict = field(default_factory=dict)
    feature_map: Any = None
    head: Any = None
    # What the core builds of rows and codes; made again after a journey.
    built: dict = field(default_factory=dict, repr=False)

    def __getstate__(self):
        return {**self.__dict__, "built": {}}

    def __sizeof__(self):
        return size_of(self.X, self.label, self.weight, self.tile, self.code, self.cost, *self.duals.values())

    @property
    def n_rows(self) -> int:
        return len(self.label)

    @property
    def tile_rows(self):
        """The rows as the tiles see them."""
        return self._once("tile_rows", lambda: self.X if self.feature_map is None else self.feature_map.rows(self.X)[1])

    def without_rows(self) -> "Part":
        return replace(self, X=None, built={})

    def with_rows(self, X) -> "Part":
        """With rows as the source gives them."""
        return replace(self, X=X if self.kept is None else X[self.kept], built={})

    def problem(self, job) -> Problem:
        """The share of this partition in the problem of a job."""
        key = job.coupling.own, job.coupling.shared.tobytes(), job.sight
        cost = self.cost if job.fold is None else np.where(self.folds == job.fold, 0.0, self.cost)
        target = job.loss.rows(self._wanted(job), cost, **job.parameters)
        if key not in self.built:
            rows = self._once("rows", lambda: Rows(self.tile_rows, self.bias))
            index = target.index  # losses of values have two rows per sample
            codes = (self.tile, self.code) if index is None else (self.tile[index], at(self.code, index))
            unused = np.ones(len(target.sign), dtype=np.int8)
            self.built[key] = Problem(rows, *codes, job.coupling, unused, target.cost, job.loss, index, sight=job.sight)
        return self.built[key].with_target(target.sign, target.cost, target.threshold)

    def _wanted(self, job):
        """What the scores of an output should be, as a loss takes it."""
        if self.head is not None:
            return self.head.targets(self.label)[:, job.output]
        return signs_of(self.label, job.output, job.n_outputs)

    @property
    def folds(self):
        """Where each row is held out: rows of a class take turns, however they are partitioned."""
        return self._once("folds", self._deal_folds)

    def _deal_folds(self):
        fold = np.empty(self.n_rows, dtype=np.int8)
        for k, before in enumerate(self.class_first):
            here = np.flatnonzero(self.label == k)
            fold[here] = (before + np.arange(len(here))) % N_FOLDS
        return fold

    def center(self, job):
        """The duals around which a problem takes its proximal step; None if its loss needs none."""
        if job.loss.smooth_step is not None:
            return None
        found = self.duals.get(job.slot)
        return np.zeros(self.problem(job).n_rows) if found is None else found

    def share(self, job, n_threads) -> Share:
        """The part of this partition in the answers to the solver."""
        return Share(self.problem(job), self.center(job), n_threads)

    def _once(self, name, make):
        if name not in self.built:
            self.built[name] = make()
        return self.built[name]


# ---- from raw rows to a part ----------------------------------------------------------------------------------------


def check_raw(raw, values=False):
    """Validated rows, labels (or values), weights, and the names of the columns."""
    X = raw.X
    names = list(X.columns) if hasattr(X, "columns") else None
    if names is not None and not all(isinstance(name, str) for name in names):
        names = None  # as scikit-learn does
    try:
        X = check_array(X, accept_sparse="csr", dtype=DTYPES, order="C", ensure_min_samples=0, input_name="X")
        X = without_duplicates(X)
        check_norms(X, names)
        y = numbers_of("a regressor", raw.y) if values else column_or_1d(np.asarray(raw.y))
        if len(y) != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows, but y has {len(y)}")
        if values and not np.isfinite(y).all():
            raise ValueError("y contains NaN or infinity: leave the rows without a known y out")
        if not values and y.dtype.kind == "f" and not (np.isfinite(y).all() and (y == np.round(y)).all()):
            raise ValueError("Unknown label type: y holds continuous or missing values, but this is a classifier")
        weight = np.ones(len(y))
        if raw.weight is not None and len(y):
            weight = check_weight(np.asarray(raw.weight), X)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{raw.where}: {error}") from error
    return X, y, weight, names


def describe(raw):
    """What the driver must know of a partition before it can plan: counts and types."""
    X, y, weight, names = check_raw(raw)
    kept = weight > 0
    classes, label = np.unique(y, return_inverse=True)
    return {
        "n_features": X.shape[1],
        "dtype": X.dtype.str,
        "names": names,
        "classes": classes,
        "counts": np.bincount(label[kept], minlength=len(classes)),
        "weights": np.bincount(label, weight, minlength=len(classes)),
        "where": raw.where,
    }


def prepare(raw, before, classes, class_factor, dtype):
    """The part of raw rows, without rows of zero weight; `before` counts the earlier rows of each class."""
    X, y, weight, _ = check_raw(raw)
    label = np.searchsorted(classes, y).astype(np.int32)
    weight = weight * class_factor[label]
    return _weighed(X, label, weight, dtype, int(before.sum()), before)


def describe_values(raw):
    """The same of a partition with values: moments by which all of y is standardized."""
    X, y, weight, names = check_raw(raw, values=True)
    found = {"n_features": X.shape[1], "dtype": X.dtype.str, "names": names, "where": raw.where, "n_rows": len(y)}
    kept = weight > 0
    y, weight = y[kept], weight[kept]
    found |= {"kept": len(y), "targets": y.shape[1:]}
    if len(y) == 0:
        return found
    mean = np.average(y, axis=0, weights=weight)
    squares = np.tensordot(weight, (y - mean) ** 2, axes=1)
    return found | {
        "weight": weight.sum(), "mean": mean, "squares": squares, "low": y.min(axis=0), "high": y.max(axis=0)
    }  # fmt: skip


def prepare_values(raw, before, head, copies, dtype):
    """The part of raw rows with values, without rows of zero weight; `before` counts the earlier rows."""
    X, y, weight, _ = check_raw(raw, values=True)
    y = np.repeat(y[:, None], copies, axis=1) if copies > 1 else y
    return _weighed(X, y, weight, dtype, int(before), np.zeros(0, dtype=np.int64), head)


def _weighed(X, truth, weight, dtype, first, class_first, head=None) -> Part:
    """The part of the rows that have weight."""
    kept = None
    if not (weight > 0).all():
        kept = np.flatnonzero(weight > 0)
        X, truth, weight = X[kept], truth[kept], weight[kept]
    X = X.astype(dtype, copy=False)
    X = X if sparse.issparse(X) else np.ascontiguousarray(X)
    return Part(X, truth, weight, first, class_first, 1.0, kept, head=head)


def with_map(part, feature_map):
    """With what the tiles see."""
    return replace(part, feature_map=feature_map, built={})


def with_codes(part, gate, C, bias, n_threads):
    """With the gate's codes, ready for the solver."""
    tile, code = gate.code(part.X, n_threads)
    return replace(part, tile=tile, code=code, cost=C * part.weight, bias=bias, duals={}, built={})


# ---- what travels back ----------------------------------------------------------------------------------------------


def rows_at(part, chosen, stratum):
    """Rows (and weights) at these places in the order of all rows, or of those of one class."""
    if stratum is None:
        here, before = None, part.first
        n_here = part.n_rows
    else:
        here, before = np.flatnonzero(part.label == stratum), part.class_first[stratum]
        n_here = len(here)
    mine = chosen[(chosen >= before) & (chosen < before + n_here)] - before
    places = mine if here is None else here[mine]
    return part.X[places], part.weight[places], part.label[places]


def lloyd(part, gate, stratum):
    """Sums of the rows of each cell, their weights, and the weighted squared distance to the old centers."""
    X, weight = part.X, part.weight
    if stratum is not None:
        here = np.flatnonzero(part.label == stratum)
        X, weight = X[here], weight[here]
    n_cells, n_features = gate.centers.shape
    sums, mass, inertia = np.zeros((n_cells, n_features)), np.zeros(n_cells), 0.0
    if X.shape[0]:
        cell = gate.code(X)[0][:, 0]
        member = sparse.csr_array((weight, (cell, np.arange(len(cell)))), shape=(n_cells, len(cell)))
        sums = member @ X
        sums = np.asarray(sums.toarray() if sparse.issparse(sums) else sums, dtype=np.float64)
        mass = np.bincount(cell, weight, n_cells)
        squares = np.asarray(X.multiply(X).sum(axis=1)).ravel() if sparse.issparse(X) else np.einsum("if,if->i", X, X)
        centers = np.asarray(gate.centers, dtype=np.float64)
        inertia = float(weight @ squares - 2 * np.vdot(centers, sums) + mass @ (centers**2).sum(axis=1))
    return sums, mass, np.array(inertia)


def cells_used(part, gate, n_threads):
    """How much weight there is in each cell."""
    return np.bincount(gate.code(part.X, n_threads)[0][:, 0], part.weight, gate.n_tiles)


def regions(part, mosaic, head, n_threads):
    """Counts for `regions_`."""
    found = head.found(mosaic.score_codes(part.X, part.tile, part.code, n_threads))
    return count_regions(mosaic, head, (part.tile, part.code), part.label, found, part.X)


def held_out_scores(part, mosaics, share, n_threads):
    """Scores of rows by the mosaic that has not seen them, labels and weights, for this share of the rows."""
    # Which rows these are depends on their place among all, not on the partition: a multiplicative hash of it.
    place = (part.first + np.arange(part.n_rows, dtype=np.uint64)) * np.uint64(2654435761) % np.uint64(2**32)
    chosen = np.flatnonzero(place < share * 2**32)
    scores = np.empty((len(chosen), mosaics[0].coef.shape[1]))
    fold = part.folds[chosen]
    for f, mosaic in enumerate(mosaics):
        here = fold == f
        rows = chosen[here]
        if len(rows):
            code = None if part.code is None else part.code[rows]
            scores[here] = mosaic.score_codes(part.X[rows], part.tile[rows], code, n_threads)
    return scores, part.label[chosen], part.weight[chosen]


# ---- the solver's questions -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Job:
    """Which problem is meant: an output under a coupling, perhaps without a fold of rows; `slot` names its duals.

    `sight` says what the blocks see, if some see less than whole rows.
    """

    slot: int
    output: int
    n_outputs: int
    coupling: Coupling
    loss: Loss
    fold: int | None = None
    parameters: dict = field(default_factory=dict)
    sight: Sight | None = None


def answer(part, questions, n_threads):
    """The answers to all questions of a round, in one pass over the rows."""
    return [question.of(part.share(question.job, n_threads)) for question in questions]


def move(part, moves, n_threads):
    """With the duals moved."""
    duals = dict(part.duals)
    for asked in moves:
        duals[asked.job.slot] = part.share(asked.job, n_threads).respond(asked.weights, asked.step)
    return replace(part, duals=duals)
