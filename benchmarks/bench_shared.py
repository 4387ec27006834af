"""Do predictions from many threads add up, and do fits side by side keep to the cores?

Predictions: rows per second of 1, 2, 4 and 16 threads that share one model, through the estimator and through its
compiled predictor, in batches and row by row. The core lets go of the interpreter's lock while it scores a batch; one
row takes microseconds, less than handing the lock over and back would, and is scored under it.

Fits: several at once under joblib, in processes (loky) and in threads, each with n_jobs=None and n_jobs=2: processor
seconds by seconds on the wall, which should not exceed the cores, and the most threads that a process had more than
before.

    python benchmarks/bench_shared.py [--quick]
"""

import os
import threading
from time import perf_counter, process_time

from common import arguments, machine, print_records, write_results  # before NumPy: it gives every library one thread

# isort: split
import numpy as np
from joblib import Parallel, delayed
from sklearn.datasets import make_classification

from svmosaic import ClusteredSVC, LinearSVC, LocallyLinearSVC

THREADS = (1, 2, 4, 16)
BATCH, LARGE_BATCH = 500, 10_000


def main():
    options = arguments(__doc__)
    quick = options.quick
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    predictions = measure_predictions(1000 if quick else 20_000, 0.03 if quick else 3.0)
    fits = measure_fits(1000 if quick else 40_000, 4 if quick else 8)
    summary = {"cores": cores, "processor": machine()}
    write_results("shared", "predictions", predictions, summary, options)
    write_results("shared", "fits", fits, summary, options)


def rows_of(n):
    X, y = make_classification(n, 30, n_informative=10, n_classes=4, random_state=0)
    return X, y


def measure_predictions(n, seconds):
    """Rows a second of several threads, each over batches of its own, for some seconds on the wall."""
    X, y = rows_of(n)
    records = []
    for model in (
        LinearSVC(random_state=0),
        ClusteredSVC(16, random_state=0),
        LocallyLinearSVC(100, C=10.0, tol=1e-2, random_state=0),
    ):
        model.fit(X, y)
        predictor = model.predictor()
        wanted = model.predict(X)
        ways = [
            (f"estimator, {BATCH} rows at once", BATCH, model.predict),
            (f"estimator, {LARGE_BATCH:,} rows at once", min(LARGE_BATCH, n), model.predict),
            (f"predictor, {BATCH} rows at once", BATCH, predictor.predict),
            ("predictor, row by row", BATCH, lambda rows, one=predictor.predict: [one(row) for row in rows]),
        ]
        for way, batch, predict in ways:
            base = None
            for n_threads in THREADS:
                speed, cpu = throughput(predict, X, wanted, batch, n_threads, seconds, way)
                base = base or speed
                records.append({"model": type(model).__name__, "way": way, "threads": n_threads,
                                "rows_a_second": round(speed), "speedup": round(speed / base, 2),
                                "processor_by_wall": round(cpu, 2)})  # fmt: skip
    columns = ["model", "way", "threads", "rows_a_second", "speedup", "processor_by_wall"]
    print_records("Predictions of threads that share a model", records, columns)
    return records


def throughput(predict, X, wanted, batch, n_threads, seconds, way):
    """Rows a second, and processor seconds per second, of `n_threads`; answers are compared with a single thread's."""
    rows, wrong = [0] * n_threads, []
    barrier = threading.Barrier(n_threads + 1)
    starts = range(0, len(X) - batch + 1, batch)

    def work(thread):
        barrier.wait()
        step = thread
        while perf_counter() < deadline[0]:
            at = starts[step % len(starts)]
            if not np.array_equal(predict(X[at : at + batch]), wanted[at : at + batch]):
                wrong.append(at)
            rows[thread] += batch
            step += 1

    deadline = [np.inf]
    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(n_threads)]
    for thread in threads:
        thread.start()
    began, cpu = perf_counter(), process_time()
    deadline[0] = began + seconds
    barrier.wait()
    for thread in threads:
        thread.join()
    wall = perf_counter() - began
    if wrong:
        raise SystemExit(f"{way} with {n_threads} threads: wrong answers for the batches at {sorted(set(wrong))}")
    return sum(rows) / wall, (process_time() - cpu) / wall


def threads_alive():
    return len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else threading.active_count()


def fit_once(seed, n, n_jobs, before=None):
    """Processor seconds of a fit with its process, and the most threads that this had meanwhile beside `before`.

    Those that joblib starts count, and the one that counts does not.
    """
    X, y = rows_of(n)
    before = threads_alive() if before is None else before
    most, done = [0], threading.Event()

    def count():
        while not done.wait(0.002):
            most[0] = max(most[0], threads_alive())

    watcher = threading.Thread(target=count)
    watcher.start()
    began = process_time()
    try:
        ClusteredSVC(8, C=0.01, solver="dual", n_jobs=n_jobs, random_state=seed).fit(X, y)
    finally:
        done.set()
        watcher.join()
    return os.getpid(), process_time() - began, max(0, most[0] - before - 1)


def measure_fits(n, count):
    """Fits under joblib: how much of the processors they take, and how many threads they start."""
    records = []
    for backend in ("loky", "threading"):
        for n_jobs in (None, 2):
            # The workers are there, and have imported the library, before the clock starts.
            Parallel(n_jobs=2, backend=backend)(delayed(fit_once)(seed, 200, n_jobs) for seed in range(4))
            before = threads_alive() if backend == "threading" else None
            began, own = perf_counter(), process_time()
            found = Parallel(n_jobs=2, backend=backend)(
                delayed(fit_once)(seed, n, n_jobs, before) for seed in range(count)
            )
            wall = perf_counter() - began
            # Threads of one process share its clock.
            cpu = sum(seconds for _, seconds, _ in found) if backend == "loky" else process_time() - own
            records.append({"backend": backend, "n_jobs_of_a_fit": n_jobs, "workers": 2, "fits": count,
                            "seconds": round(wall, 3), "processor_by_wall": round(cpu / wall, 2),
                            "processes": len({pid for pid, *_ in found}),
                            "threads_more": max(threads for *_, threads in found)})  # fmt: skip
    columns = ["backend", "n_jobs_of_a_fit", "seconds", "processor_by_wall", "processes", "threads_more"]
    print_records("Fits side by side under joblib, two workers", records, columns)
    return records


if __name__ == "__main__":
    main()
