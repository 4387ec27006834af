"""The models over Dask collections, on a cluster of two worker processes."""

import os
import pickle
import signal

import dask
import dask.array as da
import dask.dataframe as dd
import distributed
import joblib
import numpy as np
import pandas as pd
import pytest
from everything import CLASSIFIERS
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

import svmosaic
from svmosaic import dask as over_dask
from svmosaic.dask.workers import Workers, raw_parts

# Sockets of killed and of closing workers are collected when they are.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
N = 400


@pytest.fixture(scope="module")
def client():
    options = {"distributed.worker.daemon": True, "distributed.comm.timeouts.connect": "60s"}
    with (
        dask.config.set(options),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(
        N, 4, n_informative=4, n_redundant=0, n_classes=3, n_clusters_per_class=1, random_state=0
    )
    return X.astype(np.float32), np.array(["ape", "bee", "cow"])[y], np.random.RandomState(0).uniform(0.5, 2.0, N)


def arrays(X, y, weight=None, chunks=150):
    collections = da.from_array(X, chunks=(chunks, -1)), da.from_array(y, chunks=chunks)
    return collections if weight is None else (*collections, da.from_array(weight, chunks=chunks))


MODELS = {
    "LinearSVC": {},
    "KMeansSVC": {"n_clusters": 3, "loss": "squared_hinge"},
    "ClusteredSVC": {"n_clusters": 3, "loss": "squared_hinge"},
    "LocallyLinearSVC": {"n_anchors": 4, "n_neighbors": 2},
}


@pytest.mark.parametrize("name", MODELS)
def test_arrays(name, client, data):
    X, y, weight = data
    options = {**MODELS[name], "tol": 1e-5, "random_state": 0}
    local = getattr(svmosaic, name)(**options).fit(X, y, weight)
    dX, dy, dw = arrays(X, y, weight)
    model = getattr(over_dask, name)(**options, client=client).fit(dX, dy, sample_weight=dw)
    gap = np.maximum(model.dual_gap_, local.dual_gap_) + 1e-9 * local.objective_
    assert (np.abs(model.objective_ - local.objective_) <= gap).all()
    found = model.predict(dX)
    assert isinstance(found, da.Array)
    assert found.dtype == local.classes_.dtype
    assert np.mean(found.compute() == local.predict(X)) > 0.99
    scores = model.decision_function(dX)
    assert isinstance(scores, da.Array)
    assert scores.shape == (N, 3)
    assert_allclose(scores.compute(), model.to_local().decision_function(X), rtol=1e-6)
    assert model.score(dX, dy, dw) == pytest.approx(model.to_local().score(X, y, weight))
    assert model.score(dX, dy) == pytest.approx(model.to_local().score(X, y))
    assert type(model.to_local()) is getattr(svmosaic, name)


def test_dataframes_probabilities_and_names(client, data):
    X, y, _ = data
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"], index=np.arange(N) * 2)
    frame["label"] = y
    table = dd.from_pandas(frame, npartitions=3)
    features, label = table[["a", "b", "c", "d"]], table["label"]
    model = over_dask.ClusteredSVC(2, loss="squared_hinge", calibration="temperature", tol=1e-2, random_state=0)
    model.fit(features, label)
    assert_array_equal(model.feature_names_in_, ["a", "b", "c", "d"])
    found = model.predict(features)
    assert isinstance(found, dd.Series)
    computed = found.compute()
    assert_array_equal(computed.index, frame.index)
    assert_array_equal(computed, model.to_local().predict(frame[["a", "b", "c", "d"]]))
    probabilities = model.predict_proba(features)
    assert isinstance(probabilities, dd.DataFrame)
    computed = probabilities.compute()
    assert list(computed.columns) == ["ape", "bee", "cow"]
    assert_allclose(computed.sum(axis=1), 1.0)
    assert model.score(features, label) > 0.6


def test_partitions_do_not_matter(client, data):
    X, y, _ = data
    order = np.argsort(y, kind="stable")  # partitions of one class
    found = []
    for chunks in (400, 130, 90):
        model = over_dask.ClusteredSVC(3, tol=1e-6, loss="squared_hinge", random_state=0)
        found.append(model.fit(*arrays(X[order], y[order], chunks=chunks)))
    for other in found[1:]:
        assert_array_equal(other.cluster_centers_, found[0].cluster_centers_)
        assert_allclose(other.objective_, found[0].objective_, atol=1e-6 * N)
        assert_allclose(other.mosaic_.coef, found[0].mosaic_.coef, atol=1e-2)


def test_chunks_of_labels_and_columns_are_brought_in_line(client, data):
    X, y, _ = data
    model = over_dask.LinearSVC(loss="squared_hinge")
    model.fit(da.from_array(X, chunks=(150, 2)), da.from_array(y, chunks=90))
    assert_allclose(model.objective_, svmosaic.LinearSVC(loss="squared_hinge").fit(X, y).objective_, rtol=1e-3)
    assert model.predict(da.from_array(X, chunks=(150, 2))).compute().shape == (N,)


def test_estimator_manners(client, data):
    X, y, _ = data
    model = over_dask.ClusteredSVC(4, C=2.0, client=client)
    assert model.get_params()["n_clusters"] == 4
    assert clone(model).client is client
    assert clone(model).get_params()["C"] == 2.0
    with pytest.raises(NotFittedError):
        model.predict(da.from_array(X, chunks=100))
    with pytest.raises(TypeError, match="unexpected"):
        over_dask.ClusteredSVC(no_such=1)
    with pytest.raises(TypeError, match="X must be a Dask array or DataFrame, got ndarray"):
        model.fit(X, y)
    with pytest.raises(TypeError, match="y must be a Dask collection"):
        model.fit(da.from_array(X, chunks=100), y)
    with pytest.raises(ValueError, match="X has 400 rows, but y has 200"):
        model.fit(da.from_array(X, chunks=100), da.from_array(y[:200], chunks=100))
    model = over_dask.LinearSVC(loss="squared_hinge", client=client).fit(*arrays(X, y))
    again = pickle.loads(pickle.dumps(model))
    assert again.client is None
    assert_array_equal(again.to_local().predict(X), model.to_local().predict(X))


def test_errors_of_workers_come_through(client, data):
    X, y, _ = data
    X = X.copy()
    X[200] = np.inf
    with pytest.raises(ValueError, match="partition 1: Input X contains infinity"):
        over_dask.LinearSVC().fit(*arrays(X, y))


def test_joblib_backend(client, data):
    X, y, _ = data
    grid = {"C": [0.1, 1.0]}
    model = svmosaic.ClusteredSVC(2, loss="squared_hinge", random_state=0, n_jobs=2)
    serial = GridSearchCV(model, grid, cv=2).fit(X, y)
    with joblib.parallel_config("dask", client=client):
        spread = GridSearchCV(model, grid, cv=2, n_jobs=-1).fit(X, y)
        alone = clone(model).set_params(n_jobs=-1).fit(X, y)
    assert_array_equal(spread.cv_results_["mean_test_score"], serial.cv_results_["mean_test_score"])
    assert_array_equal(alone.mosaic_.coef, clone(model).fit(X, y).mosaic_.coef)


# Small enough that all of them together take seconds; the names that are not here need nothing.
QUICK = {
    "BoostedLinearSVC": {"n_estimators": 3},
    "FusedSVC": {"densities": (1, 2), "cv": 2},
    "HierarchicalMixtureSVC": {"branching": (2, 2), "max_iter": 3},
    "KMeansSVC": {"n_clusters": 3},
    "ClusteredSVC": {"n_clusters": 3},
    "KernelSVC": {"n_anchors": 8},
    "LearnedGateSVC": {"n_tiles": 4, "max_iter": 3},
    "LocalCodingSVC": {"n_anchors": 8},
    "LocallyLinearSVC": {"n_anchors": 8},
    "MixtureSVC": {"n_experts": 3, "max_iter": 3},
    "MosaicClassifier": {"time_budget": None, "families": ("linear",), "validation_fraction": 0.5},
    "NeighborsSVC": {"n_neighbors": 10},
}


def assert_all_work_under(data, backend, **options):
    """Every estimator with `n_jobs` as it is in memory, fitted here and fitted on the workers."""
    X, y, _ = data
    kinds = [kind for kind in CLASSIFIERS if "n_jobs" in kind().get_params()]
    assert len(kinds) > 10
    models = [kind(**QUICK.get(kind.__name__, {})) for kind in kinds]
    models = [m.set_params(**{"random_state": 0} if "random_state" in m.get_params() else {}) for m in models]
    expected = [clone(model).fit(X, y).decision_function(X[:50]) for model in models]
    with joblib.parallel_config(backend, **options):
        here = [clone(model).set_params(n_jobs=2).fit(X, y).decision_function(X[:50]) for model in models]
        fitted = joblib.Parallel(n_jobs=2)(joblib.delayed(clone(model).fit)(X, y) for model in models)
    there = [model.decision_function(X[:50]) for model in fitted]
    for model, alone, *others in zip(models, expected, here, there, strict=True):
        for other in others:
            assert_allclose(other, alone, rtol=1e-12, err_msg=type(model).__name__)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_estimator_under_the_joblib_backend(client, data):
    assert_all_work_under(data, "dask", client=client)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_joblib_backend_ray(data):
    ray = pytest.importorskip("ray", reason="ray is an extra of its own: pip install ray")
    from ray.util.joblib import register_ray

    X, y, _ = data
    grid = {"C": [0.1, 1.0]}
    model = svmosaic.ClusteredSVC(2, loss="squared_hinge", random_state=0)
    serial = GridSearchCV(model, grid, cv=2).fit(X, y)
    register_ray()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        with joblib.parallel_config("ray"):
            found = GridSearchCV(model, grid, cv=2, n_jobs=2).fit(X, y)
            workers = joblib.Parallel(n_jobs=2)(joblib.delayed(os.getpid)() for _ in range(4))
        assert_all_work_under(data, "ray")
    finally:
        ray.shutdown()
    assert os.getpid() not in workers
    assert_array_equal(found.cv_results_["mean_test_score"], serial.cv_results_["mean_test_score"])
    assert_array_equal(found.best_estimator_.mosaic_.coef, serial.best_estimator_.mosaic_.coef)


# ---- faults: last, since they kill workers --------------------------------------------------------------------------


def kill_at(round_number, client, monkeypatch):
    """Kill a worker process, as the machine would, before the round of this number."""
    total, calls, killed = Workers.total, [], []

    def murderous(self, function, *args, **options):
        calls.append(function)
        if len(calls) == round_number:
            holders = client.who_has(self.parts)
            address = next(iter(holders.values()))[0]
            pid = client.run(os.getpid, workers=[address])[address]
            os.kill(pid, signal.SIGKILL)
            killed.append(address)
        return total(self, function, *args, **options)

    monkeypatch.setattr(Workers, "total", murderous)
    return killed


def test_a_killed_worker_does_not_change_the_fit(client, data, monkeypatch):
    X, y, _ = data
    options = {"n_clusters": 2, "tol": 1e-4, "random_state": 0}
    local = svmosaic.ClusteredSVC(**options).fit(X, y)
    killed = kill_at(9, client, monkeypatch)  # duals have moved by then
    model = over_dask.ClusteredSVC(**options).fit(*arrays(X, y, chunks=100))
    assert len(killed) == 1
    assert (np.abs(model.objective_ - local.objective_) <= 1e-4 * N).all()
    assert model.region_counts_["classes"].sum() == N


def test_rows_that_cannot_be_made_again_stop_the_fit(client, data, monkeypatch):
    X, y, _ = data
    client.wait_for_workers(2)
    blocks = client.scatter([X[:200], X[200:]])
    dX = da.concatenate([da.from_delayed(block, (200, 4), np.float32) for block in map(dask.delayed, blocks)])
    model = over_dask.LinearSVC()
    killed = kill_at(3, client, monkeypatch)
    with pytest.raises(over_dask.WorkerLostError) as caught:
        model.fit(dX, da.from_array(y, chunks=200))
    assert killed[0] in str(caught.value)
    assert not hasattr(model, "local_")


def test_no_client(data, monkeypatch):
    def none():
        raise ValueError("No clients found")

    monkeypatch.setattr(distributed, "get_client", none)
    with pytest.raises(ValueError, match="there is no Dask client"):
        over_dask.LinearSVC().fit(*arrays(*data[:2]))


def test_raw_parts_need_like_partitions(client, data):
    X, y, _ = data
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=3)
    with pytest.raises(ValueError, match="X has 3 partitions, but y has 2"):
        raw_parts(client, frame, dd.from_pandas(pd.Series(y), npartitions=2))
