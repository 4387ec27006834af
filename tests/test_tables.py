"""Tables from files of every kind, and what is said of files that are none."""

import gzip
import io
import os
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from svmosaic.table import formats as tables
from svmosaic.table.formats import TableError, find_column, read_chunks, read_table

FRAME = pd.DataFrame(
    {
        "größe": [1.5, np.nan, -3.0, 4.25, 5.0],
        "count": [1, 2, 3, 4, 5],
        "town": ["Köln, am Rhein", 'the "hill"', None, "a\nb", "Köln, am Rhein"],
        "kind": ["yes", "no", "yes", "no", "yes"],
    }
)


def write(frame, path):
    suffix = "".join(path.suffixes)
    if suffix.startswith((".csv", ".tsv")):
        frame.to_csv(path, index=False, sep="\t" if suffix.startswith(".tsv") else ",")
    elif suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_feather(path)
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.TSV", "t.parquet", "t.arrow", "t.feather"])
@pytest.mark.parametrize("label", ["kind", -1, "3"])
def test_every_tabular_format_gives_the_same_table(tmp_path, name, label):
    path = tmp_path / name
    write(FRAME, path.with_suffix(path.suffix.lower())).rename(path)
    table = read_table(path, label=label)
    assert table.feature_names == ["größe", "count", "town"] == list(table.X.columns)
    assert table.label == "kind"
    assert list(table.y) == list(FRAME["kind"])
    np.testing.assert_array_equal(table.X["größe"], FRAME["größe"])
    np.testing.assert_array_equal(table.X["count"], FRAME["count"])
    assert [v if isinstance(v, str) else None for v in table.X["town"]] == [
        v if isinstance(v, str) else None for v in FRAME["town"]
    ]
    assert [tables.is_number(table.X[c]) for c in table.X] == [True, True, False]


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet", "t.arrow"])
@pytest.mark.parametrize("rows", [1, 2, 5, 100])
def test_chunks_put_together_are_the_table(tmp_path, name, rows):
    path = write(FRAME, tmp_path / name)
    whole = read_table(path, label="kind")
    parts = list(read_chunks(path, rows, label="kind", text=["town", "kind"]))
    assert [len(p) for p in parts] == [len(range(s, min(s + rows, 5))) for s in range(0, 5, rows)]
    together = pd.concat([p.X for p in parts], ignore_index=True)
    pd.testing.assert_frame_equal(together, whole.X, check_dtype=False)
    assert list(np.concatenate([p.y for p in parts])) == list(whole.y)


