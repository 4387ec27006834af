"""The losses: slopes and conjugates by brute force, rows of samples, and regression against outside solvers."""

import clarabel
import numpy as np
import pytest
import reference
import sklearn.svm
from numpy.testing import assert_allclose, assert_array_equal
from problems import hard_data
from scipy import sparse
from sklearn.linear_model import QuantileRegressor

from svmosaic.couplings import Coupling
from svmosaic.losses import (
    CLASSIFICATION_LOSSES,
    HINGE,
    LOSSES,
    REGRESSION_LOSSES,
    SQUARED_HINGE,
    Loss,
    unit_of,
)
from svmosaic.rows import Rows
from svmosaic.solvers import Problem, problems_of, solve
from svmosaic.solvers.share import threshold_sums

PARAMETERS = {"epsilon": 0.2, "quantile": 0.3}
EXACT = {"tol": 1e-9, "max_iter": 100_000}


@pytest.mark.parametrize("loss", [HINGE, SQUARED_HINGE], ids=lambda loss: loss.name)
@pytest.mark.parametrize("threshold", [None, 0.0, -0.7, 2.5])
def test_slopes_and_curvatures_are_finite_differences(loss, threshold):
    margin = np.linspace(-4, 4, 404) + 3e-4  # no point within 1e-4 of a kink
    thresholds = None if threshold is None else np.full(404, threshold)
    nudge = 1e-5

    def value(m):
        return loss.value(m, thresholds)

    assert_allclose(value(margin), reference.loss(margin, loss.power, thresholds))
    assert_allclose(
        loss.pull(margin, thresholds), -(value(margin + nudge) - value(margin - nudge)) / (2 * nudge), atol=1e-7
    )
    slope = -(loss.pull(margin + nudge, thresholds) - loss.pull(margin - nudge, thresholds)) / (2 * nudge)
    assert_allclose(loss.curvature(margin, thresholds), slope, atol=1e-7)


@pytest.mark.parametrize("loss", [HINGE, SQUARED_HINGE], ids=lambda loss: loss.name)
@pytest.mark.parametrize("threshold", [1.0, 0.0, -0.7, 2.5])
@pytest.mark.parametrize("cost", [0.3, 2.0])
def test_the_dual_is_the_conjugate(loss, threshold, cost):
    """min over m of c loss(m) + a m is t a - dual_cost(a) within the bounds, and has no bound outside of them."""
    upper = float(loss.upper(np.array([cost]))[0])
    margin = threshold + np.linspace(-40, 40, 320_001)
    for alpha in np.array([0.0, 0.2, 0.7, 1.0]) * min(upper, 5.0):
        found = (cost * loss.value(margin, threshold) + alpha * margin).min()
        earned = threshold * alpha - loss.dual_cost(np.array([alpha]), np.array([cost]))
        assert_allclose(found, earned, atol=1e-6)
    beyond = [-0.1] if np.isinf(upper) else [-0.1, upper + 0.1]
    for alpha in beyond:
        values = cost * loss.value(margin, threshold) + alpha * margin
        assert values.argmin() in (0, len(margin) - 1)
    if loss.smooth_step is not None:  # the response of Newton's method is the pull
        assert_allclose(loss.smooth_step * (threshold + 1.5), loss.pull(np.array([-1.5]), max(threshold, -1.5)))


def test_rows_of_no_cost_have_no_dual():
    cost, alpha = np.array([0.0, 2.0]), np.array([0.0, 3.0])
    assert_array_equal(HINGE.upper(cost), cost)
    assert_array_equal(SQUARED_HINGE.upper(cost), [0.0, np.inf])
    assert SQUARED_HINGE.dual_cost(alpha, cost) == 9.0 / 8.0
    assert HINGE.dual_cost(alpha, cost) == 0.0


