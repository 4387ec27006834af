"""Epochs of the gate learner on an accelerator, and scores of many rows there. This module needs NumPy and JAX only.

One epoch is one compiled loop over its batches. The rows stay on the device. Results are reproducible on one kind of
device and version of JAX up to the order in which it adds numbers, and agree with the core's within rounding.
"""

from functools import partial
from time import perf_counter

import jax
import jax.numpy as jnp
import numpy as np

from svmosaic.learner.jax_step import (
    BETA1,
    BETA2,
    EXACT,
    Curves,
    Settings,
    State,
    Step,
    features,
    scores,
    shares,
    take_step,
)
from svmosaic.learner.schedule import MemoryOrder

# Share of the free memory of the device that rows and their scores may take while predicting.
MEMORY_SHARE = 0.25
# Rows at a time where the device does not say how much memory it has.
CHUNK_ROWS = 65_536


def accelerator():
    """The first device that is not the CPU, or None."""
    return next((device for device in jax.devices() if device.platform != "cpu"), None)


@partial(jax.jit, static_argnums=0, donate_argnums=1)
def _epoch(settings, state, steps, X, target, weight, curves):
    def body(state, step):
        rows = step.rows
        return take_step(settings, state, step, features(curves, X[rows]), target[rows], weight[rows])

    return jax.lax.scan(body, state, steps)


class JaxEngine(MemoryOrder):
    """Epochs of a learner on a device, with the interface of `CoreEngine`.

    Parameters
    ----------
    learner : GateLearner
        Where its arrays come from, and where `finish` brings them back to.
    X : ndarray of shape (n_rows, n_features)
    target : ndarray of shape (n_rows, 1) or (n_rows, n_outputs)
    weight : ndarray of shape (n_rows,)
    plan : Plan
    device : jax.Device
    """

    def __init__(self, learner, X, target, weight, plan, device):
        self.learner, self.plan, self.device = learner, plan, device
        self.settings = Settings(
            learner.width, learner.loss, tuple(learner.loss_parameter), learner.dropout, learner.seed, learner.decay,
            learner.gate_rate, plan.learn_gate,
        )  # fmt: skip
        self.state = self._put(state_of(learner))
        pieces, self.curves = getattr(learner, "pieces", None), None
        if pieces is not None:
            straight = np.arange(len(pieces.center)), pieces.center, pieces.scale, pieces.reach
            self.curves = self._put(curves_of(straight, pieces.column, pieces.start, pieces.knot, learner.tiles.dtype))
        self.set_rows(X, target, weight)

    def set_rows(self, X, target, weight):
        """Other rows to learn from."""
        dtype = self.learner.tiles.dtype
        self.weight = np.asarray(weight, dtype=np.float64)
        parts = self.learner.centered(X), target, weight
        self.rows = self._put(tuple(part.astype(dtype, copy=False) for part in parts))

    def epoch(self, order, rates, deadline=np.inf) -> tuple[float, int]:
        """Sum of the losses on the way, and the number of rows: all, or none if it is too late to begin."""
        if perf_counter() > deadline:
            return 0.0, 0
        steps = steps_of(order, rates, self.plan.batch_size, self.learner.clock, self.learner.tiles.dtype)
        self.state, losses = _epoch(self.settings, self.state, self._put(steps), *self.rows, self.curves)
        self.learner.clock += [len(rates), np.sum(rates)]
        return float(np.sum(np.asarray(losses, dtype=np.float64))), len(order)

    def scores(self, X):
        """Scores of rows, of shape (n_rows, n_outputs), with what has been learned so far."""
        value = self.state.value
        keep = jnp.exp(-self.settings.decay * (self.learner.clock[1] - self.state.idle_since))
        value = value | {"tiles": keep[:, :, None, None] * value["tiles"]}
        rows = self.learner.centered(X)
        return score_rows(value, self.state.valid, self.settings.width, rows, self.device, self.curves)

    # The loss of parameters that have overflowed is NaN here.
    is_finite = True

    def finish(self):
        """Bring what has been learned back to the learner."""
        state_to(self.learner, jax.device_get(self.state))

    def _put(self, tree):
        return jax.device_put(tree, self.device)


def steps_of(order, rates, batch_size, clock, dtype) -> Step:
    """The steps of an epoch, stacked; the last batch is padded."""
    n_batches = len(rates)
    rows = np.zeros(n_batches * batch_size, dtype=np.int32)
    rows[: len(order)] = order
    number = clock[0] + 1 + np.arange(n_batches)
    n_rows = np.full(n_batches, batch_size)
    n_rows[-1] = len(order) - (n_batches - 1) * batch_size
    return Step(
        rows.reshape(n_batches, batch_size), n_rows.astype(dtype), rates.astype(dtype),
        (1 - BETA1**number).astype(dtype), (1 - BETA2**number).astype(dtype),
        (clock[1] + np.cumsum(rates)).astype(dtype), number.astype(np.uint32),
    )  # fmt: skip


