"""Curves are found, and those of the tile that sees a row summed, in blocks of rows: for one row the same bits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from svmosaic.gates import DistanceGate, SingleCell
from svmosaic.maps import Pieces
from svmosaic.model.mosaic import LINKS, Mosaic


def knots_of(rng, n_columns, most):
    """A few columns straight, the others with up to so many knots."""
    counts = [0 if f % 3 == 0 else int(rng.integers(2, most + 1)) for f in range(n_columns)]
    counts[-1] = most
    return [np.unique(rng.standard_normal(n).round(6)) if n > 1 else np.zeros(0) for n in counts]


def tile_of(rng, knots, n_outputs, link="identity"):
    n_columns = len(knots)
    reach = np.where([len(u) > 0 for u in knots], 3.0, np.inf)
    pieces = Pieces.of_knots(knots, rng.standard_normal(n_columns), rng.uniform(0.5, 2.0, n_columns), reach)
    coef = rng.standard_normal((1, n_outputs, pieces.n_features))
    return Mosaic(SingleCell(), coef, rng.standard_normal((1, n_outputs)), link, pieces)


def tiles_of(rng, knots, n_outputs, link, coding, width):
    """Several tiles of cells, or of codes over a few anchors; one tile is only a number."""
    alone = tile_of(rng, knots, n_outputs)
    gate = DistanceGate(rng.standard_normal((5, len(knots))), coding, width, factor=rng.uniform(0.5, 2.0, 5))
    coef = rng.standard_normal((5, n_outputs, alone.features.n_features))
    coef[3] = 0.0
    return Mosaic(gate, coef, rng.standard_normal((5, n_outputs)), link, alone.features)


def hard_rows(rng, knots, n_rows=203):
    """Rows between, on and beyond the knots, some far away."""
    X = rng.standard_normal((n_rows, len(knots)))
    X[::7] *= 100.0
    for f, u in enumerate(knots):
        if len(u):
            X[1::5, f] = rng.choice(u, len(X[1::5]))
            X[2::11, f] = np.nextafter(rng.choice(u, len(X[2::11])), np.inf)
    return X


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("n_outputs", [1, 2, 4, 5])
@pytest.mark.parametrize(("n_columns", "most"), [(4, 5), (12, 18), (12, 34), (70, 16), (5, 120)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_are_those_of_the_expanded_rows(link, n_outputs, n_columns, most, dtype):
    rng = np.random.default_rng(n_columns + most)
    knots = knots_of(rng, n_columns, most)
    mosaic, X = tile_of(rng, knots, n_outputs, link), hard_rows(rng, knots)
    X = X.astype(dtype)
    found = mosaic.decision_function(X)
    if link == "identity":
        coef, intercept = mosaic.coef[0], mosaic.intercept
        expected = mosaic.features.expand(X.astype(np.float64)) @ coef.T + intercept
        scale = np.abs(mosaic.features.expand(X.astype(np.float64))) @ np.abs(coef).T + np.abs(intercept)
        # In float32 the slope between knots is what the rounding of the knots makes of it.
        assert (np.abs(found - expected) <= (1e-12 if dtype == np.float64 else 2e-4) * scale).all()
    if dtype == np.float64:
        assert_allclose(mosaic.decision_function(sparse.csr_array(X)), found, atol=1e-9)
    predictor = mosaic.compile()
    assert_array_equal([predictor.decision_function(x) for x in X], np.squeeze(found))
    for n in (2, 7, 17, 100):
        assert_array_equal(mosaic.decision_function(X[:n]), found[:n])


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("n_outputs", [1, 3, 5])
@pytest.mark.parametrize(("n_columns", "most"), [(2, 4), (12, 18), (12, 34), (40, 16)])
@pytest.mark.parametrize(("coding", "width"), [("nearest", 1), ("inverse", 2), ("inverse", 4)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_on_tiles_of_their_own(link, n_outputs, n_columns, most, coding, width, dtype):
    rng = np.random.default_rng(n_columns + most + width)
    knots = knots_of(rng, n_columns, most)
    mosaic = tiles_of(rng, knots, n_outputs, link, coding, width)
    X = hard_rows(rng, knots).astype(dtype)
    found = mosaic.decision_function(X)
    if link == "identity":
        tile, weight = mosaic.gate.code(X)
        Z = mosaic.features.expand(X.astype(np.float64)).toarray()
        terms = np.einsum("rawf,rf->raw", mosaic.coef[tile], Z) + mosaic.intercept[tile]
        size = np.einsum("rawf,rf->raw", np.abs(mosaic.coef[tile]), np.abs(Z)) + np.abs(mosaic.intercept[tile])
        expected, scale = (np.einsum("ra,raw->rw", weight, values) for values in (terms, size))
        error = np.abs(np.reshape(found, expected.shape) - expected)
        assert (error <= (1e-12 if dtype == np.float64 else 2e-4) * scale).all()
    predictor = mosaic.compile()
    alone = [predictor.decision_function(x) for x in X]
    if width == 1:
        assert_array_equal(alone, np.squeeze(found))
    else:  # a batch may add up the tiles of a row in another order
        assert_allclose(alone, np.squeeze(found), rtol=1e-9, atol=1e-12 * np.abs(found).max())
    for n in (2, 7, 17, 100):
        assert_array_equal(mosaic.decision_function(X[:n]), found[:n])


def test_knots_that_are_equal_in_single_precision_are_a_step():
    knots = [np.array([-1.0, 0.5, 0.5 + 1e-12, 2.0]), np.array([0.0, 1.0, 1.0 + 1e-12])]
    mosaic = tile_of(np.random.default_rng(0), knots, 1)
    X = np.linspace(-3, 3, 121)[:, None] * np.ones((1, 2))
    exact = mosaic.decision_function(X)
    assert np.isfinite(exact).all()
    away = (np.abs(X - 0.5) > 1e-3).all(axis=1) & (np.abs(X - 1.0) > 1e-3).all(axis=1)
    assert_allclose(mosaic.decision_function(X.astype(np.float32))[away], exact[away], rtol=1e-4, atol=1e-4)


def test_knots_that_are_too_far_apart_for_a_difference():
    knots = [np.array([-1.5e308, 0.0, 1.5e308])]
    mosaic = tile_of(np.random.default_rng(0), knots, 1)
    found = mosaic.decision_function(np.array([[-1.7e308], [0.0], [1.7e308], [1e300]] * 5))
    assert np.isfinite(found).all()
