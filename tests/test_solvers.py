"""The solvers: certified optimal, in agreement with liblinear and rehline, and true to the identities."""

import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest
import reference
import sklearn.svm
from numpy.testing import assert_allclose, assert_array_equal
from problems import SHAPES, badly_scaled_data, hard_data, hard_problem
from rehline import ReHLine_solver
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_info, threadpool_limits

from svmosaic import LocallyLinearSVC
from svmosaic.couplings import Coupling
from svmosaic.rows import Rows
from svmosaic.solvers import Problem, hessians, newton, solve, warn_if_unconverged
from svmosaic.solvers.certificates import certify, dual, margins, primal, weights_of

EXACT = {"tol": 1e-10, "max_iter": 50_000}
LOSSES = ["hinge", "squared_hinge"]
CHOSEN = ["dual", "newton"]


def solve_one(problem, **options):
    return solve([problem], **{**EXACT, **options})[0]


def assert_certified(problem, X, solution, tol=1e-10):
    """Feasible, with a gap below tol by the reference's own sums, and near-stationary."""
    Z = reference.expand_problem(problem, X)
    cost, power, threshold, total = problem.cost, problem.loss.power, problem.threshold, problem.primal_at_zero
    assert reference.infeasibility(solution.alpha, cost, power) == 0.0
    value = reference.primal(Z, problem.sign, cost, solution.weights, power, threshold)
    bound = reference.dual(Z, problem.sign, cost, solution.alpha, power, threshold)
    assert_allclose(solution.primal, value, rtol=1e-10)
    assert_allclose(solution.dual, bound, rtol=1e-10)
    assert value - bound <= (tol + 1e-12) * total
    # 1/2 |v - v*|^2 <= P(v) - P* by strong convexity, for both v and V(alpha).
    implied = reference.weights(Z, problem.sign, solution.alpha)
    assert np.linalg.norm(solution.weights.ravel() - implied) <= 2 * np.sqrt(2 * (tol + 1e-12) * total)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", CHOSEN)
@pytest.mark.parametrize("seed", range(2))
def test_certified_optimal(seed, solver, loss, shape, storage, dtype):
    problem, X = hard_problem(seed, shape=shape, loss=loss, storage=storage, dtype=dtype)
    solution = solve_one(problem, solver=solver)
    assert solution.converged
    assert solver in solution.solver  # "dual+newton" where a cell is empty
    assert_certified(problem, X, solution)
    Z = reference.expand_problem(problem, X)
    assert reference.kkt_residual(Z, problem.sign, problem.cost, solution.alpha, problem.loss.power) < 1e-3


@pytest.mark.parametrize("bias", [0.0, 1.0, 5.0])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", CHOSEN)
def test_an_all_zero_row_pays_in_full(solver, loss, bias):
    problem, X = hard_problem(3, loss=loss, bias=bias)
    solution = solve_one(problem, solver=solver)
    assert_certified(problem, X, solution)
    if bias == 0.0:  # its margin is 0 whatever the weights: alpha = c, or the 2c of the squared hinge
        full = problem.cost[0] * (2.0 if loss == "squared_hinge" else 1.0)
        assert_allclose(solution.alpha[0], full, rtol=1e-9)


@pytest.mark.parametrize("solver", CHOSEN)
@pytest.mark.parametrize("loss", LOSSES)
def test_rows_of_cost_zero_do_not_exist(loss, solver):
    problem, X = hard_problem(1, shape="global", loss=loss)
    paid = problem.cost > 0
    fewer = Problem(
        Rows(X[paid]), problem.tile[paid], None, problem.coupling, problem.sign[paid], problem.cost[paid], loss
    )
    with_them, without = solve_one(problem, solver=solver), solve_one(fewer, solver=solver)
    assert_array_equal(with_them.alpha[~paid], 0.0)
    assert_allclose(with_them.weights, without.weights, atol=1e-4)
    assert_allclose(with_them.primal, without.primal, rtol=1e-8)


