"""Files are written whole or not at all, and what is no regular file stays what it is."""

import os
import signal
import stat
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from svmosaic import LinearSVC, load, outofcore
from svmosaic.atomic import check_output, write_bytes, write_text, written
from svmosaic.cli import main
from svmosaic.export.files import ModelFileError

X = np.random.default_rng(0).normal(size=(60, 3))
y = np.where(X[:, 0] > 0, "a", "b")
PROGRAM = [sys.executable, "-c", "import sys; from svmosaic.cli import main; sys.exit(main())"]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "data.csv"
    lines = [",".join([*map(str, row), label]) for row, label in zip(X, y, strict=True)]
    path.write_text("\n".join(["p,q,r,y", *lines]) + "\n")
    return path


@pytest.fixture
def model(table, tmp_path):
    path = tmp_path / "a.model"
    assert main(["train", str(table), "--label", "y", "-o", str(path), "--model", "linear", "--quiet"]) == 0
    return path


def test_the_mode_is_kept_and_a_new_file_follows_the_umask(tmp_path):
    path = tmp_path / "a"
    before = os.umask(0o027)
    try:
        write_text(path, "one")
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o600)
        with written(path) as temporary:
            assert stat.S_IMODE(temporary.stat().st_mode) == 0o600
            temporary.write_text("two")
    finally:
        os.umask(before)
    assert path.read_text() == "two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_symbolic_links_are_followed(tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "link").symlink_to("far/file")
    write_text(tmp_path / "link", "one")  # it leads nowhere yet
    write_text(tmp_path / "link", "two")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "far" / "file").read_text() == "two"
    assert sorted(os.listdir(tmp_path)) == ["far", "link"]