def plain_regression_loss(name, residual, epsilon, quantile):
    """What the docs promise, of y - f."""
    tilt = np.where(residual > 0, quantile, 1 - quantile)
    return {
        "epsilon_insensitive": np.maximum(0, np.abs(residual) - epsilon),
        "squared_epsilon_insensitive": np.maximum(0, np.abs(residual) - epsilon) ** 2,
        "quantile": tilt * np.abs(residual),
        "expectile": tilt * residual**2,
    }[name]


@pytest.mark.parametrize("name", REGRESSION_LOSSES)
def test_rows_of_regression_add_up_to_the_loss(name):
    rng = np.random.RandomState(0)
    y, f, cost = rng.standard_normal(50), rng.standard_normal(50), rng.uniform(0, 2, 50)
    loss = LOSSES[name]
    rows = loss.rows(y, cost, **PARAMETERS)
    paid = rows.cost * loss.value(rows.sign * f[rows.index], rows.threshold)
    assert_allclose(np.bincount(rows.index, paid), cost * plain_regression_loss(name, y - f, **PARAMETERS))
    assert_array_equal(rows.index, np.repeat(np.arange(50), 2))
    assert_allclose(loss.at_zero(rows.cost, rows.threshold), cost @ plain_regression_loss(name, y, **PARAMETERS))


@pytest.mark.parametrize("name", CLASSIFICATION_LOSSES)
def test_rows_of_classification_are_the_samples(name):
    y, cost = np.array([1, -1, 1], np.int8), np.array([0.5, 0.0, 2.0])
    rows = LOSSES[name].rows(y, cost, epsilon="not asked for")
    assert_array_equal(rows.sign, y)
    assert rows.cost is cost, "outputs share the costs"
    assert rows.threshold is None
    assert rows.index is None
    assert LOSSES[name].at_zero(rows.cost) == 2.5


def test_a_loss_that_lacks_a_parameter_says_so():
    with pytest.raises(KeyError, match="epsilon"):
        LOSSES["epsilon_insensitive"].rows(np.zeros(2), np.ones(2))


def test_the_unit_of_margins():
    cost = np.array([1.0, 3.0, 5.0])
    arguments = (
        Rows(np.ones((3, 1))),
        np.zeros((3, 1), np.int32),
        None,
        Coupling.independent(1),
        np.ones(3, np.int8),
        cost,
    )

    def unit(*threshold):
        return unit_of(threshold_sums(Problem(*arguments, HINGE, None, np.array(threshold) if threshold else None)))

    assert unit() == 1.0
    assert unit(2.0, 6.0, -9.0) == 5.0
    assert unit(-2.0, -6.0, 0.0) == 1.0


# ---- the solvers on regression problems -----------------------------------------------------------------------------


def regression(name, *, scale=1.0, n=90, shape="linear", C=1.7, storage=np.asarray):
    """(problem, X, y): a noisy line, an all-zero row, unequal costs, some of them zero; as hard at every scale of y."""
    X, _, cost = hard_data(3, n=n)
    rng = np.random.RandomState(7)
    y = scale * (X @ rng.standard_normal(X.shape[1]) / 3 + 0.5 + 0.6 * rng.standard_normal(n))
    n_tiles = 1 if shape == "linear" else 3
    tile = rng.randint(n_tiles, size=(n, 1)).astype(np.int32)
    code = None
    if shape == "codes":
        tile, code = np.array([[0, 1]] * n, np.int32), rng.uniform(0.1, 1.0, (n, 2))
    coupling = Coupling.to_global(n_tiles, 2.0) if shape == "global" else Coupling.independent(n_tiles)
    C *= scale if LOSSES[name].power == 1 else 1.0
    rows = LOSSES[name].rows(y, C * cost, epsilon=PARAMETERS["epsilon"] * scale, quantile=PARAMETERS["quantile"])
    (problem,) = problems_of(Rows(storage(X)), (tile, code), coupling, LOSSES[name], [rows])
    return problem, X, y


