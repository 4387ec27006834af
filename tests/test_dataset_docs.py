"""The page on data sets names every set."""

import re

from pages import DOCS

from svmosaic.datasets.registry import SETS


def test_every_set_is_named_once_in_the_table():
    rows = re.findall(r"^\| (`.*) \| .* \|$", (DOCS / "datasets.md").read_text(), re.M)
    names = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(names) == sorted(SETS)
