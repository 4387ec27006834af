"""Sums of Gaussian kernels in the core, beside the plain formulas."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import logsumexp

from svmosaic import GaussianMixtureClassifier, _core
from svmosaic.densities.kernel_predictor import log_sums
from svmosaic.densities.kernel_sums import kernel_sums, log_kernel_sums


def problem(n_centers, n_features=4, n_rows=70, far=0.0, seed=0):
    rng = np.random.default_rng(seed)
    return far + rng.standard_normal((n_rows, n_features)), far + rng.standard_normal((n_centers, n_features)), rng


# Around the number of kernels that are taken at a time, with and without a rest.
@pytest.mark.parametrize("n_centers", [1, 7, 512, 513, 1300])
@pytest.mark.parametrize("far", [0.0, 1e4])
def test_kernel_sums_are_those_of_the_formula(n_centers, far):
    X, centers, rng = problem(n_centers, far=far)
    gamma, coef = rng.uniform(0.1, 2.0, n_centers), rng.standard_normal((n_centers, 3))
    expected = np.exp(-gamma * ((X[:, None] - centers) ** 2).sum(axis=2)) @ coef
    assert_allclose(kernel_sums(X, centers, gamma, coef), expected, atol=1e-12 * np.abs(coef).sum())
    assert_allclose(kernel_sums(sparse.csr_array(X), centers, gamma, coef), expected, atol=1e-12 * np.abs(coef).sum())


@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("spread", [1.0, 300.0])
def test_log_sums_do_not_underflow(each, spread):
    """At a distance of 300 every density is below 1e-300, and their logarithms are still exact."""
    X, centers, rng = problem(1100)
    X, centers = spread * X, spread * centers
    precision = rng.uniform(0.5, 2.0, (1100, 4 if each else 1))
    log_weight, owner = rng.standard_normal(1100), rng.integers(3, size=1100)
    terms = log_weight - 0.5 * (precision * (X[:, None] - centers) ** 2).sum(axis=2)
    expected = np.column_stack([logsumexp(terms[:, owner == k], axis=1) for k in range(3)])
    found = log_kernel_sums(X, centers, precision, log_weight, owner, 4)
    assert_allclose(found[:, :3], expected, rtol=1e-9, atol=1e-9)
    assert (found[:, 3] == -np.inf).all(), "a class without densities"


def test_bits_do_not_depend_on_threads_or_neighbours():
    X, centers, rng = problem(600, n_rows=1500)
    gamma, coef, owner = rng.uniform(0.1, 2.0, 600), rng.standard_normal((600, 2)), rng.integers(2, size=600)
    one = kernel_sums(X, centers, gamma, coef)
    logs = log_kernel_sums(X, centers, gamma[:, None], coef[:, 0], owner, 2)
    for n_jobs in (2, 3):
        assert_array_equal(kernel_sums(X, centers, gamma, coef, n_jobs), one)
        assert_array_equal(log_kernel_sums(X, centers, gamma[:, None], coef[:, 0], owner, 2, n_jobs), logs)
    assert_array_equal(kernel_sums(X[501:520], centers, gamma, coef), one[501:520])


@pytest.mark.parametrize("pooling", ["all", "class", "none"])
@pytest.mark.parametrize("covariance", ["spherical", "diag", "full"])
def test_class_densities_are_sums_of_the_terms_of_em(covariance, pooling):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((150, 3)) @ rng.standard_normal((3, 3)) + 50.0
    y = (X[:, 0] > 50).astype(int) + (X[:, 1] > 51)
    model = GaussianMixtureClassifier(3, covariance=covariance, pooling=pooling, random_state=0).fit(X, y)
    densities = model._densities
    for rows in (X, X + 1e4):
        expected = log_sums(densities.log_joint(rows), densities.owner, 3)
        assert_allclose(densities.class_log_joint(rows), expected, rtol=1e-9, atol=1e-9)
    assert_array_equal(densities.class_log_joint(X, n_jobs=2), densities.class_log_joint(X))


def test_the_core_refuses_shapes_that_do_not_fit():
    planes, offset, origin = np.zeros((5, 4)), np.zeros(5), np.zeros(3)
    starts = np.array([0, 5])
    _core.KernelBank(planes, offset, origin, starts)
    for arguments, words in [
        ((planes[:, :3].copy(), offset, origin, starts), "planes must have"),
        ((planes, offset[:4].copy(), origin, starts), "offset must have one entry"),
        ((planes, offset, origin, np.array([0, 4])), "starts must run"),
        ((planes, offset, origin, np.array([0, 3, 2, 5])), "starts must not decrease"),
    ]:
        with pytest.raises(ValueError, match=words):
            _core.KernelBank(*arguments)
