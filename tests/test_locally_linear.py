"""LL-SVM: the paper's equations, its exact problem as a QP, anchors, feature maps."""

from typing import get_args

import clarabel
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import AdditiveChi2Sampler, Nystroem
from sklearn.preprocessing import FunctionTransformer

from svmosaic import LinearSVC, LocallyLinearSVC
from svmosaic.datasets import make_banana
from svmosaic.estimators._anchors import Coding
from svmosaic.model.mosaic import Mosaic

EXACT = dict(tol=1e-8, max_iter=100_000, random_state=0)


def make_data(n_rows=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 3))
    return X, (X[:, 0] * X[:, 1] + 0.4 * rng.standard_normal(n_rows) > 0).astype(int)


def code_matrix(model, X):
    tile, weight = model.mosaic_.gate.code(X)
    codes = np.zeros((X.shape[0], model.mosaic_.n_tiles))
    np.put_along_axis(codes, tile.astype(int), weight, axis=1)
    return codes


def solve_qp(codes, X, sign, C, bias_penalty):
    """Equation 10 times C n: min 1/2 |W|^2 + bias_penalty / 2 |b|^2 + C sum xi, by an interior-point solver."""
    n_rows, n_anchors = codes.shape
    linear = (codes[:, :, None] * X[:, None, :]).reshape(n_rows, -1)
    margin = sign[:, None] * np.hstack([linear, codes])
    n_weights = linear.shape[1]
    quadratic = np.concatenate([np.ones(n_weights), np.full(n_anchors, bias_penalty), np.zeros(n_rows)])
    cost = np.concatenate([np.zeros(n_weights + n_anchors), np.full(n_rows, C)])
    eye = sparse.identity(n_rows)
    # margin + xi >= 1 and xi >= 0, as -(...) + slack = -(1, 0) with slack >= 0
    constraints = sparse.bmat([[-sparse.csr_array(margin), -eye], [None, -eye]], format="csc")
    bound = np.concatenate([-np.ones(n_rows), np.zeros(n_rows)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    solution = clarabel.DefaultSolver(
        sparse.csc_matrix(sparse.diags(quadratic)), cost, sparse.csc_matrix(constraints), bound,
        [clarabel.NonnegativeConeT(2 * n_rows)], settings,
    ).solve()  # fmt: skip
    assert str(solution.status) in ("Solved", "AlmostSolved")
    weights = np.array(solution.x[: n_weights + n_anchors])
    value = 0.5 * quadratic[: len(weights)] @ weights**2 + C * np.maximum(0, 1 - margin @ weights).sum()
    return value, weights[n_weights:]


@pytest.mark.parametrize("coding", ["softmax", "inverse", "llc"])
@pytest.mark.parametrize("C", [0.05, 0.5])
@pytest.mark.parametrize("scaling", [1.0, 3.0])
def test_dual_and_stochastic_agree_with_the_qp(scaling, C, coding):
    X, y = make_data()
    settings = dict(anchors=X[:6], n_neighbors=3, coding=coding, code_scale=0.3, C=C, loss="hinge")
    settings["intercept_scaling"] = scaling
    dual = LocallyLinearSVC(tol=1e-7, max_iter=300_000, random_state=0, **settings).fit(X, y)
    value, _ = solve_qp(code_matrix(dual, X), X, np.where(y, 1, -1), C, 1 / scaling**2)
    assert_allclose(dual.objective_, [value], rtol=1e-6)
    found = LocallyLinearSVC(solver="sgd", tol=1e-6, max_iter=1000, random_state=0, **settings).fit(X, y)
    assert (1 - 1e-6) * value <= found.objective_[0] <= 1.01 * value


@pytest.mark.parametrize("C", [0.05, 0.5])
def test_free_bias_of_the_paper(C):
    """Equation 10 itself: the dual penalises the bias by 1 / scaling^2, which a large scaling makes nothing of."""
    X, y = make_data()
    settings = dict(anchors=X[:6], n_neighbors=3, coding="softmax", code_scale=0.3, C=C, loss="hinge", random_state=0)
    dual = LocallyLinearSVC(intercept_scaling=1e4, tol=1e-8, max_iter=20_000, **settings).fit(X, y)
    value, _ = solve_qp(code_matrix(dual, X), X, np.where(y, 1, -1), C, 0.0)
    assert_allclose(dual.objective_, [value], rtol=1e-6)
    # Stochastic descent leaves the bias free; the scaling then only makes its steps longer.
    free = LocallyLinearSVC(
        solver="sgd", penalize_intercept=False, intercept_scaling=5.0, tol=1e-6, max_iter=1000, **settings
    ).fit(X, y)
    assert (1 - 1e-6) * value <= free.objective_[0] <= 1.01 * value


@pytest.mark.parametrize("coding", get_args(Coding))
def test_equal_tiles_are_a_linear_svm(coding):
    """Equation 14: codes sum to one."""
    X, y = make_data()
    linear = LinearSVC(random_state=0).fit(X, y)
    gate = LocallyLinearSVC(9, coding=coding, n_neighbors=4, random_state=0).fit(X, y).mosaic_.gate
    tiles = Mosaic(gate, np.tile(linear.coef_, (9, 1, 1)), np.tile(linear.intercept_, (9, 1)))
    assert_allclose(tiles.decision_function(X).ravel(), linear.decision_function(X), atol=1e-10)


@pytest.mark.parametrize("coding", get_args(Coding))
def test_zero_weights_leave_the_biases_on_the_codes(coding):
    """Equation 15."""
    X, y = make_data()
    model = LocallyLinearSVC(9, coding=coding, n_neighbors=4, random_state=0).fit(X, y)
    tiles = Mosaic(model.mosaic_.gate, np.zeros_like(model.tile_coef_), model.intercept_)
    assert_allclose(tiles.decision_function(X), code_matrix(model, X) @ model.intercept_, atol=1e-10)


@pytest.mark.parametrize("coding", get_args(Coding))
def test_scores_are_the_formula(coding):
    X, y = make_data()
    model = LocallyLinearSVC(9, coding=coding, n_neighbors=4, random_state=0).fit(X, y)
    tiles = X @ model.tile_coef_[:, 0].T + model.intercept_[:, 0]
    assert_allclose(model.decision_function(X), (code_matrix(model, X) * tiles).sum(axis=1), atol=1e-9)


@pytest.mark.parametrize("coding", get_args(Coding))
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_one_anchor_is_the_linear_svm(loss, coding):
    X, y = make_data()
    settings = dict(C=0.3, loss=loss, intercept_scaling=2.0, **EXACT)
    local = LocallyLinearSVC(1, coding=coding, **settings).fit(X, y)
    linear = LinearSVC(**settings).fit(X, y)
    assert_allclose(local.objective_, linear.objective_, rtol=1e-7)
    assert_allclose(local.tile_coef_[0], linear.coef_, atol=1e-3)
    assert_allclose(local.decision_function(X), linear.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("storage", [sparse.csr_array, lambda X: X.astype(np.float32)])
@pytest.mark.parametrize("coding", get_args(Coding))
def test_storage_does_not_matter(coding, storage):
    X, y = make_data()
    settings = dict(anchors=X[:7], coding=coding, n_neighbors=4, C=0.3, tol=1e-7, max_iter=20_000, random_state=0)
    dense = LocallyLinearSVC(**settings).fit(X, y)
    other = LocallyLinearSVC(**settings).fit(storage(X), y)
    assert_allclose(other.objective_, dense.objective_, rtol=1e-7)
    assert_allclose(other.decision_function(storage(X)), dense.decision_function(X), atol=2e-5)


def test_more_anchors_than_a_line_needs():
    """A curved boundary is beyond one tile, and within reach of ten."""
    X, y = make_banana(1000, random_state=0)
    Z, z = make_banana(1000, random_state=1)
    one, ten = (LocallyLinearSVC(m, n_neighbors=4, random_state=0).fit(X, y).score(Z, z) for m in (1, 10))
    assert ten > one + 0.05


def test_anchors_from_elsewhere():
    X, y = make_data()
    unlabelled = np.random.default_rng(5).standard_normal((500, 3))
    clusterer = KMeans(8, n_init=1, random_state=0).fit(unlabelled)
    centers = clusterer.cluster_centers_
    fitted = LocallyLinearSVC(anchors=clusterer, random_state=0).fit(X, y)
    given = LocallyLinearSVC(anchors=centers, random_state=0).fit(X, y)
    assert_array_equal(fitted.anchors_, np.unique(centers, axis=0))
    assert_array_equal(given.decision_function(X), fitted.decision_function(X))
    rows = LocallyLinearSVC(12, anchors="random", random_state=0).fit(X, y).anchors_
    assert all((row == X).all(axis=1).any() for row in rows)
    cloned = LocallyLinearSVC(anchors=KMeans(5, n_init=1), random_state=0).fit(X, y)
    assert cloned.anchors_.shape == (5, 3)
    with pytest.raises(ValueError, match="anchors must be 'kmeans'"):
        LocallyLinearSVC(anchors="k-means").fit(X, y)
    with pytest.raises(ValueError, match="centers of 2 features, but X has 3"):
        LocallyLinearSVC(anchors=np.eye(2)).fit(X, y)


def test_anchors_by_class_lie_within_the_classes():
    X, y = make_data()
    X[:, 2] = 100.0 * y
    anchors = LocallyLinearSVC(10, anchors="class", random_state=0).fit(X, y).anchors_
    assert set(np.round(anchors[:, 2], 6)) == {0.0, 100.0}
    share = (anchors[:, 2] > 50).mean()
    assert abs(share - y.mean()) <= 0.1


def test_unlabelled_rows_place_better_anchors_for_few_labels():
    X, y = load_digits(return_X_y=True)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    gains = []
    for seed in range(3):
        order = np.random.RandomState(seed).permutation(len(y))
        few, many, test = order[:100], order[:1200], order[1200:]
        joint = KMeans(40, n_init=1, random_state=seed).fit(X[many])
        own, better = (
            LocallyLinearSVC(40, anchors=anchors, random_state=seed).fit(X[few], y[few]).score(X[test], y[test])
            for anchors in ("kmeans", joint)
        )
        gains.append(better - own)
    assert np.mean(gains) > 0.01


def make_histograms(n_rows, seed):
    """What tells the classes apart is which bins are filled, not how much: the amounts have heavy tails."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n_rows)
    often = np.random.default_rng(0).uniform(0.1, 0.6, size=(2, 30))
    amount = (rng.random((n_rows, 30)) < often[y]) * rng.lognormal(0, 1.5, size=(n_rows, 30)) + 1e-3
    return amount / amount.sum(axis=1, keepdims=True), y


@pytest.mark.parametrize(
    "feature_map",
    [AdditiveChi2Sampler(sample_steps=2), Nystroem(kernel="additive_chi2", n_components=100, random_state=0)],
    ids=["additive", "nystroem"],
)
def test_finite_kernels_improve_on_histograms(feature_map):
    X, y = make_histograms(600, 1)
    Z, z = make_histograms(2000, 2)

    def best(feature_map):
        settings = dict(n_neighbors=2, feature_map=feature_map, random_state=0)
        return max(LocallyLinearSVC(4, C=C, **settings).fit(X, y).score(Z, z) for C in (0.1, 1.0, 10.0))

    assert best(feature_map) > best(None) + 0.05


def test_identity_map_changes_nothing():
    X, y = make_data()
    plain = LocallyLinearSVC(6, random_state=0).fit(X, y)
    mapped = LocallyLinearSVC(6, feature_map=FunctionTransformer(), random_state=0).fit(X, y)
    assert_allclose(mapped.decision_function(X), plain.decision_function(X), atol=1e-12)


def test_warns_when_stopped_early():
    X, y = make_data()
    with pytest.warns(ConvergenceWarning, match="stopped after max_iter=2 iterations"):
        LocallyLinearSVC(10, C=100.0, loss="hinge", solver="dual", max_iter=2).fit(X, y)
