"""MosaicClassifier: what it tries, what it promises, and that all of a mosaic's services work through it."""

import ctypes
import pickle
import subprocess
import time
from dataclasses import replace

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.metrics import f1_score, log_loss, make_scorer, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from svmosaic.search._families import build_classifier
from svmosaic.search.candidates import Candidate, fitting

import svmosaic
from svmosaic import LinearSVC, MosaicClassifier
from svmosaic.datasets import make_xor
from svmosaic.estimators._table_input import prepare_training
from svmosaic.estimators.data import validate_training
from svmosaic.gates import SeveralGates
from svmosaic.search import _searching, candidates, choice, climb, mixing, mosaic_classifier, rungs, trials
from svmosaic.search.judge import ClassJudge
from svmosaic.search.leaderboard import Leaderboard

FREE = {"time_budget": None, "random_state": 0}
QUICK = FREE | {"families": ("linear", "local")}
LINEAR = FREE | {"families": ("linear",), "validation_fraction": 0.5}


@pytest.fixture(scope="module")
def xor():
    X, y = make_xor(300, random_state=0)
    turn = np.array([[0.8, -0.6], [0.6, 0.8]])  # so that no sum of curves will do
    return X @ turn * [1000.0, 0.01] + [5e4, -3.0], np.array(["no", "yes"])[y]


