"""The C++ core against the reference; bad arguments give an error, never a crash."""

import gc
import subprocess
import sys
import textwrap
import threading

import needs
import numpy as np
import pytest
import reference
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.cluster import kmeans_plusplus

from svmosaic import _core
from svmosaic.gates.placement import seed_centers
from svmosaic.rows import shuffled

N, D = 6, 3


def dense_rows(n=N, d=D):
    return _core.Rows.dense(np.arange(n * d, dtype=np.float64).reshape(n, d), 1.0)


def design(rows, n_blocks=2, width=1, n=N):
    return _core.Design(rows, np.zeros((n, width), np.int32), None, None, n_blocks)


def sparse_rows(data=(1.0, 2.0), indices=(0, 2), indptr=(0, 1, 2), n_features=3):
    return _core.Rows.sparse(np.array(data), np.array(indices, np.int32), np.array(indptr, np.int64), n_features, 1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"indptr": ()}, "indptr must not be empty"),
        ({"indptr": (0, 1)}, "indptr must run from 0"),
        ({"indptr": (1, 1, 2)}, "indptr must run from 0"),
        ({"indptr": (0, 3, 2)}, "indptr must not decrease"),
        ({"indices": (0,)}, "same length"),
        ({"indices": (0, 3)}, "column index is out of range"),
        ({"indices": (-1, 0)}, "column index is out of range"),
        ({"data": (), "indices": (), "indptr": (0,), "n_features": -1}, "n_features must not be negative"),
    ],
)
def test_bad_sparse_rows(arguments, message):
    with pytest.raises(ValueError, match=message):
        sparse_rows(**arguments)


@pytest.mark.parametrize(
    ("block", "coef", "index", "n_blocks", "message"),
    [
        (np.full((N, 1), 2), None, None, 2, "block is out of range"),
        (np.full((N, 1), -1), None, None, 2, "block is out of range"),
        (np.zeros((N, 1)), np.ones((N, 2)), None, 2, "coef and block must have the same shape"),
        (np.zeros((N + 1, 1)), None, None, 2, "one line a data row"),
        (np.zeros((2, 1)), None, [0, N], 2, "row index is out of range"),
        (np.zeros((2, 1)), None, [-1, 0], 2, "row index is out of range"),
        (np.zeros((2, 1)), None, [0], 2, "index must have one entry"),
        (np.zeros((N, 0)), None, None, 0, "n_blocks must be at least 1"),
    ],
)
def test_bad_design(block, coef, index, n_blocks, message):
    index = None if index is None else np.array(index, np.int32)
    with pytest.raises(ValueError, match=message):
        _core.Design(dense_rows(), np.asarray(block, np.int32), coef, index, n_blocks)


def descend(right, **changes):
    """A call of dual descent that is right but for the changes."""
    order = np.arange(N, dtype=np.int32)
    arguments = {
        "rows": right, "design": design(right), "sign": np.ones(N, np.int8), "threshold": None, "cost": np.ones(N),
        "power": 1, "curvature": np.ones(N), "order": order,
        "state": _core.DescentState(np.arange(4, dtype=np.uint64), N), "alpha": np.zeros(N),
        "weights": np.zeros((2, D + 1)), "aim": 0.0, "max_epochs": 2, "max_seconds": 1.0,
    }  # fmt: skip
    return _core.dual_descent(**{**arguments, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sign": np.ones(N - 1, np.int8)}, "sign must"),
        ({"cost": np.ones(N + 1)}, "cost must"),
        ({"threshold": np.ones(N + 1)}, "threshold must"),
        ({"power": 3}, "power of the loss must be 1 or 2"),
        ({"curvature": np.ones(1)}, "curvature must"),
        ({"alpha": np.ones(1)}, "alpha must"),
        ({"weights": np.zeros((1, D + 1))}, "weights must have shape"),
        ({"weights": np.zeros((2, D))}, "weights must have shape"),
        ({"weights": np.zeros((2, D + 1), np.float32)}, "float64 rows need float64 weights"),
        ({"order": np.arange(2, dtype=np.int32)}, "state and order"),
        ({"order": np.full(N, N, dtype=np.int32)}, "order names a row"),
        ({"order": np.full(N, -1, dtype=np.int32)}, "order names a row"),
        ({"state": _core.DescentState(np.arange(4, dtype=np.uint64), -1)}, "state and order"),
        ({"design": design(dense_rows(9), n=9)}, "sign must"),
        ({"rows": dense_rows(2)}, "made for other rows"),
    ],
)
def test_bad_descent(changes, message):
    rows = dense_rows()
    assert descend(rows)[0] == 2
    with pytest.raises(ValueError, match=message):
        descend(rows, **changes)


