r"""The one problem of all models, solved from sums over partitions.

The method is that of `svmosaic.solvers.newton`: Newton's method on losses with p = 2, proximal steps on the dual of
those with p = 1. The objective, its gradient, the Hessian (one matrix a tile, or products with it), the slope along a
direction and the dual value are sums over rows, hence over partitions. Only these sums and the weights travel; the
duals, one number per row, stay where the rows are. The duality gap is exact: it is a difference of two sums.

A problem asks questions (`Evaluate`, `Slopes`, `Product`) and is told the sums. Problems of several outputs or folds
ask in step, so that one pass over the rows answers all of them.
"""

import numpy as np

from svmosaic.partitions.part import Evaluate, Move, Product, Slopes, answer, move
from svmosaic.solvers import Control, Solution
from svmosaic.solvers.certificates import Certificate
from svmosaic.solvers.hessians import arrow_solve, crossed_solve, n_pairs_of
from svmosaic.solvers.newton import FIRST_STEP, INNER_TOL, LARGEST_STEP, STEP_GROWTH, adapt_reach

# A step length is taken as it is where the slope has shrunk to this share, else interpolated.
SLOPE_TOL = 0.1
# Step lengths whose slopes are asked for at once: fine around 1, where most steps end, coarse elsewhere.
LENGTHS = np.concatenate([2.0 ** np.arange(-14, -4), 2.0 ** np.arange(-4, 1.01, 0.5), 2.0 ** np.arange(2, 6)])
# Numbers in the Hessian's matrices up to which they are formed and sent (32 MB a problem and partition).
LARGEST_HESSIAN = 4_000_000
# Conjugate gradients solve for the direction to this share of the residual, in so many products at most.
CG_TOL, CG_ITER = 0.1, 40


def solve_partitions(
    partitions, jobs, *, n_features, n_rows, one_tile, tol, max_iter, start=None, keep_duals=False, control=None
):  # fmt: skip
    """Solve the problems of `jobs` over all partitions.

    Parameters
    ----------
    partitions : Partitions
    jobs : list of Job
    n_features : int
    n_rows : int
        Rows of all partitions; every round is checked to have seen as many.
    one_tile : bool
        Whether each row belongs to one tile, so that the Hessian is an arrow and its system is solved directly.
    tol : float
        Stop at a duality gap of tol times the objective at zero.
    max_iter : int
        Newton steps.
    start : list of ndarray, optional
        Block weights to start from; the duals are the partitions' own.
    keep_duals : bool
        Leave the dual points of the solutions with the partitions.
    control : Control, optional
        Told of every step, and asked whether to stop.

    Returns
    -------
    list of Solution, without duals
    """
    control = control or Control()
    runs = [  # in step with each other: each of them has all the time
        _newton(job, n_features, one_tile, tol, max_iter, None if start is None else start[k],
                control.for_task((k, None), 0, 1))
        for k, job in enumerate(jobs)
    ]  # fmt: skip
    asked = {k: next(run) for k, run in enumerate(runs)}
    solutions, last = [None] * len(jobs), []
    while asked:
        moves = [request.move for request in asked.values() if request.move is not None]
        if moves:
            partitions.advance(move, moves, partitions.n_threads)
        answers = partitions.total(answer, list(asked.values()), partitions.n_threads)
        for k, told in zip(list(asked), answers, strict=True):
            if isinstance(asked[k], Evaluate) and told[0][0] != n_rows:
                raise RuntimeError(f"a round saw {told[0][0]:.0f} of {n_rows} rows: rows were lost, nothing is fitted")
            try:
                asked[k] = runs[k].send(told)
            except StopIteration as stop:
                solutions[k], final = stop.value
                last.append(final)
                del asked[k]
    if keep_duals:
        partitions.advance(move, last, partitions.n_threads)
    return solutions