@pytest.fixture(scope="module")
def noisy():
    """Curves, an interaction and noise: no model is right, so a blend is better than any."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((400, 6))
    X[:, 4] = np.exp(2 * X[:, 4])
    f = np.sin(2 * X[:, 0]) + X[:, 1] * (X[:, 2] > 0) + (X[:, 4] > 1) - 0.5
    return X, (f + 0.5 * rng.standard_normal(400) > 0).astype(int)


@pytest.fixture(scope="module")
def fitted(xor, impatient):
    return impatient(MosaicClassifier(max_tiles=32, calibration="sigmoid", blend=False, **FREE), *xor)


@pytest.fixture(scope="module")
def blended(noisy, impatient):
    # Without boosted trees, which are so well suited to this problem that no blend is better.
    families = ("linear", "clustered", "local", "learned")
    return impatient(MosaicClassifier(max_tiles=400, families=families, **FREE), *noisy)


def test_a_single_model_is_scaled_as_a_pipeline_would(xor):
    X, y = xor
    model = MosaicClassifier(max_tiles=8, blend=False, **QUICK).fit(X, y)
    best = next(line for line in model.leaderboard_ if line["chosen"])
    assert best["model"] == "LocallyLinearSVC"
    assert best["scaling"] == "standard"
    pipeline = make_pipeline(StandardScaler(), clone(model.best_estimator_)).fit(X, y)
    moved = model.decision_function(X) - pipeline.decision_function(X)  # by the offset of two classes
    assert_allclose(moved, moved.mean(), atol=1e-6)
    assert abs(moved.mean()) < 0.1
    assert_array_equal(model.best_estimator_.predict(X), model.predict(X))


def test_leaderboard_reports_what_was_tried(fitted):
    board = fitted.leaderboard_
    models = {"LinearSVC", "ClusteredSVC", "LocallyLinearSVC", "KernelSVC", "LearnedGateSVC", "TreeSVC"}
    assert {line["model"] for line in board} == models
    parts = [line["parts"] for line in board]
    assert parts == sorted(parts, reverse=True)
    assert {line["model"] for line in board if line["parts"] == 5} == models  # no family is dropped early
    scores = [line["score"] for line in board if line["parts"] == 10]
    assert scores == sorted(scores, reverse=True)
    assert fitted.best_score_ == scores[0]
    assert [line["chosen"] for line in board] == [True] + [False] * (len(board) - 1)
    assert all(line["tiles"] <= 32 for line in board)
    assert not fitted.budget_bound_


def test_leaderboard_prints_as_text_and_as_html(fitted):
    board = fitted.leaderboard_
    assert isinstance(board, Leaderboard)
    lines = str(board).splitlines()
    assert "score" in lines[0]
    assert board[0]["model"] in lines[1]
    assert lines[1].startswith("* 100%")
    assert len(lines) == 1 + 15 + 2
    assert f"... and {len(board) - 15} more" in lines
    assert board._repr_html_().count("<tr>") == 16
    assert "&lt;" in Leaderboard([{"model": "<b>", "score": 1.0}])._repr_html_()


def test_same_seed_same_model_whatever_the_threads(xor):
    X, y = xor
    first, second = (MosaicClassifier(max_tiles=8, n_jobs=n, **QUICK).fit(X, y) for n in (1, 2))
    assert_array_equal(first.decision_function(X), second.decision_function(X))
    boards = [[{k: v for k, v in line.items() if k != "seconds"} for line in m.leaderboard_] for m in (first, second)]
    assert repr(boards[0]) == repr(boards[1])


def test_a_blend_is_better_by_held_out_rows_and_one_mosaic(blended, noisy):
    X, _ = noisy
    assert len(blended.parts_) > 1
    assert sum(weight for weight, _ in blended.parts_) == pytest.approx(1)
    assert isinstance(blended.mosaic_.gate, SeveralGates)
    assert blended.mosaic_.n_tiles <= 400
    chosen = [line for line in blended.leaderboard_ if line["chosen"]]
    assert sum(line["weight"] for line in chosen) == pytest.approx(1)
    rows, scores = blended.held_out_
    assert_array_equal(np.sort(rows), np.repeat(np.arange(len(X)), 2))  # each was held out twice
    held_out_loss = log_loss(noisy[1][rows], blended.calibration_.probabilities(scores))
    assert held_out_loss < min(line["loss"] for line in blended.leaderboard_ if line["parts"] == 10)


def test_a_blend_exports_to_onnx_and_c(blended, noisy, tmp_path):
    X = noisy[0].astype(np.float32)
    session = onnxruntime.InferenceSession(blended.to_onnx(dtype=np.float64).SerializeToString())
    label, probability, scores = session.run(None, {"X": X.astype(np.float64)})
    assert_allclose(scores[:, 0], blended.decision_function(X.astype(np.float64)), atol=1e-6)
    assert_allclose(probability, blended.predict_proba(X.astype(np.float64)), atol=1e-5)
    assert_array_equal(label, blended.predict(X.astype(np.float64)))
    assert_allclose(c_scores(blended, X, tmp_path), blended.decision_function(X), atol=1e-3)
    blended.save(tmp_path / "model.svmosaic")
    again = svmosaic.load(tmp_path / "model.svmosaic")
    assert_array_equal(again.decision_function(X), blended.decision_function(X))
    assert str(again.leaderboard_) == str(blended.leaderboard_)


def c_scores(model, X, folder):
    source, _ = model.to_c(folder / "model.c")
    library = folder / "model.so"
    strict = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-overlength-strings"]
    subprocess.run(["cc", *strict, "-fPIC", "-shared", source, "-o", library, "-lm"], check=True)
    compiled = ctypes.CDLL(str(library))
    scores = np.empty(len(X), dtype=np.float32)
    for i, row in enumerate(X):
        compiled.model_scores(row.ctypes.data_as(ctypes.c_void_p), scores[i:].ctypes.data_as(ctypes.c_void_p))
    return scores


def test_services_of_a_mosaic_work_through_the_scaling(fitted, xor, tmp_path):
    X, _ = xor
    decision = fitted.decision_function(X)
    predictor = pickle.loads(pickle.dumps(fitted.predictor()))
    assert_allclose(predictor.decision_function(X), decision, rtol=1e-9, atol=1e-9)
    assert predictor(X[3]) == fitted.predict(X[3:4])[0]
    assert_allclose(predictor.predict_proba(X), fitted.predict_proba(X), atol=1e-9)
    told = fitted.explain(X[:5])
    assert_allclose((told.contributions.sum(axis=2) + told.intercept)[:, 0], decision[:5], atol=1e-9)
    assert_array_equal(told.value, X[:5])
    assert_array_equal(fitted.summarize_regions(*xor)["accuracy"], fitted.regions_["accuracy"])
    session = onnxruntime.InferenceSession(fitted.to_onnx(dtype=np.float64).SerializeToString())
    label, probability, scores = session.run(None, {"X": X})
    assert_allclose(scores[:, 0], decision, atol=1e-8)
    assert_allclose(probability, fitted.predict_proba(X), atol=1e-6)
    assert_array_equal(label, fitted.predict(X))
    X = X.astype(np.float32)
    assert_allclose(c_scores(fitted, X, tmp_path), fitted.decision_function(X), atol=1e-3)


def test_probabilities_by_default(blended, noisy):
    X, y = noisy
    probability = blended.predict_proba(X)
    assert_allclose(probability.sum(axis=1), 1)
    assert_array_equal(blended.predict(X), blended.classes_[probability.argmax(axis=1)])
    with pytest.raises(AttributeError, match="no predict_proba without a calibration"):
        _ = MosaicClassifier(calibration=None, **LINEAR).fit(X, y).predict_proba


def test_never_worse_than_the_linear_baseline_on_held_out_rows(noisy):
    rng = np.random.RandomState(1)
    for X, y in (noisy, (noisy[0], rng.permutation(noisy[1])), load_breast_cancer(return_X_y=True)):
        model = MosaicClassifier(1.0, random_state=0).fit(X, y)
        parts = {line["parts"] for line in model.leaderboard_ if line["weight"] > 0}
        lines = [line for line in model.leaderboard_ if {line["parts"]} == parts and line["model"] == "LinearSVC"]
        assert lines
        assert model.best_score_ >= max(line["score"] for line in lines)


def test_equal_weights_are_of_different_kinds():
    tile, leaf = Candidate("linear"), Candidate("trees", tiles=8, gates=4, C=1.0)
    candidates = [*(replace(tile, C=C) for C in (1.0, 2.0, 4.0)), *(replace(leaf, tiles=n) for n in (2, 4, 8)), leaf]
    pool = [trials.Trial(candidate, 0, 100, 5) for candidate in (*candidates, replace(tile, pieces=16, C=1.0))]
    weights = choice.equal_weights(pool)
    assert_allclose(weights, np.array([1, 1, 0, 1, 1, 0, 0, 1]) / 5)
    assert_allclose(choice.equal_weights(pool, n=3), np.array([1, 1, 0, 1, 0, 0, 0, 0]) / 3)
    assert_allclose(choice.equal_weights(pool, of_a_kind=99), np.full(8, 1 / 8))


def test_nothing_goes_on_without_the_linear_baseline(noisy, monkeypatch):
    def expected(self, candidate, n_rows):
        linear_again = candidate.family == "linear" and any(key[0] == "linear" for key in self.measured)
        return 1e6 if linear_again else 1e-6

    monkeypatch.setattr(rungs.Clock, "expected", expected)
    model = MosaicClassifier(3.0, random_state=0).fit(*noisy)
    assert {line["parts"] for line in model.leaderboard_} == {rungs.FIRST_PARTS}
    assert "LinearSVC" in {line["model"] for line in model.leaderboard_}


def test_few_rows_judge_all_candidates_by_all_parts(noisy):
    X, y = noisy
    model = MosaicClassifier(60.0, families=("linear", "clustered"), random_state=0).fit(X[:120], y[:120])
    most = max(line["parts"] for line in model.leaderboard_)
    judged = {(line["tiles"], line["pieces"], line["C"]) for line in model.leaderboard_ if line["parts"] == most}
    begun = [c for c in candidates.seeds(["standard"], 120) if c.family in ("linear", "clustered")]
    assert {(c.n_tiles, c.pieces, c.C) for c in begun} <= judged


def test_kernel_machines_come_first_for_few_rows():
    def places(n_rows, **options):
        return [
            k for k, c in enumerate(candidates.seeds(["standard", "common"], n_rows, **options)) if c.family == "kernel"
        ]

    assert places(1000)[:3] == [1, 2, 3]
    assert len(places(10_000)) == 2
    assert places(10_000)[0] > 5
    assert places(1000, kernels=False) == []


@pytest.mark.parametrize("reason", ["rows", "time"])
def test_kernel_machines_of_many_rows_or_that_take_long_are_tried_only_if_asked_for(reason, monkeypatch):
    def tried(families):
        model = MosaicClassifier(3.0, families=families, random_state=0).fit(X, y)
        return {line["model"] for line in model.leaderboard_}

    X, y = make_classification(300, 5, random_state=0)
    assert "KernelSVC" in tried(None)
    if reason == "rows":
        monkeypatch.setattr(climb, "KERNEL_ROWS", 200)
    else:
        monkeypatch.setitem(rungs.USUAL_SPEED, "kernel", 1.0)
    assert "KernelSVC" not in tried(None)
    assert tried(("kernel",)) == {"KernelSVC"}


def test_the_linear_baseline_goes_on_however_far_behind(xor, monkeypatch):
    monkeypatch.setattr(climb, "FAMILY_MARGIN", 0.0)
    model = MosaicClassifier(max_tiles=8, **QUICK).fit(*xor)
    most = max(line["parts"] for line in model.leaderboard_)
    models = {line["model"] for line in model.leaderboard_ if line["parts"] == most}
    assert "LinearSVC" in models
    assert len(models) > 1


@pytest.mark.parametrize("n_rows", [300, 6000])
def test_the_budget_is_kept(n_rows, monkeypatch):
    # Seconds of this process alone, for the search and here: what else the machine does counts for neither.
    for module in (rungs, trials):
        monkeypatch.setattr(module, "perf_counter", time.process_time)
    X, y = make_classification(n_rows, 10, n_informative=6, random_state=0)
    MosaicClassifier(0.5, n_jobs=1, random_state=0).fit(X[:100], y[:100])  # imports
    started = time.process_time()
    model = MosaicClassifier(3.0, n_jobs=1, random_state=0).fit(X, y)
    seconds = time.process_time() - started
    assert seconds < 3.0 * 1.1 + 0.5
    assert seconds > 3.0 * 0.5 or "no better" in model.stop_reason_
    assert model.stop_reason_ in ("time budget", "no better model in 16 trials")


@pytest.mark.parametrize(("took", "left"), [(2.0, 1.0), (9.0, 0.3)])
def test_the_preparation_of_a_table_is_part_of_the_budget(took, left, monkeypatch):
    def slow(*arguments, **options):
        now[0] += took
        return prepare_training(*arguments, **options)

    now, budgets = [0.0], []
    monkeypatch.setattr(mosaic_classifier, "prepare_training", slow)
    for module in (mosaic_classifier, _searching):
        monkeypatch.setattr(module, "perf_counter", lambda: now[0])
    monkeypatch.setattr(
        _searching,
        "Search",
        lambda *given, budget, **options: budgets.append(budget) or climb.Search(*given, **options, budget=1),
    )
    X, y = make_xor(100, random_state=0)
    MosaicClassifier(3.0, families=("linear",), random_state=0).fit(X, y)
    assert budgets == [pytest.approx(left)]


def test_many_rows_climb_rungs(monkeypatch):
    monkeypatch.setattr(rungs, "CROSS_VALIDATED", 1000)
    monkeypatch.setattr(rungs, "FIRST_RUNG", 200)
    monkeypatch.setattr(rungs, "FIRST_SHARE", 0.0)  # the first rung stays as small as it can be
    X, y = make_xor(2000, random_state=0)
    model = MosaicClassifier(max_tiles=16, **FREE).fit(X, y)
    rows = [line["rows"] for line in model.leaderboard_]
    assert sorted(set(rows)) == [200, 1600]
    assert rows == sorted(rows, reverse=True)
    assert {line["model"] for line in model.leaderboard_ if line["rows"] == 1600} == {
        line["model"] for line in model.leaderboard_
    }
    assert {line["parts"] for line in model.leaderboard_} == {1}
    assert len(model.held_out_[0]) == 400


def assert_scores_are_those_of(model, X, held_out):
    """The same but for offsets: each group of held-out rows has the one that the other groups ask for."""
    moved = model.decision_function(X) - held_out[:, 0]
    assert len(np.unique(np.round(moved, 9))) <= mixing.GROUPS
    assert np.abs(moved).max() < 0.2


def test_few_held_out_rows_are_not_worth_another_fit(monkeypatch):
    monkeypatch.setattr(rungs, "CROSS_VALIDATED", 1000)
    monkeypatch.setattr(rungs, "MOST_HELD_OUT", 100)
    X, y = make_xor(3000, random_state=0)
    model = MosaicClassifier(max_tiles=8, blend=False, **QUICK).fit(X, y)
    rows, scores = model.held_out_
    assert len(rows) == 100
    assert_scores_are_those_of(model, X[rows], scores)  # it is the model that was judged


@pytest.mark.parametrize("labels", [(0, 1), ("yes", "no")])
def test_f1_is_about_the_positive_label(labels):
    X, truth = make_classification(400, 6, weights=[0.8], flip_y=0.1, random_state=0)
    y = np.array(labels)[truth]
    model = MosaicClassifier(metric="f1", pos_label=labels[1], blend=False, **LINEAR).fit(X, y)
    rows, scores = model.held_out_
    found = np.array(labels)[(scores[:, 0] * (1 if labels[0] < labels[1] else -1) > 0).astype(int)]
    assert model.best_score_ == pytest.approx(f1_score(y[rows], found, pos_label=labels[1]))
    other = MosaicClassifier(metric="f1", pos_label=labels[0], **LINEAR).fit(X, y)
    assert other.best_score_ > model.best_score_ + 0.05  # of the frequent class
    scorer = make_scorer(f1_score, pos_label=labels[1])
    assert MosaicClassifier(metric=scorer, blend=False, **LINEAR).fit(X, y).best_score_ == model.best_score_


@pytest.mark.parametrize(("metric", "function"), [("neg_log_loss", log_loss), ("roc_auc", roc_auc_score)])
def test_scores_of_probabilities(metric, function, noisy):
    X, y = noisy
    model = MosaicClassifier(metric=metric, **LINEAR).fit(X, y)
    rows, scores = model.held_out_
    probability = model.calibration_.probabilities(scores)[:, 1]
    expected = function(y[rows], probability) * (-1 if metric == "neg_log_loss" else 1)
    assert model.best_score_ == pytest.approx(expected, abs=1e-3)
    seen = []
    own = MosaicClassifier(metric=lambda estimator, X, y: seen.append(X.shape) or estimator.score(X, y), **LINEAR)
    assert own.fit(X, y).best_score_ > 0.7
    assert (800, 6) in seen


def test_tf_idf_rows_are_left_as_they_are_and_counts_scaled_by_their_largest_value():
    rng = np.random.RandomState(0)
    counts = sparse.random_array(
        (300, 1200), density=0.017, format="csr", rng=rng, data_sampler=lambda size: 1 + rng.poisson(1, size)
    )
    y = (counts[:, :600].sum(axis=1) > counts[:, 600:].sum(axis=1)).astype(int)
    norms = np.sqrt(counts.multiply(counts).sum(axis=1))
    tf_idf = sparse.csr_array(sparse.diags_array(1 / norms) @ counts)
    model = MosaicClassifier(max_tiles=4, validation_fraction=0.5, **FREE).fit(tf_idf, y)
    assert {line["scaling"] for line in model.leaderboard_} == {"none"}
    assert "TreeSVC" not in {line["model"] for line in model.leaderboard_}
    plain = MosaicClassifier(**LINEAR).fit(counts, y)
    assert {line["scaling"] for line in plain.leaderboard_} == {"maxabs"}
    assert_allclose(plain.decision_function(counts), plain.decision_function(counts.toarray()), atol=1e-9)


def test_weights_count_in_the_choice():
    # Six rows in ten bear the wrong label: the weights say which to believe.
    rng = np.random.RandomState(0)
    X, y = make_xor(400, random_state=0)
    wrong = rng.uniform(size=len(y)) < 0.6
    noisy = np.where(wrong, 1 - y, y)
    model = MosaicClassifier(max_tiles=16, **QUICK).fit(X, noisy, sample_weight=np.where(wrong, 0.01, 1.0))
    assert model.score(X, y) > 0.95
    assert model.best_score_ > 0.95  # weighted: the plain accuracy cannot be above 0.4


@pytest.mark.parametrize("scale", [2.0**-20, 1024.0])
def test_weights_have_no_unit(noisy, scale):
    """Powers of two, so that not even rounding differs. Weights that add up to one are common."""
    X, y = noisy
    weight = np.random.RandomState(1).randint(1, 5, len(y))
    models = [MosaicClassifier(**QUICK).fit(X, y, sample_weight=w) for w in (weight, scale * weight)]
    assert_array_equal(models[0].predict_proba(X), models[1].predict_proba(X))
    assert models[0].best_score_ == models[1].best_score_


def test_zero_weights_are_as_if_absent(xor):
    X, y = xor
    weight = np.ones(len(y))
    weight[200:] = 0
    weighted = MosaicClassifier(**LINEAR).fit(X, y, sample_weight=weight)
    cut = MosaicClassifier(**LINEAR).fit(X[:200], y[:200])
    assert_array_equal(weighted.decision_function(X), cut.decision_function(X))


def test_class_weight_moves_predictions_and_probabilities_but_not_the_metric():
    X, y = make_classification(1000, 5, weights=[0.9], flip_y=0.1, random_state=0)
    plain, balanced = (MosaicClassifier(class_weight=w, blend=False, **LINEAR).fit(X, y) for w in (None, "balanced"))
    assert (balanced.predict(X) == 1).sum() > 1.5 * (plain.predict(X) == 1).sum()
    # Calibrated for the data, and for classes that are equally frequent.
    assert plain.predict_proba(X)[:, 1].mean() == pytest.approx(y.mean(), abs=0.05)
    weight = np.where(y == 1, 0.5 / y.mean(), 0.5 / (1 - y.mean()))
    assert np.average(balanced.predict_proba(X)[:, 1], weights=weight) == pytest.approx(0.5, abs=0.05)
    rows, scores = balanced.held_out_
    assert balanced.best_score_ == pytest.approx(np.mean((scores[:, 0] > 0) == y[rows]))  # rows as they are


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"time_budget": 0}, "time_budget must be a finite number, above 0 or None, got 0"),
        ({"max_tiles": 0}, "max_tiles must be an integer, at least 1, got 0"),
        ({"metric": "beauty"}, "metric must be the name of a scorer.*got 'beauty'$"),
        ({"metric": "acuracy"}, "got 'acuracy': did you mean 'accuracy'"),
        ({"metric": "AUC"}, "got 'AUC': did you mean 'roc_auc'"),
        ({"validation_fraction": 0.9}, "validation_fraction must be a finite number, above 0, at most 0.5, got 0.9"),
        ({"calibration": "magic"}, "calibration must be one of"),
        ({"families": ("linear", "cubic")}, "families must be a sequence of 'linear'.*got .*'cubic'"),
        ({"families": "linear"}, "families must be a sequence of 'linear'"),
        ({"pos_label": 7}, r"pos_label must be one of the classes \[0, 1, 2\], got 7"),
        ({"pos_label": 1}, "pos_label is for two classes, but y has 3"),
    ],
)
def test_wrong_parameters_are_named(settings, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        MosaicClassifier(**settings).fit(X, y)


def test_a_metric_that_does_not_go_with_the_labels_says_why():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(TypeError, match=r"metric='f1' cannot score these rows: .*pass metric='f1_macro'"):
        MosaicClassifier(metric="f1", **LINEAR).fit(X, y)
    with pytest.raises(TypeError, match="for 3 classes, pass metric='roc_auc_ovr'"):
        MosaicClassifier(metric="roc_auc", **LINEAR).fit(X, y)
    with pytest.raises(ValueError, match=r"metric must be the name of a scorer, such as 'accuracy'.*got None"):
        MosaicClassifier(metric=None, **LINEAR).fit(X, y)


def test_too_few_rows_for_a_choice_give_the_linear_model():
    X, y = np.array([[0.0], [1.0]]), np.array([0, 1])
    model = MosaicClassifier(**FREE).fit(X, y)
    assert model.leaderboard_ == []
    assert model.held_out_ is None
    assert np.isnan(model.best_score_)
    assert_array_equal(model.predict(X), y)


@pytest.mark.parametrize("n_rows", [300, 5000])
def test_metrics_of_all_classes_with_fewer_rows_of_a_class_than_parts(n_rows, one_short_search):
    """The parts that are held out first have rows of all classes."""
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((n_rows, 2)), np.zeros(n_rows, dtype=int)
    y[:2] = 1
    for seed in range(5):
        model = MosaicClassifier(metric="roc_auc", **LINEAR | {"random_state": seed, "validation_fraction": 0.2})
        assert 0 <= model.fit(X, y).best_score_ <= 1
    y[0] = 0
    with pytest.raises(ValueError, match=r"'roc_auc' gave nan .*without the class 1, which has too few rows"):
        MosaicClassifier(metric="roc_auc", **LINEAR).fit(X, y)


@pytest.mark.parametrize("dtype", ["boolean", "Int64", "bool[pyarrow]", "int64[pyarrow]"])
def test_labels_of_nullable_types_keep_their_type(dtype):
    X = np.random.RandomState(0).standard_normal((60, 2))
    y = pd.Series(X[:, 0] > 0).astype("bool" if "bool" in dtype else "int64")
    for rows in (X, pd.DataFrame(X).assign(text="x")):
        model = MosaicClassifier(**LINEAR).fit(rows, y.astype(dtype))
        assert model.classes_.dtype == y.dtype
        assert model.predict(rows).dtype == y.dtype
    assert LinearSVC().fit(X, y.astype(dtype)).classes_.dtype == y.dtype


def test_a_class_of_one_row_is_no_obstacle():
    X, y = load_iris(return_X_y=True)
    kept = np.r_[0:100, 149]
    model = MosaicClassifier(**LINEAR).fit(X[kept], y[kept])
    assert list(model.classes_) == [0, 1, 2]
    assert model.predict_proba(X).shape == (150, 3)
    with pytest.raises(ValueError, match="needs at least two of each class, but class '2' has 1"):
        MosaicClassifier(calibration="sigmoid", **FREE).fit(X[kept], y[kept])


def test_what_fails_stays_in_the_leaderboard(monkeypatch):
    def fit(self, X, y, sample_weight=None):
        raise ValueError("diverged")

    monkeypatch.setattr(svmosaic.LearnedGateSVC, "fit", fit)
    X, y = make_xor(200, random_state=0)
    model = MosaicClassifier(max_tiles=16, **FREE | {"families": ("linear", "learned")}).fit(X, y)
    failed = [line for line in model.leaderboard_ if line["failure"]]
    assert {line["model"] for line in failed} == {"LearnedGateSVC"}
    assert all(np.isnan(line["score"]) and "diverged" in line["failure"] for line in failed)
    monkeypatch.setattr(LinearSVC, "fit", fit)
    with pytest.raises(ValueError, match="no candidate could be fitted: diverged"):
        MosaicClassifier(max_tiles=16, **FREE | {"families": ("linear", "learned")}).fit(X, y)


def test_a_blend_that_would_be_too_large_is_cut(noisy, monkeypatch):
    monkeypatch.setattr(choice, "MOST_WEIGHTS", 1)
    model = MosaicClassifier(**QUICK).fit(*noisy)
    assert len(model.parts_) == 1


def test_a_last_fit_without_time_keeps_the_model_that_was_judged(monkeypatch, noisy):
    monkeypatch.setattr(rungs, "CROSS_VALIDATED", 100)
    monkeypatch.setattr(rungs, "RARE", 0)
    monkeypatch.setattr(choice, "SAFETY", 1e9)
    X, y = noisy
    model = MosaicClassifier(2.0, blend=False, families=("linear", "local"), random_state=0).fit(X, y)
    assert model.budget_bound_
    rows, scores = model.held_out_
    assert_scores_are_those_of(model, X[rows], scores)


def test_models_that_take_too_much_memory_are_let_go(monkeypatch, noisy):
    monkeypatch.setattr(rungs, "CROSS_VALIDATED", 100)
    monkeypatch.setattr(rungs, "RARE", 0)
    kept = MosaicClassifier(**QUICK).fit(*noisy)
    monkeypatch.setattr(trials, "MOST_BYTES", 0)
    again = MosaicClassifier(**QUICK).fit(*noisy)  # chosen parts are fitted anew
    assert_array_equal(again.decision_function(noisy[0]), kept.decision_function(noisy[0]))


def test_a_last_rung_without_time_leaves_the_rungs_below(monkeypatch):
    """On a machine that is busy with other things, nothing may be affordable on all rows."""
    for name, rows in {"CROSS_VALIDATED": 1000, "FIRST_RUNG": 200}.items():
        monkeypatch.setattr(rungs, name, rows)
    monkeypatch.setattr(climb, "MANY_ROWS", 1000)
    monkeypatch.setattr(climb.Search, "_affords", lambda self, candidate, rung, share: rung.n_rows < 1000)
    monkeypatch.setattr(climb.Search, "_fewer_rows", lambda self, candidate, rung, until: None)
    X, y = make_xor(2000, random_state=0)
    model = MosaicClassifier(3.0, families=("linear", "local"), random_state=0).fit(X, y)
    assert max(line["rows"] for line in model.leaderboard_) < 1000
    assert model.score(X, y) > 0.9


def search_of(rows):
    """A search that has not begun."""
    X, target = validate_training(LinearSVC(), *rows)
    judge = ClassJudge(X, target, "accuracy")
    return climb.Search(
        X, rows[1], judge, None, rungs.folds_of(target, 0.2, np.random.RandomState(0)), most_tiles=100, budget=None,
        seed=0, n_jobs=1, say=print, watch=print,
    )  # fmt: skip


def test_models_that_learn_more_from_more_rows_come_first(monkeypatch, noisy):
    monkeypatch.setattr(rungs, "CROSS_VALIDATED", 100)
    monkeypatch.setattr(rungs, "RARE", 0)
    search = search_of(noisy)
    families = ["linear", "clustered", "local", "trees", "learned"]
    search.trials = [trials.Trial(Candidate(f, tiles=128, C=1.0), 0, 60, 1, loss=0.4, score=0.8) for f in families]
    assert [c.family for c in search._survivors(0)][1:] == families[:0:-1]  # after the baseline
    # Two rungs tell what the family's usual slope did not.
    search.trials += [
        trials.Trial(Candidate(f, tiles=128, C=1.0), 1, 240, 1, loss=0.4 - 0.01 * (f == "trees"), score=0.8)
        for f in families
    ]
    assert search._survivors(1)[1].family == "trees"


def test_larger_learned_gates_learn_more_from_more_rows(monkeypatch, noisy):
    """Fewer tiles are ahead of few rows; the first with curves and the first without go on to more."""
    monkeypatch.setattr(rungs, "CROSS_VALIDATED", 100)
    monkeypatch.setattr(rungs, "RARE", 0)
    monkeypatch.setattr(climb, "KEPT_FIRST", 1)
    search = search_of(noisy)
    small, large = Candidate("learned", tiles=128), Candidate("learned", tiles=512)
    gates = {small: 0.40, large: 0.405, replace(small, pieces=16): 0.48, replace(large, pieces=16): 0.485}
    search.trials = [trials.Trial(gate, 0, 60, 1, loss=loss, score=1 - loss) for gate, loss in gates.items()]
    assert search._survivors(0) == [large, replace(large, pieces=16), small]


def test_none_is_behind_because_rows_teach_more_than_usual(noisy, monkeypatch):
    monkeypatch.setattr(rungs, "CROSS_VALIDATED", 100)
    monkeypatch.setattr(rungs, "RARE", 0)
    search = search_of(noisy)
    search.clock.budget = 1e9
    tree, gate, local = (
        Candidate("trees", tiles=8, C=1.0),
        Candidate("learned", tiles=128),
        Candidate("local", tiles=8, C=1.0),
    )
    losses = {tree: 0.4, gate: 0.4, local: 0.8}
    search.trials = [trials.Trial(c, 0, 60, 1, loss=loss, score=0.8) for c, loss in losses.items()]
    search.trials.append(trials.Trial(tree, 1, 320, 1, loss=0.1, score=0.9))  # the usual slope leads to 0.25
    assert not search._is_behind(gate, 1)
    assert search._is_behind(local, 1)
    for trial in search.trials:
        trial.loss = 0.0
    assert not search._is_behind(gate, 1)


def test_variations_leave_time_for_the_last_fit(noisy, monkeypatch):
    monkeypatch.setattr(rungs, "CROSS_VALIDATED", 100)
    monkeypatch.setattr(rungs, "RARE", 0)
    search = search_of(noisy)
    search.clock.budget = 100.0
    best, rung = Candidate("local", tiles=8, C=1.0), rungs.Rung(320, 1, 0.8)
    assert search.search_share == trials.SEARCH_SHARE["large"]  # nothing is known yet
    search.trials = [trials.Trial(best, 1, 320, 1, loss=0.4, score=0.8)]
    for seconds, share, has_time in ((1.0, trials.MOST_SHARE, True), (30.0, trials.SEARCH_SHARE["large"], False)):
        monkeypatch.setattr(search.clock, "expected", lambda candidate, n_rows, seconds=seconds: 2 * seconds)
        assert search.search_share == pytest.approx(share)
        assert search._leaves_time(replace(best, C=4.0), rung) == has_time


def test_a_rare_class_is_judged_by_all_its_rows(monkeypatch):
    for name, value in {"CROSS_VALIDATED": 300, "RARE_CROSS_VALIDATED": 2000, "RARE": 50}.items():
        monkeypatch.setattr(rungs, name, value)
    rng, X = np.random.RandomState(0), np.zeros((1000, 1))
    for n_rare, n_held_out in ((40, 1000), (60, 200)):
        _, target = validate_training(LinearSVC(), X, np.arange(1000) < n_rare)
        folds = rungs.folds_of(target, 0.2, rng)
        assert len(np.unique(np.concatenate([held for _, held in folds]))) == n_held_out


def test_trees_may_be_nothing_but_leaves(noisy):
    X, y = noisy
    X = X * [1.0, 1e6, 1.0, 1e-6, 1.0, 1.0]
    candidate = fitting(
        Candidate("trees", "none", 300, 4, C=0.3, only_leaves=True), n_rows=100, most_tiles=10_000, n_features=6,
        n_outputs=1,
    )  # fmt: skip
    assert candidate.tiles == 50  # half as many as rows
    assert all(not other.linear_leaves for other in candidate.neighborhood())
    model = build_classifier(candidate, 100, seed=0).fit(X[:100], y[:100])
    tile, weight = model.mosaic_.gate.code(X)
    of_leaves = (weight[:, 1:] * model.mosaic_.intercept[tile[:, 1:], 0]).sum(axis=1)
    assert_allclose(model.decision_function(X), of_leaves, atol=1e-6 * np.abs(of_leaves).max())