def test_bad_seed():
    with pytest.raises(ValueError, match="four words"):
        _core.DescentState(np.arange(3, dtype=np.uint64), 1)


def test_bad_passes():
    rows, other = dense_rows(), dense_rows(2)
    d = design(rows)
    y, weights = np.ones(N, np.int8), np.zeros((2, D + 1))
    for bad in (
        lambda: _core.margins(other, d, y, weights, np.empty(N)),
        lambda: _core.margins(rows, d, y[1:], weights, np.empty(N)),
        lambda: _core.margins(rows, d, y, weights[:1], np.empty(N)),
        lambda: _core.margins(rows, d, y, weights, np.empty(N + 1)),
        lambda: _core.accumulate(other, d, y, np.ones(N), weights),
        lambda: _core.accumulate(rows, d, y, np.ones(2), weights),
        lambda: _core.accumulate(rows, d, y, np.ones(N), weights[:1]),
        lambda: _core.squared_norms(rows, np.empty(N - 1)),
        *(
            lambda k=k: _core.evaluate(
                *[v[:-1] if j == k else v for j, v in enumerate((rows, d, y, weights, *[np.ones(N)] * 3))],
                0.0,
                *[np.empty(N - (j == k)) for j in (7, 8, 9)],
                np.empty((2 - (k == 10), D + 1)),
            )
            for k in range(2, 11)
        ),
    ):
        with pytest.raises(ValueError, match=r"must|made for other rows"):
            bad()


def hessians(rows, d, members=(0, 5), offsets=(0, 1, 2), weight=None, out=None):
    _core.tile_hessians(
        rows, d, np.array(members, np.int32), np.array(offsets, np.int64),
        np.ones(N) if weight is None else weight, np.empty((2, D + 1, D + 1)) if out is None else out,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"members": (0, N)}, "member is out of range"),
        ({"members": (-1, 0)}, "member is out of range"),
        ({"offsets": (0, 3, 2)}, "offsets must not decrease"),
        ({"offsets": (0, 1)}, "offsets must run from 0"),
        ({"offsets": ()}, "offsets must run from 0"),
        ({"weight": np.ones(2)}, "weight must have one entry"),
        ({"out": np.empty((1, D + 1, D + 1))}, "out must have shape"),
    ],
)
def test_bad_hessians(changes, message):
    rows = dense_rows()
    hessians(rows, design(rows))
    with pytest.raises(ValueError, match=message):
        hessians(rows, design(rows), **changes)
    with pytest.raises(ValueError, match="made for other rows"):
        hessians(dense_rows(2), design(rows))


def test_bad_response():
    ones = np.ones(4)
    for position in range(6):
        arrays = [ones, ones, ones, ones, np.empty(4), np.empty(4)]
        arrays[position] = np.empty(3)
        with pytest.raises(ValueError, match="one entry per row"):
            _core.respond(*arrays[:4], 0.0, *arrays[4:])
    with pytest.raises(ValueError, match="change must"):
        _core.pull(ones, ones, ones, ones, np.ones(3), 1.0)


def test_results_are_never_written_to_a_copy():
    """An output of the wrong type would be converted, filled and thrown away: it is refused."""
    rows = dense_rows()
    with pytest.raises(TypeError):
        _core.squared_norms(rows, np.empty(N, np.float32))
    with pytest.raises(TypeError):
        _core.squared_norms(rows, np.empty(2 * N)[::2])
    with pytest.raises(TypeError):
        descend(rows, alpha=np.zeros(N, np.float32))
    with pytest.raises(TypeError):
        _core.Rows.dense(np.ones((2, 2), int), 1.0)


