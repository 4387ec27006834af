"""Fits of the ordinary estimators over partitions."""

from dataclasses import dataclass, replace

import numpy as np
from sklearn.base import is_regressor

from svmosaic import estimators
from svmosaic._validation import NO_WEIGHT, Target, ValueTarget, _class_weights, repeated, require_two_classes
from svmosaic.estimators._composed_fit import Solved
from svmosaic.estimators._progress import Progress
from svmosaic.estimators._region_words import sample_regions
from svmosaic.maps.pieces import SAMPLE, Pieces
from svmosaic.model.calibration import N_FOLDS, fit_calibration, require_rows
from svmosaic.model.heads import Classify, Regress
from svmosaic.scale.learning import PartitionedLearningRows
from svmosaic.scale.part import (
    Job,
    cells_used,
    describe,
    describe_values,
    held_out_scores,
    prepare,
    prepare_values,
    regions,
    with_codes,
    with_map,
)
from svmosaic.scale.placement import place, sample, take
from svmosaic.scale.solve import solve_partitions

# The estimators that can be fitted, and the values that their parameters must have for it.
NEEDS: dict[type, dict] = {
    estimators.LinearSVC: {},
    estimators.KMeansSVC: {"coupling": None},
    estimators.ClusteredSVC: {},
    estimators.LocallyLinearSVC: {"feature_map": None, "multi_class": "ovr", "penalize_intercept": True},
    estimators.LinearSVR: {},
    estimators.KMeansSVR: {"coupling": None},
    estimators.ClusteredSVR: {},
    estimators.LocallyLinearSVR: {"feature_map": None, "penalize_intercept": True},
    estimators.TreeSVC: {},
    estimators.TreeSVR: {},
    estimators.LearnedGateSVC: {"polish": False, "warm_start": False},
    estimators.LearnedGateSVR: {"polish": False, "warm_start": False},
}
SUPPORTED = tuple(NEEDS)
# Held-out scores that calibration is fitted to, at most about so many.
CALIBRATION_ROWS = 200_000


@dataclass(frozen=True)
class Survey:
    """What is known of all rows together."""

    n_rows: int
    n_features: int
    dtype: np.dtype
    classes: np.ndarray
    class_counts: np.ndarray
    names: list | None
    class_factor: np.ndarray

    @property
    def head(self) -> Classify:
        return Classify(self.classes)

    @property
    def n_outputs(self) -> int:
        return self.head.n_outputs

    def sample_weight(self, weight, label):
        """Weights without those of the classes."""
        return weight / self.class_factor[label]

    def target_of(self, label, weight) -> Target:
        """The target of some of the rows."""
        return Target(self.classes, label, weight, self.sample_weight(weight, label))


@dataclass(frozen=True)
class ValueSurvey:
    """What is known of all rows together, if they have values."""

    n_rows: int
    n_features: int
    dtype: np.dtype
    names: list | None
    head: Regress

    @property
    def n_outputs(self) -> int:
        return self.head.n_outputs

    def sample_weight(self, weight, label):
        return weight

    def target_of(self, label, weight) -> ValueTarget:
        """The target of some of the rows."""
        return ValueTarget(self.head, label, weight)


def fit(estimator, partitions):
    """Fit an ordinary estimator to the rows of all partitions, in place.

    Parameters
    ----------
    estimator : one of SUPPORTED, which stays an ordinary estimator
    partitions : Partitions of `Raw` rows

    Returns
    -------
    the estimator
    """
    _check_supported(estimator)
    estimator._check_parameters()
    progress = Progress(estimator, estimator.max_time)
    survey = (_survey_values if is_regressor(estimator) else _survey)(estimator, partitions)
    return estimator.fit_rows(PartitionedRows(partitions, survey), progress)


