"""Driver of the gate learner (core/learner.hpp): parameters with Adam's moments, schedules, and calls short enough to
be interrupted."""

from copy import deepcopy
from time import perf_counter

import numpy as np

from svmosaic import _core

# Share of the steps over which the rate rises, and the share of the peak it starts from; it then falls to nearly zero.
WARM_UP, FIRST_RATE, LAST_RATE = 0.25, 0.1, 0.01
# Rate of the gate as a share of the rate of the tiles.
GATE_RATE = 0.3
# Sharpness of a tree's splits at the start and at the end, where margins at the start have a deviation of one.
SOFT, HARD = 1.0, 100.0
# A call of the core should last about this long, in seconds: an interrupt waits for its end.
CALL_SECONDS = 0.2


class GateLearner:
    r"""Projection, gate and tiles, learnt together by minibatches.

    Minimises the mean over rows of :math:`s_i \sum_c \max(0, 1 - y_{ic} f_c(x_i))^2` for

    .. math:: f_c(x) = \sum_{j \in N(x)} g_j(x) (\langle w_{jc}, x \rangle + b_{jc})

    Anchors: N(x) are the `width` nearest to z = P x and
    :math:`g = \text{softmax}_{j \in N(x)}(-\tau \lVert z - v_j \rVert^2)`. A tree of splits: g is the probability of
    the path to leaf j, where node i goes right with probability :math:`\sigma(t \langle \theta_i, (z, 1) \rangle)`,
    normalised over N(x), the `width` likeliest that a search of this width finds; t is raised from `SOFT` to `HARD`.

    Parameters
    ----------
    gate : ndarray
        Anchors of shape (n_tiles, n_components), or splits of shape (n_tiles - 1, n_components + 1).
    tau : float or None
        None for splits.
    projection : ndarray of shape (n_components, n_features) or None
    n_features, n_outputs, width : int
    decay : float
        Decoupled weight decay of the tiles: each loses this share of itself times the learning rate a step.
    gate_rate : float
        Learning rate of the gate as a share of that of the tiles.
    dtype : float32, or float64 for checks
    """

    def __init__(
        self, gate, tau, projection, *, n_features, n_outputs, width, decay, gate_rate=GATE_RATE, dtype=np.float32
    ):
        self.is_tree = tau is None
        n_tiles = len(gate) + self.is_tree
        self.n_outputs, self.width, self.decay, self.gate_rate = n_outputs, width, decay, gate_rate
        self.tiles = _moving(np.zeros((n_tiles, n_outputs * (n_features + 1))), dtype)
        self.gate = _moving(gate, dtype)
        self.projection = None
        if projection is not None:
            self.projection = _moving(np.hstack([projection, np.zeros((len(projection), 1))]), dtype)
        self.log_tau = np.array([[0.0 if tau is None else np.log(tau), 0.0, 0.0]])
        self.idle_since = np.zeros(n_tiles)
        self.clock = np.zeros(2)

    def epoch(
        self, rows, label, weight, order, batch_size, rates, *, sharpness=None, learn_gate=True, n_threads=1,
        deadline=np.inf,
    ):  # fmt: skip
        """Steps over the rows of `order` in batches, one rate (and, of a tree, one sharpness) a batch.

        Returns the sum of the losses on the way and the number of rows that were met: all, unless the clock
        (`perf_counter`) passed the deadline. Control returns to Python between batches several times a second.
        """
        projection = [None, None, None] if self.projection is None else self.projection
        n_batches = -(-len(order) // batch_size)
        loss, done, at_once = 0.0, 0, 1
        while done < n_batches:
            began = perf_counter()
            if began > deadline:
                break
            here = slice(done, done + at_once)
            loss += _core.learn_epoch(
                rows.core, label, weight, order[here.start * batch_size : here.stop * batch_size], batch_size,
                rates[here], self.n_outputs, self.width, learn_gate, self.decay, self.gate_rate,
                sharpness[here] if self.is_tree else None, *self.tiles, *self.gate, *projection, self.log_tau,
                self.idle_since, self.clock, n_threads,
            )  # fmt: skip
            done += at_once
            speed = at_once / max(perf_counter() - began, 1e-9)
            at_once = max(1, min(2 * at_once, int(CALL_SECONDS * speed)))
        return loss, min(done * batch_size, len(order))

    @property
    def tau(self) -> float:
        with np.errstate(over="ignore"):
            return float(np.exp(self.log_tau[0, 0]))

    @property
    def is_finite(self) -> bool:
        """Whether no parameter has overflowed. A loss does not tell: the hinge of what is not a number is zero."""
        values = [moving[0] for moving in (self.tiles, self.gate, self.projection) if moving is not None]
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


def one_cycle(peak, n_steps, steps=slice(None)):
    """Learning rates that rise linearly to the peak and fall along a cosine to nearly zero; of some of the steps."""
    step = np.arange(*steps.indices(n_steps))
    rise = max(1, round(WARM_UP * n_steps))
    up = FIRST_RATE + (1 - FIRST_RATE) * step / rise
    fallen = (step - rise) / max(1, n_steps - rise - 1)
    down = LAST_RATE + (1 - LAST_RATE) * 0.5 * (1 + np.cos(np.pi * fallen))
    return peak * np.where(step < rise, up, down)


def hardening(n_steps, steps=slice(None)):
    """Sharpness of a tree's splits, growing by the same factor each step from soft to hard; of some of the steps."""
    return SOFT * (HARD / SOFT) ** (np.arange(*steps.indices(n_steps)) / max(1, n_steps - 1))
