"""MosaicRegressor: the same search, with values instead of classes."""

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from searches import search_of
from sklearn.datasets import load_diabetes
from sklearn.metrics import mean_absolute_error, r2_score

import svmosaic
from svmosaic import MosaicRegressor
from svmosaic.search.plan import REGRESSORS

FREE = {"effort": "quick", "random_state": 0}
QUICK = FREE | {"families": ("linear", "local")}
LINEAR = FREE | {"families": ("linear",), "validation_fraction": 0.5}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.RandomState(0)
    X = rng.uniform(-2, 2, (300, 4)) * [1, 100, 0.01, 1] + [5, 0, 0, 0]
    y = 40 + 10 * np.sin(X[:, 0]) + 0.05 * X[:, 1] * (X[:, 3] > 0) + rng.standard_normal(300)
    return X, y


@pytest.fixture(scope="module")
def fitted(rows):
    with search_of(16):
        return MosaicRegressor(max_tiles=64, **FREE | {"effort": "good"}).fit(*rows)


def test_it_finds_what_a_linear_model_cannot(fitted, rows):
    X, y = rows
    board = fitted.leaderboard_
    usual = {kind.__name__ for kind in REGRESSORS.values()} - {"KernelSVR"}  # unless it is asked for
    assert {line["model"] for line in board} == usual
    straight = max(line["score"] for line in board if line["model"] == "LinearSVR" and line["pieces"] is None)
    assert fitted.best_score_ > straight + 0.1
    held, scores = fitted.held_out_
    assert fitted.best_score_ == pytest.approx(r2_score(y[held], fitted.head_.answers(scores)))
    assert fitted.score(X, y) > fitted.best_score_
    assert "score" in str(board)


def test_a_blend_is_the_weighted_sum_of_its_parts(fitted, rows):
    X, _ = rows
    assert len(fitted.parts_) > 1
    expected = sum(weight * part.predict(X) for weight, part in fitted.parts_)
    assert_allclose(fitted.predict(X), expected, rtol=1e-6)


def test_services_of_a_mosaic(fitted, rows, tmp_path):
    X, y = rows
    fitted.save(tmp_path / "model.svmosaic")
    assert_array_equal(svmosaic.load(tmp_path / "model.svmosaic").predict(X), fitted.predict(X))
    session = onnxruntime.InferenceSession(fitted.to_onnx(dtype=np.float64).SerializeToString())
    assert_allclose(np.ravel(session.run(None, {"X": X})[0]), fitted.predict(X), rtol=1e-5)
    assert_allclose(fitted.predictor().predict(X), fitted.predict(X), rtol=1e-9)
    assert fitted.summarize_regions(X, y)["rows"].sum() == fitted.regions_["rows"].sum()


def test_metric_decides_the_loss(rows):
    X, y = rows
    y = np.where(np.arange(len(y)) % 10 == 0, y + 500, y)  # far values drag squared errors along
    by_squares = MosaicRegressor(**LINEAR).fit(X, y)
    by_size = MosaicRegressor(metric="neg_mean_absolute_error", **LINEAR).fit(X, y)
    assert by_size.best_estimator_.loss == "epsilon_insensitive"
    assert by_squares.best_estimator_.loss == "squared_epsilon_insensitive"
    held, scores = by_size.held_out_
    error = mean_absolute_error(y[held], by_size.head_.answers(scores))
    assert by_size.best_score_ == pytest.approx(-error)
    held, scores = by_squares.held_out_
    assert error < mean_absolute_error(y[held], by_squares.head_.answers(scores))


def test_several_targets_sparse_rows_and_weights(rows):
    X, y = rows
    both = np.column_stack([y, -2 * y])
    model = MosaicRegressor(**LINEAR).fit(X, both)
    assert model.predict(X).shape == (300, 2)
    assert_allclose(model.predict(X)[:, 1], -2 * model.predict(X)[:, 0], rtol=0.05)
    assert MosaicRegressor(**LINEAR).fit(sparse.csr_array(X), y).predict(sparse.csr_array(X)).shape == (300,)
    weight = np.ones(300)
    weight[200:] = 0
    cut = MosaicRegressor(**LINEAR).fit(X[:200], y[:200])
    assert_array_equal(MosaicRegressor(**LINEAR).fit(X, y, sample_weight=weight).predict(X), cut.predict(X))


