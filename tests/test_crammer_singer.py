"""The Crammer-Singer problem: certificates, and scikit-learn's solver on the expanded matrix."""

import numpy as np
import pytest
import sklearn.svm
from numpy.testing import assert_allclose, assert_array_equal
from reference import crammer_singer_infeasibility
from scipy import sparse

from svmosaic import LocallyLinearSVC
from svmosaic.couplings import Coupling
from svmosaic.gates import DistanceGate
from svmosaic.solvers import Problem, Rows, solve_crammer_singer
from svmosaic.solvers.crammer_singer import certify, dual, primal


def make_data(n_rows=300, n_classes=4, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n_rows)
    X = rng.standard_normal((n_classes, 5))[y] + rng.standard_normal((n_rows, 5))
    X[3] = 0.0
    return X, y


def make_problem(storage=np.asarray, bias=1.0, seed=0):
    X, y = make_data(seed=seed)
    gate = DistanceGate(X[:6], "softmax", 3, 0.2)
    cost = np.random.default_rng(seed).uniform(0, 1, len(y))
    cost[5] = 0.0
    problem = Problem(
        Rows(storage(X), bias), *gate.code(X), Coupling.independent(6), np.ones(len(y), np.int8), cost
    )  # fmt: skip
    return problem, X, y


def expand(problem, X):
    rows = np.column_stack([X, np.full(len(X), problem.rows.bias)])
    wide = np.zeros((len(X), *problem.shape))
    for a in range(problem.tile.shape[1]):
        wide[np.arange(len(X)), problem.tile[:, a]] += problem.weight[:, a, None] * rows
    return wide.reshape(len(X), -1)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array, lambda X: X.astype(np.float32)])
@pytest.mark.parametrize("bias", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(2))
def test_solution_is_certified(seed, bias, storage):
    problem, X, y = make_problem(storage, bias, seed)
    tol = 1e-8
    solution = solve_crammer_singer(problem, y, 4, tol=tol, max_iter=20_000, seed=0)
    assert crammer_singer_infeasibility(solution.alpha, y, problem.cost) < 1e-12
    wide = expand(problem, X)
    weights = (solution.alpha.T @ wide).reshape(4, *problem.shape)  # recomputed, so drift cannot hide
    assert_allclose(solution.weights, weights, atol=1e-5 if storage(X).dtype == np.float32 else 1e-10)
    scores = wide @ weights.reshape(4, -1).T
    gap = primal(weights, scores, y, problem.cost) - dual(weights, solution.alpha, y)
    slack = 1e-5 if storage(X).dtype == np.float32 else 1e-10
    assert -1e-9 <= gap <= (tol + slack) * problem.primal_at_zero
    assert solution.converged


def test_certificate_rejects_a_spoilt_solution():
    problem, _, y = make_problem()
    alpha = solve_crammer_singer(problem, y, 4, tol=1e-9, max_iter=20_000, seed=0).alpha
    assert certify(problem, 0.99 * alpha, y).gap > 1e-6 * problem.primal_at_zero


def test_tiny_rows_keep_the_duals_feasible():
    problem, X, y = make_problem()
    tiny = Problem(Rows(1e-8 * X, 0.0), problem.tile, problem.weight, problem.coupling, problem.sign, problem.cost)
    solution = solve_crammer_singer(tiny, y, 4, tol=1e-6, max_iter=100, seed=0)
    assert crammer_singer_infeasibility(solution.alpha, y, tiny.cost) < 1e-14
    assert solution.converged


def test_primal_by_hand():
    scores = np.array([[2.0, 0.5, 1.5], [0.0, 0.0, 0.0]])
    weights = np.ones((3, 1, 2))
    # row 0, class 0: max(0, 1 + 0.5 - 2, 1 + 1.5 - 2) = 0.5; row 1: 1
    assert_allclose(primal(weights, scores.copy(), np.array([0, 2]), np.array([2.0, 3.0])), 3.0 + 2 * 0.5 + 3 * 1.0)


@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_scikit_learn_on_the_expanded_matrix(seed):
    problem, X, y = make_problem(seed=seed)
    C = 0.5
    problem = problem.with_target(problem.sign, np.full(len(y), C))
    ours = solve_crammer_singer(problem, y, 4, tol=1e-9, max_iter=50_000, seed=0)
    wide = expand(problem, X)
    theirs = sklearn.svm.LinearSVC(
        multi_class="crammer_singer", C=C, fit_intercept=False, tol=1e-9, max_iter=200_000, random_state=0
    ).fit(wide, y)
    value = primal(theirs.coef_, wide @ theirs.coef_.T, y, problem.cost)
    assert_allclose(ours.primal, value, rtol=1e-6)


def test_one_anchor_is_the_linear_model():
    X, y = make_data()
    settings = dict(multi_class="crammer_singer", loss="hinge", C=0.3, tol=1e-10, max_iter=200_000, random_state=0)
    ours = LocallyLinearSVC(1, **settings).fit(X, y)
    theirs = sklearn.svm.LinearSVC(**settings).fit(X, y)
    full = np.column_stack([theirs.coef_, theirs.intercept_])
    value = primal(full, theirs.decision_function(X), y, np.full(len(y), 0.3))
    assert_allclose(ours.objective_, [value], rtol=1e-6)
    assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)


def test_two_classes_are_the_binary_svm_with_half_the_cost():
    """V_1 = -V_0 = w / 2, and the margin of both is w: 1/4 |w|^2 + C hinge, half of 1/2 |w|^2 + 2 C hinge."""
    X, y = make_data(n_classes=2)
    settings = dict(anchors=X[:5], code_scale=0.2, loss="hinge", tol=1e-9, max_iter=50_000, random_state=0)
    joint = LocallyLinearSVC(multi_class="crammer_singer", C=0.2, **settings).fit(X, y)
    binary = LocallyLinearSVC(C=0.4, **settings).fit(X, y)
    assert_allclose(joint.objective_, binary.objective_ / 2, rtol=1e-7)
    assert_allclose(joint.decision_function(X), binary.decision_function(X), atol=1e-3)


def test_model_reports_one_certificate_for_all_classes():
    X, y = make_data()
    settings = dict(multi_class="crammer_singer", loss="hinge", C=1.0, tol=1e-3, random_state=0)
    model = LocallyLinearSVC(8, **settings).fit(X, y)
    assert model.tile_coef_.shape == (8, 4, 5)
    assert model.dual_gap_.shape == model.objective_.shape == (1,)
    assert model.dual_gap_ <= 1e-3 * len(y)
    again = LocallyLinearSVC(8, n_jobs=3, **settings).fit(X, y)
    assert_array_equal(model.tile_coef_, again.tile_coef_)


def test_says_what_it_cannot_do():
    X, y = make_data()
    with pytest.raises(ValueError, match="needs loss='hinge'"):
        LocallyLinearSVC(4, multi_class="crammer_singer", loss="squared_hinge").fit(X, y)
    with pytest.raises(ValueError, match="needs solver='dual'"):
        LocallyLinearSVC(4, multi_class="crammer_singer", loss="hinge", solver="sgd").fit(X, y)
    with pytest.raises(ValueError, match="multi_class must be one of"):
        LocallyLinearSVC(4, multi_class="ovo").fit(X, y)
