"""Driver of dual coordinate descent: allocates, runs epochs in the core, certifies, stops."""

from functools import partial

import numpy as np

from svmosaic import _core
from svmosaic.solvers.certificates import Solution, certify
from svmosaic.solvers.control import alone

# How long the core may run before the driver looks for an interrupt.
SECONDS_A_CALL = 0.2
# Below this relative gap, float32 weights no longer carry the progress of a step.
FLOAT32_TOL = 1e-5


def solve_dual_descent(problem, *, tol, max_iter, seed, alpha=None, n_threads=1, control=None, more=None) -> Solution:
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
    more : callable, optional
        After the last epoch, more(n_iter, gap) says how many to add.
    """
    alpha = start_duals(problem, alpha)
    visited = np.flatnonzero(problem.cost > 0).astype(np.int32)
    state = _core.DescentState(seed.generate_state(4, np.uint64), len(visited))
    weights = start_weights(problem, tol)
    if alpha.any():
        weights[...] = certify(problem, alpha, n_threads).weights

    def epochs(weights, *limits):
        return _core.dual_descent(
            problem.rows.core, problem.design, problem.sign, problem.threshold, problem.cost, problem.loss.power,
            problem.curvature, visited, state, alpha, weights, *limits,
        )  # fmt: skip

    certificate, n_iter, target = descend(
        problem, weights, epochs, partial(certify, problem, alpha, n_threads), tol=tol, max_iter=max_iter,
        control=control or alone(), again=partial(state.unshrink, len(visited)), more=more,
    )  # fmt: skip
    return Solution(**vars(certificate), alpha=alpha, n_iter=n_iter, target=target, solver="dual")


def descend(problem, weights, epochs, certify, *, tol, max_iter, control, again=None, more=None):
    """Epochs until `certify()`, the certificate of the duals as they are, confirms a gap of tol * P(0).

    `epochs(weights, aim, max_epochs, max_seconds)` returns how many it made and the gap they estimate; `again()` is
    called before it goes on from weights computed anew; `more(n_iter, gap)` says how many epochs to add after the last
    one. Returns the certificate, the epochs and the gap asked for.
    """
    target = aim = tol * problem.primal_at_zero
    n_iter = failures = 0
    while True:
        limit = 1 if control.every_epoch else max_iter - n_iter
        n_done, estimate = epochs(weights, aim, limit, control.seconds(SECONDS_A_CALL))
        n_iter += n_done
        control.check()
        over = control.over(n_iter, certify)
        if estimate > aim and n_iter < max_iter and not over:
            continue
        certificate = certify()
        if certificate.gap <= target or over:
            return certificate, n_iter, target
        if n_iter >= max_iter:
            max_iter += more(n_iter, certificate.gap) if more else 0
            if n_iter >= max_iter:
                return certificate, n_iter, target
            if estimate > aim:
                continue
        # The estimate was too rosy: rows shrunk away came back, or rounding. Aim lower, look at all rows again,
        # and after a second failure stop trusting float32.
        failures += 1
        aim *= 0.5
        weights = certificate.weights.astype(np.float64 if failures >= 2 else weights.dtype)
        if again is not None:
            again()


def start_weights(problem, tol, *n_outputs):
    """Weights of zero, in float32 if that will do."""
    narrow = problem.rows.dtype == np.float32 and tol >= FLOAT32_TOL
    return np.zeros((*n_outputs, *problem.shape), dtype=np.float32 if narrow else np.float64)


def start_duals(problem, alpha):
    """A feasible copy of the duals to start from."""
    if alpha is None:
        return np.zeros(problem.n_rows)
    return np.clip(alpha, 0.0, problem.loss.upper(problem.cost))
