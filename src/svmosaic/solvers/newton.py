r"""Second-order solver for problems whose rows far outnumber their features.

Losses with p = 2: Newton's method on the primal. With p = 1: the proximal point method on the dual, whose steps

.. math:: \alpha^+ = \arg\max_{0 \le a \le c} D(a) - \sum_r \frac{(a_r - \alpha_r)^2}{2 \sigma_r}

are smooth problems in V (an augmented Lagrangian of the primal), solved by the same Newton's method: row r
answers to its margin with :math:`a_r(m) = \mathrm{clip}(\alpha_r + \sigma_r (t_r - m), 0, c_r)`, and V is
stationary where :math:`V = \sum_r a_r(m_r) s_r x_r`. With the steps :math:`\sigma` growing, few are needed. Only
rows where the clipping is idle enter the Hessian, which makes an iteration cheaper than that of an interior
point method, and any dual point is a start, which an interior point method cannot use.

The Hessian, for tiles :math:`W_k = \text{own}\,V_k + \sum_s U_{ks} V_s`, is an arrow: one (d+1) x (d+1) block
a tile and a border of shared blocks, eliminated by its Schur complement. Where rows belong to several tiles, which
then must not share anything, there is a block for each pair of tiles, and one dense system.
"""

from functools import partial

import numpy as np

from svmosaic import _core
from svmosaic.losses import typical_threshold
from svmosaic.solvers.certificates import Certificate, dual, margins, primal, weights_of
from svmosaic.solvers.control import alone
from svmosaic.solvers.dual_descent import start_duals
from svmosaic.solvers.hessians import arrow_solve, crossed_hessians, crossed_solve
from svmosaic.solvers.problem import Problem
from svmosaic.solvers.solution import Solution

# First proximal step in units of the costs and of the typical threshold: at V = 0 the response of a row of that
# threshold, c/2, is strictly inside its box.
FIRST_STEP = 0.5
# Growth of the proximal step: larger means fewer but harder inner problems; 4 to 10 measured alike.
STEP_GROWTH = 8.0
# From so many rows on, the start is the answer for one row in eight, to a coarse tolerance: it saves half of the steps.
SAMPLED_FROM, SAMPLED_SHARE, SAMPLE_TOL = 32_768, 8, 1e-3
# There the duals are guessed by a proximal step of the first size around c/2, and the first step has the second,
# measured best for one tile and for several.
SAMPLE_STEPS_ALONE, SAMPLE_STEPS_COUPLED = (4.0, 32.0), (1.0, 4.0)
# Inner problems are solved to this share of the proximal term (Rockafellar's criterion).
INNER_TOL = 0.1
# A line search ends where the slope has shrunk to this share, by the power of the loss. Newton's own step is best where
# the slope is smooth; for p = 1 a sharper search saves steps.
SLOPE_TOL = {1: 0.1, 2: 0.5}
# A line search is over where its end is known to this share, or where steps are too short to change anything: on
# features of very different sizes rounding hides the zero of the slope, and going on would only cost.
BRACKET_TOL, SHORTEST, PATIENCE = 1e-3, 1e-16, 8
# Past this many times the costs, growing the proximal step only worsens the conditioning.
LARGEST_STEP = 1e12
# Margins follow the weights by addition; every so many steps they are computed anew, so that rounding does not pile up.
MARGINS_ANEW = 8


def solve_newton(problem, *, tol, max_iter, alpha=None, n_threads=1, control=None, **_) -> Solution:
    """Solve by (proximal) Newton steps to a duality gap of tol * P(0); parameters as `solve_dual_descent`."""
    if not (problem.one_tile_a_row or problem.coupling.n_shared == 0):
        raise ValueError("solver='newton' needs rows of one tile each, or tiles that share nothing; use solver='dual'")
    with np.errstate(over="ignore", invalid="ignore"):  # told below, where X is to blame
        solution = _descend(problem, alpha, tol=tol, max_iter=max_iter, n_threads=n_threads, control=control or alone())
    if not solution.converged:
        _ = problem.curvature  # ValueError where it overflows
    return solution


