"""Every gate of the core in every export target, alone and inside others."""

import numpy as np
import pytest
from exported import Fitted
from numpy.testing import assert_allclose
from test_export_c import Compiled
from test_export_onnx import run
from test_registry import GATES

from svmosaic.export.c import to_c
from svmosaic.export.onnx import to_onnx
from svmosaic.gates import ScaledGate, SeveralGates, SingleCell
from svmosaic.maps import Scaling
from svmosaic.model.blending import blend
from svmosaic.model.mosaic import LINKS, Mosaic

ROWS = np.random.default_rng(3).standard_normal((200, 5)) + 1.0


def models():
    """A mosaic for every gate, each with scaling; gates inside gates; a blend of all."""
    rng = np.random.default_rng(2)
    gates = dict(GATES)
    gates["scaled scaled"] = ScaledGate(np.full(5, 0.1), np.full(5, 1.5), GATES["scaled"])
    gates["scaled several"] = ScaledGate(np.full(5, 0.1), np.full(5, 1.5), GATES["several"])
    gates["several several"] = SeveralGates(
        (GATES["several"], SingleCell(), GATES["rules"]), np.array([1.0, 2.0, -1.0])
    )
    found = {}
    for n_classes in (2, 3):
        for name, gate in gates.items():
            shape = (gate.n_tiles, 1 if n_classes == 2 else n_classes)
            scaling = Scaling(rng.standard_normal(5), rng.uniform(0.5, 2.0, 5)) if "s" in name else None
            mosaic = Mosaic(gate, rng.standard_normal((*shape, 5)), rng.standard_normal(shape), feature_map=scaling)
            found[f"{name}-{n_classes}"] = Fitted(mosaic, np.arange(n_classes))
    for link in LINKS:  # tiles of which some are only a number, or all
        for sloped in ([0, 3, 4, 9], []):
            gate, kept = gates["several several"], np.array(sloped, dtype=np.int32)
            coef, intercept = rng.standard_normal((len(kept), 3, 5)), rng.standard_normal((gate.n_tiles, 3))
            found[f"{len(kept)} sloped {link}-3"] = Fitted(
                Mosaic(gate, coef, intercept, link, None, kept), np.arange(3)
            )
    parts = [model.mosaic_ for name, model in found.items() if name.endswith("-3") and model.mosaic_.link == "identity"]
    found["blend-3"] = Fitted(blend(parts, rng.standard_normal(len(parts))), np.arange(3))
    return found


MODELS = models()


@pytest.mark.parametrize("name", MODELS)
def test_onnx_agrees_with_the_engine(name):
    model = MODELS[name]
    out = run(to_onnx(model, dtype=np.float64), ROWS)
    expected = model.mosaic_.decision_function(ROWS)
    assert_allclose(out["scores"], expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("name", MODELS)
def test_c_agrees_with_the_engine(name, tmp_path):
    model = MODELS[name]
    rows = ROWS.astype(np.float32)
    compiled = Compiled(to_c(model, tmp_path / "model.c")[0], len(model.classes_))
    expected = model.mosaic_.decision_function(rows)
    error = np.abs(compiled.scores(rows) - expected).max(axis=1)
    # A row at the edge between two tiles may fall to the other side of it in float32.
    assert (error < 1e-4 * np.abs(expected).max()).mean() > 0.99


@pytest.mark.parametrize("name", MODELS)
def test_explanations_add_up(name, tmp_path):
    model = MODELS[name]
    if model.mosaic_.link != "identity":
        pytest.skip("votes are no sums over columns")
    rows = ROWS.astype(np.float32)
    out = run(to_onnx(model, explain=True), rows)
    summed = out["contributions"].sum(axis=2, dtype=np.float64) + out["intercept"]
    assert_allclose(summed, out["scores"], rtol=1e-4, atol=1e-4)
    compiled = Compiled(to_c(model, tmp_path / "model.c")[0], len(model.classes_))
    contributions, intercept = compiled.explain(rows)
    assert_allclose(contributions.sum(axis=2) + intercept, compiled.scores(rows), rtol=1e-9, atol=1e-9)
    assert_allclose(contributions, out["contributions"], rtol=1e-3, atol=1e-3)
