"""A short run of the fuzzer, and proof that it would notice."""

import os
import subprocess
import sys
from pathlib import Path

import fuzzing
import fuzzing_tables
import needs
import pytest

pytestmark = [
    needs.posix,
    pytest.mark.filterwarnings("ignore"),
]


@pytest.mark.parametrize(
    ("target", "count"),
    [
        ("models", 300),
        ("tables", 800),
        ("exports", 150),
        ("frames", 150),
        pytest.param("rows", 1500, marks=needs.node),
    ],
)
def test_mutated_files_are_read_or_refused(target, count, tmp_path):
    done, accepted = fuzzing.fuzz(target, count, seed=7, folder=tmp_path)
    assert done == count
    assert 0 < accepted < count, "mutations that are all refused, or none, test little"


SPY = """
import sys; sys.path.insert(0, {folder!r})
import fuzzing
guard = fuzzing.Guard()
"""
SPIED = """
try:
    with guard.watching():
        {action}
    print("not caught")
except fuzzing.Trespass as error:
    print("caught", error)
"""
TRESPASSES = [
    ("import wave", "import of wave"),
    ("exec('1')", "code object <string>"),
    ("open('{path}', 'w')", "for writing"),
    ("__import__('os').open('{path}', 1 | 64)", "for writing"),
    ("__import__('os').system('true')", "os.system"),
    ("__import__('os').mkdir('{path}')", "os.mkdir"),
]


def test_the_guard_notices(tmp_path):
    # In a process of its own: a hook cannot be taken off.
    actions = [SPIED.format(action=action.format(path=tmp_path / "trace")) for action, _ in TRESPASSES]
    script = SPY.format(folder=str(Path(__file__).parent)) + "".join(actions)
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True).stdout
    for line, (action, told) in zip(out.splitlines(), TRESPASSES, strict=True):
        assert line.startswith("caught"), action
        assert told in line
    assert os.listdir(tmp_path) == []


def test_slow_inputs_are_noticed(monkeypatch, tmp_path):
    class Slow:
        refusals = (ValueError,)

        def __init__(self, folder):
            pass

        def make(self, rng):
            return b""

        def prepare(self, data):
            pass

        def run(self, data):
            while True:
                pass

    monkeypatch.setitem(fuzzing.TARGETS, "models", Slow)
    monkeypatch.setattr(fuzzing, "SECONDS", 0.05)
    with pytest.raises(AssertionError, match="TooSlow"):
        fuzzing.fuzz("models", 3, folder=tmp_path)


# What the fuzzer found, each by its shortest form.


def test_an_archive_with_an_offset_before_its_start(tmp_path):
    import svmosaic
    from svmosaic.export.files import ModelFileError

    path = tmp_path / "model.svmosaic"
    svmosaic.LinearSVC().fit([[0.0], [1.0]], [0, 1]).save(path)
    data = bytearray(path.read_bytes())
    end = data.rindex(b"PK\x05\x06")
    data[end + 12 : end + 16] = (len(data) * 2).to_bytes(4, "little")  # size of the directory
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match="damaged"):
        svmosaic.load(path)


def test_an_archive_whose_compressed_bytes_are_damaged(tmp_path):
    import zipfile

    import svmosaic
    from svmosaic.export.files import ModelFileError

    path = tmp_path / "model.svmosaic"
    svmosaic.LinearSVC().fit([[0.0], [1.0]], [0, 1]).save(path)
    with zipfile.ZipFile(path) as archive:
        entry = archive.getinfo("schema.json")
    assert entry.compress_type == zipfile.ZIP_DEFLATED
    data = bytearray(path.read_bytes())
    start = entry.header_offset + 30 + len("schema.json")
    data[start : start + 20] = b"\xff" * 20
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match="damaged"):
        svmosaic.load(path)