def _check_supported(estimator):
    name = type(estimator).__name__
    if not isinstance(estimator, SUPPORTED):
        names = ", ".join(cls.__name__ for cls in SUPPORTED)
        raise TypeError(f"{name} cannot be fitted over partitions; these can: {names}")
    if getattr(estimator, "solver", "auto") not in ("auto", "newton"):
        raise ValueError(
            f"over partitions {name} is solved by Newton's method: solver must be 'auto', got {estimator.solver!r}"
        )
    for parameter, wanted in next(needs for kind, needs in NEEDS.items() if isinstance(estimator, kind)).items():
        value = getattr(estimator, parameter)
        if not (value is wanted or (wanted is not None and value == wanted)):
            raise ValueError(f"over partitions {name} needs {parameter}={wanted!r}, got {value!r}")


def _survey(estimator, partitions) -> Survey:
    """Look at all partitions once, agree on classes and types, and prepare them."""
    name = type(estimator).__name__
    found = partitions.gather(describe)
    used = [k for k, one in enumerate(found) if one["counts"].sum()]
    if not used:
        raise ValueError(NO_WEIGHT if any(len(one["classes"]) for one in found) else f"{name}: there are no rows")
    partitions.keep(used)
    found = [found[k] for k in used]
    _check_alike(found, ("n_features", "names"))
    classes = np.unique(np.concatenate([one["classes"] for one in found]))
    counts = np.zeros((len(found), len(classes)), dtype=np.int64)
    weights = np.zeros(len(classes))
    for k, one in enumerate(found):
        at = np.searchsorted(classes, one["classes"])
        counts[k, at] = one["counts"]
        weights[at] += one["weights"]
    require_two_classes(estimator, classes, classes)
    factor = np.ones(len(classes))
    if estimator.class_weight is not None:
        # One row per class, which weighs as much as the class, has the same sums.
        factor = _class_weights(estimator.class_weight, classes, classes, weights)
        counts = counts * (factor > 0)
    present = np.flatnonzero(counts.sum(axis=0))
    require_two_classes(estimator, classes, classes[present])
    dtype = np.result_type(*[np.dtype(one["dtype"]) for one in found])
    before = np.cumsum(counts, axis=0) - counts
    partitions.advance(prepare, classes, factor, dtype, each=list(before))
    return Survey(
        int(counts.sum()), found[0]["n_features"], dtype, classes, counts.sum(axis=0), found[0]["names"], factor
    )  # fmt: skip


def _check_alike(found, keys):
    for one in found[1:]:
        for key in keys:
            if one[key] != found[0][key]:
                raise ValueError(
                    f"partitions differ in {key}: {one[key]!r} in {one['where']}, {found[0][key]!r} in "
                    f"{found[0]['where']}"
                )


def _survey_values(estimator, partitions) -> ValueSurvey:
    """Look at all partitions once, find the mean and the spread of y, and prepare them."""
    found = partitions.gather(describe_values)
    used = [k for k, one in enumerate(found) if one["kept"]]
    if not used:
        name = type(estimator).__name__
        raise ValueError(NO_WEIGHT if any(one["n_rows"] for one in found) else f"{name}: there are no rows")
    partitions.keep(used)
    found = [found[k] for k in used]
    _check_alike(found, ("n_features", "names", "targets"))
    copies = len(estimator._quantiles)
    head = repeated(_value_head(found, estimator.normalize_y), copies)
    counts = np.array([one["kept"] for one in found])
    dtype = np.result_type(*[np.dtype(one["dtype"]) for one in found])
    partitions.advance(prepare_values, head, copies, dtype, each=list(np.cumsum(counts) - counts))
    return ValueSurvey(int(counts.sum()), found[0]["n_features"], dtype, found[0]["names"], head)


def _value_head(found, normalize) -> Regress:
    """The head that standardizes y, from the moments of the partitions."""
    if not normalize:
        return Regress.plain(np.zeros((1, *found[0]["targets"])))
    weight = np.array([one["weight"] for one in found])
    means, squares, low, high = (np.stack([one[key] for one in found]) for key in ("mean", "squares", "low", "high"))
    mean = np.average(means, axis=0, weights=weight)
    total = squares.sum(axis=0) + np.tensordot(weight, (means - mean) ** 2, axes=1)
    constant = low.min(axis=0) == high.max(axis=0)
    center = np.where(constant, low[0], mean)[()]
    return Regress(center, np.where(constant, 1.0, np.sqrt(total / weight.sum()))[()])