def _descend(problem, alpha, *, tol, max_iter, n_threads, control) -> Solution:
    cost, threshold = problem.cost, problem.threshold
    unit = typical_threshold(cost, threshold)
    largest_step = LARGEST_STEP / unit
    target = tol * problem.primal_at_zero
    hessian = _Arrow(problem) if problem.one_tile_a_row else _Crossed(problem, control)
    start = _start(problem, alpha, tol=tol, max_iter=max_iter, n_threads=n_threads, control=control)
    weights, margin, center, step = start
    response, curvature, change, kept = (np.empty(problem.n_rows) for _ in range(4))
    best = None
    n_iter = 0
    reach = 0.0
    summed = False  # whether the margins are sums of changes
    while True:
        _core.respond(center, cost, threshold, margin, reach, response, curvature, n_threads, step)
        implied = weights_of(problem, response, n_threads)
        certificate = Certificate(weights, primal(problem, weights, margin), dual(problem, implied, response))
        if best is None or certificate.gap < best.gap:
            np.copyto(kept, response)
            best = Solution(certificate, kept, n_iter, target, "newton")
            if best.converged and summed:  # the certificate of what is handed out is not to rest on rounded sums
                _core.margins(problem.rows.core, problem.design, problem.sign, weights, margin, n_threads)
                best, summed = None, False
                continue
        over = control.over(n_iter, lambda now=certificate: now)
        if best.converged or n_iter >= max_iter or over:
            return best
        residual = weights - implied
        if center is not None and step < largest_step:
            proximal = _core.proximal(center, cost, response, step)
            # The second term: an error of the inner problem far below the gap asked for is as good as none.
            if np.vdot(residual, residual) <= INNER_TOL * proximal + 1e-3 * target:
                step *= STEP_GROWTH
                np.copyto(center, response)
                continue
        direction = hessian.direction(curvature, residual, n_threads)
        if not np.isfinite(direction).all():  # the Hessian overflows float64
            return best
        _core.margins(problem.rows.core, problem.design, problem.sign, direction, change, n_threads)
        along, square = float(np.vdot(weights, direction)), float(np.vdot(direction, direction))
        pull = partial(_core.pull, center, cost, threshold, margin, change, n_threads=n_threads, scale=step)
        length = _line_search(along, square, pull, SLOPE_TOL[problem.loss.power])
        n_iter += 1
        control.check()
        reach = adapt_reach(reach, length, unit)
        if length > 0.0:
            weights = weights + length * direction
            summed = n_iter % MARGINS_ANEW != 0
            if not summed:
                _core.margins(problem.rows.core, problem.design, problem.sign, weights, margin, n_threads)
            else:
                change *= length
                margin += change
        elif center is None or step >= largest_step:  # no progress left in float64
            return best
        else:
            step *= STEP_GROWTH
            np.copyto(center, response)


def _start(problem, alpha, **options):
    """Weights, margins, duals and proximal step (a multiple of the costs) to begin with.

    From given duals; else, if rows are many, from the answer for a part of them; else from zero. Losses with p = 2 need
    no duals: their steps are 2 * cost around zero, once and for all.
    """
    n_threads, cost, threshold = options["n_threads"], problem.cost, problem.threshold
    smooth, unit = problem.loss.smooth_step, typical_threshold(cost, threshold)
    if alpha is None and problem.n_rows >= SAMPLED_FROM and problem.n_rows >= 10 * SAMPLED_SHARE * problem.n_weights:
        options |= {"tol": max(options["tol"], SAMPLE_TOL), "control": options["control"].unwatched()}
        weights = solve_newton(_sampled(problem), **options).weights
        margin = margins(problem, weights, n_threads)
        if smooth is not None:
            return weights, margin, None, smooth
        center, unused = 0.5 * cost, np.empty(problem.n_rows)
        guess, step = SAMPLE_STEPS_ALONE if problem.coupling.n_tiles == 1 else SAMPLE_STEPS_COUPLED
        _core.respond(center, cost, threshold, margin, 0.0, center, unused, n_threads, guess / unit)
        return weights, margin, center, step / unit
    alpha = start_duals(problem, alpha)
    warm = bool(alpha.any())
    weights = weights_of(problem, alpha, n_threads) if warm else np.zeros(problem.shape)
    margin = margins(problem, weights, n_threads) if warm else np.zeros(problem.n_rows)
    if smooth is not None:
        return weights, margin, None, smooth
    return weights, margin, alpha, (FIRST_STEP * STEP_GROWTH if warm else FIRST_STEP) / unit