@pytest.mark.parametrize("solver", ["auto", *CHOSEN])
def test_all_costs_zero_gives_zero_weights(solver):
    problem, _ = hard_problem(0, shape="cells")
    solution = solve_one(replace(problem, cost=np.zeros(problem.n_rows)), solver=solver)
    assert_array_equal(solution.weights, 0.0)
    assert_array_equal(solution.alpha, 0.0)
    assert solution.gap == 0.0
    assert solution.converged


@pytest.mark.parametrize("loss", LOSSES)
def test_soft_codes_and_row_indices(loss):
    """Rows over several tiles with weights, and several problem rows on one data row: what EM and coding use."""
    X, y, cost = hard_data(5)
    rng = np.random.RandomState(5)
    index = rng.randint(len(X), size=200).astype(np.int32)
    tile = np.array([rng.choice(5, 3, replace=False) for _ in index], dtype=np.int32)
    weight = rng.dirichlet(np.ones(3), len(index))
    coupling = Coupling(0.8, rng.standard_normal((5, 1)))
    problem = Problem(Rows(X), tile, weight, coupling, y[index], cost[index], loss, index)
    solution = solve_one(problem)
    assert solution.solver == "dual"
    assert_certified(problem, X, solution)
    with pytest.raises(ValueError, match="tiles that share nothing; use solver='dual'"):
        solve_one(problem, solver="newton")


@pytest.mark.parametrize("solver", CHOSEN)
def test_indexed_rows_equal_copied_rows(solver):
    X, y, cost = hard_data(6)
    index = np.random.RandomState(6).randint(len(X), size=150).astype(np.int32)
    tile = (index[:, None] % 3).astype(np.int32)
    coupling = Coupling.to_global(3, 1.0)
    indexed = Problem(Rows(X), tile, None, coupling, y[index], cost[index], "hinge", index)
    copied = Problem(Rows(X[index]), tile, None, coupling, y[index], cost[index])
    assert_allclose(solve_one(indexed, solver=solver).weights, solve_one(copied, solver=solver).weights, atol=1e-4)


@pytest.mark.parametrize("solver", CHOSEN)
@pytest.mark.parametrize("loss", LOSSES)
def test_cost_k_is_k_copies(loss, solver):
    X, y, _ = hard_data(7)
    copies = np.random.RandomState(7).randint(0, 4, len(X))
    again = np.repeat(np.arange(len(X)), copies)
    tile = (np.arange(len(X))[:, None] % 3).astype(np.int32)
    coupling = Coupling.to_global(3, 0.5)
    weighted = solve_one(Problem(Rows(X), tile, None, coupling, y, copies.astype(float), loss), solver=solver)
    copied = solve_one(
        Problem(Rows(X[again]), tile[again], None, coupling, y[again], np.ones(len(again)), loss), solver=solver
    )
    assert_allclose(weighted.primal, copied.primal, rtol=1e-8)
    assert_allclose(weighted.weights, copied.weights, atol=1e-4)


@pytest.mark.parametrize("solver", CHOSEN)
def test_row_order_is_irrelevant(solver):
    problem, X = hard_problem(8, shape="global")
    order = np.random.RandomState(8).permutation(problem.n_rows)
    shuffled = Problem(
        Rows(X[order]), problem.tile[order], None, problem.coupling, problem.sign[order], problem.cost[order]
    )
    one, other = solve_one(problem, solver=solver), solve_one(shuffled, solver=solver)
    assert_allclose(one.weights, other.weights, atol=1e-4)
    assert_allclose(one.primal, other.primal, rtol=1e-8)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_two_solvers_agree(shape, loss):
    problem, _ = hard_problem(9, shape=shape, loss=loss)
    one, other = (solve_one(problem, solver=solver) for solver in CHOSEN)
    assert_allclose(one.weights, other.weights, atol=1e-4)


