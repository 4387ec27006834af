"""The EM loop: its steps against plain formulas, and its promise that the objective never falls."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import check_grad
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.callback import FitCallback
from sklearn.datasets import make_blobs, make_classification, make_moons
from sklearn.exceptions import ConvergenceWarning

from svmosaic import HierarchicalMixtureSVC, MixtureSVC, MultiTaskMixtureSVC, _core
from svmosaic.datasets import make_two_spirals, make_xor
from svmosaic.estimators import _em
from svmosaic.gates import GaussianGate, HierarchicalGate, RBFGate, Responsibilities
from svmosaic.solvers import Rows

SETS = {
    "moons": make_moons(300, noise=0.25, random_state=0),
    "xor": make_xor(300, spread=0.5, random_state=0),
    "spirals": make_two_spirals(400, random_state=0),
    "overlap": make_classification(300, 8, n_informative=4, flip_y=0.2, random_state=0),
    "three classes": make_blobs(300, n_features=3, centers=7, cluster_std=3.0, random_state=0),
}
SETS["three classes"] = SETS["three classes"][0], SETS["three classes"][1] % 3
MODELS = [
    MixtureSVC(6, nu=0.0, C=10.0, random_state=0),
    MixtureSVC(6, nu=0.0, gate="paper", random_state=0),
    HierarchicalMixtureSVC((2, 3), nu=0.0, random_state=0),
    MultiTaskMixtureSVC(5, n_groups=2, covariance_floor=1e-3, random_state=0),
    MultiTaskMixtureSVC(5, n_groups=2, groups="hard", covariance_floor=1e-2, random_state=0),
    MultiTaskMixtureSVC(5, groups=None, covariance="diag", covariance_floor=1e-2, random_state=0),
]


def rising(model):
    """No step lowers the objective by more than rounding."""
    return np.diff(model.objective_).min() >= -1e-9 * np.abs(model.objective_).max()


def some_tree(rng, n_features, inside):
    """Two top nodes with three and two leaves."""
    parent = np.array([-1, -1, 0, 0, 0, 1, 1], dtype=np.int32)
    prior = np.array([0.3, 0.7, 0.2, 0.5, 0.3, 0.6, 0.4])
    tau = np.array([0.3, 0.3, 0.8, 0.8, 0.8, 1.1, 1.1])
    return HierarchicalGate(rng.standard_normal((7, n_features)), tau, prior, parent, inside)


def log_weights(gate, X):
    """The gate's formula, node by node."""
    distance = np.square(X[:, None, :] - gate.centers[None]).sum(axis=2)
    path = np.zeros(distance.shape)
    for a, top in enumerate(gate.parent):
        siblings = np.flatnonzero(gate.parent == top)
        logit = -gate.tau * distance
        if gate.inside:
            logit = logit + np.log(gate.prior)
        path[:, a] = logit[:, a] - logsumexp(logit[:, siblings], axis=1)
        if not gate.inside:
            path[:, a] += np.log(gate.prior[a])
        if top >= 0:
            path[:, a] += path[:, top]
    return path[:, gate.leaf]


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("shift", [0.0, 100.0])
def test_gate_is_its_formula(inside, storage, shift):
    rng = np.random.RandomState(0)
    X = rng.standard_normal((50, 3)) + shift
    gate = some_tree(rng, 3, inside)
    gate = HierarchicalGate(gate.centers + shift, gate.tau, gate.prior, gate.parent, inside)
    assert_allclose(gate.log_weights(storage(X)), log_weights(gate, X), atol=1e-9)
    tile, weight = gate.code(storage(X))
    assert_array_equal(tile[0], np.arange(5))
    assert_allclose(weight, np.exp(log_weights(gate, X)), atol=2e-7)
    if inside:
        assert_allclose(weight.sum(axis=1), 1.0, atol=1e-6)


@pytest.mark.parametrize("kind", ["tree", "given"])
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_e_step_is_its_formula(kind, storage, dtype):
    rng = np.random.RandomState(1)
    X = rng.standard_normal((80, 3)).astype(dtype)
    gate = some_tree(rng, 3, True)
    tiles = rng.standard_normal((5, 2, 4))
    y = rng.choice([-1, 1], (80, 2)).astype(np.int8)
    gates = (gate.tree, None) if kind == "tree" else (None, log_weights(gate, X.astype(float)))
    log_likelihood = np.empty(80)
    count, expert, q = _core.e_step(Rows(storage(X), 1.5).core, *gates, tiles, y, 0.7, 0.0, log_likelihood)
    scores = np.einsum("jcf,if->ijc", tiles[:, :, :3], X) + 1.5 * tiles[:, :, 3]
    joint = log_weights(gate, X) - 0.7 * np.maximum(0, 1 - y[:, None, :] * scores).sum(axis=2)
    assert_allclose(log_likelihood, logsumexp(joint, axis=1), rtol=1e-6 if dtype == np.float32 else 1e-12)
    dense = np.zeros((80, 5))
    dense[np.repeat(np.arange(80), count), expert] = q
    assert_allclose(dense, np.exp(joint - logsumexp(joint, axis=1, keepdims=True)), atol=1e-6)


