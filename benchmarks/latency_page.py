"""Put the stored results of bench_latency.py into docs/tables.md.

python benchmarks/latency_page.py
"""

from measured import Page, machine_of, table


def one_row(latency):
    part = latency["adult"]
    summary = part["summary"]
    yield (
        f"One row of adult, from its columns to its class ({machine_of(part)}; processor time, one thread, the best of "
        f"several passes over {summary['rows']} rows; `benchmarks/bench_latency.py`). Ours is a `MosaicClassifier`, "
        f"which chose `{summary['model']}` with {summary['tiles']} tile{'s' if summary['tiles'] > 1 else ''}:"
    )
    yield table(
        ["way", "test accuracy, %", "microseconds"],
        [[r["what"], f"{100 * r['accuracy']:.2f}", f"{r['microseconds']:.1f}"] for r in part["records"]],
    )


PAGE = Page("tables.md", ("latency",), one_row)

if __name__ == "__main__":
    PAGE.write()
