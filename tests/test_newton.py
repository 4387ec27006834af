"""The pieces of the second-order solver."""

from dataclasses import replace

import numpy as np
import pytest
import reference
from numpy.testing import assert_allclose, assert_array_equal
from problems import SHAPES, coupling_of, hard_problem

from svmosaic.couplings import Coupling
from svmosaic.losses import LOSSES
from svmosaic.rows import Rows
from svmosaic.solvers import Problem, certificates, hessians, newton, problems_of, solve
from svmosaic.solvers.certificates import certify
from svmosaic.solvers.hessians import arrow_solve, crossed_solver, one_in, tile_hessians
from svmosaic.solvers.share import Share


def positive_matrices(rng, n, size, rank):
    roots = rng.standard_normal((n, rank, size))
    return np.einsum("kri,krj->kij", roots, roots)


@pytest.mark.parametrize("rank", [0, 2, 9])
@pytest.mark.parametrize("n_tiles", [1, 2, 5])
@pytest.mark.parametrize("shape", ["cells", "global", "groups"])
def test_arrow_solve_equals_a_dense_solve(shape, n_tiles, rank):
    rng = np.random.RandomState(n_tiles)
    coupling = coupling_of(shape, n_tiles, rng)
    hessians = 10.0 * positive_matrices(rng, n_tiles, 4, rank)
    residual = rng.standard_normal((coupling.n_blocks, 4))
    matrix = reference.newton_matrix(hessians, coupling.own, coupling.shared)
    expected = np.linalg.solve(matrix, -residual.ravel())
    assert_allclose(arrow_solve(hessians, coupling, residual).ravel(), expected, rtol=1e-8, atol=1e-12)


def test_arrow_solve_of_independent_tiles_with_own_weight():
    rng = np.random.RandomState(0)
    coupling = Coupling(3.0, np.zeros((2, 0)))
    hessians, residual = positive_matrices(rng, 2, 3, 5), rng.standard_normal((2, 3))
    matrix = reference.newton_matrix(hessians, 3.0, coupling.shared)
    expected = np.linalg.solve(matrix, -residual.ravel())
    assert_allclose(arrow_solve(hessians, coupling, residual).ravel(), expected, rtol=1e-10)


@pytest.mark.parametrize("shape", ["linear", "global", "groups"])
def test_hessian_is_the_derivative_of_the_gradient(shape):
    """I + B^T S B from the core against finite differences of V - sum_r a_r(m_r) y_r z_r."""
    problem, X = hard_problem(0, shape=shape, loss="squared_hinge")
    Z = reference.expand_problem(problem, X)
    v = 0.3 * np.random.RandomState(0).standard_normal(Z.shape[1])

    def gradient(point):
        slack = np.maximum(0.0, 1.0 - problem.sign * (Z @ point))
        return point - Z.T @ (2.0 * problem.cost * slack * problem.sign)

    curvature = np.where(problem.sign * (Z @ v) < 1.0, 2.0 * problem.cost, 0.0)
    matrices = hessians.tile_hessians(problem, curvature, 1)
    matrix = reference.newton_matrix(matrices, problem.coupling.own, problem.coupling.shared)
    h = 1e-6
    numeric = np.array([(gradient(v + h * e) - gradient(v - h * e)) / (2 * h) for e in np.eye(len(v))])
    assert_allclose(matrix, numeric, atol=1e-4 * np.abs(matrix).max())


@pytest.mark.parametrize("shape", SHAPES)
def test_matrices_of_tiles_are_sums_over_their_rows(shape):
    problem, X = hard_problem(1, shape=shape)
    curvature = np.random.RandomState(1).uniform(size=problem.n_rows) * (problem.cost > 0)
    rows = reference.augment(X, 1.0)
    expected = np.zeros((problem.coupling.n_tiles, rows.shape[1], rows.shape[1]))
    for r, x in enumerate(rows):
        for a, k in enumerate(problem.tile[r]):
            code = 1.0 if problem.weight is None else problem.weight[r, a]
            expected[k] += curvature[r] * code**2 * np.outer(x, x)
    assert_allclose(hessians.tile_hessians(problem, curvature, 1), expected, atol=1e-12)


def searched(along, square, pull, tol, travels=False):
    """The length that a line search ends at."""
    search = newton.line_search(along, square, lambda lengths: lengths, tol, travels)
    lengths = next(search)
    while True:
        try:
            lengths = search.send([pull(t) for t in lengths])
        except StopIteration as stop:
            return stop.value


