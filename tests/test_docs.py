"""The pages: their Python runs, their links lead somewhere, and every page is in the table of contents."""

import doctest
import re
from pathlib import Path

import needs
import pytest
from pages import DOCS, blocks_of, examples_of, run_blocks

PAGES = sorted(page.name for page in DOCS.glob("*.md"))
# Run by a test of their own, with what they need.
ELSEWHERE = {
    "tutorial.md": "test_tutorial.py",
    "bench.md": "test_bench.py",
    "dask.md": "test_outofcore.py",
    "reproduce.md": "test_experiments.py",
}


HERE = [name for name in PAGES if name not in ELSEWHERE]


@pytest.mark.parametrize("name", [name for name in HERE if examples_of(name)])
def test_examples_print_what_the_page_says(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    result = doctest.testfile(str(DOCS / name), module_relative=False)
    assert result.failed == 0
    assert result.attempted == len(examples_of(name))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=needs.data if "load_scene" in "".join(blocks_of(name)) else ())
        for name in HERE
        if blocks_of(name)
    ],
)
def test_blocks_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    run_blocks(name)


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name):
    text = re.sub(r"```.*?```", "", (DOCS / name).read_text(), flags=re.S)
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        assert "://" in target or (DOCS / target).exists(), f"{name} links to {target}"


@pytest.mark.parametrize(("page", "test"), ELSEWHERE.items())
def test_the_other_pages_are_run_by_tests_of_their_own(page, test):
    assert examples_of(page) or blocks_of(page)
    assert f'"{page}"' in (Path(__file__).parent / test).read_text()


def test_every_page_is_in_the_contents():
    contents = (DOCS / "index.md").read_text().split()
    assert {page.removesuffix(".md") for page in PAGES} - {"index"} <= set(contents)


def test_every_public_name_is_in_the_reference():
    import svmosaic

    assert set(svmosaic.__all__) <= set((DOCS / "api.md").read_text().split())
