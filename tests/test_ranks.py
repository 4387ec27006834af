"""Ranks: what they are, what does not change them, and models over ranks as models over rows."""

import shutil

import numpy as np
import onnxruntime
import pytest
from exported import check_agreement
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats
from test_export_c import Compiled
from test_export_javascript import run_javascript, table

import svmosaic
from svmosaic import (
    ClusteredSVC,
    KMeansSVC,
    LearnedGateSVC,
    LinearSVC,
    LocallyLinearSVC,
    MosaicClassifier,
    MosaicRegressor,
)
from svmosaic.estimators._anchors import AnchorsMixin
from svmosaic.maps import Ranks, Scaling, over_measured_rows
from svmosaic.maps.ranks import KNOTS
from svmosaic.model.blending import blend
from svmosaic.search import engine
from svmosaic.search.plan import Candidate, portfolio
from svmosaic.search.scalings import scalings_of

MODELS = {
    "linear": LinearSVC(random_state=0),
    "cells": KMeansSVC(5, random_state=0),
    "clustered": ClusteredSVC(5, random_state=0),
    "local": LocallyLinearSVC(12, n_neighbors=4, random_state=0),
    "local-llc": LocallyLinearSVC(12, n_neighbors=4, coding="llc", random_state=0),
    "learned": LearnedGateSVC(8, n_components=3, n_neighbors=3, max_iter=3, random_state=0),
    "learned-two": LearnedGateSVC(8, n_components=3, n_gates=2, n_neighbors=3, max_iter=3, random_state=0),
    "learned-plain": LearnedGateSVC(8, n_components=None, n_neighbors=3, max_iter=3, random_state=0),
}


def skewed(n=400, seed=0, n_classes=2):
    """Columns that are skewed, mostly zero, binary and constant."""
    rng = np.random.default_rng(seed)
    X = np.exp(rng.normal(size=(n, 6)))
    X[:, 2] = np.maximum(X[:, 2] - 1.5, 0.0)
    X[:, 3] = X[:, 3] > 1
    X[:, 4] = 7.5
    X[:, 5] = rng.integers(0, 5, n)
    y = (np.log(X[:, 0]) * np.log(X[:, 1]) > 0).astype(int)
    return X.astype(np.float32), y + (X[:, 5] > 3) if n_classes > 2 else y


def test_ranks_are_those_of_the_definition():
    rng = np.random.default_rng(0)
    x = rng.integers(0, KNOTS, 300).astype(float)  # few enough values for a knot at each
    expected = stats.zscore((stats.rankdata(x) - 0.5) / len(x))
    assert_allclose(Ranks.fit(x[:, None]).scale(x[:, None])[:, 0], expected, atol=1e-12)


def test_columns_have_mean_zero_and_variance_one():
    X, _ = skewed(5000)
    scaled = Ranks.fit(X).scale(X.astype(np.float64))
    varies = np.array([0, 1, 2, 3, 5])
    assert_allclose(scaled.mean(axis=0), 0.0, atol=1e-6)
    assert_allclose(scaled[:, varies].std(axis=0), 1.0, rtol=1e-6)
    assert_array_equal(scaled[:, 4], 0.0)
    assert_allclose(scaled[:, 3], stats.zscore(X[:, 3].astype(float)), atol=1e-6)  # of two values nothing else is left
    for f in (0, 1, 2, 5):
        assert (np.diff(scaled[np.argsort(X[:, f]), f]) >= 0).all()
    # Without ties as of a uniform distribution.
    assert_allclose(scaled[:, 0].max(), np.sqrt(3), rtol=1e-2)


def test_beyond_the_training_rows_ranks_are_constant():
    X, _ = skewed()
    ranks = Ranks.fit(X[:, :3])
    far = np.array([[-1e30, 0.0, 0.0], [1e30, 1e30, 1e30]])
    ends = ranks.scale(X[:, :3].astype(float))
    assert_allclose(ranks.scale(far)[1], ends.max(axis=0), rtol=1e-12)
    assert_allclose(ranks.scale(far)[0, 0], ends[:, 0].min(), rtol=1e-12)


