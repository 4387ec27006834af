"""Put the stored results of bench_stream.py into docs/streaming.md.

python benchmarks/stream_page.py
"""

from measured import Page, table


def tables(report):
    records = report["records"]
    yield f"{records[-1]['rows']:,} rows of {report['features']} features in batches of {report['batch']:,}:"
    yield table(
        ["rows", "rows/s", "accuracy", "peak memory, MB", "linear `SGDClassifier`: rows/s", "accuracy"],
        [
            [
                f"{r['rows']:,}",
                f"{r['rows_per_second']:,}",
                f"{r['accuracy']:.4f}",
                r["peak_megabytes"],
                f"{r['linear_rows_per_second']:,}",
                f"{r['linear_accuracy']:.4f}",
            ]
            for r in records
        ],
    )


PAGE = Page("streaming.md", ("stream",), tables)

if __name__ == "__main__":
    PAGE.write()
