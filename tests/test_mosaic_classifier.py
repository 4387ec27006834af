"""MosaicClassifier: what it tries, what it promises, and that all of a mosaic's services work through it."""

import ctypes
import pickle
import subprocess
import time

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from searches import counted, search_of
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.metrics import f1_score, log_loss, make_scorer, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import svmosaic
from svmosaic import LinearSVC, MosaicClassifier
from svmosaic.datasets import make_xor
from svmosaic.estimators._table_input import prepare_training
from svmosaic.estimators.data import validate_training
from svmosaic.gates import SeveralGates
from svmosaic.search import choice, engine, mosaic_classifier, plan
from svmosaic.search.leaderboard import Leaderboard
from svmosaic.search.plan import Candidate, fitting, folds_of

FREE = {"effort": "quick", "random_state": 0}
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
def fitted(xor):
    with search_of(16):
        return MosaicClassifier(max_tiles=32, calibration="sigmoid", blend=False, **FREE | {"effort": "good"}).fit(*xor)


@pytest.fixture(scope="module")
def blended(noisy):
    return MosaicClassifier(max_tiles=400, families=("linear", "clustered", "local", "learned"), **FREE).fit(*noisy)


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
    assert {line["model"] for line in board} == {kind.__name__ for kind in plan.CLASSIFIERS.values()}
    parts = [line["parts"] for line in board]
    assert parts == sorted(parts, reverse=True)
    assert set(parts) == {2, 5, 10}
    scores = [line["score"] for line in board if line["parts"] == 10]
    assert scores == sorted(scores, reverse=True)
    assert fitted.best_score_ == scores[0]
    assert [line["chosen"] for line in board] == [True] + [False] * (len(board) - 1)
    assert all(line["tiles"] <= 32 for line in board)
    assert not fitted.budget_bound_
    assert fitted.stop_reason_ == "nothing left to try"


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


@pytest.mark.slow
@pytest.mark.parametrize("n_rows", [300, 6000, 60_000])
def test_the_budget_is_kept(n_rows):
    # Seconds of this process alone, for the search and here: what else the machine does counts for neither.
    X, y = make_classification(n_rows, 10, n_informative=6, random_state=0)
    MosaicClassifier(0.5, n_jobs=1, random_state=0).fit(X[:100], y[:100])  # imports
    with search_of(64, clock=time.process_time, variations=48):
        started = time.process_time()
        model = MosaicClassifier(3.0, n_jobs=1, random_state=0).fit(X, y)
        seconds = time.process_time() - started
    assert seconds < 3.0 * 1.1 + 1.0
    assert model.stop_reason_ == ("nothing left to try" if seconds < 1.5 else "time budget")


@pytest.mark.parametrize("took", [2.0, 9.0])
def test_the_preparation_of_a_table_is_part_of_the_budget(took, monkeypatch):
    def slow(*arguments, **options):
        now[0] += took
        return prepare_training(*arguments, **options)

    now = [0.0]
    monkeypatch.setattr(mosaic_classifier, "prepare_training", slow)
    X, y = make_xor(100, random_state=0)
    with search_of(clock=lambda: now[0]):
        model = MosaicClassifier(3.0, families=("linear",), random_state=0).fit(X, y)
    assert model.budget_bound_ == (took > 3.0)
    assert (len(model.leaderboard_) == 1) == (took > 3.0)  # the first has no limit


def test_a_longer_budget_tries_what_a_shorter_one_does_and_more(noisy):
    boards = []
    for budget in (2e4, 5e4, 2e5):
        with search_of(clock=counted(1e3)):
            model = MosaicClassifier(budget, n_jobs=1, random_state=0).fit(*noisy)
        boards.append({(str(line["model"]), line["details"], line["tiles"], line["C"], line["parts"], line["score"])
                       for line in model.leaderboard_})  # fmt: skip
    assert boards[0] < boards[1] < boards[2]


def test_many_rows_climb_rungs(monkeypatch):
    monkeypatch.setattr(plan, "CROSS_VALIDATED", 1000)
    monkeypatch.setattr(plan, "RARE", 0)
    monkeypatch.setattr(plan, "FIRST_RUNG", 200)
    X, y = make_xor(2000, random_state=0)
    model = MosaicClassifier(max_tiles=16, **FREE).fit(X, y)
    rows = [line["rows"] for line in model.leaderboard_]
    assert sorted(set(rows)) == [200, 1600]
    assert rows == sorted(rows, reverse=True)
    assert {line["parts"] for line in model.leaderboard_} == {1}
    assert len(model.held_out_[0]) == 400


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
    assert len(MosaicClassifier(**QUICK).fit(*noisy).parts_) == 1


def test_models_that_take_too_much_memory_are_let_go(monkeypatch, noisy):
    kept = MosaicClassifier(blend=False, **QUICK).fit(*noisy)
    monkeypatch.setattr(engine, "MOST_BYTES", 0)
    again = MosaicClassifier(blend=False, **QUICK).fit(*noisy)  # what was chosen is fitted anew
    assert_array_equal(again.decision_function(noisy[0]), kept.decision_function(noisy[0]))


def test_a_rare_class_is_judged_by_all_its_rows(monkeypatch):
    for name, value in {"CROSS_VALIDATED": 300, "RARE_CROSS_VALIDATED": 2000, "RARE": 50}.items():
        monkeypatch.setattr(plan, name, value)
    rng, X = np.random.RandomState(0), np.zeros((1000, 1))
    for n_rare, n_held_out in ((40, 1000), (60, 200)):
        _, target = validate_training(LinearSVC(), X, np.arange(1000) < n_rare)
        folds = folds_of(target, 0.2, rng)
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
    model = candidate.estimator("classification", 100, seed=0).fit(X[:100], y[:100])
    tile, weight = model.mosaic_.gate.code(X)
    of_leaves = (weight[:, 1:] * model.mosaic_.intercept[tile[:, 1:], 0]).sum(axis=1)
    assert_allclose(model.decision_function(X), of_leaves, atol=1e-6 * np.abs(of_leaves).max())
