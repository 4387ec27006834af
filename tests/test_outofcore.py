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


@pytest.mark.parametrize("empty", [["part0.parquet"], ["part2.parquet"], ["a.parquet", "part0.parquet", "z.parquet"]])
def test_files_without_rows_are_passed_over(empty, data, tmp_path):
    X, y, _ = data
    folder = write(tmp_path / "rows", X, y)
    for name in ("part2", "part1", "part0"):  # one place up, so that there is room for part0
        (folder / f"{name}.parquet").rename(folder / f"{name}b.parquet")
    for name in empty:  # pandas writes the columns of such a frame without types
        pd.DataFrame({column: [] for column in ["x0", "x1", "x2", "x3", "x4", "kind"]}).to_parquet(folder / name)
    model = outofcore.fit(LinearSVC(tol=1e-6), folder, "kind")
    assert_allclose(model.objective_, LinearSVC(tol=1e-6).fit(X, y).objective_, rtol=1e-4)
    found = np.concatenate(list(outofcore.predict(model, folder)))
    assert_array_equal(found, model.predict(pd.DataFrame(X, columns=model.feature_names_in_)))


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("method", outofcore.METHODS)
@pytest.mark.parametrize("kind", ["parquet", "npy"])
def test_predictions_of_no_rows(kind, method, data, tmp_path):
    X, y, _ = data
    names = list("abcde")
    model = LinearSVC(calibration="temperature").fit(pd.DataFrame(X, columns=names), y.astype(object))
    pd.DataFrame(X[:0], columns=names).to_parquet(tmp_path / "none.parquet")
    for source in (X[:0], tmp_path / "none.parquet"):
        assert [len(chunk) for chunk in outofcore.predict(model, source, method=method)] == [0]
        assert outofcore.predict(model, source, tmp_path / f"out.{kind}", method=method) == 0
        read = pd.read_parquet if kind == "parquet" else np.load
        assert read(tmp_path / f"out.{kind}").shape[0] == 0
    for work in (outofcore.fit, outofcore.partial_fit):
        with pytest.raises(ValueError, match="the array has no rows"):
            work(LocallyLinearSVC(), X[:0], y[:0])


def test_text_labels_in_npy_files(data, tmp_path):
    X, y, _ = data
    model = outofcore.fit(LinearSVC(), write(tmp_path / "rows", X, y), "kind")
    assert model.classes_.dtype == object
    outofcore.predict(model, tmp_path / "rows", tmp_path / "out.npy", chunk_rows=60)
    found = np.load(tmp_path / "out.npy")
    assert found.dtype == "<U3"
    assert_array_equal(found, np.concatenate(list(outofcore.predict(model, tmp_path / "rows"))))
    model.classes_ = np.array(["ape", "bee", "cow\0"], dtype=object)  # as labels in Parquet files may be
    with pytest.raises(TypeError, match=r"cannot hold the label 'c.*': write a Parquet file"):
        outofcore.predict(model, tmp_path / "rows", tmp_path / "no.npy")
    assert not (tmp_path / "no.npy").exists()


def test_inputs_are_not_replaced(data, tmp_path):
    X, y, _ = data
    folder = write(tmp_path / "rows", X, y)
    np.save(tmp_path / "X.npy", X)
    (tmp_path / "link.npy").symlink_to(tmp_path / "X.npy")
    model = LinearSVC().fit(X, y)
    named = outofcore.fit(LinearSVC(), folder, "kind")
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    for estimator, source, output in (
        (model, tmp_path / "X.npy", tmp_path / "X.npy"), (model, str(tmp_path / "X.npy"), tmp_path / "link.npy"),
        (model, mapped, tmp_path / "X.npy"), (model, mapped[:10], tmp_path / "X.npy"),
        (named, folder, folder / "part1.parquet"), (named, folder / "part0.parquet", folder / "part0.parquet"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="which is read: name another file"):
            outofcore.predict(estimator, source, output)
    assert_array_equal(np.load(tmp_path / "X.npy"), X)
    for chunk_rows in (-5, 1.5):
        for work in (outofcore.predict, lambda *a, **k: outofcore.partial_fit(*a, y, **k)):
            with pytest.raises(ValueError, match="chunk_rows must be"):
                work(model, X, chunk_rows=chunk_rows)


def test_types_of_all_files(data, tmp_path):
    X, y, _ = data
    big = 2**30 + np.arange(N) % 64

    small = np.zeros(N, np.int16)

    def written(second, label=y, first=small):
        for k, (column, labels) in enumerate([(first, y), (second, label)]):
            pd.DataFrame({"a": column, "kind": labels}).to_parquet(tmp_path / f"{k}.parquet", index=False)
        return open_source(tmp_path, "kind")

    for order in ({"second": big}, {"first": big, "second": small}):
        source = written(**order)
        assert source.dtype == np.float64
        read = np.concatenate([source.rows(k) for k in range(source.n_chunks)])
        assert len(np.unique(read)) == 65
    dates = np.arange(N).astype("datetime64[s]")
    for values in (dates, dates - dates[0], big.astype(str), np.full(N, None)):
        with pytest.raises(ValueError, match=r"1\.parquet: column 'a' is of type .* not numeric"):
            written(values)
    with pytest.raises(ValueError, match=r"1\.parquet: the label 'kind' is of type int64, and in 0.parquet of type"):
        written(big, big)
    assert written(big, pd.Categorical(y)).n_chunks == 2
    (tmp_path / "0.parquet").write_bytes(b"PAR1xx")
    with pytest.raises(ValueError, match=r"0\.parquet cannot be read as Parquet"):
        open_source(tmp_path, "kind")
    for values in (dates, X[:, 0] * 1j, big.astype(str)):
        with pytest.raises(ValueError, match="which is not numeric; encode them first"):
            outofcore.fit(LinearSVC(), values[:, None], y)


def test_page():
    result = doctest.testfile(str(Path(__file__).parent.parent / "docs" / "dask.md"), module_relative=False)
    assert result.attempted > 5
    assert result.failed == 0