@pytest.mark.parametrize("transform", [np.exp, np.cbrt, lambda x: 3 * x - 1e3], ids=["exp", "cbrt", "affine"])
def test_monotone_transformations_change_nothing_but_what_is_between_knots(transform):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 3))
    ranks, others = Ranks.fit(X), Ranks.fit(transform(X))
    assert_array_equal(others.pieces.start, ranks.pieces.start)
    assert_allclose(others.pieces.knot, transform(ranks.pieces.knot), rtol=1e-12)
    # Between knots both are linear, in x and in its transformation: less than the distance of two knots apart.
    apart = np.abs(ranks.scale(X) - others.scale(transform(X)))
    assert apart.max() < 1.05 * np.sqrt(12) / (KNOTS - 1)
    # Where all values are knots, nothing changes at all: the same model.
    X, y = rng.integers(0, KNOTS - 2, size=(300, 3)) / 10.0, rng.integers(0, 2, 300)
    one, other = (
        LocallyLinearSVC(8, n_neighbors=3, random_state=0).fit(Ranks.fit(rows).scale(rows), y)
        for rows in (X, transform(X))
    )
    assert_allclose(one.mosaic_.coef, other.mosaic_.coef, rtol=1e-9, atol=1e-12)


def test_a_weight_of_two_is_two_rows():
    X, _ = skewed(200)
    weight = np.random.default_rng(0).integers(1, 4, 200)
    ranks, copies = Ranks.fit(X, weight), Ranks.fit(np.repeat(X, weight, axis=0))
    assert_allclose(ranks.pieces.knot, copies.pieces.knot)
    assert_allclose(ranks.value, copies.value, atol=1e-9)
    assert_allclose(ranks.pieces.scale, copies.pieces.scale, rtol=1e-9)


def test_the_same_seed_gives_the_same_ranks():
    X = np.random.default_rng(0).normal(size=(25_000, 2))
    one, same, other = (Ranks.fit(X, rng=np.random.RandomState(seed)) for seed in (0, 0, 1))
    assert_array_equal(one.value, same.value)
    assert_array_equal(one.pieces.knot, same.pieces.knot)
    assert not np.array_equal(one.pieces.knot, other.pieces.knot)
    threads = Ranks.fit(X, rng=np.random.RandomState(0), n_jobs=2)
    assert_array_equal(one.pieces.knot, threads.pieces.knot)


def test_what_is_refused():
    X, y = skewed()
    for call in (Ranks.fit, Ranks.fit(X).scale):
        with pytest.raises(ValueError, match=r"the rank of zero is not zero: pass X.toarray\(\)"):
            call(sparse.csr_array(X))
    bent = LinearSVC(pieces=4, random_state=0).fit(X, y).mosaic_
    with pytest.raises(ValueError, match="ranks cannot precede a Pieces: fit the model without pieces"):
        over_measured_rows(Ranks.fit(X), bent)


def over_ranks(model, X, y):
    """A model fitted to ranks, which takes rows as they are measured; and its scores of the ranks."""
    ranks = Ranks.fit(X)
    model.fit(ranks.scale(X), y)
    scores = model.decision_function(ranks.scale(X))
    model.mosaic_ = over_measured_rows(ranks, model.mosaic_)
    return model, scores


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_model_over_ranks_is_a_model_over_rows(name, n_classes, tmp_path):
    X, y = skewed(n_classes=n_classes)
    X = X.astype(np.float64)
    model, expected = over_ranks(MODELS[name], X, y)
    assert_allclose(model.decision_function(X), expected, rtol=1e-9, atol=1e-9)
    assert_allclose(model.decision_function(X.astype(np.float32)), expected, rtol=1e-3, atol=1e-3)
    predictor = model.predictor()
    assert_array_equal(predictor.decision_function(X), model.decision_function(X))
    assert_array_equal(predictor.decision_function(X[3]), model.decision_function(X)[3])
    account = model.explain(X[:40])
    sums = account.contributions.sum(axis=2) + account.intercept
    assert_allclose(sums.reshape(expected[:40].shape), expected[:40], rtol=1e-9, atol=1e-9)
    assert_array_equal(account.value, X[:40])  # in the user's units
    model.save(tmp_path / "m")
    assert_array_equal(svmosaic.load(tmp_path / "m").decision_function(X), model.decision_function(X))
    model.save_predictor(tmp_path / "p")
    assert_array_equal(svmosaic.load(tmp_path / "p").decision_function(X), model.decision_function(X))
    if isinstance(model, AnchorsMixin):
        assert model.anchors_.shape == (12, 6)
        assert np.ndim(model.code_scale_) == 0


