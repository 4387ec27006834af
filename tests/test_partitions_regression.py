"""Regressors over partitions: the same objectives, certified, from chunks and from the workers of a cluster."""

import numpy as np
import pytest
from in_memory import InMemory
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from test_regression import bent_plane

from svmosaic import ClusteredSVR, KMeansSVR, LinearSVR, LocallyLinearSVR, MosaicRegressor, outofcore
from svmosaic.losses import REGRESSION_LOSSES
from svmosaic.scale.fit import fit
from svmosaic.scale.part import Raw

EXACT = {"tol": 1e-8, "random_state": 0}
MODELS = [
    LinearSVR(**EXACT),
    LinearSVR(pieces=5, **EXACT),
    KMeansSVR(4, **EXACT),
    ClusteredSVR(4, **EXACT),
    LocallyLinearSVR(8, n_neighbors=3, **EXACT),
]


@pytest.mark.parametrize("loss", REGRESSION_LOSSES)
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_chunks_reach_the_objective_of_memory(model, loss):
    X, y = bent_plane(240)
    model = model.set_params(loss=loss)
    weight = np.random.default_rng(1).choice([0.0, 0.5, 2.0], 240)
    y = np.stack([y, X[:, 0] ** 2], axis=1)
    whole = model.fit(X, y, sample_weight=weight)
    parts = outofcore.fit(model, X, y, sample_weight=weight, chunk_rows=70)
    assert_allclose(parts.head_.center, whole.head_.center, rtol=1e-12)
    assert_allclose(parts.head_.scale, whole.head_.scale, rtol=1e-12)
    assert_allclose(parts.objective_, whole.objective_, rtol=1e-6)
    assert_allclose(parts.predict(X), whole.predict(X), rtol=1e-2, atol=1e-2)
    assert (parts.dual_gap_ >= 0).all()
    assert_array_equal(parts.regions_["rows"].sum(), (weight > 0).sum())
    assert_allclose(parts.regions_["mean of y0"], whole.regions_["mean of y0"], rtol=1e-6)


def test_several_quantiles_and_sparse_rows():
    X, y = bent_plane(300)
    model = LinearSVR(loss="quantile", quantile=(0.1, 0.9), **EXACT)
    raws = [Raw(sparse.csr_array(X[k::3]), y[k::3], None, f"part {k}") for k in range(3)]
    parts = fit(model, InMemory(raws))
    whole = LinearSVR(loss="quantile", quantile=(0.1, 0.9), **EXACT).fit(X, y)
    assert parts.predict(X).shape == (300, 2)
    assert_allclose(parts.objective_, whole.objective_, rtol=1e-6)


def test_constant_values_in_parts():
    X, _ = bent_plane(100)
    model = outofcore.fit(ClusteredSVR(3, random_state=0), X, np.full(100, 0.1), chunk_rows=30)
    assert_array_equal(model.predict(X), 0.1)


def test_what_cannot_be_fitted_is_said():
    X, y = bent_plane(90)
    y[50] = np.nan
    with pytest.raises(ValueError, match=r"rows 30 to 59: y contains NaN or infinity: leave the rows"):
        outofcore.fit(LinearSVR(), X, y, chunk_rows=30)
    with pytest.raises(TypeError, match=r"MosaicRegressor cannot be fitted over partitions; these can: .*LinearSVR"):
        outofcore.fit(MosaicRegressor(), X, np.nan_to_num(y))
    with pytest.raises(ValueError, match="several quantiles need a one-dimensional y"):
        outofcore.fit(LinearSVR(loss="quantile", quantile=(0.1, 0.9)), X, X[:, :2])
    with pytest.raises(ValueError, match="is zero for every row"):
        outofcore.fit(LinearSVR(), X, X[:, 0], sample_weight=np.zeros(90))


def test_streams_and_predictions_from_disk(tmp_path):
    X, y = bent_plane(600)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    model = LocallyLinearSVR(8, n_neighbors=3, random_state=0)
    outofcore.partial_fit(model, tmp_path / "X.npy", tmp_path / "y.npy", chunk_rows=100)
    assert model.n_samples_seen_ == 600
    found = np.concatenate(list(outofcore.predict(model, tmp_path / "X.npy", chunk_rows=100)))
    assert_array_equal(found, model.predict(X))
    pytest.importorskip("pyarrow")
    import pyarrow.parquet

    both = LinearSVR(random_state=0).fit(X, np.stack([y, -y], axis=1))
    outofcore.predict(both, tmp_path / "X.npy", tmp_path / "out.parquet", chunk_rows=100)
    assert pyarrow.parquet.read_table(tmp_path / "out.parquet").column_names == ["y0", "y1"]


def test_over_dask():
    pytest.importorskip("distributed")
    import dask.array as da
    import dask.dataframe as dd
    import pandas as pd
    from distributed import Client

    import svmosaic.dask

    X, y = bent_plane(300)
    two = np.stack([y, X[:, 0] ** 2], axis=1)
    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0"):
        rows = da.from_array(X, chunks=(100, -1))
        for values in (y, two):
            local = ClusteredSVR(4, **EXACT).fit(X, values)
            given = da.from_array(values, chunks=(100, *values.shape[1:]))
            model = svmosaic.dask.ClusteredSVR(4, **EXACT).fit(rows, given)
            assert_allclose(model.objective_, local.objective_, rtol=1e-6)
            found = model.predict(rows)
            assert found.shape == values.shape
            assert_array_equal(found.compute(), model.to_local().predict(X))
            assert_allclose(model.score(rows, given), model.to_local().score(X, values), rtol=1e-9)
        frame = dd.from_pandas(pd.DataFrame(X, columns=list("abc")), npartitions=2)
        target = dd.from_pandas(pd.Series(y), npartitions=2)
        model = svmosaic.dask.LinearSVR(random_state=0).fit(frame, target)
        assert_allclose(
            model.predict(frame).compute().to_numpy(), model.to_local().predict(pd.DataFrame(X, columns=list("abc")))
        )
