"""The page on data sets: its snippet runs, and it names every set."""

import doctest
import re
from pathlib import Path

from svmosaic.datasets.registry import SETS

PAGE = Path(__file__).parent.parent / "docs" / "datasets.md"


def test_snippet_runs():
    result = doctest.testfile(str(PAGE), module_relative=False)
    assert result.attempted >= 5
    assert result.failed == 0


def test_every_set_is_named_once_in_the_table():
    rows = re.findall(r"^\| (`.*) \| .* \|$", PAGE.read_text(), re.M)
    names = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(names) == sorted(SETS)