def test_arrays_outlive_their_owner():
    X = np.random.RandomState(0).standard_normal((50, 4))
    norms = (X**2).sum(axis=1) + 1.0
    made = sparse.csr_array(X)
    rows = _core.Rows.sparse(made.data.copy(), made.indices.astype(np.int32), made.indptr.astype(np.int64), 4, 1.0)
    d = _core.Design(rows, np.zeros((50, 1), np.int32), np.ones((50, 1)), np.arange(50, dtype=np.int32), 1)
    del made
    gc.collect()
    np.random.RandomState(1).standard_normal(10_000)  # something else in the freed memory
    out = np.empty(50)
    _core.squared_norms(rows, out)
    assert_allclose(out, norms)
    _core.margins(rows, d, np.ones(50, np.int8), np.ones((1, 5)), out)
    assert_allclose(out, X.sum(axis=1) + 1.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_features", [1, 2, 7, 8, 15, 16, 17, 31, 33, 64, 65, 130])
def test_vector_loops_at_every_remainder(n_features, dtype):
    """Products and Hessians where the vector width does not divide the number of features."""
    rng = np.random.RandomState(n_features)
    X = rng.standard_normal((40, n_features)).astype(dtype)
    augmented = reference.augment(X, 0.5)
    v, weight = rng.standard_normal((1, n_features + 1)), rng.uniform(0, 2, 40)
    made = sparse.csr_array(X)
    for rows in (
        _core.Rows.dense(X, 0.5),
        _core.Rows.sparse(made.data, made.indices.astype(np.int32), made.indptr.astype(np.int64), n_features, 0.5),
    ):
        d = _core.Design(rows, np.zeros((40, 1), np.int32), None, None, 1)
        y = np.where(rng.uniform(size=40) > 0.5, 1, -1).astype(np.int8)
        out = np.empty(40)
        _core.margins(rows, d, y, v, out)
        assert_allclose(out, y * (augmented @ v[0]), atol=1e-12)
        total = np.empty_like(v)
        _core.accumulate(rows, d, y, weight, total)
        assert_allclose(total[0], augmented.T @ (weight * y), atol=1e-12)
        hessian = np.empty((1, n_features + 1, n_features + 1))
        _core.tile_hessians(rows, d, np.arange(40, dtype=np.int32), np.array([0, 40], np.int64), weight, hessian)
        assert_allclose(hessian[0], augmented.T @ (weight[:, None] * augmented), atol=1e-11)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"leaf": []}, "a gate needs a leaf"),
        ({"offset": np.zeros(4)}, "offset must have one entry a node"),
        ({"log_prior": np.zeros(2)}, "log_prior must have one entry a node"),
        ({"parent": [-1, -1]}, "parent must have one entry a node"),
        ({"parent": [-1, 1, 0]}, "parents must come before their children"),
        ({"parent": [-2, -1, 0]}, "parents must come before their children"),
        ({"parent": [-1, 0, -1]}, "siblings must be neighbours"),
        ({"leaf": [1, 3]}, "a leaf is out of range"),
        ({"leaf": [-1, 2]}, "a leaf is out of range"),
    ],
)
def test_both_softmax_gates_refuse_what_is_no_tree(change, message):
    parts = {"offset": np.zeros(3), "log_prior": np.zeros(3), "parent": [-1, 0, 0], "leaf": [1, 2], "inside": True}
    given = parts | change
    for name in ("parent", "leaf"):
        given[name] = np.array(given[name], np.int32)
    for build in (
        lambda: _core.SoftmaxTree(np.zeros((3, D + 1)), **given),
        lambda: _core.SoftmaxGateF32(np.zeros((3, D)), origin=np.zeros(D), **given),
        lambda: _core.SoftmaxGateF64(np.zeros((3, D)), origin=np.zeros(D), **given),
    ):
        with pytest.raises(ValueError, match=message):
            build()


