r"""Driver of stochastic gradient descent (core/sgd.hpp): step sizes, passes, streams.

The problem :math:`\tfrac12\lVert V\rVert^2 + \sum_r c_r\,\text{loss}_r` with :math:`c_r = C s_r`, divided by
:math:`C n`, is the paper's :math:`\tfrac{\lambda}{2}\lVert V\rVert^2 + \tfrac1n\sum_r s_r\,\text{loss}_r` with
:math:`\lambda = 1 / (C n)`. Step t has the size :math:`1 / (\lambda (t + t_0))`.
"""

from dataclasses import dataclass, replace

import numpy as np

from svmosaic import _core
from svmosaic.solvers.certificates import Certificate, Solution, margins, shortened
from svmosaic.solvers.control import alone

# Rows on which the first step size is tried.
TRIAL_ROWS = 1000
# Step sizes tried to either side, in powers of two, and how far above the best objective a longer step may end.
TRIAL_POWERS, TRIAL_SLACK = 4, 0.05
# Regularization reads all blocks, a step only its own: shrink so rarely that it costs an eighth of the steps, ...
SKIP_SHARE = 4
# ... but never by more than this share at once, where t0 is small.
LARGEST_SHRINK = 0.1
# The core is called for about this many multiplications at a time (a fifth of a second), to look for interrupts.
WORK_A_CALL = 2e8
# A pass after which the penalty is so many times what it was, and what it can be at the best weights, has run away.
RUNAWAY = 10
# Passes without progress before descent stops.
PATIENCE = 5


@dataclass(frozen=True)
class SgdOptions:
    """Parameters of the descent.

    Attributes
    ----------
    shuffle : bool
        Whether to visit the rows in a new random order in every pass, or in the given order.
    average : bool
        Return the average of the iterates, the t-th weighing t, instead of the last one.
    free_bias : bool
        Leave the biases out of the penalty, as the LL-SVM paper does.
    t0 : float or None
        Offset of the step count. None: found by trial, see `StochasticDescent.begin`.
    """

    shuffle: bool = True
    average: bool = True
    free_bias: bool = False
    t0: float | None = None


class StochasticDescent:
    """A descent under way. Plain arrays and numbers only: it can be pickled between two batches.

    Parameters
    ----------
    n_rows : int
        The n of lambda = 1 / (C n): the length of a pass, or of the whole stream.
    options : SgdOptions
    weights : ndarray of shape (n_blocks, n_features + 1), float32 or float64
        Where to start from; changed in place.
    """

    def __init__(self, n_rows, options, weights):
        self.n_rows = n_rows
        self.options = options
        self.last = weights
        self.average = np.zeros_like(weights) if options.average else None
        self.t0 = self.skip = None
        self._state = None

    @property
    def n_steps(self) -> int:
        return 0 if self._state is None else self._state[0]

    @property
    def weights(self):
        """The current blocks (or the average of the iterates, if requested), in float64."""
        return (self.last if self.average is None else self.average).astype(np.float64)

    def begin(self, problem, order=None):
        """Choose t0 and skip from the first rows.

        As in SVMSGD2 (Bordes, Bottou and Gallinari, 2009) the first step should be of a sensible size. A step size eta
        moves the margin of a row by eta |x|^2 |coef|^2. Around the one that moves it by one on average, powers of two
        are tried, each in one pass over at most 1000 rows; of those that end within 5 % of the lowest objective the
        largest is taken, as the real run is longer; the one in the middle if no row has a loss, which tells nothing.
        Then t0 = 1 / (lambda eta), at least 1. `skip` makes the shrinking
        of all blocks cost an eighth of the updates between, and is at most a tenth of t0.
        """
        head = np.arange(min(problem.n_rows, TRIAL_ROWS), dtype=np.int32) if order is None else order[:TRIAL_ROWS]
        self.t0 = self.options.t0 if self.options.t0 is not None else self._try_t0(problem.part(head))
        stored = problem.rows.stored_per_row + 1
        width = problem.tile.shape[1] + problem.coupling.n_shared
        skip = SKIP_SHARE * self.last.size / (width * stored)
        self.skip = max(1, int(min(skip, LARGEST_SHRINK * self.t0)))
        self._state = (0, self.skip, 0.0, 0.0)

    def _try_t0(self, problem) -> float:
        curvature, cost = float(problem.curvature.mean()), float(problem.cost.mean())
        if curvature == 0 or cost == 0:
            return 1.0
        reach = self.n_rows * cost
        if not np.dot(problem.cost, _losses(problem, self.weights)):
            return max(1.0, reach * curvature)

        def outcome(eta):
            trial = StochasticDescent(self.n_rows, replace(self.options, t0=max(1.0, reach / eta)), self.last.copy())
            trial._take_steps(problem, self.n_rows * problem.cost)
            with np.errstate(over="ignore", invalid="ignore"):  # a step that is far too large
                losses = self.n_rows / problem.n_rows * np.dot(problem.cost, _losses(problem, trial.weights))
                value = penalty(trial.weights, self.options.free_bias) + losses
            return value if np.isfinite(value) else np.inf

        etas = [2.0**k / curvature for k in range(-TRIAL_POWERS, TRIAL_POWERS + 1)]
        values = [outcome(eta) for eta in etas]
        for _ in range(20):  # as long as the best is at an end, look beyond it
            if min(values) == values[-1] < values[0]:
                etas.append(2.0 * etas[-1])
                values.append(outcome(etas[-1]))
            elif min(values) == values[0] < values[-1] or min(values) == np.inf:
                etas.insert(0, 0.5 * etas[0])
                values.insert(0, outcome(etas[0]))
            else:
                break
        limit = min((1 + TRIAL_SLACK) * min(values), np.finfo(float).max)
        eta = max((eta for eta, value in zip(etas, values, strict=True) if value <= limit), default=etas[0])
        return max(1.0, reach / eta)

    def run(self, problem, order=None, control=None):
        """One step on every row of the problem, in the given order, or in that of the rows.

        With squared losses, t0 from rows that tell little of the others lets the weights grow without bound. All steps
        are then made again, none of them further than to the threshold of its row.
        """
        if self._state is None:
            self.begin(problem, order)
        reach, squared = self.n_rows * problem.cost, problem.loss.power == 2
        before = self.last.copy(), self.weights, self._state
        self._take_steps(problem, reach, order, control)
        if not squared:
            return

        def size(*of):
            with np.errstate(over="ignore", invalid="ignore"):
                return np.max([penalty(weights.astype(np.float64), False) for weights in of])  # nan if one is

        zero = self.n_rows / problem.n_rows * problem.primal_at_zero  # bounds the penalty of the best weights
        if not size(self.last, self.weights) <= RUNAWAY * max(size(*before[:2]), zero):
            time = np.arange(problem.n_rows) + (self.t0 + before[2][0])
            if order is not None:
                time[order] = time.copy()
            self.last[:], self._state = before[0], before[2]
            if self.average is not None:
                self.average[:] = before[1]
            longest = 0.5 * time / np.maximum(problem.curvature, np.finfo(float).tiny)
            self._take_steps(problem, np.minimum(reach, longest), order, control)

    def _take_steps(self, problem, reach, order=None, control=None):
        if self._state is None:
            self.begin(problem, order)
        state = _core.SgdState(*self._state)
        stored = problem.rows.stored_per_row + 1
        piece = max(1, int(WORK_A_CALL / (problem.tile.shape[1] * stored)))
        try:
            for begin in range(0, problem.n_rows, piece):
                if control is not None:
                    control.check()
                    if begin > 0 and control.seconds(1.0) == 0.0:
                        break  # out of time: what has been learned so far counts
                _core.sgd_steps(
                    problem.rows.core, problem.design, problem.sign, problem.threshold, reach, problem.loss.power,
                    self.options.free_bias, order, begin, min(begin + piece, problem.n_rows), self.t0, self.skip, state,
                    self.last, self.average,
                )  # fmt: skip
        finally:  # after an interrupt too: the weights have moved
            self._state = (state.t, state.left, state.averaged, state.share)


