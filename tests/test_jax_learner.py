"""The learner in JAX against the learner in the core, on the CPU."""

import builtins

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from test_gate_learner import CLASSIFICATION, learner_of

from svmosaic import LearnedGateSVC, LearnedGateSVR
from svmosaic.datasets import make_banana
from svmosaic.learner import devices
from svmosaic.learner.gate_learner import LOSSES
from svmosaic.learner.loop import CoreEngine, Plan, mosaic_of
from svmosaic.learner.stream import StreamEngine
from svmosaic.losses import REGRESSION_LOSSES

jax = pytest.importorskip("jax")
from svmosaic.learner import jax_loop  # noqa: E402

CPU = jax.devices("cpu")[0]
STEPS, BATCH = 50, 32


def problem(n_outputs, loss, n_features=5, seed=0):
    rng = np.random.default_rng(seed)
    n_rows = STEPS * BATCH - 7  # the last batch is smaller
    X = rng.standard_normal((n_rows, n_features)).astype(np.float32)
    if loss in CLASSIFICATION:
        target = rng.integers(0, max(2, n_outputs), (n_rows, 1))
    else:
        target = rng.standard_normal((n_rows, n_outputs))
    return X, target.astype(np.float32), rng.uniform(0.5, 2.0, n_rows)


def both(n_outputs, loss="squared_hinge", *, projected=True, learn_gate=True, **settings):
    """The two engines with the same start."""
    X, target, weight = problem(n_outputs, loss)
    plan = Plan(1, BATCH, 0.03, learn_gate=learn_gate)
    engines = []
    for kind, device in ((CoreEngine, ()), (jax_loop.JaxEngine, (CPU,))):
        learner = learner_of(
            projected, n_outputs, loss=loss, dtype=np.float32, loss_parameter=[0.3] * n_outputs, **settings
        )  # fmt: skip
        learner.decay = 0.1
        engines.append(kind(learner, X, target, weight, plan, *device))
    return engines


SEVERAL = {"n_tiles": (6, 4, 9), "dropout": 0.3, "seed": 5}


@pytest.mark.parametrize(
    ("loss", "n_outputs", "settings"),
    [
        *((loss, 1 + 2 * (i % 2), SEVERAL) for i, loss in enumerate(LOSSES)),
        ("log_loss", 1, {"projected": False}),
        pytest.param("squared_hinge", 3, {}, marks=pytest.mark.slow),
        pytest.param("squared_hinge", 1, {"learn_gate": False}, marks=pytest.mark.slow),
    ],
)
def test_both_learners_agree_after_fifty_steps(loss, n_outputs, settings):
    core, device = both(n_outputs, loss, **settings)
    order = np.random.default_rng(1).permutation(len(core.weight)).astype(np.int32)
    rates = np.linspace(0.03, 0.01, STEPS)
    before = core.learner.copy()
    (loss_here, n_here), (loss_there, n_there) = (engine.epoch(order, rates) for engine in (core, device))
    assert n_here == n_there == len(order)
    assert_allclose(loss_there, loss_here, rtol=1e-4)
    device.finish()
    for name in ("tiles", "anchors", "log_tau", "projection"):
        here, there, start = (getattr(learner, name) for learner in (core.learner, device.learner, before))
        if here is None:
            assert there is None
            continue
        assert_allclose(there, here, atol=1e-4)
        assert (np.abs(here - start)[0].max() > 1e-2) == (name == "tiles" or settings.get("learn_gate", True))
    assert_allclose(device.learner.tile_weights(), core.learner.tile_weights(), atol=1e-4)
    assert_allclose(device.learner.clock, core.learner.clock)
    X = problem(n_outputs, loss)[0]
    assert_allclose(device.scores(X), mosaic_of(core.learner).decision_function(X), atol=1e-3)


def test_scores_of_chunks_are_those_of_all_rows():
    engine = both(3, n_tiles=(6, 4))[1]
    X = problem(3, "squared_hinge")[0]
    whole = jax_loop.score_rows(engine.state.value, engine.state.valid, 3, X, CPU)
    for chunk_rows in (1, 100, len(X)):
        parts = jax_loop.score_rows(engine.state.value, engine.state.valid, 3, X[:250], CPU, chunk_rows=chunk_rows)
        assert_allclose(parts, whole[:250], atol=1e-5)
    assert jax_loop.score_rows(engine.state.value, engine.state.valid, 3, X[:0], CPU).shape == (0, 3)


def test_rows_of_equal_distance_have_as_many_tiles_as_asked_for_or_share():
    """If anchors tie, those beyond `width` that are as near share the row; the core takes the first of them."""
    value = {
        "tiles": np.zeros((1, 3, 1, 3), dtype=np.float32), "projection": None, "log_tau": np.zeros(1, dtype=np.float32),
        "anchors": np.array([[[1.0, 0.0], [-1.0, 0.0], [5.0, 0.0]]], dtype=np.float32),
    }  # fmt: skip
    g, _ = jax_loop.shares(value, np.ones((1, 3), dtype=bool), np.zeros((1, 2), dtype=np.float32), 1)
    assert_allclose(g[0, 0], [0.5, 0.5, 0.0])


