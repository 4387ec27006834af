"""Learned gates out of core and on Dask: the steps of the learner in memory, on rows that are elsewhere."""

import json
import tracemalloc
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from test_gate_learner import learner_of
from test_partitions import cut

from svmosaic import LearnedGateSVC, LearnedGateSVR, outofcore
from svmosaic.cli import main
from svmosaic.learner.loop import CoreEngine, Plan
from svmosaic.learner.stream import StreamEngine
from svmosaic.model.heads import Classify
from svmosaic.scale import fit
from svmosaic.scale.fit import Survey
from svmosaic.scale.learning import AveragingEngine, draw_places
from svmosaic.scale.part import Part

QUICK = {"n_tiles": 10, "n_neighbors": 3, "max_iter": 6, "random_state": 0}


def waves(n=1500, seed=0):
    X = np.random.default_rng(seed).uniform(-2, 2, (n, 3))
    return X, np.sin(2 * X[:, 0]) * X[:, 1]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return train_test_split(X / 16 - 0.5, np.array(list("abcdefghij"))[y], random_state=0, test_size=600)


def pieces_of_rows(n=230, n_chunks=5):
    """Chunks of unequal sizes, as an engine takes them, and a learner."""
    X, value = waves(n)
    X, target, weight = X.astype(np.float32), (value > 0)[:, None].astype(float), np.linspace(0.5, 2.0, n)
    bounds = np.linspace(0, np.sqrt(n), n_chunks + 1) ** 2
    here = [slice(int(a), int(b)) for a, b in pairwise(bounds)]
    learner = learner_of(True, 1, d=3, dtype=np.float32)
    learner.decay = 0.1
    return X, target, weight, here, learner


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_a_stream_is_its_buffers_in_memory_one_after_another(storage, monkeypatch):
    monkeypatch.setattr("svmosaic.learner.stream.BUFFER_CHUNKS", 2)
    X, target, weight, here, learner = pieces_of_rows()
    X, plan, rates = storage(X), Plan(1, 16, 0.03), np.linspace(0.01, 0.03, 15)
    whole = learner.copy()

    def read(chunks):
        return ((X[here[k]], target[here[k]], weight[here[k]]) for k in chunks)

    engine = StreamEngine(learner, read, len(here), X.shape[0], plan)
    order = engine.order(np.random.RandomState(0))
    buffers = list(engine._buffers(*order))
    assert len(buffers) > 2
    assert {len(one[2]) % 16 for one in buffers[:-1]} == {0}
    rows = sparse.vstack([one[0] for one in buffers]) if sparse.issparse(X) else np.vstack([one[0] for one in buffers])
    rest = [np.concatenate([one[k] for one in buffers]) for k in (1, 2)]
    assert_array_equal(np.sort(rest[1]), np.sort(weight))  # each row once
    other = CoreEngine(whole, rows.tocsr() if sparse.issparse(X) else rows, *rest, plan)
    loss, n_met = engine.epoch(order, rates)
    assert n_met == 230
    assert loss == pytest.approx(other.epoch(np.arange(230, dtype=np.int32), rates)[0])
    assert engine.weight_met(order, n_met) == pytest.approx(weight.sum())
    assert_array_equal(learner.tiles, whole.tiles)
    assert engine.epoch(order, rates, deadline=0.0) == (0.0, 0)


def test_one_partition_has_nothing_to_average():
    X, target, weight, _, learner = pieces_of_rows()
    whole, plan, rates = learner.copy(), Plan(1, 16, 0.03), np.linspace(0.01, 0.03, 15)
    parts = cut(X, target[:, 0].astype(int), weight)
    part = Part(X, target[:, 0].astype(np.int32), weight, 0, np.zeros(2, int), Classify(np.arange(2)))
    parts.parts, parts.steps_between_averages = [part], 4
    survey = Survey(230, 3, X.dtype, None, Classify(np.arange(2)), np.ones(2), np.ones(2))
    held = np.array([3, 50])
    engine = AveragingEngine(parts, survey, learner, plan, "cpu", held)
    assert (engine.n_rows, engine.n_batches) == (228, 15)
    loss, n_met = engine.epoch(7, rates)
    order = np.random.RandomState([7, 0]).permutation(np.delete(np.arange(230), held)).astype(np.int32)
    expected, _ = CoreEngine(whole, X, target, weight, plan).epoch(order, rates)
    assert n_met == 228
    assert loss == pytest.approx(expected, rel=1e-5)
    assert_allclose(learner.tile_weights(), whole.tile_weights(), atol=1e-5)
    assert_allclose(learner.anchors[0], whole.anchors[0], atol=1e-5)
    assert_allclose(learner.clock, whole.clock)


def test_accuracy_is_that_of_the_fit_in_memory(digits):
    X, X_test, y, y_test = digits
    order = np.argsort(y, kind="stable")  # chunks of one class
    model = LearnedGateSVC(**QUICK, calibration="temperature", class_weight="balanced")
    local = clone(model).fit(X, y).score(X_test, y_test)
    found = outofcore.fit(model, X[order], y[order], chunk_rows=100)
    assert found.score(X_test, y_test) > local - 0.02
    assert_allclose(found.predict_proba(X_test).sum(axis=1), 1.0)
    assert found.region_counts_["classes"].sum() > 0
    assert len(found.validation_scores_) == found.n_iter_
    short = clone(model).set_params(max_iter=1)
    again = [outofcore.fit(short, X[order], y[order], chunk_rows=100).mosaic_.coef for _ in range(2)]
    assert_array_equal(*again)


