"""Put the stored results of bench_dask.py into docs/dask.md.

python benchmarks/dask_page.py
"""

from measured import Page, table

HEADINGS = {
    "cluster": "**Clusters versus the local model.** The largest differences over 1, 2 and 4 worker processes and "
    "three partitionings (even, very uneven, and with a single class per partition): the relative difference of the "
    "objective from the local one, and the difference of the test accuracy in percentage points.",
    "traffic": "**Network traffic** per round of the optimizer for the squared hinge with four partitions: bytes to "
    "and from one of them.",
    "disk": "**From disk**: Parquet files of float32, `ClusteredSVC(16, loss='squared_hinge')` on one thread, in a "
    "separate process.",
    "learned": "**Learned gates**, covertype, class 2 against the rest, 200,000 training rows: in memory, from a "
    "Parquet file in chunks, and averaged over two worker processes (`benchmarks/bench_learned_large.py`).",
    "learned_memory": "**Learned gates from disk**: peak memory of a process by the number of rows in Parquet files.",
}


def tables(report):
    makers = (cluster, traffic, disk, learned, learned_memory)
    for part, lines_of in ((maker.__name__, maker) for maker in makers):
        machine = report[part]["machine"]
        yield f"{HEADINGS[part]} ({machine['processor']}, {machine['cores']} cores, {machine['date']}.)"
        yield from lines_of(report[part]["records"])


def cluster(records):
    groups = {}
    for record in records:
        groups.setdefault((record["data"], record["rows"], record["model"]), []).append(record)
    columns = ("set", "rows", "model", "fits", "objective", "accuracy", "rounds")
    yield table(columns, [compared(*key, fits) for key, fits in groups.items()])
    outside = sum(record["difference"] > 1e-3 or points(record) > 0.2 for record in records)
    yield (
        f"{len(records)} fits; {outside} of them differ by more than 0.001 from the local objective or by more than "
        "0.2 points from its accuracy. All workers shared the cores of one machine, so their times are stored but not "
        "shown."
    )


def compared(data, rows, model, fits):
    """The cells of a model on a set."""
    rounds = sorted(fit["rounds"] for fit in fits)
    return [
        data, f"{rows:,}", model, len(fits), f"{max(fit['difference'] for fit in fits):.1e}",
        f"{max(map(points, fits)):.2f}", f"{rounds[0]} to {rounds[-1]}",
    ]  # fmt: skip


def points(record):
    return 100 * abs(record["accuracy"] - record["local_accuracy"])


def traffic(records):
    numbers = ("largest_sent", "largest_returned", "sample_for_kmeans")
    yield table(
        ("rows", "tiles", "features", "sent", "returned", "sample for k-means, once"),
        [[f"{r['rows']:,}", r["tiles"], r["features"], *(f"{r[key]:,}" for key in numbers)] for r in records],
    )


def disk(records):
    columns = ("rows", "on disk", "passes", "fit", "rows/s per pass", "predict", "rows/s", "peak memory", "accuracy")
    yield table(columns, [
        [
            f"{r['rows'] // 10**6} million", f"{r['megabytes_on_disk']:,} MB", r["passes"], f"{r['fit_seconds']:.0f} s",
            f"{r['rows_read_per_second']:,}", f"{r['predict_seconds']:.0f} s", f"{r['predict_rows_per_second']:,}",
            f"{r['peak_megabytes']:,} MB", f"{100 * r['accuracy']:.2f} %",
        ]
        for r in records
    ])  # fmt: skip


def learned(records):
    groups = {}
    for record in records:
        groups.setdefault((record["way"], record.get("steps_between_averages")), []).append(record)
    rows = []
    for (way, n_steps), fits in groups.items():
        accuracy = [fit["accuracy"] for fit in fits]
        rows.append(
            [
                way if n_steps is None else f"{way}, {n_steps} steps between averages",
                f"{sum(accuracy) / len(accuracy):.2f} ({', '.join(f'{a:.2f}' for a in accuracy)})",
                max(fit["peak_megabytes"] for fit in fits) if n_steps is None else "",
                "" if n_steps is None else fits[0]["averages"],
                "" if n_steps is None else f"{fits[0]['sent_kilobytes']:,}",
            ]
        )
    yield table(("rows", "test accuracy %, each seed", "peak memory, MB", "averages", "KB to a worker, each"), rows)


def learned_memory(records):
    keys = ("row_megabytes", "peak_megabytes", "accuracy")
    yield table(
        ("rows", "as float32, MB", "peak memory, MB", "accuracy %"),
        [[f"{r['rows']:,}", *(f"{r[key]:,}" for key in keys)] for r in records],
    )


PAGE = Page("dask.md", ("dask",), tables)

if __name__ == "__main__":
    PAGE.write()
