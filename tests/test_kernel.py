"""Kernel machines over anchors: with all rows as anchors, scikit-learn's; and the mosaic that they are."""

import numpy as np
import pytest
import sklearn.svm
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler

from svmosaic import KernelSVC, KernelSVR, LinearSVC, MosaicClassifier, load
from svmosaic.datasets import make_xor
from svmosaic.model.blending import blend

# So large a constant that the bias is hardly penalized, as in other kernel machines.
FREE_BIAS = {"intercept_scaling": 100.0}


def scaled(X):
    return StandardScaler().fit_transform(X)


def make_data():
    X, y = make_xor(300, spread=0.5, random_state=0)
    return X, y + 2 * (X[:, 0] > 0.3)


def test_with_all_rows_as_anchors_it_is_the_kernel_svm():
    X, y = load_breast_cancer(return_X_y=True)
    X = scaled(X)
    ours = KernelSVC(anchors=X, C=1.0, loss="hinge", tol=1e-7, **FREE_BIAS).fit(X, y)
    theirs = sklearn.svm.SVC(C=1.0, tol=1e-6).fit(X, y)
    assert ours.gamma_ == pytest.approx(1.0 / X.shape[1])
    assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)


def test_with_all_rows_as_anchors_it_is_support_vector_regression():
    X, y = load_diabetes(return_X_y=True)
    X = scaled(X)
    ours = KernelSVR(anchors=X, C=1.0, loss="epsilon_insensitive", epsilon=0.1, tol=1e-7, **FREE_BIAS).fit(X, y)
    unit = (y - y.mean()) / y.std()
    theirs = sklearn.svm.SVR(C=1.0, epsilon=0.1, tol=1e-6).fit(X, unit)
    assert_allclose((ours.predict(X) - y.mean()) / y.std(), theirs.predict(X), atol=1e-4)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_objective_is_what_is_said(loss):
    """Recomputed from the coefficients; the certified gap bounds how far it is from that of other coefficients."""
    X, y = make_data()
    model = KernelSVC(20, C=3.0, loss=loss, intercept_scaling=2.0, random_state=0).fit(X, y)
    K = rbf_kernel(model.anchors_, gamma=model.gamma_)
    signs = np.where(y[:, None] == model.classes_, 1, -1)
    scores = rbf_kernel(X, model.anchors_, gamma=model.gamma_) @ model.kernel_coef_ + model.intercept_
    assert_allclose(model.decision_function(X), scores, atol=1e-8)

    def objective(coef, intercept, scores):
        slack = np.maximum(0.0, 1.0 - signs * scores) ** (2 if loss == "squared_hinge" else 1)
        size = np.einsum("ac,ab,bc->c", coef, K, coef) + (intercept / 2.0) ** 2
        return 0.5 * size + 3.0 * slack.sum(axis=0)

    found = objective(model.kernel_coef_, model.intercept_, scores)
    assert_allclose(found, model.objective_, rtol=1e-6)
    rng = np.random.default_rng(0)
    for _ in range(5):
        coef = model.kernel_coef_ + 1e-2 * rng.standard_normal(model.kernel_coef_.shape)
        other = objective(coef, model.intercept_, scores + rbf_kernel(X, model.anchors_, gamma=model.gamma_)
                          @ (coef - model.kernel_coef_))  # fmt: skip
        assert (other > found - model.dual_gap_).all()


def test_a_few_hundred_anchors_are_nearly_as_good_as_all_rows():
    X, y = load_digits(return_X_y=True)
    train, test = slice(None, None, 2), slice(1, None, 2)
    theirs = sklearn.svm.SVC(C=10.0).fit(X[train], y[train]).score(X[test], y[test])
    linear = LinearSVC(random_state=0).fit(X[train] / 16, y[train]).score(X[test] / 16, y[test])
    ours = KernelSVC(256, random_state=0).fit(X[train], y[train]).score(X[test], y[test])
    assert ours > theirs - 0.015
    assert ours > linear + 0.01


def test_is_a_mosaic_of_constants():
    X, y = make_data()
    model = KernelSVC(20, random_state=0).fit(X, y)
    assert model.mosaic_.coef.shape == (0, 4, 2)
    assert (model.kernel_coef_.shape, model.intercept_.shape) == ((20, 4), (4,))
    assert not hasattr(model, "feature_importances_")
    both = blend([model.mosaic_, LinearSVC(random_state=0).fit(X, y).mosaic_])
    assert both.n_tiles == 21  # the constant and the linear model share a tile


@pytest.mark.parametrize("storage", [np.float32, sparse.csr_array, lambda X: sparse.csr_array(X.astype(np.float32))])
def test_rows_in_other_forms(storage):
    X, y = make_data()
    settings = {"anchors": X[:25], "gamma": 2.0, "tol": 1e-8, "random_state": 0}
    dense = KernelSVC(**settings).fit(X, y)
    other = KernelSVC(**settings).fit(storage(X), y)
    assert_allclose(other.decision_function(storage(X)), dense.decision_function(X), atol=2e-3)


def test_same_bits_whatever_n_jobs():
    X, y = make_data()
    one, two = (KernelSVC(20, n_jobs=n, random_state=0).fit(X, y).decision_function(X) for n in (1, 2))
    assert_array_equal(one, two)


def test_anchors_that_are_equal_or_many():
    """Their kernel has no inverse; directions that are only rounding are left out."""
    X, y = make_data()
    anchors = np.vstack([X[:20], X[:20] + 1e-12])
    twice = KernelSVC(anchors=anchors, gamma=1.0, tol=1e-8, random_state=0).fit(X, y)
    once = KernelSVC(anchors=X[:20], gamma=1.0, tol=1e-8, random_state=0).fit(X, y)
    assert_allclose(twice.decision_function(X), once.decision_function(X), atol=1e-3)
    assert np.isfinite(KernelSVC(300, gamma=1e-6, random_state=0).fit(X, y).decision_function(X)).all()


def test_constant_rows_and_bad_parameters():
    X, y = make_data()
    assert KernelSVC(4, random_state=0).fit(np.ones((20, 2)), [0, 1] * 10).gamma_ == 1.0
    with pytest.raises(ValueError, match="gamma"):
        KernelSVC(gamma=0.0).fit(X, y)
    with pytest.raises(ValueError, match="gamma"):
        KernelSVC(gamma="auto").fit(X, y)
    with pytest.raises(ValueError, match="anchors='class' needs classes"):
        KernelSVR(anchors="class").fit(X, X[:, 0])


def test_the_search_finds_it_and_scales_its_kernel(tmp_path):
    """A ring around a ball in units far from one, which few other models of so few rows follow as well."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((240, 6))
    y = (X**2).sum(axis=1) > 5.3
    X = 1e3 + X * [1.0, 10.0, 100.0, 1.0, 10.0, 100.0]
    model = MosaicClassifier(time_budget=None, families=("linear", "kernel"), blend=False, random_state=0).fit(X, y)
    assert isinstance(model.best_estimator_, KernelSVC)
    assert 0.1 < model.best_estimator_.gamma_ * 6 < 10.0
    assert model.best_score_ > 0.85
    model.save(tmp_path / "model.svmosaic")
    assert_array_equal(load(tmp_path / "model.svmosaic").predict(X), model.predict(X))
