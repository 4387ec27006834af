"""Pieces: knots, encoded rows, and certificates of problems over them."""

import pickle

import numpy as np
import pytest
import reference
from numpy.testing import assert_allclose, assert_array_equal
from problems import SHAPES, coupling_of, hard_data
from scipy import sparse
from sklearn.svm import LinearSVC as Liblinear

from svmosaic import LinearSVC, _core
from svmosaic.gates import DistanceGate
from svmosaic.losses import LOSSES
from svmosaic.maps import EncodedRows, Pieces, pieces
from svmosaic.solvers import Problem, Rows, solve
from svmosaic.solvers.certificates import margins, weights_of
from svmosaic.solvers.hessians import tile_hessians

DTYPES = [np.float32, np.float64]


def columns(seed, n=400):
    """Columns of all kinds: normal, skewed with a spike at zero, counts, binary, constant, nearly constant, capped."""
    rng = np.random.RandomState(seed)
    spiky = np.where(rng.uniform(size=n) < 0.6, 0.0, rng.lognormal(2, 2, n))
    rare = np.where(np.arange(n) == 7, 3.0, -1.0)
    capped = np.minimum(rng.exponential(1.0, n), 1.5)
    return np.column_stack(
        [rng.standard_normal(n), spiky, rng.poisson(2, n), rng.randint(2, size=n) * 5.0, np.full(n, 4.0), rare, capped]
    )


def encoded(X, n_knots=5, weight=None):
    fitted = Pieces.fit(X, n_knots, weight)
    return EncodedRows.of(fitted, X), reference.expand_pieces(
        X, fitted.knots, fitted.center, fitted.scale, fitted.reach, fitted.implicit_zeros
    )


@pytest.mark.parametrize("n_knots", [2, 3, 8, 40])
@pytest.mark.parametrize("seed", range(3))
def test_knots_follow_the_rule(seed, n_knots):
    X = columns(seed)
    weight = np.random.RandomState(seed).randint(1, 4, len(X)).astype(float)
    dense = Pieces.fit(X, n_knots, weight)
    stored = Pieces.fit(sparse.csr_array(X), n_knots, weight)
    for f in range(X.shape[1]):
        assert_array_equal(dense.knots[f], reference.knots(X[:, f], weight, n_knots))
        assert_array_equal(stored.knots[f], reference.sparse_knots(X[:, f], weight, n_knots))
        assert len(dense.knots[f]) <= n_knots
    assert set(dense.column) == {0, 1, 2, 6}  # no curve for binary and constant columns
    assert 0.0 in dense.knots[1]
    assert n_knots == 2 or 1.5 in dense.knots[6]
    copies = Pieces.fit(np.repeat(X, weight.astype(int), axis=0), n_knots)
    assert_array_equal(copies.knot, dense.knot)
    assert_allclose(copies.center, dense.center, rtol=1e-12)
    assert_allclose(copies.scale, dense.scale, rtol=1e-12)


