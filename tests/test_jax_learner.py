"""The learner in JAX against the learner in the core, on the CPU."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from test_gate_learner import CLASSIFICATION, learner_of

from svmosaic.learner.gate_learner import LOSSES
from svmosaic.learner.loop import CoreEngine, Plan, mosaic_of

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
        ("squared_hinge", 3, {}),
        ("squared_hinge", 1, {"learn_gate": False}),
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
