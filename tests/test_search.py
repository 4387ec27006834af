"""The search by waves: what it tries and in which order, what time and failures end, and what it hands over."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from searches import ending_after, search_of
from sklearn.datasets import make_classification
from sklearn.metrics import accuracy_score, log_loss, r2_score

from svmosaic import LinearSVC, MosaicClassifier, MosaicRegressor
from svmosaic.estimators.data import validate_training
from svmosaic.search import FAMILIES, choice, engine, plan
from svmosaic.search.engine import Search
from svmosaic.search.judge import ClassJudge

FREE = {"time_budget": None, "effort": "quick", "random_state": 0}


class Canned(Search):
    """A search whose fits take no time: scores are the labels' signs, and more noise the later a candidate comes."""

    def __init__(self, n_rows=400, *, n_classes=2, effort="quick", deadline=None, fails=(), noise=None, **options):
        rng = np.random.RandomState(0)
        y = np.arange(n_rows) % n_classes
        X = np.column_stack([y, rng.standard_normal((n_rows, 2)), np.exp(2.0 * rng.standard_normal(n_rows))])
        X, target = validate_training(LinearSVC(), X, y)
        judge = ClassJudge(X, target, "accuracy")
        judge.scores_of = self.canned_scores
        settings = {"most_tiles": 10**5, "n_jobs": 1, "watch": lambda search: False} | options
        super().__init__(
            X, y, judge, plan.folds_of(target, 0.2, rng), effort=effort, deadline=deadline, seed=0,
            say=lambda line: None, **settings,
        )  # fmt: skip
        self.fails, self.order = fails, {candidate: k for k, candidate in enumerate(self.queue)}
        self.noise = noise or (lambda candidate: 1.0 + 0.2 * self.order.get(candidate, 50))

    def fit(self, candidate, rows, limit=None, n_jobs=None):
        if candidate.family in self.fails:
            raise ValueError("diverged")
        return SimpleNamespace(candidate=candidate, mosaic_=SimpleNamespace(n_bytes=1, n_tiles=candidate.n_tiles))

    def scaled(self, candidate, X):
        return X

    def canned_scores(self, model, rows):
        rng, n_outputs = np.random.RandomState(len(rows)), self.judge.target.n_outputs
        signs = 2.0 * (rows[:, :1] == (1 if n_outputs == 1 else np.arange(n_outputs))) - 1.0
        return signs + self.noise(model.candidate) * rng.standard_normal(signs.shape)

    def told(self):
        """What was tried, as far as it must not depend on time and threads."""
        return [(t.candidate, t.level, t.score, t.loss, t.failure) for t in self.trials]


def ran(*arguments, **options):
    search = Canned(*arguments, **options)
    search.run()
    return search


