"""What an install says without a compiler, and the version it has."""

import os
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

import pytest

import svmosaic


@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not on the path")
def test_missing_compiler_is_told_in_a_sentence(tmp_path):
    run = subprocess.run(
        ["cmake", "-S", Path(__file__).parent.parent, "-B", tmp_path],
        env={**os.environ, "CXX": "/nowhere/c++"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode != 0
    message = " ".join(run.stderr.split())
    assert "svmosaic needs a C++17 compiler and found none (the environment variable CXX is '/nowhere/c++')" in message
    assert "apt install g++" in message


def test_one_version_everywhere():
    root = Path(__file__).parents[1]
    assert f"version: {svmosaic.__version__}\n" in (root / "CITATION.cff").read_text()
    assert metadata.version("svmosaic") == svmosaic.__version__
