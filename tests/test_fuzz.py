"""A short run of the fuzzer, and proof that it would notice."""

import os
import subprocess
import sys
from pathlib import Path

import fuzzing
import needs
import pytest

pytestmark = [
    needs.posix,
    pytest.mark.filterwarnings("ignore"),
]


@pytest.mark.parametrize(("target", "count"), [("models", 300), ("tables", 800), ("exports", 150)])
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
    import json
    import zipfile

    import skops.io

    import svmosaic
    from svmosaic.export.files import HEADER, ModelFileError

    path = tmp_path / "model.svmosaic"
    skops.io.dump({"a": 1}, path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(HEADER, json.dumps({"format": 1, "svmosaic": "0.1.0"}))
    with pytest.raises(ModelFileError, match="is no model: it holds an object of type dict"):
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
    from svmosaic.tabular.formats import TableError, read_table

    path = tmp_path / "table.libsvm"
    path.write_text("1 2147483646:1\n")
    with pytest.raises(TableError, match="names the feature 2147483646"):
        read_table(path)


def test_an_npz_compressed_in_an_unknown_way(tmp_path):
    import numpy as np

    from svmosaic.tabular.formats import TableError, read_table

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
    from svmosaic.tabular.formats import TableError, read_chunks, read_table

    path = tmp_path / "table.libsvm"
    path.write_bytes(b"1 1:2\n\x1c\n")
    with pytest.raises(TableError, match=r"line 2: the label '\\x1c' is no number"):
        read_table(path) if whole else list(read_chunks(path))


def test_an_arrow_file_whose_names_are_no_text(tmp_path):
    from pyarrow import feather, table

    from svmosaic.tabular.formats import TableError, read_table

    path = tmp_path / "table.arrow"
    feather.write_feather(table({"name": [1.0, 2.0]}), path, compression="uncompressed")
    path.write_bytes(path.read_bytes().replace(b"name", b"nam\xe1"))
    with pytest.raises(TableError, match=r"could not be read as arrow: 'utf-8' codec"):
        read_table(path)


def test_rounds_go_on_until_enough_are_counted(tmp_path):
    import json

    counts = tmp_path / "counts.json"
    script = [sys.executable, fuzzing.__file__, "tables", "--count", "200", "--seed", "3", "--until", "500"]
    out = subprocess.run([*script, "--json", counts], capture_output=True, text=True, timeout=120, check=True).stdout
    assert [f"(seed {seed})" in line for seed, line in enumerate(out.splitlines(), 3)] == [True] * 3
    assert json.loads(counts.read_text())["total"] == 600
