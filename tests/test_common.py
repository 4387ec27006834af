"""The contract of scikit-learn, over everything the package exports."""

import inspect
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
        {"n_experts": 3, "max_iter": 2},
        {"n_experts": 3, "max_iter": 2, "calibration": "posterior"},
        {"n_experts": 3, "max_iter": 2, "pieces": 4},
    ],
    "MosaicClassifier": [{"time_budget": None, "families": ("linear",), "validation_fraction": 0.5}],
    "MosaicRegressor": [{"time_budget": None, "families": ("linear",), "validation_fraction": 0.5}],
    "HierarchicalMixtureSVC": [
        {"branching": (2, 2), "max_iter": 2},
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
# Checks that may fail, each with its reason.
WEIGHTS = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
SAMPLED = "centres come from k-means++, whose draws differ between a weighted row and copies of it"
BOOTSTRAP = "trees are grown on bootstrap samples, whose draws differ between a weighted row and copies of it"
DRAWN = "the rows held out are drawn, and a weighted row is drawn once, copies of it one by one"
STOCHASTIC = "one step on a row of weight k is not k steps on copies of it"
NEIGHBOURS = "copies of a row take the places of other neighbours"
EXPECTED = {
    "LocallyLinearSVC": dict.fromkeys(WEIGHTS, SAMPLED),
    "LocalCodingSVC": dict.fromkeys(WEIGHTS, SAMPLED),
    "KernelSVC": dict.fromkeys(WEIGHTS, SAMPLED),
    "KernelSVR": dict.fromkeys(WEIGHTS, SAMPLED),
    "MixtureSVC": dict.fromkeys(WEIGHTS, SAMPLED),
    "HierarchicalMixtureSVC": dict.fromkeys(WEIGHTS, SAMPLED),
    "MosaicClassifier": dict.fromkeys(WEIGHTS, DRAWN),
    "MosaicRegressor": dict.fromkeys(WEIGHTS, DRAWN),
    "MultiTaskMixtureSVC": {WEIGHTS[0]: SAMPLED},  # dense rows only
    "TreeSVC": dict.fromkeys(WEIGHTS, BOOTSTRAP),
    "LearnedGateSVC": dict.fromkeys(WEIGHTS, STOCHASTIC),
    "LearnedGateSVR": dict.fromkeys(WEIGHTS, STOCHASTIC),
    "LocallyLinearSVR": dict.fromkeys(WEIGHTS, SAMPLED),
    "TreeSVR": dict.fromkeys(WEIGHTS, BOOTSTRAP),
    "NeighborsSVC": dict.fromkeys(WEIGHTS, NEIGHBOURS)
    | {"check_non_transformer_estimators_n_iter": "fit does not iterate: max_iter is for the SVM of each query"},
}


def expected_failures(estimator):
    if getattr(estimator, "solver", None) == "sgd":
        return dict.fromkeys(WEIGHTS, STOCHASTIC)
    return EXPECTED.get(type(estimator).__name__, {})


def small(estimator):
    """An estimator with the first of its settings."""
    return estimator(**SETTINGS.get(estimator.__name__, [{}])[0])


def instances():
    for estimator in ESTIMATORS:
        for settings in SETTINGS.get(estimator.__name__, [{}]):
            yield estimator(**settings)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(list(instances()), expected_failed_checks=expected_failures)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", [e for e in instances() if expected_failures(e)], ids=repr)
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
    environment = os.environ | {"SCIPY_ARRAY_API": "1", "PYTHONPATH": os.path.dirname(__file__)}
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], env=environment, capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) == len(ESTIMATORS)


def test_there_are_estimators():
    assert {"LinearSVC", "KMeansSVC", "ClusteredSVC"} <= {estimator.__name__ for estimator in ESTIMATORS}


def fit_weighted_and_copied(model, X, y, storage=np.asarray):
    """The model fitted to rows with whole weights, and to as many copies of them."""
    copies = np.random.RandomState(0).randint(0, 4, len(y))
    weighted = clone(model).fit(storage(X), y, sample_weight=copies)
    return weighted, clone(model).fit(storage(np.repeat(X, copies, axis=0)), np.repeat(y, copies))


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("estimator", [svmosaic.KMeansSVC, svmosaic.ClusteredSVC])
def test_weights_are_copies_once_the_centres_are_fixed(estimator, loss, storage):
    X, y, _ = hard_data(0)
    model = estimator(clusterer=X[5:9], loss=loss, random_state=0, **TIGHT)
    weighted, copied = fit_weighted_and_copied(model, X, y, storage)
    assert_allclose(weighted.decision_function(X), copied.decision_function(X), atol=1e-5)
    assert_allclose(weighted.mosaic_.coef, copied.mosaic_.coef, atol=1e-5)


# What follows shows that the reason SAMPLED above is the only one.


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
def test_weights_are_copies_once_the_mixtures_start_alike(model, monkeypatch):
    X, y = make_xor(150, random_state=0)
    for place in ("svmosaic.estimators.data", "svmosaic.gates.hierarchical"):
        monkeypatch.setattr(f"{place}.place_centers", lambda rows, n, **options: X[5 : 5 + n])
    # Few steps: EM makes rounding errors grow.
    model.set_params(inner_tol=1e-10, inner_max_iter=100_000, max_iter=4, tol=0, random_state=0)
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


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_parameter_is_described(estimator):
    described = inspect.getdoc(estimator).split("Attributes\n")[0]
    for name in inspect.signature(estimator).parameters:
        assert f"\n{name} : " in described, f"{name} is missing in the docstring"
