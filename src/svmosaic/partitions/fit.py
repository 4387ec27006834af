"""Fits of the ordinary estimators over partitions."""

from dataclasses import dataclass, replace

import numpy as np
from sklearn.utils import check_random_state

from svmosaic._validation import NO_WEIGHT, _class_weights, require_two_classes
from svmosaic.calibration import N_FOLDS, fit_calibration
from svmosaic.gates import DistanceGate, SingleCell
from svmosaic.heads import Classify
from svmosaic.losses import LOSSES
from svmosaic.models import ClusteredSVC, KMeansSVC, LinearSVC, LocallyLinearSVC, MultiTaskMixtureSVC
from svmosaic.models._base import _tiles_of
from svmosaic.models._progress import Fitting
from svmosaic.models.locally_linear import code_gate
from svmosaic.partitions.mixture import fit_mixture
from svmosaic.partitions.part import (
    Job,
    cells_used,
    describe,
    held_out_scores,
    prepare,
    regions,
    with_codes,
)
from svmosaic.partitions.placement import place, sample
from svmosaic.partitions.solve import solve_partitions
from svmosaic.rows import bias_of

SUPPORTED = (LinearSVC, KMeansSVC, ClusteredSVC, LocallyLinearSVC, MultiTaskMixtureSVC)
# Held-out scores that calibration is fitted to, at most about so many.
CALIBRATION_ROWS = 200_000
# Rows on which the scale of local codes is found, as in the local model.
SCALE_ROWS = 2000


@dataclass(frozen=True)
class Survey:
    """What is known of all rows together."""

    n_rows: int
    n_features: int
    dtype: np.dtype
    classes: np.ndarray
    class_counts: np.ndarray
    names: list | None

    @property
    def head(self) -> Classify:
        return Classify(self.classes)

    @property
    def n_outputs(self) -> int:
        return self.head.n_outputs


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
    fitting = Fitting(estimator.max_time)
    survey = _survey(estimator, partitions)
    estimator.n_features_in_ = survey.n_features
    if survey.names is not None:
        estimator.feature_names_in_ = np.array(survey.names, dtype=object)
    rng = check_random_state(estimator.random_state)
    if isinstance(estimator, MultiTaskMixtureSVC):
        return fit_mixture(estimator, partitions, survey, rng, fitting)
    estimator._fitting = fitting
    try:
        return _fit_mosaic(estimator, partitions, survey, rng)
    finally:
        del estimator._fitting


def _check_supported(estimator):
    name = type(estimator).__name__
    if not isinstance(estimator, SUPPORTED):
        names = ", ".join(cls.__name__ for cls in SUPPORTED)
        raise TypeError(f"{name} cannot be fitted over partitions; these can: {names}")
    if estimator.solver not in ("auto", "newton"):
        raise ValueError(
            f"over partitions {name} is solved by Newton's method: solver must be 'auto', got {estimator.solver!r}"
        )
    refused = {"multi_class": "ovr", "penalize_intercept": True, "feature_map": None, "early_stopping": False}
    for parameter, wanted in refused.items():
        value = getattr(estimator, parameter, wanted)
        if value is not wanted and value != wanted:
            raise ValueError(f"over partitions {name} needs {parameter}={wanted!r}, got {value!r}")
    if isinstance(estimator, MultiTaskMixtureSVC) and getattr(estimator, "calibration", None) is not None:
        raise ValueError(f"over partitions {name} needs calibration=None, got {estimator.calibration!r}")
    if getattr(estimator, "coupling", None) is not None:
        raise ValueError(f"over partitions {name} needs coupling=None, got {estimator.coupling!r}")


def _survey(estimator, partitions) -> Survey:
    """Look at all partitions once, agree on classes and types, and prepare them."""
    name = type(estimator).__name__
    found = partitions.gather(describe)
    used = [k for k, one in enumerate(found) if one["counts"].sum()]
    if not used:
        raise ValueError(NO_WEIGHT if any(len(one["classes"]) for one in found) else f"{name}: there are no rows")
    partitions.keep(used)
    found = [found[k] for k in used]
    for one in found[1:]:
        for key in ("n_features", "names"):
            if one[key] != found[0][key]:
                raise ValueError(
                    f"partitions differ in {key}: {one[key]!r} in {one['where']}, {found[0][key]!r} in "
                    f"{found[0]['where']}"
                )
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
        # One row a class, which weighs as much as the class, has the same sums.
        factor = _class_weights(estimator.class_weight, classes, classes, weights)
        counts = counts * (factor > 0)
    present = np.flatnonzero(counts.sum(axis=0))
    require_two_classes(estimator, classes, classes[present])
    dtype = np.result_type(*[np.dtype(one["dtype"]) for one in found])
    before = np.cumsum(counts, axis=0) - counts
    partitions.advance(prepare, classes, factor, dtype, each=list(before))
    return Survey(
        int(counts.sum()), found[0]["n_features"], dtype, classes, counts.sum(axis=0), found[0]["names"]
    )  # fmt: skip


