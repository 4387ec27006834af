"""Fits of the ordinary estimators over partitions."""

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils import check_random_state

from svmosaic import estimators
from svmosaic._validation import NO_WEIGHT, require_two_classes
from svmosaic.estimators._progress import Progress, all_or_nothing
from svmosaic.estimators.data import class_weights_of, require_one_target
from svmosaic.model.heads import Classify, Regress
from svmosaic.scale.data import PartitionedData, Survey
from svmosaic.scale.learning import PartitionedLearningRows
from svmosaic.scale.part import describe, prepare

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


@all_or_nothing
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
    survey = _survey(estimator, partitions)
    estimator.n_features_in_ = survey.n_features
    if survey.names is not None:
        estimator.feature_names_in_ = np.array(survey.names, dtype=object)
    learned = isinstance(estimator, (estimators.LearnedGateSVC, estimators.LearnedGateSVR))
    data = (PartitionedLearningRows if learned else PartitionedData)(partitions, survey)
    estimator._fit_rows(data, check_random_state(estimator.random_state), progress)
    return estimator


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
    """Look at all partitions once, agree on classes (or on the spread of values) and types, and prepare them."""
    name, values = type(estimator).__name__, is_regressor(estimator)
    found = partitions.gather(describe, values)
    used = [k for k, one in enumerate(found) if one["kept"]]
    if not used:
        raise ValueError(NO_WEIGHT if any(one["n_rows"] for one in found) else f"{name}: there are no rows")
    partitions.keep(used)
    found = [found[k] for k in used]
    for one in found[1:]:
        for key in ("n_features", "names", *(["targets"] if values else [])):
            if one[key] != found[0][key]:
                raise ValueError(
                    f"partitions differ in {key}: {one[key]!r} in {one['where']}, {found[0][key]!r} in "
                    f"{found[0]['where']}"
                )
    dtype = np.result_type(*[np.dtype(one["dtype"]) for one in found])
    n_features, names = found[0]["n_features"], found[0]["names"]
    if values:
        copies = len(estimator._quantiles)
        regress = Regress.plain(np.zeros((1, *found[0]["targets"])))
        if estimator.normalize_y:  # by the moments of the partitions
            weight = np.array([one["weight"] for one in found])
            keys = ("mean", "squares", "low", "high")
            means, squares, low, high = (np.stack([one[key] for one in found]) for key in keys)
            mean = np.average(means, axis=0, weights=weight)
            total = squares.sum(axis=0) + np.tensordot(weight, (means - mean) ** 2, axes=1)
            constant = low.min(axis=0) == high.max(axis=0)
            center = np.where(constant, low[0], mean)[()]
            regress = Regress(center, np.where(constant, 1.0, np.sqrt(total / weight.sum()))[()])
        if copies > 1:  # so many equal targets
            require_one_target(("n_rows", *np.shape(regress.center)))
            regress = Regress(np.full(copies, regress.center), np.full(copies, regress.scale))
        counts = np.array([one["kept"] for one in found])
        partitions.advance(prepare, regress, None, copies, dtype, each=list(np.cumsum(counts) - counts))
        return Survey(int(counts.sum()), n_features, dtype, names, regress)
    classes = np.unique(np.concatenate([one["classes"] for one in found]))
    counts = np.zeros((len(found), len(classes)), dtype=np.int64)
    weights = np.zeros(len(classes))
    for k, one in enumerate(found):
        here = np.searchsorted(classes, one["classes"])
        counts[k, here] = one["counts"]
        weights[here] += one["weights"]
    require_two_classes(estimator, classes, classes)
    factor = np.ones(len(classes))
    if estimator.class_weight is not None:
        # One row per class, which weighs as much as the class, has the same sums.
        factor = class_weights_of(estimator.class_weight, classes, classes, weights)
        counts = counts * (factor > 0)
    require_two_classes(estimator, classes, classes[np.flatnonzero(counts.sum(axis=0))])
    head = Classify(classes)
    partitions.advance(prepare, head, factor, 1, dtype, each=list(np.cumsum(counts, axis=0) - counts))
    return Survey(int(counts.sum()), n_features, dtype, names, head, counts.sum(axis=0), factor)
