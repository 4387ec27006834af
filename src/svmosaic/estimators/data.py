"""Rows to fit a model to, in memory, and their target: validated once, then asked questions by `fit`.

`svmosaic.scale.data.PartitionedData` answers the same questions for rows in partitions.
"""

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import compute_class_weight

from svmosaic._validation import (
    LEAVE_OUT,
    NO_WEIGHT,
    check_labels,
    check_weight,
    classes_and_labels,
    numbers_of,
    require_two_classes,
    validate,
)
from svmosaic.explain.contributions import count_homes, homes_of
from svmosaic.gates import place_centers
from svmosaic.model.calibration import cross_fit
from svmosaic.model.heads import Classify, Head, Regress
from svmosaic.rows import Rows, in_blocks, row_blocks
from svmosaic.solvers import problems_of, solve

# Sample of a k-means gate, in rows per center.
ROWS_PER_CENTER = 256


@dataclass(frozen=True)
class Target:
    """Classes or values that the rows should have, and how much each row counts.

    Attributes
    ----------
    head : Classify or Regress
        From scores to answers, as long as nothing is calibrated.
    truth : ndarray
        Indices of the classes, of shape (n_rows,); or values, of shape (n_rows,) or (n_rows, n_targets).
    weight : ndarray of shape (n_rows,)
        Sample weight times class weight, all positive.
    sample_weight : ndarray of shape (n_rows,) or None
        The sample weight alone; None for all ones.
    """

    head: Head
    truth: np.ndarray
    weight: np.ndarray
    sample_weight: np.ndarray | None = None

    @property
    def classes(self):
        return self.head.classes

    @property
    def label(self):
        """Indices of the classes; None for values."""
        return self.truth if isinstance(self.head, Classify) else None

    @property
    def n_outputs(self) -> int:
        return self.head.n_outputs

    @property
    def learned(self):
        """Target of the gate learner: indices of the classes in a column, or scores."""
        return self.truth[:, None] if isinstance(self.head, Classify) else self.head.targets(self.truth)

    def take(self, rows) -> "Target":
        """The target of some of the rows."""
        sample_weight = None if self.sample_weight is None else self.sample_weight[rows]
        return Target(self.head, self.truth[rows], self.weight[rows], sample_weight)

    def relative(self) -> "Target":
        """The same with sample weights relative to their mean, for models whose C is not the user's."""
        if self.sample_weight is None or self.sample_weight.mean() == 1:
            return self
        mean = self.sample_weight.mean()
        return replace(self, weight=self.weight / mean, sample_weight=self.sample_weight / mean)


def validate_training(estimator, X, y, sample_weight=None, class_weight=None, **check):
    """Validated X and target of a classification, without the rows of weight zero."""
    X, y = validate(estimator, X, y, **check)
    classes, label = classes_and_labels(y)
    X, target = _weighed(X, y, classes, label, sample_weight, class_weight)
    present = classes if len(target.truth) == len(label) else classes[np.unique(target.truth)]
    require_two_classes(estimator, classes, present)
    return X, target


def validate_batch(estimator, X, y, known, announced, sample_weight=None, class_weight=None):
    """Validated X and target of one batch of a stream, without the rows of weight zero.

    `known` are the classes of earlier batches (None in the first), `announced` those given with this one.
    """
    name = type(estimator).__name__
    if known is None and announced is None:
        raise ValueError(f"classes must be given in the first call of {name}.partial_fit")
    classes = known if announced is None else np.unique(announced)
    if known is not None and not np.array_equal(classes, known):
        raise ValueError(f"classes={announced!r} is not the same as in the first call of partial_fit: {known!r}")
    if len(classes) < 2:
        raise ValueError(f"{name}.partial_fit needs at least two classes, got classes={classes!r}")
    if not (class_weight is None or isinstance(class_weight, dict)):
        raise ValueError(
            f"class_weight must be None or a dict for partial_fit, which never sees all rows, got {class_weight!r}"
        )
    X, y = validate(estimator, X, y, reset=known is None)
    check_labels(y)
    unknown = np.setdiff1d(y, classes)
    if len(unknown):
        raise ValueError(
            f"y contains {unknown.tolist()!r}, which is not among the classes announced: {classes.tolist()!r}"
        )
    return _weighed(X, y, classes, np.searchsorted(classes, y), sample_weight, class_weight)


def _weighed(X, y, classes, label, sample_weight, class_weight):
    """The rows of positive weight, and their target."""
    weight = rows_weight = check_weight(sample_weight, X)
    if class_weight is not None:
        weight = weight * class_weights_of(class_weight, classes, y, weight)[label]
    kept = weight > 0
    if not kept.any():
        raise ValueError(NO_WEIGHT)
    if not kept.all():
        X, label, weight, rows_weight = X[kept], label[kept], weight[kept], rows_weight[kept]
    return X, Target(Classify(classes), label, weight, rows_weight)


