"""The linear SVM on local coordinates, and LL-SVM with its weights held at zero."""

import numpy as np
import pytest
import sklearn.svm
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.preprocessing import FunctionTransformer

from svmosaic import LocalCodingSVC, LocallyLinearSVC
from svmosaic.datasets import make_xor


def nothing(X):
    return np.zeros((X.shape[0], 1))


def code_matrix(model, X):
    """gamma(x) of each row, dense."""
    tile, weight = model.mosaic_.gate.code(X)
    codes = np.zeros((X.shape[0], model.mosaic_.n_tiles))
    np.put_along_axis(codes, tile.astype(int), weight, axis=1)
    return codes


def make_data():
    X, y = make_xor(300, spread=0.5, random_state=0)
    return X, y + 2 * (X[:, 0] > 0.3)


@pytest.mark.parametrize("coding", ["softmax", "inverse", "llc", "lle"])
def test_is_locally_linear_svm_with_the_weights_held_at_zero(coding):
    """Equation 15. A feature map that gives zeros keeps W = 0, whatever the solver does, but for rounding."""
    X, y = make_data()
    settings = dict(n_anchors=15, n_neighbors=4, coding=coding, anchors="kmeans", C=2.0, intercept_scaling=1.5)
    settings |= dict(loss="hinge", tol=1e-3, random_state=0)
    ours = LocalCodingSVC(**settings).fit(X, y)
    held = LocallyLinearSVC(feature_map=FunctionTransformer(nothing), **settings).fit(X, y)
    assert not held.tile_coef_.any()
    assert_allclose(ours.intercept_, held.intercept_, rtol=1e-10, atol=1e-12)
    assert_allclose(ours.decision_function(X), held.decision_function(X), rtol=1e-10, atol=1e-12)
    assert_allclose(ours.dual_gap_, held.dual_gap_, rtol=1e-8)
    assert_allclose(ours.objective_, held.objective_, rtol=1e-10)


def test_has_the_one_fitted_form():
    X, y = make_data()
    model = LocalCodingSVC(15, random_state=0).fit(X, y)
    assert model.mosaic_.n_tiles == 15
    assert model.mosaic_.coef.shape == (0, 4, 2)  # tiles are only a number
    assert_allclose(model.decision_function(X), code_matrix(model, X) @ model.intercept_, atol=1e-12)


def test_is_a_linear_svm_on_the_codes():
    X, y = make_data()
    settings = dict(loss="hinge", C=3.0, tol=1e-9, max_iter=50_000, random_state=0)
    ours = LocalCodingSVC(15, **settings).fit(X, y)
    theirs = sklearn.svm.LinearSVC(fit_intercept=False, **settings).fit(code_matrix(ours, X), y)
    assert_allclose(ours.intercept_.T, theirs.coef_, atol=2e-3)
    signs = np.where(y[:, None] == ours.classes_, 1, -1)
    slack = np.maximum(0, 1 - signs * theirs.decision_function(code_matrix(ours, X))).sum(axis=0)
    assert_allclose(ours.objective_, 0.5 * (theirs.coef_**2).sum(axis=1) + 3.0 * slack, rtol=1e-6)


def test_more_general_model_has_a_lower_objective():
    """LL-SVM minimizes over more, from the same point: equation 15 as an inequality."""
    X, y = make_data()
    settings = dict(n_anchors=10, anchors="kmeans", coding="softmax", C=1.0, loss="hinge", random_state=0)
    settings |= dict(tol=1e-8, max_iter=20_000)
    assert (LocallyLinearSVC(**settings).fit(X, y).objective_ < LocalCodingSVC(**settings).fit(X, y).objective_).all()


@pytest.mark.parametrize("storage", [sparse.csr_array, lambda X: X.astype(np.float32)])
def test_storage_does_not_matter(storage):
    X, y = make_data()
    settings = dict(anchors=X[:12], code_scale=2.0, C=1.0, tol=1e-6, max_iter=20_000, random_state=0)
    dense = LocalCodingSVC(**settings).fit(X, y)
    other = LocalCodingSVC(**settings).fit(storage(X), y)
    assert_allclose(other.decision_function(storage(X)), dense.decision_function(X), atol=2e-5)


def test_stochastic_solver_reaches_the_optimum():
    X, y = make_data()
    model = LocalCodingSVC(12, C=1.0, tol=1e-6, random_state=0).fit(X, y)
    exact = model.objective_
    found = model.set_params(solver="sgd", max_iter=200).fit(X, y)
    assert (found.objective_ < 1.01 * exact).all()
