r"""Second-order solver for problems whose rows far outnumber their features.

Losses with p = 2: Newton's method on the primal. With p = 1: the proximal point method on the dual, whose steps

.. math:: \alpha^+ = \arg\max_{0 \le a \le c} D(a) - \sum_r \frac{(a_r - \alpha_r)^2}{2 \sigma_r}

are smooth problems in V (an augmented Lagrangian of the primal), solved by the same Newton's method: row r
answers to its margin with :math:`a_r(m) = \mathrm{clip}(\alpha_r + \sigma_r (t_r - m), 0, c_r)`, and V is
stationary where :math:`V = \sum_r a_r(m_r) s_r x_r`. With the steps :math:`\sigma` growing, few are needed. Only
rows where the clipping is idle enter the Hessian, which makes an iteration cheaper than that of an interior
point method, and any dual point is a start, which an interior point method cannot use.

The Hessian, for tiles :math:`W_k = \text{own}\,V_k + \sum_s U_{ks} V_s`, is an arrow: one (d+1) x (d+1) block
per tile and a border of shared blocks, eliminated by its Schur complement. If rows belong to several tiles, which
then must not share anything, there is a block for each pair of tiles, and one dense system. If these matrices are too
large to travel or to be formed in every step, or some blocks see only a part of the row, conjugate gradients take
products instead, preconditioned by the tiles' own matrices (with rows in memory also by the correlation of the codes).

The method is written once, as a generator that yields questions and is sent sums over rows (`svmosaic.solvers.share`).
Rows in memory are one partition, whose share answers at once; `solve_partitions` carries the questions to partitions
elsewhere. Both run the same steps. What differs is what a question costs, so there are four fast paths for rows in
memory, behind the same questions: margins follow the weights by addition, line searches ask for one length after
another instead of many at once (if p = 2, the end of the step is evaluated first, where most steps end), and the start
is the answer for a sample of the rows.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from svmosaic import _core
from svmosaic.couplings import Coupling
from svmosaic.losses import Loss, unit_of
from svmosaic.solvers.certificates import Certificate, Solution, half_square, margins, weights_of
from svmosaic.solvers.control import alone
from svmosaic.solvers.dual_descent import start_duals
from svmosaic.solvers.hessians import (
    arrow_solve,
    crossed_solve,
    n_pairs_of,
    one_in,
    sighted_form,
    sighted_solve,
    tile_inverses,
)
from svmosaic.solvers.problem import Sight
from svmosaic.solvers.share import Evaluate, Matrices, Move, Product, Share, Slopes, Unit, threshold_sums

# First proximal step in units of the costs and of the typical threshold: at V = 0 the response of a row of that
# threshold, c/2, is strictly inside its box.
# From given duals, a step later.
FIRST_STEPS = {False: 0.5, True: 4.0}
# Growth of the proximal step: larger means fewer but harder inner problems; 4 to 10 measured alike.
STEP_GROWTH = 8.0
# From so many rows on, by the power of the loss, the start is the answer for one row in eight, to a coarse tolerance:
# it saves half of the steps. If p = 2, whose gap falls late but at once, that answer needs no more than a gap of some
# times the tolerance: what the other rows change is more.
SAMPLED_FROM, SAMPLED_SHARE, SAMPLE_TOL, SAMPLE_SLACK = {1: 32_768, 2: 16_384}, 8, 1e-3, {1: 1.0, 2: 10.0}
# The first proximal step from there, measured best for one tile and for several.
SAMPLE_STEP_ALONE, SAMPLE_STEP_COUPLED = 32.0, 4.0
# If fewer rows than this per weight are then active, the Hessian counts those within this reach of their kinks.
ACTIVE_PER_WEIGHT, FIRST_REACH = 25, 0.1
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
# Step lengths whose slopes are asked for at once if questions travel: fine around 1, where most steps end, coarse
# elsewhere.
LENGTHS = tuple(
    np.concatenate([2.0 ** np.arange(-14, -4), 2.0 ** np.arange(-4, 1.01, 0.5), 2.0 ** np.arange(2, 6)]).tolist()
)
# Numbers in the Hessian's matrices up to which they are formed and sent (32 MB per problem and partition).
LARGEST_HESSIAN = 4_000_000
# Unknowns up to which rows in memory that belong to several tiles are given a dense system. It costs their cube, and a
# matrix for each pair of tiles of a row; a product with the Hessian costs two passes over the rows.
LARGEST_DENSE = 600
# Conjugate gradients solve for the direction to this share of the residual, in so many products at most. For rows in
# memory a product costs little compared with the rest of a step.
CG_TOL, CG_ITER = {True: 0.1, False: 0.3}, {True: 40, False: 200}  # by whether questions travel
# ... or until the residual is this share of what may be left at the end: the last step does no more than it has to.
LAST_SHARE = 0.7


@dataclass(frozen=True)
class Setting:
    """What the method knows of a problem whose rows may be anywhere.

    Attributes
    ----------
    job : what questions are asked about, where several problems are solved at once
    coupling : Coupling
    loss : Loss
    n_features : int
    one_tile : bool
        Whether each row belongs to one tile, so that the Hessian is an arrow.
    travels : bool
        Whether questions travel to partitions elsewhere; else one share in memory answers and remembers.
    sight : Sight, optional
        What the blocks see, if some see less than whole rows; tiles then share nothing.
    """

    job: Any
    coupling: Coupling
    loss: Loss
    n_features: int
    one_tile: bool
    travels: bool
    sight: Sight | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the block weights."""
        return self.coupling.n_blocks, self.n_features + 1

    @property
    def form(self) -> str | None:
        """The whole Hessian if it is small enough, else the tiles' own matrices, or nothing."""
        n_tiles, largest = self.coupling.n_tiles, LARGEST_HESSIAN if self.travels else np.inf
        if self.sight is not None:
            return sighted_form(self.sight, n_tiles, self.n_features, largest)
        if self.travels:
            dense = n_pairs_of(n_tiles) * self.shape[1] ** 2 <= largest
        else:
            dense = n_tiles * self.shape[1] <= LARGEST_DENSE
        if dense and not self.one_tile and self.coupling.n_shared == 0:
            return "pairs"
        return "tiles" if n_tiles * self.shape[1] ** 2 <= largest else None