@pytest.mark.parametrize("name", ["linear", "cells", "local", "learned", "learned-two"])
def test_exports(name, tmp_path):
    X, y = skewed(n_classes=3)
    rows = X.astype(np.float64)
    model, expected = over_ranks(MODELS[name], rows, y)
    proto = model.to_onnx(dtype=np.float64)
    scores = onnxruntime.InferenceSession(proto.SerializeToString()).run(["scores"], {"X": rows})[0]
    assert_allclose(scores, expected, rtol=1e-8, atol=1e-8)
    source, _ = model.to_c(tmp_path / "model.c")
    scores = Compiled(source, 3).scores(X)
    # In single precision a row that is as near to two cells may fall into the other one.
    assert np.mean(np.abs(scores - expected).max(axis=1) < 2e-3) > 0.98
    if shutil.which("node"):
        out = run_javascript(model.to_javascript(), rows[:100].tolist(), tmp_path)
        assert_allclose(table(out, "scores"), expected[:100], rtol=1e-8, atol=1e-8)
        assert_array_equal(table(out, "label"), model.predict(rows[:100]))


def test_c_agrees_with_the_engine(tmp_path):
    X, y = skewed(n_classes=3)
    model, _ = over_ranks(MODELS["learned"], X.astype(np.float64), y)
    source, _ = model.to_c(tmp_path / "model.c")
    compiled = Compiled(source, 3)
    check_agreement(model, X, model.classes_[compiled.places(X)], compiled.scores(X), kind="training")


def test_curves_are_those_of_the_ranks():
    X, y = skewed()
    ranks = Ranks.fit(X)
    model = LinearSVC(random_state=0).fit(ranks.scale(X.astype(np.float64)), y)
    slope = model.coef_[0].copy()
    model.mosaic_ = over_measured_rows(ranks, model.mosaic_)
    curve = model.curves_["x0"]
    assert_allclose(curve.knots, ranks.pieces.knots[0])
    assert_allclose(curve.mean[0], slope[0] * ranks.value[: len(curve.knots)], rtol=1e-9, atol=1e-12)


def test_blends_with_other_models():
    X, y = skewed()
    X = X.astype(np.float64)
    ranked, _ = over_ranks(MODELS["local"], X, y)
    scaling = Scaling(X.mean(axis=0), 1.0 / (X.std(axis=0) + 1e-9))
    plain = over_measured_rows(scaling, KMeansSVC(4, random_state=0).fit(scaling.scale(X), y).mosaic_)
    bent = LinearSVC(pieces=8, random_state=0).fit(X, y).mosaic_
    parts = [ranked.mosaic_, plain, bent]
    expected = sum(w * part.decision_function(X) for w, part in zip((0.5, 0.3, 0.2), parts, strict=True))
    assert_allclose(blend(parts, [0.5, 0.3, 0.2]).decision_function(X), expected, rtol=1e-7, atol=1e-7)


# ---- the search ---------------------------------------------------------------------------------------------------