def class_weights_of(class_weight, classes, y, sample_weight):
    """The weight of each class."""
    if not (isinstance(class_weight, dict) or (isinstance(class_weight, str) and class_weight == "balanced")):
        raise ValueError(f"class_weight must be None, 'balanced' or a dict, got {class_weight!r}")
    weights = compute_class_weight(class_weight, classes=classes, y=y, sample_weight=sample_weight)
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError(f"class_weight must be finite and not negative, got {class_weight!r}")
    return weights


def validate_values(estimator, X, y, sample_weight=None, *, head=None, normalize=True, copies=1, reset=True):
    """Validated X and target of a regression, without the rows of weight zero.

    Parameters
    ----------
    estimator : estimator
    X, y, sample_weight : what was given to fit
    head : Regress, optional
        That of earlier rows; found from these if not given.
    normalize : bool
        Whether the head standardizes y.
    copies : int
        How many outputs are asked for of each y of one dimension; more than one makes it so many equal targets.
    reset : bool
        Whether these are the first rows.
    """
    name = type(estimator).__name__
    if sparse.issparse(y):
        raise ValueError(f"y must be dense for {name}, got a sparse matrix: pass y.toarray()")
    if getattr(y, "ndim", 0) > 2:
        raise ValueError(f"y must have one or two dimensions for {name}, got shape {np.shape(y)}")
    try:
        with np.errstate(invalid="ignore"):  # sums by which scikit-learn looks for NaN may overflow
            X, y = validate(estimator, X, y, multi_output=True, reset=reset)
    except ValueError as error:
        if str(error).startswith("Input y contains"):
            raise ValueError(f"{error} {LEAVE_OUT}") from error
        raise
    y = numbers_of(name, y)
    if np.isnan(y).any():  # None among objects
        raise ValueError(f"Input y contains NaN. {LEAVE_OUT}")
    if copies > 1:
        require_one_target(y.shape)
        y = np.repeat(y[:, None], copies, axis=1)
    weight = check_weight(sample_weight, X)
    kept = weight > 0
    if not kept.any():
        raise ValueError(NO_WEIGHT)
    if not kept.all():
        X, y, weight = X[kept], y[kept], weight[kept]
    if head is None:
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused
            head = Regress.of(y, weight) if normalize else Regress.plain(y)
        if not (np.isfinite(head.center).all() and np.isfinite(head.scale).all()):
            raise ValueError(f"y is too large: its spread overflows float64 (largest {np.abs(y).max():.3g}); scale it")
    elif y.shape[1:] != np.shape(head.center):
        raise ValueError(f"y has shape {y.shape}, but the rows before had {np.shape(head.center)} after the first axis")
    return X, Target(head, y, weight, weight)


def require_one_target(shape):
    """Raise ValueError if a y of this shape has several targets, each of which would need several quantiles."""
    if len(shape) > 1:
        raise ValueError(
            f"several quantiles need a one-dimensional y, got y of shape {shape}: fit a model for each target, or "
            "give one quantile"
        )