def _newton(job, n_features, one_tile, tol, max_iter, start, control):
    """Steps of one problem: yields questions, is sent sums, returns the solution and the move to its dual point."""
    coupling, smooth = job.coupling, job.loss.smooth_step
    shape = coupling.n_blocks, n_features + 1
    curved = _form_of_hessian(coupling, shape[1], one_tile)
    weights = np.zeros(shape) if start is None else start
    step = smooth or FIRST_STEP * (1.0 if start is None else STEP_GROWTH)
    best = final = pending = None
    n_iter, reach = 0, 0.0
    while True:
        sums, implied, hessians = yield Evaluate(job, weights, step, reach, curved, pending)
        pending = None
        _, cost, loss, dual_sum, proximal = sums
        target = tol * float(cost)
        norms = 0.5 * np.vdot(weights, weights), 0.5 * np.vdot(implied, implied)
        certificate = Certificate(weights, float(norms[0] + loss), float(dual_sum - norms[1]))
        if best is None or certificate.gap < best.gap:
            best, final = Solution(certificate, None, n_iter, target, "newton"), Move(job, weights, step)
        if best.converged or n_iter >= max_iter or control.over(n_iter, lambda now=certificate: now):
            return best, final
        residual = weights - implied
        if smooth is None and step < LARGEST_STEP and _settled(residual, proximal, target):
            pending = Move(job, weights, step)
            step *= STEP_GROWTH
            continue
        if curved == "pairs":
            direction = crossed_solve(hessians, coupling, residual)
        elif one_tile and curved == "tiles":
            direction = arrow_solve(hessians, coupling, residual)
        else:
            direction = yield from _conjugate(job, weights, step, reach, residual, hessians if curved else None)
        if not np.isfinite(direction).all():  # the curvature overflows float64
            return best, final
        pulls = yield Slopes(job, weights, step, direction, np.concatenate([[0.0], LENGTHS]))
        length = step_length(np.vdot(weights, direction), np.vdot(direction, direction), pulls)
        n_iter += 1
        reach = adapt_reach(reach, length, 1.0)
        if length > 0.0:
            weights = weights + length * direction
        elif smooth is not None or step >= LARGEST_STEP:  # no progress left in float64
            return best, final
        else:
            pending = Move(job, weights, step)
            step *= STEP_GROWTH


def _form_of_hessian(coupling, size, one_tile):
    """The whole Hessian where it is small enough to travel, else the tiles' own matrices, else nothing."""
    n_tiles = coupling.n_tiles
    if not one_tile and coupling.n_shared == 0 and n_pairs_of(n_tiles) * size**2 <= LARGEST_HESSIAN:
        return "pairs"
    return "tiles" if n_tiles * size**2 <= LARGEST_HESSIAN else None


def _settled(residual, proximal, target) -> bool:
    """Whether the inner problem of a proximal step is solved well enough to take the step."""
    return np.vdot(residual, residual) <= INNER_TOL * proximal + 1e-3 * target


def step_length(along, square, pulls) -> float:
    """Where the slope along + t * square - pull(t), which rises with t, is zero, from its values at 0 and LENGTHS."""
    slopes = along + LENGTHS * square - pulls[1:]
    start = along - pulls[0]
    if not start < 0:
        return 0.0
    nearest = int(np.argmin(np.abs(slopes)))
    full = int(np.flatnonzero(LENGTHS == 1.0)[0])
    for k in (full, nearest):
        if abs(slopes[k]) <= SLOPE_TOL * -start:
            return float(LENGTHS[k])
    above = np.flatnonzero(slopes > 0)
    if len(above) == 0:
        return float(LENGTHS[-1])
    high = int(above[0])
    if high == 0:
        return float(LENGTHS[0]) * start / (start - slopes[0])
    low_t, high_t, low, high_slope = LENGTHS[high - 1], LENGTHS[high], slopes[high - 1], slopes[high]
    return float(low_t - low * (high_t - low_t) / (high_slope - low))


def _conjugate(job, weights, step, reach, residual, hessians):
    """The Newton direction by conjugate gradients, preconditioned by the tiles' own matrices where there are any."""

    def precondition(r):
        return r if hessians is None else -arrow_solve(hessians, job.coupling, r)

    direction = np.zeros_like(residual)
    rest = -residual
    scaled = precondition(rest)
    search, size = scaled, float(np.vdot(rest, scaled))
    enough = CG_TOL * np.linalg.norm(residual)
    for _ in range(CG_ITER):
        bent = search + (yield Product(job, weights, step, reach, search))
        curvature = float(np.vdot(search, bent))
        if not (np.isfinite(curvature) and curvature > 0):
            break
        length = size / curvature
        direction = direction + length * search
        rest = rest - length * bent
        if np.linalg.norm(rest) <= enough:
            break
        scaled = precondition(rest)
        size, before = float(np.vdot(rest, scaled)), size
        search = scaled + (size / before) * search
    return direction
