"""Put the stored results of bench_latency.py into docs/tables.md.

python benchmarks/latency_page.py
"""

from measured import Page, machine_of, table


def one_row(latency):
    part = latency["adult"]
    summary = part["summary"]
    yield (
        f"Time to classify one row of adult, starting from the columns of the table ({machine_of(part)}; processor "
        f"time, one thread, the best pass over {summary['rows']} rows; `benchmarks/bench_latency.py`). Ours is "
        f"a `MosaicClassifier`, which chose `{summary['model']}` with {summary['tiles']} "
        f"tile{'s' if summary['tiles'] > 1 else ''}:"
    )
    yield table(
        ["interface", "test accuracy, %", "microseconds"],
        [[r["what"], f"{100 * r['accuracy']:.2f}", f"{r['microseconds']:.1f}"] for r in part["records"]],
    )


PAGE = Page("tables.md", ("latency",), one_row)

if __name__ == "__main__":
    PAGE.write()