def _fit_mosaic(estimator, partitions, survey, rng):
    """Gate, codes, tiles; then calibration and counts."""
    gate = _fit_gate(estimator, partitions, survey, rng)
    bias = bias_of(estimator.fit_intercept, estimator.intercept_scaling)
    partitions.advance(with_codes, gate, estimator.C, bias, partitions.n_threads)
    coupling = estimator._couple(gate.n_tiles)
    jobs = [Job(c, c, survey.n_outputs, coupling, LOSSES[estimator.loss]) for c in range(survey.n_outputs)]
    one_tile = isinstance(gate, SingleCell) or gate.coding == "nearest"
    solutions = _solve(estimator, partitions, survey, jobs, bias, one_tile)
    estimator.n_samples_seen_ = survey.n_rows
    estimator._stream = None
    estimator._keep(survey.classes, gate, coupling, solutions, bias, None)
    estimator.calibration_ = None
    if estimator.calibration is not None:
        estimator.calibration_ = _calibrate(estimator, partitions, survey, jobs, bias, one_tile)
    estimator.region_counts_ = partitions.total(
        regions, estimator.mosaic_, Classify(survey.classes, estimator.calibration_), partitions.n_threads
    )
    return estimator


def _solve(estimator, partitions, survey, jobs, bias, one_tile):
    """All jobs, within the estimator's limits, and with its lines of text."""
    coupling, fitting = jobs[0].coupling, estimator._fitting
    like = _Shape((coupling.n_blocks, survey.n_features + 1))
    fitting.last = fitting.control(estimator, [like] * len(jobs), coupling, bias, survey, len(jobs))
    solutions = solve_partitions(
        partitions, jobs, n_features=survey.n_features, n_rows=survey.n_rows, one_tile=one_tile, tol=estimator.tol,
        max_iter=estimator.max_iter, control=fitting.last,
    )  # fmt: skip
    estimator._report(solutions, coupling)
    return solutions


@dataclass(frozen=True)
class _Shape:
    """What the lines of text ask of a problem; over partitions its tiles are solved together."""

    shape: tuple[int, int]
    separable: bool = False


def _fit_gate(estimator, partitions, survey, rng):
    if isinstance(estimator, LinearSVC):
        return SingleCell()
    if isinstance(estimator, LocallyLinearSVC):
        anchors = place(
            partitions, survey, estimator.n_anchors, source=estimator.anchors, rng=rng, name="anchors",
            rows_per_center=estimator.rows_per_anchor, max_iter=estimator.kmeans_iter,
        )  # fmt: skip
        X = np.empty((0, survey.n_features), survey.dtype)
        if estimator.code_scale is None and estimator.coding in ("softmax", "soft"):
            X, _, _ = sample(partitions, survey.n_rows, SCALE_ROWS, rng)
        return code_gate(X, anchors, estimator.coding, estimator.n_neighbors, estimator.code_scale, rng)
    source = "kmeans" if estimator.clusterer is None else estimator.clusterer
    centers = place(
        partitions, survey, estimator.n_clusters, source=source, rng=rng, name="clusterer",
        rows_per_center=estimator.rows_per_cluster, max_iter=estimator.kmeans_iter,
    )  # fmt: skip
    gate = DistanceGate(centers)
    if estimator._keeps_empty_cells:
        return gate
    used = partitions.total(cells_used, gate, partitions.n_threads) > 0
    return gate if used.all() else DistanceGate(gate.centers[used])


def _calibrate(estimator, partitions, survey, jobs, bias, one_tile):
    """Fit the calibration to scores of rows held out in turn; the folds are solved in the same rounds."""
    rarest = int(survey.class_counts.argmin())
    if survey.class_counts[rarest] < N_FOLDS:
        raise ValueError(
            f"calibration={estimator.calibration!r} holds rows out in {N_FOLDS} folds and needs at least {N_FOLDS} of "
            f"each class, but class {str(survey.classes[rarest])!r} has {survey.class_counts[rarest]}; "
            "pass calibration=None"
        )
    n_outputs = len(jobs)
    folds = [replace(job, fold=f, slot=n_outputs * (f + 1) + job.slot) for f in range(N_FOLDS) for job in jobs]
    solved = _solve(estimator, partitions, survey, folds, bias, one_tile)
    mosaics = []
    for f in range(N_FOLDS):
        coef, intercept = _tiles_of(jobs[0].coupling, solved[f * n_outputs : (f + 1) * n_outputs], bias)
        mosaics.append(replace(estimator.mosaic_, coef=coef, intercept=intercept))
    share = min(1.0, CALIBRATION_ROWS / survey.n_rows)
    found = partitions.gather(held_out_scores, mosaics, share, partitions.n_threads)
    scores, label, weight = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return fit_calibration(estimator.calibration, scores, label, weight)
