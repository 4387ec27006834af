"""Text files as people write them: what is missing, how numbers are written, files without a header, zipped files."""

import bz2
import gzip
import json
import lzma
import zipfile

import numpy as np
import pandas as pd
import pytest

from svmosaic.cli import main
from svmosaic.table.formats import Dialect, TableError, read_chunks, read_table
from svmosaic.table.trained_model import open_model

TINY = ["--memory", "20kB"]


def frame(n=400, labels=("NA", "EU", "AS")):
    rng = np.random.default_rng(0)
    place = rng.integers(len(labels), size=n)
    return pd.DataFrame(
        {"a": np.round(place + 0.2 * rng.normal(size=n), 3), "b": rng.normal(size=n), "kind": np.array(labels)[place]}
    )


def train(capsys, table, folder, *options, label="kind"):
    path = folder / "d.csv"
    if isinstance(table, str):
        path.write_text(table)
    else:
        table.to_csv(path, index=False)
    command = ["train", path, "--label", label, "-o", folder / "m", "--model", "linear", "--json", *options]
    code = main(command)
    out, err = capsys.readouterr()
    return (json.loads(out) if code == 0 else None), err


@pytest.mark.parametrize("memory", [[], TINY])
def test_labels_have_their_own_rule(tmp_path, capsys, memory):
    facts, _ = train(capsys, frame(), tmp_path, *memory)
    assert facts["classes"] == ["AS", "EU", "NA"]
    assert (facts["rows"], facts["rows_without_label"]) == (400, 0)
    assert ("chunks" in facts) == bool(memory)
    for label in ([], ["--label", "kind"], ["--label", "-1"]):
        assert main(["score", tmp_path / "m", tmp_path / "d.csv", "--json", *label]) == 0
        scores = json.loads(capsys.readouterr().out)
        assert (scores["rows"], scores["accuracy"] > 0.9) == (400, True)
    assert main(["inspect", tmp_path / "m", "--row", "1", "--data", tmp_path / "d.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["label"] == frame()["kind"][0]


@pytest.mark.parametrize("memory", [[], TINY])
def test_na_decides_and_what_is_missing_is_named(tmp_path, capsys, memory):
    table = frame()
    n = int((table["kind"] == "NA").sum())
    facts, _ = train(capsys, table, tmp_path, "--na", "NA", *memory)
    assert facts["classes"] == ["AS", "EU"]
    assert facts["missing_labels"] == {"NA": n}
    assert facts["rows_without_label"] == n
    command = ["train", tmp_path / "d.csv", "--label", "kind", "-o", tmp_path / "m", "--model", "linear", "--na", "NA"]
    assert main([*command, *memory]) == 0
    assert f"{n} rows without a label were left out: 'NA': {n} (--na says which" in capsys.readouterr().out
    # The model remembers how its table was read.
    assert main(["score", tmp_path / "m", tmp_path / "d.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows_without_label"] == n
    facts, error = train(capsys, frame(labels=("None", "Yes")), tmp_path, "--na", "None", *memory)
    assert facts is None
    assert "all rows have the same label, 'Yes'" in error
    assert "rows without a label: 'None': " in error


@pytest.mark.parametrize("memory", [[], TINY])
def test_numbers_as_labels_stay_numbers_where_some_are_missing(tmp_path, capsys, memory):
    table = frame(labels=("0", "1")).astype({"kind": object})
    table.loc[:4, "kind"] = "?"
    table.loc[5:6, "kind"] = ""
    facts, _ = train(capsys, table, tmp_path, *memory)
    assert facts["classes"] == ["0", "1"]
    assert facts["missing_labels"] == {"?": 5, "": 2}
    assert open_model(tmp_path / "m").classes.dtype == np.int64
    # A text far down makes all labels text, also those read before it.
    table.loc[390, "kind"] = "x"
    table.loc[391:399, "kind"] = "x"
    facts, _ = train(capsys, table, tmp_path, *memory)
    assert facts["classes"] == ["0", "1", "?", "x"]
    assert facts["missing_labels"] == {"": 2}


def test_a_column_of_numbers_with_missing_ones_stays_one_of_numbers(tmp_path):
    texts = ["?", "-", "NA", "N/A", "null", "", "NaN", "None"]
    path = tmp_path / "d.csv"
    path.write_text("a,t\n" + "".join(f"{i},x\n{text},{text}\n" for i, text in enumerate(texts)))
    X = read_table(path).X
    assert X["a"].isna().sum() == X["t"].isna().sum() == len(texts)
    assert X["a"].dtype == np.float64
    X = read_table(path, dialect=Dialect(na=("?",))).X
    assert X["t"].isna().sum() == 2
    assert X["t"].iloc[3] == "-"
    parts = list(read_chunks(path, 3))
    assert sum(part.X["a"].isna().sum() for part in parts) == len(texts)


def test_na_counts_in_parquet_too(tmp_path):
    pd.DataFrame({"t": ["?", "x", None, "-"]}).to_parquet(tmp_path / "d.parquet")
    assert list(read_table(tmp_path / "d.parquet").X["t"].isna()) == [False, False, True, False]
    dialect = Dialect(na=("?",))
    assert list(read_table(tmp_path / "d.parquet", dialect=dialect).X["t"].isna()) == [True, False, True, False]


@pytest.mark.parametrize("memory", [[], TINY])
def test_text_among_numbers_is_pointed_out(tmp_path, capsys, memory):
    table = frame().astype({"a": object})
    table.loc[5, "a"] = "oops"
    facts, _ = train(capsys, table, tmp_path, *memory)
    assert facts["notes"][-1] == (
        "column 'a' is taken as text: 399 of 400 values are numbers; row 6 is 'oops' (--na 'oops' makes it missing)"
    )
    facts, _ = train(capsys, table, tmp_path, "--na", "oops", *memory)
    assert not any("oops" in note for note in facts["notes"])
    assert open_model(tmp_path / "m").kinds == ["number", "number"]


def in_german(x):
    return f"{x:,.2f}".translate(str.maketrans(",.", ".,"))


@pytest.mark.parametrize(
    ("written", "options", "remedy"),
    [
        (lambda x: f"{x:.2f}".replace(".", ","), ["--decimal", ","], "pass --decimal ,"),
        (lambda x: f"{x:,.2f}", ["--thousands", ","], "pass --thousands ','"),
        (in_german, ["--decimal", ",", "--thousands", "."], "--thousands '.'"),
    ],
)
@pytest.mark.parametrize("delimiter", [";", ","])
def test_other_ways_to_write_numbers(tmp_path, capsys, written, options, remedy, delimiter):
    rng = np.random.default_rng(0)
    values = 1e4 * rng.random(300) + 1000
    table = pd.DataFrame({"a": values, "b": rng.normal(size=300), "kind": np.where(values > 6000, "x", "y")})
    lines = [
        delimiter.join([f'"{written(a)}"', f'"{written(b)}"', kind]) for a, b, kind in table.itertuples(index=False)
    ]
    content = "\n".join([delimiter.join(["a", "b", "kind"]), *lines]) + "\n"
    facts, _ = train(capsys, content, tmp_path)
    assert any(
        note.startswith("column 'a' is taken as text, but holds numbers") and remedy in note for note in facts["notes"]
    )
    facts, _ = train(capsys, content, tmp_path, *options)
    model = open_model(tmp_path / "m")
    assert model.kinds == ["number", "number"]
    assert facts["held_out"]["accuracy"] > 0.9
    X, _ = model.sample_rows()
    np.testing.assert_allclose(np.sort(X["a"]), np.sort(np.round(values, 2)))
    assert main(["score", tmp_path / "m", tmp_path / "d.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] > 0.9


def test_marks_that_make_no_sense(tmp_path, capsys):
    for options, message in (
        (["--decimal", ",", "--thousands", ","], "are both ','"),
        (["--decimal", "x"], "must be a single mark"),
        (["--thousands", ".."], "must be a single mark"),
    ):
        facts, error = train(capsys, frame(), tmp_path, *options)
        assert facts is None
        assert message in error


def test_a_first_line_of_data_is_noticed(tmp_path, capsys):
    path = tmp_path / "d.csv"
    path.write_text("1.5,A11,2\n2.5,A12,1\n3.5,A11,2\n")
    with pytest.warns(UserWarning, match=r"look like values \(1.5, A11, 2\); .*pass --no-header"):
        read_table(path)
    read_table(path, header=False)
    path.write_text("0,1,2\n2.5,3,1\n3.5,4,2\n")  # numbered columns
    read_table(path)
    path.write_text("2019,2020,town\n2.5,3,x\n3.5,4,y\n")
    read_table(path)
    path.write_text("4,6,4\n2,3,1\n")
    with pytest.raises(TableError, match=r"two columns are called '4'.*; if the first line is data, pass --no-header"):
        read_table(path)
    path.write_text("a,b,a\n2,3,1\n")
    with pytest.raises(TableError, match=r"neither can be named$"):
        read_table(path)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zip"])
def test_compressed_files(tmp_path, suffix):
    content = frame().to_csv(index=False).encode()
    path = tmp_path / f"d.csv{suffix}"
    if suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("folder/d.csv", content)
            archive.writestr("__MACOSX/d.csv", b"")
    else:
        path.write_bytes({".gz": gzip, ".bz2": bz2, ".xz": lzma}[suffix].compress(content))
    pd.testing.assert_frame_equal(read_table(path, label="kind").X, frame()[["a", "b"]])
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(TableError, match=r"could not be unzipped"):
        read_table(path)


def test_zip_archives_of_other_things(tmp_path):
    path = tmp_path / "d.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("d.csv", "a,b\n1,2\n")
    assert list(read_table(path).X.columns) == ["a", "b"]
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("e.csv", "a,b\n1,2\n")
    with pytest.raises(TableError, match="holds 2 files"):
        read_table(path)
    path.write_bytes(b"PK nothing")
    with pytest.raises(TableError, match="could not be unzipped"):
        read_table(path)


def test_a_zip_archive_by_an_unknown_method_is_not_called_damaged(tmp_path):
    path = tmp_path / "d.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("d.csv", "a,b\n1,2\n")
    content, deflate64 = bytearray(path.read_bytes()), 9
    content[8] = content[content.index(b"PK\x01\x02") + 10] = deflate64  # in front of the file, and in the directory
    path.write_bytes(content)
    with pytest.raises(TableError, match="unzip it with another program first"):
        read_table(path)


@pytest.mark.parametrize("memory", [[], TINY])
def test_a_column_of_huge_numbers_is_named(tmp_path, capsys, memory):
    facts, error = train(capsys, frame().assign(b=frame()["b"] * 1e300), tmp_path, *memory)
    assert facts is None
    assert "column 'b' holds" in error
    assert "in row 1, whose square overflows" in error
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "d.npz", X=rng.normal(size=(50, 2)) * [1, 1e300], y=np.arange(50) % 2)
    assert main(["train", tmp_path / "d.npz", "-o", tmp_path / "m2"]) == 1
    assert "column 'x1' holds" in capsys.readouterr().err


@pytest.mark.parametrize("sparse_rows", [False, True])
def test_models_for_dense_rows_get_them(tmp_path, capsys, sparse_rows):
    table = frame(200).assign(t=np.where(frame(200)["b"] > 0, "u", "v"))
    options = ["--set", "n_experts=2", "--set", "max_iter=2", "--set", "covariance_floor=0.1", "--test-size", "0"]
    if sparse_rows:
        from sklearn.datasets import dump_svmlight_file

        path = tmp_path / "d.libsvm"
        dump_svmlight_file(table[["a", "b"]], np.searchsorted(["AS", "EU", "NA"], table["kind"]), str(path))
    else:
        # Of many categories, so that one-hot rows would be sparse.
        path = tmp_path / "d.csv"
        table.assign(u=[f"u{i % 20}" for i in range(200)]).to_csv(path, index=False)
    command = ["train", path, "--model", "multitask", "-o", tmp_path / "m", *options]
    command += [] if sparse_rows else ["--label", "kind"]
    assert main(command) == 0
    assert main(["score", tmp_path / "m", path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["rows"] == 200
    assert main(["inspect", tmp_path / "m"]) == 0
    capsys.readouterr()
    if sparse_rows:
        assert main([*command, "--memory", "1kB"]) == 1
        assert "--model multitask takes dense rows" in capsys.readouterr().err