@pytest.mark.parametrize("shape", ["linear", "cells"])
def test_matrices_follow_the_rows_that_change(shape):
    problem, _ = hard_problem(1, shape=shape, loss="squared_hinge")
    share = Share(problem, None, known=(np.zeros(problem.shape), None))
    rng = np.random.RandomState(0)
    everywhere = 2.0 * problem.cost
    few = np.where(rng.uniform(size=problem.n_rows) < 0.1, 0.0, everywhere)
    fewer = np.where(rng.uniform(size=problem.n_rows) < 0.1, everywhere - few, few)
    for curvature in (everywhere, few, fewer, everywhere - few, everywhere):
        share.curvature[:] = curvature
        expected = hessians.tile_hessians(problem, curvature, 1)
        assert_allclose(share.matrices("tiles"), expected, atol=1e-12 * np.abs(expected).max())


def test_many_lengths_at_once_find_the_zero_of_the_slope():
    for root in (1e-4, 0.01, 0.3, 1.0, 2.5, 20.0):
        # Slope t^3 - root^3: rising, curved.
        assert searched(-(root**3), 0.0, lambda t: -(t**3), 0.1, travels=True) == pytest.approx(root, rel=0.5)
    assert searched(1.0, 0.0, lambda t: 0.0, 0.1, travels=True) == 0.0
    assert searched(-1.0, 0.0, lambda t: 0.0, 0.1, travels=True) == max(newton.LENGTHS)  # falls at all of them


@pytest.mark.parametrize("seed", range(20))
def test_line_search_ends_near_the_minimum(seed):
    """On 1/2 |w + t p|^2 + sum c max(0, 1 - m - t u)^2 / 2, convex and piecewise quadratic."""
    rng = np.random.RandomState(seed)
    margin, change, cost = rng.standard_normal(30), 10 ** rng.uniform(-3, 3) * rng.standard_normal(30), 2.0
    along, square = -(10 ** rng.uniform(-2, 2)), 10 ** rng.uniform(-3, 1)

    def pull(step):
        return np.maximum(0.0, 1 - margin - step * change) @ change * cost

    start = along - pull(0.0)
    if start > 0:
        change = -change
        start = along - pull(0.0)
    assert start < 0, "one of the two directions descends"
    t = searched(along, square, pull, 0.1)
    assert t > 0
    assert abs(along + t * square - pull(t)) <= 0.1 * -start


def test_line_search_refuses_to_climb():
    assert searched(1.0, 1.0, lambda step: 0.0, 0.1) == 0.0
    assert searched(float("nan"), 1.0, lambda step: 0.0, 0.1) == 0.0


def test_solve_positive_mends_rounding_and_gives_up_on_nan():
    singular = np.array([[1.0, 1.0], [1.0, 1.0 - 1e-16]])
    assert np.isfinite(hessians._solve_positive(singular, np.ones(2))).all()
    assert np.isnan(hessians._solve_positive(np.full((2, 2), np.nan), np.ones(2))).all()
    assert_allclose(hessians._solve_positive(np.diag([2.0, 4.0]), np.ones(2)), [0.5, 0.25])


def test_reach_follows_the_step_length():
    assert newton.adapt_reach(0.0, 1e-3, 1.0) == 1e-3
    assert newton.adapt_reach(1e-3, 1e-3, 1.0) == 4e-3
    assert newton.adapt_reach(1e-3, 0.2, 1.0) == 1e-3
    assert newton.adapt_reach(1e-3, 1.0, 1.0) == 5e-4
    assert newton.adapt_reach(1e-7, 1.0, 1.0) == 0.0
    assert newton.adapt_reach(0.0, 1e-3, 50.0) == 0.05  # margins in other units


def test_squared_hinge_takes_few_steps():
    """Newton's method on a piecewise quadratic ends in finitely many steps."""
    problem, _ = hard_problem(2, loss="squared_hinge")
    assert solve([problem], solver="newton", tol=1e-12)[0].n_iter <= 10


def test_best_point_is_returned_when_stopped():
    problem, _ = hard_problem(3)
    gaps = [solve([problem], solver="newton", tol=1e-12, max_iter=n)[0].gap for n in range(1, 15)]
    assert_array_equal(gaps, np.minimum.accumulate(gaps))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("n_tiles", [1, 3])