# ---- outside solvers ------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", CHOSEN)
@pytest.mark.parametrize("shape", ["linear", "global"])
@pytest.mark.parametrize("loss", LOSSES)
def test_agrees_with_liblinear_on_the_expanded_matrix(loss, shape, solver):
    problem, X = hard_problem(10, shape=shape, loss=loss)
    Z = reference.expand_problem(problem, X)
    peer = sklearn.svm.LinearSVC(loss=loss, fit_intercept=False, tol=1e-7, max_iter=1_000_000, random_state=0)
    peer.fit(Z, problem.sign, sample_weight=problem.cost)
    theirs = reference.primal(Z, problem.sign, problem.cost, peer.coef_, problem.loss.power)
    ours = reference.primal(
        Z, problem.sign, problem.cost, solve_one(problem, solver=solver).weights, problem.loss.power
    )
    assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.parametrize("solver", CHOSEN)
@pytest.mark.parametrize("shape", SHAPES)
def test_agrees_with_rehline_on_the_expanded_matrix(shape, solver):
    problem, X = hard_problem(11, shape=shape)
    Z = reference.expand_problem(problem, X)
    U = np.ascontiguousarray((-problem.cost * problem.sign)[None])
    V = np.ascontiguousarray(problem.cost[None])
    peer = ReHLine_solver(Z, U, V, max_iter=1_000_000, tol=1e-9, verbose=0)
    theirs = reference.primal(Z, problem.sign, problem.cost, peer.beta, 1)
    ours = reference.primal(Z, problem.sign, problem.cost, solve_one(problem, solver=solver).weights, 1)
    assert_allclose(ours, theirs, rtol=1e-6)


# ---- hard cases -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_tiles", [1, 4])
@pytest.mark.parametrize("loss", LOSSES)
def test_auto_converges_on_badly_scaled_data(loss, n_tiles, dtype):
    X, y = badly_scaled_data()
    cost = np.full(len(y), 100.0)
    tile = np.random.RandomState(0).randint(n_tiles, size=(len(y), 1)).astype(np.int32)
    problem = Problem(Rows(X.astype(dtype)), tile, None, Coupling.to_global(n_tiles, 1.0), y, cost, loss)
    solution = solve([problem], tol=1e-6)[0]
    assert solution.converged
    # Relative to the optimum itself, which the dual bounds: stricter than relative to the objective at zero.
    assert solution.gap <= 1e-6 * problem.primal_at_zero
    certificate = certify(problem, solution.alpha)
    assert solution.dual == pytest.approx(certificate.dual, rel=1e-9)
    Z = reference.expand_problem(problem, X.astype(dtype))
    value = reference.primal(Z, y, cost, solution.weights, problem.loss.power)
    assert value - certificate.dual <= 1.001e-6 * problem.primal_at_zero


def test_descent_alone_stalls_on_badly_scaled_data():
    """Why there is a second solver: without it the test above would not be one."""
    X, y = badly_scaled_data()
    problem = Problem(
        Rows(X), np.zeros((len(y), 1), np.int32), None, Coupling.independent(1), y, np.full(len(y), 100.0)
    )
    assert solve([problem], solver="dual", tol=1e-6, max_iter=300)[0].gap > 0.01 * problem.primal_at_zero


@pytest.mark.parametrize("solver", ["auto", *CHOSEN])
def test_float32_rows_of_huge_norm(solver):
    """Margins that overflow float32 must not turn the weights into NaN."""
    X, y, cost = hard_data(2, dtype=np.float32)
    problem = Problem(
        Rows(X * np.float32(1e19)), np.zeros((len(y), 1), np.int32), None, Coupling.independent(1), y, cost
    )
    solution = solve([problem], solver=solver, tol=1e-3, max_iter=20)[0]
    assert np.isfinite(solution.weights).all()
    assert np.isfinite(solution.gap)