def assert_certified(problem, X, solution, tol):
    Z = reference.expand_problem(problem, X)
    arguments = problem.sign, problem.cost
    value = reference.primal(Z, *arguments, solution.weights, problem.loss.power, problem.threshold)
    bound = reference.dual(Z, *arguments, solution.alpha, problem.loss.power, problem.threshold)
    assert solution.converged
    assert reference.infeasibility(solution.alpha, problem.cost, problem.loss.power) == 0.0
    assert_allclose(solution.primal, value, rtol=1e-9)
    assert_allclose(solution.dual, bound, rtol=1e-9)
    assert value - bound <= (tol + 1e-12) * problem.primal_at_zero


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("shape", ["linear", "cells", "global", "codes"])
@pytest.mark.parametrize("solver", ["dual", "newton"])
@pytest.mark.parametrize("name", REGRESSION_LOSSES)
def test_regression_is_certified(name, solver, shape, scale):
    problem, X, _ = regression(name, shape=shape, scale=scale, storage=sparse.csr_array if scale == 1 else np.asarray)
    solution = solve([problem], solver=solver, **EXACT)[0]
    assert_certified(problem, X, solution, 1e-9)
    Z = reference.expand_problem(problem, X)
    worst = reference.kkt_residual(Z, problem.sign, problem.cost, solution.alpha, problem.loss.power, problem.threshold)
    assert worst < 2e-2 * scale