def test_the_search_offers_ranks_where_they_matter():
    rng = np.random.default_rng(0)
    gaussian = rng.normal(size=(500, 4))
    assert "rank" not in scalings_of(gaussian)
    assert list(scalings_of(np.exp(gaussian)))[-1] == "rank"  # after the others
    assert "rank" not in scalings_of(np.exp(rng.normal(size=(200, 65))))
    assert "rank" not in scalings_of(sparse.csr_array(np.exp(gaussian)))
    assert "rank" not in scalings_of((gaussian > 0).astype(float))
    some = portfolio(["standard", "rank"], 500)
    assert portfolio(["standard"], 500) == [c for c in some if c.scaling != "rank"]
    assert {c.family for c in some if c.scaling == "rank"} == {"local", "learned"}


def test_weights_of_curves_count():
    straight, ranked = Candidate("local", "standard", 10, C=1.0), Candidate("local", "rank", 10, C=1.0)
    assert ranked.n_weights(5, 1) == (KNOTS + 2) * straight.n_weights(5, 1)


@pytest.fixture
def only_ranks(monkeypatch):
    """Searches that try models over ranks alone."""
    chosen = [Candidate("local", "rank", 12, C=1.0, neighbors=4), Candidate("local", "rank", 6, C=1.0, neighbors=4)]
    monkeypatch.setattr(engine, "portfolio", lambda *arguments: chosen)


@pytest.mark.usefixtures("only_ranks")
def test_a_search_that_chooses_ranks(tmp_path):
    X, y = skewed(200)
    X = X.astype(np.float64)
    model = MosaicClassifier(effort="quick", random_state=0).fit(X, y)
    assert isinstance(model.scaling_, Ranks)
    assert {line["scaling"] for line in model.leaderboard_} == {"rank"}
    assert model.score(X, y) > 0.8
    assert_array_equal(model.best_estimator_.predict(X).shape, y.shape)
    model.save(tmp_path / "m")
    loaded = svmosaic.load(tmp_path / "m")
    assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert_allclose(loaded.scaling_.scale(X), model.scaling_.scale(X))
    assert_allclose(model.predictor().predict_proba(X), model.predict_proba(X), atol=1e-12)
    account = model.explain(X[:10])
    sums = account.contributions.sum(axis=2) + account.intercept
    assert_allclose(sums[:, 0], model.decision_function(X[:10]), rtol=1e-9, atol=1e-9)
    assert len(model.regions_) == model.mosaic_.n_tiles
    again = MosaicClassifier(effort="quick", random_state=0).fit(X, y)
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.usefixtures("only_ranks")
def test_intervals_over_ranks():
    X, _ = skewed(400)
    X = X.astype(np.float64)
    y = np.log(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=400)
    model = MosaicRegressor(effort="quick", quantiles=(0.1, 0.9), random_state=0).fit(X, y)
    assert isinstance(model.scaling_, Ranks)
    ends = model.predict_interval(X)
    assert np.mean((ends[:, 0] <= y) & (y <= ends[:, 1])) > 0.75
    assert (ends[:, 1] - ends[:, 0]).mean() < 1.0  # of a standard deviation of about one
    proto = model.to_onnx(dtype=np.float64)
    low, high = onnxruntime.InferenceSession(proto.SerializeToString()).run(["low", "high"], {"X": X})
    assert_allclose(np.concatenate([low, high], axis=1), ends, rtol=1e-8, atol=1e-8)


@pytest.mark.usefixtures("only_ranks")
def test_tables_larger_than_memory(tmp_path, capsys):
    pandas = pytest.importorskip("pandas")
    from svmosaic.cli import main

    X, y = skewed(600)
    frame = pandas.DataFrame(X, columns=list("abcdef")).assign(label=np.where(y, "yes", "no"))
    frame.to_csv(tmp_path / "t.csv", index=False)
    train = ["train", tmp_path / "t.csv", "--label", "label", "-o", tmp_path / "m", "--memory", "20kB", "--seed", "0"]
    assert main([*train, "--set", "effort=quick", "--test-size", "0", "--quiet"]) == 0
    assert main(["predict", tmp_path / "m", tmp_path / "t.csv", "-o", tmp_path / "out.csv"]) == 0
    found = pandas.read_csv(tmp_path / "out.csv")["prediction"]
    assert np.mean(found == frame["label"]) > 0.85
