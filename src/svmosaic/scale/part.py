"""One partition of the rows, and the functions that are carried to it: pure, so a lost partition can be made again."""

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
from svmosaic.model.heads import Head, Regress
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
    truth : ndarray of int32, indices of the classes; or of float64, values
    weight : ndarray of float64, sample weight times class weight
    first : int, how many rows come before this partition
    class_first : ndarray of int, how many rows of each class do
    head : Head, without a calibration
    kept : ndarray of int or None, the rows of the source that have weight
    feature_map : FeatureMap or None, what the tiles see instead of the rows
    bias : float, the constant of the intercepts
    tile, code : codes over the tiles, as a gate gives them
    cost : ndarray of float64, one per row
    duals : dict of slot to ndarray, the centers of the proximal steps; zero if there is none
    """

    X: Any
    truth: np.ndarray
    weight: np.ndarray
    first: int
    class_first: np.ndarray
    head: Head
    kept: np.ndarray | None = None
    feature_map: Any = None
    bias: float = 1.0
    tile: Any = None
    code: Any = None
    cost: Any = None
    duals: dict = field(default_factory=dict)
    # Made of the rows, such as problems in the core; made again after a journey.
    built: dict = field(default_factory=dict, repr=False)

    def __getstate__(self):
        return {**vars(self), "built": {}}

    def __sizeof__(self):
        return size_of(self.X, self.truth, self.weight, self.tile, self.code, self.cost, *self.duals.values())

    @property
    def n_rows(self) -> int:
        return len(self.truth)

    @property
    def folds(self):
        """Where each row is held out: rows of a class take turns, however they are partitioned."""
        if "folds" not in self.built:
            self.built["folds"] = fold = np.empty(self.n_rows, dtype=np.int8)
            for k, before in enumerate(self.class_first):
                here = np.flatnonzero(self.truth == k)
                fold[here] = (before + np.arange(len(here))) % N_FOLDS
        return self.built["folds"]

    def problem(self, job) -> Problem:
        """The share of this partition in the problem of a job."""
        key = job.coupling.own, job.coupling.shared.tobytes(), job.sight
        cost = self.cost if job.fold is None else np.where(self.folds == job.fold, 0.0, self.cost)
        target = job.loss.rows(self.head.wanted(self.truth, job.output), cost, job.output, **job.parameters)
        if key not in self.built:
            if "rows" not in self.built:
                X = self.X if self.feature_map is None else self.feature_map.rows(self.X)[1]
                self.built["rows"] = Rows(X, self.bias)
            # Losses of values have two rows per sample.
            codes, here = (self.tile, self.code), target.index
            codes = codes if here is None else (self.tile[here], at(self.code, here))
            unused = np.ones(len(target.sign), dtype=np.int8)
            self.built[key] = Problem(
                self.built["rows"], *codes, job.coupling, unused, target.cost, job.loss, here, sight=job.sight
            )
        return self.built[key].with_target(target.sign, target.cost, target.threshold)

    def share(self, job, n_threads) -> Share:
        """The part of this partition in the answers to the solver, around the duals of the last proximal step."""
        problem, center = self.problem(job), None
        if job.loss.smooth_step is None:  # else the loss needs no proximal steps
            center = self.duals.get(job.slot)
            center = np.zeros(problem.n_rows) if center is None else center
        return Share(problem, center, n_threads)


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


def describe(raw, values):
    """Counts, types and, of values, moments of a partition, by which the driver plans."""
    X, y, weight, names = check_raw(raw, values)
    found = {"n_features": X.shape[1], "dtype": X.dtype.str, "names": names, "where": raw.where, "n_rows": len(y)}
    kept = weight > 0
    found["kept"] = int(kept.sum())
    if not values:
        classes, label = np.unique(y, return_inverse=True)
        counts = np.bincount(label[kept], minlength=len(classes))
        return found | {"classes": classes, "counts": counts, "weights": np.bincount(label, weight, len(classes))}
    y, weight = y[kept], weight[kept]
    found["targets"] = y.shape[1:]
    if len(y) == 0:
        return found
    mean = np.average(y, axis=0, weights=weight)
    squares = np.tensordot(weight, (y - mean) ** 2, axes=1)
    return found | {
        "weight": weight.sum(), "mean": mean, "squares": squares, "low": y.min(axis=0), "high": y.max(axis=0)
    }  # fmt: skip


def prepare(raw, before, head, class_factor, copies, dtype):
    """The part of raw rows, without rows of zero weight.

    Parameters
    ----------
    before : int, or ndarray of int with one per class
        Rows of earlier partitions.
    head : Head
    class_factor : ndarray or None
        Class weights.
    copies : int
        Outputs per value, such as quantiles.
    dtype : dtype of the rows
    """
    values = isinstance(head, Regress)
    X, y, weight, _ = check_raw(raw, values)
    if values:
        truth, class_first = np.repeat(y[:, None], copies, axis=1) if copies > 1 else y, np.zeros(0, dtype=np.int64)
    else:
        truth, class_first = np.searchsorted(head.classes, y).astype(np.int32), before
        weight = weight * class_factor[truth]
    kept = None
    if not (weight > 0).all():
        kept = np.flatnonzero(weight > 0)
        X, truth, weight = X[kept], truth[kept], weight[kept]
    X = X.astype(dtype, copy=False)
    X = X if sparse.issparse(X) else np.ascontiguousarray(X)
    return Part(X, truth, weight, int(np.sum(before)), class_first, head, kept)


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
        here, before = np.flatnonzero(part.truth == stratum), part.class_first[stratum]
        n_here = len(here)
    mine = chosen[(chosen >= before) & (chosen < before + n_here)] - before
    places = mine if here is None else here[mine]
    return part.X[places], part.weight[places], part.truth[places]


def cells_used(part, gate, n_threads):
    """How much weight there is in each cell."""
    return np.bincount(gate.code(part.X, n_threads)[0][:, 0], part.weight, gate.n_tiles)


def regions(part, mosaic, head, n_threads):
    """Counts for `regions_`."""
    found = head.found(mosaic.score_codes(part.X, part.tile, part.code, n_threads))
    return count_regions(mosaic, head, (part.tile, part.code), part.truth, found, part.X)


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
    return scores, part.truth[chosen], part.weight[chosen]


# ---- the solver's questions -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Job:
    """One problem: an output under a coupling, perhaps without a fold of rows; `slot` names its duals.

    `sight` says what the blocks see, if some see less than whole rows.
    """

    slot: int
    output: int
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
