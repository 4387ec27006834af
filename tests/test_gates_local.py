"""Local codes against slow references."""

import numpy as np
import pytest
import reference_codes
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from svmosaic.estimators._anchors import code_gate
from svmosaic.gates import DistanceGate

SCALES = {"inverse": 1.0, "softmax": 0.7, "llc": 1e-2, "lle": 1e-2}
STORAGES = {
    "dense": (np.asarray, 1e-9),
    "csr": (sparse.csr_array, 1e-9),
    "float32": (lambda X: X.astype(np.float32), 2e-3),
    "csr32": (lambda X: sparse.csr_array(X.astype(np.float32)), 2e-3),
}


def dense_codes(gate, X):
    tile, weight = gate.code(X)
    codes = np.zeros((X.shape[0], gate.n_tiles))
    np.put_along_axis(codes, tile.astype(int), weight, axis=1)
    return codes


def make_rows(seed=0, n_rows=60, n_features=7, n_anchors=11):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features)) * (rng.random((n_rows, n_features)) < 0.6)
    return X, rng.standard_normal((n_anchors, n_features))


@pytest.mark.parametrize("width", [1, 4, 11])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("coding", SCALES)
def test_codes_are_those_of_the_reference(coding, storage, width):
    X, anchors = make_rows()
    store, tolerance = STORAGES[storage]
    gate = DistanceGate(anchors, coding, width, SCALES[coding])
    codes = dense_codes(gate, store(X))
    expected = [reference_codes.code(x, anchors, coding, width, SCALES[coding]) for x in X]
    assert_allclose(codes, expected, atol=tolerance)
    assert_allclose(codes.sum(axis=1), 1.0, rtol=1e-12)


def nearest_first(X, centers, width):
    distance = ((X[:, None] - centers.astype(float)) ** 2).sum(axis=2)
    return np.argsort(distance, axis=1, kind="stable")[:, :width]


@pytest.mark.parametrize("width", [2, 5, 8, 9])
@pytest.mark.parametrize("n_anchors", [32, 33, 47, 100, 131])
def test_the_nearest_of_many_anchors_in_order_and_of_equals_the_first(n_anchors, width):
    rng = np.random.default_rng(n_anchors)
    anchors = rng.standard_normal((n_anchors, 6))[rng.integers(n_anchors // 2, size=n_anchors)]
    X = rng.standard_normal((200, 6))
    for order in (np.arange(n_anchors), np.argsort(anchors[:, 0], kind="stable")):
        tile, _ = DistanceGate(anchors[order], "softmax", width).code(X)
        assert_array_equal(tile, nearest_first(X, anchors[order], width))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_anchors", [32, 64, 128])
def test_many_anchors_that_are_equally_near(n_anchors, dtype):
    """Whole numbers, whose distances are exact: many more are tied than are asked for."""
    rng = np.random.default_rng(n_anchors)
    half = rng.integers(-1, 2, (n_anchors // 2, 3))
    anchors = np.vstack([half, -half])[rng.permutation(n_anchors)].astype(dtype)
    X = rng.integers(-2, 3, (300, 3)).astype(dtype)
    tile, _ = DistanceGate(anchors, "softmax", 8).code(X)
    assert_array_equal(tile, nearest_first(X, anchors, 8))


def test_rows_beyond_all_numbers_still_get_tiles():
    anchors = np.random.default_rng(0).standard_normal((64, 3))
    X = np.array([[1e300, -1e300, 1e308], [np.finfo(float).max] * 3])
    tile, _ = DistanceGate(1e100 * anchors, "softmax", 8).code(X)
    assert all(len(set(row)) == 8 and 0 <= min(row) <= max(row) < 64 for row in tile.tolist())


@pytest.mark.parametrize("coding", SCALES)
def test_row_on_an_anchor(coding):
    _, anchors = make_rows()
    gate = DistanceGate(anchors, coding, 4, {**SCALES, "softmax": 1e6}[coding])
    codes = dense_codes(gate, anchors)
    assert_allclose(codes.sum(axis=1), 1.0, rtol=1e-12)
    if coding in ("inverse", "softmax"):
        assert_array_equal(codes, np.eye(len(anchors)))
    else:
        assert (codes.argmax(axis=1) == np.arange(len(anchors))).all()


def test_reconstruction_codes_reconstruct():
    """With more anchors than dimensions and hardly any ridge, codes give the row back."""
    rng = np.random.default_rng(0)
    X, anchors = rng.standard_normal((50, 3)), rng.standard_normal((9, 3))
    for coding in ("llc", "lle"):
        codes = dense_codes(DistanceGate(anchors, coding, 6, 1e-10), X)
        assert_allclose(codes @ anchors, X, atol=1e-5)


@pytest.mark.parametrize("coding", SCALES)
def test_moving_everything_changes_nothing(coding):
    X, anchors = make_rows()
    gate = DistanceGate(anchors, coding, 4, SCALES[coding])
    moved = DistanceGate(anchors + 1000.0, coding, 4, SCALES[coding])
    assert_allclose(dense_codes(moved, X + 1000.0), dense_codes(gate, X), atol=1e-6)


@pytest.mark.parametrize("coding", SCALES)
def test_same_bits_whatever_the_number_of_threads(coding):
    X, anchors = make_rows(n_rows=2000)
    gate = DistanceGate(anchors, coding, 4, SCALES[coding])
    for one, many in zip(gate.code(X, 1), gate.code(X, 3), strict=True):
        assert_array_equal(one, many)


def test_soft_assignment_is_the_softmax_over_all_anchors():
    X, anchors = make_rows()
    gate = DistanceGate(anchors, "softmax", len(anchors), 0.5)
    logits = -0.5 * ((X[:, None] - anchors) ** 2).sum(axis=2)
    expected = np.exp(logits - logits.max(axis=1, keepdims=True))
    assert_allclose(dense_codes(gate, X), expected / expected.sum(axis=1, keepdims=True), atol=1e-12)


def test_scale_found_from_the_data_is_free_of_units():
    X, anchors = make_rows()
    rng = np.random.RandomState
    gate = code_gate(X, anchors, "softmax", 4, None, rng(0))
    other = code_gate(1e3 * X, 1e3 * anchors, "softmax", 4, None, rng(0))
    assert_allclose(other.scale * 1e6, gate.scale, rtol=1e-9)
    assert_allclose(dense_codes(other, 1e3 * X), dense_codes(gate, X), atol=1e-9)
