"""The learner of gates: gradients against finite differences, dropout, schedule."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import logsumexp

from svmosaic.learner.gate_learner import LOSSES, GateLearner
from svmosaic.learner.schedule import one_cycle
from svmosaic.rows import Rows

BETA1 = 0.9  # of Adam, in the core
CLASSIFICATION = ("squared_hinge", "log_loss")


def learner_of(projected, n_outputs, *, d=5, p=3, n_tiles=(6,), width=3, dtype=np.float64, **settings):
    """Random parameters, one gate for each number of tiles."""
    rng = np.random.default_rng(0)
    gates = []
    for m, K in enumerate(n_tiles):
        projection = rng.standard_normal((p, d)) if projected else None
        gates.append((rng.standard_normal((K, p if projected else d)), 0.3 + 0.1 * m, projection))
    learner = GateLearner(
        gates, n_features=d, n_outputs=n_outputs, width=width, decay=0.0, dtype=dtype, **settings
    )  # fmt: skip
    learner.set_tile_weights(rng.standard_normal((sum(n_tiles), n_outputs, d + 1)))
    return learner


def gate_logits(learner, X):
    """Of each gate, for all its tiles: their softmax over the chosen ones is the gate's share."""
    p = learner.anchors.shape[2]
    for m, (first, end) in enumerate(zip(learner.first_tile[:-1], learner.first_tile[1:], strict=True)):
        z = X if learner.projection is None else X @ learner.projection[0, m * p : (m + 1) * p, :-1].T
        yield -learner.tau[m] * ((z[:, None] - learner.anchors[0, first:end]) ** 2).sum(axis=2)


def chosen_tiles(learner, X):
    """The nearest tiles in each gate, numbered within the gate."""
    return [np.argsort(-logits, axis=1, kind="stable")[:, : learner.width] for logits in gate_logits(learner, X)]


def mean_loss(learner, X, phi, target, weight, chosen):
    """The loss from its formula, with the tiles of each row held fixed; the tiles see phi."""
    f, seen = 0.0, np.hstack([phi, np.ones((len(X), 1))])
    for first, logits, nearest in zip(learner.first_tile, gate_logits(learner, X), chosen, strict=False):
        g = np.exp(np.take_along_axis(logits, nearest, axis=1))
        g /= g.sum(axis=1, keepdims=True)
        f = f + np.einsum("na,nacd,nd->nc", g, learner.tile_weights()[first + nearest], seen)
    return float((weight * reference_loss(learner, f / np.sqrt(len(chosen)), target)).sum() / len(X))


def reference_loss(learner, f, target):
    """Of each row."""
    label, excess = target[:, 0].astype(int), f - target
    if learner.loss == "squared_error":
        return (excess**2).sum(axis=1)
    power = 2 if learner.loss in ("squared_epsilon_insensitive", "expectile") else 1
    if learner.loss.endswith("epsilon_insensitive"):
        return (np.maximum(0, np.abs(excess) - learner.loss_parameter) ** power).sum(axis=1)
    if learner.loss in ("quantile", "expectile"):
        return (np.where(excess < 0, learner.loss_parameter, 1 - np.array(learner.loss_parameter))
                * np.abs(excess) ** power).sum(axis=1)  # fmt: skip
    if learner.loss == "log_loss":
        logits = np.hstack([np.zeros_like(f), f]) if f.shape[1] == 1 else f
        return logsumexp(logits, axis=1) - logits[np.arange(len(f)), label]
    places = [1] if learner.n_outputs == 1 else range(learner.n_outputs)
    y = np.stack([np.where(label == c, 1, -1) for c in places], axis=1)
    return (np.maximum(0, 1 - y * f) ** 2).sum(axis=1)


def numerical(learner, array, loss, step=1e-6):
    out = np.empty_like(array)
    for at in np.ndindex(array.shape):
        kept = array[at]
        array[at] = kept + step
        above = loss()
        array[at] = kept - step
        out[at] = (above - loss()) / (2 * step)
        array[at] = kept
    return out


def problem(n_outputs, loss, n_rows=20):
    rng = np.random.default_rng(1)
    X, weight = rng.standard_normal((n_rows, 5)), rng.uniform(0.5, 2.0, n_rows)
    if loss in CLASSIFICATION:
        return X, rng.integers(0, max(2, n_outputs), (n_rows, 1)).astype(float), weight
    return X, rng.standard_normal((n_rows, n_outputs)), weight