def test_values_weights_and_curves(monkeypatch):
    monkeypatch.setattr("svmosaic.scale.learning.START_ROWS", 400)
    X, y = waves()
    weight = np.where(X[:, 2] > 1, 0.0, 1.0)
    model = LearnedGateSVR(**QUICK | {"max_iter": 15}, pieces=6)
    found = outofcore.fit(model, X, 100 * y + 7, sample_weight=weight, chunk_rows=200)
    local = clone(model).fit(X, 100 * y + 7, weight)
    X_test, y_test = waves(1000, 1)
    assert_allclose(found.head_.scale, local.head_.scale)
    assert found.score(X_test, 100 * y_test + 7) > local.score(X_test, 100 * y_test + 7) - 0.02
    assert found.n_iter_ == len(found.validation_scores_) + found.best_iter_
    assert found.regions_["rows"].sum() >= (weight > 0).sum()


def test_memory_does_not_grow_with_the_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("svmosaic.scale.learning.START_ROWS", 500)
    monkeypatch.setattr("svmosaic.scale.learning.HELD_OUT_ROWS", 500)
    peaks = []
    for n in (8_000, 32_000):
        X = np.random.default_rng(0).normal(size=(n, 60)).astype(np.float32)
        np.save(tmp_path / "X.npy", X)
        np.save(tmp_path / "y.npy", (X[:, 0] * X[:, 1] > 0).astype(int))
        del X
        tracemalloc.start()
        model = LearnedGateSVC(4, n_neighbors=2, max_iter=1, batch_size=500, random_state=0)
        outofcore.fit(model, tmp_path / "X.npy", tmp_path / "y.npy", chunk_rows=1000, scratch=tmp_path)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # The larger set is 5.8 MB larger; labels and the sample are drawn by numbers of all rows, 8 bytes each.
    assert peaks[1] - peaks[0] < 1_000_000


def test_time_limits_and_what_cannot_be_done():
    X, y = waves(600)
    label = (y > 0).astype(int)
    model = LearnedGateSVC(**QUICK | {"max_iter": 10**6, "max_time": 0.3}, early_stopping=False)
    with pytest.warns(ConvergenceWarning, match=r"max_time=0.3 s"):
        assert outofcore.fit(model, X, label, chunk_rows=100).stop_reason_ == "max_time"
    with pytest.raises(ValueError, match="needs polish=False, got True"):
        outofcore.fit(LearnedGateSVC(polish=True), X, label)
    with pytest.raises(ValueError, match="too large for float32"):
        outofcore.fit(LearnedGateSVC(**QUICK), X * 1e60, label, chunk_rows=100)
    with pytest.warns(UserWarning, match="far from the origin|Standardize|standardize"):
        outofcore.fit(LearnedGateSVC(**QUICK | {"max_iter": 1}), X + 1e7, label, chunk_rows=100)


def test_rows_far_from_the_origin_are_centered():
    X, y = waves()
    label = (y > 0).astype(int)
    near, far = (
        outofcore.fit(LearnedGateSVC(**QUICK | {"max_iter": 20}), X + shift, label, chunk_rows=200).score(
            X + shift, label
        )
        for shift in (0, 1000)
    )
    assert far > near - 0.03


def test_places_are_drawn_without_a_number_for_each_row():
    few = draw_places(1000, 100, np.random.RandomState(0))
    assert_array_equal(few, np.sort(np.random.RandomState(0).choice(1000, 100, replace=False)))
    many = draw_places(10**12, 1000, np.random.RandomState(0))  # a permutation would take terabytes
    assert_array_equal(many, draw_places(10**12, 1000, np.random.RandomState(0)))
    assert len(np.unique(many)) == 1000
    assert 0 <= many.min() < 10**11 < 9 * 10**11 < many.max() < 10**12


def test_over_dask(digits):
    pytest.importorskip("distributed")
    import dask.array as da
    from distributed import Client

    import svmosaic.dask

    X, X_test, y, y_test = digits
    options = QUICK
    local = LearnedGateSVC(**options).fit(X, y).score(X_test, y_test)
    with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0"):
        rows, labels = da.from_array(X, chunks=(600, -1)), da.from_array(y, chunks=600)
        model = svmosaic.dask.LearnedGateSVC(**options, steps_between_averages=8).fit(rows, labels)
        assert model.get_params()["steps_between_averages"] == 8
        assert model.score(da.from_array(X_test, chunks=(300, -1)), da.from_array(y_test, chunks=300)) > local - 0.02
        with pytest.raises(ValueError, match="steps_between_averages must be an integer, at least 1, got 0"):
            svmosaic.dask.LearnedGateSVR(steps_between_averages=0).fit(rows, labels)
    # The same bits from the same partitions elsewhere.
    here = cut(X, y, None, (600,))
    here.steps_between_averages = 8
    assert_array_equal(fit(LearnedGateSVC(**options), here).mosaic_.coef, model.mosaic_.coef)


def test_a_large_table_from_the_command_line(tmp_path, capsys):
    X, y = waves(1500)
    frame = pd.DataFrame(X, columns=list("abc")).assign(kind=np.where(y > 0, "u", "v"))
    frame.to_csv(tmp_path / "rows.csv", index=False)
    arguments = ["--label", "kind", "--model", "learned", "--set", "max_iter=10", "--set", "n_tiles=16"]
    arguments += ["--memory", "100kB", "--json", "--quiet"]
    assert main(["train", tmp_path / "rows.csv", "-o", tmp_path / "m", *arguments]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["chunks"] > 3
    assert facts["held_out"]["accuracy"] > facts["held_out"]["linear_svm"] + 0.2
