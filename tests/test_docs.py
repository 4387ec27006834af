"""The pages: their Python runs, their links lead somewhere, and every page is in the table of contents."""

import doctest
import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from pages import DOCS, ROOT, blocks_of, examples_of, run_blocks

PAGES = sorted(page.name for page in DOCS.glob("*.md"))
# Run by a test of their own, with what they need.
ELSEWHERE = {
    "tutorial.md": "test_tutorial.py",
    "dask.md": "test_outofcore.py",
    "reproduce.md": "../papers/tests/test_experiments.py",
}
HERE = [name for name in PAGES if name not in ELSEWHERE]


@pytest.mark.parametrize("name", [name for name in HERE if examples_of(name)])
def test_examples_print_what_the_page_says(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    result = doctest.testfile(str(DOCS / name), module_relative=False)
    assert result.failed == 0
    assert result.attempted == len(examples_of(name))


@pytest.mark.parametrize("name", [name for name in HERE if blocks_of(name)])
def test_blocks_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    run_blocks(name)


def prose(path):
    return re.sub(r"```.*?```", "", path.read_text(), flags=re.S)


def anchors(path):
    """The anchors of a page's headings, as GitHub and the site make them."""
    headings = re.findall(r"^#{1,4} (.+)$", prose(path), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", [ROOT / "README.md", *sorted(DOCS.glob("*.md"))], ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", prose(path)):
        if "://" in target:
            continue
        page = path.parent / target if target else path
        assert page.exists(), f"{path.name} links to {target}"
        assert not anchor or anchor in anchors(page), f"{path.name} links to {target}#{anchor}"


@pytest.mark.parametrize(("page", "test"), ELSEWHERE.items())
def test_the_other_pages_are_run_by_tests_of_their_own(page, test):
    assert examples_of(page) or blocks_of(page)
    assert f'"{page}"' in (Path(__file__).parent / test).read_text()


def test_every_page_is_in_the_contents():
    contents = (DOCS / "index.md").read_text().split()
    assert {page.removesuffix(".md") for page in PAGES} - {"index"} <= set(contents)


def documented():
    """What the reference lists: dotted name to object."""
    found, module = {}, ""
    for line in (DOCS / "api.md").read_text().splitlines():
        if match := re.fullmatch(r"\.\. currentmodule:: (\S+)", line):
            module = match[1]
        elif match := re.fullmatch(r"   ([\w.]+)", line):
            *packages, name = f"{module}.{match[1]}".split(".")
            found[".".join([*packages, name])] = getattr(import_module(".".join(packages)), name)
    return found


@pytest.mark.parametrize("name", ["", ".dask", ".datasets", ".densities", ".explain", ".explain.displays"])
def test_every_public_name_is_in_the_reference(name):
    module = import_module(f"svmosaic{name}")
    listed = list(documented().values())
    public = [n for n in module.__all__ if callable(getattr(module, n))]
    assert not [n for n in public if not any(getattr(module, n) is one for one in listed)]


def test_every_exception_is_in_the_reference():
    defined = {
        match[1]
        for path in (ROOT / "src").rglob("*.py")
        for match in re.finditer(r"^class (\w+)\(\w*(?:Error|Exception|Warning)\):", path.read_text(), re.M)
    }
    assert defined <= {name.rpartition(".")[2] for name in documented()}


def test_every_command_is_on_its_page():
    from svmosaic.cli import COMMANDS

    assert set(COMMANDS) <= set(re.findall(r"`(\w+)`", (DOCS / "cli.md").read_text()))


@pytest.mark.slow
@pytest.mark.skipif(find_spec("sphinx_copybutton") is None, reason="needs the extra docs")
def test_the_site_is_built_without_a_warning(tmp_path):
    """Its examples run, its links lead somewhere, and it needs no network."""
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q"]
    run = subprocess.run([*command, str(DOCS), str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
