"""Fits and predictions from files: those of the rows in memory."""

import doctest
from pathlib import Path

import needs
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_classification

from svmosaic import ClusteredSVC, LinearSVC, LocallyLinearSVC, outofcore
from svmosaic.scale.chunks import Chunks
from svmosaic.scale.fit import fit as fit_partitions
from svmosaic.scale.sources import ArraySource, open_source

N = 600


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(
        N, 5, n_informative=4, n_redundant=0, n_classes=3, n_clusters_per_class=1, random_state=0
    )
    return X.astype(np.float32), np.array(["ape", "bee", "cow"])[y], np.random.RandomState(0).choice([0.0, 1.0, 2.0], N)


def write(folder, X, y, weight=None, cuts=(200, 450), group=60):
    """A folder of Parquet files with a few row groups each."""
    folder.mkdir(exist_ok=True)
    frame = pd.DataFrame(X, columns=[f"x{f}" for f in range(X.shape[1])])
    frame["kind"] = y
    if weight is not None:
        frame["w"] = weight
    for k, part in enumerate(np.split(np.arange(len(y)), cuts)):
        frame.iloc[part].to_parquet(folder / f"part{k}.parquet", row_group_size=group, index=False)
    return folder


@pytest.mark.parametrize("chunk_rows", [50, 130, None])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_parquet_folder(chunk_rows, loss, data, tmp_path):
    X, y, weight = data
    folder = write(tmp_path / "rows", X, y, weight)
    model = ClusteredSVC(3, loss=loss, tol=1e-5, random_state=0)
    local = clone(model).fit(X, y, weight)
    found = outofcore.fit(model, folder, "kind", sample_weight="w", chunk_rows=chunk_rows, scratch=tmp_path)
    assert type(found) is ClusteredSVC
    assert not hasattr(model, "mosaic_")
    assert_array_equal(found.cluster_centers_, local.cluster_centers_)
    gap = np.maximum(found.dual_gap_, local.dual_gap_) + 1e-9 * local.objective_
    assert (np.abs(found.objective_ - local.objective_) <= gap).all()
    assert_array_equal(found.feature_names_in_, [f"x{f}" for f in range(5)])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["rows"]  # the scratch folder is gone


def test_memory_mapped_arrays(data, tmp_path):
    X, y, weight = data
    y = np.where(y == "cow", 1, 0)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    model = LinearSVC(loss="squared_hinge", tol=1e-6)
    local = clone(model).fit(X, y, weight)
    by_path = outofcore.fit(model, tmp_path / "X.npy", tmp_path / "y.npy", sample_weight=weight, chunk_rows=70)
    mapped = outofcore.fit(model, np.load(tmp_path / "X.npy", mmap_mode="r"), y, sample_weight=weight)
    for found in (by_path, mapped):
        assert_allclose(found.objective_, local.objective_, rtol=1e-5)


@needs.linux
def test_pages_of_a_mapped_file_are_given_back(tmp_path):
    def resident():
        status = Path("/proc/self/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssFile"))

    np.save(tmp_path / "X.npy", np.ones((200_000, 50), np.float32))  # 40 MB
    source = open_source(tmp_path / "X.npy", chunk_rows=20_000)
    before = resident()
    for k in range(source.n_chunks):
        assert source.rows(k).sum() == 20_000 * 50
    assert resident() - before < 10_000  # kB