def test_rows_too_large_for_float64_are_refused():
    X, y, cost = hard_data(2)
    problem = Problem(Rows(X * 1e160), np.zeros((len(y), 1), np.int32), None, Coupling.independent(1), y, cost)
    with pytest.raises(ValueError, match=r"too large.*scale"):
        solve([problem])
    problem, _ = hard_problem(2)
    with pytest.raises(ValueError, match="costs"):
        solve([replace(problem, cost=np.full(problem.n_rows, 1e308))])


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", ["auto", *CHOSEN])
def test_rows_nearly_too_large_end_without_nan(solver, loss):
    """Their curvature times a proximal step overflows: the solver must give up, not run for ever."""
    X, y, cost = hard_data(2)
    problem = Problem(
        Rows(X * 1e152), np.zeros((len(y), 1), np.int32), None, Coupling.independent(1), y, 1e5 * cost, loss
    )
    with np.errstate(over="ignore", invalid="ignore"):
        solution = solve([problem], solver=solver, max_iter=20)[0]
    assert np.isfinite(solution.weights).all()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", CHOSEN)
def test_one_class_and_one_row(solver, loss):
    X, _, cost = hard_data(4)
    for n in (1, 20):
        problem = Problem(
            Rows(X[1 : n + 1]), np.zeros((n, 1), np.int32), None, Coupling.independent(1),
            np.ones(n, np.int8), cost[1 : n + 1], loss,
        )  # fmt: skip
        assert_certified(problem, X[1 : n + 1], solve_one(problem, solver=solver))


# ---- driver ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", CHOSEN)
@pytest.mark.parametrize("loss", LOSSES)
def test_warm_start_from_the_answer_is_done_at_once(loss, solver):
    problem, X = hard_problem(12, shape="global", loss=loss)
    cold = solve([problem], solver=solver, tol=1e-8, max_iter=50_000)[0]
    warm = solve([problem], solver=solver, tol=1e-6, start=[cold.alpha])[0]
    assert warm.n_iter <= 3 < cold.n_iter
    assert_certified(problem, X, warm, tol=1e-6)


@pytest.mark.parametrize("solver", CHOSEN)
@pytest.mark.parametrize("shape", ["cells", "global"])
def test_warm_start_is_clipped_to_the_costs_and_leaves_its_duals_alone(shape, solver):
    problem, X = hard_problem(13, shape=shape)
    start = np.full(problem.n_rows, 10.0)
    start[::2] = -10.0
    kept = start.copy()
    assert_certified(problem, X, solve_one(problem, solver=solver, start=[start]))
    assert_array_equal(start, kept)


def test_shrinking_ends_at_the_same_optimum():
    """Separable data at a large cost shrinks most rows away; the certificate covers them all the same."""
    rng = np.random.RandomState(14)
    X = np.vstack([rng.standard_normal((300, 5)) + 2.0, rng.standard_normal((300, 5)) - 2.0])
    y = np.repeat([1, -1], 300).astype(np.int8)
    problem = Problem(Rows(X), np.zeros((600, 1), np.int32), None, Coupling.independent(1), y, np.full(600, 10.0))
    solution = solve_one(problem, solver="dual")
    assert (solution.alpha == 0).sum() > 400
    assert_certified(problem, X, solution)
    assert_allclose(solution.weights, solve_one(problem, solver="newton").weights, atol=1e-4)


@pytest.mark.parametrize("solver", ["auto", *CHOSEN])
@pytest.mark.parametrize("shape", SHAPES)
def test_same_bits_whatever_n_jobs(shape, solver):
    _, y, cost = hard_data(15, n=4000)
    first, _ = hard_problem(15, shape=shape, n=4000)
    problems = [first, first.with_target(-np.roll(y, 1), cost), first.with_target(np.roll(y, 2), cost)]
    runs = [solve(problems, solver=solver, tol=1e-5, n_jobs=n_jobs, seed=3) for n_jobs in (1, 2, 5, 1)]
    for other in runs[1:]:
        for one, two in zip(runs[0], other, strict=True):
            assert_array_equal(one.weights, two.weights)
            assert_array_equal(one.alpha, two.alpha)
            assert one.gap == two.gap