def test_start_from_a_part_of_the_rows(loss, n_tiles):
    """Many rows, sorted by class: certified as from zero, in no more steps over all rows."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((newton.SAMPLED_FROM[1], 6))
    y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.standard_normal(len(X)) > 1, 1, -1).astype(np.int8)
    X, y = X[np.argsort(y, kind="stable")], np.sort(y)
    tile = rng.randint(n_tiles, size=(len(X), 1)).astype(np.int32)
    cost = rng.uniform(0.0, 2.0, len(X))
    problem = Problem(Rows(X, 1.0), tile, None, Coupling.to_global(n_tiles, 1.0), y, cost, loss)
    sampled = newton.solve_newton(problem, tol=1e-6, max_iter=100)
    from_zero = newton.solve_newton(problem, tol=1e-6, max_iter=100, alpha=np.zeros(len(X)))
    for solution in (sampled, from_zero):
        assert certify(problem, solution.alpha).dual == pytest.approx(solution.dual, rel=1e-9)
        assert abs(solution.gap) <= 1e-6 * problem.primal_at_zero  # below zero by rounding alone
    assert sampled.n_iter <= from_zero.n_iter


def test_a_rare_class_starts_from_the_duals_of_a_part_of_the_rows():
    """Nearly all rows are at the kink, with duals close to zero: few steps if they are known to be."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((newton.SAMPLED_FROM[1], 8))
    y = np.where(X[:, 0] + 3.0 * rng.standard_normal(len(X)) > 7.0, 1, -1).astype(np.int8)
    assert 0.005 < np.mean(y > 0) < 0.03
    tile = np.zeros((len(X), 1), np.int32)
    problem = Problem(Rows(X, 1.0), tile, None, Coupling.independent(1), y, np.ones(len(X)), "hinge")
    start = newton._start(problem, None, tol=1e-4, max_iter=100, n_threads=1, control=newton.alone())
    assert len(start.moves) > 1
    # The moves lead the same way again, for all rows as for the sample.
    part = problem.part(one_in(newton.SAMPLED_SHARE, problem.n_rows), newton.SAMPLED_SHARE)
    sampled, again = newton._solve_in_memory(
        part, None, tol=newton.SAMPLE_TOL, max_iter=100, n_threads=1, control=newton.alone()
    )
    here = part.index
    assert_allclose(newton.SAMPLED_SHARE * start.center[here], sampled.alpha, atol=1e-9)
    assert [move.step for move in again] == [move.step for move in start.moves]
    solution = newton.solve_newton(problem, tol=1e-4, max_iter=100)
    assert solution.converged
    assert solution.n_iter <= 6
    assert certify(problem, solution.alpha).dual == pytest.approx(solution.dual, rel=1e-9)


def test_a_row_that_overflows_is_found_among_many():
    X = np.ones((newton.SAMPLED_FROM[1], 2))
    X[:, 0] = np.linspace(-1, 1, len(X))
    X[5] = 1e200
    y = np.where(np.arange(len(X)) % 2, 1, -1).astype(np.int8)
    tile = np.zeros((len(X), 1), dtype=np.int32)
    problem = Problem(Rows(X, 1.0), tile, None, Coupling.independent(1), y, np.ones(len(X)))
    with pytest.raises(ValueError, match="squared norm of a row overflows"):
        newton.solve_newton(problem, tol=1e-4, max_iter=100)


@pytest.mark.parametrize("noise", [-1e-9, 1e-9])
def test_a_line_search_that_rounding_defeats_ends_soon(noise):
    """Features from 1e-12 to 1e12: the slope is said to fall at the start, but at no step that can be told from it."""
    asked = []

    def pull(step):
        asked.append(step)
        return 1.0 if step == 0.0 else -1.0 + noise

    assert searched(0.0, 1.0, pull, 0.1) == 0.0
    assert len(asked) < 25


def test_a_line_search_knows_a_kink_well_enough():
    asked = []

    def pull(step):  # the slope jumps from -1 to 1e6 at step 0.3
        asked.append(step)
        return 1.0 if step < 0.3 else -1e6

    assert 0.299 < searched(0.0, 0.0, pull, 0.1) < 0.3
    assert len(asked) < 35


