"""One minibatch of the gate learner, in JAX: the mathematics of core/learner.hpp for accelerators.

Tiles are not gathered: all of them are scored by one matrix product, and the shares of those that the gate did not
choose are zero, so that the backward pass is made of matrix products too. This module needs NumPy and JAX only.

Gates m of at most K tiles, outputs c, features d, components p. Parameters are a dict:

    tiles       (m, K, c, d + 1)    weights and intercept
    anchors     (m, K, p)           those that only pad a gate are marked in `valid`
    projection  (m, p, d) or None
    log_tau     (m,)
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
# Which anchors are near is decided in full precision; products with the tiles may use the tensor cores' shorter one.
EXACT = jax.lax.Precision.HIGHEST
# Up to so many neighbors are found by taking the largest away again and again, which is faster than sorting.
FEW = 16


class Settings(NamedTuple):
    """What is fixed when a step is compiled."""

    width: int
    loss: str
    loss_parameter: tuple
    dropout: float
    seed: int
    decay: float
    gate_rate: float
    learn_gate: bool


class State(NamedTuple):
    """Parameters, Adam's moments, and the clock of each tile."""

    value: dict
    first: dict
    second: dict
    idle_since: Any  # (m, K): sum of learning rates when the tile was last touched
    valid: Any  # (m, K)


class Step(NamedTuple):
    """The numbers of one step, from the host."""

    rows: Any  # (batch,): data rows
    n_rows: Any  # those after so many only pad the batch
    rate: Any
    correction1: Any
    correction2: Any
    clock: Any  # sum of learning rates, this one included
    number: Any  # of the step, as uint32


class Curves(NamedTuple):
    """What makes the features of piecewise-linear tiles of rows: straight terms, then a hat function per knot."""

    straight: Any  # columns with a straight term
    center: Any
    scale: Any
    reach: Any  # straight terms are clipped to it
    column: Any  # of each knot
    knot: Any
    before: Any  # one over the distance to the knot before; zero if there is none: the hat is one there
    after: Any


def features(curves, x):
    """Rows as gates and tiles see them; x itself without curves."""
    if curves is None:
        return x
    straight = (x[:, curves.straight] - curves.center) * curves.scale
    gap = x[:, curves.column] - curves.knot
    hats = 1.0 - jnp.where(gap < 0, -gap * curves.before, gap * curves.after)
    return jnp.concatenate([jnp.clip(straight, -curves.reach, curves.reach), jnp.clip(hats, 0.0, 1.0)], axis=1)


def shares(value, valid, x, width):
    """Shares of all tiles, of shape (batch, m, K), zero for those not chosen; and which were chosen."""
    anchors = value["anchors"]
    if value["projection"] is None:
        z = jnp.broadcast_to(x[:, None, :], (x.shape[0], *anchors.shape[::2]))
    else:
        z = jnp.einsum("bd,mpd->bmp", x, value["projection"], precision=EXACT)
    # -|z - v|^2 / 2 but for |z|^2, which changes neither the order nor the softmax.
    close = jnp.einsum("bmp,mkp->bmk", z, anchors, precision=EXACT) - 0.5 * jnp.sum(anchors**2, axis=2)
    close = jnp.where(valid, close, -jnp.inf)
    chosen = close >= _smallest_chosen(jax.lax.stop_gradient(close), width)
    # Neither zero times infinity nor its gradient for what was not chosen.
    logits = 2.0 * jnp.exp(value["log_tau"])[:, None] * jnp.where(chosen, close, 0.0)
    return jax.nn.softmax(logits, axis=2, where=chosen), chosen


def _smallest_chosen(close, width):
    """The width-th largest number of each row and gate."""
    if width > FEW:
        return jax.lax.top_k(close, width)[0][..., -1:]
    for _ in range(width - 1):
        close = jnp.where(close == close.max(axis=2, keepdims=True), -jnp.inf, close)
    return close.max(axis=2, keepdims=True)


def scores(value, g, phi, precision=None):
    """f of shape (batch, c), from the shares and the rows as the tiles see them."""
    tiles = value["tiles"]
    s = jnp.einsum("bd,mkcd->bmkc", phi, tiles[..., :-1], precision=precision) + tiles[..., -1]
    return jnp.einsum("bmk,bmkc->bc", g, s, precision=precision) / np.sqrt(len(tiles))