@pytest.mark.parametrize("solver", CHOSEN)
def test_same_bits_with_threads_inside_one_problem(solver):
    """Large enough that the passes are cut into pieces."""
    problem, _ = hard_problem(16, n=60_000)
    one, two = (solve([problem], solver=solver, tol=1e-4, n_jobs=n_jobs)[0] for n_jobs in (1, 2))
    assert_array_equal(one.weights, two.weights)
    assert_array_equal(one.alpha, two.alpha)


def test_classes_may_build_what_they_share_at_the_same_time():
    """Many threads, each the first to ask for the design that their problems share."""
    for seed in range(20):
        first, _ = hard_problem(seed, shape="cells")
        problems = [first] + [first.with_target(-first.sign, first.cost) for _ in range(9)]
        one, many = (solve(problems, solver="dual", tol=0.1, n_jobs=n_jobs) for n_jobs in (1, 10))
        assert all(np.array_equal(a.alpha, b.alpha) for a, b in zip(one, many, strict=True))


def test_auto_hands_over_when_descent_reaches_its_limit():
    """150 rows of four unscaled features: an epoch costs next to nothing, and a thousand are not enough."""
    X, y = load_iris(return_X_y=True)
    problem = Problem(
        Rows(X), np.zeros((len(y), 1), np.int32), None, Coupling.independent(1),
        np.where(y == 1, 1, -1).astype(np.int8), np.ones(len(y)),
    )  # fmt: skip
    assert not solve([problem], solver="dual", tol=1e-6, max_iter=1000)[0].converged
    solution = solve([problem], tol=1e-6, max_iter=1000)[0]
    assert solution.converged
    assert solution.solver == "newton"
    # Where neither gets there, the better of the two is returned.
    both = [solve([problem], solver=s, tol=1e-12, max_iter=3)[0].gap for s in ("dual", "auto")]
    assert both[1] <= both[0]


def test_auto_hands_codes_over_to_newton():
    """Descent drags on, where a Newton's method over pairs of tiles is done in a few steps."""
    problem, X = hard_problem(3, shape="codes", n=3000, loss="squared_hinge")
    problem = problem.with_target(problem.sign, 100.0 * problem.cost)
    assert not solve([problem], solver="dual", tol=1e-6, max_iter=200)[0].converged
    solution = solve([problem], tol=1e-6, max_iter=200)[0]
    assert (solution.converged, solution.solver) == (True, "newton")
    assert_certified(problem, X, solution, tol=1e-6)


