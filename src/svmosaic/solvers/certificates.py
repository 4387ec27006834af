r"""Certificates of optimality, in plain NumPy and float64.

For the problem :math:`\min_V P(V) = \tfrac12\lVert V\rVert^2 + \sum_r c_r \max(0, t_r - m_r)^p` with margins
:math:`m_r = s_r f_r` and any feasible duals (:math:`0 \le \alpha_r`, and :math:`\alpha_r \le c_r` if p = 1),

.. math:: D(\alpha) = \sum_r t_r \alpha_r - \tfrac12 \lVert V(\alpha) \rVert^2
          - \sum_r \tfrac{\alpha_r^2}{4 c_r} [p = 2] ,
          \qquad V(\alpha) = \sum_r \alpha_r s_r (\text{coef}_r \otimes x_r) ,

bounds the optimum from below, so :math:`P(V) - D(\alpha)` bounds the suboptimality of V from above. These
functions take margins and V(alpha) as arrays and know nothing of how they were computed.
"""

from dataclasses import dataclass, replace

import numpy as np

from svmosaic import _core
from svmosaic.solvers.problem import at

# Sums go over so many rows at a time: what lies between fits in a cache, and no array as long as the rows is made.
_AT_A_TIME = 8192


def half_square(weights) -> float:
    """|V|^2 / 2, tile by tile: features that are zero throughout leave the bits as they are without them."""
    return float(0.5 * np.einsum("...f,...f->...", weights, weights).sum())


def primal(problem, weights, margin) -> float:
    """P(V), from V and the margins it gives."""
    losses = 0.0
    for begin in range(0, len(margin), _AT_A_TIME):
        r = slice(begin, begin + _AT_A_TIME)
        losses += np.dot(problem.cost[r], problem.loss.value(margin[r], at(problem.threshold, r)))
    return half_square(weights) + float(losses)


def dual(problem, weights, alpha) -> float:
    """D(alpha), from alpha and V(alpha)."""
    earned = alpha.sum() if problem.threshold is None else np.dot(problem.threshold, alpha)
    paid = 0.0
    for begin in range(0, len(alpha), _AT_A_TIME):
        r = slice(begin, begin + _AT_A_TIME)
        paid += problem.loss.dual_cost(alpha[r], problem.cost[r])
    return float(earned) - float(paid) - half_square(weights)


@dataclass(frozen=True)
class Certificate:
    """A primal point, a feasible dual point, and the gap between their values."""

    weights: np.ndarray
    primal: float
    dual: float

    @property
    def gap(self) -> float:
        """Primal minus dual value, not negative by rounding; one far below zero shows an infeasible dual point."""
        gap = self.primal - self.dual
        return 0.0 if -1e-10 * (abs(self.primal) + abs(self.dual)) <= gap < 0 else gap


@dataclass(frozen=True)
class Solution(Certificate):
    """A certified answer to a `Problem`: the block weights, with their primal value, dual value and gap.

    Attributes
    ----------
    alpha : ndarray of shape (n_rows,)
        The dual point of the certificate; start the next solve from it.
    n_iter : int
        Epochs of descent, or Newton steps.
    target : float
        The gap that was asked for, tol * P(0).
    solver : {"dual", "newton", "sgd", "crammer_singer"}
        Which one gave the answer.
    settled : bool or None
        For a solver without a dual point: whether it met its own stop rule.
    """

    alpha: np.ndarray
    n_iter: int
    target: float
    solver: str
    settled: bool | None = None

    @property
    def converged(self) -> bool:
        return self.gap <= self.target if self.settled is None else self.settled


def margins(problem, weights, n_threads: int = 1, out=None):
    """s_r f_r of each problem row, by the core, in float64."""
    out = np.empty(problem.n_rows) if out is None else out
    _core.margins(problem.rows.core, problem.design, problem.sign, weights, out, n_threads)
    return out


def weights_of(problem, alpha, n_threads: int = 1):
    """V(alpha), by the core, in float64."""
    out = np.empty(problem.shape)
    _core.accumulate(problem.rows.core, problem.design, problem.sign, alpha, out, n_threads)
    return out


def certify(problem, alpha, n_threads: int = 1) -> Certificate:
    """The certificate of a dual point, with V recomputed from it so that drift cannot hide."""
    weights = weights_of(problem, alpha, n_threads)
    margin = margins(problem, weights, n_threads)
    return Certificate(weights, primal(problem, weights, margin), dual(problem, weights, alpha))


def shortened(problem, certificate, penalised=None, n_threads: int = 1):
    r"""The certificate with V replaced by the best :math:`tV`, :math:`0 \le t \le 1`, where V is worse than no weights.

    A solve that was stopped early can end so: at a huge C the duals overshoot before they settle. The direction is
    kept, as it is what the signs of the scores come from; the dual value bounds the optimum whatever the weights.

    Parameters
    ----------
    problem : Problem
    certificate : Certificate
    penalized : ndarray, optional
        The part of the weights that the penalty counts, if not all.
    n_threads : int
    """
    if not certificate.primal > problem.primal_at_zero:
        return certificate
    counted = certificate.weights if penalised is None else penalised
    square = float(np.vdot(counted, counted))
    margin = margins(problem, certificate.weights, n_threads)

    def value(t):
        return 0.5 * t * t * square + float(np.dot(problem.cost, problem.loss.value(t * margin, problem.threshold)))

    def slope(t):
        return t * square - float(np.dot(problem.cost, margin * problem.loss.pull(t * margin, problem.threshold)))

    return shorten(certificate, value, slope, problem.primal_at_zero)


def shorten(certificate, value, slope, at_zero):
    """The certificate or solution, its weights times the t that minimizes a convex `value` of derivative `slope`."""
    low, high = -300.0, 0.0  # powers of ten: weights may be too long by any factor
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(10.0**middle) < 0 else (low, middle)
    t = 10.0**low
    best = value(t)
    if not best <= at_zero:
        t, best = 0.0, at_zero
    return replace(certificate, weights=t * certificate.weights, primal=best)
