"""Candidates of the search as estimators."""

from svmosaic.estimators.boosted_trees import BoostedTreesClassifier, BoostedTreesRegressor
from svmosaic.estimators.clustered import ClusteredSVC, ClusteredSVR
from svmosaic.estimators.kernel import KernelSVC, KernelSVR
from svmosaic.estimators.learned_gate import LearnedGateSVC, LearnedGateSVR
from svmosaic.estimators.linear import LinearSVC, LinearSVR
from svmosaic.estimators.locally_linear import LocallyLinearSVC, LocallyLinearSVR
from svmosaic.estimators.tree import TreeSVC, TreeSVR

CLASSIFIERS = {
    "linear": LinearSVC, "clustered": ClusteredSVC, "local": LocallyLinearSVC, "kernel": KernelSVC,
    "learned": LearnedGateSVC, "trees": TreeSVC,
}  # fmt: skip
REGRESSORS = {
    "linear": LinearSVR, "clustered": ClusteredSVR, "local": LocallyLinearSVR, "kernel": KernelSVR,
    "learned": LearnedGateSVR, "trees": TreeSVR,
}  # fmt: skip
NAMES = {
    task: {family: kind.__name__ for family, kind in kinds.items()}
    for task, kinds in {"MosaicClassifier": CLASSIFIERS, "MosaicRegressor": REGRESSORS}.items()
}
# Errors that cost nothing, of regressors that minimize absolute ones: in standard deviations of y.
EPSILON = 0.03
# With more rows than this, accuracy has settled long before a tight gap is certified.
LOOSE_ROWS = 3000
# Rows that a leaf must hold; fewer overfit, where leaves refine a tile of all rows.
SMALLEST_LEAF = 5
# So strong a penalty that the tile of all rows stays zero, whatever the units of the columns.
NO_GLOBAL_TILE = 1e24


def build_classifier(
    candidate, n_rows, *, seed, n_jobs=None, max_time=None, pieces=None, n_components=16, variance=1.0
):
    """The classifier of a candidate, for a fit of `n_rows` rows.

    Parameters
    ----------
    candidate : Candidate
    n_rows : int
    seed : int
    n_jobs : int or None
    max_time : float or None
    pieces : list of ndarray or None
        Knots of each column.
    n_components : int
        Of learned gates.
    variance : float
        Of all columns together, by which kernels are scaled.
    """
    settings = {"random_state": seed, "n_jobs": n_jobs, "max_time": max_time}
    if candidate.growth == "boosted":
        return BoostedTreesClassifier(candidate.gates, max_leaves=candidate.tiles, **settings)
    settings |= _settings(candidate, n_rows, pieces, n_components, variance)
    if candidate.family == "learned":
        settings["loss"] = "log_loss" if candidate.smooth else "squared_hinge"
    elif candidate.family != "local":
        settings["loss"] = "squared_hinge"
    return CLASSIFIERS[candidate.family](**settings)


def build_regressor(candidate, n_rows, *, seed, n_jobs=None, max_time=None, pieces=None, n_components=16, variance=1.0):
    """The regressor of a candidate, for a fit of `n_rows` rows with standardized values.

    Parameters
    ----------
    candidate, n_rows, seed, n_jobs, max_time, pieces, n_components, variance
        As for `build_classifier`.
    """
    settings = {"random_state": seed, "n_jobs": n_jobs, "max_time": max_time, "normalize_y": False}
    if candidate.growth == "boosted":
        return BoostedTreesRegressor(candidate.gates, max_leaves=candidate.tiles, **settings)
    settings |= _settings(candidate, n_rows, pieces, n_components, variance)
    squared = "squared_error" if candidate.family == "learned" else "squared_epsilon_insensitive"
    settings["loss"] = squared if candidate.smooth else "epsilon_insensitive"
    settings["epsilon"] = 0.0 if candidate.smooth else EPSILON
    return REGRESSORS[candidate.family](**settings)


def _settings(candidate, n_rows, pieces, n_components, variance) -> dict:
    """Parameters that classifiers and regressors of a family share."""
    if candidate.family == "kernel":
        return {"n_anchors": candidate.tiles, "gamma": candidate.sharpness / variance, "C": candidate.C, "tol": 1e-2}
    if candidate.family == "learned":
        return {
            "n_tiles": candidate.tiles, "n_gates": candidate.gates, "n_neighbors": candidate.neighbors,
            "n_components": n_components, "weight_decay": candidate.decay, "dropout": candidate.dropout,
            "max_iter": candidate.epochs(n_rows), "batch_size": candidate.batch_size(n_rows), "early_stopping": False,
            "pieces": pieces,
        }  # fmt: skip
    common = {"C": candidate.C, "tol": 1e-3, "pieces": pieces}
    if candidate.family == "clustered":
        return common | {"n_clusters": candidate.tiles}
    if candidate.family == "local":
        common["tol"] = 1e-2 if n_rows > LOOSE_ROWS else 1e-3
        return common | {"n_anchors": candidate.tiles, "n_neighbors": candidate.neighbors}
    if candidate.family == "trees":
        return common | {
            "n_trees": candidate.gates, "max_leaves": candidate.tiles,
            "min_rows_per_leaf": 1 if candidate.only_leaves else SMALLEST_LEAF,
            "growth": candidate.growth,
            "tiles": "linear" if candidate.linear_leaves else "constant",
            "global_reg": NO_GLOBAL_TILE if candidate.only_leaves else 1.0,
        }  # fmt: skip
    return common