def curves_of(straight, column, start, knot, dtype) -> Curves:
    """Curves as the device holds them.

    Parameters
    ----------
    straight : (columns, center, scale, reach)
        Of the straight terms.
    column : ndarray of int, shape (n_curves,)
        The columns that have a curve.
    start : ndarray of int, shape (n_curves + 1,)
        Where the knots of each curve start.
    knot : ndarray of shape (n_knots,)
    dtype : of the rows
    """
    with np.errstate(divide="ignore"):
        step = 1.0 / np.diff(knot) if len(knot) else knot
    before, after = np.concatenate([[0.0], step])[: len(knot)], np.concatenate([step, [0.0]])[: len(knot)]
    before[start[:-1]] = 0.0
    after[start[1:] - 1] = 0.0
    columns, *terms = straight
    center, scale, reach, knot, before, after = (part.astype(dtype) for part in (*terms, knot, before, after))
    owner = np.repeat(column, np.diff(start)).astype(np.int32)
    return Curves(columns.astype(np.int32), center, scale, reach, owner, knot, before, after)


def state_of(learner) -> State:
    """The arrays of a learner, those of gates with fewer tiles padded."""
    sizes = np.diff(learner.first_tile)
    valid = np.arange(sizes.max()) < sizes[:, None]
    n_gates, n_components = len(sizes), learner.anchors.shape[2]

    def padded(array):
        out = np.zeros((*valid.shape, *array.shape[1:]), dtype=array.dtype)
        out[valid] = array
        return out

    def values(at):
        tiles = learner.tiles[at].reshape(len(learner.idle_since), learner.n_outputs, -1)
        projection = None
        if learner.projection is not None:
            projection = learner.projection[at, :, :-1].reshape(n_gates, n_components, -1)
        log_tau = learner.log_tau[at].astype(tiles.dtype)
        return {
            "tiles": padded(tiles),
            "anchors": padded(learner.anchors[at]),
            "projection": projection,
            "log_tau": log_tau,
        }

    idle_since = padded(learner.idle_since.astype(learner.tiles.dtype))
    return State(values(0), values(1), values(2), idle_since, valid)


def state_to(learner, state):
    """Write a state back into the arrays of a learner."""
    for at, values in enumerate((state.value, state.first, state.second)):
        learner.tiles[at] = values["tiles"][state.valid].reshape(learner.tiles.shape[1:])
        learner.anchors[at] = values["anchors"][state.valid]
        learner.log_tau[at] = values["log_tau"]
        if learner.projection is not None:
            learner.projection[at, :, :-1] = values["projection"].reshape(-1, values["projection"].shape[2])
    learner.idle_since[:] = state.idle_since[state.valid]


@partial(jax.jit, static_argnums=2)
def _chunk_scores(value, valid, width, x, curves):
    phi = features(curves, x)
    g, _ = shares(value, valid, phi, width)
    return scores(value, g, phi, EXACT)


def score_rows(value, valid, width, X, device, curves=None, chunk_rows=None):
    """Scores of many rows, of shape (n_rows, n_outputs), in chunks that fit the device's memory.

    A chunk is sent while the one before it is computed, and its scores come back while the next is.

    Parameters
    ----------
    value, valid : as in jax_step.py
    width : int
    X : ndarray
    device : jax.Device
    curves : Curves, optional
        What makes the features that gates and tiles see of the rows.
    chunk_rows : int, optional
        None: as many as a share of the free memory holds.
    """
    n_rows, dtype = X.shape[0], value["tiles"].dtype
    n_outputs = value["tiles"].shape[2]
    chunk_rows = chunk_rows or chunk_of(value, X.shape[1], device)
    value, valid, curves = jax.device_put((value, valid, curves), device)
    out = np.empty((n_rows, n_outputs), dtype=dtype)
    before = None
    for first in range(0, n_rows, chunk_rows):
        part = X[first : first + chunk_rows].astype(dtype, copy=False)
        n = len(part)
        if n < chunk_rows < n_rows and isinstance(part, np.ndarray):  # one compiled size for all chunks
            part = np.concatenate([part, np.zeros((chunk_rows - n, X.shape[1]), dtype=dtype)])
        found = _chunk_scores(value, valid, width, jax.device_put(part, device), curves)
        if before is not None:
            out[before[0]] = before[1][: before[2]]
        before = slice(first, first + n), found, n
    if before is not None:
        out[before[0]] = before[1][: before[2]]
    return out


def chunk_of(value, n_features, device) -> int:
    """Rows at a time: what a share of the free memory holds."""
    m, K, n_outputs, n_seen = value["tiles"].shape
    row_bytes = value["tiles"].dtype.itemsize * (m * K * (n_outputs + 4) + 2 * (n_features + n_seen))
    stats = device.memory_stats() if device.platform != "cpu" else None
    if not stats or "bytes_limit" not in stats:
        return CHUNK_ROWS
    free = stats["bytes_limit"] - stats.get("bytes_in_use", 0)
    return int(np.clip(MEMORY_SHARE * free / row_bytes, 1024, 2**22))
