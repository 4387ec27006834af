"""`python -m papers`: killed at any moment it loses no finished result and repeats none; its reports are whole."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from papers import report
from papers.__main__ import main

COMMAND = [sys.executable, "-m", "papers", "reproduce", "--quick"]
ROOT = Path(__file__).parents[2]
ONLY = ["--only", "llsvm-table3", "--only", "csvm-figure1"]


def start(folder, *options, only=ONLY):
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    environment.pop("SVMOSAIC_DATA", None)
    return subprocess.Popen(
        [*COMMAND, *only, "--output", str(folder), *options], cwd=ROOT, env=environment, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, preexec_fn=_heed_interrupts,
    )  # fmt: skip


def _heed_interrupts():
    # A test run in the background may have been told to ignore them, and its children with it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def lines_of(folder):
    """Whole lines of the store."""
    path = folder / "results.jsonl"
    content = path.read_bytes() if path.exists() else b""
    return content[: content.rfind(b"\n") + 1].splitlines()


def wait_for_lines(process, folder, n):
    """Until the store has n lines or the process ends."""
    while process.poll() is None and len(lines_of(folder)) < n:
        time.sleep(0.01)


def what_was_measured(lines):
    records = [json.loads(line) for line in lines]
    return {(r["key"], r["repeat"]): (r.get("setting"), r.get("accuracy"), r.get("panels")) for r in records}


def test_killed_runs_lose_nothing_and_repeat_nothing(tmp_path):
    folder, whole = tmp_path / "killed", tmp_path / "whole"
    chance = random.Random(0)
    before: list[bytes] = []
    for kill in range(2):
        # One of the runs has workers.
        process = start(folder, *(["--jobs", "2"] if kill == 1 else []))
        wait_for_lines(process, folder, len(before) + chance.randint(1, 4))
        time.sleep(chance.uniform(0, 0.2))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        # A torn line, as a machine that goes down would leave it, is no hindrance either.
        if kill == 0:
            with open(folder / "results.jsonl", "ab") as file:
                file.write(b'{"key": "half a rec')
        after = lines_of(folder)
        assert after[: len(before)] == before
        assert len(after) > len(before)
        before = after
    process = start(folder)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    assert f"{len(before)} in" in output
    final = lines_of(folder)
    assert final[: len(before)] == before
    keys = [(r["key"], r["repeat"]) for r in map(json.loads, final)]
    assert len(set(keys)) == len(keys)
    # The same as a run that nobody stopped.
    assert main(["reproduce", "--quick", *ONLY, "--output", str(whole)]) == 0
    assert what_was_measured(final) == what_was_measured(lines_of(whole))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_is_clean(tmp_path, number):
    # Minutes of runs: on a busy machine, those of a few experiments may be over before the signal is sent.
    process = start(tmp_path, "--jobs", "2" if number == signal.SIGINT else "1", only=[])
    wait_for_lines(process, tmp_path, 2)
    process.send_signal(number)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Run the same command to resume" in re.sub(r"\s+", " ", output)
    assert "Traceback" not in output
    assert len(lines_of(tmp_path)) >= 2


def test_reports_are_written(tmp_path, capsys):
    arguments = ["reproduce", "--quick", "--only", "csvm-figure1", "--only", "mlsvm-figure5", "--output", str(tmp_path)]
    assert main(arguments) == 0
    page = (tmp_path / "results.md").read_text()
    assert "Quick run on stand-ins" in page
    report = (tmp_path / "report.html").read_text()
    # Two pictures inside the file, and nothing that it would have to fetch.
    assert report.count("data:image/png;base64,") == 2
    assert not re.search(r'(src|href)="(?!data:|#)', report)
    for image in re.findall(r"!\[.*?\]\((.*?)\)", page):
        assert (tmp_path / image).stat().st_size > 1000
    capsys.readouterr()
    assert main(["report", *arguments[1:]]) == 0
    assert (tmp_path / "results.md").read_text() == page
    assert main([*arguments, "--list"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"csvm-figure1\s+1 of 1", out)


def test_without_matplotlib_there_are_tables(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(report, "has_pictures", lambda: False)
    assert main(["reproduce", "--quick", "--only", "csvm-figure1", "--output", str(tmp_path)]) == 0
    assert "pip install matplotlib" in (tmp_path / "report.html").read_text()
    assert "matplotlib" in capsys.readouterr().err
    assert not (tmp_path / "images").exists()


def test_images_of_the_user_are_taken(tmp_path):
    rng = np.random.RandomState(0)
    y = np.repeat([0, 1, 2], 40)
    np.savez(tmp_path / "flowers.npz", X=np.abs(rng.standard_normal((120, 12)) + 2 * np.eye(12)[y]), y=y)
    options = ["--only", "llsvm-table3", "--repeats", "1", "--images", str(tmp_path / "flowers.npz")]
    assert main(["reproduce", "--quick", *options, "--output", str(tmp_path)]) == 0
    page = (tmp_path / "results.md").read_text()
    assert "| accuracy, % | flowers |" in page
    assert len(re.findall(r"^\| [^|]+ \| \d+\.\d+ \|$", page, re.M)) == 5


def test_wrong_use_is_told_in_a_line(tmp_path, capsys):
    for options, text in (
        (["--only", "nothing-*"], "no experiment matches"),
        (["--data", str(tmp_path / "nowhere")], "is not a folder"),
        (["--images", str(tmp_path / "nowhere")], "does not exist"),
    ):
        assert main(["reproduce", "--quick", *options, "--output", str(tmp_path)]) == 2
        assert text in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["reproduce", "--jobs", "0"])
    assert "jobs" in capsys.readouterr().err


def test_missing_data_fails_its_cells_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SVMOSAIC_DATA", str(tmp_path))
    monkeypatch.setenv("SVMOSAIC_OFFLINE", "1")
    monkeypatch.setenv("SVMOSAIC_CACHE", str(tmp_path / "cache"))
    options = ["--only", "lsvm-mtl-table1-landsat", "--only", "csvm-figure1", "--output", str(tmp_path)]
    assert main(["reproduce", *options]) == 1
    err = capsys.readouterr().err
    assert "satimage" in err
    assert "failed: Landsat" in err
    page = (tmp_path / "results.md").read_text()
    assert "– (86.01)" in page
    assert "The store holds 1 of 2 runs" in page
