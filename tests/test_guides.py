"""The guides on choosing and on regions: their snippets run, and their pictures are there."""

import doctest
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize("name", ["choosing.md", "regions.md"])
def test_snippets_run(name):
    result = doctest.testfile(str(DOCS / name), module_relative=False)
    assert result.attempted > 5
    assert result.failed == 0


@pytest.mark.parametrize("name", ["choosing.md", "regions.md"])
def test_pictures_and_pages_are_there(name):
    text = (DOCS / name).read_text()
    for target in re.findall(r"\]\((images/[^)]+)\)", text) + re.findall(r"`(\w+\.md)`", text):
        assert (DOCS / target).exists(), target
