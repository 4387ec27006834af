"""What more threads buy: fits and batch predictions on covertype, the same bits, peak memory, and a roofline.

Fits: seconds on the wall of each estimator with each number of threads, in a child process of its own, with a digest of
the fitted scores, which must not depend on the threads. LightGBM (100 trees of 63 leaves) stands beside them if it is
installed. Predictions: rows a second of a compiled predictor in batches of several sizes. Roofline: what the scorer
achieves in multiply-adds and bytes a second beside what the machine gives to a matrix product and to a plain sweep.

Results are written after each configuration. What does not end within `--limit` seconds is noted as such, and once
`--budget` seconds have gone by nothing more is started.

    python benchmarks/bench_threads.py [--threads 1,4,16] [--rows 200000] [--fits-of MODEL ...] [--out FILE] [--quick]
"""

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import perf_counter

# Before NumPy: it gives every library one thread.
from common import arguments, gradient_boosting, print_records, run_child, show, write_results

# isort: split
import numpy as np
from setting import load
from sklearn.datasets import make_classification

from svmosaic import ClusteredSVC, KMeansSVC, LearnedGateSVC, LinearSVC, LocallyLinearSVC

BATCHES = (500, 10_000, 100_000)
HELD_OUT = 20_000
FLOAT = 4  # bytes of a feature


