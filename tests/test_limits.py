"""Time limits, callbacks and lines of text of the estimators that the solvers drive."""

import re
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import badly_scaled_data
from sklearn.base import clone
from sklearn.callback import FitCallback, ProgressBar
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning

from svmosaic import (
    BoostedLinearSVC,
    ClusteredSVC,
    GaussianMixtureClassifier,
    HierarchicalMixtureSVC,
    KernelSVC,
    KMeansSVC,
    LinearSVC,
    LocalCodingSVC,
    LocallyLinearSVC,
    MixtureSVC,
    MosaicClassifier,
)
from svmosaic.couplings import ClusteredTasks, Coupling
from svmosaic.datasets import make_circle_in_square
from svmosaic.solvers import Control, Problem, Rows, solve
from svmosaic.solvers.certificates import certify, margins, primal

X_IRIS, Y_IRIS = load_iris(return_X_y=True)
ENDLESS = {"C": 1e8, "tol": 1e-12, "max_iter": 10**9, "random_state": 0}
SLOW = [
    LinearSVC(solver="dual", **ENDLESS),
    LinearSVC(solver="sgd", **ENDLESS),
    KMeansSVC(3, solver="dual", **ENDLESS),
    ClusteredSVC(3, solver="dual", n_jobs=2, **ENDLESS),
    LocallyLinearSVC(6, n_neighbors=3, solver="dual", **ENDLESS),
    LocallyLinearSVC(6, n_neighbors=3, multi_class="crammer_singer", loss="hinge", **ENDLESS),
    LocalCodingSVC(6, n_neighbors=3, solver="dual", **ENDLESS),
    KernelSVC(6, solver="dual", **ENDLESS),
]


@pytest.mark.parametrize("model", SLOW, ids=repr)
def test_max_time_stops_with_a_usable_model(model):
    X, _ = badly_scaled_data(n=1500, d=6)
    y = np.arange(1500) % 3  # nothing to be learned: descent goes on for ever
    # Passes without progress end stochastic descent soon, if its time does not.
    limit = 0.002 if model.solver == "sgd" else 0.6
    model = clone(model).set_params(max_time=limit)
    began = time.process_time()
    with pytest.warns(ConvergenceWarning, match=rf"max_time={limit} s.*(gap of \d|still falling)"):
        model.fit(X, y)
    # Generous for a busy machine; without the limit it would take days.
    assert time.process_time() - began < 15
    assert np.isfinite(model.decision_function(X)).all()
    assert not hasattr(model, "_fitting")