def test_the_seed_decides_and_kernel_machines_are_tried_if_asked_for():
    X, y = load_diabetes(return_X_y=True)
    settings = FREE | {"families": ("linear", "kernel")}
    models = [MosaicRegressor(n_jobs=n, **settings).fit(X, y) for n in (1, 2)]
    assert {line["model"] for line in models[0].leaderboard_} == {"LinearSVR", "KernelSVR"}
    assert_array_equal(models[0].predict(X), models[1].predict(X))


def test_wrong_parameters_are_named(rows):
    with pytest.raises(ValueError, match=r"metric must be the name of a scorer, such as 'r2'.*got 'beauty'"):
        MosaicRegressor(metric="beauty").fit(*rows)
    with pytest.raises(ValueError, match="got 'rmse': did you mean 'neg_root_mean_squared_error'"):
        MosaicRegressor(metric="rmse").fit(*rows)
    with pytest.raises(TypeError, match="metric='accuracy' cannot score these rows"):
        MosaicRegressor(metric="accuracy", **QUICK).fit(*rows)


def test_a_model_outside_the_domain_of_the_metric_is_a_failed_trial(rows):
    """The logarithm of negative predictions: linear models have some, forests of leaves none."""
    X, y = rows
    y = np.exp(3.0 * (y - y.mean()) / y.std())
    either = FREE | {"families": ("linear", "trees"), "max_tiles": 64}
    model = MosaicRegressor(metric="neg_mean_squared_log_error", **either).fit(X, y)
    board = pd.DataFrame(model.leaderboard_)
    failed = board[board.failure != ""]
    assert len(failed)
    assert failed.failure.str.contains("cannot score these rows").all()
    assert np.isfinite(model.best_score_)
    with pytest.raises(TypeError, match="metric='neg_mean_squared_log_error' cannot score these rows"):
        MosaicRegressor(metric="neg_mean_squared_log_error", **QUICK).fit(X, -y)


def test_targets_that_have_no_intervals_are_refused_before_the_search(rows, monkeypatch):
    X, y = rows
    monkeypatch.setattr(MosaicRegressor, "_search", None)
    with pytest.raises(ValueError, match=r"intervals need a one-dimensional y, got shape \(300, 2\)"):
        MosaicRegressor(quantiles=(0.05, 0.95), **QUICK).fit(X, np.column_stack([y, y]))


@pytest.mark.parametrize("dtype", ["datetime64[D]", "timedelta64[h]"])
def test_times_are_no_values(rows, dtype):
    """Their numbers would be microseconds, say, whatever was meant."""
    X, y = rows
    with pytest.raises(ValueError, match=r"y must hold numbers for MosaicRegressor, got dates or durations: convert"):
        MosaicRegressor(**QUICK).fit(X, y.astype(int).astype(dtype))


@pytest.mark.parametrize("scale", [2.0**-20, 1024.0])
def test_weights_have_no_unit(rows, scale):
    X, y = rows
    weight = np.random.RandomState(1).randint(1, 5, len(y))
    models = [MosaicRegressor(**LINEAR).fit(X, y, sample_weight=w) for w in (weight, scale * weight)]
    assert_array_equal(models[0].predict(X), models[1].predict(X))


def test_two_rows_give_a_model():
    model = MosaicRegressor(**FREE).fit([[0.0], [1.0]], [1.0, 3.0])
    assert model.predict([[0.0], [1.0]]).shape == (2,)
    assert len(model.predict([[2.0]])) == 1


def test_intervals_beside_boosted_trees():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(400, 3))
    y = np.sin(X[:, 0]) + 0.3 * rng.standard_normal(400)
    for families in (("boosted",), ("boosted", "trees")):
        model = MosaicRegressor(effort="quick", families=families, quantiles=(0.1, 0.9), random_state=0).fit(
            X[:300], y[:300]
        )
        low, high = model.predict_interval(X[300:]).T
        assert 0.6 < ((low <= y[300:]) & (y[300:] <= high)).mean() < 0.95