def test_small_responsibilities_are_dropped_and_the_rest_sums_to_one():
    rng = np.random.RandomState(2)
    X = rng.standard_normal((200, 3))
    gate = some_tree(rng, 3, True)
    tiles, y = rng.standard_normal((5, 1, 4)), rng.choice([-1, 1], (200, 1)).astype(np.int8)
    everything = _core.e_step(Rows(X).core, gate.tree, None, tiles, y, 1.0, 0.0, np.empty(200))
    count, _, q = _core.e_step(Rows(X).core, gate.tree, None, tiles, y, 1.0, 0.05, np.empty(200))
    assert len(q) < len(everything[2])
    assert q.min() >= 0.05
    assert_allclose(np.add.reduceat(q, np.concatenate([[0], np.cumsum(count)[:-1]])), 1.0)


@pytest.mark.parametrize("inside", [True, False])
def test_gradient_of_the_gate_agrees_with_finite_differences(inside):
    rng = np.random.RandomState(0)
    X, weight = rng.standard_normal((60, 3)), rng.uniform(0.5, 2, 60)
    q = rng.dirichlet(np.ones(5), 60)
    shares = Responsibilities(np.arange(0, 301, 5), np.tile(np.arange(5, dtype=np.int32), 60), q.ravel(), weight, 5)
    flat = RBFGate.from_centers(rng.standard_normal((5, 3)), 0.7, prior=rng.dirichlet(np.ones(5)), inside=inside)
    for gate in (flat, some_tree(rng, 3, inside)):

        def at(z, gate=gate):
            moved = type(gate)(z.reshape(gate.centers.shape), gate.tau, gate.prior, gate.parent, inside)
            value, gradient = moved.cost(Rows(X), shares)
            return value, gradient.ravel()

        value, gradient = at(gate.centers.ravel())
        assert_allclose(value, -np.sum(weight[:, None] * q * log_weights(gate, X)))
        error = check_grad(lambda z: at(z)[0], lambda z: at(z)[1], gate.centers.ravel())
        assert error < 1e-5 * np.linalg.norm(gradient)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("steps", [1, 1000], ids=["inexact", "exact"])
def test_objective_rises_at_every_iteration(name, model, steps, experts):
    X, y = SETS[name]
    experts(max_iter=steps)
    model.set_params(solver="dual", max_iter=8, tol=0.0).fit(X, y)
    assert rising(model)
    assert model.objective_[-1] > model.objective_[0]


def test_objective_falls_without_the_acceptance_rule(monkeypatch, experts):
    """Erratum 6: it is the rule, not luck, that keeps the objective from falling with inexact solves."""
    X, y = SETS["overlap"]
    experts(max_iter=1)
    model = MixtureSVC(4, C=100.0, nu=0.0, gate_iter=0, solver="dual", tol=0.0, random_state=0)
    assert model.fit(X, y).stop_reason_ != "objective fell"
    monkeypatch.setattr(_em, "improved", lambda old, new: np.ones_like(np.atleast_1d(old), dtype=bool))
    with pytest.warns(match="EM objective fell"):
        model.fit(X, y)
    assert model.stop_reason_ == "objective fell"


def test_result_does_not_depend_on_threads():
    X, y = make_two_spirals(3000, random_state=0)
    one, two = (MixtureSVC(12, max_iter=3, n_jobs=n, random_state=0).fit(X, y) for n in (1, 2))
    assert_array_equal(one.decision_function(X), two.decision_function(X))
    assert_array_equal(one.objective_, two.objective_)


def test_stops():
    X, y = SETS["moons"]
    assert MixtureSVC(4, tol=0.05, random_state=0).fit(X, y).stop_reason_ == "tol"
    short = MixtureSVC(4, tol=0.0, max_iter=2, random_state=0).fit(X, y)
    assert (short.stop_reason_, short.n_iter_, len(short.objective_)) == ("max_iter", 2, 3)
    with pytest.warns(ConvergenceWarning, match=r"MixtureSVC: EM stopped after max_time=1e-09 s and 1 iterations"):
        hasty = MixtureSVC(4, tol=0.0, max_time=1e-9, random_state=0).fit(X, y)
    assert (hasty.stop_reason_, hasty.n_iter_) == ("max_time", 1)


