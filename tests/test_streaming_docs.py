"""The page on streams: its snippet runs, and its table is what the benchmark wrote."""

import doctest
import json
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "streaming.md"


def test_snippet_runs():
    result = doctest.testfile(str(PAGE), module_relative=False)
    assert result.attempted > 5
    assert result.failed == 0


def test_table_is_that_of_the_results():
    text = PAGE.read_text()
    for r in json.loads((ROOT / "benchmarks" / "results" / "stream.json").read_text())["records"]:
        line = (
            f"| {r['rows']:,} | {r['rows_per_second']:,} | {r['accuracy']:.4f} | {r['peak_megabytes']} | "
            f"{r['linear_rows_per_second']:,} | {r['linear_accuracy']:.4f} |"
        )
        assert line in text
