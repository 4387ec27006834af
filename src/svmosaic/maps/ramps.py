r"""Curves as sums of ramps, for languages that have products of matrices rather than tables.

A curve with the values :math:`y_0, \dots, y_m` at its knots is :math:`y_0 + \sum_s (y_s - y_{s-1}) \, r_s(x)` with the
ramps :math:`r_s(x) = \text{clip}((x - u_{s-1}) / (u_s - u_{s-1}), 0, 1)`: tiles are linear in ramps.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Ramps:
    """Features min(max((x[column] - center) * factor, low), high): a constant and the ramps of each curve.

    Attributes
    ----------
    column : ndarray of int, shape (n_ramps,)
        The input column of each feature.
    center, factor, low, high : ndarray of shape (n_ramps,)
        Columns without a curve come first, and are not bounded.
    coef : ndarray of shape (..., n_ramps)
        The weights that tiles give to them.
    """

    column: np.ndarray
    center: np.ndarray
    factor: np.ndarray
    low: np.ndarray
    high: np.ndarray
    coef: np.ndarray

    @classmethod
    def of(cls, packed, center, scale, column, start, knot) -> "Ramps":
        """From packed weights and the curves that go with them; see `Folded`."""
        straight = np.setdiff1d(np.arange(len(center)), column)
        n = len(straight)
        columns, centers, factors = [straight], [center[straight]], [scale[straight]]
        bounds, weights = [np.tile([[-np.inf], [np.inf]], n)], [packed[..., :n]]
        for f, first, last in zip(column, start[:-1], start[1:], strict=True):
            u, curve = knot[first:last], packed[..., n + first : n + last]
            columns.append(np.full(len(u), f))
            centers.append(np.append(0.0, u[:-1]))
            factors.append(np.append(0.0, 1.0 / np.diff(u)))
            bounds.append(np.column_stack([[1.0, 1.0], np.tile([[0.0], [1.0]], len(u) - 1)]))
            weights.append(np.concatenate([curve[..., :1], np.diff(curve, axis=-1)], axis=-1))
        low, high = np.concatenate(bounds, axis=1)
        return cls(
            np.concatenate(columns), np.concatenate(centers), np.concatenate(factors), low, high,
            np.concatenate(weights, axis=-1),
        )  # fmt: skip
