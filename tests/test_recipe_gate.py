"""CONTRIBUTING's recipe "Add a gate", followed literally."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from recipes import followed
from scipy import sparse
from test_export_onnx import run

import svmosaic
from svmosaic.datasets import make_xor
from svmosaic.explain import region_report
from svmosaic.export.c import CExportError
from svmosaic.export.onnx.gates import GATES
from svmosaic.gates import CoreGate, Gate
from svmosaic.model import registry


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "registered", dict(registry.registered))
    monkeypatch.setitem(GATES, "StripeGate", None)  # so that it is taken back at the end
    return followed("Add a gate", "recipe_gate", tmp_path, monkeypatch)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_gate_keeps_the_protocol(recipe, storage, dtype):
    gate = recipe.StripeGate(1, np.array([-1.0, 0.5]))
    assert isinstance(gate, Gate)
    assert not isinstance(gate, CoreGate)
    X = np.array([[0, -2], [0, -1], [0, 0.25], [0, 0.5], [0, 3]], dtype=dtype)
    for n_jobs in (None, 2):
        tile, weight = gate.code(storage(X), n_jobs)
        assert_array_equal(tile, [[0], [0], [1], [1], [2]])
        assert tile.dtype == np.int32
        assert weight is None


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("calibration", [None, "temperature"])
def test_fit_predict_save_load_and_export(recipe, storage, calibration, tmp_path):
    X, y = make_xor(random_state=0)
    model = recipe.StripedSVC(random_state=0, calibration=calibration).fit(storage(X), y)
    assert model.mosaic_.n_tiles == 4
    assert model.score(storage(X), y) > 0.9 > svmosaic.LinearSVC(random_state=0).fit(X, y).score(X, y)
    scores = model.decision_function(storage(X))
    assert_allclose(model.explain(X).contributions.sum(axis=2)[:, 0] + model.explain(X).intercept[:, 0], scores)
    assert_array_equal(model.predictor().predict(X), model.predict(X))
    region_report(model, X, y)

    model.save(tmp_path / "model")
    again = svmosaic.load(tmp_path / "model")
    assert type(again.mosaic_.gate) is recipe.StripeGate
    assert_array_equal(again.decision_function(storage(X)), scores)

    out = run(again.to_onnx(dtype=np.float64), X.astype(np.float64))
    assert_allclose(out["scores"][:, 0], scores, rtol=1e-9, atol=1e-12)
    assert_array_equal(out["label"], model.predict(X))
    with pytest.raises(CExportError, match="gate StripeGate cannot be written as C; known are SingleCell"):
        again.to_c(tmp_path / "model.c")


def test_what_is_not_registered_is_not_saved(recipe, monkeypatch, tmp_path):
    X, y = make_xor(random_state=0)
    model = recipe.StripedSVC(random_state=0).fit(X, y)
    model.save(tmp_path / "model")
    monkeypatch.delitem(registry.registered, "recipe_gate.StripeGate")
    with pytest.raises(ValueError, match=r"could not be loaded again, of type recipe_gate\.StripeGate"):
        model.save(tmp_path / "other")
    with pytest.raises(ValueError, match=r"not trusted, so it was not opened: recipe_gate\.StripeGate"):
        svmosaic.load(tmp_path / "model")