def estimators(scale):
    """Name, estimator, and how many rows at most, for the fits; `scale` divides the number of tiles."""
    return (
        ("LinearSVC", LinearSVC(random_state=0), None),
        ("ClusteredSVC, 64 cells", ClusteredSVC(64 // scale, random_state=0), None),
        ("LearnedGateSVC, 400 tiles, 4 epochs", LearnedGateSVC(400 // scale, max_iter=4, random_state=0), None),
        ("LocallyLinearSVC, 50 anchors", LocallyLinearSVC(50 // scale, random_state=0), 50_000),
    )


def scorers(scale):
    """Models to predict with, fitted to few rows: what a prediction costs does not depend on how good it is."""
    return (
        ("LinearSVC", LinearSVC(tol=1e-2, random_state=0)),
        ("KMeansSVC, 128 cells", KMeansSVC(128 // scale, tol=1e-2, random_state=0)),
        ("LocallyLinearSVC, 100 anchors", LocallyLinearSVC(100 // scale, tol=0.1, max_iter=5, random_state=0)),
        ("LearnedGateSVC, 400 tiles", LearnedGateSVC(400 // scale, max_iter=1, random_state=0)),
    )


def main():
    options = arguments(
        __doc__,
        out=True,
        threads={"help": "numbers of threads, such as 1,4,16; powers of two up to the cores if not given"},
        rows={"type": int, "default": 200_000, "help": "training rows"},
        limit={"type": float, "default": 90.0, "help": "seconds for one fit"},
        budget={"type": float, "default": 480.0, "help": "seconds for all"},
        fits_of={"nargs": "+", "metavar": "MODEL", "help": "only fits, of these, such as LinearSVC LightGBM"},
    )
    bench = Bench(options)
    for part in (bench.fits,) if options.fits_of else (bench.predictions, bench.roofline, bench.fits):
        part()


class Bench:
    """Data, and the records so far."""

    def __init__(self, options):
        self.options, self.quick = options, options.quick
        self.began = perf_counter()
        self.threads = counts_of(options.threads)
        self.X, self.y, self.X_test, self.y_test = small_rows() if self.quick else covertype(options.rows)
        self.scale = 8 if self.quick else 1
        self.models, self.records = {}, {}

    @property
    def in_order(self):
        """Most threads first, then one: what a run that is cut short needs most."""
        most, least = max(self.threads), min(self.threads)
        return list(dict.fromkeys([most, least, *sorted(self.threads)]))

    @property
    def is_over(self):
        return perf_counter() - self.began > self.options.budget

    def add(self, part, record):
        """Keep a record and write all of its part."""
        self.records.setdefault(part, []).append(record)
        show(record)
        summary = {"rows": len(self.X), "features": self.X.shape[1], "classes": len(np.unique(self.y)),
                   "test_rows": len(self.X_test), "limit_seconds": self.options.limit}  # fmt: skip
        write_results("threads", part, self.records[part], summary, self.options)

    def fits(self):
        """Seconds, memory, accuracy and a digest of each fit; the digests of an estimator must agree."""
        for name, estimator, most_rows in estimators(self.scale):
            if not self.is_asked_for(name):
                continue
            X, y = self.X[:most_rows], self.y[:most_rows]
            for n_threads in self.in_order:
                if not self.is_over:
                    estimator.set_params(n_jobs=n_threads)
                    self.add("fits", {"model": name, "threads": n_threads, "rows": len(X), **self.fit(estimator, X, y)})
        for n_threads in self.in_order[:2] if self.is_asked_for("LightGBM") else ():
            if not self.is_over:
                trees = {"n_estimators": 5 if self.quick else 100, "num_leaves": 63, "random_state": 0}
                record = self.fit(gradient_boosting(n_jobs=n_threads, **trees), self.X, self.y)
                about = {"model": "LightGBM, 100 trees of 63 leaves", "threads": n_threads, "rows": len(self.X)}
                self.add("fits", about | record)
        different = [name for name, *_ in estimators(1) if len(self.digests(name)) > 1]
        print_records("Fits", self.records["fits"], ["model", "threads", "seconds"])
        if different:
            raise SystemExit(f"other bits with other numbers of threads: {different}")

    def is_asked_for(self, name):
        return not self.options.fits_of or name.split(",")[0] in self.options.fits_of

    def digests(self, name):
        return {r["digest"] for r in self.records["fits"] if r["model"] == name and r["digest"] is not None}

    def fit(self, estimator, X, y):
        def work():
            began = perf_counter()
            estimator.fit(X, y)
            seconds = perf_counter() - began
            accuracy = estimator.score(self.X_test, self.y_test)
            scores = getattr(estimator, "decision_function", getattr(estimator, "predict_proba", None))(
                self.X_test[:2000]
            )
            return seconds, accuracy, hashlib.sha256(np.ascontiguousarray(scores).tobytes()).hexdigest()[:16]

        left = self.options.budget - (perf_counter() - self.began)
        run = run_child(work, limit=min(self.options.limit, max(1.0, left)))
        if run.value is None:
            return {"seconds": None, "processor_seconds": None, "accuracy": None, "peak_mb": None, "digest": None}
        seconds, accuracy, digest = run.value
        peak = None if run.peak_bytes is None else round(run.peak_bytes / 2**20)
        return {"seconds": round(seconds, 3), "processor_seconds": round(run.seconds, 2),
                "accuracy": round(100 * accuracy, 2), "peak_mb": peak, "digest": digest}  # fmt: skip

    def predictions(self):
        """Rows a second of a predictor in batches of several sizes."""
        n_fit = min(10_000, len(self.X))
        for name, estimator in scorers(self.scale):
            estimator.set_params(n_jobs=max(self.threads))
            self.models[name] = estimator.fit(self.X[:n_fit], self.y[:n_fit])
            predictor = estimator.predictor()
            for batch in sorted({min(batch, len(self.X)) for batch in BATCHES}):
                rows = self.X[:batch]
                for n_threads in sorted(self.threads):
                    seconds = best_of(partial(predictor.decision_function, rows, n_threads), self.quick)
                    self.add("predictions", {"model": name, "batch": len(rows), "threads": n_threads,
                                             "rows_a_second": round(len(rows) / seconds)})  # fmt: skip

    def roofline(self):
        """Multiply-adds and bytes a second: of the machine, then of the scorer in its largest batches."""
        for n_threads in sorted(self.threads):
            self.add("roofline", {"what": "machine", "threads": n_threads,
                                  "gflops": round(product_speed(n_threads, self.quick), 1),
                                  "gigabytes_a_second": round(sweep_speed(n_threads, self.quick), 1)})  # fmt: skip
        most = max(r["batch"] for r in self.records["predictions"])
        for r in self.records["predictions"]:
            if r["batch"] == most:
                flops, n_bytes = work_of(self.models[r["model"]])
                self.add("roofline", {"what": r["model"], "threads": r["threads"],
                                      "gflops": round(r["rows_a_second"] * flops / 1e9, 2),
                                      "gigabytes_a_second": round(r["rows_a_second"] * n_bytes / 1e9, 2)})  # fmt: skip


def counts_of(text):
    if text:
        return sorted({int(word) for word in text.split(",")})
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return [2**k for k in range(cores.bit_length()) if 2**k <= cores]


def covertype(n_rows):
    """Training and test rows of covertype, seven classes, standardized, in float32."""
    data = load("covtype", download=False)
    order = np.random.default_rng(0).permutation(len(data.X_train))[:n_rows]
    mean, spread = data.X_train.mean(axis=0), data.X_train.std(axis=0)
    spread[spread == 0] = 1.0
    X, X_test = (((X - mean) / spread).astype(np.float32) for X in (data.X_train[order], data.X_test[:HELD_OUT]))
    return X, data.y_train[order], X_test, data.y_test[:HELD_OUT]


def small_rows():
    X, y = make_classification(3000, 20, n_informative=8, n_classes=3, random_state=0)
    X = X.astype(np.float32)
    return X[:2000], y[:2000], X[2000:], y[2000:]


def best_of(work, quick):
    """Seconds of the fastest of some calls, of about a second in all."""
    times, end = [], perf_counter() + (0.02 if quick else 0.6)
    while len(times) < 2 or perf_counter() < end:
        began = perf_counter()
        work()
        times.append(perf_counter() - began)
    return min(times)


def on_threads(work, n_threads, quick):
    """Seconds of the fastest round of `work(t)` on so many threads at once."""
    with ThreadPoolExecutor(n_threads) as pool:
        return best_of(lambda: list(pool.map(work, range(n_threads))), quick)


def product_speed(n_threads, quick):
    """Billions of floating-point operations a second of float32 matrix products, one of BLAS's on each thread."""
    n = 128 if quick else 1024
    a = [np.ones((n, n), np.float32) for _ in range(2 * n_threads)]
    seconds = on_threads(lambda t: np.dot(a[t], a[t + n_threads]), n_threads, quick)
    return 2e-9 * n**3 * n_threads / seconds


def sweep_speed(n_threads, quick):
    """Billions of bytes a second of a triad, a = b + 3 c, over arrays much larger than the caches."""
    n = 10_000 if quick else 4_000_000
    arrays = [[np.ones(n) for _ in range(3)] for _ in range(n_threads)]

    def work(t):
        a, b, c = arrays[t]
        np.multiply(c, 3.0, out=a)  # reads one array and writes one
        np.add(a, b, out=a)  # reads two and writes one

    return 5 * 8e-9 * n * n_threads / on_threads(work, n_threads, quick)


def work_of(model):
    """Floating-point operations, and bytes read and written, of a row: the gate, its tiles, the row, its scores."""
    mosaic = model.mosaic_
    n_outputs, d = mosaic.coef.shape[1:]
    parts = [getattr(mosaic.gate, name, None) for name in ("projection", "anchors")]
    gate = sum(part.size for part in parts if part is not None)
    return 2 * (gate + getattr(mosaic.gate, "width", 1) * n_outputs * d), FLOAT * d + 8 * n_outputs


if __name__ == "__main__":
    main()
