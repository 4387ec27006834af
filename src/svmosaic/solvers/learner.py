"""Driver of the gate learner (core/learner.hpp): parameters with Adam's moments, and the learning-rate schedule."""

from copy import deepcopy

import numpy as np

from svmosaic import _core

# Share of the steps over which the rate rises, and the share of the peak it starts from; it then falls to nearly zero.
WARM_UP, FIRST_RATE, LAST_RATE = 0.25, 0.1, 0.01


class GateLearner:
    r"""Projection, anchors, sharpness and tiles, learnt together by minibatches.

    Minimises the mean over rows of :math:`s_i \sum_c \max(0, 1 - y_{ic} f_c(x_i))^2` for

    .. math:: f_c(x) = \sum_{j \in N(x)} g_j(x) (\langle w_{jc}, x \rangle + b_{jc}) , \quad
              g = \text{softmax}_{j \in N(x)}(-\tau \lVert P x - v_j \rVert^2)

    with N(x) the `width` anchors nearest to P x.

    Parameters
    ----------
    anchors : ndarray of shape (n_tiles, n_components)
    tau : float
    projection : ndarray of shape (n_components, n_features) or None
    n_features, n_outputs, width : int
    decay : float
        Decoupled weight decay of the tiles: each loses this share of itself times the learning rate a step.
    dtype : float32, or float64 for checks
    """

    def __init__(self, anchors, tau, projection, *, n_features, n_outputs, width, decay, dtype=np.float32):
        n_tiles = len(anchors)
        self.n_outputs, self.width, self.decay = n_outputs, width, decay
        self.tiles = _moving(np.zeros((n_tiles, n_outputs * (n_features + 1))), dtype)
        self.anchors = _moving(anchors, dtype)
        self.projection = None
        if projection is not None:
            self.projection = _moving(np.hstack([projection, np.zeros((len(projection), 1))]), dtype)
        self.log_tau = np.array([[np.log(tau), 0.0, 0.0]])
        self.idle_since = np.zeros(n_tiles)
        self.clock = np.zeros(2)

    def epoch(self, rows, label, weight, order, batch_size, rates, *, learn_gate=True, n_threads=1) -> float:
        """Steps over the rows of `order` in batches, one rate a batch; returns the sum of the losses on the way."""
        projection = [None, None, None] if self.projection is None else self.projection
        return _core.learn_epoch(
            rows.core, label, weight, order, batch_size, rates, self.n_outputs, self.width, learn_gate, self.decay,
            *self.tiles, *self.anchors, *projection, self.log_tau, self.idle_since, self.clock, n_threads,
        )  # fmt: skip

    @property
    def tau(self) -> float:
        with np.errstate(over="ignore"):
            return float(np.exp(self.log_tau[0, 0]))

    @property
    def is_finite(self) -> bool:
        """Whether no parameter has overflowed. A loss does not tell: the hinge of what is not a number is zero."""
        values = [moving[0] for moving in (self.tiles, self.anchors, self.projection) if moving is not None]
        return all(np.isfinite(value).all() for value in [*values, self.log_tau]) and 0 < self.tau < np.inf

    def tile_weights(self):
        """Tiles of shape (n_tiles, n_outputs, n_features + 1), with the decay of idle steps applied."""
        keep = np.exp(-self.decay * (self.clock[1] - self.idle_since))
        tiles = self.tiles[0].astype(np.float64) * keep[:, None]
        return tiles.reshape(len(tiles), self.n_outputs, -1)

    def set_tile_weights(self, tiles):
        """Go on from other tiles, of shape (n_tiles, n_outputs, n_features + 1), with moments of zero."""
        self.tiles = _moving(tiles.reshape(len(tiles), -1), self.tiles[0].dtype)
        self.idle_since[:] = self.clock[1]

    def set_decay(self, decay):
        """Another weight decay from now on; idle steps so far decay at the old one."""
        self.tiles[0][:] = self.tile_weights().reshape(len(self.idle_since), -1)
        self.idle_since[:] = self.clock[1]
        self.decay = decay

    def copy(self) -> "GateLearner":
        """The parameters with their moments as they are now."""
        return deepcopy(self)

    def restore(self, kept: "GateLearner"):
        """Back to what `copy` returned."""
        self.__dict__.update(deepcopy(kept).__dict__)


def _moving(value, dtype):
    """A parameter with Adam's two moments."""
    value = np.array(value, dtype=dtype, order="C")
    return [value, np.zeros_like(value), np.zeros_like(value)]


def one_cycle(peak, n_steps):
    """Learning rates that rise linearly to the peak and fall along a cosine to nearly zero."""
    rise = max(1, round(WARM_UP * n_steps))
    up = np.linspace(FIRST_RATE, 1.0, rise, endpoint=False)
    down = LAST_RATE + (1 - LAST_RATE) * 0.5 * (1 + np.cos(np.pi * np.linspace(0.0, 1.0, max(1, n_steps - rise))))
    return peak * np.concatenate([up, down])[:n_steps]
