"""The tutorial's commands and programs, run as they stand."""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from svmosaic.cli import main

PAGE = (Path(__file__).parent.parent / "docs" / "tutorial.md").read_text()
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


def blocks():
    """Kind, text, and the file it is to be saved as, of each block, in order."""
    for match in BLOCK.finditer(PAGE):
        before = PAGE[: match.start()].rstrip().rsplit("\n\n", 1)[-1]
        name = re.search(r"Save (?:it|this) as `([\w.]+)`:$", before)
        yield match[1], match[2], name and name[1]


def done(command, folder, environment):
    """The exit code of a command and what it printed.

    A command that is our program and nothing else is run in this process, which has imported everything; with pipes and
    redirections it is a program of its own.
    """
    if command.startswith("svmosaic ") and not re.search("[|<>]", command):
        out = io.StringIO()
        with contextlib.chdir(folder), contextlib.redirect_stdout(out):
            return main(shlex.split(command)[1:]), out.getvalue()
    run = subprocess.run(
        ["sh", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )  # fmt: skip
    return run.returncode, run.stdout + (run.stderr if run.returncode else "")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which everything on the page has been done, and what the commands printed."""
    folder = tmp_path_factory.mktemp("tutorial")
    programs = folder / "bin"
    programs.mkdir()
    (programs / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    call = "import sys; from svmosaic.cli import main; sys.exit(main())"
    (programs / "svmosaic").write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{call}" "$@"\n')
    for program in programs.iterdir():
        program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    printed = {}
    for kind, text, name in blocks():
        if name:
            (folder / name).write_text(text)
        elif kind == "sh":
            for command in text.splitlines():
                code, printed[command] = done(command, folder, environment)
                assert code == 0, f"{command}\n{printed[command]}"
    return folder, printed


def test_every_block_is_a_command_a_file_or_an_output():
    kinds = [(kind, bool(name)) for kind, _, name in blocks()]
    assert set(kinds) == {("sh", False), ("python", True), ("c", True), ("text", False)}


def test_all_that_is_promised_is_there(folder):
    folder, printed = folder
    predictions = pd.read_csv(folder / "out.csv")
    assert list(predictions.columns) == ["prediction"]
    assert (folder / "piped.csv").read_text() == (folder / "out.csv").read_text()
    assert list(pd.read_csv(folder / "why.csv").columns) == [
        "prediction", "probability_even", "probability_odd", "tiles", "features",
    ]  # fmt: skip
    truth = pd.read_csv(folder / "later.csv")["parity"]
    accuracy = (predictions["prediction"] == truth).mean()
    assert float(printed["python -c \"import json; print(json.load(open('score.json'))['accuracy'])\""]) == accuracy
    assert "<html" in (folder / "report.html").read_text().lower()
    # Which model a search of a few seconds ends with depends on the machine; tiles of kernels and numbers have none.
    assert "accuracy" in printed["svmosaic inspect digits.model"]
    code, local = done("svmosaic inspect local.model", folder, dict(os.environ))
    assert code == 0
    assert "strongest features" in local


def test_the_output_shown_is_that_of_the_command_before_it(folder):
    _, printed = folder
    command = None
    assert "text" in {kind for kind, _, _ in blocks()}
    for kind, text, _ in blocks():
        if kind == "text":
            # Numbers differ between machines, by a little; words do not.
            def words(text):
                return re.sub(r"[\d.]+", "#", text)

            assert words(printed[command]) == words(text)
            shares = [[float(share) for share in re.findall(r"([\d.]+)%", t)] for t in (printed[command], text)]
            assert shares[0] == pytest.approx(shares[1], abs=3)
        elif kind == "sh":
            command = text.splitlines()[-1]
