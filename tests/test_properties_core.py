"""Properties of the core and the solvers over random problems: certified or told, finite, and the same bits."""

import contextlib

import numpy as np
import pytest
import reference
import strategies as some
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from svmosaic import _core
from svmosaic.couplings import Coupling
from svmosaic.gates import DistanceGate
from svmosaic.model.mosaic import Mosaic
from svmosaic.rows import Rows
from svmosaic.solvers import Problem, solve
from svmosaic.solvers.certificates import certify, margins, primal


@st.composite
def problems(draw, one_tile=None):
    X = draw(some.matrices(min_rows=1))
    n = len(X)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_tiles = draw(st.integers(1, 4))
    shared = draw(st.integers(0, 2))
    coupling = Coupling(draw(st.sampled_from([1.0, 0.3, 10.0])), rng.standard_normal((n_tiles, shared)))
    one_tile = draw(st.booleans()) if one_tile is None else one_tile
    width = 1 if one_tile else draw(st.integers(1, n_tiles))
    tile = np.stack([rng.permutation(n_tiles)[:width] for _ in range(n)]).astype(np.int32)
    weight = None if one_tile else rng.standard_normal((n, width)) * rng.integers(0, 2, (n, width))
    y = rng.choice(np.array([-1, 1], dtype=np.int8), n)
    cost = 10.0 ** rng.uniform(-3, draw(st.sampled_from([0, 3])), n) * rng.integers(0, 2, n)
    storage = draw(st.sampled_from([np.ascontiguousarray, sparse.csr_array]))
    bias = draw(st.sampled_from([0.0, 1.0, 100.0]))
    loss = draw(st.sampled_from(["hinge", "squared_hinge"]))
    return Problem(Rows(storage(X), bias), tile, weight, coupling, y, cost, loss)


def check_solution(problem, solution):
    """Finite; feasible; the gap that is stated is the gap that a dual point has, and converged means what it says."""
    assert np.isfinite(solution.weights).all()
    assert np.isfinite([solution.primal, solution.dual, solution.gap]).all()
    excess = reference.infeasibility(solution.alpha, problem.cost, problem.loss.power)
    assert excess <= 1e-9 * (1 + problem.cost.max(initial=0.0))
    # Weak duality, whatever the solver says, up to rounding: that of margins on features of size 1e12 shows.
    # Both values may be far off P(0), which the target is a share of, where a problem did not converge.
    size = abs(solution.primal) + abs(solution.dual)
    slack = 1e-6 * size + 0.01 * solution.target
    assert solution.gap >= -slack
    value = primal(problem, solution.weights, margins(problem, solution.weights))
    assert_allclose(value, solution.primal, rtol=0, atol=slack)
    again = certify(problem, solution.alpha)
    assert_allclose(again.dual, solution.dual, rtol=0, atol=slack)
    # Better than doing nothing.
    assert solution.primal <= problem.primal_at_zero * (1 + 1e-9) + 1e-300 or not solution.converged
    assert solution.converged == (solution.gap <= solution.target)


@pytest.mark.parametrize("solver", ["dual", "auto"])
@some.tries(40)
@given(problem=problems(), seed=st.integers(0, 2**31 - 1))
def test_solutions_are_what_they_say(solver, problem, seed):
    (solution,) = solve([problem], solver=solver, tol=1e-4, max_iter=200, seed=seed)
    check_solution(problem, solution)


@some.tries(40)
@given(problem=problems(one_tile=True), seed=st.integers(0, 2**31 - 1))
def test_newton_solutions_are_what_they_say(problem, seed):
    (solution,) = solve([problem], solver="newton", tol=1e-6, max_iter=200, seed=seed)
    check_solution(problem, solution)


@some.tries(20)
@given(problem=problems(), seed=st.integers(0, 2**31 - 1))
def test_stochastic_descent_is_finite_and_no_worse_than_nothing(problem, seed):
    (solution,) = solve([problem], solver="sgd", tol=1e-4, max_iter=5, seed=seed)
    assert np.isfinite(solution.weights).all()
    assert np.isfinite(solution.primal)


@pytest.mark.parametrize("solver", ["dual", "auto", "sgd"])
@some.tries(8)
@given(problem=problems(), seed=st.integers(0, 2**31 - 1))
def test_bits_do_not_depend_on_threads_or_repetition(solver, problem, seed):
    several = [problem, problem.with_target(-problem.sign, problem.cost), problem]
    answers = [solve(several, solver=solver, max_iter=50, seed=seed, n_jobs=n_jobs) for n_jobs in (1, 2, 3, 1)]
    for other in answers[1:]:
        for a, b in zip(answers[0], other, strict=True):
            assert_array_equal(a.weights, b.weights)
            assert_array_equal(a.alpha, b.alpha)


