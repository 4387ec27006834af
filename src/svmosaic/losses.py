r"""The losses: one family, and the one list of its members.

A training row r with sign s, threshold t and cost c pays

.. math:: c \max(0, t - s f)^p , \qquad p = 1 \text{ or } 2 ,

for the score f. Its dual variable a earns :math:`t a`, less :math:`a^2 / 4c` if p = 2, and lies between 0 and c if
p = 1, between 0 and infinity if p = 2. The solvers know this family and nothing else (`core/loss.hpp` has the same
formulas for the loops); a named loss says which rows of the family a sample becomes (`Loss.rows`).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Targets:
    """The rows of a problem: conditions on their scores.

    Attributes
    ----------
    sign : ndarray of int8
    cost : ndarray of float64
    threshold : ndarray of float64, or None for all ones
    index : ndarray of int32, the sample of each row, or None if each sample is one row
    """

    sign: np.ndarray
    cost: np.ndarray
    threshold: np.ndarray | None = None
    index: np.ndarray | None = None


@dataclass(frozen=True)
class Loss:
    """A member of the family.

    Attributes
    ----------
    name : str
        What estimators call it.
    power : {1, 2}
        The p of the family.
    task : {"classification", "regression"}
    sides : callable
        `sides(y, **parameters)` lists the rows of a sample as (sign, threshold, share of the cost): arrays as long as y
        or numbers, and None for a threshold of one. y holds signs (classification) or numbers (regression).
    parameters : tuple of str
        The parameters that `sides` takes.
    """

    name: str
    power: int
    task: str
    sides: Callable
    parameters: tuple[str, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether each sample is one row of threshold one and whole cost."""
        return self.sides is _beyond_one

    def rows(self, y, cost, output=0, **parameters) -> Targets:
        """The problem rows of samples; rows of one sample follow each other.

        Parameters
        ----------
        y : ndarray of shape (n_samples,)
            Signs (classification) or numbers (regression).
        cost : ndarray of shape (n_samples,)
            C times the sample weights.
        output : int
        **parameters
            Values of the parameters of this loss, such as `epsilon`: numbers, or lists with one for each output. Others
            are ignored.
        """
        given = {}
        for name in self.parameters:
            value = parameters[name]
            given[name] = value[output] if isinstance(value, list) else value
        sides = self.sides(y, **given)
        if len(sides) == 1:
            ((sign, threshold, share),) = sides
            sign = np.ascontiguousarray(np.broadcast_to(sign, len(y)), dtype=np.int8)
            if threshold is not None:
                threshold = np.ascontiguousarray(np.broadcast_to(threshold, len(y)), dtype=np.float64)
            return Targets(sign, cost if np.isscalar(share) and share == 1 else share * cost, threshold)
        shape = len(y), len(sides)
        signs, thresholds, costs = np.empty(shape, np.int8), np.empty(shape), np.empty(shape)
        for k, (sign, threshold, share) in enumerate(sides):
            signs[:, k], thresholds[:, k] = sign, 1.0 if threshold is None else threshold
            np.multiply(share, cost, out=costs[:, k])
        index = np.repeat(np.arange(len(y), dtype=np.int32), len(sides))
        return Targets(signs.ravel(), costs.ravel(), thresholds.ravel(), index)

    def value(self, margin, threshold=None):
        """max(0, t - m)^p; a threshold of None stands for one."""
        slack = (1.0 if threshold is None else threshold) - margin
        np.maximum(slack, 0.0, out=slack)
        return np.square(slack, out=slack) if self.power == 2 else slack

    def paid(self, y, scores, **parameters):
        """What each sample of cost one pays for its score; see `rows` for y and the parameters."""
        rows = self.rows(y, np.ones(len(y)), **parameters)
        scores = scores if rows.index is None else scores[rows.index]
        return (rows.cost * self.value(rows.sign * scores, rows.threshold)).reshape(len(y), -1).sum(axis=1)

    def pull(self, margin, threshold=None):
        """Minus the slope in the margin: [m < t], or 2 max(0, t - m)."""
        slack = slack_of(margin, threshold)
        return 2.0 * slack if self.power == 2 else (slack > 0).astype(float)

    def curvature(self, margin, threshold=None):
        """The second derivative with respect to the margin, except at the kink: 0, or 2 [m < t]."""
        return (2.0 if self.power == 2 else 0.0) * (slack_of(margin, threshold) > 0)

    def dual_cost(self, alpha, cost) -> float:
        """What the duals of these rows pay together: their value is t a less this."""
        # A row that costs nothing has a dual of zero: any divisor will do.
        return 0.25 * np.dot(alpha, alpha / np.where(cost > 0, cost, 1.0)) if self.power == 2 else 0.0

    @property
    def smooth_step(self) -> float | None:
        """The step, in units of the costs, whose response step * cost * (t - m) is cost * pull; None if p = 1."""
        return 2.0 if self.power == 2 else None

    def upper(self, cost):
        """The upper bounds of the duals; a row that costs nothing has a dual of zero."""
        return np.where(cost > 0, np.inf, 0.0) if self.power == 2 else cost

    def at_zero(self, cost, threshold=None) -> float:
        """The losses at scores of zero, the yardstick of `tol`: sum_r c_r max(0, t_r)^p."""
        with np.errstate(over="ignore"):  # the solvers refuse infinity, and say why
            return float(cost.sum() if threshold is None else np.dot(cost, np.maximum(threshold, 0.0) ** self.power))


def unit_of(sums) -> float:
    """The typical threshold, the unit of margins, from the sums of `threshold_sums`; 1 if no threshold is positive."""
    total, count = sums
    return float(total / count) if count > 0 and 0 < total < np.inf else 1.0


def slack_of(margin, threshold=None):
    """max(0, t - m), a new array."""
    slack = (1.0 if threshold is None else threshold) - margin
    return np.maximum(slack, 0.0, out=slack)


def log_loss(margin):
    """log(1 + exp(-m)), which is no member of the family: the search judges two classes by it."""
    return np.logaddexp(0.0, -margin)


def _beyond_one(y):
    return [(y, None, 1.0)]


def _tube(y, epsilon):
    return [(1, y - epsilon, 1.0), (-1, -y - epsilon, 1.0)]


def _tilted(y, quantile):
    return [(1, y, quantile), (-1, -y, 1.0 - quantile)]


HINGE = Loss("hinge", 1, "classification", _beyond_one)
SQUARED_HINGE = Loss("squared_hinge", 2, "classification", _beyond_one)
LOSSES = {
    loss.name: loss
    for loss in (
        HINGE,
        SQUARED_HINGE,
        Loss("epsilon_insensitive", 1, "regression", _tube, ("epsilon",)),
        Loss("squared_epsilon_insensitive", 2, "regression", _tube, ("epsilon",)),
        Loss("quantile", 1, "regression", _tilted, ("quantile",)),
        Loss("expectile", 2, "regression", _tilted, ("quantile",)),
    )
}

CLASSIFICATION_LOSSES, REGRESSION_LOSSES = (
    tuple(name for name, loss in LOSSES.items() if loss.task == task) for task in ("classification", "regression")
)
# For kernels that make their own rows.
PLAIN_LOSSES = tuple(name for name, loss in LOSSES.items() if loss.plain)
