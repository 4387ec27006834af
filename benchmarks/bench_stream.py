"""Rows a second and peak memory of `partial_fit` over a stream that is never held in memory.

Batches are generated as they are needed: 50 features, and a label that is linear in each of 20 regions. Peak memory is
that of the whole process, generator included, and must not grow with the number of rows. A linear model trained by
scikit-learn's `SGDClassifier.partial_fit` on the same batches gives the scale.

    python benchmarks/bench_stream.py            5 million rows; writes benchmarks/results/stream.json
    python benchmarks/bench_stream.py --quick    300,000 rows
"""

import argparse
import json
import resource
import sys
from pathlib import Path
from time import perf_counter

import numpy as np
from setting import machine
from sklearn.linear_model import SGDClassifier

from svmosaic import LocallyLinearSVC
from svmosaic.atomic import write_text

N_FEATURES, N_REGIONS, BATCH = 50, 20, 20_000
RESULTS = Path(__file__).parent / "results" / "stream.json"


class Stream:
    """Rows around 20 centers; near each, another hyperplane through it tells the classes apart. 5 % label noise."""

    def __init__(self, seed=0):
        rng = np.random.default_rng(seed)
        self.centers = rng.standard_normal((N_REGIONS, N_FEATURES), dtype=np.float32)
        self.normals = rng.standard_normal((N_REGIONS, N_FEATURES), dtype=np.float32)

    def batch(self, number, n_rows=BATCH):
        rng = np.random.default_rng([1, number])
        region = rng.integers(N_REGIONS, size=n_rows)
        offset = 0.7 * rng.standard_normal((n_rows, N_FEATURES), dtype=np.float32)
        y = np.einsum("ij,ij->i", offset, self.normals[region]) > 0
        return self.centers[region] + offset, (y ^ (rng.random(n_rows) < 0.05)).astype(int)


def peak_megabytes():
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)


def run(n_rows, stops):
    stream = Stream()
    Z, z = stream.batch(10**6)
    ours = LocallyLinearSVC(N_REGIONS * 2, n_neighbors=4, C=1e-3, stream_length=n_rows, random_state=0)
    linear = SGDClassifier(alpha=1 / (1e-3 * n_rows), average=True, random_state=0)
    seconds = {"svmosaic": 0.0, "SGDClassifier": 0.0}
    records = []
    print(f"{'rows':>10}{'rows/s':>10}{'accuracy':>10}{'peak MB':>9}   linear: {'rows/s':>10}{'accuracy':>10}")
    for number in range(n_rows // BATCH):
        X, y = stream.batch(number)
        for name, model in (("svmosaic", ours), ("SGDClassifier", linear)):
            start = perf_counter()
            model.partial_fit(X, y, classes=[0, 1])
            seconds[name] += perf_counter() - start
        seen = (number + 1) * BATCH
        if seen in stops:
            records.append(
                {
                    "rows": seen,
                    "rows_per_second": round(seen / seconds["svmosaic"]),
                    "accuracy": round(ours.score(Z, z), 4),
                    "peak_megabytes": round(peak_megabytes(), 1),
                    "linear_rows_per_second": round(seen / seconds["SGDClassifier"]),
                    "linear_accuracy": round(linear.score(Z, z), 4),
                }
            )
            r = records[-1]
            print(
                f"{r['rows']:>10}{r['rows_per_second']:>10}{r['accuracy']:>10.4f}{r['peak_megabytes']:>9.1f}"
                f"           {r['linear_rows_per_second']:>10}{r['linear_accuracy']:>10.4f}",
                flush=True,
            )
    return records


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="300,000 rows, nothing is written")
    quick = parser.parse_args().quick
    n_rows = 300_000 if quick else 5_000_000
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
    if not quick:
        summary = {
            "features": N_FEATURES,
            "batch": BATCH,
            "row_megabytes": data,
            "growth_megabytes": round(growth, 1),
        }
        RESULTS.parent.mkdir(exist_ok=True)
        write_text(RESULTS, json.dumps({"machine": machine(), **summary, "records": records}, indent=2) + "\n")


if __name__ == "__main__":
    main()
