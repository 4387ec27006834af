r"""Certificates of optimality, in plain NumPy and float64.

For the problem :math:`\min_V P(V) = \tfrac12\lVert V\rVert^2 + \sum_r c_r\,\text{loss}(m_r)` with margins
:math:`m_r = y_r f_r` and any feasible duals (:math:`0 \le \alpha_r`, and :math:`\alpha_r \le c_r` for the hinge),

.. math:: D(\alpha) = \sum_r \alpha_r - \tfrac12 \lVert V(\alpha) \rVert^2
          - \sum_r \tfrac{\alpha_r^2}{4 c_r} [\text{squared hinge}] ,
          \qquad V(\alpha) = \sum_r \alpha_r y_r (\text{coef}_r \otimes x_r) ,

bounds the optimum from below, so :math:`P(V) - D(\alpha)` bounds the suboptimality of V from above. These
functions take margins and V(alpha) as arrays and know nothing of how they were computed.
"""

from dataclasses import dataclass

import numpy as np

from svmosaic import _core


def loss_of(margin, squared: bool):
    """max(0, 1 - m), or its square."""
    slack = 1.0 - margin
    np.maximum(slack, 0.0, out=slack)
    return np.square(slack, out=slack) if squared else slack


# Sums go over so many rows at a time: what lies between fits in a cache, and no array as long as the rows is made.
_AT_A_TIME = 8192


def _sum_of_rows(term, n_rows) -> float:
    """The sum of term(rows) over slices of the rows."""
    return float(sum(term(slice(r, r + _AT_A_TIME)) for r in range(0, n_rows, _AT_A_TIME)))


def _half_square(weights) -> float:
    """|V|^2 / 2, tile by tile: features that are zero throughout leave the bits as they are without them."""
    return float(0.5 * np.einsum("...f,...f->...", weights, weights).sum())


def primal(weights, margin, cost, squared: bool) -> float:
    """P(V), from V and the margins it gives."""
    losses = _sum_of_rows(lambda r: np.dot(cost[r], loss_of(margin[r], squared)), len(cost))
    return _half_square(weights) + losses


def dual(weights, alpha, cost, squared: bool) -> float:
    """D(alpha), from alpha and V(alpha)."""
    value = float(alpha.sum()) - _half_square(weights)
    if squared:
        # A row that costs nothing has a dual of zero: any divisor will do.
        value -= 0.25 * _sum_of_rows(
            lambda r: np.dot(alpha[r], alpha[r] / np.where(cost[r] > 0, cost[r], 1.0)), len(cost)
        )
    return value


def infeasibility(alpha, cost, squared: bool) -> float:
    """How far the duals are outside their box."""
    above = np.where(cost > 0, 0.0, alpha) if squared else alpha - cost
    return float(max(0.0, -alpha.min(initial=0.0), above.max(initial=0.0)))


def kkt_residual(margin, alpha, cost, squared: bool) -> float:
    """Largest violation of the optimality conditions, as a projected dual gradient.

    At the optimum, with g = m - 1 (+ alpha / 2c for the squared hinge): g >= 0 where alpha = 0, g <= 0
    where alpha is at its upper bound, g = 0 between.
    """
    paid = cost > 0
    margin, alpha, cost = margin[paid], alpha[paid], cost[paid]
    gradient = margin - 1.0
    if squared:
        gradient = gradient + 0.5 * alpha / cost
    violation = np.abs(gradient)
    violation[(alpha <= 0) & (gradient > 0)] = 0.0
    if not squared:
        violation[(alpha >= cost) & (gradient < 0)] = 0.0
    return float(violation.max(initial=0.0))


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


def margins(problem, weights, n_threads: int = 1):
    """y_r f_r of each problem row, by the core, in float64."""
    out = np.empty(problem.n_rows)
    _core.margins(problem.rows.core, problem.design, problem.y, weights, out, n_threads)
    return out


def weights_of(problem, alpha, n_threads: int = 1):
    """V(alpha), by the core, in float64."""
    out = np.empty(problem.shape)
    _core.accumulate(problem.rows.core, problem.design, problem.y, alpha, out, n_threads)
    return out


def certify(problem, alpha, n_threads: int = 1) -> Certificate:
    """The certificate of a dual point, with V recomputed from it so that drift cannot hide."""
    weights = weights_of(problem, alpha, n_threads)
    margin = margins(problem, weights, n_threads)
    return Certificate(
        weights,
        primal(weights, margin, problem.cost, problem.squared),
        dual(weights, alpha, problem.cost, problem.squared),
    )


def shortened(problem, certificate, penalised=None, n_threads: int = 1) -> Certificate:
    r"""The certificate with V replaced by the best :math:`tV`, :math:`0 \le t \le 1`, where V is worse than no weights.

    A solve that was stopped early can end so: at a huge C the duals overshoot before they settle. The direction is
    kept, as it is what the signs of the scores come from; the dual value bounds the optimum whatever the weights.

    Parameters
    ----------
    problem : Problem
    certificate : Certificate
    penalised : ndarray, optional
        The part of the weights that the penalty counts, if not all.
    n_threads : int
    """
    if not certificate.primal > problem.primal_at_zero:
        return certificate
    counted = certificate.weights if penalised is None else penalised
    cost, square = problem.cost, float(np.vdot(counted, counted))
    margin = margins(problem, certificate.weights, n_threads)

    def value(t):
        return 0.5 * t * t * square + float(np.dot(cost, loss_of(t * margin, problem.squared)))

    def slope(t):
        slack = np.maximum(0.0, 1.0 - t * margin)
        pull = 2.0 * slack if problem.squared else (slack > 0).astype(float)
        return t * square - float(np.dot(cost, margin * pull))

    return shorten(certificate, value, slope, problem.primal_at_zero)


def shorten(certificate, value, slope, at_zero) -> Certificate:
    """The certificate with its weights times the t that minimises the convex `value`, whose derivative is `slope`."""
    low, high = -300.0, 0.0  # powers of ten: weights may be too long by any factor
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(10.0**middle) < 0 else (low, middle)
    t = 10.0**low
    best = value(t)
    if not best <= at_zero:
        t, best = 0.0, at_zero
    return Certificate(t * certificate.weights, best, certificate.dual)