def solve_newton(problem, *, tol, max_iter, alpha=None, n_threads=1, control=None, **_) -> Solution:
    """Solve by (proximal) Newton steps to a duality gap of tol * P(0); parameters as `solve_dual_descent`."""
    if not (problem.one_tile_a_row or problem.coupling.n_shared == 0):
        raise ValueError("solver='newton' needs rows of one tile each, or tiles that share nothing; use solver='dual'")
    control = control or alone()
    with np.errstate(over="ignore", invalid="ignore"):  # reported below, if X is to blame
        solution, _ = _solve_in_memory(problem, alpha, tol=tol, max_iter=max_iter, n_threads=n_threads, control=control)
    if not solution.converged:
        _ = problem.curvature  # ValueError if it overflows
    return solution


def _solve_in_memory(problem, alpha, *, tol, max_iter, n_threads, control):
    """One share answers every question; the solution, and the moves of the duals from zero, or from `alpha`, to it."""
    options = {"tol": tol, "max_iter": max_iter, "n_threads": n_threads, "control": control}
    start = _start(problem, alpha, **options)
    center, moves = start.center, start.moves
    share = Share(problem, center, n_threads, known=(start.weights, start.margin), check=control.check)
    setting = Setting(
        None, problem.coupling, problem.loss, problem.rows.n_features, problem.one_tile_a_row, False, problem.sight
    )
    kept: tuple = ()

    def keep(move):
        nonlocal kept
        kept = share.keep(), [*moves, move]

    steps = newton_steps(
        setting, start.weights, start.step, start.reach, tol=tol, max_iter=max_iter, control=control, keep=keep
    )
    question = next(steps)
    while True:
        if question.move is not None:  # to the response of the last question
            np.copyto(center, share.response)
            moves.append(question.move)
        try:
            question = steps.send(question.of(share))
        except StopIteration as stop:
            best, n_iter, target = stop.value
            alpha, moves = kept
            return Solution(**vars(best), alpha=alpha, n_iter=n_iter, target=target, solver="newton"), moves


@dataclass(frozen=True)
class Start:
    """What to begin with: weights, their margins if known, duals, proximal step, reach, and the moves of the duals."""

    weights: np.ndarray
    margin: np.ndarray | None
    center: np.ndarray | None
    step: float
    reach: float
    moves: list[Move]


