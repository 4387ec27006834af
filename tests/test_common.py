"""The contract of scikit-learn, over everything the package exports."""

import os
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import scipy
from everything import ESTIMATORS
from numpy.testing import assert_allclose, assert_array_equal
from problems import hard_data
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

import svmosaic
from svmosaic.datasets import make_xor

pytestmark = pytest.mark.usefixtures("short_search")
# The check of weight equivalence asks for equal scores to 1e-7: the default gap is no match for it.
TIGHT = {"tol": 1e-12, "max_iter": 100_000}
# A gap moves the scores by its root: where a loss is smooth, Newton's method makes it smaller still.
SQUARED = {"loss": "squared_epsilon_insensitive", "solver": "newton", "tol": 1e-15}
# Fewer tiles than the default: the checks have a few dozen rows. Anchors of a class's own would keep a region for it
# however small its weight, where the check of class weights wants it gone.
SMALL = {"n_anchors": 8, "n_neighbors": 4, "anchors": "kmeans"}
SETTINGS = {
    "BoostedLinearSVC": [TIGHT | {"n_estimators": 5}],
    "BoostedTreesClassifier": [{"n_rounds": 20, "max_leaves": 4}],
    "BoostedTreesRegressor": [{"n_rounds": 20, "max_leaves": 4}],
    "LinearSVC": [TIGHT, TIGHT | {"pieces": 4}],
    "KMeansSVC": [TIGHT, TIGHT | {"pieces": 4}],
    "ClusteredSVC": [TIGHT, TIGHT | {"pieces": 4}],
    "LocallyLinearSVC": [
        SMALL,
        SMALL | {"solver": "sgd", "max_iter": 20},
        SMALL | {"multi_class": "crammer_singer", "loss": "hinge"},
        SMALL | {"pieces": 4},
    ],
    "LocalCodingSVC": [SMALL],
    "KernelSVC": [{"n_anchors": 8}],
    "KernelSVR": [{"n_anchors": 64}],
    "LearnedGateSVC": [
        {"n_tiles": 8, "n_neighbors": 4, "max_iter": 20},
        {"n_tiles": 8, "n_neighbors": 4, "max_iter": 20, "n_gates": 2, "loss": "log_loss", "dropout": 0.1},
        {"n_tiles": 8, "n_neighbors": 4, "max_iter": 20, "pieces": 4},
    ],
    "LearnedGateSVR": [
        {"n_tiles": 8, "n_neighbors": 4, "max_iter": 20},
        {"n_tiles": 8, "n_neighbors": 4, "max_iter": 20, "loss": "epsilon_insensitive", "pieces": 4},
    ],
    "LinearSVR": [TIGHT, TIGHT | {"pieces": 4}, TIGHT | {"loss": "quantile"}, TIGHT | SQUARED | {"loss": "expectile"}],
    "KMeansSVR": [TIGHT, TIGHT | SQUARED | {"pieces": 4}],
    "ClusteredSVR": [TIGHT, TIGHT | {"pieces": 4}],
    "LocallyLinearSVR": [SMALL, SMALL | {"solver": "sgd", "max_iter": 20}, SMALL | {"pieces": 4}],
    "NeighborsSVC": [{"n_neighbors": 10}],
    # Only one with fixed parts: scikit-learn's gamma="scale" looks at the rows without their weights.
    "FusedSVC": [
        {
            "svm": SVC(gamma=0.1, tol=1e-12),
            "mixture": svmosaic.GaussianMixtureClassifier(2, max_iter=1000),
            "weight": 0.5,
        }
    ],
    "MixtureSVC": [
        {"n_experts": 3, "max_iter": 2, "tol": 1e-2},
        {"n_experts": 3, "max_iter": 2, "calibration": "posterior"},
        {"n_experts": 3, "max_iter": 2, "pieces": 4},
    ],
    "MosaicClassifier": [{"time_budget": None, "families": ("linear",), "validation_fraction": 0.5}],
    "MosaicRegressor": [{"time_budget": None, "families": ("linear",), "validation_fraction": 0.5}],
    "HierarchicalMixtureSVC": [
        {"branching": (2, 2), "max_iter": 2, "tol": 1e-2},  # a check asks for a thousand iterations
        {"branching": (2, 2), "max_iter": 2, "pieces": 4},
    ],
    # Only one searches for its covariance floor: that takes ten fits.
    "MultiTaskMixtureSVC": [
        {"n_experts": 2, "max_iter": 2},
        {"n_experts": 3, "max_iter": 2, "pieces": 4, "covariance_floor": 1e-2},
    ],
    "TreeSVC": [{"n_trees": 4}],
    "TreeSVR": [{"n_trees": 4}],
}
# Checks of weight equivalence that may fail, each with its reason.
WEIGHTS = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
STOCHASTIC = "one step on a row of weight k is not k steps on copies of it"
REASONS = {
    "centers come from k-means++, whose draws differ between a weighted row and copies of it": (
        "LocallyLinearSVC", "LocallyLinearSVR", "LocalCodingSVC", "KernelSVC", "KernelSVR", "MixtureSVC",
        "HierarchicalMixtureSVC", "MultiTaskMixtureSVC",
    ),
    "trees are grown on bootstrap samples, whose draws differ between a weighted row and copies of it": (
        "TreeSVC", "TreeSVR",
    ),
    "the rows held out are drawn, and a weighted row is drawn once, copies of it one by one": (
        "MosaicClassifier", "MosaicRegressor",
    ),
    "rounds are chosen by rows that are drawn, and derivatives are rounded to steps that follow from the largest": (
        "BoostedTreesClassifier", "BoostedTreesRegressor",
    ),
    "copies of a row take the places of other neighbors": ("NeighborsSVC",),
    STOCHASTIC: ("LearnedGateSVC", "LearnedGateSVR"),
}  # fmt: skip