def check_gradients(learner, X, phi, target, weight, storage):
    before, chosen, n = learner.copy(), chosen_tiles(learner, X), len(X)
    order = np.arange(n, dtype=np.int32)
    total, n_met = learner.epoch(Rows(storage(X)), target, weight, order, n, np.array([1e-3]))
    assert n_met == n

    def loss():
        return mean_loss(before, X, phi, target, weight, chosen)

    assert_allclose(total / n, loss(), rtol=1e-10)
    names = ["tiles", "anchors", "log_tau"] + ["projection"] * (learner.projection is not None)
    for name in names:
        value, moment = getattr(before, name)[0], getattr(learner, name)[1]
        if name == "projection":
            assert not learner.projection[0][:, -1].any()
            value, moment = value[:, :-1], moment[:, :-1]
        gradient = numerical(before, value, loss)
        assert np.abs(gradient).max() > 1e-3
        assert_allclose(moment / (1 - BETA1), gradient, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("projected", [True, False])
@pytest.mark.parametrize("n_tiles", [(6,), (20,), (6, 4, 9)])
def test_gradients_are_those_of_finite_differences(n_tiles, projected, n_outputs, storage):
    X, target, weight = problem(n_outputs, "squared_hinge")
    learner = learner_of(projected, n_outputs, n_tiles=n_tiles)
    check_gradients(learner, X, X, target, weight, storage)


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_of_every_loss(loss, n_outputs):
    X, target, weight = problem(n_outputs, loss)
    parameter = np.linspace(0.2, 0.7, n_outputs)
    learner = learner_of(True, n_outputs, n_tiles=(5, 6), loss=loss, loss_parameter=parameter)
    check_gradients(learner, X, X, target, weight, np.asarray)


def kept_features(seed, step, rows, n_features, rate):
    """The hash of core/learner_dropout.hpp, again."""

    def mixed(h):
        h = h ^ (h >> np.uint32(16))
        h = h * np.uint32(0x85EBCA6B)
        h = h ^ (h >> np.uint32(13))
        h = h * np.uint32(0xC2B2AE35)
        return h ^ (h >> np.uint32(16))

    with np.errstate(over="ignore"):
        step_key = mixed(np.uint32(seed) ^ mixed(np.uint32(step) + np.uint32(0x9E3779B9)))
        row_key = mixed(step_key ^ (rows.astype(np.uint32) * np.uint32(0x9E3779B1)))
        feature = np.arange(n_features, dtype=np.uint32) * np.uint32(0x85EBCA77)
        return mixed(row_key[:, None] ^ feature) >= np.uint32(rate * 2**32)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_dropout_hides_features_from_the_tiles_only(storage):
    X, target, weight = problem(3, "squared_hinge", n_rows=50)
    kept = kept_features(7, 1, np.arange(50), 5, 0.3)
    assert 0.6 < kept.mean() < 0.8
    learner = learner_of(True, 3, n_tiles=(6, 5), dropout=0.3, seed=7)
    check_gradients(learner, X, X * kept / 0.7, target, weight, storage)


def test_dropout_is_drawn_anew_for_each_step_and_row():
    masks = [kept_features(3, step, np.arange(2000), 40, 0.25) for step in (1, 2)]
    for mask in masks:
        assert_allclose(mask.mean(axis=0), 0.75, atol=0.05)
        assert_allclose(np.corrcoef(mask.T.astype(float))[np.triu_indices(40, 1)], 0, atol=0.12)
    assert abs(np.corrcoef(masks[0].ravel(), masks[1].ravel())[0, 1]) < 0.02


def test_a_copy_is_restored():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 7)), rng.integers(0, 3, 300)
    learner = learner_of(False, 3, d=7, dtype=np.float32)
    kept, rows = learner.copy(), Rows(X.astype(np.float32))
    arguments = rows, y[:, None].astype(np.float32), np.ones(300), np.arange(300, dtype=np.int32), 50, np.full(6, 0.01)
    learner.epoch(*arguments)
    once = learner.tile_weights()
    assert np.abs(once - kept.tile_weights()).max() > 0.01
    learner.restore(kept)
    assert_array_equal(learner.tile_weights(), kept.tile_weights())
    learner.epoch(*arguments)
    assert_array_equal(learner.tile_weights(), once)
    assert np.abs(once - kept.tile_weights()).max() > 0.01  # the copy has its own arrays


def test_steps_in_one_call_are_those_of_many():
    """A call of the core goes as far as the clock lets it, which must not show."""
    rng = np.random.default_rng(0)
    rows, order = Rows(rng.standard_normal((1600, 7)).astype(np.float32)), np.arange(1600, dtype=np.int32)
    target, weight = rng.integers(0, 3, (1600, 1)).astype(np.float32), np.ones(1600)
    one, many = (learner_of(True, 3, d=7, n_tiles=(20, 30), dtype=np.float32) for _ in range(2))
    one.core().epoch(rows.core, target, weight, order, 16, np.full(100, 0.03))
    for batch in order.reshape(100, 16):
        many.core().epoch(rows.core, target, weight, batch, 16, np.full(1, 0.03))
    for name in ("tiles", "anchors", "projection", "log_tau"):
        assert_array_equal(getattr(one, name), getattr(many, name))


def test_another_decay_starts_from_what_the_old_one_left():
    learner = learner_of(True, 1)
    learner.decay, learner.clock[1] = 0.5, 2.0
    before = learner.tile_weights()
    learner.set_decay(0.1)
    assert_allclose(learner.tile_weights(), before)
    learner.clock[1] = 3.0
    assert_allclose(learner.tile_weights(), np.exp(-0.1) * before)


@pytest.mark.parametrize("n_steps", [1, 2, 7, 1000])
def test_the_schedule_rises_and_falls(n_steps):
    rates = one_cycle(0.5, n_steps)
    assert len(rates) == n_steps
    assert (rates > 0).all()
    assert rates.max() <= 0.5
    if n_steps == 1000:
        assert rates.argmax() == 250
        assert (np.diff(rates[:250]) > 0).all()
        assert (np.diff(rates[251:]) < 0).all()