class PartitionedRows:
    """Rows in partitions, with the interface of a composed fit (`FitRows`); codes and duals stay with the rows."""

    feature_map = None

    def __init__(self, partitions, survey):
        self.partitions, self.target = partitions, survey
        self.n_rows, self.n_features, self.feature_names = survey.n_rows, survey.n_features, survey.names
        self.one_tile = False

    @property
    def n_seen(self) -> int:
        """The number of features that the tiles see."""
        return self.n_features if self.feature_map is None else self.feature_map.n_features

    def bend(self, pieces, rng):
        """Give the tiles curves whose knots come from a sample: that of a fit in memory."""
        X, weight, label = sample(self.partitions, self.n_rows, SAMPLE, rng)
        self.feature_map = Pieces.fit(X, pieces, self.target.sample_weight(weight, label))
        self.partitions.advance(with_map, self.feature_map)

    def place(self, n_centers, **options):
        return place(self.partitions, self.target, n_centers, **options)

    def sample(self, n_rows, rng):
        return sample(self.partitions, self.n_rows, n_rows, rng)[0]

    def labeled_sample(self, n_rows, rng):
        X, weight, truth = sample(self.partitions, self.n_rows, n_rows, rng)
        return X, truth, weight

    def used(self, gate, n_jobs=None):
        return self.partitions.total(cells_used, gate, self.partitions.n_threads) > 0

    def encode(self, gate, options):
        self.partitions.advance(with_codes, gate, options.C, options.bias, self.partitions.n_threads)
        self.one_tile = gate.width == 1

    def solve(self, coupling, options, progress, rng, start=None):
        return self._solve(self._jobs(coupling, options), options, progress)

    def calibrate(self, method, fitted, solve_tiles, options, progress, rng):
        """Fit the calibration to scores of rows held out in turn; the folds are solved in the same rounds."""
        require_rows(method, self.target.classes, self.target.class_counts, N_FOLDS)
        coupling = fitted.solved.coupling
        jobs = self._jobs(coupling, options)
        n_outputs = len(jobs)
        folds = [replace(job, fold=f, slot=n_outputs * (f + 1) + job.slot) for f in range(N_FOLDS) for job in jobs]
        solutions = self._solve(folds, options, progress)
        mosaics = []
        for f in range(N_FOLDS):
            fold = solutions[f * n_outputs : (f + 1) * n_outputs]
            mosaics.append(fitted.with_tiles_of(Solved(coupling, [s.weights for s in fold], fold), options))
        share = min(1.0, CALIBRATION_ROWS / self.n_rows)
        found = self.partitions.gather(held_out_scores, mosaics, share, self.partitions.n_threads)
        scores, label, weight = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return fit_calibration(method, scores, label, weight)

    def region_counts(self, mosaic, head, n_jobs):
        return self.partitions.total(regions, mosaic, head, self.partitions.n_threads)

    def region_sample(self, mosaic, counts):
        def at(places):
            rows = take(self.partitions, places)[0]
            return mosaic.gate.code(rows), rows

        return sample_regions(mosaic, counts, self.n_rows, at)

    def for_learning(self):
        return PartitionedLearningRows(self)

    def _jobs(self, coupling, options):
        n_outputs = self.target.n_outputs
        sight = None if self.one_tile else options.sight  # a single tile sees all
        return [
            Job(c, c, n_outputs, coupling, options.loss, parameters=options.parameters_of(c), sight=sight)
            for c in range(n_outputs)
        ]

    def _solve(self, jobs, options, progress):
        """All jobs in the same rounds; over partitions the tiles of a job are solved together."""
        coupling = jobs[0].coupling
        shape = coupling.n_blocks, self.n_seen + 1
        control = progress.control(len(jobs), coupling, shape, False, len(jobs))
        solutions = solve_partitions(
            self.partitions, jobs, n_features=self.n_seen, n_rows=self.n_rows, one_tile=self.one_tile,
            tol=options.tol, max_iter=options.max_iter, control=control,
        )  # fmt: skip
        progress.report(solutions, coupling, options.max_iter, control)
        return solutions