def _sampled(problem) -> Problem:
    """The problem of one row out of SAMPLED_SHARE consecutive ones, each with that many times its cost."""
    n_groups = problem.n_rows // SAMPLED_SHARE
    pick = np.random.default_rng(0).integers(
        SAMPLED_SHARE, size=n_groups, dtype=np.int32
    )  # only the start depends on it
    pick += np.arange(0, SAMPLED_SHARE * n_groups, SAMPLED_SHARE, dtype=np.int32)
    return problem.part(pick, SAMPLED_SHARE)


def adapt_reach(reach, length, unit) -> float:
    """How near to their kinks (in margins of this unit) rows count as curved: more after short steps, less after long.

    Where fewer rows are active than there are features, the Hessian knows only the regulariser in the remaining
    directions, and its step runs into rows it has not counted: a very short step tells so.
    """
    if length < 0.05:
        return max(4.0 * reach, 1e-3 * unit)
    if length > 0.5:
        return 0.5 * reach if reach > 1e-6 * unit else 0.0
    return reach


def _line_search(along, square, pull, tol) -> float:
    """Where the increasing slope along + t * square - pull(step=t) of the objective is nearly zero."""
    start = along - pull(step=0.0)
    if not start < 0:
        return 0.0
    low, slope_low, high, slope_high = 0.0, start, None, None
    t = 1.0
    for n_tried in range(60):
        s = along + t * square - pull(step=t)
        if abs(s) <= tol * -start:
            return t
        if s < 0:
            low, slope_low = t, s
        else:
            high, slope_high = t, s
        if high is None:
            t *= 2.0
        elif high < SHORTEST or high - low <= BRACKET_TOL * low:
            break
        elif low == 0.0 and n_tried >= PATIENCE:
            t = 0.01 * high
        else:
            # Secant, kept away from the ends of the bracket.
            t = low - slope_low * (high - low) / (slope_high - slope_low)
            t = min(max(t, low + 0.1 * (high - low)), high - 0.1 * (high - low))
    return low


class _Arrow:
    """Of rows that belong to one tile each: they are kept sorted by tile, so that one sweep finds the active ones."""

    def __init__(self, problem):
        self.problem = problem
        n_tiles, size = problem.coupling.n_tiles, problem.shape[1]
        self.matrices = np.empty((n_tiles, size, size))
        self.members = np.empty(problem.n_rows, dtype=np.int32)
        self.offsets = np.zeros(n_tiles + 1, dtype=np.int64)
        if n_tiles == 1:
            self.order, self.bounds = None, np.array([0, problem.n_rows], dtype=np.int64)
        else:
            self.order = np.argsort(problem.tile[:, 0], kind="stable").astype(np.int32)
            self.bounds = np.zeros(n_tiles + 1, dtype=np.int64)
            np.cumsum(np.bincount(problem.tile[:, 0], minlength=n_tiles), out=self.bounds[1:])

    def active(self, curvature):
        """Rows with some curvature, those of the first tile first, and where each tile's begin and end."""
        n_active = _core.active_members(curvature, self.order, self.bounds, self.members, self.offsets)
        return self.members[:n_active], self.offsets

    def direction(self, curvature, residual, n_threads):
        """Newton's direction, from the rows with some curvature."""
        problem = self.problem
        members, offsets = self.active(curvature)
        _core.tile_hessians(
            problem.rows.core, problem.design, members, offsets, curvature, self.matrices, n_threads
        )  # fmt: skip
        return arrow_solve(self.matrices, problem.coupling, residual)


class _Crossed:
    """Of rows that belong to several tiles, which share no block."""

    def __init__(self, problem, control):
        self.problem, self.control = problem, control

    def direction(self, curvature, residual, n_threads):
        """Newton's direction, from the rows with some curvature."""
        p = self.problem
        matrices = crossed_hessians(
            p.rows, p.tile, p.weight, p.index, curvature, p.coupling.n_tiles, n_threads, self.control.check
        )  # fmt: skip
        return crossed_solve(matrices, p.coupling, residual)
