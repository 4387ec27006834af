"""Rows a second and peak memory of `partial_fit` over a stream that is never held in memory.

Batches are generated as they are needed: 50 features, and a label that is linear in each of 20 regions. Peak memory is
that of the whole process, generator included, and must not grow with the number of rows. A linear model trained by
scikit-learn's `SGDClassifier.partial_fit` on the same batches gives the scale.

    python benchmarks/bench_stream.py            5 million rows; writes benchmarks/results/stream.json
    python benchmarks/bench_stream.py --quick    300,000 rows
"""

import resource
import sys
from time import perf_counter

from common import arguments, show, write_document  # isort: skip; first: it sets the number of threads

from bench_dask import N_FEATURES, N_REGIONS, Stream
from setting import machine
from sklearn.linear_model import SGDClassifier

from svmosaic import LocallyLinearSVC

BATCH = 20_000


def peak_megabytes():
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)


def run(n_rows, stops):
    stream = Stream(0)
    Z, z = stream.rows(10**6, BATCH)
    ours = LocallyLinearSVC(N_REGIONS * 2, n_neighbors=4, C=1e-3, stream_length=n_rows, random_state=0)
    linear = SGDClassifier(alpha=1 / (1e-3 * n_rows), average=True, random_state=0)
    seconds = {"svmosaic": 0.0, "SGDClassifier": 0.0}
    records = []
    for number in range(n_rows // BATCH):
        X, y = stream.rows(number, BATCH)
        for name, model in (("svmosaic", ours), ("SGDClassifier", linear)):
            start = perf_counter()
            model.partial_fit(X, y, classes=[0, 1])
            seconds[name] += perf_counter() - start
        seen = (number + 1) * BATCH
        if seen in stops:
            records.append({
                "rows": seen, "rows_per_second": round(seen / seconds["svmosaic"]),
                "accuracy": round(ours.score(Z, z), 4), "peak_megabytes": round(peak_megabytes(), 1),
                "linear_rows_per_second": round(seen / seconds["SGDClassifier"]),
                "linear_accuracy": round(linear.score(Z, z), 4),
            })  # fmt: skip
            show(records[-1])
    return records


def main():
    options = arguments(__doc__)
    n_rows = 300_000 if options.quick else 5_000_000
    stops = {BATCH * max(1, round(share * n_rows / BATCH)) for share in (0.02, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)}
    records = run(n_rows, stops)
    settled = next(r for r in records if r["rows"] >= 0.1 * n_rows)
    growth = records[-1]["peak_megabytes"] - settled["peak_megabytes"]
    data = n_rows * N_FEATURES * 4 / 1e6
    print(
        f"peak memory grew by {growth:.1f} MB between {settled['rows']} and {n_rows} rows; the rows are {data:.0f} MB"
    )
    if growth > max(10.0, 0.02 * data):
        raise SystemExit("memory grows with the stream")
    summary = {"features": N_FEATURES, "batch": BATCH, "row_megabytes": data, "growth_megabytes": round(growth, 1)}
    write_document("stream", {"machine": machine(), **summary, "records": records}, options)


if __name__ == "__main__":
    main()
