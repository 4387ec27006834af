"""One list of types: files, exporters and displays know the same ones, and every gate keeps its protocol."""

from importlib import import_module
from pkgutil import iter_modules

import numpy as np
import pytest
from fused_gates import KINDS, random_gate
from sklearn.tree import DecisionTreeClassifier

import svmosaic
import svmosaic.gates
from svmosaic import LearnedGateSVC, NeighborsSVC
from svmosaic.datasets import make_xor
from svmosaic.explain import region_report
from svmosaic.export.c import C
from svmosaic.export.javascript import JAVASCRIPT
from svmosaic.export.onnx import ONNX
from svmosaic.gates import CoreGate, DistanceGate, Gate, PlacedGate, SingleCell, TreeGate
from svmosaic.model import registry
from svmosaic.model.mosaic import LINKS

TARGETS = [ONNX, C, JAVASCRIPT]


def gates():
    """A gate of every kind."""
    rng = np.random.default_rng(0)
    found = {kind: random_gate(rng, kind) for kind in KINDS}
    found["distance"] = DistanceGate(rng.standard_normal((4, 5)), "llc", 2)
    found["single"] = SingleCell()
    X = rng.standard_normal((60, 5))
    y = X[:, 0] > 0
    tree = DecisionTreeClassifier(max_leaf_nodes=4, random_state=0).fit(X, y)
    found["rules"] = TreeGate.from_trees([tree], X.shape[1])
    found["curved"] = LearnedGateSVC(4, max_iter=1, pieces=3, random_state=0).fit(X, y).mosaic_.gate
    return found


GATES = gates()


def class_of(entry):
    module, _, name = entry.path.rpartition(".")
    return getattr(import_module(module), name)


@pytest.mark.parametrize("entry", registry.registered.values(), ids=lambda entry: entry.name)
def test_every_entry_is_a_class(entry):
    kind = class_of(entry)
    assert isinstance(kind, type)
    assert registry.find(kind) == entry


def test_every_gate_is_registered_and_tried_here():
    modules = [import_module(f"svmosaic.gates.{m.name}") for m in iter_modules(svmosaic.gates.__path__)]
    defined = {
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__ and hasattr(value, "code")
    }
    protocols = {Gate, CoreGate, PlacedGate}
    abstract = {kind for kind in defined if kind.__name__ in ("OuterGate", "PackedGate", "SoftmaxTree")}
    registered = {class_of(entry) for entry in registry.entries("gate")}
    assert defined - protocols - abstract == registered
    assert {type(gate) for gate in GATES.values()} == registered


@pytest.mark.parametrize("name", GATES)
def test_every_gate_keeps_the_protocol(name):
    gate = GATES[name]
    assert isinstance(gate, Gate)
    X = np.random.default_rng(1).standard_normal((20, 5))
    for n_jobs in (None, 2):
        tile, weight = gate.code(X, n_jobs)
        assert tile.dtype == np.int32
        assert tile.shape == (20, gate.width)
        assert weight is None or (weight.shape == tile.shape and weight.dtype == np.float64)
        assert tile.max() < gate.n_tiles
    assert isinstance(gate, CoreGate) or gate.core_arguments() is None
    anchors, projection = getattr(gate, "anchors", None), getattr(gate, "projection", None)
    if anchors is not None:
        assert len(anchors) == gate.n_tiles
        assert projection is None or projection.shape == (anchors.shape[1], 5)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.language)
def test_every_target_knows_every_gate_link_and_calibration(target):
    forms = {"SingleCell" if g.core_arguments() is None else g.core_arguments()[0] for g in GATES.values()}
    assert forms <= set(target.gates)
    assert set(LINKS) == set(target.links)
    assert {entry.name for entry in registry.entries("calibration")} == set(target.calibrations)


def test_a_model_without_tiles_says_why_in_pictures_too():
    X, y = make_xor(random_state=0)
    with pytest.raises(TypeError, match=r"NeighborsSVC has no tiles \(it has no fixed set of tiles, but keeps"):
        region_report(NeighborsSVC(5).fit(X, y), X, y)


def test_unknown_kinds_are_refused():
    with pytest.raises(ValueError, match="kind must be one of gate, map, calibration, model, part, got 'thing'"):
        registry.register("thing")