@pytest.mark.parametrize("model", [MixtureSVC(3), HierarchicalMixtureSVC((2, 2))], ids=lambda m: type(m).__name__)
def test_max_time_cuts_the_solves_of_a_mixture_short(model, experts):
    """A single one of them would go on for hours."""
    X, _ = badly_scaled_data(n=1500, d=6)
    y = np.arange(1500) % 3
    experts(tol=1e-13, max_iter=10**9)
    endless = {"label_weight": 1e8, "solver": "dual"}
    model = clone(model).set_params(max_time=0.6, tol=0.0, max_iter=10**6, random_state=0, **endless)
    began = time.process_time()
    with pytest.warns(ConvergenceWarning, match=r"EM stopped after max_time=0.6 s and \d+ iterations"):
        model.fit(X, y)
    assert time.process_time() - began < 15
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize(("calibration", "share"), [(None, 0.6), ("sigmoid", 0.1)])
def test_max_time_stops_boosting(calibration, share):
    X, y = badly_scaled_data(n=1500, d=6)
    model = BoostedLinearSVC(
        10**6, C=1e8, tol=1e-12, max_iter=10**9, solver="dual", max_time=0.6, calibration=calibration, random_state=0
    )
    began = time.process_time()
    with pytest.warns(
        ConvergenceWarning, match=rf"stopped after {share} s of max_time=0.6, with \d+ of n_estimators=1"
    ):
        model.fit(X, y)
    assert time.process_time() - began < 15
    assert model.stop_reason_ == "max_time"
    assert 1 <= model.n_estimators_ < 10**6
    assert np.isfinite(model.decision_function(X)).all()
    if calibration is not None:
        assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_max_time_between_rounds_keeps_whole_rounds():
    X, y = make_circle_in_square(200_000, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = BoostedLinearSVC(max_time=0.5, random_state=0).fit(X, y)
    plain = BoostedLinearSVC(model.n_estimators_, random_state=0).fit(X, y)
    same = model.n_estimators_ - 1  # the last may have been cut short
    assert_array_equal(model.estimator_coef_[:same], plain.estimator_coef_[:same])


@pytest.mark.parametrize("unlabelled", [False, True])
def test_max_time_stops_the_growth_of_densities(unlabelled):
    X, y = make_classification(2000, 8, n_informative=6, random_state=0)
    if unlabelled:
        y[1000:] = -1
    model = GaussianMixtureClassifier(512, min_count=0, tol=0.0, max_iter=10**6, max_time=0.4, random_state=0)
    began = time.process_time()
    with pytest.warns(ConvergenceWarning, match=r"max_time=0.4 s and \d+ EM steps, with \d+ of n_densities=512"):
        model.fit(X, y)
    assert time.process_time() - began < 15
    assert model.stop_reason_ == "max_time"
    assert_allclose(model.weights_.sum(), 1.0)
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", SLOW, ids=repr)
def test_a_model_that_was_stopped_is_no_worse_than_none(model):
    """At a huge C the first epochs overshoot by many orders of magnitude: P(0) is C times the number of rows."""
    X, _ = badly_scaled_data(n=300, d=6)
    y = np.arange(300) % 3
    model = clone(model).set_params(max_iter=1).fit(X, y)
    assert (model.objective_ <= 1e8 * 300 * (1 + 1e-12)).all()


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_weights_that_overshot_are_shortened(loss):
    X, y = badly_scaled_data(n=300, d=6)
    tile = np.zeros((300, 1), np.int32)
    problem = Problem(Rows(X), tile, None, Coupling.independent(1), y, np.full(300, 1e8), loss)
    (solution,) = solve([problem], solver="dual", tol=1e-12, max_iter=1)
    raw = certify(problem, solution.alpha)
    assert raw.primal > problem.primal_at_zero, "nothing to be mended"
    assert solution.primal < 0.999 * problem.primal_at_zero
    assert solution.dual == raw.dual
    assert not solution.converged
    lengths = solution.weights[np.abs(raw.weights) > 0] / raw.weights[np.abs(raw.weights) > 0]
    assert_allclose(lengths, lengths[0])
    # No other length is better, and the value is that of the weights.
    for share in (0.9, 1.0, 1.1):
        weights = share * solution.weights
        value = primal(problem, weights, margins(problem, weights))
        if share == 1.0:
            assert_allclose(value, solution.primal, rtol=1e-9)
        assert value >= solution.primal * (1 - 1e-9)


def test_newton_stops_in_time_too():
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((20_000, 100)), rng.randint(40, size=20_000)
    with pytest.warns(ConvergenceWarning, match=r"max_time=0.1 s"):
        LinearSVC(10.0, solver="newton", tol=1e-10, max_time=0.1).fit(X, y)


def test_every_output_gets_its_share_of_the_time():
    """The first classes may not use it all up: each of them gets somewhere."""
    X, y = badly_scaled_data(n=800, d=6)
    problem = Problem(Rows(X), np.zeros((800, 1), np.int32), None, Coupling.independent(1), y, np.full(800, 1e8))
    epochs = {}
    control = Control(0.8, lambda place, n_iter, certify: epochs.update({place: n_iter}))
    solutions = solve([problem] * 4, solver="dual", tol=1e-12, max_iter=10**9, control=control)
    assert control.out_of_time
    assert sorted(epochs) == [(k, None) for k in range(4)]
    assert [s.n_iter for s in solutions] == [epochs[k, None] for k in range(4)]
    assert min(epochs.values()) > 10


@pytest.mark.parametrize("value", [0, -1.0, "soon", np.nan])
@pytest.mark.parametrize("kind", [LinearSVC, BoostedLinearSVC, GaussianMixtureClassifier, MixtureSVC])
def test_wrong_limits(kind, value):
    with pytest.raises(ValueError, match=r"^max_time must be a finite number, above 0 or None"):
        kind(max_time=value).fit(X_IRIS, Y_IRIS)


def test_a_limit_that_is_not_reached_changes_nothing():
    model = ClusteredSVC(3, random_state=0).fit(X_IRIS, Y_IRIS)
    limited = clone(model).set_params(max_time=1e6).fit(X_IRIS, Y_IRIS)
    assert_array_equal(model.mosaic_.coef, limited.mosaic_.coef)


class Watcher:
    """Scores every iterate, and may stop after some of them."""

    def __init__(self, stop_after=None, task="iteration"):
        self.stop_after, self.task = stop_after, task
        self.events, self.scores = [], []

    def setup(self, estimator, context):
        self.events.append("setup")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        self.events.append(f"end {context.task_name}")
        if context.task_name == self.task:
            self.scores.append(fitted_estimator.score(X, y))
            return self.stop_after is not None and len(self.scores) >= self.stop_after
        return None

    def teardown(self, estimator, context):
        self.events.append("teardown")


WATCHED = [
    LinearSVC(random_state=0),
    LinearSVC(solver="newton", n_jobs=2, random_state=0),
    LinearSVC(solver="sgd", max_iter=4, random_state=0),
    KMeansSVC(3, random_state=0, n_jobs=2),
    KMeansSVC(3, coupling=ClusteredTasks(2), max_iter=20, random_state=0),
    ClusteredSVC(3, random_state=0, calibration="temperature"),
    LocallyLinearSVC(6, n_neighbors=3, random_state=0),
    LocallyLinearSVC(6, n_neighbors=3, multi_class="crammer_singer", loss="hinge", random_state=0),
    LocalCodingSVC(6, n_neighbors=3, random_state=0),
    KernelSVC(6, random_state=0),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", WATCHED, ids=repr)
def test_callbacks_see_every_iteration_and_change_nothing(model):
    model = clone(model).set_params(tol=0.03)
    plain = clone(model).fit(X_IRIS, Y_IRIS)
    watcher = Watcher()
    assert isinstance(watcher, FitCallback)
    model = clone(model).set_callbacks(watcher).fit(X_IRIS, Y_IRIS)
    assert_array_equal(model.decision_function(X_IRIS), plain.decision_function(X_IRIS))
    assert watcher.events[:2] == ["setup", "begin fit"]
    assert watcher.events[-2:] == ["end fit", "teardown"]
    for task in ("output", "iteration"):
        assert watcher.events.count(f"begin {task}") == watcher.events.count(f"end {task}") > 0
    assert len(watcher.scores) >= model.n_iter_
    # The last of several outputs makes the model whole.
    assert max(watcher.scores) >= 0.6


def test_callbacks_see_every_round_of_boosting_and_can_stop_it():
    X, y = make_classification(300, 10, flip_y=0.2, random_state=0)
    plain = BoostedLinearSVC(6, random_state=0).fit(X, y)
    watcher = Watcher(task="round")
    model = BoostedLinearSVC(6, random_state=0).set_callbacks(watcher).fit(X, y)
    assert_array_equal(model.decision_function(X), plain.decision_function(X))
    assert watcher.scores == [np.mean(answer == y) for answer in plain.staged_predict(X)]
    stopped = BoostedLinearSVC(6, random_state=0).set_callbacks(Watcher(2, task="round")).fit(X, y)
    assert (stopped.n_estimators_, stopped.stop_reason_) == (2, "callback")


def test_callbacks_see_every_wave_of_the_search_and_can_end_it():
    settings = {"effort": "quick", "max_tiles": 8, "families": ("linear", "local"), "blend": False, "random_state": 0}
    plain = MosaicClassifier(**settings).fit(X_IRIS, Y_IRIS)
    watcher = Watcher()
    model = MosaicClassifier(**settings).set_callbacks(watcher).fit(X_IRIS, Y_IRIS)
    assert_array_equal(model.decision_function(X_IRIS), plain.decision_function(X_IRIS))
    assert 1 < watcher.events.count("end wave") < len(model.leaderboard_)
    assert watcher.events[-2:] == ["end fit", "teardown"]

    class AfterOne(Watcher):
        def on_fit_task_end(self, estimator, context):
            return context.task_name == "wave"

    stopped = MosaicClassifier(**settings).set_callbacks(AfterOne()).fit(X_IRIS, Y_IRIS)
    assert stopped.stop_reason_ == "stopped by a callback"
    assert 0 < len(stopped.leaderboard_) < len(model.leaderboard_)
    assert stopped.best_score_ == max(line["score"] for line in stopped.leaderboard_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["dual", "newton", "sgd"])
def test_callbacks_can_stop_a_solve(solver):
    X, y = make_classification(300, 10, flip_y=0.2, random_state=0)
    model = LinearSVC(100.0, solver=solver, tol=1e-10, max_iter=10_000, random_state=0)
    model.set_callbacks(Watcher(stop_after=2)).fit(X, y)
    assert model.n_iter_ <= 2
    assert np.isfinite(model.decision_function(X)).all()


def test_a_callback_that_fails_ends_the_fit():
    class Failing(Watcher):
        def on_fit_task_end(self, estimator, context):
            raise RuntimeError("no more")

    failing = Failing()
    model = LinearSVC(n_jobs=2, random_state=0).set_callbacks(failing)
    with pytest.raises(RuntimeError, match="no more"):
        model.fit(X_IRIS, Y_IRIS)
    assert failing.events[-1] == "teardown"
    assert not hasattr(model, "mosaic_")
    assert not hasattr(model, "_fitting")


def test_progress_bars_of_scikit_learn_work(capsys):
    KMeansSVC(3, random_state=0).set_callbacks(ProgressBar()).fit(X_IRIS, Y_IRIS)
    assert "KMeansSVC" in capsys.readouterr().out


@pytest.mark.parametrize("model", [LinearSVC(solver="newton"), ClusteredSVC(4), LocallyLinearSVC(6, n_neighbors=3)])
def test_verbose_tells_objective_gap_and_live_tiles(model, capsys):
    X, y = make_classification(300, 10, flip_y=0.1, random_state=0)
    model = clone(model).set_params(verbose=1, random_state=0).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    pattern = r"\[\w+\] output 1/1, iteration \d+: objective \S+, gap \S+, \d+ of \d+ tiles live"
    assert re.fullmatch(pattern, lines[0])
    assert f"objective {model.objective_[0]:.6g}, gap {model.dual_gap_[0]:.3g}" in lines[-1]
    assert "tiles live" in lines[-1]
