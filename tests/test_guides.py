"""The guides on choosing and on regions: their pictures are there."""

import re

import pytest
from pages import DOCS


@pytest.mark.parametrize("name", ["choosing.md", "interpretation.md", "regions.md"])
def test_pictures_and_pages_are_there(name):
    text = (DOCS / name).read_text()
    for target in re.findall(r"\]\((images/[^)]+)\)", text) + re.findall(r"`(\w+\.md)`", text):
        assert (DOCS / target).exists(), target