@pytest.mark.parametrize("threshold", [None, np.random.RandomState(1).uniform(-1, 2, 200)])
def test_response_is_the_clipped_step(threshold):
    rng = np.random.RandomState(0)
    center, cost, scale = rng.uniform(0, 1, 200), rng.uniform(0.1, 2, 200), 0.7
    margin, change = rng.uniform(-1, 3, 200), rng.standard_normal(200)
    slack = (1 if threshold is None else threshold) - margin
    alpha, curvature = np.empty(200), np.empty(200)
    _core.respond(center, cost, threshold, margin, 0.0, alpha, curvature, scale=scale)
    free = center + scale * cost * slack
    assert_allclose(alpha, np.clip(free, 0, cost), rtol=1e-13)
    assert_array_equal(curvature, np.where((free >= 0) & (free <= cost), scale * cost, 0.0))
    _core.respond(None, cost, threshold, margin, 0.5, alpha, curvature, scale=scale)
    assert_allclose(alpha, np.maximum(scale * cost * slack, 0), rtol=1e-13)
    assert_array_equal(curvature, np.where(slack >= -0.5, scale * cost, 0.0))
    expected = np.clip(center + scale * cost * (slack - 0.3 * change), 0, cost) @ change
    assert_allclose(_core.pull(center, cost, threshold, margin, change, 0.3, scale=scale), expected)


@pytest.mark.parametrize("threshold", [None, np.random.RandomState(1).uniform(-1, 2, 200)])
def test_response_returns_the_sums_of_the_certificate(threshold):
    """Of both losses, at margins that moved along a direction; rows without cost add nothing."""
    rng = np.random.RandomState(0)
    cost, scale = np.where(rng.uniform(size=200) < 0.1, 0.0, rng.uniform(0.1, 2, 200)), 0.7
    center = rng.uniform(0, 1, 200) * cost
    start, change = rng.uniform(-1, 3, 200), rng.standard_normal(200)
    wanted = start + 0.25 * change
    t = 1.0 if threshold is None else threshold
    for power, around in ((1, center), (2, None)):
        margin, alpha, curvature = start.copy(), np.empty(200), np.empty(200)
        sums = _core.respond(around, cost, threshold, margin, 0.0, alpha, curvature, 1, scale, change, 0.25)
        assert_allclose(margin, wanted, rtol=1e-13)
        divisor = np.where(cost > 0, cost, 1.0)
        assert_allclose(sums[0], cost @ np.maximum(t - wanted, 0) ** power)
        assert_allclose(sums[1], np.sum(t * alpha) - (power == 2) * np.sum(alpha**2 / (4 * divisor)))
        assert_allclose(sums[2], (power == 1) * np.sum((alpha - center) ** 2 / (scale * divisor)), atol=1e-12)