def test_descent_that_is_nearly_done_is_not_handed_over(monkeypatch):
    rules = sys.modules["svmosaic.solvers.solve"]
    problem, X = hard_problem(3, shape="codes", n=3000, loss="squared_hinge")
    problem = problem.with_target(problem.sign, 0.03 * problem.cost)
    needed = solve([problem], solver="dual", tol=1e-3)[0].n_iter
    assert needed > 4
    monkeypatch.setattr(rules, "_TYPICAL_EPOCHS", needed // 2)
    monkeypatch.setattr(rules, "_PATIENCE_CROSSED", 0.0)
    patient = solve([problem], tol=1e-3)[0]
    assert (patient.converged, patient.solver) == (True, "dual")
    assert_certified(problem, X, patient, tol=1e-3)
    monkeypatch.setattr(rules, "_SLOWER", 1e9)
    assert solve([problem], tol=1e-3)[0].solver == "newton"


def test_codes_too_large_for_newton_stay_with_descent(monkeypatch):
    monkeypatch.setattr(sys.modules["svmosaic.solvers.solve"], "_LARGEST_OWN", 2000.0)
    problem, _ = hard_problem(3, shape="codes", n=3000)
    assert solve([problem], tol=1e-6, max_iter=20)[0].solver == "dual"
    with pytest.raises(ValueError, match=r"at most 2e\+03 bytes .* 4 tiles of 7 features and a bias need 2e\+03: use"):
        solve([problem], solver="newton")


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_codes_by_conjugate_gradients(monkeypatch, loss, storage):
    """The same optimum as with the dense system, certified; the same bits for any number of threads."""
    problem, X = hard_problem(3, shape="codes", n=3000, loss=loss, storage=storage)
    dense = solve([problem], solver="newton", tol=1e-8)[0]
    monkeypatch.setattr(newton, "LARGEST_DENSE", 0)
    products = solve([problem], solver="newton", tol=1e-8, max_iter=2000)[0]
    assert_certified(problem, X, products, tol=1e-8)
    assert_allclose(products.primal, dense.primal, rtol=1e-7)
    again = solve([problem], solver="newton", tol=1e-8, max_iter=2000, n_jobs=3)[0]
    assert_array_equal(again.weights, products.weights)


def test_blas_keeps_to_one_thread_while_solving(monkeypatch):
    """Its threads on small matrices cost ten times what they gain; afterwards the user's setting is back."""
    seen = []

    def spy(*arguments, **options):
        seen.extend(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")
        return newton.solve_newton(*arguments, **options)

    monkeypatch.setattr(sys.modules["svmosaic.solvers.solve"], "solve_newton", spy)
    with threadpool_limits(2, user_api="blas"):
        before = [library["num_threads"] for library in threadpool_info()]
        solve([hard_problem(0)[0]] * 2, solver="newton", n_jobs=2)
        assert [library["num_threads"] for library in threadpool_info()] == before
    assert set(seen) == {1}


def test_seed_orders_the_coordinates():
    problem, _ = hard_problem(17)
    one, two = (solve([problem], solver="dual", tol=1e-3, seed=seed)[0] for seed in (0, 1))
    assert not np.array_equal(one.alpha, two.alpha)


@pytest.mark.parametrize("solver", CHOSEN)
def test_early_stop_warns_with_the_gap_the_target_and_the_remedy(solver):
    problem, X = hard_problem(18)
    solutions = solve([problem], solver=solver, tol=1e-12, max_iter=2)
    (solution,) = solutions
    assert not solution.converged
    assert solution.n_iter == 2
    with pytest.warns(ConvergenceWarning) as caught:
        warn_if_unconverged(solutions, 2, "Model")
    message = str(caught[0].message)
    for part in ("max_iter=2", f"{solution.gap:.3g}", f"{solution.target:.3g}", "Standardize", "increase max_iter"):
        assert part in message
    Z = reference.expand_problem(problem, X)
    assert_allclose(
        solution.gap,
        reference.primal(Z, problem.sign, problem.cost, solution.weights, 1)
        - reference.dual(Z, problem.sign, problem.cost, solution.alpha, 1),
        rtol=1e-9,
    )


def test_no_warning_when_converged():
    problem, _ = hard_problem(18)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_unconverged(solve([problem], tol=1e-3), 1000, "Model")


# ---- certificates ---------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_certificates_equal_the_reference_at_any_point(shape, loss, storage):
    problem, X = hard_problem(19, shape=shape, loss=loss, storage=storage)
    Z, y, cost, power = reference.expand_problem(problem, X), problem.sign, problem.cost, problem.loss.power
    alpha = np.random.RandomState(19).uniform(0, 1, problem.n_rows) * cost
    alpha[::5] = 0.0
    alpha[1::5] = cost[1::5]
    implied = reference.weights(Z, y, alpha)
    assert_allclose(weights_of(problem, alpha).ravel(), implied, atol=1e-10)
    margin = margins(problem, implied.reshape(problem.shape))
    assert_allclose(margin, y * (Z @ implied), atol=1e-9)
    assert_allclose(primal(problem, implied, margin), reference.primal(Z, y, cost, implied, power))
    assert_allclose(dual(problem, implied, alpha), reference.dual(Z, y, cost, alpha, power))
    certificate = certify(problem, alpha)
    assert_allclose(certificate.gap, certificate.primal - certificate.dual)


@pytest.mark.parametrize("loss", LOSSES)
def test_certificate_rejects_a_spoilt_solution(loss):
    problem, X = hard_problem(20, loss=loss)
    solution = solve_one(problem)
    Z = reference.expand_problem(problem, X)
    assert reference.kkt_residual(Z, problem.sign, problem.cost, solution.alpha, problem.loss.power) < 1e-3
    spoilt = solution.alpha.copy()
    spoilt[np.argmax(spoilt * problem.curvature)] *= 0.99
    certificate = certify(problem, spoilt)
    assert certificate.gap > 1e-7 * problem.primal_at_zero
    assert certificate.gap > 100 * max(solution.gap, solution.target)
    assert reference.kkt_residual(Z, problem.sign, problem.cost, spoilt, problem.loss.power) > 1e-3


def test_rows_of_another_type_are_refused():
    with pytest.raises(ValueError, match="float32 or float64, got int64"):
        Rows(np.ones((3, 2), dtype=np.int64))


def test_rows_take_any_layout():
    X, _, _ = hard_data(21)
    norms = reference.augment(X, 2.0) ** 2
    for stored in (np.asfortranarray(X), X[::-1][::-1], sparse.csc_array(X), sparse.coo_matrix(X)):
        assert_allclose(Rows(stored, 2.0).squared_norms, norms.sum(axis=1))


@pytest.mark.parametrize("solver", CHOSEN)
def test_sparse_entries_stored_twice_add_up(solver):
    X, y, cost = hard_data(22)
    whole = sparse.csr_array(X)
    twice = sparse.csr_array(
        (np.repeat(whole.data / 2, 2), np.repeat(whole.indices, 2), 2 * whole.indptr), shape=whole.shape
    )
    assert not twice.has_canonical_format
    stored = twice.nnz
    tile = np.zeros((len(y), 1), np.int32)
    one, two = (
        solve_one(Problem(Rows(x), tile, None, Coupling.independent(1), y, cost), solver=solver) for x in (whole, twice)
    )
    assert_allclose(one.weights, two.weights, atol=1e-4)
    assert_allclose(Rows(twice).squared_norms, Rows(X).squared_norms)
    assert twice.nnz == stored, "the user's matrix is left alone"


def test_rows_with_a_period_are_solved_as_fast_as_shuffled_ones(monkeypatch):
    """Every sixteenth row would be of one phase only, and its codes no good to precondition with."""
    monkeypatch.setattr(newton, "LARGEST_DENSE", 0)
    monkeypatch.setattr(hessians, "OVERLAP_ROWS", 680)
    n_products = 0

    class CountedProduct(newton.Product):
        def __init__(self, *parts):
            nonlocal n_products
            n_products += 1
            super().__init__(*parts)

    monkeypatch.setattr(newton, "Product", CountedProduct)

    def products(order):
        nonlocal n_products
        n_products = 0
        LocallyLinearSVC(8, n_neighbors=4, solver="newton", random_state=0).fit(X[order], y[order])
        return n_products

    rng = np.random.default_rng(0)
    phase = np.arange(16 * 680) % 16  # the correlation of the codes is that of a sixteenth of the rows
    X = np.hstack([np.eye(16)[phase], rng.standard_normal((len(phase), 4))])
    y = np.sin(2 * X[:, 16]) * (phase - 7.5) + X[:, 17] * X[:, 18] > 0
    as_it_came, shuffled = products(np.arange(len(y))), products(rng.permutation(len(y)))
    assert 0 < as_it_came <= 3 * shuffled