def _start(problem, alpha, **options) -> Start:
    """From given duals; else, if rows are many, from the answer for a part of them; else from zero.

    Losses with p = 2 need no duals.
    """
    n_threads, smooth = options["n_threads"], problem.loss.smooth_step is not None
    least = max(SAMPLED_FROM[problem.loss.power], 10 * SAMPLED_SHARE * problem.n_weights)
    if alpha is not None or problem.n_rows < least:
        alpha = start_duals(problem, alpha)
        warm = bool(alpha.any())
        weights = weights_of(problem, alpha, n_threads) if warm else np.zeros(problem.shape)
        margin = None if warm else np.zeros(problem.n_rows)
        return Start(weights, margin, None if smooth else alpha, FIRST_STEPS[warm], 0.0, [])
    coarse = max(SAMPLE_SLACK[problem.loss.power] * options["tol"], SAMPLE_TOL)
    options |= {"tol": coarse, "control": replace(options["control"], watch=None)}  # nobody hears of its iterations
    # One row out of SAMPLED_SHARE consecutive ones, each with that many times its cost.
    part = problem.part(one_in(SAMPLED_SHARE, problem.n_rows), SAMPLED_SHARE)
    sampled, moves = _solve_in_memory(part, None, **options)
    step = SAMPLE_STEP_ALONE if problem.coupling.n_tiles == 1 else SAMPLE_STEP_COUPLED
    if smooth or not moves:
        return Start(sampled.weights, None, None, step, 0.0, [])
    # All rows make the moves that led to the sample's duals. So they begin with the duals that they would have there,
    # close to the right ones even if nearly all rows of a sign are where the loss has its kink, as with a class so rare
    # that all scores are alike.
    margin, center, response, curvature = (np.zeros(problem.n_rows) for _ in range(4))
    unit = unit_of(threshold_sums(problem))
    fixed = center, problem.cost, problem.threshold, margin, 0.0
    for move in moves:  # the last one is at the weights handed out
        margins(problem, move.weights, n_threads, margin)
        _core.respond(*fixed, center, curvature, n_threads, move.step)
    _core.respond(*fixed, response, curvature, n_threads, step / unit)
    few = np.count_nonzero(curvature) < ACTIVE_PER_WEIGHT * problem.n_weights
    return Start(sampled.weights, margin, center, step, FIRST_REACH * unit if few else 0.0, moves)


def newton_steps(setting, weights, step, reach=0.0, *, tol, max_iter, control, keep):
    """The steps of one problem: yields questions, is sent sums over rows.

    Parameters
    ----------
    setting : Setting
    weights : ndarray
        Block weights to begin with.
    step : float
        The first proximal step, in units of the costs and of the typical threshold. Losses with p = 2 do without: their
        steps are 2 * cost around zero, once and for all.
    reach : float
        How near to its kink a row counts as curved at first.
    tol : float
    max_iter : int
    control : TaskControl
    keep : callable
        `keep(move)` is called when the last answer is the best so far; `move` leads to its duals.

    Returns
    -------
    (Certificate, int, float)
        The best certificate, the number of steps made to it, and the gap asked for.
    """
    job, coupling, form = setting.job, setting.coupling, setting.form
    smooth = setting.loss.smooth_step is not None
    unit = 1.0 if setting.loss.plain else unit_of((yield Unit(job)))
    step = setting.loss.smooth_step if smooth else step / unit
    best = move = along = answer = None
    n_iter, anew, summed = 0, False, False
    # With rows in memory, a whole step is tried by going there: if it will do, what it takes to go on is known.
    whole = smooth and not setting.travels
    while True:
        answer = answer or (yield Evaluate(job, weights, step, reach, form, along, anew, move))
        (sums, implied, matrices), answer = answer, None
        move, anew = None, False
        _, at_zero, loss, dual_value, proximal = sums
        target = tol * float(at_zero)
        certificate = Certificate(weights, half_square(weights) + float(loss), float(dual_value) - half_square(implied))
        if best is None or certificate.gap < best[0].gap:
            if certificate.gap <= target and summed:
                # The certificate of what is handed out is not to rest on rounded sums.
                anew, summed = True, False
                continue
            best = certificate, n_iter, target
            keep(Move(job, weights, step))
        over = control.over(n_iter, lambda now=certificate: now)
        if best[0].gap <= target or n_iter >= max_iter or over:
            return best
        residual = weights - implied
        # What the residual may be: if p = 2, half its square is the gap; else the second term says that an error of the
        # inner problem far below the gap asked for is as good as none.
        allowed = 2.0 * target if smooth else INNER_TOL * proximal + 1e-3 * target
        grows = not smooth and step < LARGEST_STEP / unit
        if grows and np.vdot(residual, residual) <= allowed:
            move = Move(job, weights, step)
            step *= STEP_GROWTH
            continue
        if matrices is None:
            matrices = yield Matrices(job, form)
        if form == "pairs":
            direction = crossed_solve(matrices, coupling, residual)
        elif form == "tiles" and setting.one_tile and setting.sight is None:
            direction = arrow_solve(matrices, coupling, residual)
        else:
            direction = yield from _conjugate(
                setting, weights, step, reach, residual, matrices if form else None, LAST_SHARE * np.sqrt(allowed)
            )
        if not np.isfinite(direction).all():  # the Hessian overflows float64
            return best
        tol_slope, end = SLOPE_TOL[setting.loss.power], weights + direction
        if whole:
            answer = yield Evaluate(job, end, step, adapt_reach(reach, 1.0, unit), form)
            whole = abs(np.vdot(end - answer[1], direction)) <= -tol_slope * np.vdot(residual, direction)
        if whole:
            length = 1.0
        else:
            answer = None
            length = yield from line_search(
                float(np.vdot(weights, direction)), float(np.vdot(direction, direction)),
                partial(Slopes, job, weights, step, direction), tol_slope, setting.travels,
            )  # fmt: skip
        n_iter += 1
        control.check()
        reach = adapt_reach(reach, length, unit)
        if length > 0.0:
            summed = answer is None and not setting.travels and n_iter % MARGINS_ANEW != 0
            along = (weights, direction, length) if summed else None
            weights = end if length == 1.0 else weights + length * direction
            whole = smooth and not setting.travels and length == 1.0
        elif not grows:  # no progress left in float64
            return best
        else:
            move = Move(job, weights, step)
            step *= STEP_GROWTH


