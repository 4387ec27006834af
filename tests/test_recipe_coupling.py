"""CONTRIBUTING's recipe "Add a coupling", followed literally."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from recipes import followed
from test_export_onnx import run

import svmosaic
from svmosaic import ClusteredSVC, KMeansSVC
from svmosaic.datasets import make_xor
from svmosaic.model import registry

TIGHT = {"tol": 1e-9, "max_iter": 20_000, "random_state": 0}


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "registered", dict(registry.registered))
    return followed("Add a coupling", "recipe_coupling", tmp_path, monkeypatch)


def test_the_penalty_is_that_of_pairs(recipe):
    coupling = recipe.in_pairs(4, 2.0)
    blocks = np.random.default_rng(0).standard_normal((coupling.n_blocks, 3))
    tiles = coupling.tiles(blocks)
    assert_allclose(tiles[:2], blocks[:2] + 2 * blocks[4])
    assert_allclose(tiles[2:], blocks[2:4] + 2 * blocks[5])


def test_a_model_with_the_coupling_does_all_that_models_do(recipe, tmp_path):
    X, y = make_xor(random_state=0)
    model = recipe.PairedSVC(4, **TIGHT).fit(X, y)
    assert model.dual_gap_[0] <= 1e-9 * len(X)
    # Sharing is neither independence nor a tie of all to one.
    for other in (KMeansSVC(4, **TIGHT), ClusteredSVC(4, global_reg=0.25, **TIGHT)):
        assert np.abs(model.decision_function(X) - other.fit(X, y).decision_function(X)).max() > 1e-3
    model.save(tmp_path / "model")
    again = svmosaic.load(tmp_path / "model")
    assert_array_equal(again.decision_function(X), model.decision_function(X))
    found = run(model.to_onnx(dtype=np.float64), X)
    assert_allclose(found["scores"][:, 0], model.decision_function(X), atol=1e-8)
    assert_array_equal(found["label"], model.predict(X))