@pytest.mark.parametrize("proximal", [False, True])
@pytest.mark.parametrize("rows_of", ["themselves", "pairs", "some"])
@pytest.mark.parametrize("storage", ["dense32", "dense64", "sparse"])
def test_one_pass_equals_margins_responses_and_their_sum(storage, rows_of, proximal):
    """Also if neighboring problem rows are the same data row, for which one product does."""
    rng = np.random.RandomState(3)
    X = rng.standard_normal((20_011, 13)).astype(np.float32 if storage == "dense32" else np.float64)
    listed = sparse.csr_array(X)
    rows = _core.Rows.dense(X, 0.5)
    if storage == "sparse":
        rows = _core.Rows.sparse(listed.data, listed.indices.astype(np.int32), listed.indptr.astype(np.int64), 13, 0.5)
    index = {
        "themselves": None,
        "pairs": np.repeat(np.arange(len(X)), 2),
        "some": np.sort(rng.randint(len(X), size=15_001)),
    }[rows_of]
    n = len(X) if index is None else len(index)
    index = None if index is None else index.astype(np.int32)
    design = _core.Design(rows, np.zeros((n, 1), np.int32), None, index, 1)
    sign, weights = np.where(np.arange(n) % 2, -1, 1).astype(np.int8), rng.standard_normal((1, 14))
    cost, threshold = rng.uniform(0.0, 2.0, n), rng.standard_normal(n)
    center = rng.uniform(0.0, cost) if proximal else None
    answers = []
    for n_threads in (1, 3):
        margin, alpha, curvature, out = np.empty(n), np.empty(n), np.empty(n), np.empty((1, 14))
        sums = _core.evaluate(
            rows, design, sign, weights, center, cost, threshold, 0.1, margin, alpha, curvature, out, n_threads, 2.0
        )
        answers.append((*sums, margin, alpha, curvature, out))
    for first, second in zip(*answers, strict=True):
        assert_array_equal(first, second)
    place = np.arange(n) if index is None else index
    seen = np.column_stack([X, np.full(len(X), 0.5)]).astype(np.float64)[place]
    assert_allclose(margin, sign * (seen @ weights[0]), rtol=1e-10, atol=1e-10)
    apart = np.empty(n), np.empty(n)
    assert_allclose(sums, _core.respond(center, cost, threshold, margin, 0.1, *apart, 1, 2.0), rtol=1e-10)
    assert_array_equal(alpha, apart[0])
    assert_array_equal(curvature, apart[1])
    assert_allclose(out[0], (alpha * sign) @ seen, rtol=1e-8, atol=1e-6)


@pytest.mark.parametrize("size", [1, 7, 8, 9, 55])
def test_inverses_of_tiles(size):
    rng = np.random.RandomState(0)
    roots = rng.standard_normal((3, size, size + 2))
    matrices, inverse = roots @ roots.transpose(0, 2, 1), np.empty((3, size, size))
    _core.tile_inverses(matrices, 0.3, inverse, 2)
    assert_allclose(inverse @ (np.eye(size) + 0.3 * matrices), np.tile(np.eye(size), (3, 1, 1)), atol=1e-10)
    factors = np.empty_like(inverse)
    _core.tile_inverses(matrices, 0.3, factors, 2, of_factors=True)
    assert_array_equal(factors, np.tril(factors))
    assert_allclose(factors.transpose(0, 2, 1) @ factors, inverse, atol=1e-12)
    matrices[1] *= -1.0
    _core.tile_inverses(matrices, 100.0, inverse)
    assert np.isnan(inverse[1]).all()
    assert np.isfinite(inverse[[0, 2]]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [2, 3, 5, 16])