@pytest.mark.parametrize("model", MODELS[2:4], ids=repr)
def test_early_stopping_returns_the_best_iterate(model):
    X, y = SETS["overlap"]
    model.set_params(early_stopping=True, validation_fraction=0.3, n_iter_no_change=2, tol=0.0, max_iter=30)
    model.fit(X, y)
    model.set_params(early_stopping=False)
    scores = model.validation_score_
    assert model.stop_reason_ == "early_stopping"
    assert len(scores) == len(model.objective_)
    assert scores.argmax() == len(scores) - 3


class Recorder:
    """A callback that looks at every iterate, and may stop the fit."""

    def __init__(self, stop_after=None):
        self.stop_after = stop_after
        self.scores, self.events = [], []

    def setup(self, estimator, context):
        self.events.append("setup")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        if context.parent is not None and context.estimator_name == context.parent.estimator_name:
            self.scores.append(fitted_estimator.score(X, y))
            return self.stop_after is not None and len(self.scores) >= self.stop_after

    def teardown(self, estimator, context):
        self.events.append("teardown")


@pytest.mark.parametrize("model", MODELS[1:4], ids=repr)
def test_callbacks_see_every_iteration_and_can_stop_it(model):
    X, y = SETS["moons"]
    model.set_params(max_iter=6, tol=0.0)
    watcher = Recorder()
    assert isinstance(watcher, FitCallback)
    model.set_callbacks(watcher).fit(X, y)
    assert len(watcher.scores) == len(model.objective_) - 1
    assert watcher.scores[-1] == model.score(X, y)
    assert watcher.events[0] == "setup"
    assert watcher.events[-1] == "teardown"
    stopper = Recorder(stop_after=2)
    model.set_callbacks(stopper).fit(X, y)
    assert (model.n_iter_, model.stop_reason_) == (2, "callback")
    model.set_callbacks()


@pytest.mark.parametrize("model", MODELS[1:4], ids=repr)
def test_every_iteration_is_a_line_with_objective_gap_and_live_tiles(model, capsys):
    X, y = SETS["moons"]
    model = clone(model).set_params(max_iter=2, tol=0.0, verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(model.objective_)
    for number, (line, objective) in enumerate(zip(lines, model.objective_, strict=True)):
        found = re.match(
            rf"\[\w+\] iteration {number}: objective (\S+), gap (\S+) in the experts, (\d+) of \d+ tiles live", line
        )
        assert float(found[1]) == pytest.approx(objective, rel=1e-5)
        # Of all outputs together, each solved to EXPERT_TOL of its objective at zero.
        assert 0 <= float(found[2]) <= 1.01 * _em.EXPERT_TOL * model.label_weight * len(X) * 2
    assert int(found[3]) == model.n_experts_


def test_duals_of_pairs_that_stay_are_carried_over():
    # Row 0 had experts 0 and 2, row 1 had expert 1, row 2 expert 2; expert 1 goes.
    pairs = np.array([0, 0, 1, 2], dtype=np.int32), np.array([0, 2, 1, 2], dtype=np.int32)
    kept = np.array([True, False, True])
    # Now row 0 has the old expert 2, row 1 the old 0, row 2 both.
    shares = Responsibilities(np.array([0, 1, 2, 4]), np.array([1, 0, 0, 1], np.int32), np.ones(4), np.ones(3), 2)
    found = _em.carried_over([np.array([0.1, 0.2, 0.3, 0.4])], pairs, kept, shares)
    assert_array_equal(found, [[0.2, 0.0, 0.0, 0.4]])
    nothing = _em.carried_over([np.array([0.3])], (np.array([1]), np.array([1])), kept, shares)
    assert_array_equal(nothing, [np.zeros(4)])


def test_effective_number_of_experts():
    trace = _em.Trace()
    trace.add(0.0, np.full(5, 2.0))
    trace.add(0.0, np.array([3.0, 0.0]))
    assert_allclose(trace.effective_experts, [5.0, 1.0])


def test_gaussians_without_rows_go():
    rng = np.random.RandomState(0)
    X, gate = (
        rng.standard_normal((60, 2)),
        GaussianGate(np.zeros((3, 2)), np.ones((3, 2)), np.full(3, 1 / 3), 0.1, "diag"),
    )
    shares = Responsibilities.hard(rng.choice([0, 2], 60), np.ones(60), 3)
    after, kept = gate.updated(Rows(X), X, shares)
    assert_array_equal(kept, [True, False, True])
    assert after.n_tiles == 2


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_intercept_constant_is_the_root_mean_square_norm(storage):
    X, weight = np.random.RandomState(0).standard_normal((30, 4)), np.arange(30.0)
    expected = np.sqrt(np.average((X**2).sum(axis=1), weights=weight))
    assert_allclose(_em.intercept_constant(storage(X), weight), expected)
    assert _em.intercept_constant(storage(0 * X), weight) == 1.0
