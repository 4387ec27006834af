"""EM asks the same questions of rows in memory and of rows in partitions, and gets the same answers."""

from itertools import pairwise

import numpy as np
import pytest
from in_memory import InMemory
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_classification

from svmosaic._validation import Target
from svmosaic.couplings import ClusteredTasks
from svmosaic.estimators._composed_fit import MemoryRows, Options
from svmosaic.estimators._em_loop import EM, effective_number
from svmosaic.estimators._em_rows import MemoryEMRows
from svmosaic.estimators._experts import carried_over
from svmosaic.estimators.multitask_mixture import _start
from svmosaic.gates import GaussianGate, Responsibilities
from svmosaic.losses import HINGE
from svmosaic.scale.fit import PartitionedRows, Survey
from svmosaic.scale.mixture import PartitionedEMRows
from svmosaic.scale.part import Raw, describe, prepare

N, D, CLASSES = 240, 4, np.array(["ape", "bee", "cow"])
X, LABEL = make_classification(
    N, D, n_informative=4, n_redundant=0, n_classes=3, n_clusters_per_class=1, random_state=0
)
WEIGHT = np.random.RandomState(0).choice([0.5, 1.0, 2.0], N)
OPTIONS = Options(1.0, HINGE, 1.0, "newton", 1e-8, 200)
TASKS = ClusteredTasks("relaxed", 2, 0.1, 0.1)


def partitioned(n_parts):
    """The rows in so many partitions."""
    bounds = np.linspace(0, N, n_parts + 1).astype(int)
    parts = [slice(a, b) for a, b in pairwise(bounds)]
    held = InMemory([Raw(X[p], CLASSES[LABEL[p]], WEIGHT[p], str(k)) for k, p in enumerate(parts)])
    counts = np.array([np.bincount(LABEL[p], minlength=3) for p in parts])
    held.gather(describe)
    held.advance(prepare, CLASSES, np.ones(3), X.dtype, each=list(np.cumsum(counts, axis=0) - counts))
    return PartitionedRows(held, Survey(N, D, X.dtype, CLASSES, counts.sum(axis=0), None, np.ones(3)))


def started(rows):
    """EM, and its start."""
    shared = rows.for_em(
        options=OPTIONS, gate_options=lambda total: {}, rng=np.random.RandomState(1), deadline=None
    )  # fmt: skip
    placement = {"n_centers": 3, "source": "kmeans", "rows_per_center": 50, "max_iter": 5, "name": "centres"}
    gate = _start(shared, np.random.RandomState(0), placement=placement, floor=0.05, covariance="full")
    shared.append(1.5)
    loop = EM(shared, TASKS, label_weight=0.5, tol=0.0, max_iter=3, deadline=None)
    return loop, loop.start(gate, 3, D, 1.5)


@pytest.fixture(scope="module")
def memory():
    return started(MemoryRows.of(X, Target(CLASSES, LABEL, WEIGHT)))


@pytest.mark.parametrize("n_parts", [1, 3])
def test_partitions_answer_as_memory_does(memory, n_parts):
    (here, start), (there, start_there) = memory, started(partitioned(n_parts))
    assert isinstance(here.rows, MemoryEMRows)
    assert isinstance(there.rows, PartitionedEMRows)
    assert_allclose(there.rows.mean_square(), here.rows.mean_square(), rtol=1e-10)
    assert_allclose(there.rows.mean_variance(), here.rows.mean_variance(), rtol=1e-8)
    assert_allclose(start_there.gate.means, start.gate.means, atol=1e-10)
    assert_allclose(start_there.bank.tiles, start.bank.tiles, atol=1e-3)
    # The same mixture from here on.
    (value, mass), (value_there, mass_there) = (loop.e_step(start) for loop in (here, there))
    assert_allclose(value_there, value, rtol=1e-12)
    assert_allclose(mass_there, mass, rtol=1e-10)
    (gate, kept), (gate_there, kept_there) = (loop.rows.updated_gate(start.gate) for loop in (here, there))
    assert_array_equal(kept_there, kept)
    assert_allclose(gate_there.means, gate.means, atol=1e-10)
    assert_allclose(gate_there.covariances, gate.covariances, atol=1e-10)
    for loop in (here, there):
        loop.rows.pair_up(kept, 0.5)
    banks = [start.bank.tiles, 2.0 * start.bank.tiles]
    assert_allclose(there.rows.losses(banks), here.rows.losses(banks), rtol=1e-10)
    (tiles, gap), (tiles_there, gap_there) = (loop.rows.solve(start.bank.couplings) for loop in (here, there))
    assert_allclose(tiles_there, tiles, atol=1e-3)
    assert max(gap, gap_there) <= 1e-8 * 0.5 * WEIGHT.sum() * 3


def test_there_is_one_em():
    """Neither kind of rows has a loop, an E-step or an M-step of its own."""
    for kind in (MemoryEMRows, PartitionedEMRows):
        assert not {"run", "e_step", "m_step", "update"} & set(dir(kind))
        for question in ("share_out", "updated_gate", "pair_up", "solve", "losses"):
            assert callable(getattr(kind, question))
    assert EM.__subclasses__() == []


def test_duals_of_pairs_that_stay_are_carried_over():
    # Row 0 had experts 0 and 2, row 1 had expert 1, row 2 expert 2; expert 1 goes.
    pairs = np.array([0, 0, 1, 2], dtype=np.int32), np.array([0, 2, 1, 2], dtype=np.int32)
    kept = np.array([True, False, True])
    # Now row 0 has the old expert 2, row 1 the old 0, row 2 both.
    shares = Responsibilities(np.array([0, 1, 2, 4]), np.array([1, 0, 0, 1], np.int32), np.ones(4), np.ones(3), 2)
    found = carried_over([np.array([0.1, 0.2, 0.3, 0.4])], pairs, kept, shares)
    assert_array_equal(found, [[0.2, 0.0, 0.0, 0.4]])
    nothing = carried_over([np.array([0.3])], (np.array([1]), np.array([1])), kept, shares)
    assert_array_equal(nothing, [np.zeros(4)])


def test_effective_number():
    assert effective_number(np.full(5, 2.0)) == pytest.approx(5)
    assert effective_number(np.array([3.0, 0.0])) == pytest.approx(1)


def test_gaussians_without_rows_go():
    gate = GaussianGate(np.zeros((3, 2)), np.ones((3, 2)), np.full(3, 1 / 3), 0.1, "diag")
    assert_array_equal(gate.alive(np.array([5.0, 1e-11, 1.0])), [True, False, True])