@pytest.mark.parametrize("d", [1, 4, 7, 8, 15, 16, 17, 31, 55, 63, 64, 130])
def test_rows_of_several_blocks(d, width, dtype):
    """Passes and descent over dense rows, whose blocks are blended first, give what the plain formulas give."""
    rng = np.random.RandomState(d)
    n, n_blocks = 60, 20
    X = rng.standard_normal((n, d)).astype(dtype)
    block = np.array([rng.choice(n_blocks, width, replace=False) for _ in range(n)], dtype=np.int32)
    coef = rng.uniform(-0.5, 1.0, (n, width))
    coef[rng.uniform(size=coef.shape) < 0.2] = 0.0
    y = np.where(rng.uniform(size=n) > 0.5, 1, -1).astype(np.int8)
    codes = np.zeros((n, n_blocks))
    np.put_along_axis(codes, block, coef, axis=1)
    blown_up = (codes[:, :, None] * reference.augment(X, 0.5)[:, None, :]).reshape(n, -1)
    v, weight = rng.standard_normal((n_blocks, d + 1)), rng.uniform(0, 2, n)
    weight[:5] = 0.0
    made = sparse.csr_array(X)
    dense = _core.Rows.dense(X, 0.5)
    listed = _core.Rows.sparse(made.data, made.indices.astype(np.int32), made.indptr.astype(np.int64), d, 0.5)
    found = {}
    for rows in (dense, listed):
        design = _core.Design(rows, block, coef, None, n_blocks)
        margin, total, product = np.empty(n), np.empty_like(v), np.empty_like(v)
        _core.margins(rows, design, y, v, margin)
        assert_allclose(margin, y * (blown_up @ v.ravel()), atol=1e-11)
        _core.accumulate(rows, design, y, weight, total)
        assert_allclose(total.ravel(), blown_up.T @ (weight * y), atol=1e-11)
        _core.curved_product(rows, design, weight, v, product)
        assert_allclose(product.ravel(), blown_up.T @ (weight * (blown_up @ v.ravel())), atol=1e-10)
        for real in {dtype, np.float64}:
            alpha, weights = np.zeros(n), np.zeros((n_blocks, d + 1), dtype=real)
            state = _core.DescentState(np.array([1, 2, 3, 4], np.uint64), n)
            curvature = (blown_up**2).sum(axis=1)
            _core.dual_descent(
                rows, design, y, None, np.ones(n), 1, curvature, np.arange(n, dtype=np.int32), state, alpha, weights,
                0.0, 3, 10.0,
            )  # fmt: skip
            assert 0 < alpha.max() <= 1
            assert_allclose(weights.ravel(), blown_up.T @ (alpha * y), atol=1e-11 if real == np.float64 else 1e-4)
            if real == np.float64:
                assert_allclose(alpha, found.setdefault("alpha", alpha), atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("d", [1, 7, 30, 31, 40, 79])
def test_product_with_the_hessian(d, storage, dtype):
    """One pass is the margins, times the curvature, accumulated; features fill whole vectors, or not."""
    rng = np.random.RandomState(0)
    n, width, n_blocks = 5000, 3, 6
    X = rng.standard_normal((n, d)).astype(dtype)
    listed = sparse.csr_array(X)
    rows = _core.Rows.dense(X, 0.5)
    if storage == "sparse":
        rows = _core.Rows.sparse(listed.data, listed.indices.astype(np.int32), listed.indptr.astype(np.int64), d, 0.5)
    index = rng.randint(n, size=2 * n).astype(np.int32)
    block = rng.randint(n_blocks, size=(2 * n, width)).astype(np.int32)
    curvature = np.where(rng.uniform(size=2 * n) < 0.5, 0.0, rng.uniform(size=2 * n))
    vector, up = rng.standard_normal((n_blocks, d + 1)), np.ones(2 * n, dtype=np.int8)
    for coef in (None, rng.standard_normal((2 * n, width))):
        design = _core.Design(rows, block, coef, index, n_blocks)
        change, wanted = np.empty(2 * n), np.empty((n_blocks, d + 1))
        _core.margins(rows, design, up, vector, change)
        _core.accumulate(rows, design, up, curvature * change, wanted)
        found, again = np.empty((n_blocks, d + 1)), np.empty((n_blocks, d + 1))
        _core.curved_product(rows, design, curvature, vector, found)
        assert_allclose(found, wanted, rtol=1e-10, atol=1e-9 * np.abs(wanted).max())
        _core.curved_product(rows, design, curvature, vector, again, 3)
        assert_array_equal(again, found)
    with pytest.raises(ValueError, match="curvature must have one entry per row"):
        _core.curved_product(rows, design, curvature[1:], vector, found)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_seeds_are_those_of_kmeans_plusplus(storage):
    """With the draws of scikit-learn, its rows; on any number of threads."""
    X, weight = np.random.RandomState(0).standard_normal((3000, 12)), np.random.RandomState(1).uniform(size=3000)
    wanted, _ = kmeans_plusplus(X, 40, sample_weight=weight, random_state=np.random.RandomState(2))
    for n_jobs in (1, 3):
        found = seed_centers(storage(X), weight, 40, np.random.RandomState(2), n_jobs)
        assert_allclose(found, wanted, rtol=1e-12)
    with pytest.raises(ValueError, match="uniform must have one line per center but the first"):
        _core.seed_centers(dense_rows(), np.ones(N), np.ones((3, 2)), np.zeros(3, np.int32))


def test_active_members_of_many_rows():
    """More rows than one piece has, tiles without rows in between and at the end."""
    rng = np.random.RandomState(0)
    n = 70_000
    tile, curvature = rng.choice([0, 2, 3], n), np.where(rng.uniform(size=n) < 0.7, 0.0, 1.0)
    order = np.argsort(tile, kind="stable").astype(np.int32)
    bounds = np.searchsorted(tile[order], np.arange(7)).astype(np.int64)
    wanted = order[curvature[order] != 0]
    for n_threads in (1, 3):
        members, offsets = np.full(n, -1, np.int32), np.full(7, -1)
        found = _core.active_members(curvature, order, bounds, members, offsets, n_threads)
        assert_array_equal(members[:found], wanted)
        assert_array_equal(offsets, np.searchsorted(tile[wanted], np.arange(7)))
    with pytest.raises(ValueError, match="order is out of range"):
        _core.active_members(curvature, order + np.int32(1), bounds, members, offsets)


def test_a_pool_serves_until_nobody_works():
    """Threads that serve help with the loops of those at work, and return when these have left."""
    n = 200_000
    rows = _core.Rows.dense(np.ones((n, 8)), 1.0)
    pool, found = _core.Pool(), []
    barrier = threading.Barrier(5)

    def work():
        out = np.empty(n)
        with pool:
            barrier.wait()
            for _ in range(20):
                _core.squared_norms(rows, out)
            found.append(out)

    def serve():
        barrier.wait()
        pool.serve()

    threads = [threading.Thread(target=target) for target in (work, work, serve, serve)]
    for thread in threads:
        thread.start()
    barrier.wait()
    for thread in threads:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads)
    assert len(found) == 2
    assert all((out == 9.0).all() for out in found)


