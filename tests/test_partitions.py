"""The models over partitions: the local model's gate and objective, whatever the partitions are."""

import re
import sys
from itertools import pairwise

import numpy as np
import pytest
import reference
from in_memory import InMemory
from numpy.testing import assert_allclose, assert_array_equal
from problems import hard_problem
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from svmosaic import ClusteredSVC, KMeansSVC, LinearSVC, LocallyLinearSVC, MixtureSVC
from svmosaic.couplings import ClusteredTasks, Coupling
from svmosaic.gates import DistanceGate
from svmosaic.model.heads import Classify
from svmosaic.rows import Rows
from svmosaic.scale import fit
from svmosaic.scale.part import Job, Part, Raw
from svmosaic.scale.rounds import add
from svmosaic.solvers import Problem
from svmosaic.solvers.certificates import certify, margins, primal
from svmosaic.solvers.hessians import crossed_hessians
from svmosaic.solvers.share import Evaluate, Product

N = 900


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(
        N, 6, n_informative=5, n_redundant=0, n_classes=3, n_clusters_per_class=2, random_state=0
    )
    weight = np.random.RandomState(1).choice([0.0, 0.5, 1.0, 3.0], N)
    return X.astype(np.float32), np.array(["ape", "bee", "cow"])[y], weight


def cut(X, y, weight=None, cuts=()):
    """Partitions of rows, cut before these rows."""
    bounds = [0, *cuts, len(y)]
    return InMemory(
        [Raw(X[a:b], y[a:b], None if weight is None else weight[a:b], f"rows {a} to {b}") for a, b in pairwise(bounds)]
    )


