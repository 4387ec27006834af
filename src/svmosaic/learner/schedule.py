"""The learning rates of all steps, and the order of rows in memory. This module needs NumPy only."""

from typing import Any

import numpy as np

# Share of the steps over which the rate rises, and the share of the peak it starts from; it then falls to nearly zero.
WARM_UP, FIRST_RATE, LAST_RATE = 0.25, 0.1, 0.01


def one_cycle(peak, n_steps, steps=slice(None)):
    """Learning rates that rise linearly to the peak and fall along a cosine to nearly zero; of some of the steps."""
    step = np.arange(*steps.indices(n_steps))
    rise = max(1, round(WARM_UP * n_steps))
    up = FIRST_RATE + (1 - FIRST_RATE) * step / rise
    fallen = (step - rise) / max(1, n_steps - rise - 1)
    down = LAST_RATE + (1 - LAST_RATE) * 0.5 * (1 + np.cos(np.pi * fallen))
    return peak * np.where(step < rise, up, down)


class MemoryOrder:
    """For engines that hold all rows: an epoch meets them in a random order.

    Attributes
    ----------
    weight : ndarray of shape (n_rows,)
    plan : Plan
    """

    weight: np.ndarray
    plan: Any

    @property
    def n_rows(self) -> int:
        return len(self.weight)

    @property
    def n_batches(self) -> int:
        """Steps of an epoch."""
        return -(-self.n_rows // self.plan.batch_size)

    def order(self, rng):
        """The order of the rows in an epoch."""
        return rng.permutation(self.n_rows).astype(np.int32)

    def weight_met(self, order, n_met):
        """The weights of the rows that an epoch met."""
        return self.weight if n_met == len(self.weight) else self.weight[order[:n_met]]