@pytest.mark.parametrize("entry", ["svmosaic.json", "schema.json"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32", "utf-8-sig"])
def test_a_description_in_another_encoding(entry, encoding, tmp_path):
    """json would guess it, and import the module that decodes it."""
    import zipfile

    import svmosaic
    from svmosaic.export.files import ModelFileError

    path = tmp_path / "model.svmosaic"
    svmosaic.LinearSVC().fit([[0.0], [1.0]], [0, 1]).save(path)
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    contents[entry] = contents[entry].decode().encode(encoding)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    with pytest.raises(ModelFileError, match=f"its entry {entry} is not plain text"):
        svmosaic.load(path)


def test_an_archive_that_holds_no_model(tmp_path):
    import svmosaic
    from svmosaic.export.files import ModelFileError, save

    path = tmp_path / "model.svmosaic"
    save({"a": 1}, path)
    with pytest.raises(ModelFileError, match="is not a model: it holds an object of type dict"):
        svmosaic.load(path)


@pytest.mark.parametrize("file", ["a\nb.c", 'a".c', "a\\.c", "é.c"])
def test_a_file_name_that_would_end_the_include_of_the_c_source(file, tmp_path):
    from svmosaic import LinearSVC
    from svmosaic.export.c import CExportError

    model = LinearSVC().fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(CExportError, match=r"path must end in \.c, after letters"):
        model.to_c(tmp_path / file)
    assert os.listdir(tmp_path) == []


def test_one_index_cannot_make_two_billion_columns(tmp_path):
    from svmosaic.table.formats import TableError, read_table

    path = tmp_path / "table.libsvm"
    path.write_text("1 2147483646:1\n")
    with pytest.raises(TableError, match="names the feature 2147483646"):
        read_table(path)


def test_an_npz_compressed_in_an_unknown_way(tmp_path):
    import numpy as np

    from svmosaic.table.formats import TableError, read_table

    path = tmp_path / "table.npz"
    np.savez(path, X=np.eye(2))
    data = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        data[data.index(mark) + offset] = 77
    path.write_bytes(data)
    with pytest.raises(TableError, match="could not be read as NPZ"):
        read_table(path)


@pytest.mark.parametrize("whole", [True, False])
def test_a_libsvm_line_of_spaces_that_only_text_knows(whole, tmp_path):
    from svmosaic.table.formats import TableError, read_chunks, read_table

    path = tmp_path / "table.libsvm"
    path.write_bytes(b"1 1:2\n\x1c\n")
    with pytest.raises(TableError, match=r"line 2: the label '\\x1c' is not a number"):
        read_table(path) if whole else list(read_chunks(path))


def test_an_arrow_file_whose_names_are_no_text(tmp_path):
    from pyarrow import feather, table

    from svmosaic.table.formats import TableError, read_table

    path = tmp_path / "table.arrow"
    feather.write_feather(table({"name": [1.0, 2.0]}), path, compression="uncompressed")
    path.write_bytes(path.read_bytes().replace(b"name", b"nam\xe1"))
    with pytest.raises(TableError, match=r"could not be read as arrow: 'utf-8' codec"):
        read_table(path)


@pytest.mark.parametrize("whole", [True, False])
def test_an_arrow_file_whose_offsets_point_nowhere(whole, tmp_path):
    """pyarrow follows them unless it is asked to look first: this took the process down."""
    from pyarrow import feather, table

    from svmosaic.table.formats import TableError, read_chunks, read_table

    path = tmp_path / "table.arrow"
    feather.write_feather(table({"b": ["x", "y", None]}), path, compression="uncompressed")
    offsets, damaged = (b"".join(k.to_bytes(4, "little") for k in (0, 1, 2, end)) for end in (2, 2**31 - 1))
    content = path.read_bytes()
    assert content.count(offsets) == 1
    path.write_bytes(content.replace(offsets, damaged))
    with pytest.raises(TableError, match="could not be read as arrow"):
        read_table(path) if whole else list(read_chunks(path))


@pytest.mark.parametrize("kind", ["arrow", "parquet"])
def test_large_whole_numbers_with_gaps(kind, tmp_path):
    """pyarrow refuses to round them, unless it is told to."""
    from pyarrow import feather, parquet, table

    from svmosaic.table.formats import read_table

    path = tmp_path / f"table.{kind}"
    {"arrow": feather.write_feather, "parquet": parquet.write_table}[kind](table({"id": [2**53 + 1, None, 3]}), path)
    assert read_table(path).X["id"].tolist()[::2] == [2.0**53, 3.0]


# Rows and frames: a model of one column of each kind.


@pytest.fixture(scope="module")
def table_model():
    return fuzzing_tables.fitted_model()


ROW = {"number": 0.5, "text": "north", "day": "2026-02-03", "truth": True, "many": "t1", "gaps": 3.0}


@pytest.mark.parametrize(
    "value", ["1_000", "0x10", "inf", "Infinity", "1e400", "١", "1,5", "oops", 10**400, [], {"a": 1}], ids=repr
)
def test_a_row_with_what_is_no_number(value, table_model):
    with pytest.raises(ValueError, match="column 'number' must be a number"):
        table_model.predictor().predict({**ROW, "number": value})


@pytest.mark.parametrize("value", [None, "", "  ", "NA", " ? ", "nan", float("nan")], ids=repr)
@pytest.mark.parametrize("column", ["number", "gaps"])
def test_a_row_with_a_missing_number(column, value, table_model):
    predictor = table_model.predictor()
    expected = predictor.decision_function({**ROW, column: None})
    assert predictor.decision_function({**ROW, column: value}) == expected


@pytest.mark.parametrize("value", [[], ["north"], {"a": 1}, b"north"], ids=repr)
def test_a_row_with_what_is_no_text(value, table_model):
    with pytest.raises(ValueError, match="column 'text' must be text"):
        table_model.predictor().predict({**ROW, "text": value})


def test_a_table_of_pyarrow_with_numbers_that_are_rounded(table_model):
    """It refuses to convert them, where pandas and Polars round."""
    import polars

    table = polars.DataFrame({**{name: [value] for name, value in ROW.items()}, "number": [2**53 + 1]})
    table = table.with_columns(polars.col("day").str.to_date())
    assert table_model.decision_function(table.to_arrow()) == table_model.decision_function(table)


def test_rounds_go_on_until_enough_are_counted(tmp_path):
    import json

    counts = tmp_path / "counts.json"
    script = [sys.executable, fuzzing.__file__, "tables", "--count", "200", "--seed", "3", "--until", "500"]
    out = subprocess.run([*script, "--json", counts], capture_output=True, text=True, timeout=120, check=True).stdout
    assert [f"(seed {seed})" in line for seed, line in enumerate(out.splitlines(), 3)] == [True] * 3
    assert json.loads(counts.read_text())["total"] == 600