@dataclass
class Data:
    """Validated rows in memory and their target, in the form in which gate and tiles see them.

    A fit asks for a sample, for centers, for the codes of all rows under a gate, for solutions, and for counts of
    regions; it takes nothing else from here, so that rows may be elsewhere.

    Attributes
    ----------
    gate_rows, tile_rows
        Rows as the gate and as the tiles see them. Of the latter only `Rows(tile_rows)`, the number of rows and rows at
        given indices are asked for.
    target : Target
    n_features : int
        Of the input.
    feature_map : FeatureMap or None
    codes : (tile, weight) of all rows under the last gate
    """

    gate_rows: Any
    tile_rows: Any
    target: Target
    n_features: int
    feature_map: Any = None
    gate: Any = None
    codes: Any = None

    @classmethod
    def of(cls, X, target, feature_map=None) -> "Data":
        """Validated rows, seen through a fitted feature map if there is one."""
        gate_rows, tile_rows = (X, X) if feature_map is None else feature_map.rows(X)
        return cls(gate_rows, tile_rows, target, X.shape[1], feature_map)

    def map(self, feature_map):
        """Let gate and tiles see the rows through a fitted map, if there is one."""
        if feature_map is not None:
            self.feature_map = feature_map
            self.gate_rows, self.tile_rows = feature_map.rows(self.gate_rows)

    @property
    def n_rows(self) -> int:
        return self.gate_rows.shape[0]

    def take(self, rows):
        """Rows at these indices, as the gate sees them, and their target."""
        return self.gate_rows[rows], self.target.take(rows)

    def sample(self, n_rows, rng):
        """At most so many rows, as the gate sees them, and their target."""
        if self.n_rows <= n_rows:
            return self.gate_rows, self.target
        return self.take(np.sort(rng.choice(self.n_rows, n_rows, replace=False)))

    def place(self, n_centers, **options):
        """Centers for a gate; see `svmosaic.gates.place_centers`."""
        return place_centers(
            self.gate_rows, n_centers, label=self.target.label, sample_weight=self.target.weight, **options
        )

    def used(self, gate, n_jobs=None):
        """Mask of the tiles of a gate that are the first of some row."""
        return np.bincount(gate.code(self.gate_rows, n_jobs)[0][:, 0], minlength=gate.n_tiles) > 0

    def encode(self, gate, options):
        """Keep the codes of all rows for what follows."""
        if self.gate is not gate:
            self.gate, self.codes = gate, code(gate, self.gate_rows, options.n_jobs)

    def problems(self, coupling, options) -> list:
        """One problem per output."""
        target, cost = self.target, options.C * self.target.weight
        targets = [
            options.loss.rows(target.head.wanted(target.truth, c), cost, c, **options.loss_parameters)
            for c in range(target.n_outputs)
        ]
        rows = Rows(self.tile_rows, options.bias)
        return problems_of(rows, self.codes, coupling, options.loss, targets, options.sight)

    def solve(self, coupling, options, progress, rng, start=None):
        """Coupling, block weights and solution of every output, on its own, from duals if given; codes held fixed."""
        problems = self.problems(coupling, options)
        first, n_outputs = problems[0], len(problems)
        control = progress.control(n_outputs, coupling, first.shape, first.separable, n_outputs)
        solutions = solve(
            problems, solver=options.solver, tol=options.tol, max_iter=options.max_iter,
            seed=rng.randint(2**31 - 1), n_jobs=options.n_jobs, start=start, sgd=options.sgd, control=control,
        )  # fmt: skip
        progress.report(solutions, coupling, options.max_iter, control)
        return coupling, [s.weights for s in solutions], solutions

    def calibrate(self, method, fit, solve_tiles, options, progress, rng):
        """Calibration fitted to scores of rows held out in turn, by tiles solved without them; the gate is kept."""
        quiet = copy.copy(progress)
        quiet.context = None  # these solves are no steps of the model

        def scores_without(weight):
            # The duals of the rows that stay (one per row, or one per row and class) are feasible without the others,
            # and nearly optimal.
            start = [np.where(weight > 0, s.alpha.T, 0.0).T for s in fit.solutions]
            fewer = replace(self, target=replace(self.target, weight=weight))
            fold = fit.resolved((solve_tiles or Data.solve)(fewer, fit.coupling, options, quiet, rng, start), options)
            return fold.mosaic.score_codes(self.tile_rows, *self.codes, options.n_jobs)

        return cross_fit(method, self.target, scores_without, rng)

    def region_counts(self, mosaic, head, n_jobs=None):
        """Sums for `regions_`: one pass of scoring; without codes, by blocks that stay in the caches."""
        if self.codes is not None:
            found = head.found(mosaic.score_codes(self.tile_rows, *self.codes, n_jobs))
            homes = homes_of(mosaic.gate, self.codes)
            return count_homes(mosaic, head, homes, self.target.truth, found, self.tile_rows)

        def of_block(block):
            X = self.gate_rows[block]
            codes = mosaic.gate.code(X, 1)
            return head.found(mosaic.score_codes(X, *codes, 1)), *homes_of(mosaic.gate, codes)

        parts = in_blocks(of_block, self.n_rows, n_jobs)
        found, *homes = (np.concatenate(part) for part in zip(*parts, strict=True))
        return count_homes(mosaic, head, homes, self.target.truth, found, self.gate_rows)

    def coded(self, gate, here):
        """Codes of the rows at these indices, and the rows as the tiles see them."""
        rows = self.tile_rows[here]
        if self.codes is None:
            return gate.code(rows), rows
        tile, weight = self.codes
        return (tile[here], None if weight is None else weight[here]), rows


def code(gate, X, n_jobs):
    """Codes of all rows, by blocks, so that an interrupt gets through."""
    blocks = row_blocks(X.shape[0], gate.n_tiles * X.shape[1])
    if len(blocks) == 1:
        return gate.code(X, n_jobs)
    tiles, weights = zip(*(gate.code(X[rows], n_jobs) for rows in blocks), strict=True)
    return np.concatenate(tiles), None if weights[0] is None else np.concatenate(weights)