@pytest.mark.parametrize("method", outofcore.METHODS)
def test_predict(method, data, tmp_path):
    X, y, _ = data
    folder = write(tmp_path / "rows", X, y)
    names = [f"x{f}" for f in (3, 0, 1)]  # other columns are left out, and the order is the model's
    model = ClusteredSVC(3, loss="squared_hinge", calibration="temperature", random_state=0)
    model.fit(pd.DataFrame(X[:, [3, 0, 1]], columns=names), y)
    expected = getattr(model, method)(pd.DataFrame(X[:, [3, 0, 1]], columns=names))
    found = np.concatenate(list(outofcore.predict(model, folder, method=method, chunk_rows=100)))
    assert_array_equal(found, expected)
    assert outofcore.predict(model, folder, tmp_path / "out.npy", method=method) == N
    assert_array_equal(np.load(tmp_path / "out.npy"), expected)
    assert outofcore.predict(model, folder, tmp_path / "out.parquet", method=method, chunk_rows=100) == N
    table = pd.read_parquet(tmp_path / "out.parquet")
    if method == "predict":
        assert_array_equal(table["prediction"], expected)
    else:
        assert list(table.columns) == ["ape", "bee", "cow"]
        assert_array_equal(table.to_numpy(), expected)


def test_partial_fit_is_that_of_the_chunks(data):
    X, y, _ = data
    model = LocallyLinearSVC(5, n_neighbors=2, stream_length=N, random_state=0)
    found = outofcore.partial_fit(clone(model), X, y, chunk_rows=200)
    expected = clone(model)
    for begin in range(0, N, 200):
        expected.partial_fit(X[begin : begin + 200], y[begin : begin + 200], classes=np.unique(y))
    assert_array_equal(found.mosaic_.coef, expected.mosaic_.coef)
    assert found.n_samples_seen_ == N


def test_each_round_reads_each_chunk_once(data, tmp_path):
    X, y, _ = data

    class Counting(ArraySource):
        reads = 0

        def rows(self, k):
            Counting.reads += 1
            return super().rows(k)

    chunks = Chunks(Counting(X, np.where(y == "cow", 1, 0), None, 100), tmp_path)
    fit_partitions(LinearSVC(), chunks)
    # Moves of the duals wait for the next pass over the rows.
    passes = [r for r in chunks.rounds if r.name not in ("move", "prepare", "with_codes")]
    assert len(passes) < len(chunks.rounds)
    assert Counting.reads == 6 * len(passes)


def test_bad_sources(data, tmp_path):
    X, y, _ = data
    folder = write(tmp_path / "rows", X, y)
    model = LinearSVC()
    with pytest.raises(FileNotFoundError, match="nowhere"):
        outofcore.fit(model, tmp_path / "nowhere", "kind")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"no \.parquet file"):
        outofcore.fit(model, tmp_path / "empty", "kind")
    with pytest.raises(ValueError, match="label='species' is not a column of part0"):
        outofcore.fit(model, folder, "species")
    with pytest.raises(ValueError, match="column 'kind' is of type"):
        outofcore.fit(model, folder, "x0")
    with pytest.raises(ValueError, match="label must name"):
        outofcore.fit(model, folder)
    with pytest.raises(ValueError, match="chunk_rows must be"):
        outofcore.fit(model, folder, "kind", chunk_rows=0)
    with pytest.raises(ValueError, match="there are 600 rows, but label has 10 entries"):
        outofcore.fit(model, X, y[:10])
    with pytest.raises(ValueError, match="method must be one of"):
        outofcore.predict(model, folder, method="transform")
    fitted = LinearSVC().fit(pd.DataFrame(X, columns=list("abcde")), y)
    with pytest.raises(ValueError, match="does not have them: a, b"):
        outofcore.predict(fitted, folder)
    broken = X.copy()
    broken[500, 2] = np.nan
    with pytest.raises(ValueError, match=r"part2\.parquet, row groups 0 to 0: Input X contains NaN"):
        outofcore.fit(model, write(tmp_path / "broken", broken, y), "kind", chunk_rows=60)


def test_types_of_columns(data, tmp_path):
    X, y, _ = data
    folder = write(tmp_path / "narrow", X, y)
    assert open_source(folder, "kind").dtype == np.float32
    folder = write(tmp_path / "wide", X.astype(np.float64), y)
    assert open_source(folder, "kind").dtype == np.float64


def test_page():
    result = doctest.testfile(str(Path(__file__).parent.parent / "docs" / "dask.md"), module_relative=False)
    assert result.attempted > 5
    assert result.failed == 0