@pytest.fixture
def on_device(monkeypatch):
    """The CPU as the accelerator."""
    monkeypatch.setattr(jax_loop, "accelerator", lambda: CPU)
    monkeypatch.setattr("svmosaic.estimators.learned_gate.MANY_ROWS", 100)


SETTINGS = {"n_tiles": 8, "n_neighbors": 3, "max_iter": 6, "random_state": 0}


@pytest.mark.parametrize(
    "loss",
    ["squared_error", *(pytest.param(loss, marks=pytest.mark.slow) for loss in REGRESSION_LOSSES)],
)
def test_the_regressor_learns_and_predicts_on_a_device(on_device, loss):
    X, _ = make_banana(1000, random_state=0)
    y = np.stack([100.0 + X[:, 0] * X[:, 1], X[:, 0]], axis=1)
    here, there = (LearnedGateSVR(**SETTINGS, loss=loss, device=device).fit(X, y) for device in ("cpu", "gpu"))
    assert_allclose(there.loss_curve_, here.loss_curve_, rtol=1e-3)
    assert_allclose(there.validation_scores_, here.validation_scores_, rtol=1e-2)
    assert_allclose(there.predict(X), here.predict(X), atol=0.05 * y.std(axis=0).max())


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({}, marks=pytest.mark.slow),
        {"n_gates": 2, "loss": "log_loss", "dropout": 0.2, "early_stopping": False},
        pytest.param({"pieces": 6}, marks=pytest.mark.slow),
        {"pieces": [[-1.0, 0.0, 0.5], []], "n_gates": 2, "dropout": 0.2},
    ],
)
def test_the_estimator_learns_and_predicts_on_a_device(on_device, settings):
    X, y = make_banana(1000, random_state=0)
    here, there = (LearnedGateSVC(**SETTINGS | settings, device=device).fit(X, y) for device in ("cpu", "gpu"))
    assert there.validation_scores_ == here.validation_scores_
    assert_allclose(there.loss_curve_, here.loss_curve_, rtol=1e-3)
    assert_allclose(there.decision_function(X), here.decision_function(X), atol=1e-2)
    there.device = "cpu"
    scores = there.decision_function(X)
    there.device = "auto"
    assert_allclose(there.decision_function(X), scores, atol=1e-4)
    assert not np.array_equal(there.decision_function(X), scores)  # in float32, on the device
    assert_array_equal(there.decision_function(X[:50]), scores[:50])
    there.partial_fit(X, y)
    with pytest.raises(ValueError, match=r"needs dense rows: pass X.toarray\(\)"):
        LearnedGateSVC(**SETTINGS, device="gpu").fit(sparse.csr_array(X), y)


def test_what_is_missing_is_named(monkeypatch):
    X, y = make_banana(200, random_state=0)
    monkeypatch.setattr(jax_loop, "accelerator", lambda: None)
    with pytest.raises(RuntimeError, match=r"JAX finds none on this machine: pip install 'jax\[cuda13\]'"):
        LearnedGateSVC(**SETTINGS, device="gpu").fit(X, y)
    LearnedGateSVC(**SETTINGS, device="auto").fit(X, y)
    found = builtins.__import__

    def without_jax(name, *args, **kwargs):
        if name == "svmosaic.learner" and "jax_loop" in (args[2] or ()):
            raise ImportError("No module named 'jax'")
        return found(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_jax)
    with pytest.raises(ImportError, match="needs JAX: pip install jax, "):
        devices.find_device("gpu")
    assert devices.find_device("auto") is None


def test_a_stream_takes_the_same_steps_on_a_device(monkeypatch):
    monkeypatch.setattr("svmosaic.learner.stream.BUFFER_CHUNKS", 1)
    X, target, weight = (part[: 4 * 12 * BATCH] for part in problem(1, "squared_hinge"))  # buffers of one size
    plan, rates, found = Plan(1, BATCH, 0.03), np.linspace(0.03, 0.01, 48), []

    def read(chunks):
        return ((X[k::4], target[k::4], weight[k::4]) for k in chunks)

    for device in (None, CPU):
        engine = StreamEngine(learner_of(True, 1, dtype=np.float32), read, 4, len(X), plan, device)
        loss, n_met = engine.epoch(engine.order(np.random.RandomState(0)), rates)
        engine.finish()
        found.append((loss, engine.learner))
        assert n_met == len(X)
    assert_allclose(found[1][0], found[0][0], rtol=1e-4)
    assert_allclose(found[1][1].tiles, found[0][1].tiles, atol=1e-4)