def test_a_folder_of_parquet_is_one_table(tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    for i in range(2):
        FRAME.iloc[3 * i : 3 * i + 3].to_parquet(folder / f"part-{i}.parquet")
    table = read_table(folder, label="kind")
    assert list(table.X["count"]) == [1, 2, 3, 4, 5]
    assert [len(part) for part in read_chunks(folder, 2)] == [2, 2, 1]


def test_arrow_types_become_numbers_and_text(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {
        "flag": pa.array([True, None, False]),
        "whole": pa.array([1, None, 3]),
        "exact": pa.array([1, 2, 3]).cast(pa.decimal128(20, 1)),
        "word": pa.array(["a", None, "a"]).dictionary_encode(),
        "day": pa.array([0, 1, 2], pa.date32()),
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    X = read_table(tmp_path / "t.parquet").X
    assert [tables.is_number(X[c]) for c in X] == [False, True, True, False, False]
    assert list(X["flag"].fillna("?")) == ["True", "?", "False"]
    np.testing.assert_array_equal(X["whole"], [1, np.nan, 3])
    pq.write_table(pa.table({"v": [[1, 2]]}), tmp_path / "n.parquet")
    with pytest.raises(TableError, match="column 'v' holds list"):
        read_table(tmp_path / "n.parquet")


def test_truth_values_and_long_numbers_stay_as_written(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("flag,partly,code\nTRUE,true,007\nfalse,,12\n")
    X = read_table(path).X
    assert list(X["flag"]) == ["TRUE", "false"]
    assert X["partly"][0] == "true"
    assert list(X["code"]) == [7, 12]
    assert list(read_table(path, text=["code"]).X["code"]) == ["007", "12"]


@pytest.mark.parametrize("delimiter", [";", "\t", ", "])
def test_other_delimiters_of_csv(tmp_path, delimiter):
    path = tmp_path / "t.csv"
    path.write_text(f"a{delimiter}b\n1{delimiter}x y\n\n   \n2{delimiter}z")
    X = read_table(path).X
    assert list(X["a"]) == [1, 2]
    assert list(X["b"]) == ["x y", "z"]


def test_without_a_header(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("1,2\n3,4\n5,6\n")
    table = read_table(path, header=False, label=-1)
    assert table.feature_names == ["x0"]
    assert list(table.X["x0"]) == [1, 3, 5]
    assert list(table.y) == [2, 4, 6]
    assert [len(part) for part in read_chunks(path, 2, header=False)] == [2, 1]


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("name", ["t.libsvm", "t.svm.gz"])
def test_libsvm(tmp_path, first, name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(7, 5)) * (rng.random((7, 5)) < 0.5)
    X[0, 0] = X[0, 4] = 1.0  # the first and the last are there
    y = np.array([1, -1, 1, 1, -1, 1, -1])
    buffer = io.BytesIO()
    dump_svmlight_file(X, y, buffer, zero_based=first == 0)
    content = b"# a comment\n\n" + buffer.getvalue()
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    table = read_table(path)
    np.testing.assert_allclose(table.X.toarray(), X)
    assert list(table.y) == list(y)
    assert table.feature_names == [str(first + i) for i in range(5)]
    parts = list(read_chunks(path, 3, n_features=5))
    np.testing.assert_allclose(sparse.vstack([p.X for p in parts]).toarray(), X)


def test_npz(tmp_path):
    X, y = np.arange(6).reshape(3, 2), np.array(["a", "b", "a"])
    np.savez(tmp_path / "t.npz", X=X, y=y, feature_names=["p", "q"])
    table = read_table(tmp_path / "t.npz")
    assert table.feature_names == ["p", "q"]
    np.testing.assert_array_equal(table.X, X)
    assert list(table.y) == ["a", "b", "a"]
    assert [len(part) for part in read_chunks(tmp_path / "t.npz", 2)] == [2, 1]
    sparse.save_npz(tmp_path / "s.npz", sparse.csr_array(X))
    assert sparse.issparse(read_table(tmp_path / "s.npz").X)
    sparse.save_npz(tmp_path / "s.npz", sparse.csc_array(X))
    with pytest.raises(TableError, match="a sparse matrix that is not CSR"):
        read_table(tmp_path / "s.npz")
    np.savez(tmp_path / "split.npz", X_train=X, y_train=y, X_test=X[:1], y_test=y[:1])
    assert len(read_table(tmp_path / "split.npz")) == 3


def test_standard_input(monkeypatch):
    def give(content):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    give(b"\xef\xbb\xbfa,b\n1,x\n2,y\n")
    assert list(read_table("-").X.columns) == ["a", "b"]
    give(b"1 1:2\n-1 2:3\n")
    assert read_table("-", format="libsvm").X.shape == (2, 2)
    with pytest.raises(TableError, match="parquet cannot be read from the standard input"):
        read_table("-", format="parquet")


class Endless(io.RawIOBase):
    """A table that never ends."""

    def __init__(self, first, line):
        self.left, self.line = first, line

    def readable(self):
        return True

    def readinto(self, buffer):
        content = self.left or self.line * (len(buffer) // len(self.line))
        buffer[: len(content)] = content
        self.left = b""
        return len(content)


@pytest.mark.parametrize(("first", "line", "format"), [(b"a,b\n", b"1,2\n", "csv"), (b"1 1:2\n", b"0 2:1\n", "libsvm")])
def test_a_chunk_needs_no_more_than_its_rows(monkeypatch, first, line, format):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(Endless(first, line))))
    chunks = read_chunks("-", 1000, format=format)
    assert [len(next(chunks)) for _ in range(3)] == [1000] * 3


def test_progress_is_told(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,2\n" * 5000)
    told = []
    list(read_chunks(path, 1000, progress=lambda done, total: told.append((done, total))))
    assert {total for _, total in told} == {path.stat().st_size}
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert len(told) == 5


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"a,b\n", "has no rows"),
        (b"a,b\n1,2\n3\n", "line 3: 1 values, but there are 2 columns"),
        (b"a,b\n1,2\n\n1,2,3\n", "line 4: 3 values, but there are 2 columns"),
        (b'a,b\n1,"x\ny"\n1,"2\n', "line 4: unexpected end of data"),
        (b"a,a\n1,2\n", "two columns are called 'a'"),
        (b"a,,b\n1,2,3\n", "column 2 has no name; if"),
        (b",a,b\n0,2,3\n", r"column 1 has no name, as an index that pandas writes \(index=False leaves it out\); if"),
        (b"a,b\n\xff\xfe\xfa,2\n", r"is not text in UTF-8 .*: save it as UTF-8"),
        (b"PK\x00\x01\n", "line 1 holds a zero byte"),
        (b"\x1f\x8b\x08\x00garbage", "could not be unzipped"),
    ],
)
@pytest.mark.parametrize("read", [read_table, lambda path: list(read_chunks(path, 2))], ids=["table", "chunks"])
def test_malformed_csv(tmp_path, content, message, read):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(TableError, match=message) as error:
        read(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"1 1:2\nyes 1:2\n", "line 2: the label 'yes' is not a number"),
        (b"1 1:2\n\n1 2:x\n", "line 3: '2:x' is not index:value"),
        (b"1 3:1 2:1\n", "line 1: the features 3 and 2 are not in ascending order"),
        (b"1 9:1\n", "line 1: the feature 9 lies beyond the last, 4"),
    ],
)
def test_malformed_libsvm(tmp_path, content, message):
    path = tmp_path / "t.libsvm"
    path.write_bytes(content)
    with pytest.raises(TableError, match=message):
        read_table(path, n_features=4)


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.npz"])
@pytest.mark.parametrize("content", [b"", b"garbage of some length", b"PK\x03\x04 and more garbage"])
def test_garbage_in_binary_formats(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(TableError, match=r"could not be read|is empty") as error:
        read_table(path)
    assert name in str(error.value)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"Z": np.ones(3)}, "has no array X; it has 'Z'"),
        ({"X": np.ones(3)}, "X must be numbers in two dimensions"),
        ({"X": np.array([["a"]])}, "X must be numbers"),
        ({"X": np.array([[None]])}, "could not be read as NPZ: it holds no arrays of numbers or text"),
        ({"X": np.ones((3, 2)), "y": np.ones(2)}, "there are 3 rows, but labels of shape"),
    ],
)
def test_malformed_npz(tmp_path, arrays, message):
    np.savez(tmp_path / "t.npz", **arrays)
    with pytest.raises(TableError, match=message):
        read_table(tmp_path / "t.npz")


