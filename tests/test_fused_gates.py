"""Gates of the mixtures and of projections, inside the scoring engine."""

import pickle

import numpy as np
import pytest
import reference
from fused_gates import FIXED_WIDTH, KINDS, random_gate, weights_by_formula
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from svmosaic.model.mosaic import LINKS, Mosaic


def all_weights(gate, X):
    tile, weight = gate.code(X)
    dense = np.zeros((X.shape[0], gate.n_tiles))
    np.put_along_axis(dense, tile, weight, axis=1)
    return dense


def random_mosaic(rng, kind, link, *, n_tiles=6, n_outputs=3, n_features=5, sharpness=1.0):
    gate = random_gate(rng, kind, n_tiles, n_features, sharpness)
    coef = rng.standard_normal((gate.n_tiles, n_outputs, n_features))
    return Mosaic(gate, coef, rng.standard_normal((gate.n_tiles, n_outputs)), link)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_those_of_the_formulas(kind, dtype):
    rng = np.random.default_rng(0)
    gate = random_gate(rng, kind)
    X = (rng.standard_normal((50, 5)) + 2.0).astype(dtype)
    tolerance = 1e-12 if dtype == np.float64 else 2e-5 if kind.startswith(FIXED_WIDTH) else 2e-7
    assert_allclose(all_weights(gate, X), weights_by_formula(gate, X), atol=tolerance)
    assert_allclose(all_weights(gate, sparse.csr_array(X)), weights_by_formula(gate, X), atol=tolerance)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.startswith(FIXED_WIDTH)])
def test_weights_below_rounding_are_zero_and_no_others(kind):
    rng = np.random.default_rng(1)
    gate = random_gate(rng, kind, n_tiles=12, sharpness=20.0)
    X = rng.standard_normal((60, 5)) + 2.0
    for dtype in (np.float32, np.float64):
        rows = X.astype(dtype)
        exact, found = weights_by_formula(gate, rows), all_weights(gate, rows)
        share = exact / exact.sum(axis=1, keepdims=True)
        assert (found[share < 0.9 * np.finfo(dtype).eps] == 0).all()
        assert (found[share > 1.1 * np.finfo(dtype).eps] > 0).all()
        assert (found == 0).mean() > 0.3
        assert_allclose(found[found > 0], exact[found > 0], rtol=1e-9)


# Tiles of one row are few or many, and cheap or not: tile by tile, on all, and some rows each way.
SHAPES = [
    dict(n_tiles=4, n_outputs=1, n_features=3, sharpness=1.0),
    dict(n_tiles=30, n_outputs=1, n_features=40, sharpness=0.3),
    dict(n_tiles=30, n_outputs=7, n_features=40, sharpness=0.3),
]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("kind", KINDS)
def test_engine_row_batch_sparse_and_reference_agree(kind, link, shape, dtype):
    rng = np.random.default_rng(2)
    mosaic = random_mosaic(rng, kind, link, **shape)
    X = (rng.standard_normal((30, shape["n_features"])) + 2.0).astype(dtype)
    expected = reference.scores(X, *mosaic.gate.code(X), mosaic.coef, mosaic.intercept, link)
    tolerance = dict(atol=1e-10, rtol=1e-10) if dtype == np.float64 else dict(atol=2e-4, rtol=1e-4)
    scores = mosaic.decision_function(X)
    assert_allclose(scores, expected, **tolerance)
    assert_allclose(mosaic.decision_function(sparse.csr_array(X)), expected, **tolerance)
    predictor = mosaic.compile()
    assert predictor._mosaic is None, "packed whole: nothing of it is evaluated in Python"
    assert_array_equal(predictor.decision_function(X).reshape(scores.shape), scores)
    rows = np.array([predictor.decision_function(x) for x in X]).reshape(scores.shape)
    assert_allclose(rows, expected, **tolerance)
    again = pickle.loads(pickle.dumps(predictor))
    assert_array_equal(again.decision_function(X).reshape(scores.shape), scores)


@pytest.mark.parametrize("kind", KINDS)
def test_the_bits_of_a_row_depend_on_nothing_else(kind):
    """Neither on the number of threads, nor on the rows beside it, which may go another way."""
    rng = np.random.default_rng(3)
    mosaic = random_mosaic(rng, kind, "vote", n_tiles=30, n_outputs=2, n_features=40, sharpness=0.05)
    X = rng.standard_normal((1500, 40)) * 10 ** rng.uniform(-1, 2, (1500, 1)) + 2.0
    for storage in (np.asarray, sparse.csr_array):
        rows = storage(X)
        whole = mosaic.decision_function(rows)
        for n_jobs in (2, 5):
            assert_array_equal(mosaic.decision_function(rows, n_jobs=n_jobs), whole)
        assert_array_equal(mosaic.decision_function(rows[1000:1037]), whole[1000:1037])
    if not kind.startswith(FIXED_WIDTH):
        few = mosaic._scorer(np.dtype(np.float64)).few
        needed = np.count_nonzero(mosaic.gate.code(X)[1], axis=1)
        assert (needed <= few).any(), "this test is about both ways"
        assert (needed > few).any(), "this test is about both ways"


@pytest.mark.parametrize("kind", KINDS)
def test_rows_out_of_all_reach_stay_finite(kind):
    rng = np.random.default_rng(4)
    mosaic = random_mosaic(rng, kind, "vote")
    X = np.concatenate([[np.zeros(5), np.full(5, 1e30), np.full(5, -1e-30)], rng.standard_normal((4, 5)) * 1e15])
    for dtype in (np.float32, np.float64):
        assert np.isfinite(mosaic.decision_function(X.astype(dtype))).all()
