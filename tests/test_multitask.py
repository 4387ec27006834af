"""LSVM-MTL: the Gaussian gate, the groups, and the limits of both."""

import needs
import numpy as np
import pytest
from chosen import chosen_setting
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler, normalize

from papers.data import load
from svmosaic import LinearSVC, MultiTaskMixtureSVC
from svmosaic.datasets import make_two_sines, make_xor
from svmosaic.estimators._em import intercept_constant
from svmosaic.gates import GaussianGate, Responsibilities
from svmosaic.solvers import Rows


def soft_shares(rng, n, n_experts, weight):
    q = rng.dirichlet(np.ones(n_experts), n)
    expert = np.tile(np.arange(n_experts, dtype=np.int32), n)
    return q, Responsibilities(np.arange(0, n * n_experts + 1, n_experts), expert, q.ravel(), weight, n_experts)


@pytest.mark.parametrize("covariance", ["full", "diag", "isotropic"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gaussian_gate_is_the_weighted_maximum_likelihood(covariance, dtype):
    rng = np.random.RandomState(0)
    X, weight = rng.standard_normal((100, 3)).astype(dtype), rng.uniform(0.5, 2, 100)
    q, shares = soft_shares(rng, 100, 4, weight)
    gate = GaussianGate.from_shares(Rows(X), shares, floor=1e-6, covariance=covariance)
    for j in range(4):
        w = weight * q[:, j]
        mean = np.average(X, axis=0, weights=w)
        expected = np.cov(X.T, aweights=w, bias=True)
        if covariance == "diag":
            expected = np.diag(np.diag(expected))
        if covariance == "isotropic":
            expected = np.eye(3) * np.trace(expected) / 3
        assert_allclose(gate.means[j], mean, atol=1e-6)
        found = gate.covariances[j]
        assert_allclose(found if covariance == "full" else found * np.eye(3), expected, atol=1e-5)
        density = np.log(gate.prior[j]) + multivariate_normal(mean, expected).logpdf(X)
        assert_allclose(gate.log_joint(X)[:, j], density, rtol=1e-4)
    assert_allclose(gate.prior, (weight @ q) / weight.sum())
    tile, posterior = gate.code(X)
    assert_array_equal(tile[0], np.arange(4))
    assert_allclose(posterior.sum(axis=1), 1.0, atol=1e-6)


def test_floored_covariance_is_the_best_one_allowed():
    """Lifting eigenvalues to the floor maximizes the likelihood under it; adding the floor does not."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((60, 2)) * [1.0, 0.01]
    shares = Responsibilities.hard(np.zeros(60, dtype=np.int32), np.ones(60), 1)
    best = GaussianGate.from_shares(Rows(X), shares, floor=0.05, covariance="full")
    value = best.log_joint(X).sum()
    assert_allclose(np.linalg.eigvalsh(best.covariances[0])[0], 0.05)
    for _ in range(100):
        root = np.linalg.cholesky(best.covariances[0]) @ (np.eye(2) + 0.1 * rng.standard_normal((2, 2)))
        covariance = root @ root.T
        values, vectors = np.linalg.eigh(covariance)
        factor = vectors / np.sqrt(np.maximum(values, 0.05))
        other = GaussianGate(best.means, factor[None], best.prior, 0.05)
        assert other.log_joint(X).sum() <= value + 1e-9


def test_without_labels_it_is_a_gaussian_mixture():
    X, y = make_xor(300, random_state=0)
    model = MultiTaskMixtureSVC(4, label_weight=1e-9, covariance_floor=1e-6, max_iter=200, tol=1e-12, random_state=0)
    model.fit(X, y)
    reference = GaussianMixture(4, means_init=model.means_, random_state=0, tol=1e-9, max_iter=500).fit(X)
    assert_allclose(model.means_, reference.means_, atol=1e-3)
    assert_allclose(model.objective_[-1] / 300, reference.score(X), atol=1e-3)


def test_no_groups_are_independent_experts(experts):
    """groups=None is many groups that cost nothing: as many as experts, or alpha -> 0."""
    X, y = make_xor(300, spread=0.4, random_state=0)
    experts(tol=1e-8)
    settings = {"beta": 0.05, "covariance_floor": 1e-2, "max_iter": 4, "random_state": 0}
    alone = MultiTaskMixtureSVC(4, groups=None, **settings).fit(X, y)
    free = MultiTaskMixtureSVC(4, groups="hard", n_groups=4, alpha=0.5, **settings).fit(X, y)
    assert_allclose(free.tile_coef_, alone.tile_coef_, atol=5e-3)
    assert_array_equal(alone.task_groups_, [[0, 1, 2, 3]])
    # And each expert is a weighted linear SVM on the responsibilities of the last step, hence no worse than any other.
    experts(tol=1e-10)
    one = MultiTaskMixtureSVC(1, groups=None, beta=0.05, label_weight=1.0, covariance_floor=1e-2)
    scaling = intercept_constant(X, np.ones(len(X)))
    linear = LinearSVC(C=10.0, intercept_scaling=scaling, tol=1e-10, max_iter=100_000).fit(X, y)
    assert_allclose(one.fit(X, y).tile_coef_[0], linear.coef_, atol=1e-4)


def test_strong_groups_make_equal_experts():
    X, y = make_xor(300, spread=0.5, random_state=0)
    model = MultiTaskMixtureSVC(
        4, groups="hard", n_groups=2, alpha=1e4, beta=0.01, covariance_floor=1e-2, random_state=0
    )
    model.fit(X, y)
    groups = np.unique(model.task_groups_[0])
    assert len(groups) == 2
    for g in groups:
        members = model.tile_coef_[model.task_groups_[0] == g, 0]
        assert_allclose(members, members[:1].repeat(len(members), axis=0), atol=0.01 * np.abs(model.tile_coef_).max())
    free = clone(model).set_params(groups=None).fit(X, y).tile_coef_[:, 0]
    assert np.ptp(free, axis=0).min() > 0.1 * np.abs(free).max()  # without groups they are not equal
    assert model.coupling_.shape == (1, 4, 4)
    assert_allclose(np.trace(model.coupling_[0]), 2.0, atol=1e-6)


def test_void_relaxation_warns():
    X, y = make_xor(100, random_state=0)
    with pytest.warns(UserWarning, match="n_groups=3 leaves the relaxed groups without effect"):
        MultiTaskMixtureSVC(5, n_groups=3, covariance_floor=1e-2, max_iter=2, random_state=0).fit(X, y)


def test_sparse_rows_are_refused_in_training_with_advice_and_scored():
    X, y = make_xor(60, random_state=0)
    with pytest.raises(ValueError, match="needs dense rows"):
        MultiTaskMixtureSVC(3).fit(sparse.csr_array(X), y)
    model = MultiTaskMixtureSVC(3, random_state=0).fit(X, y)
    assert_allclose(model.decision_function(sparse.csr_array(X)), model.decision_function(X), atol=1e-12)


def test_floor_is_chosen_on_a_hold_out():
    X, y = load_iris(return_X_y=True)
    model = MultiTaskMixtureSVC(3, random_state=0, max_iter=5).fit(X, y)
    best, chosen = max(model.floor_scores_.values()), model.covariance_floor_
    error = np.sqrt(best * (1 - best) / (2 * (150 // 4)))
    assert model.floor_scores_[chosen] >= best - error
    assert all(score < best - error for floor, score in model.floor_scores_.items() if floor > chosen)
    assert model.mosaic_.gate.floor > 0
    assert model.score(X, y) > 0.9


def test_votes_are_weighted_by_responsibilities():
    """Erratum 5: far from all data, where densities underflow, prediction still works."""
    X, y = make_xor(200, random_state=0)
    model = MultiTaskMixtureSVC(4, covariance_floor=1e-3, random_state=0).fit(X, y)
    far = 1e4 * np.array([[0.0, 1.0], [0.0, -1.0], [1.0, 0.0], [-1.0, 0.0]])
    assert np.isfinite(model.decision_function(far)).all()
    assert (np.abs(model.decision_function(far)) > 0).all()


@pytest.mark.parametrize("n_experts", [5, 10])
def test_two_sines(n_experts):
    X, y = make_two_sines(random_state=0)
    model = MultiTaskMixtureSVC(
        n_experts, groups="hard", n_groups=5, covariance_floor=1e-3, max_iter=30, random_state=0
    ).fit(X, y)
    assert model.score(X, y) >= 0.99
    assert len(np.unique(model.task_groups_)) == 5
    assert np.diff(model.objective_).min() >= 0


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"groups": "soft"}, "groups must be one of"),
        ({"n_groups": 0}, "n_groups must be"),
        ({"alpha": 0.0}, "alpha must be"),
        ({"beta": -1.0}, "beta must be"),
        ({"covariance": "tied"}, "covariance must be one of"),
        ({"covariance_floor": 0.0}, "covariance_floor must be"),
        ({"n_experts": 0}, "n_experts must be"),
    ],
)
def test_bad_parameters_are_named(setting, words):
    X, y = make_xor(40, random_state=0)
    with pytest.raises(ValueError, match=words):
        MultiTaskMixtureSVC(**setting).fit(X, y)


# Least accuracy on the test parts, with settings by cross-validation on the training parts
# (benchmarks/search_mixtures.py).
BARS = {"ijcnn1": 0.968, "svmguide1": 0.880, "pendigits": 0.983, "satimage": 0.890, "skin": 0.990}


@pytest.mark.slow
@pytest.mark.data
@needs.data
@pytest.mark.parametrize("name", BARS)
def test_accuracy_on_real_data(name):
    data = load(name)
    X, y, X_test, y_test = normalize(data.X_train), data.y_train, normalize(data.X_test), data.y_test
    if name == "satimage":
        scaler = StandardScaler().fit(data.X_train)
        X, X_test = scaler.transform(data.X_train), scaler.transform(data.X_test)
    if name == "pendigits":
        y, y_test = y < 5, y_test < 5
    setting = chosen_setting("MultiTaskMixtureSVC", name)
    model = MultiTaskMixtureSVC(14, groups=None, random_state=0, n_jobs=-1).set_params(**setting).fit(X, y)
    assert model.score(X_test, y_test) >= BARS[name]
    assert np.diff(model.objective_).min() >= 0
    assert model.score(X_test, y_test) > LinearSVC(random_state=0).fit(X, y).score(X_test, y_test)
