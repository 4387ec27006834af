"""The page on streams: its table is what the benchmark wrote."""

import json

from pages import DOCS, ROOT


def test_table_is_that_of_the_results():
    text = (DOCS / "streaming.md").read_text()
    for r in json.loads((ROOT / "benchmarks" / "results" / "stream.json").read_text())["records"]:
        line = (
            f"| {r['rows']:,} | {r['rows_per_second']:,} | {r['accuracy']:.4f} | {r['peak_megabytes']} | "
            f"{r['linear_rows_per_second']:,} | {r['linear_accuracy']:.4f} |"
        )
        assert line in text