# Even, very uneven with an empty one, and (rows sorted by class) partitions of one class.
CUTTINGS = {"even": (300, 600), "uneven": (1, 1, 4, 850), "one class": (150, 400, 550, 750)}
MODELS = [
    LinearSVC(tol=1e-6),
    LinearSVC(tol=1e-6, loss="squared_hinge", class_weight="balanced", fit_intercept=False),
    KMeansSVC(4, tol=1e-6, random_state=0),
    ClusteredSVC(4, tol=1e-6, random_state=0, class_weight={"ape": 2.0, "bee": 1.0, "cow": 0.5}),
    ClusteredSVC(4, tol=1e-6, loss="squared_hinge", random_state=0),
    LocallyLinearSVC(6, n_neighbors=3, tol=1e-6, random_state=0),
    LocallyLinearSVC(5, n_neighbors=3, coding="llc", C=1.0, loss="hinge", tol=1e-6, random_state=0, anchors="kmeans"),
    LocallyLinearSVC(5, n_neighbors=2, coding="inverse", tol=1e-6, random_state=0, anchors="random"),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{type(model).__name__}-{model.loss}")
@pytest.mark.parametrize("cuts", CUTTINGS)
def test_same_gate_and_objective_as_the_local_model(model, cuts, data):
    X, y, weight = data
    if cuts == "one class":
        order = np.argsort(y, kind="stable")
        X, y, weight = X[order], y[order], weight[order]
    local = clone(model).fit(X, y, weight)
    found = fit(clone(model), cut(X, y, weight, CUTTINGS[cuts]))
    assert_array_equal(found.classes_, local.classes_)
    if hasattr(local.mosaic_.gate, "centers"):
        assert_array_equal(found.mosaic_.gate.centers, local.mosaic_.gate.centers)
        assert found.mosaic_.gate.scale == local.mosaic_.gate.scale
    # Both are within their gap of the optimum.
    gap = np.maximum(found.dual_gap_, local.dual_gap_) + 1e-9 * local.objective_
    assert (np.abs(found.objective_ - local.objective_) <= gap).all()
    assert (found.dual_gap_ <= 1e-6 * model.C * weight.sum() * 2).all()
    assert_array_equal(found.region_counts_["classes"], local.region_counts_["classes"])
    assert np.mean(found.predict(X) == local.predict(X)) > 0.995
    assert found.n_features_in_ == local.n_features_in_


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_objective_is_that_of_the_weights(loss, data):
    X, y, weight = data
    model = fit(ClusteredSVC(4, loss=loss, random_state=0), cut(X, y, weight, (200, 700)))
    kept = weight > 0
    codes = model.mosaic_.gate.code(X[kept])
    coupling = Coupling.to_global(4, 1.0)
    for c, name in enumerate(model.classes_):
        signs = np.where(y[kept] == name, 1, -1).astype(np.int8)
        problem = Problem(Rows(X[kept], 1.0), *codes, coupling, signs, weight[kept], loss)
        shared = np.append(model.global_coef_[c], model.global_intercept_[c])
        tiles = np.column_stack([model.mosaic_.coef[:, c], model.intercept_[:, c]])
        blocks = np.vstack([tiles - shared, shared[None]])
        value = primal(problem, blocks, margins(problem, blocks))
        assert value == pytest.approx(model.objective_[c], rel=1e-12)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_storage_and_float64(storage, data):
    X, y, _ = data
    X = X.astype(np.float64)
    X[np.abs(X) < 0.5] = 0.0
    local = ClusteredSVC(3, tol=1e-6, random_state=0).fit(X, y)
    found = fit(ClusteredSVC(3, tol=1e-6, random_state=0), cut(storage(X), y, None, (100,)))
    assert (np.abs(found.objective_ - local.objective_) <= 1e-6 * len(y)).all()
    assert found.mosaic_.gate.centers.dtype == np.float64


def test_calibration_does_not_see_partitions(data):
    X, y, _ = data
    y = np.where(y == "cow", "cow", "other")
    model = ClusteredSVC(3, calibration="sigmoid", loss="squared_hinge", tol=1e-6, random_state=0)
    found = [fit(clone(model), cut(X, y, None, cuts)) for cuts in [(), *CUTTINGS.values()]]
    for other in found[1:]:
        assert_allclose(other.predict_proba(X), found[0].predict_proba(X), atol=1e-3)
    local = clone(model).fit(X, y)
    # Other folds, the same probabilities but for chance.
    assert np.abs(found[0].predict_proba(X) - local.predict_proba(X)).mean() < 0.02
    assert_allclose(found[0].predict_proba(X).sum(axis=1), 1.0)


def part_of(problem, X):
    n = problem.n_rows
    return Part(
        X, (problem.sign > 0).astype(np.int32), np.ones(n), 0, np.zeros(2, int), Classify(np.arange(2)),
        tile=problem.tile, code=problem.weight, cost=problem.cost,
    )  # fmt: skip


@pytest.mark.parametrize("shape", ["linear", "cells", "global", "groups"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_answers_are_those_of_the_problem(shape, loss):
    problem, X = hard_problem(0, shape=shape, loss=loss)
    job = Job(0, 0, problem.coupling, problem.loss)
    part = part_of(problem, X)
    rng = np.random.RandomState(3)
    weights, vector = rng.standard_normal((2, *problem.shape)) * 0.1
    step = problem.loss.smooth_step or 0.5
    sums, implied, hessians = Evaluate(job, weights, step, 0.0, "tiles").of(part.share(job, 1))
    margin = margins(problem, weights)
    assert sums[1] == pytest.approx(problem.primal_at_zero)
    penalty = 0.5 * np.vdot(weights, weights)
    assert sums[2] + penalty == pytest.approx(primal(problem, weights, margin))
    # Finite differences of the gradient, where no row crosses a kink.
    product = Product(job, weights, step, 0.0, vector).of(part.share(job, 1))
    nudge = 1e-7
    moved = Evaluate(job, weights + nudge * vector, step, 0.0, None).of(part.share(job, 1))[1]
    assert_allclose((implied - moved) / nudge, product, atol=1e-4 * np.abs(product).max())
    # The matrices say the same: in tiles, then back to blocks.
    tiles = problem.coupling.tiles(vector)
    bent = np.einsum("kij,kj->ki", hessians, tiles)
    back = np.vstack([problem.coupling.own * bent, problem.coupling.shared.T @ bent])
    assert_allclose(back, product, atol=1e-9 * np.abs(product).max())


@pytest.mark.parametrize("coding", ["softmax", "llc"])
def test_crossed_matrices_are_the_hessian(coding, monkeypatch):
    monkeypatch.setattr("svmosaic.solvers.hessians.CROSSED_ROWS", 17)
    rng = np.random.RandomState(0)
    X = rng.standard_normal((60, 3))
    gate = DistanceGate(rng.standard_normal((5, 3)), coding, 3, 0.1)
    tile, code = gate.code(X)
    y = np.where(rng.uniform(size=60) > 0.5, 1, -1).astype(np.int8)
    problem = Problem(Rows(X), tile, code, Coupling.independent(5), y, rng.uniform(0.5, 1, 60), "squared_hinge")
    curvature = np.where(rng.uniform(size=60) > 0.3, rng.uniform(size=60), 0.0)
    found = crossed_hessians(problem, curvature, 1)
    matrix = reference.expand_problem(problem, X)
    expected = (matrix * curvature[:, None]).T @ matrix
    for (s, t), block in zip(zip(*np.triu_indices(5), strict=True), found, strict=True):
        assert_allclose(block, expected.reshape(5, 4, 5, 4)[s, :, t], atol=1e-12)


def test_conjugate_gradients_where_matrices_are_too_large(data, monkeypatch):
    X, y, _ = data
    model = LocallyLinearSVC(5, n_neighbors=3, tol=1e-5, random_state=0)
    expected = clone(model).fit(X, y).objective_
    for limit in (5 * 7**2, 1):  # with and without preconditioner
        monkeypatch.setattr("svmosaic.solvers.newton.LARGEST_HESSIAN", limit)
        found = fit(clone(model), cut(X, y, None, (500,)))
        assert_allclose(found.objective_, expected, atol=1e-5 * 10 * len(y))
        assert (found.dual_gap_ <= 1e-5 * 10 * len(y)).all()


def test_what_travels_grows_with_tiles_and_features_not_with_rows(monkeypatch):
    monkeypatch.setattr(sys.modules[fit.__module__], "ROWS_PER_CENTER", 20)
    rng = np.random.RandomState(0)
    X = rng.standard_normal((4000, 20))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)

    def largest(n_rows, n_clusters):
        partitions = cut(X[:n_rows], y[:n_rows], None, (n_rows // 2,))
        model = ClusteredSVC(n_clusters, tol=1e-2, loss="squared_hinge", random_state=0)
        fit(model, partitions)
        *rounds, words = partitions.rounds
        # The last one takes some rows by which regions are said in words: 2000 of 20 numbers, whatever there are.
        assert words.sent < 20_000
        assert words.returned < 2000 * (20 + 2) * 8
        return max(r.sent for r in rounds), max(r.returned for r in rounds)

    small, long, wide = largest(2000, 10), largest(4000, 10), largest(2000, 20)
    assert_allclose(long, small, rtol=0.02)
    assert 1.5 < wide[0] / small[0] < 2.1
    assert 1.5 < wide[1] / small[1] < 2.1


def test_lost_rows_are_noticed(data):
    X, y, _ = data
    partitions = cut(X, y, None, (300, 600))
    total, calls = partitions.total, []

    def forgetful(function, *args, **options):
        calls.append(function)
        if len(calls) == 4:
            partitions.parts.pop()
        return total(function, *args, **options)

    partitions.total = forgetful
    with pytest.raises(RuntimeError, match="saw 600 of 900 rows"):
        fit(LinearSVC(), partitions)


def test_add():
    left = {"a": [np.ones(2), (1.0, 2)], "b": 1}
    found = add(left, left)
    assert_array_equal(found["a"][0], [2, 2])
    assert found["a"][1] == [2.0, 4]
    assert found["b"] == 2


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (MixtureSVC(), TypeError, "these can: LinearSVC"),
        (LinearSVC(solver="dual"), ValueError, "solver must be 'auto', got 'dual'"),
        (LocallyLinearSVC(multi_class="crammer_singer", loss="hinge"), ValueError, "multi_class='ovr'"),
        (KMeansSVC(coupling=ClusteredTasks()), ValueError, "coupling=None"),
        (ClusteredSVC(clusterer=KMeans()), ValueError, "fit it to a sample"),
        (LocallyLinearSVC(anchors="elsewhere"), ValueError, "got 'elsewhere'"),
        (ClusteredSVC(C=-1), ValueError, "C must be"),
    ],
    ids=str,
)
def test_what_cannot_be_done_is_refused(model, error, message, data):
    X, y, _ = data
    with pytest.raises(error, match=message):
        fit(model, cut(X, y))


@pytest.mark.parametrize(
    "model", [LinearSVC(1e6), ClusteredSVC(4, C=1e6, calibration="sigmoid", random_state=0)], ids=repr
)
def test_max_time_stops_with_a_usable_model(model, data):
    X, y, _ = data
    scaled = X * np.logspace(-3, 3, X.shape[1]).astype(X.dtype)
    model.set_params(tol=1e-15, max_iter=10**9, max_time=0.05)
    with pytest.warns(ConvergenceWarning, match=r"max_time=0.05 s.*gap of \d"):
        fit(model, cut(scaled, y))
    assert np.isfinite(model.decision_function(scaled)).all()
    assert not hasattr(model, "_fitting")


def test_lines_of_text_are_those_of_a_fit_in_memory(data, capsys):
    X, y, _ = data
    fit(LinearSVC(verbose=1), cut(X, y))
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(
        r"\[LinearSVC\] output 1/\d+, iteration \d+: objective \S+, gap \S+, 1 of 1 tiles live", lines[0]
    )
    assert "required" in lines[-1]


def test_bad_partitions_are_named(data):
    X, y, weight = data
    broken = X.copy()
    broken[700] = np.nan
    with pytest.raises(ValueError, match="rows 500 to 900: Input X contains NaN"):
        fit(LinearSVC(), cut(broken, y, None, (500,)))
    with pytest.raises(ValueError, match="rows 0 to 500: sample_weight must not be negative"):
        fit(LinearSVC(), cut(X, y, -weight, (500,)))
    with pytest.raises(ValueError, match="only one class"):
        fit(LinearSVC(), cut(X, np.zeros(N), None, (500,)))
    with pytest.raises(ValueError, match="continuous"):
        fit(LinearSVC(), cut(X, X[:, 0], None, (500,)))
    with pytest.raises(ValueError, match="there is nothing to fit"):
        fit(LinearSVC(), cut(X, y, np.zeros(N), (500,)))
    parts = InMemory([Raw(X[:500], y[:500], None, "first"), Raw(X[500:, :4], y[500:], None, "second")])
    with pytest.raises(ValueError, match="n_features: 4 in second, 6 in first"):
        fit(LinearSVC(), parts)


def test_certificate_of_partitions_is_that_of_the_whole():
    problem, X = hard_problem(1, shape="cells", loss="hinge")
    job = Job(0, 0, problem.coupling, problem.loss)
    part = part_of(problem, X)
    rng = np.random.RandomState(0)
    weights = rng.standard_normal(problem.shape) * 0.1
    sums, implied, _ = Evaluate(job, weights, 0.5, 0.0, None).of(part.share(job, 1))
    response = np.clip(0.5 * problem.cost * (1 - margins(problem, weights)), 0, problem.cost)
    expected = certify(problem, response)
    assert_allclose(implied, expected.weights, atol=1e-12)
    assert sums[3] - 0.5 * np.vdot(implied, implied) == pytest.approx(expected.dual)