@pytest.mark.parametrize("solver", ["dual", "newton"])
@pytest.mark.parametrize("name", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_agrees_with_liblinear(name, solver):
    problem, X, y = regression(name)
    peer = sklearn.svm.LinearSVR(
        C=1.0, loss=name, epsilon=PARAMETERS["epsilon"], fit_intercept=False, tol=1e-8, max_iter=1_000_000, dual=True,
    )  # fmt: skip
    cost = problem.cost[::2]
    Z = reference.augment(X, 1.0)
    peer.fit(Z, y, sample_weight=cost)
    ours = solve([problem], solver=solver, **EXACT)[0]
    assert_allclose(ours.weights[0], peer.coef_, atol=1e-4)
    theirs = 0.5 * peer.coef_ @ peer.coef_
    theirs += cost @ plain_regression_loss(name, y - Z @ peer.coef_, **PARAMETERS)
    assert_allclose(ours.primal, theirs, rtol=1e-6)


@pytest.mark.parametrize("solver", ["dual", "newton"])
@pytest.mark.parametrize("name", ["quantile", "expectile"])
def test_agrees_with_a_quadratic_program(name, solver):
    """min 1/2 |v|^2 + sum_r c_r u_r^p with u_r >= t_r - s_r <z_r, v> and u_r >= 0, by an interior-point method."""
    problem, X, _ = regression(name)
    Z = problem.sign[:, None] * reference.expand_problem(problem, X)
    n, d = Z.shape
    square = 2 * problem.cost if name == "expectile" else np.zeros(n)
    linear = np.zeros(n) if name == "expectile" else problem.cost
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    program = clarabel.DefaultSolver(
        sparse.csc_matrix(sparse.diags(np.concatenate([np.ones(d), square]))),
        np.concatenate([np.zeros(d), linear]),
        sparse.csc_matrix(sparse.block_array([[-sparse.csr_array(Z), -sparse.eye(n)], [None, -sparse.eye(n)]])),
        np.concatenate([-problem.threshold, np.zeros(n)]),
        [clarabel.NonnegativeConeT(2 * n)],
        settings,
    )
    found = program.solve()
    ours = solve([problem], solver=solver, **EXACT)[0]
    assert_allclose(ours.primal, found.obj_val, rtol=1e-6)
    assert_allclose(ours.weights.ravel(), found.x[:d], atol=1e-3)


def test_quantiles_agree_with_the_linear_program_as_C_grows():
    problem, X, y = regression("quantile", C=1e4)
    Z = reference.augment(X, 1.0)
    paid = problem.cost[::2] > 0
    weight = problem.cost[::2][paid] + problem.cost[1::2][paid]
    peer = QuantileRegressor(quantile=PARAMETERS["quantile"], alpha=0.0, fit_intercept=False)
    peer.fit(Z[paid], y[paid], sample_weight=weight)
    ours = solve([problem], **EXACT)[0]
    assert_allclose(ours.weights[0], peer.coef_, atol=1e-3)


@pytest.mark.parametrize("solver", ["auto", "dual", "newton", "sgd"])
@pytest.mark.parametrize("name", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_no_weights_where_no_row_pays(name, solver):
    """All |y| <= epsilon: P(0) = 0, and V = 0 is the answer."""
    X, _, cost = hard_data(4)
    rows = LOSSES[name].rows(np.linspace(-0.2, 0.2, len(X)), cost, epsilon=0.2)
    tile = (np.arange(len(X))[:, None] % 2).astype(np.int32)
    (problem,) = problems_of(Rows(X), (tile, None), Coupling.independent(2), LOSSES[name], [rows])
    solution = solve([problem], solver=solver, tol=1e-4, max_iter=100)[0]
    assert solution.converged
    assert solution.gap == 0.0
    assert_array_equal(solution.weights, 0.0)


@pytest.mark.parametrize("name", REGRESSION_LOSSES)
def test_stochastic_descent_nears_the_optimum(name):
    problem, _, _ = regression(name, n=400, C=0.05)
    exact = solve([problem], **EXACT)[0]
    found = solve([problem], solver="sgd", tol=1e-6, max_iter=500)[0]
    assert exact.dual * (1 - 1e-9) <= found.primal <= 1.02 * exact.primal


@pytest.mark.parametrize("name", REGRESSION_LOSSES)
def test_a_sampled_start_solves_regression(name, monkeypatch):
    """Many rows: Newton's method starts from the answer for a part of them."""
    monkeypatch.setattr("svmosaic.solvers.newton.SAMPLED_FROM", {1: 500, 2: 500})
    problem, X, _ = regression(name, n=700)
    assert_certified(problem, X, solve([problem], solver="newton", tol=1e-7, max_iter=200)[0], 1e-7)


@pytest.mark.parametrize("solver", ["dual", "newton"])
def test_thresholds_of_one_change_nothing(solver):
    X, y, cost = hard_data(5)
    arguments = Rows(X), np.zeros((len(X), 1), np.int32), None, Coupling.independent(1), y, cost
    for loss in (HINGE, SQUARED_HINGE):
        implied = solve([Problem(*arguments, loss)], solver=solver, tol=1e-6)[0]
        written = solve([Problem(*arguments, loss, None, np.ones(len(X)))], solver=solver, tol=1e-6)[0]
        assert_array_equal(implied.weights, written.weights)
        assert_array_equal(implied.alpha, written.alpha)


@pytest.mark.parametrize("name", REGRESSION_LOSSES)
def test_weights_that_overshot_are_shortened(name):
    problem, _, _ = regression(name, C=1e9)
    solution = solve([problem], solver="dual", tol=1e-12, max_iter=1)[0]
    assert solution.primal <= problem.primal_at_zero
    assert np.isfinite(solution.gap)


def test_losses_are_frozen_and_named_after_themselves():
    assert all(loss.name == name and loss.power in (1, 2) for name, loss in LOSSES.items())
    assert set(CLASSIFICATION_LOSSES) | set(REGRESSION_LOSSES) == set(LOSSES)
    with pytest.raises(AttributeError):
        HINGE.power = 2
    one, tile = np.ones(1), np.zeros((1, 1), np.int32)
    problem = Problem(Rows(np.ones((1, 1))), tile, None, Coupling.independent(1), one, one, "squared_hinge")
    assert problem.loss is SQUARED_HINGE
    assert isinstance(HINGE, Loss)