def adapt_reach(reach, length, unit) -> float:
    """How near to their kinks (in margins of this unit) rows count as curved: more after short steps, less after long.

    Where fewer rows are active than there are features, the Hessian knows only the regularizer in the remaining
    directions, and its step runs into rows it has not counted: a very short step tells so.
    """
    if length < 0.05:
        return max(4.0 * reach, 1e-3 * unit)
    if length > 0.5:
        return 0.5 * reach if reach > 1e-6 * unit else 0.0
    return reach


def line_search(along, square, ask, tol, travels):
    """Where the slope along + t * square - pull(t), which rises with t, is nearly zero; 0 if it does not fall at first.

    Yields `ask(lengths)` and is sent the pulls there: one length after another, or, if questions travel, many at once,
    between which it interpolates.
    """
    lengths = LENGTHS if travels else (1.0,)
    pulls = yield ask((0.0, *lengths))
    start = along - float(pulls[0])
    slopes = [along + t * square - float(pull) for t, pull in zip(lengths, pulls[1:], strict=True)]
    if not start < 0:
        return 0.0
    enough = tol * -start
    small = [(t != 1.0, abs(s), t) for t, s in zip(lengths, slopes, strict=True) if abs(s) <= enough]
    if small:  # the whole step if it will do, else the best
        return min(small)[2]
    n_low = next((k for k, s in enumerate(slopes) if not s < 0), len(slopes))
    low, slope_low = (lengths[n_low - 1], slopes[n_low - 1]) if n_low > 0 else (0.0, start)
    high, slope_high = (lengths[n_low], slopes[n_low]) if n_low < len(slopes) else (None, None)
    for n_tried in range(1, 60):
        if high is None:
            t = 2.0 * low
        elif high < SHORTEST or high - low <= BRACKET_TOL * low:
            break
        elif low == 0.0 and n_tried > PATIENCE:
            t = 0.01 * high
        else:
            # Secant, kept away from the ends of the bracket if it can be tried.
            t = low - slope_low * (high - low) / (slope_high - slope_low)
            t = t if travels else min(max(t, low + 0.1 * (high - low)), high - 0.1 * (high - low))
        if travels:
            return low if high is None else t
        s = along + t * square - float((yield ask((t,)))[0])
        if abs(s) <= enough:
            return t
        if s < 0:
            low, slope_low = t, s
        else:
            high, slope_high = t, s
    return low


def _conjugate(setting, weights, step, reach, residual, hessians, least):
    """The Newton direction by conjugate gradients, preconditioned by the tiles' own matrices if there are any.

    It need not leave less than `least` of the residual.
    """
    coupling = setting.coupling
    alone = not (hessians is None or callable(hessians) or setting.sight is not None or coupling.n_shared)
    inverse = tile_inverses(hessians, coupling.own**2) if alone else None

    def precondition(r):
        if inverse is not None:
            return np.matmul(inverse, r[:, :, None])[:, :, 0]
        if hessians is None or callable(hessians):
            return r if hessians is None else hessians(r)
        solved = sighted_solve if setting.sight is not None else arrow_solve
        return -solved(hessians, coupling, r)

    direction = np.zeros_like(residual)
    rest = -residual
    scaled = precondition(rest)
    search, size = scaled, float(np.vdot(rest, scaled))
    enough = max(CG_TOL[setting.travels] * np.linalg.norm(residual), least)
    for _ in range(CG_ITER[setting.travels]):
        bent = search + (yield Product(setting.job, weights, step, reach, search))
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