def test_knots_of_many_values():
    """Columns of thousands of different values of either sign and of all sizes, more than are copied at a time."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((3000, 11)) * 10.0 ** rng.randint(-300, 300, size=(3000, 11))
    X[:, 1] = rng.permutation(3000) - 1500.0
    X[:, 2:4] = rng.standard_normal((3000, 2)).round(3)  # some more than once
    X[:, 3] *= np.where(X[:, 3] == 0, -1.0, 1.0)  # there is one zero
    X[:, 4] = rng.poisson(3, 3000)
    weight = rng.randint(1, 4, len(X)).astype(float)
    for dtype in (np.float64, np.float32):
        columns = X.astype(dtype) if dtype == np.float64 else X[:, 1:5].astype(dtype)
        with np.errstate(over="ignore"):
            found = Pieces.fit(columns, 16, weight).knots
        for f in range(columns.shape[1]):
            assert_array_equal(found[f], reference.knots(columns[:, f].astype(np.float64), weight, 16))


def test_straight_terms():
    X = columns(0)
    fitted = Pieces.fit(X, 8)
    curved = fitted.column
    assert_allclose(fitted.center[curved], X[:, curved].mean(axis=0))
    assert_allclose(fitted.scale[curved], 1 / X[:, curved].std(axis=0))
    assert (fitted.reach[curved] == 3).all()
    assert np.isinf(np.delete(fitted.reach, curved)).all()
    Z = fitted.expand(X).toarray()
    assert set(Z[:, 3]) == {0.0, 1.0}
    assert set(Z[:, 4]) == {0.0}
    assert set(Z[:, 5]) == {0.0, 1.0}
    stored = Pieces.fit(sparse.csr_array(X), 8)
    assert (stored.center == 0).all()
    assert stored.expand(np.zeros((1, X.shape[1]))).nnz == 0


def test_large_data_are_sampled_and_the_seed_decides():
    X = np.random.RandomState(0).standard_normal((3 * pieces.SAMPLE, 2))
    first, again, other = (Pieces.fit(X, 8, rng=np.random.RandomState(seed)) for seed in (0, 0, 1))
    assert_array_equal(first.knot, again.knot)
    assert (first.knot != other.knot).any()
    assert_allclose(first.knot, Pieces.fit(X[: pieces.SAMPLE], 8).knot, atol=0.8)  # the outermost are extremes


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("storage", [np.ascontiguousarray, sparse.csr_array])
def test_encoded_rows_are_the_expanded_rows(storage, dtype):
    X = columns(1).astype(dtype)
    rows, Z = encoded(storage(X))
    tolerance = 1e-12 if dtype == np.float64 else 1e-5
    assert rows.shape == Z.shape
    assert rows.dtype == dtype
    assert_allclose(rows.toarray(), Z, atol=1e-12 if dtype == np.float64 else 1e-6)
    assert_allclose(rows[10:20].toarray(), Z[10:20], atol=tolerance)
    assert_allclose(rows.astype(np.float32).toarray(), Z, atol=1e-5)

    y, cost = np.ones(len(X), dtype=np.int8), np.ones(len(X))
    tile = np.zeros((len(X), 1), dtype=np.int32)
    problem = Problem(Rows(rows, 2.0), tile, None, coupling_of("linear", 1, None), y, cost)
    rng = np.random.RandomState(0)
    V = rng.standard_normal((1, Z.shape[1] + 1))
    augmented = np.column_stack([Z, np.full(len(Z), 2.0)])
    assert_allclose(margins(problem, V), augmented @ V[0], atol=20 * tolerance)
    alpha = rng.uniform(size=len(X))
    assert_allclose(weights_of(problem, alpha)[0], augmented.T @ alpha, rtol=10 * tolerance, atol=100 * tolerance)
    assert_allclose(problem.rows.squared_norms, (augmented**2).sum(axis=1), rtol=10 * tolerance)
    hessian = tile_hessians(problem, alpha, 1)[0]
    assert_allclose(hessian, (augmented.T * alpha) @ augmented, rtol=10 * tolerance, atol=100 * tolerance)


def one_hot(seed, n=300, n_texts=3, n_values=9):
    """Numbers between texts that are one-hot; zero and one of some are other numbers."""
    rng = np.random.RandomState(seed)
    texts = np.hstack([np.eye(n_values)[rng.randint(n_values, size=n)] for _ in range(n_texts)])
    texts[:, :4] = 0.1 + 0.3 * texts[:, :4]
    return np.column_stack([rng.lognormal(0, 1, n), texts[:, :12], rng.standard_normal(n), texts[:, 12:]])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("odd", [None, 5])
def test_ones_are_listed(odd, dtype):
    """Rows of many columns that are zero or one keep lists of the ones; what comes of them is the same."""
    X = one_hot(0).astype(dtype)
    fitted = Pieces.fit(X, 5)
    if odd is not None:  # a value that no knots were found from
        X[7, odd] = 0.5
    rows = Rows(EncodedRows.of(fitted, X), 2.0)
    Z = np.column_stack([fitted.expand(X).toarray(), np.full(len(X), 2.0)])
    n_listed = 27 - (odd is not None)
    n_ones = np.count_nonzero(np.delete(Z[:, :29], [0, 13, *([odd] if odd else [])], axis=1))
    assert rows.n_stored == n_ones + len(X) * (29 - n_listed + 2 * 2)

    tolerance = 1e-12 if dtype == np.float64 else 2e-5
    rng = np.random.RandomState(1)
    y, V, alpha = np.ones(len(X), dtype=np.int8), rng.standard_normal((1, Z.shape[1])), rng.uniform(size=len(X))
    tile = np.zeros((len(X), 1), dtype=np.int32)
    problem = Problem(rows, tile, None, coupling_of("linear", 1, None), y, np.ones(len(X)))
    assert_allclose(margins(problem, V), Z @ V[0], atol=20 * tolerance)
    assert_allclose(weights_of(problem, alpha)[0], Z.T @ alpha, rtol=10 * tolerance, atol=100 * tolerance)
    assert_allclose(rows.squared_norms, (Z**2).sum(axis=1), rtol=10 * tolerance)
    straight = (Z[:, :29] ** 2).sum(axis=1) + 4.0
    assert_allclose(rows.squared_norms_of("straight"), straight, rtol=10 * tolerance)
    hessian = tile_hessians(problem, alpha, 1)[0]
    assert_allclose(hessian, (Z.T * alpha) @ Z, rtol=10 * tolerance, atol=100 * tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("rare", [False, True])
def test_hessian_of_many_hats(rare, listed, dtype):
    """If few features of a row are not zero, they are added by themselves, and not as products of whole rows."""
    rng = np.random.RandomState(3)
    X = np.column_stack([one_hot(3)[:, : 29 if listed else 2], columns(3, 300)]).astype(dtype)
    X[:100, -1] = X[0, -1]  # a knot
    rows = EncodedRows.of(Pieces.fit(X, 24), X)
    Z = np.column_stack([rows.toarray(), np.full(len(X), 0.5)])
    order = rng.permutation(len(X)).astype(np.int32)
    tile = np.zeros((len(X), 1), dtype=np.int32)
    y, weight = np.ones(len(X), dtype=np.int8), rng.uniform(size=len(X))
    if rare:
        weight[rng.uniform(size=len(X)) < 0.9] = 0.0
    problem = Problem(Rows(rows, 0.5), tile, None, coupling_of("linear", 1, None), y, weight, index=order)
    tolerance = 1e-12 if dtype == np.float64 else 1e-4
    hessian = tile_hessians(problem, weight, 1)[0]
    assert_allclose(hessian, (Z[order].T * weight) @ Z[order], rtol=tolerance, atol=10 * tolerance)
    assert_array_equal(tile_hessians(problem, weight, 3)[0], hessian)


def test_ones_are_not_listed_where_they_are_many():
    X = 1.0 - one_hot(0)[:, 5:12]
    X = np.hstack([X, X, X])  # zero is the value of the rare ones
    fitted = Pieces.of_knots([np.zeros(0)] * 21, np.zeros(21), np.ones(21), np.full(21, np.inf))
    assert Rows(EncodedRows.of(fitted, X)).n_stored == X.size


def test_knots_of_listed_rows_are_those_of_the_rows():
    X = columns(0)
    X[X == 0] *= np.random.RandomState(0).choice([-1.0, 1.0], np.count_nonzero(X == 0))  # there is one zero
    rows = np.arange(0, len(X), 3)
    weight = np.random.RandomState(0).uniform(size=len(rows))
    found = _core.find_knots(X, weight, 6, 1, rows)
    for one, other in zip(found, _core.find_knots(X[rows], weight, 6), strict=True):
        assert_array_equal(one, other)
    with pytest.raises(ValueError, match="a row index is out of range"):
        _core.find_knots(X, weight, 6, 1, rows + 3)


def test_values_at_and_beyond_knots():
    fitted = Pieces.fit(np.array([[0.0], [1.0], [2.0], [4.0]]), 4)
    Z = fitted.expand(np.array([[-100.0], [0.0], [1.0], [3.0], [4.0], [100.0]])).toarray()
    assert_allclose(Z[:, 1:], [[1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0.5, 0.5], [0, 0, 0, 1], [0, 0, 0, 1]])
    assert_allclose(Z[[0, -1], 0], [-3, 3])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("solver", ["dual", "newton"])
@pytest.mark.parametrize("shape", SHAPES)
def test_solution_is_certified_on_the_expanded_matrix(shape, solver, loss, storage, dtype):
    X, y, cost = hard_data(0, dtype=dtype)
    rows, Z = encoded(sparse.csr_array(X) if storage == "csr" else X)
    rng = np.random.RandomState(1)
    n_tiles = 1 if shape == "linear" else 4
    tile = rng.randint(max(1, n_tiles - 1), size=(len(X), 1)).astype(np.int32)
    code = None
    if shape == "codes":
        tile = np.array([rng.choice(n_tiles - 1, 2, replace=False) for _ in range(len(X))], dtype=np.int32)
        code = rng.uniform(-0.5, 1.0, tile.shape)
    coupling = coupling_of(shape, n_tiles, rng)
    problem = Problem(Rows(rows, 1.0), tile, code, coupling, y, cost, loss)
    tol = 1e-9 if dtype == np.float64 else 1e-5
    (solution,) = solve([problem], solver=solver, tol=tol, max_iter=100_000)
    power = LOSSES[loss].power
    wide = reference.expand(Z, 1.0, tile, code, coupling.own, coupling.shared)
    assert reference.infeasibility(solution.alpha, cost, power) == 0
    primal = reference.primal(wide, y, cost, solution.weights.ravel(), power)
    gap = primal - reference.dual(wide, y, cost, solution.alpha, power)
    assert gap <= (2 * tol if dtype == np.float64 else 1e-4) * cost.sum()


@pytest.mark.parametrize("storage", [np.ascontiguousarray, sparse.csr_array])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_agrees_with_liblinear_on_the_expanded_matrix(loss, storage):
    X = columns(2)
    y = (X[:, 0] + np.sin(X[:, 6] * 4) + 0.3 * X[:, 3] > 1).astype(int)
    X = storage(X)
    ours = LinearSVC(C=0.7, loss=loss, pieces=6, tol=1e-9, max_iter=100_000, random_state=0).fit(X, y)
    Z = ours.mosaic_.feature_map.expand(X)
    theirs = Liblinear(C=0.7, loss=loss, dual=True, tol=1e-9, max_iter=1_000_000, random_state=0).fit(Z, y)
    assert_allclose(ours.decision_function(X), theirs.decision_function(Z), atol=2e-4)
    assert_allclose(ours.coef_, theirs.coef_, atol=2e-4)


def test_knots_given_are_the_knots_found():
    X = columns(3)
    y = (X[:, 6] > 0.7).astype(int)
    found = LinearSVC(pieces=5, random_state=0).fit(X, y)
    given = LinearSVC(pieces=found.mosaic_.feature_map.knots, random_state=0).fit(X, y)
    assert_array_equal(found.decision_function(X), given.decision_function(X))
    straight = LinearSVC(pieces=[None] * X.shape[1], random_state=0).fit(X, y)
    assert straight.coef_.shape == (1, X.shape[1])
    # Sparse rows get a knot at zero whether it was asked for or not.
    sparse_fit = LinearSVC(pieces=[[1.0, 2.0], *[None] * 6], random_state=0).fit(sparse.csr_array(X), y)
    assert_array_equal(sparse_fit.mosaic_.feature_map.knots[0], [0.0, 1.0, 2.0])


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        (1, "pieces must be None, between 2 and 255"),
        (0, "between 2 and 255"),
        (-3, "between 2 and 255"),
        (256, "between 2 and 255"),
        (2.5, "pieces must be None, an integer"),
        (True, "pieces must be None, an integer"),
        ("many", "pieces must be None, an integer"),
        ([[0.0, 1.0]], "knots for 1 columns, but X has 2"),
        ([[0.0, 1.0]] * 3, "knots for 3 columns, but X has 2"),
        ([[0.0, 1.0], [1.0, 1.0]], "knots of column 1 in pieces must increase"),
        ([[2.0, 1.0], None], "knots of column 0 in pieces must increase"),
        ([[1.0], None], "column 0 in pieces has 1 knots"),
        ([[0.0, np.nan], None], "must be finite"),
        ([[[0.0, 1.0]], None], "flat sequence"),
        ([["a", "b"], None], "must be numbers"),
    ],
)
def test_bad_pieces_are_refused_with_a_reason(pieces, words):
    X = np.random.RandomState(0).standard_normal((20, 2))
    with pytest.raises(ValueError, match=words):
        LinearSVC(pieces=pieces).fit(X, X[:, 0] > 0)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_is_refused_as_without_pieces(value):
    X = np.random.RandomState(0).standard_normal((20, 2))
    X[3, 1] = value
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        LinearSVC(pieces=4).fit(X, X[:, 0] > 0)


def test_huge_and_tiny_values():
    """Distances between knots that overflow or vanish do not turn into NaN."""
    rng = np.random.RandomState(0)
    for scale in (1e150, 1e-310):
        X = np.column_stack([rng.standard_normal(60) * scale, rng.standard_normal(60)])
        model = LinearSVC(pieces=4).fit(X, X[:, 1] > 0)
        assert np.isfinite(model.decision_function(X)).all()
        assert model.score(X, X[:, 1] > 0) > 0.9


def test_the_core_checks_what_it_is_given():
    fitted = Pieces.fit(columns(0), 4)
    core = fitted.core(np.float64)
    X = np.zeros((3, 7))
    bins = np.zeros((3, 4), dtype=np.uint8)
    for wrong in (np.zeros((3, 3), dtype=np.uint8), np.zeros((2, 4), dtype=np.uint8)):
        with pytest.raises(ValueError, match="n_curves"):
            core.encode(X, wrong)
    with pytest.raises(ValueError, match="another number"):
        core.encode(np.zeros((3, 6)), bins)
    with pytest.raises(ValueError, match="out of range"):
        _core.encoded_rows(core, X, np.full((3, 4), 3, dtype=np.uint8), 1.0)
    rows = _core.encoded_rows(core, X, bins, 1.0)
    tile, weight = np.zeros((3, 1), dtype=np.int32), np.zeros((3, 1))
    with pytest.raises(ValueError, match="encoded rows are for the tiles"):
        DistanceGate(np.zeros((1, fitted.n_features))).core(np.float64).code(rows, tile, weight, 1)
    straight = fitted.center, fitted.scale, -fitted.reach, fitted.reach
    with pytest.raises(ValueError, match="increase"):
        _core.PiecesF64(*straight, fitted.column, fitted.start, fitted.knot[::-1].copy(), np.ones(len(fitted.knot)))


def test_pieces_are_pickled_without_what_is_packed():
    X = columns(0)
    fitted = Pieces.fit(X, 4)
    before = len(pickle.dumps(fitted))
    EncodedRows.of(fitted, X)
    fitted.pack(np.zeros((1, 1, fitted.n_features)))
    assert len(pickle.dumps(fitted)) == before
    assert_array_equal(pickle.loads(pickle.dumps(fitted)).expand(X).toarray(), fitted.expand(X).toarray())