def test_names_that_are_not_there(tmp_path):
    with pytest.raises(TableError, match="there is no file"):
        read_table(tmp_path / "none.csv")
    (tmp_path / "t.doc").write_text("x")
    with pytest.raises(TableError, match=r"the format of .*t\.doc cannot be inferred"):
        read_table(tmp_path / "t.doc")
    with pytest.raises(TableError, match="format must be one of"):
        read_table(tmp_path / "t.doc", format="xls")
    assert read_table(write(FRAME, tmp_path / "t.csv").rename(tmp_path / "t.txt"), format="csv").X.shape == (5, 4)
    with pytest.raises(TableError, match="has no column 'target_'; the nearest are 'target'"):
        find_column(["age", "target"], "target_", "t.csv")
    with pytest.raises(TableError, match="its columns are 'age', 'town'"):
        find_column(["age", "town"], "qqqq", "t.csv")
    with pytest.raises(TableError, match="has 2 columns, so there is no column with index 2"):
        find_column(["age", "town"], 2, "t.csv")
    with pytest.raises(
        TableError, match="has one column, '4 2 1': columns are separated by commas, semicolons or tabs"
    ):
        find_column(["4 2 1"], 2, "t.csv")
    assert find_column(["5", "town"], "5") == "5"
    (tmp_path / "one.csv").write_text("a\n1\n")
    with pytest.raises(TableError, match="no column besides the label"):
        read_table(tmp_path / "one.csv", label="a")


def test_arrow_without_pyarrow_is_told(tmp_path, monkeypatch):
    path = write(FRAME, tmp_path / "t.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(TableError, match="needs pyarrow: pip install pyarrow"):
        read_table(path)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".libsvm"])
def test_what_is_no_text_is_refused_before_it_is_read(tmp_path, suffix, monkeypatch):
    """A file of zeros is one line; so is a file that has no line ends."""
    path = tmp_path / f"zeros{suffix}"
    path.touch()
    os.truncate(path, 3 << 30)
    tracemalloc.start()
    with pytest.raises(TableError, match="is not text: line 1 holds a zero byte"):
        next(read_chunks(path, 100))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50 << 20
    monkeypatch.setattr("svmosaic.table.formats._table.PIECE", 10)
    monkeypatch.setattr("svmosaic.table.formats._table.LONGEST_LINE", 100)
    path.write_text("a" * 1000)
    with pytest.raises(TableError, match="line 1 is longer than 100 characters"):
        next(read_chunks(path, 100))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_longer_than_what_is_read_at_once(tmp_path, monkeypatch, end):
    monkeypatch.setattr("svmosaic.table.formats._table.PIECE", 7)
    path = tmp_path / "table.csv"
    for extra in range(8):  # so that pieces end before, in and after the ends of lines
        path.write_bytes(f"a,{'b' * extra}b{end}1.5,22222222{end}2.5,33333333".encode())
        assert read_table(path).X.to_numpy().tolist() == [[1.5, 22222222], [2.5, 33333333]]
    path.write_text("1 1:2.5 2:33333\n-1 2:12345678\n")
    assert read_table(path, format="libsvm").X.toarray().tolist() == [[2.5, 33333], [0, 12345678]]