def test_ridge_regression_is_one_step_without_a_line_search(monkeypatch):
    """Squares have one Hessian everywhere: going to the end of the first step is all there is to do."""
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((300, 4)), rng.standard_normal(300)
    loss = LOSSES["squared_epsilon_insensitive"]
    targets = loss.rows(y, np.full(300, 2.0), epsilon=0.0)
    codes = np.zeros((300, 1), dtype=np.int32), None
    problem = problems_of(Rows(X), codes, Coupling.independent(1), loss, [targets])[0]

    def fail(*_):
        raise AssertionError("a line search where the whole step will do")

    monkeypatch.setattr(newton, "line_search", fail)
    (solution,) = solve([problem], solver="newton", tol=1e-10)
    assert solution.converged
    assert solution.n_iter == 1
    seen = np.column_stack([X, np.ones(300)])
    expected = np.linalg.solve(np.eye(5) + 4.0 * seen.T @ seen, 4.0 * seen.T @ y)
    assert_allclose(solution.weights[0], expected, rtol=1e-9)
    again = certify(problem, solution.alpha)
    assert again.gap <= 1e-10 * problem.primal_at_zero


def _crossed_problem(n_tiles, width, d=3, n=400):
    """Rows of several tiles, whose codes are smooth along a line."""
    rng = np.random.RandomState(0)
    X, place = rng.standard_normal((n, d)), rng.uniform(0, n_tiles, n)
    distance = np.abs(place[:, None] - np.arange(n_tiles) - 0.5)
    tile = np.argsort(distance, axis=1)[:, :width].astype(np.int32)
    code = np.exp(-np.take_along_axis(distance, tile, axis=1))
    code /= code.sum(axis=1, keepdims=True)
    sign = np.where(X[:, 0] + rng.standard_normal(n) > 0, 1, -1).astype(np.int8)
    return Problem(
        Rows(X, 1.0), tile, code, Coupling(0.8, np.zeros((n_tiles, 0))), sign, np.full(n, 3.0), "squared_hinge"
    )


@pytest.mark.parametrize("largest_small", [hessians.LARGEST_SMALL, 0])  # matrices by the core, or by LAPACK
def test_matrices_of_tiles_are_solved_exactly_where_codes_do_not_overlap(monkeypatch, largest_small):
    monkeypatch.setattr(hessians, "LARGEST_SMALL", largest_small)
    problem = _crossed_problem(5, 1)
    matrices = tile_hessians(problem, np.ones(problem.n_rows), 1)
    residual = np.random.RandomState(1).standard_normal(problem.shape)
    whole = np.eye(problem.shape[1]) + 0.8**2 * matrices
    # The correlation is the identity then, whatever the ridge.
    solved = crossed_solver(problem, matrices, 1)(residual)
    assert_allclose(np.matmul(whole, solved[:, :, None])[:, :, 0], residual, atol=1e-10)


def test_codes_tell_what_tiles_have_in_common():
    """With the correlation of the codes the system of rows of several tiles is conditioned better than without."""
    problem = _crossed_problem(12, 6)
    curvature = np.full(problem.n_rows, 6.0)
    n_weights = problem.n_weights

    def columns(of):
        return np.stack([of(unit.reshape(problem.shape)).ravel() for unit in np.eye(n_weights)], axis=1)

    margins_of = columns(lambda v: certificates.margins(problem, v))
    hessian = np.eye(n_weights) + margins_of.T @ (curvature[:, None] * margins_of)
    matrices = tile_hessians(problem, curvature, 1)
    inverses = hessians.tile_inverses(matrices, problem.coupling.own**2)
    crossed = columns(crossed_solver(problem, matrices, 1))
    alone = columns(lambda v: np.matmul(inverses, v[:, :, None])[:, :, 0])
    assert_allclose(crossed, crossed.T, atol=1e-12)

    def condition(inverse):
        root = np.linalg.cholesky(inverse)
        return np.linalg.cond(root.T @ hessian @ root)

    assert condition(crossed) < 0.5 * condition(alone)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_last_step_solves_no_further_than_it_has_to(monkeypatch, loss):
    """The residual that a step may leave is bounded by what the gap asks for; the certificate still holds."""
    monkeypatch.setattr(newton, "LARGEST_DENSE", 0)
    products = 0

    class CountedProduct(newton.Product):
        def __init__(self, *parts):
            nonlocal products
            products += 1
            super().__init__(*parts)

    monkeypatch.setattr(newton, "Product", CountedProduct)
    problem = replace(_crossed_problem(12, 6), loss=LOSSES[loss])
    needed = {}
    for share in (0.7, 0.0):
        products = 0
        monkeypatch.setattr(newton, "LAST_SHARE", share)
        (solution,) = solve([problem], solver="newton", tol=1e-4)
        assert certify(problem, solution.alpha).dual <= certify(problem, solution.alpha).primal
        assert solution.gap <= 1e-4 * problem.primal_at_zero
        needed[share] = products
    assert 0 < needed[0.7] <= needed[0.0]
