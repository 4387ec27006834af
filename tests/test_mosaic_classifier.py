"""MosaicClassifier: what it tries, what it promises, and that all of a mosaic's services work through its scaling."""

import ctypes
import pickle
import subprocess

import numpy as np
import onnxruntime
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

import svmosaic
from svmosaic import LinearSVC, LocallyLinearSVC, MosaicClassifier
from svmosaic.datasets import make_xor
from svmosaic.maps.scaling import Scaling
from svmosaic.models import _model_search as _search
from svmosaic.models._model_search import Candidate, Search, Trial, folds_of, scalings_of, spread_by_class

FREE = {"time_budget": None, "random_state": 0}


@pytest.fixture(scope="module", autouse=True)
def one_part_held_out():
    """Five parts in turn make no difference to what is tested here but time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_search, "ENOUGH_HELD_OUT", 40)
        yield


@pytest.fixture(scope="module")
def xor():
    X, y = make_xor(600, random_state=0)
    return X * [1000.0, 0.01] + [5e4, -3.0], np.array(["no", "yes"])[y]


@pytest.fixture(scope="module")
def fitted(xor, one_part_held_out):
    return MosaicClassifier(max_tiles=32, calibration="sigmoid", **FREE).fit(*xor)


def test_rows_are_scaled_as_a_pipeline_would(fitted, xor):
    X, y = xor
    best = fitted.leaderboard_[0]
    assert best["model"] != "LinearSVC"
    assert best["score"] > 0.97
    inner = clone(fitted.best_estimator_)
    assert best["scaling"] == "standard"
    pipeline = make_pipeline(StandardScaler(), inner).fit(X, y)
    assert_allclose(fitted.decision_function(X), pipeline.decision_function(X), atol=1e-6)
    assert_array_equal(fitted.best_estimator_.predict(X), fitted.predict(X))


def test_leaderboard_tells_what_was_tried_and_the_winner_leads(fitted):
    board = fitted.leaderboard_
    assert {"LinearSVC", "ClusteredSVC", "LocallyLinearSVC", "LearnedGateSVC"} == {line["model"] for line in board}
    most = max(line["rows"] for line in board)
    assert {line["rows"] for line in board} == {480}
    scores = [line["score"] for line in board if line["rows"] == most]
    assert scores == sorted(scores, reverse=True)
    assert fitted.best_score_ == scores[0]
    assert [line["chosen"] for line in board] == [True] + [False] * (len(board) - 1)
    assert type(fitted.best_estimator_).__name__ == board[0]["model"]
    assert all(line["tiles"] <= 32 for line in board)
    assert not fitted.budget_bound_


def test_same_seed_same_model(xor):
    first, second = (MosaicClassifier(max_tiles=8, **FREE).fit(*xor) for _ in range(2))
    assert_array_equal(first.decision_function(xor[0]), second.decision_function(xor[0]))
    drop = ("seconds",)
    boards = [[{k: v for k, v in line.items() if k not in drop} for line in m.leaderboard_] for m in (first, second)]
    assert repr(boards[0]) == repr(boards[1])


def test_services_of_a_mosaic_work_through_the_scaling(fitted, xor, tmp_path):
    X, _ = xor
    decision = fitted.decision_function(X)
    predictor = pickle.loads(pickle.dumps(fitted.predictor()))
    assert_allclose(predictor.decision_function(X), decision, rtol=1e-9, atol=1e-9)
    assert predictor(X[3]) == fitted.predict(X[3:4])[0]
    assert predictor.decision_function(X[3]) == pytest.approx(decision[3])
    assert_allclose(predictor.predict_proba(X), fitted.predict_proba(X), atol=1e-9)
    told = fitted.explain(X[:5])
    assert_allclose((told.contributions.sum(axis=2) + told.intercept)[:, 0], decision[:5], atol=1e-9)
    assert_array_equal(told.value, X[:5])
    assert fitted.regions_["rows"].sum() == len(X)
    assert_array_equal(fitted.summarise_regions(*xor)["accuracy"], fitted.regions_["accuracy"])
    fitted.save(tmp_path / "model.svmosaic")
    again = svmosaic.load(tmp_path / "model.svmosaic")
    assert_array_equal(again.decision_function(X), decision)
    assert again.leaderboard_[0]["model"] == fitted.leaderboard_[0]["model"]


def test_onnx_scales_too(fitted, xor):
    session = onnxruntime.InferenceSession(fitted.to_onnx(dtype=np.float64).SerializeToString())
    label, probability, scores = session.run(None, {"X": xor[0]})
    assert_allclose(scores[:, 0], fitted.decision_function(xor[0]), atol=1e-9)
    assert_allclose(probability, fitted.predict_proba(xor[0]), atol=1e-6)
    assert_array_equal(label, fitted.predict(xor[0]))


def test_c_scales_too(fitted, xor, tmp_path):
    X = xor[0].astype(np.float32)
    source, _ = fitted.to_c(tmp_path / "model.c")
    library = tmp_path / "model.so"
    strict = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-overlength-strings"]
    subprocess.run(["cc", *strict, "-fPIC", "-shared", source, "-o", library, "-lm"], check=True)
    compiled = ctypes.CDLL(str(library))
    scores = np.empty(len(X), dtype=np.float32)
    for i, row in enumerate(X):
        compiled.model_scores(row.ctypes.data_as(ctypes.c_void_p), scores[i:].ctypes.data_as(ctypes.c_void_p))
    assert_allclose(scores, fitted.decision_function(X), atol=1e-4)


def test_sparse_rows_stay_sparse_and_are_scaled_by_their_largest_value():
    X, y = make_classification(400, 30, random_state=0)
    X[np.abs(X) < 1] = 0
    X *= np.logspace(-2, 2, 30)
    model = MosaicClassifier(max_tiles=4, **FREE).fit(sparse.csr_array(X), y)
    assert {line["scaling"] for line in model.leaderboard_} == {"maxabs"}
    pipeline = make_pipeline(MaxAbsScaler(), clone(model.best_estimator_)).fit(sparse.csr_matrix(X), y)
    assert_allclose(model.decision_function(sparse.csr_array(X)), pipeline.decision_function(X), atol=1e-6)
    assert_allclose(model.decision_function(X), pipeline.decision_function(X), atol=1e-6)


def test_linear_data_gets_a_linear_model():
    X, y = load_breast_cancer(return_X_y=True)
    model = MosaicClassifier(max_tiles=16, **FREE).fit(X, y)
    linear = make_pipeline(StandardScaler(), LinearSVC(random_state=0))
    assert model.best_score_ > 0.96
    assert model.score(X, y) >= linear.fit(X, y).score(X, y) - 0.01


def test_more_tiles_are_grown_where_they_help():
    # A checkerboard of 64 cells: 48 tiles, the most that is tried at first, cannot give each its own.
    X = np.random.RandomState(0).uniform(0, 8, (1500, 2))
    y = np.floor(X).sum(axis=1) % 2
    model = MosaicClassifier(max_tiles=96, **FREE).fit(X, y)
    assert model.mosaic_.n_tiles > 48
    first = max(line["score"] for line in model.leaderboard_ if line["tiles"] <= 48)
    assert model.best_score_ > first


def test_halving_gives_more_rows_to_fewer_candidates(monkeypatch):
    monkeypatch.setattr(_search, "FIRST_RUNG", 200)
    X, y = make_xor(1250, random_state=0)
    model = MosaicClassifier(max_tiles=16, **FREE).fit(X, y)
    rows = [line["rows"] for line in model.leaderboard_]
    assert sorted(set(rows)) == [200, 600, 1000]
    assert rows.count(200) > rows.count(600)
    assert {line["parts"] for line in model.leaderboard_} == {1}
    assert all(np.isnan(line["std"]) for line in model.leaderboard_)


def test_few_rows_are_held_out_in_turn_two_parts_first(monkeypatch):
    monkeypatch.setattr(_search, "ENOUGH_HELD_OUT", 1000)
    X, y = make_xor(150, random_state=0)
    model = MosaicClassifier(max_tiles=8, **FREE).fit(X, y)
    parts = [line["parts"] for line in model.leaderboard_]
    assert sorted(set(parts)) == [2, 5]
    assert parts == sorted(parts, reverse=True)
    assert model.best_score_ == model.leaderboard_[0]["score"]


def test_weights_count_in_the_choice():
    # Nine rows in ten of the second blob bear the wrong label: the weights say which to believe.
    rng = np.random.RandomState(0)
    X, y = make_xor(800, random_state=0)
    wrong = rng.uniform(size=len(y)) < 0.6
    noisy = np.where(wrong, 1 - y, y)
    model = MosaicClassifier(max_tiles=16, **FREE).fit(X, noisy, sample_weight=np.where(wrong, 0.01, 1.0))
    assert model.score(X, y) > 0.95
    assert model.best_score_ > 0.95  # weighted: the plain accuracy cannot be above 0.4


def test_zero_weights_are_as_if_absent(xor):
    X, y = xor
    weight = np.ones(len(y))
    weight[400:] = 0
    weighted = MosaicClassifier(max_tiles=8, **FREE).fit(X, y, sample_weight=weight)
    cut = MosaicClassifier(max_tiles=8, **FREE).fit(X[:400], y[:400])
    assert_array_equal(weighted.decision_function(X), cut.decision_function(X))


def test_class_weight_moves_the_choice():
    X, y = make_classification(600, 5, weights=[0.9], flip_y=0.1, random_state=0)
    plain, balanced = (MosaicClassifier(max_tiles=4, class_weight=w, **FREE).fit(X, y) for w in (None, "balanced"))
    assert (balanced.predict(X) == 1).sum() > (plain.predict(X) == 1).sum()


def test_metric_decides(xor):
    X, y = make_classification(500, 6, weights=[0.85], random_state=0)
    model = MosaicClassifier(max_tiles=8, metric="roc_auc", **FREE).fit(X, y)
    assert 0.5 < model.best_score_ <= 1
    assert model.best_score_ == max(line["score"] for line in model.leaderboard_)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"time_budget": 0}, "time_budget must be a finite number, above 0 or None, got 0"),
        ({"max_tiles": 0}, "max_tiles must be an integer, at least 1, got 0"),
        ({"metric": "beauty"}, "metric must be the name of a scorer.*got 'beauty'"),
        ({"validation_fraction": 0.9}, "validation_fraction must be a finite number, above 0, at most 0.5, got 0.9"),
        ({"calibration": "magic"}, "calibration must be one of"),
    ],
)
def test_wrong_parameters_are_named(settings, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        MosaicClassifier(**settings).fit(X, y)


def test_metric_that_needs_probabilities_is_refused_with_a_reason():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(TypeError, match="metric='neg_log_loss' cannot judge LinearSVC"):
        MosaicClassifier(metric="neg_log_loss", **FREE).fit(X, y)


def test_too_few_rows_for_a_choice_give_the_linear_model():
    X, y = np.array([[0.0], [1.0]]), np.array([0, 1])
    model = MosaicClassifier(**FREE).fit(X, y)
    assert model.leaderboard_ == []
    assert np.isnan(model.best_score_)
    assert_array_equal(model.predict(X), y)


def test_a_class_of_one_row_is_no_obstacle():
    X, y = load_iris(return_X_y=True)
    kept = np.r_[0:100, 149]
    model = MosaicClassifier(max_tiles=4, **FREE).fit(X[kept], y[kept])
    assert list(model.classes_) == [0, 1, 2]
    with pytest.raises(ValueError, match="needs at least two of each class, but class '2' has 1"):
        MosaicClassifier(calibration="sigmoid", **FREE).fit(X[kept], y[kept])


def test_a_budget_that_is_met_stops_the_search_and_says_so(monkeypatch):
    ticks = iter(range(10**6))
    monkeypatch.setattr(_search, "perf_counter", lambda: float(next(ticks)))
    X, y = make_xor(400, random_state=0)
    model = MosaicClassifier(time_budget=20, random_state=0).fit(X, y)
    free = MosaicClassifier(**FREE).fit(X, y)
    assert model.budget_bound_
    assert not free.budget_bound_
    assert 1 <= len(model.leaderboard_) < len(free.leaderboard_)
    assert model.predict(X).shape == y.shape


def test_what_could_not_be_fitted_in_time_is_not_tried():
    X, y = make_xor(100, random_state=0)
    target = svmosaic._validation.validate_training(LinearSVC(), X, y)[1]
    folds = [(np.arange(80), np.arange(80, 100))]
    options = dict(cap=512, budget=1000.0, seed=0, n_jobs=None, keep_scores=False, say=print)
    search = Search(X, target, None, folds, **options)
    quick, slow = Candidate("linear", 1, 1.0, "standard"), Candidate("local", 16, 1.0, "standard")
    search.trials = [Trial(quick, 0, 50, 1, [0.7], 1.0), Trial(slow, 0, 50, 1, [0.9], 200.0)]
    assert not search._late(quick, 50, 1)
    assert search._late(slow, 80, 4)  # four parts of 80 rows, and all 100 rows
    assert not search._late(slow, 50, 1)
    assert search._affordable() == slow
    search.budget = 100.0  # 400 seconds would be needed
    assert search._affordable() == quick
    assert search.out_of_time
    learnt, polished = (Candidate("learned", 16, C, "standard") for C in (None, 10.0))
    search.trials = [Trial(learnt, 0, 50, 1, [0.7], 1.0), Trial(polished, 0, 50, 1, [0.7], 8.0)]
    assert search._expected(learnt, 100) == 2.0
    assert search._expected(polished, 100) == 16.0


def test_what_fails_stays_in_the_leaderboard(monkeypatch):
    def fit(self, X, y, sample_weight=None):
        raise ValueError("diverged")

    monkeypatch.setattr(_search.LearnedGateSVC, "fit", fit)
    X, y = make_xor(400, random_state=0)
    model = MosaicClassifier(max_tiles=16, **FREE).fit(X, y)
    failed = [line for line in model.leaderboard_ if line["failure"]]
    assert {line["model"] for line in failed} == {"LearnedGateSVC"}
    assert all(np.isnan(line["score"]) and "diverged" in line["failure"] for line in failed)


def test_every_beginning_of_the_order_has_all_classes_in_proportion():
    label = np.repeat([0, 1, 2], [900, 90, 10])
    order = spread_by_class(label, np.random.RandomState(0))
    assert_array_equal(np.sort(order), np.arange(1000))
    for n in (10, 100, 500):
        counts = np.bincount(label[order[:n]], minlength=3)
        assert (counts >= 1).all()
        assert np.abs(counts - n * np.array([0.9, 0.09, 0.01])).max() <= 2


def test_one_part_is_held_out_where_that_is_enough(monkeypatch):
    monkeypatch.setattr(_search, "ENOUGH_HELD_OUT", 1000)
    rng = np.random.RandomState(0)
    assert len(folds_of(np.arange(1000) % 2, 0.2, rng)) == 5
    ((train, held),) = folds_of(np.arange(200_000) % 2, 0.2, rng)
    assert len(held) == _search.MOST_HELD_OUT
    assert_array_equal(np.sort(np.concatenate([train, held])), np.arange(200_000))


def test_common_scaling_keeps_proportions():
    X = np.random.RandomState(0).standard_normal((100, 3)) * [1, 2, 5] + 7
    ways = scalings_of(X, None)
    Z = ways["common"].scale(X)
    assert_allclose(Z.std(axis=0) / Z.std(axis=0)[0], X.std(axis=0) / X.std(axis=0)[0])
    assert Z.var(axis=0).mean() == pytest.approx(1)
    assert set(scalings_of(X * [1, 1, 1e6], None)) == {"standard"}


def test_centring_refuses_sparse_rows():
    with pytest.raises(ValueError, match=r"pass X\.toarray"):
        Scaling(np.zeros(2), np.ones(2)).scale(sparse.csr_array(np.eye(2)))


def test_wide_rows_limit_the_tiles():
    X, y = make_xor(100, random_state=0)
    target = svmosaic._validation.validate_training(LinearSVC(), X, y)[1]
    options = dict(cap=512, budget=None, seed=0, n_jobs=None, keep_scores=False, say=print)
    wide = sparse.csr_array((100, 1_000_000))
    assert Search(wide, target, None, [], **options).cap == 20
    assert Search(X, target, None, [], **options).cap == 512


def test_neighbours_change_one_thing():
    start = Candidate("local", 16, 10.0, "standard")
    for other in start.neighbours():
        assert sum(a != b for a, b in zip(vars(start).values(), vars(other).values(), strict=True)) == 1
    assert isinstance(start.build(100, 0, None), LocallyLinearSVC)