def test_a_pipe_is_written_into(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    LinearSVC(random_state=0).fit(X, y).save(pipe)
    reader.join()
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    (tmp_path / "copy").write_bytes(received[0])
    assert (load(tmp_path / "copy").predict(X) == y).mean() > 0.9


def test_devices_stay_devices(model, table, tmp_path):
    fitted = LinearSVC(random_state=0).fit(X, y)
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        fitted.save("/dev/full")
    assert main(["train", str(table), "--label", "y", "-o", "/dev/null", "--model", "linear", "--quiet"]) == 0
    (tmp_path / "null").symlink_to("/dev/null")
    fitted.save(tmp_path / "null")
    (tmp_path / "null.npy").symlink_to("/dev/null")
    outofcore.predict(fitted, X, output=tmp_path / "null.npy")
    for path in ("/dev/null", "/dev/full"):
        assert stat.S_ISCHR(os.stat(path).st_mode)
    assert (tmp_path / "null").is_symlink()


def test_the_standard_output_by_its_path(tmp_path):
    """Redirected to a file, which already has a line: the line stays, and what is printed later comes after."""
    out = tmp_path / "out"
    code = (
        "import sys; from svmosaic.atomic import write_text; print('first', flush=True); "
        "write_text('/dev/stdout', 'second\\n'); print('third')"
    )
    with open(out, "w") as file:
        subprocess.run([sys.executable, "-c", code], stdout=file, check=True)
    assert out.read_text() == "first\nsecond\nthird\n"


def test_sockets_and_folders_are_refused(tmp_path):
    import socket

    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        with pytest.raises(ValueError, match="socket"):
            write_text(tmp_path / "s", "text")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        write_text(tmp_path, "text")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        write_text(tmp_path / "none" / "a", "text")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        write_text(tmp_path / "s" / "a", "text")


def test_a_failed_write_leaves_what_was_there(tmp_path):
    (tmp_path / "a").write_text("old")

    def fail():
        with written(tmp_path / "a") as temporary:
            temporary.write_bytes(b"half")
            raise RuntimeError("full")

    with pytest.raises(RuntimeError, match="full"):
        fail()
    assert os.listdir(tmp_path) == ["a"]
    assert (tmp_path / "a").read_text() == "old"


WRITER = """
import sys, time
from svmosaic.atomic import written
with written(sys.argv[1]) as path:
    path.write_text("half")
    print("writing", flush=True)
    time.sleep(60)
"""


def start_writer(path):
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "writing\n"
    return process


def test_an_interrupt_leaves_what_was_there(tmp_path):
    (tmp_path / "a").write_text("old")
    process = start_writer(tmp_path / "a")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT
    assert os.listdir(tmp_path) == ["a"]
    assert (tmp_path / "a").read_text() == "old"


def test_an_output_that_is_an_input_is_refused(model, table, tmp_path, capsys):
    content, saved = table.read_bytes(), model.read_bytes()
    (tmp_path / "link.csv").symlink_to(table)
    os.link(table, tmp_path / "hard.csv")
    header = tmp_path / "m.h"
    header.write_bytes(saved)
    commands = [
        ["predict", model, table, "-o", table],
        ["predict", model, table, "-o", tmp_path / "link.csv"],
        ["predict", model, tmp_path / "link.csv", "-o", tmp_path / "hard.csv"],
        ["train", table, "--label", "y", "-o", table, "--model", "linear"],
        ["train", table, "--label", "y", "--test", tmp_path / "link.csv", "-o", tmp_path / "hard.csv"],
        ["export", model, "--format", "onnx", "-o", model],
        ["export", header, "--format", "c", "-o", tmp_path / "m.c"],
        ["inspect", model, "--html", model],
        ["inspect", model, "--row", "1", "--data", table, "--html", table],
    ]
    for command in commands:
        assert main(command) == 1, command
        assert "which is read: name another file to write" in capsys.readouterr().err, command
    assert table.read_bytes() == content
    assert model.read_bytes() == header.read_bytes() == saved


def test_a_dash_is_the_standard_output_or_refused(model, table, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["predict", model, table, "-o", "-"]) == 0
    assert capsys.readouterr().out.startswith("prediction\n")
    for command in (
        ["train", table, "--label", "y", "-o", "-"],
        ["export", model, "--format", "onnx", "-o", "-"],
        ["inspect", model, "--html", "-"],
    ):
        assert main(command) == 1
        assert "written to a file only" in capsys.readouterr().err
    assert not (tmp_path / "-").exists()


def test_two_saves_of_one_model_have_the_same_bytes(tmp_path, table):
    """Also in another process, where objects lie elsewhere in memory, and after a load."""
    command = ["train", table, "--label", "y", "--model", "kmeans", "--set", "n_clusters=3", "--quiet", "-o"]
    assert main([*command, tmp_path / "one"]) == 0
    time.sleep(2.1)  # zip archives count in steps of two seconds
    subprocess.run([*PROGRAM, *map(str, [*command, tmp_path / "two"])], check=True)
    load(tmp_path / "one").save(tmp_path / "three")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert (tmp_path / "one").read_bytes() == (tmp_path / "three").read_bytes()


def test_a_long_file_that_is_no_model_is_not_read(tmp_path):
    for head in (b"", b"PK\3\4"):
        path = tmp_path / "zeros"
        with open(path, "wb") as file:
            file.write(head)
            file.truncate(3 << 30)
        code = (
            "import resource, sys, svmosaic; from svmosaic.export.files import ModelFileError\n"
            "import skops.io\n"
            "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
            "try:\n    svmosaic.load(sys.argv[1])\nexcept ModelFileError: pass\nelse: sys.exit(1)\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
        )
        process = subprocess.run([sys.executable, "-c", code, path], check=True, capture_output=True, text=True)
        assert int(process.stdout) < 50_000  # kilobytes
    with pytest.raises(ModelFileError, match="not a regular file"):
        load("/dev/zero")


def test_a_name_as_long_as_the_system_allows(tmp_path):
    path = tmp_path / ("n" * 251 + ".csv")
    write_bytes(path, b"text")
    assert path.read_bytes() == b"text"


def test_check_output_passes_what_is_fine(tmp_path):
    check_output(tmp_path / "new", [None, "-", tmp_path / "other"])