def penalty(weights, free_bias: bool) -> float:
    """1/2 ||V||^2, without the biases if they are not penalized."""
    penalised = weights[..., :-1] if free_bias else weights
    return 0.5 * float(np.vdot(penalised, penalised))


def _losses(problem, weights, n_threads=1):
    return problem.loss.value(margins(problem, weights, n_threads), problem.threshold)


def solve_sgd(problem, *, tol, max_iter, seed, alpha=None, n_threads=1, control=None, options=None) -> Solution:
    """Solve by stochastic gradient descent.

    Stops after `max_iter` passes, or when the last five passes together lowered the best objective by less than
    tol * P(0). There is no dual point, and so no certificate: dual value and gap are nan. The weights are the best of
    those at the ends of the passes.

    Parameters
    ----------
    problem : Problem
    tol : float
    max_iter : int
        The largest number of passes.
    seed : SeedSequence
        Orders the rows.
    alpha : ignored, there are no duals
    n_threads : int
        For the objective; descent itself is sequential.
    control : TaskControl, optional
        Asked between calls of the core whether to stop.
    options : SgdOptions, optional
    """
    options = options or SgdOptions()
    control = control or alone()
    rng = np.random.default_rng(seed)
    descent = StochasticDescent(problem.n_rows, options, np.zeros(problem.shape, dtype=problem.rows.dtype))
    target = tol * problem.primal_at_zero
    values = [problem.primal_at_zero]
    best, settled = np.zeros(problem.shape), False
    over = False
    while len(values) <= max_iter and not settled and not over:
        order = rng.permutation(problem.n_rows).astype(np.int32) if options.shuffle else None
        descent.run(problem, order, control)
        weights = descent.weights
        losses = _losses(problem, weights, n_threads)
        values.append(penalty(weights, options.free_bias) + float(np.dot(problem.cost, losses)))
        if values[-1] <= min(values[1:]):
            best = weights
        over = control.over(len(values) - 1, lambda now=weights: Certificate(now, values[-1], np.nan))
        settled = len(values) > PATIENCE + 1 and min(values[:-PATIENCE]) - min(values) < target
    penalised = best[..., :-1] if options.free_bias else best
    certificate = shortened(problem, Certificate(best, min(values[1:]), np.nan), penalised, n_threads)
    alpha, n_iter = np.zeros(problem.n_rows), len(values) - 1
    return Solution(**vars(certificate), alpha=alpha, n_iter=n_iter, target=target, solver="sgd", settled=settled)