@pytest.mark.parametrize("coding", ["nearest", "inverse", "softmax", "llc", "lle"])
@some.tries(40)
@given(data=st.data())
def test_gates_share_each_row_out(coding, data):
    """Weights are finite and sum to one, for any scale, on a center and with equal centers."""
    X = data.draw(some.matrices(min_rows=2))
    n_centers = data.draw(st.integers(1, len(X)))
    width = 1 if coding == "nearest" else data.draw(st.integers(1, n_centers))
    scale = data.draw(st.sampled_from([1e-12, 1.0, 1e12]))
    gate = DistanceGate(X[:n_centers].copy(), coding, width, scale)
    for storage in (np.ascontiguousarray, sparse.csr_array):
        tile, weight = gate.code(storage(X))
        assert ((tile >= 0) & (tile < n_centers)).all()
        if weight is not None:
            assert np.isfinite(weight).all()
            assert_allclose(weight.sum(axis=1), 1.0, rtol=1e-9)
            assert all(len(set(row)) == width for row in tile.tolist())
        assert_array_equal(gate.code(storage(X), n_jobs=3)[0], tile)


@some.tries(30)
@given(data=st.data())
def test_scores_are_the_formula(data):
    X = data.draw(some.matrices(min_rows=2))
    rng = np.random.default_rng(0)
    n_centers = data.draw(st.integers(1, min(5, len(X))))
    n_outputs = data.draw(st.integers(1, 3))
    link = data.draw(st.sampled_from(["identity", "vote"]))
    gate = DistanceGate(X[:n_centers].copy(), "inverse", data.draw(st.integers(1, n_centers)))
    size = np.abs(X).max(axis=0).astype(float) + 1e-30
    coef = rng.standard_normal((n_centers, n_outputs, X.shape[1])) / size
    intercept = rng.standard_normal((n_centers, n_outputs))
    mosaic = Mosaic(gate, coef, intercept, link)
    tile, weight = gate.code(X)
    score = np.einsum("kof,if->iko", coef, X.astype(float)) + intercept
    if link == "vote":
        score = np.exp(-np.maximum(0, 1 - score)) - np.exp(-np.maximum(0, 1 + score))
    wanted = np.einsum("ia,iao->io", weight, np.take_along_axis(score, tile[:, :, None], axis=1))
    near = {"rtol": 1e-3, "atol": 2e-3} if X.dtype == np.float32 else {"rtol": 1e-8, "atol": 1e-8}
    for storage in (np.ascontiguousarray, sparse.csr_array):
        scores = mosaic.score_codes(storage(X), tile, weight)
        assert_allclose(scores, wanted, **near)
        assert_array_equal(mosaic.score_codes(storage(X), tile, weight, n_jobs=3), scores)
    # One row at a time, from a row that is a column of something else.
    predictor = mosaic.compile()
    columns = np.asfortranarray(X)
    assert_allclose(
        np.array([np.atleast_1d(predictor.decision_function(row)) for row in columns]),
        mosaic.decision_function(X), **near,
    )  # fmt: skip


def _anything(draw):
    """Something that may or may not be what a function of the core wants."""
    shape = tuple(draw(st.lists(st.integers(0, 4), min_size=1, max_size=3)))
    dtype = draw(st.sampled_from([np.int8, np.int32, np.int64, np.uint64, np.float32, np.float64]))
    return np.full(shape, draw(st.sampled_from([-1, 0, 1, 3, 2**31 - 1])) % 128 if dtype == np.int8 else 1, dtype=dtype)


@some.tries(150)
@given(data=st.data())
def test_the_core_refuses_what_does_not_fit(data):
    """Arrays of any shape and type: a refusal or an answer, never a read past the end of one."""
    rows = Rows(np.ones((3, 2)), 1.0)
    design = _core.Design(rows.core, np.zeros((3, 1), dtype=np.int32), None, None, 1)

    def draw():
        return data.draw(st.just(None)) if data.draw(st.integers(0, 9)) == 0 else _anything(data.draw)

    state = _core.DescentState(np.arange(1, 5, dtype=np.uint64), data.draw(st.integers(-2, 5)))
    calls = {
        "sparse": lambda: _core.Rows.sparse(draw(), draw(), draw(), data.draw(st.integers(-2, 5)), 1.0),
        "design": lambda: _core.Design(rows.core, draw(), draw(), draw(), data.draw(st.integers(-2, 5))),
        "margins": lambda: _core.margins(rows.core, design, draw(), draw(), draw()),
        "accumulate": lambda: _core.accumulate(rows.core, design, draw(), draw(), draw()),
        "norms": lambda: _core.squared_norms(rows.core, draw()),
        "dual": lambda: _core.dual_descent(
            rows.core, design, draw(), draw(), draw(), data.draw(st.integers(0, 3)), draw(), draw(), state, draw(),
            draw(), 0.0, 2, 0.1,
        ),
        "gate": lambda: _core.DistanceGateF64(
            data.draw(st.sampled_from(["nearest", "softmax", "llc", "no"])), draw(), data.draw(st.integers(-1, 4)), 1.0,
            draw(), draw(),
        ),
        "scorer": lambda: _core.ScorerF32(None, draw(), draw(), "vote"),
    }  # fmt: skip
    call = calls[data.draw(st.sampled_from(sorted(calls)))]
    with contextlib.suppress(ValueError, TypeError):
        call()