def expected_failures(estimator):
    """Names of the checks that may fail, with reasons."""
    name = type(estimator).__name__
    if getattr(estimator, "solver", None) == "sgd":
        return dict.fromkeys(WEIGHTS, STOCHASTIC)
    reason = next((reason for reason, names in REASONS.items() if name in names), None)
    if name == "MultiTaskMixtureSVC":  # takes dense rows only
        return {WEIGHTS[0]: reason}
    found = dict.fromkeys(WEIGHTS, reason) if reason else {}
    if name == "NeighborsSVC":
        found["check_non_transformer_estimators_n_iter"] = "fit does not iterate: max_iter is for the SVM of each query"
    return found


def variants(estimator):
    """An estimator with each of its settings."""
    return [estimator(**settings) for settings in SETTINGS.get(estimator.__name__, [{}])]


def small(estimator):
    """An estimator with the first of its settings."""
    return variants(estimator)[0]


DEFAULTS = [small(estimator) for estimator in ESTIMATORS]
OTHERS = [variant for estimator in ESTIMATORS for variant in variants(estimator)[1:]]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(DEFAULTS, expected_failed_checks=expected_failures)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(OTHERS, expected_failed_checks=expected_failures)
def test_scikit_learn_contract_of_variants(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", [e for e in DEFAULTS + OTHERS if expected_failures(e)], ids=repr)
def test_expected_failures_are_of_checks_that_are_run(estimator):
    """A mark of a check that scikit-learn no longer has would hide nothing, and say something untrue."""
    run = {getattr(check, "func", check).__name__ for _, check in estimator_checks_generator(estimator)}
    assert set(expected_failures(estimator)) <= run


@pytest.mark.skipif(
    tuple(map(int, scipy.__version__.split(".")[:2])) < (1, 14), reason="scikit-learn asks for scipy 1.14 for them"
)
def test_arrays_of_the_array_api():
    """Skipped above: scipy must be told before it is imported that there may be such arrays."""
    script = """
        import warnings
        from sklearn.utils.estimator_checks import estimator_checks_generator
        from test_common import ESTIMATORS, small
        warnings.simplefilter("ignore")
        n_checks = 0
        for instance in map(small, ESTIMATORS):
            for estimator, check in estimator_checks_generator(instance):
                if "array_api" in getattr(check, "func", check).__name__:
                    check(estimator)
                    n_checks += 1
        print(n_checks)
    """
    folders = os.pathsep.join([os.path.dirname(__file__), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"SCIPY_ARRAY_API": "1", "PYTHONPATH": folders}
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], env=environment, capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) == len(ESTIMATORS)


def fit_weighted_and_copied(model, X, y, storage=np.asarray):
    """The model fitted to rows with whole weights, and to as many copies of them."""
    copies = np.random.RandomState(0).randint(0, 4, len(y))
    weighted = clone(model).fit(storage(X), y, sample_weight=copies)
    return weighted, clone(model).fit(storage(np.repeat(X, copies, axis=0)), np.repeat(y, copies))


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("estimator", [svmosaic.KMeansSVC, svmosaic.ClusteredSVC])
def test_weights_are_copies_once_the_centers_are_fixed(estimator, loss, storage):
    X, y, _ = hard_data(0)
    model = estimator(clusterer=X[5:9], loss=loss, random_state=0, **TIGHT)
    weighted, copied = fit_weighted_and_copied(model, X, y, storage)
    assert_allclose(weighted.decision_function(X), copied.decision_function(X), atol=1e-5)
    assert_allclose(weighted.mosaic_.coef, copied.mosaic_.coef, atol=1e-5)


# What follows shows that draws of centers are the only reason above.


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("estimator", [svmosaic.LocallyLinearSVC, svmosaic.LocalCodingSVC])
def test_weights_are_copies_once_the_anchors_are_fixed(estimator, storage):
    X, y, _ = hard_data(0)
    given = {"anchors": X[5:13], "code_scale": 0.5, "n_neighbors": 4, "loss": "squared_hinge"}
    weighted, copied = fit_weighted_and_copied(estimator(random_state=0, **given, **TIGHT), X, y, storage)
    assert_allclose(weighted.decision_function(X), copied.decision_function(X), atol=1e-4)
    assert_allclose(weighted.objective_, copied.objective_, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "model",
    [
        svmosaic.MixtureSVC(4),
        svmosaic.HierarchicalMixtureSVC((2, 2)),
        svmosaic.MultiTaskMixtureSVC(3, covariance_floor=1e-3),
    ],
    ids=lambda model: type(model).__name__,
)
def test_weights_are_copies_once_the_mixtures_start_alike(model, monkeypatch, experts):
    X, y = make_xor(150, random_state=0)
    for place in ("svmosaic.estimators.data", "svmosaic.estimators.mixture", "svmosaic.gates.softmax_tree"):
        monkeypatch.setattr(f"{place}.place_centers", lambda rows, n, **options: X[5 : 5 + n])
    # Few steps: EM makes rounding errors grow.
    experts(tol=1e-10, max_iter=100_000)
    model.set_params(max_iter=4, tol=0, random_state=0)
    weighted, copied = fit_weighted_and_copied(model, X, y)
    assert_allclose(weighted.decision_function(X), copied.decision_function(X), atol=1e-5)
    assert_allclose(weighted.objective_, copied.objective_, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_pickle_and_clone_keep_the_model(estimator):
    X, y = load_iris(return_X_y=True)
    model = small(estimator)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    model.fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(model.predict(X), again.predict(X))
    assert_array_equal(clone(model).fit(X, y).predict(X), model.predict(X))
