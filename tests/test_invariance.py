"""Numerics: the order of the rows, the unit of the features, rows on centers, likelihoods far from one."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from svmosaic import (
    ClusteredSVC,
    GaussianMixtureClassifier,
    KernelSVC,
    KMeansSVC,
    LinearSVC,
    LocalCodingSVC,
    LocallyLinearSVC,
    MixtureSVC,
    NeighborsSVC,
)
from svmosaic.datasets import make_xor

X, Y = make_xor(random_state=0)
CENTERS = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
TIGHT = {"tol": 1e-9, "max_iter": 100_000}
# With the centers given: the draws of k-means++ depend on the order of the rows.
FIXED = [
    LinearSVC(**TIGHT),
    LinearSVC(solver="newton", **TIGHT),
    KMeansSVC(clusterer=CENTERS, **TIGHT),
    ClusteredSVC(clusterer=CENTERS, **TIGHT),
    LocallyLinearSVC(anchors=CENTERS, n_neighbors=2, code_scale=1.0, **TIGHT),
    LocallyLinearSVC(
        anchors=CENTERS, n_neighbors=2, code_scale=1.0, multi_class="crammer_singer", loss="hinge", **TIGHT
    ),
    LocalCodingSVC(anchors=CENTERS, n_neighbors=2, code_scale=1.0, **TIGHT),
    KernelSVC(anchors=CENTERS, gamma=1.0, **TIGHT),
    NeighborsSVC(n_neighbors=15, tol=1e-9, max_iter=100_000),
]


@pytest.mark.parametrize("model", FIXED, ids=repr)
def test_the_order_of_the_rows_does_not_matter(model):
    """P is strongly convex: two points within the gap tol * P(0) of its optimum are sqrt(8 tol P(0)) apart at most."""
    order = np.random.RandomState(1).permutation(len(X))
    one, two = clone(model).fit(X, Y), clone(model).fit(X[order], Y[order])
    apart = np.sqrt(8 * 1e-9 * len(X)) * np.sqrt((X**2).sum(axis=1).max() + 1)
    assert_allclose(one.decision_function(X), two.decision_function(X), rtol=0, atol=apart)


@pytest.mark.parametrize("covariance", ["spherical", "diag", "full"])
def test_the_order_of_the_rows_does_not_matter_to_densities(covariance):
    """They grow from the moments of the classes: sums, whose rounding is all that the order changes."""
    order = np.random.RandomState(1).permutation(len(X))
    model = GaussianMixtureClassifier(4, covariance=covariance, tol=1e-3, random_state=0)
    one, two = clone(model).fit(X, Y), clone(model).fit(X[order], Y[order])
    assert one.n_iter_ == two.n_iter_
    assert_allclose(one.log_likelihood_, two.log_likelihood_, rtol=1e-7)
    assert_allclose(one.predict_proba(X), two.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_the_unit_of_the_features(factor):
    """What claims not to depend on it: cells, codes whose sharpness is found from the data, densities."""
    for model in (
        KMeansSVC(4, random_state=0), ClusteredSVC(4, random_state=0),
        LocallyLinearSVC(4, n_neighbors=2, random_state=0),
        LocallyLinearSVC(4, n_neighbors=2, coding="inverse", random_state=0),
    ):  # fmt: skip
        one = clone(model).set_params(max_iter=10_000).fit(X, Y)
        two = (
            clone(model).set_params(max_iter=10_000, C=model.C / factor**2, intercept_scaling=factor).fit(X * factor, Y)
        )
        tile, weight = one.mosaic_.gate.code(X)
        tile_too, weight_too = two.mosaic_.gate.code(X * factor)
        np.testing.assert_array_equal(tile, tile_too)
        if weight is not None:
            assert_allclose(weight, weight_too, atol=1e-6)
    mixture = GaussianMixtureClassifier(2, max_iter=10, random_state=0)
    assert (clone(mixture).fit(X, Y).predict(X) == clone(mixture).fit(X * factor, Y).predict(X * factor)).mean() > 0.99


@pytest.mark.parametrize("coding", ["softmax", "inverse", "llc", "lle"])
def test_rows_on_anchors(coding):
    model = LocallyLinearSVC(anchors=X[:12], n_neighbors=4, coding=coding, random_state=0).fit(X, Y)
    assert np.isfinite(model.decision_function(X[:12])).all()
    assert np.isfinite(model.decision_function(np.repeat(X[:1], 5, axis=0))).all()


@pytest.mark.parametrize("distance", [1e3, 1e8, 1e30])
@pytest.mark.parametrize(
    "model", [MixtureSVC(3, max_iter=5, random_state=0), GaussianMixtureClassifier(2, random_state=0)]
)
def test_rows_far_from_everything(model, distance):
    """exp(-distance^2) is zero for all tiles alike; in the log domain their ratios are still known."""
    model = clone(model).fit(X, Y)
    far = X[:20] * distance
    assert np.isfinite(model.decision_function(far)).all()
    if hasattr(model, "predict_proba"):
        probabilities = model.predict_proba(far)
        assert np.isfinite(probabilities).all()
        assert_allclose(probabilities.sum(axis=1), 1.0)