# ---- what is tried ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_rows", "n_rungs"), [(400, 3), (5000, 2), (40_000, 3)])
def test_the_better_half_goes_on(n_rows, n_rungs):
    search = ran(n_rows)
    assert len(search.rungs) == n_rungs
    assert [t.candidate for t in search.trials if t.level == 0] == search.queue
    for level in range(n_rungs - 1):
        here = sorted((t for t in search.trials if t.level == level), key=lambda t: t.loss)
        gone_on = {t.candidate for t in search.trials if t.level == level + 1}
        assert {t.candidate for t in here[: -(-len(here) // 2)]} <= gone_on
        assert here[-1].candidate not in gone_on
    assert search.stop_reason == "nothing left to try"
    assert not search.out_of_time
    top = search.trials[[t.level for t in search.trials].index(n_rungs - 1)]
    assert len(np.unique(top.rows)) == (n_rows if n_rows <= plan.CROSS_VALIDATED else n_rows // 5)


def test_variations_of_the_leaders_follow_as_long_as_they_are_better():
    best = Canned(effort="best").queue[0]
    assert best.family == "linear"
    search = ran(effort="best", noise=lambda c: 1.0 + abs(np.log(c.C or 1e9)) if c.family == "linear" else 20.0)
    assert min(search.trials, key=lambda t: t.loss).candidate.C in (0.64, 1.0)  # from 0.01, by factors of four
    assert len({t.candidate for t in search.trials} - set(search.queue)) <= plan.EFFORTS["best"][1]
    gates = [c for c in Canned(effort="best").queue if c.family == "learned"]
    stuck = ran(effort="best", noise=lambda candidate: 1.0 if candidate in gates else 20.0)
    assert stuck.stop_reason == "no better model in 2 waves"
    assert 6 < len({t.candidate for t in stuck.trials} - set(stuck.queue)) <= 12


@pytest.mark.parametrize("n_rows", [100, 400, 5000])
def test_efforts_nest(n_rows):
    quick, good, best = (Canned(n_rows, effort=effort).queue for effort in ("quick", "good", "best"))
    assert quick == good[: len(quick)]
    assert good == best[: len(good)]
    assert len(quick) < len(good) < len(best)
    assert len({c.family for c in quick}) >= 5  # the first few are of all kinds


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("most_tiles", [2, 10, 300])
def test_families_and_tiles_are_bounded(most_tiles, n_classes):
    search = ran(effort="best", most_tiles=most_tiles, n_classes=n_classes)
    assert all(t.candidate.n_tiles <= most_tiles for t in search.trials)
    two = ran(effort="best", families=("local", "trees"))
    assert {t.candidate.family for t in two.trials} == {"local", "trees"}
    assert {t.candidate.family for t in ran(effort="best").trials} == set(FAMILIES)
    assert set(FAMILIES) == set(plan.CLASSIFIERS) == set(plan.REGRESSORS)


def test_candidates_that_fail_leave_the_others_in_the_race():
    whole, search = ran(), ran(fails=("linear", "kernel"))
    failed = [t for t in search.trials if t.failure]
    assert {(t.candidate.family, t.failure) for t in failed} == {("linear", "diverged"), ("kernel", "diverged")}
    assert {t.level for t in failed} == {0}
    assert {t.level for t in search.trials} == {0, 1, 2}
    first = [t.candidate for t in whole.trials if t.level == 0]
    assert [t.candidate for t in search.trials if t.level == 0] == first
    assert all(t.failure == "scores are not finite" for t in ran(noise=lambda candidate: np.inf).trials)
    with pytest.raises(ValueError, match="no candidate could be fitted: diverged"):
        choice.choose(ran(fails=FAMILIES))


def test_a_callback_ends_it_once_there_is_a_model():
    search = ran(watch=lambda search: True)
    assert search.stop_reason == "stopped by a callback"
    assert len(search.trials) == engine.FIRST_WAVE
    late = ran(watch=lambda search: True, fails=[c.family for c in search.queue[: engine.FIRST_WAVE]])
    assert any(not t.failure for t in late.trials)


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("n_reads", [0, 1, 7, 8, 20, 41, 90])
def test_time_ends_it_with_complete_trials_of_the_same_order(n_reads, n_jobs, monkeypatch):
    whole = ran()
    monkeypatch.setattr(engine, "perf_counter", ending_after(n_reads))
    search = ran(deadline=1.0, n_jobs=n_jobs)
    assert search.out_of_time
    assert search.stop_reason == "time budget"
    told = search.told()
    if n_jobs == 1:
        assert told == whole.told()[: len(told)]
    assert set(told) <= set(whole.told())
    assert told[0] == whole.told()[0]
    assert len(told) < len(whole.trials)
    assert all(np.isfinite(t.score) for t in search.trials)


def test_a_failure_in_the_time_without_limit_is_made_up_for(monkeypatch):
    monkeypatch.setattr(engine, "perf_counter", ending_after(0))
    first = [c.family for c in Canned().queue[: engine.FIRST_WAVE]]
    search = ran(deadline=1.0, fails=first)
    assert search.stop_reason == "time budget"
    assert [t.candidate.family in first for t in search.trials if not t.failure] == [False]


def test_models_of_the_worst_trials_are_let_go(monkeypatch):
    monkeypatch.setattr(engine, "MOST_BYTES", 40)
    search = ran()
    assert search.told() == ran().told()
    kept = [t for t in search.trials if t.models]
    assert 0 < sum(len(t.models) for t in kept) <= 40 + max(map(len, (t.models for t in kept)))
    assert min(search.trials, key=lambda t: t.loss) in kept
    assert all(model is not None for t in kept for model in t.models)


# ---- what users see -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def noisy():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((300, 5))
    X[:, 4] = np.exp(2 * X[:, 4])
    f = np.sin(2 * X[:, 0]) + X[:, 1] * (X[:, 2] > 0) + (X[:, 4] > 1) - 0.5
    return X, np.digitize(f + 0.4 * rng.standard_normal(300), [-0.7, 0.7])


def board(model):
    return [{name: value for name, value in line.items() if name != "seconds"} for line in model.leaderboard_]


def assert_same(one, other, X):
    assert repr(board(one)) == repr(board(other))
    assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    assert_array_equal(one.held_out_[1], other.held_out_[1])
    assert (one.best_score_, one.stop_reason_) == (other.best_score_, other.stop_reason_)


def test_the_seed_decides_and_neither_threads_nor_the_clock(noisy):
    X, y = noisy
    plain = MosaicClassifier(n_jobs=1, **FREE).fit(X, y)
    assert_same(MosaicClassifier(n_jobs=2, **FREE).fit(X, y), plain, X)
    rng = np.random.RandomState(0)
    with search_of(8, clock=lambda: rng.uniform(0, 1e9)):
        jumping = MosaicClassifier(n_jobs=1, **FREE).fit(X, y)
    assert_same(jumping, plain, X)
    patient = MosaicClassifier(n_jobs=1, **FREE | {"time_budget": 1e6}).fit(X, y)
    assert_same(patient, plain, X)
    other = MosaicClassifier(n_jobs=1, **FREE | {"random_state": 1}).fit(X, y)
    assert not np.array_equal(other.predict_proba(X), plain.predict_proba(X))


@pytest.mark.parametrize("n_reads", [1, 2, 5, 12, 40, 80])
def test_a_budget_that_ends_anywhere_leaves_a_judged_and_calibrated_model(n_reads, noisy):
    X, y = noisy
    with search_of(8, clock=ending_after(n_reads)):
        model = MosaicClassifier(n_jobs=1, **FREE | {"time_budget": 1e6, "max_tiles": 2000}).fit(X[:200], y[:200])
    assert model.budget_bound_
    chosen = [line for line in model.leaderboard_ if line["chosen"]]
    assert sum(line["weight"] for line in chosen) == pytest.approx(1)
    assert all(np.isfinite([line["score"], line["loss"]]).all() for line in chosen)
    assert model.mosaic_.n_tiles <= 2000
    rows, scores = model.held_out_
    held_out = accuracy_score(y[rows], scores.argmax(axis=1))
    assert model.best_score_ == pytest.approx(held_out, abs=0.02)  # of blends, by their tempered scores
    assert log_loss(y[rows], model.calibration_.probabilities(scores)) < 1.0  # 1.1 without knowing anything
    assert model.score(X[200:], y[200:]) > max(0.5, model.best_score_ - 0.1)
    assert model.stop_reason_ == "time budget"


@pytest.mark.parametrize("reason", ["no time", "worse"])
@pytest.mark.parametrize("blend", [True, False])
def test_without_a_last_fit_the_judged_models_answer_together(reason, blend, noisy, monkeypatch):
    X, y = noisy
    settings = FREE | {"blend": blend, "families": ("linear", "local", "boosted")}
    refitted = MosaicClassifier(**settings).fit(X, y)
    if reason == "no time":
        monkeypatch.setattr(choice, "perf_counter", lambda: 1e12)
        settings = settings | {"time_budget": 1e6}
    else:
        monkeypatch.setattr(choice, "NO_WORSE", 0.0)
    model = MosaicClassifier(**settings).fit(X, y)
    assert model.budget_bound_ == (reason == "no time")
    assert repr(board(model)) == repr(board(refitted))
    assert model.best_score_ == refitted.best_score_
    assert_array_equal(model.held_out_[1], refitted.held_out_[1])
    n_chosen = sum(line["chosen"] for line in model.leaderboard_)
    assert len(refitted.parts_) == n_chosen == (n_chosen if blend else 1)
    assert len(model.parts_) == 10 * n_chosen  # five parts were held out in turn, twice
    assert sum(weight for weight, _ in model.parts_) == pytest.approx(1)
    assert (model.predict(X) == refitted.predict(X)).mean() > 0.9
    if not blend:
        mean = sum(weight * part.decision_function(X) for weight, part in model.parts_)
        assert_allclose(model.decision_function(X), mean, atol=1e-9)
        # Each part was held out of the fit that scored it: it answers as in `held_out_`, but for what mixes classes.
        rows = np.split(model.held_out_[0], 10)
        scores = np.split(model.held_out_[1], 10)
        for (_, part), out, score in zip(model.parts_, rows, scores, strict=True):
            off = np.abs(part.decision_function(X[out]) - score)
            assert np.median(off) < 0.1 * np.abs(score).max()
    predictor = model.predictor()
    assert_allclose(predictor.decision_function(X), model.decision_function(X), atol=1e-9)


def test_judged_models_together_keep_to_max_tiles(noisy, monkeypatch):
    monkeypatch.setattr(choice, "NO_WORSE", 0.0)
    X, y = noisy
    for families in (("local",), ("trees", "boosted")):
        model = MosaicClassifier(max_tiles=64, families=families, **FREE).fit(X, y)
        assert model.mosaic_.n_tiles <= 64
        assert sum(weight for weight, _ in model.parts_) == pytest.approx(1)


@pytest.mark.parametrize("n_rows", [3000])
def test_few_held_out_rows_are_not_worth_another_fit(n_rows, monkeypatch):
    monkeypatch.setattr(plan, "CROSS_VALIDATED", 1000)
    monkeypatch.setattr(plan, "RARE_CROSS_VALIDATED", 1000)
    monkeypatch.setattr(plan, "MOST_HELD_OUT", 100)
    X, y = make_classification(n_rows, 6, n_informative=4, random_state=0)
    model = MosaicClassifier(max_tiles=8, blend=False, families=("linear", "boosted"), **FREE).fit(X, y)
    rows, scores = model.held_out_
    assert len(rows) == 100
    assert {line["parts"] for line in model.leaderboard_} == {1}
    moved = model.decision_function(X[rows]) - scores[:, 0]  # it is the model that was judged, but for the offset
    assert np.ptp(moved) < 0.2


def test_values_of_several_targets_with_a_budget_that_ends(noisy):
    X, _ = noisy
    rng = np.random.RandomState(1)
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]]) + 0.1 * rng.standard_normal((300, 2))
    weight = rng.uniform(0.5, 2.0, 300)
    for n_reads in (3, 20, 50):
        with search_of(8, clock=ending_after(n_reads)):
            model = MosaicRegressor(n_jobs=1, **FREE | {"time_budget": 1e6}).fit(X, Y, sample_weight=weight)
        assert model.budget_bound_
        rows, scores = model.held_out_
        expected = r2_score(Y[rows], model.head_.answers(scores), sample_weight=weight[rows])
        assert model.best_score_ == pytest.approx(expected)
        assert model.predict(X).shape == (300, 2)


def test_boosted_trees_of_many_classes_keep_to_max_tiles():
    """Each output has trees of its own."""
    X, y = make_classification(600, 8, n_informative=6, n_classes=8, n_clusters_per_class=1, random_state=0)
    model = MosaicClassifier(max_tiles=500, families=("boosted", "local"), **FREE).fit(X, y)
    assert model.mosaic_.n_tiles <= 500
    assert "BoostedTreesClassifier" in Counter(line["model"] for line in model.leaderboard_)


@pytest.mark.slow
def test_wide_noisy_rows_in_little_time_do_not_promise_what_they_do_not_keep():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((3900, 2000))
    y = (X[:, :40].sum(axis=1) + rng.standard_normal(3900) > 0).astype(int)
    model = MosaicClassifier(time_budget=10, families=("kernel",), n_jobs=2, random_state=0).fit(X[:3000], y[:3000])
    assert model.score(X[3000:], y[3000:]) > model.best_score_ - 0.06
