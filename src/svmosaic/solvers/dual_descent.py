"""Driver of dual coordinate descent: allocates, asks the core for epochs, certifies, stops."""

import numpy as np

from svmosaic import _core
from svmosaic.solvers.certificates import certify
from svmosaic.solvers.control import alone
from svmosaic.solvers.solution import Solution

# How long the core may run before the driver looks for an interrupt.
SECONDS_A_CALL = 0.2
# Below this relative gap, float32 weights no longer carry the progress of a step.
FLOAT32_TOL = 1e-5


def solve_dual_descent(problem, *, tol, max_iter, seed, alpha=None, n_threads=1, control=None) -> Solution:
    """Solve by dual coordinate descent (core/dual_descent.hpp) to a duality gap of tol * P(0).

    Parameters
    ----------
    problem : Problem
    tol : float
    max_iter : int
        The largest number of epochs.
    seed : SeedSequence
        Orders the coordinates.
    alpha : ndarray of shape (n_rows,), optional
        Duals to start from; clipped to the costs.
    n_threads : int
        For the certificates; descent itself is sequential.
    control : TaskControl, optional
        Asked between calls of the core whether to stop.
    """
    control = control or alone()
    visited = np.flatnonzero(problem.cost > 0).astype(np.int32)
    alpha = start_duals(problem, alpha)
    narrow = problem.rows.dtype == np.float32 and tol >= FLOAT32_TOL
    weights = np.zeros(problem.shape, dtype=np.float32 if narrow else np.float64)
    if alpha.any():
        _refresh(weights, certify(problem, alpha, n_threads).weights)
    state = _core.DescentState(seed.generate_state(4, np.uint64), len(visited))
    curvature = problem.curvature
    target = aim = tol * problem.primal_at_zero
    n_iter = failures = 0
    while True:
        epochs, estimate = _core.dual_descent(
            problem.rows.core, problem.design, problem.sign, problem.threshold, problem.cost, problem.loss.power,
            curvature, visited, state, alpha, weights, aim, 1 if control.every_epoch else max_iter - n_iter,
            control.seconds(SECONDS_A_CALL),
        )  # fmt: skip
        n_iter += epochs
        control.check()
        over = control.over(n_iter, lambda: certify(problem, alpha, n_threads))
        if estimate > aim and n_iter < max_iter and not over:
            continue
        certificate = certify(problem, alpha, n_threads)
        if certificate.gap <= target or n_iter >= max_iter or over:
            return Solution(certificate, alpha, n_iter, target, "dual")
        # The estimate was too rosy: rows shrunk away came back, or rounding. Aim lower, look at all rows again,
        # and after a second failure stop trusting float32.
        failures += 1
        aim *= 0.5
        if failures == 2 and weights.dtype == np.float32:
            weights = np.empty(problem.shape)
        state.unshrink(len(visited))
        _refresh(weights, certificate.weights)


def start_duals(problem, alpha):
    """A feasible copy of the duals to start from."""
    if alpha is None:
        return np.zeros(problem.n_rows)
    return np.clip(alpha, 0.0, problem.loss.upper(problem.cost))


def _refresh(weights, exact):
    weights[...] = exact