def losses(settings, f, target):
    """Loss of each row; see core/learner_losses.hpp."""
    if settings.loss in ("squared_hinge", "log_loss"):
        label = target[:, 0].astype(jnp.int32)
        if settings.loss == "log_loss" and f.shape[1] > 1:
            return -jnp.take_along_axis(jax.nn.log_softmax(f), label[:, None], axis=1)[:, 0]
        places = jnp.array([1]) if f.shape[1] == 1 else jnp.arange(f.shape[1])
        y = jnp.where(label[:, None] == places, 1.0, -1.0)
        each = jnp.maximum(0.0, 1.0 - y * f) ** 2 if settings.loss == "squared_hinge" else jax.nn.softplus(-y * f)
        return each.sum(axis=1)
    excess = f - target
    if settings.loss == "squared_error":
        return (excess**2).sum(axis=1)
    parameter = jnp.asarray(settings.loss_parameter, dtype=f.dtype)
    if settings.loss.endswith("epsilon_insensitive"):
        beyond = jnp.maximum(0.0, jnp.abs(excess) - parameter)
        return (beyond**2 if settings.loss.startswith("squared") else beyond).sum(axis=1)
    if settings.loss == "expectile":
        return (jnp.where(excess < 0, parameter, 1.0 - parameter) * excess**2).sum(axis=1)
    return jnp.maximum(-parameter * excess, (1.0 - parameter) * excess).sum(axis=1)


def _mixed(h):
    h = h ^ (h >> 16)
    h = h * np.uint32(0x85EBCA6B)
    h = h ^ (h >> 13)
    h = h * np.uint32(0xC2B2AE35)
    return h ^ (h >> 16)


def dropped(settings, number, rows, x):
    """The rows after dropout: the same hash as in core/learner_dropout.hpp."""
    step_key = _mixed(np.uint32(settings.seed) ^ _mixed(number + np.uint32(0x9E3779B9)))
    row_key = _mixed(step_key ^ (rows.astype(jnp.uint32) * np.uint32(0x9E3779B1)))
    feature = jnp.arange(x.shape[1], dtype=jnp.uint32) * np.uint32(0x85EBCA77)
    kept = _mixed(row_key[:, None] ^ feature) >= np.uint32(settings.dropout * 2**32)
    return jnp.where(kept, x / (1.0 - settings.dropout), 0.0)


def _loss(value, settings, valid, step, x, target, weight):
    """Mean loss of the batch; and its sum, with which tiles it touched."""
    g, chosen = shares(value, valid, x, settings.width)
    if not settings.learn_gate:
        g = jax.lax.stop_gradient(g)
    phi = dropped(settings, step.number, step.rows, x) if settings.dropout > 0 else x
    real = jnp.arange(len(x)) < step.n_rows
    total = jnp.sum(jnp.where(real, weight * losses(settings, scores(value, g, phi), target), 0.0))
    return total / step.n_rows, (total, jnp.any(chosen & real[:, None, None], axis=0))


@partial(jax.jit, static_argnums=0)
def take_step(settings, state, step, x, target, weight):
    """The state after one step of Adam, and the sum of the losses before it. Tiles that were not touched stay."""
    gradient, (total, touched) = jax.grad(_loss, has_aux=True)(
        state.value, settings, state.valid, step, x, target, weight
    )
    keep = jnp.exp(-settings.decay * (step.clock - state.idle_since))
    value, first, second = dict(state.value), dict(state.first), dict(state.second)
    for name, slope in gradient.items():
        if slope is None or (name != "tiles" and not settings.learn_gate):
            continue
        moves = touched.reshape(touched.shape + (1,) * (slope.ndim - 2)) if name in ("tiles", "anchors") else True
        rate, kept = step.rate * settings.gate_rate, 1.0
        if name == "tiles":
            rate, kept = step.rate, keep[:, :, None, None]
        m1 = BETA1 * first[name] + (1 - BETA1) * slope
        m2 = BETA2 * second[name] + (1 - BETA2) * slope**2
        moved = kept * value[name] - rate / step.correction1 * m1 / (jnp.sqrt(m2 / step.correction2) + EPSILON)
        first[name], second[name] = jnp.where(moves, m1, first[name]), jnp.where(moves, m2, second[name])
        value[name] = jnp.where(moves, moved, value[name])
    idle_since = jnp.where(touched, step.clock, state.idle_since)
    return State(value, first, second, idle_since, state.valid), total
