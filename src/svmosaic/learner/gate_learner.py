"""Driver of the gate learner (core/learner.hpp): parameters with Adam's moments, and calls short enough to be
interrupted."""

from copy import deepcopy
from time import perf_counter

import numpy as np
from scipy import sparse

from svmosaic import _core

# Rate of the gate as a share of the rate of the tiles.
GATE_RATE = 0.3
# A call of the core should last about this long, in seconds: an interrupt waits for its end.
CALL_SECONDS = 0.2
LOSSES = (
    "squared_hinge", "log_loss", "squared_error", "epsilon_insensitive", "squared_epsilon_insensitive", "quantile",
    "expectile",
)  # fmt: skip
MOVING = ("tiles", "anchors", "projection", "log_tau")


class Pace:
    """How many batches a call of the core may take; the bits do not depend on it."""

    def __init__(self):
        self.at_once = 1

    def took(self, n_batches, seconds):
        """A call took so many batches, in so many seconds."""
        most = int(CALL_SECONDS * n_batches / max(seconds, 1e-9))
        self.at_once = max(1, min(2 * max(self.at_once, 1), most))


class GateLearner:
    r"""One or several projections and gates, with their tiles, learned together by minibatches.

    Minimizes the mean over rows of :math:`s_i \, \text{loss}(y_i, f(x_i))` for

    .. math:: f_c(x) = \frac{1}{\sqrt{M}} \sum_m \sum_{j \in N_m(x)} g_{mj}(x) (\langle w_{jc}, x \rangle + b_{jc}) ,
              \quad g_m = \text{softmax}_{j \in N_m(x)}(-\tau_m \lVert P_m x - v_j \rVert^2)

    with :math:`N_m(x)` the `width` anchors of gate m nearest to :math:`P_m x`.

    Parameters
    ----------
    gates : list of (anchors, tau, projection)
        One for each gate: an ndarray of shape (n_tiles, n_components), a float, and an ndarray of shape
        (n_components, n_features) or None (of all gates or of none).
    n_features, n_outputs, width : int
    decay : float
        Decoupled weight decay of the tiles: each loses this share of itself times the learning rate in a step.
    loss : str
        One of `LOSSES`, as in core/learner_losses.hpp.
    loss_parameter : sequence of float
        Epsilon, or the quantile (or expectile), of each output.
    dropout : float
        Share of the features that the tiles do not see, drawn anew for each row and step.
    seed : int
        Of the dropout.
    gate_rate : float
        Learning rate of the gates as a share of that of the tiles.
    dtype : float32, or float64 for checks
    pieces : Pieces or None
        The features are those of these pieces, of which gates and tiles see all.
    center : ndarray of shape (n_features,) or None
        Taken from the rows before they are learned from; `mosaic_of` folds it into gates and tiles.

    Attributes
    ----------
    tiles, anchors, projection, log_tau : ndarray of shape (3, ...)
        Parameters, stacked with Adam's two moments. Tiles are of shape (n_tiles, n_outputs * (n_features + 1)), the
        projections of all gates of shape (n_gates * n_components, n_features + 1) with a last column of zeros.
    first_tile : list of int
        First tile of each gate, and the number of tiles.
    idle_since : ndarray of shape (n_tiles,)
        Sum of learning rates when a tile was last touched.
    clock : ndarray
        Steps taken, and the sum of their learning rates.
    """

    def __init__(
        self, gates, *, n_features, n_outputs, width, decay, loss="squared_hinge", loss_parameter=(), dropout=0.0,
        seed=0, gate_rate=GATE_RATE, dtype=np.float32, pieces=None, center=None,
    ):  # fmt: skip
        anchors, tau, projections = zip(*gates, strict=True)
        self.first_tile = np.cumsum([0, *map(len, anchors)]).tolist()
        self.n_outputs, self.width, self.decay, self.gate_rate = n_outputs, width, decay, gate_rate
        self.loss, self.loss_parameter = loss, [float(value) for value in loss_parameter]
        self.dropout, self.seed, self.pieces = dropout, seed, pieces
        self.center = center
        self.tiles = _moving(np.zeros((self.n_tiles, n_outputs * (n_features + 1))), dtype)
        self.anchors = _moving(np.concatenate(anchors), dtype)
        self.projection = None
        if projections[0] is not None:
            stacked = np.concatenate(projections)
            self.projection = _moving(np.hstack([stacked, np.zeros((len(stacked), 1))]), dtype)
        self.log_tau = _moving(np.log(tau), np.float64)
        self.idle_since = np.zeros(self.n_tiles)
        self.clock = np.zeros(2)

    @property
    def n_gates(self) -> int:
        return len(self.first_tile) - 1

    @property
    def n_tiles(self) -> int:
        return self.first_tile[-1]

    def epoch(
        self, rows, target, weight, order, batch_size, rates, *, learn_gate=True, n_threads=1, deadline=np.inf,
        pace=None,
    ):  # fmt: skip
        """Steps over the rows of `order` in batches, one rate per batch.

        Returns the sum of the losses on the way and the number of rows that were met: all, unless the clock
        (`perf_counter`) passed the deadline. Control returns to Python between batches several times per second.

        Parameters
        ----------
        rows : Rows
        target : ndarray of shape (n_rows, 1) or (n_rows, n_outputs)
            Positions of the classes, or numbers to predict; in the precision of the learner.
        weight : ndarray of shape (n_rows,)
        order : ndarray of int32
            The rows to meet.
        batch_size : int
        rates : ndarray
        learn_gate : bool
        n_threads : int
        deadline : float
        pace : Pace, optional
            How many batches earlier epochs took per call of the core; the starting point for this one.
        """
        core, pace = self.core(), Pace() if pace is None else pace
        n_batches = -(-len(order) // batch_size)
        loss, done = 0.0, 0
        while done < n_batches:
            began = perf_counter()
            if began > deadline:
                break
            here = slice(done, min(done + pace.at_once, n_batches))
            chosen = order[here.start * batch_size : here.stop * batch_size]
            loss = core.epoch(
                rows.core, target, weight, chosen, batch_size, rates[here], learn_gate, n_threads, loss
            )  # fmt: skip
            done = here.stop
            pace.took(here.stop - here.start, perf_counter() - began)
        return loss, min(done * batch_size, len(order))

    def centered(self, X):
        """Rows less the center, if there is one."""
        if self.center is None:
            return X
        return (X.toarray() if sparse.issparse(X) else X) - self.center

    def tile_rows(self, X):
        """Rows as the tiles see them."""
        return self.centered(X) if self.pieces is None else self.pieces.rows(X)[1]

    def core(self):
        """The learner in the core, which works on the arrays of this one."""
        kind = _core.GateLearnerF32 if self.tiles.dtype == np.float32 else _core.GateLearnerF64
        return kind(
            tiles=self.tiles, anchors=self.anchors, projection=self.projection, log_tau=self.log_tau,
            idle_since=self.idle_since, clock=self.clock, first_tile=self.first_tile, n_outputs=self.n_outputs,
            width=self.width, loss=self.loss, loss_parameter=self.loss_parameter, dropout=self.dropout, seed=self.seed,
            decay=self.decay, gate_rate=self.gate_rate,
        )  # fmt: skip

    @property
    def tau(self):
        """Sharpness of each gate."""
        with np.errstate(over="ignore"):
            return np.exp(self.log_tau[0])

    @property
    def is_finite(self) -> bool:
        """Whether no parameter has overflowed. A loss does not show it: the hinge of NaN is zero."""
        values = [getattr(self, name) for name in MOVING]
        tau = self.tau
        return all(np.isfinite(v[0]).all() for v in values if v is not None) and bool(
            ((tau > 0) & (tau < np.inf)).all()
        )

    def tile_weights(self):
        """Tiles of shape (n_tiles, n_outputs, n_features + 1), with the decay of idle steps applied."""
        keep = np.exp(-self.decay * (self.clock[1] - self.idle_since))
        tiles = self.tiles[0].astype(np.float64) * keep[:, None]
        return tiles.reshape(len(tiles), self.n_outputs, -1)

    def set_tile_weights(self, tiles):
        """Continue from other tiles, of shape (n_tiles, n_outputs, n_features + 1), with moments of zero."""
        self.tiles = _moving(tiles.reshape(len(tiles), -1), self.tiles.dtype)
        self.idle_since[:] = self.clock[1]

    def set_decay(self, decay):
        """Another weight decay from now on; idle steps so far decay at the old one."""
        self.tiles[0] = self.tile_weights().reshape(self.n_tiles, -1)
        self.idle_since[:] = self.clock[1]
        self.decay = decay

    def copy(self) -> "GateLearner":
        """The parameters with their moments as they are now."""
        return deepcopy(self)

    def restore(self, kept: "GateLearner"):
        """Back to what `copy` returned."""
        self.__dict__.update(deepcopy(kept).__dict__)


def _moving(value, dtype):
    """A parameter stacked with Adam's two moments, which start at zero."""
    stacked = np.zeros((3, *np.shape(value)), dtype=dtype)
    stacked[0] = value
    return stacked
