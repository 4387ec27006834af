"""Clustered multi-task coupling: its optimal matrix, its penalty, and the coupled solver against a general one."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from svmosaic import KMeansSVC
from svmosaic.couplings import ClusteredTasks, Coupling, gram, grouped, penalty, relaxed_spectrum
from svmosaic.datasets import make_xor
from svmosaic.solvers import Problem, Rows, solve


def relaxed_penalty(M, tiles, alpha, beta):
    eta = beta / alpha
    return alpha * eta * (1 + eta) * np.trace(tiles.T @ np.linalg.solve(eta * np.eye(len(M)) + M, tiles))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("trace", [1, 2, 4])
def test_matrix_from_weights_is_the_optimum(seed, trace):
    rng = np.random.RandomState(seed)
    tiles = rng.standard_normal((6, 5)) * rng.uniform(0.1, 3, 5)
    tasks = ClusteredTasks("relaxed", trace, alpha=0.7, beta=0.2)
    coupling = tasks.fit(tiles)
    M = tasks.matrix(coupling)
    values = np.linalg.eigvalsh(M)
    assert values.min() > -1e-9
    assert values.max() < 1 + 1e-9
    assert_allclose(np.trace(M), trace, atol=1e-8)
    found = penalty(coupling, tiles)
    assert_allclose(found, relaxed_penalty(M, tiles, 0.7, 0.2), rtol=1e-9)
    # Brute force over the eigenvalues, by a general solver.
    squares, eta = np.linalg.eigvalsh(tiles @ tiles.T), 0.2 / 0.7
    best = minimize(
        lambda v: 0.2 * (1 + eta) * np.sum(squares / (eta + v)), np.full(6, trace / 6), bounds=[(0, 1)] * 6,
        constraints={"type": "eq", "fun": lambda v: v.sum() - trace}, method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )  # fmt: skip
    assert_allclose(found, best.fun, rtol=1e-6)
    # And no feasible matrix with other eigenvectors is better.
    n_tried = 0
    while n_tried < 20:
        vectors = np.linalg.qr(rng.standard_normal((6, 6)))[0]
        values = rng.dirichlet(np.full(6, 5.0)) * trace
        if values.max() <= 1:
            n_tried += 1
            assert relaxed_penalty(vectors * values @ vectors.T, tiles, 0.7, 0.2) >= found * (1 - 1e-9)


def test_relaxation_is_void_with_as_many_groups_as_dimensions():
    rng = np.random.RandomState(0)
    tiles = rng.standard_normal((8, 3))
    tasks = ClusteredTasks("relaxed", 3, alpha=2.0, beta=0.5)
    assert_allclose(penalty(tasks.fit(tiles), tiles), 0.5 * np.sum(tiles**2), rtol=1e-8)
    values, _ = relaxed_spectrum(tiles, 3, 0.25)
    assert_allclose(values.sum(), 3)


@pytest.mark.parametrize("seed", range(3))
def test_hard_groups_cost_the_variance_within(seed):
    rng = np.random.RandomState(seed)
    tiles = rng.standard_normal((7, 4))
    tasks = ClusteredTasks("hard", 3, alpha=0.6, beta=0.3)
    coupling = tasks.fit(tiles)
    labels = tasks.labels(coupling)
    within = sum(np.sum((tiles[labels == g] - tiles[labels == g].mean(axis=0)) ** 2) for g in np.unique(labels))
    assert_allclose(penalty(coupling, tiles), 0.6 * within + 0.3 * np.sum(tiles**2))
    M = tasks.matrix(coupling)
    assert_allclose(M @ M, M, atol=1e-10)
    # The relaxation is a lower bound, and groups found again are no worse than those before.
    assert penalty(ClusteredTasks("relaxed", 3, 0.6, 0.3).fit(tiles), tiles) <= penalty(coupling, tiles) + 1e-9
    worse = tasks.of_labels(rng.permutation(labels))
    assert penalty(tasks.fit(tiles, worse), tiles) <= penalty(worse, tiles)
    kept = tasks.fit(tiles, coupling)
    assert_allclose(penalty(kept, tiles), penalty(coupling, tiles))


def test_groups_are_found():
    rng = np.random.RandomState(0)
    centres = 10 * rng.standard_normal((3, 5))
    truth = rng.permutation(np.repeat([0, 1, 2], 4))
    tiles = centres[truth] + 0.1 * rng.standard_normal((12, 5))
    same = truth[:, None] == truth
    for kind in ("hard", "relaxed"):
        tasks = ClusteredTasks(kind, 3, alpha=1.0, beta=0.01)
        labels = tasks.labels(tasks.fit(tiles))
        np.testing.assert_array_equal(labels[:, None] == labels, same)
    assert len(np.unique(grouped(tiles[:2], 3))) == 2


@pytest.mark.parametrize("solver", ["dual", "newton"])
@pytest.mark.parametrize("groups", ["relaxed", "hard"])
def test_coupled_solver_agrees_with_a_general_one(groups, solver):
    rng = np.random.RandomState(0)
    n, n_tiles, d = 40, 5, 3
    X, y = rng.standard_normal((n, d)), rng.choice([-1, 1], n).astype(np.int8)
    index, tile = rng.randint(n, size=60).astype(np.int32), rng.randint(n_tiles, size=60).astype(np.int32)
    cost = rng.uniform(0, 1, 60)
    coupling = ClusteredTasks(groups, 2, alpha=0.4, beta=0.1).fit(rng.standard_normal((n_tiles, d + 1)))
    problem = Problem(Rows(X), tile[:, None], None, coupling, y[index], cost, "hinge", index)
    (solution,) = solve([problem], solver=solver, tol=1e-9, max_iter=100_000)
    # The dual over pairs with the full matrix G, by a general method for bounded problems.
    rows = np.column_stack([X, np.ones(n)])[index] * y[index, None]
    kernel = (rows @ rows.T) * gram(coupling)[np.ix_(tile, tile)]
    best = minimize(
        lambda a: (0.5 * a @ kernel @ a - a.sum(), kernel @ a - 1), np.zeros(60), jac=True,
        bounds=[(0, c) for c in cost], method="L-BFGS-B",
        options={"ftol": 1e-16, "gtol": 1e-10, "maxiter": 100_000, "maxfun": 1_000_000},
    )  # fmt: skip
    assert_allclose(solution.primal, -best.fun, rtol=1e-6)
    tiles = coupling.tiles(solution.weights)
    losses = cost * np.maximum(0, 1 - np.einsum("rf,rf->r", rows, tiles[tile]))
    assert_allclose(penalty(coupling, tiles) + losses.sum(), solution.primal, rtol=1e-8)


def test_no_groups_are_independent_tiles():
    tasks = ClusteredTasks(None, beta=0.05)
    coupling = tasks.fit(np.ones((4, 3)))
    assert coupling.n_shared == 0
    assert_allclose(coupling.own**2, 10.0)
    assert_allclose(penalty(coupling, np.ones((4, 3))), 0.05 * 12)
    assert_allclose(tasks.matrix(coupling), np.eye(4))
    assert isinstance(tasks.start(3), Coupling)


@pytest.mark.parametrize("groups", ["relaxed", "hard"])
def test_cells_of_kmeans_can_form_groups(groups):
    X, y = make_xor(300, random_state=0)
    tight = {"n_clusters": 6, "C": 2.0, "tol": 1e-9, "max_iter": 100_000, "random_state": 0}
    alone = KMeansSVC(**tight).fit(X, y)
    free = KMeansSVC(coupling=ClusteredTasks(None, beta=0.5), **tight).fit(X, y)
    assert_allclose(free.tile_coef_, alone.tile_coef_, atol=1e-3)
    tied = KMeansSVC(coupling=ClusteredTasks(groups, 2, alpha=50.0, beta=0.5), **tight).fit(X, y)
    spread = [np.linalg.svd(np.column_stack([m.tile_coef_[:, 0], m.intercept_]))[1] for m in (alone, tied)]
    assert spread[1][2] < 0.5 * spread[0][2]  # two groups: hardly a third direction is left
