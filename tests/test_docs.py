"""The pages: their Python runs, their links lead somewhere, and every page is in the table of contents."""

import doctest
import re
from pathlib import Path

import pytest

from svmosaic.datasets import data_folder

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(page.name for page in DOCS.glob("*.md"))
# Run by a test of their own, with what they need.
ELSEWHERE = {"tutorial.md", "bench.md", "dask.md"}


@pytest.mark.parametrize("name", PAGES)
def test_python_of_the_page_runs(name, tmp_path, monkeypatch):
    text = (DOCS / name).read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    if name in ELSEWHERE or not blocks:
        return
    if "load_scene" in text and data_folder() is None:
        pytest.skip("needs the data folder")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    assert doctest.testfile(str(DOCS / name), module_relative=False).failed == 0
    names = {}
    for block in blocks:
        if ">>>" not in block:
            exec(compile(block, name, "exec"), names)


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name):
    text = re.sub(r"```.*?```", "", (DOCS / name).read_text(), flags=re.S)
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        assert "://" in target or (DOCS / target).exists(), f"{name} links to {target}"


def test_every_page_is_in_the_contents():
    contents = (DOCS / "index.md").read_text().split()
    assert {page.removesuffix(".md") for page in PAGES} - {"index"} <= set(contents)


def test_every_public_name_is_in_the_reference():
    import svmosaic

    assert set(svmosaic.__all__) <= set((DOCS / "api.md").read_text().split())