@needs.linux
def test_no_room_for_threads_is_not_fatal():
    """Where the system refuses another thread, the ones that run do all the work."""
    script = """
        import resource
        import numpy as np
        from svmosaic import _core
        n = 400_000
        X = np.ones((n, 8))
        rows = _core.Rows.dense(X, 1.0)
        out = np.empty(n)
        held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (held + 20_000_000, held + 20_000_000))
        _core.squared_norms(rows, out, 64)
        assert (out == 9.0).all()
        print("done")
    """
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60)
    assert run.stdout.strip() == "done", run.stderr


@pytest.mark.parametrize("n_items", [1, 2, 1000, 1023, 1024, 1025, 70_000])
def test_shuffles_are_those_of_numpy(n_items):
    ours, theirs = np.random.RandomState(3), np.random.RandomState(3)
    for rng in (ours, theirs):
        rng.standard_normal(3)  # there is a number in hand, and the state has been in use
    for items in (n_items, 3 * np.arange(n_items)):
        for _ in range(3):
            order = shuffled(ours, items)
            assert order.dtype == np.int32
            assert_array_equal(order, theirs.permutation(items))
    assert_array_equal(ours.standard_normal(3), theirs.standard_normal(3))
    state = np.zeros(624, dtype=np.uint32)
    with pytest.raises(ValueError, match="out of range"):
        _core.shuffle(state, 625, np.arange(3, dtype=np.int32))
    with pytest.raises(ValueError, match="624 words"):
        _core.shuffle(state[1:].copy(), 0, np.arange(3, dtype=np.int32))


def test_shuffles_by_other_generators():
    ours, theirs = (np.random.RandomState(np.random.PCG64(0)) for _ in range(2))
    assert_array_equal(shuffled(ours, 5000), theirs.permutation(5000))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_that_are_not_finite_are_found(dtype):
    values = np.full(1_000_003, np.finfo(dtype).max, dtype=dtype)
    values[::2] = -values[0]
    assert _core.all_finite(values)
    assert _core.all_finite(values, 4)
    assert _core.all_finite(values[:0])
    for bad in (np.nan, np.inf, -np.inf):
        for place in (0, 524_289, len(values) - 1):
            other = values.copy()
            other[place] = bad
            assert not _core.all_finite(other, 4)
