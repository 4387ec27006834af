"""LearnedGateSVC on covertype, with curves, by an accelerator and by all cores of one machine.

Fits the estimator itself, as a user would: standardized rows, a tenth of them for testing, settings fixed beforehand.
Every fit on the accelerator is made twice, so that the time to compile stands apart. Seconds are on the clock; those of
the epochs alone are given too. Writes after each fit.

    SVMOSAIC_DATA=/path/to/data python benchmarks/bench_devices.py                 writes results/devices.json
    SVMOSAIC_DATA=/path/to/data python benchmarks/bench_devices.py --out folder    writes folder/devices.json
    python benchmarks/bench_devices.py --quick                                     small, on the CPU; writes nothing
"""

import argparse
import json
import os
import warnings
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from setting import load, machine
from sklearn.datasets import make_classification
from sklearn.preprocessing import StandardScaler

from svmosaic import LearnedGateSVC
from svmosaic.atomic import write_text
from svmosaic.estimators import learned_gate

HERE = Path(__file__).parent
SHARED = {"n_tiles": 1000, "early_stopping": False, "random_state": 0}
RUNS = [
    ("class 2", "gpu", {"pieces": 12, "max_iter": 40, "batch_size": 4096}),
    ("seven classes", "gpu", {"pieces": 12, "max_iter": 40, "batch_size": 1024}),
    ("class 2", "cpu", {"pieces": None, "max_iter": 40}),
    ("class 2", "cpu", {"pieces": 12, "max_iter": 40}),
    ("seven classes", "cpu", {"pieces": None, "max_iter": 40}),
    ("seven classes", "cpu", {"pieces": 12, "max_iter": 40}),
]


def covertype(task):
    """Training and test rows, standardized."""
    data = load("covtype")
    scaler = StandardScaler().fit(data.X_train)
    X, Z = (scaler.transform(part).astype(np.float32) for part in (data.X_train, data.X_test))
    y, z = data.y_train, data.y_test
    return (X, y == 2, Z, z == 2) if task == "class 2" else (X, y, Z, z)


def fitted(settings, device, n_jobs, X, y):
    """A model, and its seconds: on the clock, of the processors, and on the clock for the epochs alone."""
    learn, epochs = learned_gate.learn, []

    def timed(*arguments, **options):
        began = perf_counter()
        trace = learn(*arguments, **options)
        epochs.append(perf_counter() - began)
        return trace

    learned_gate.learn = timed
    try:
        began, processor = perf_counter(), process_time()
        model = LearnedGateSVC(**SHARED | settings, device=device, n_jobs=n_jobs).fit(X, y)
        seconds = perf_counter() - began
    finally:
        learned_gate.learn = learn
    times = {"fit_seconds": seconds, "epochs_seconds": sum(epochs), "processor_seconds": process_time() - processor}
    return model, {name: round(value, 2) for name, value in times.items()}


def measured(task, device, settings, data, n_jobs):
    X, y, Z, z = data
    first = None
    if device == "gpu":
        _, first = fitted(settings, device, n_jobs, X, y)
    model, seconds = fitted(settings, device, n_jobs, X, y)
    record = {"task": task, "device": device, "threads": n_jobs, **SHARED, **settings, "rows": len(y), **seconds}
    if first is not None:
        record["compile_seconds"] = round(max(0.0, first["epochs_seconds"] - seconds["epochs_seconds"]), 2)
    model.predict(Z)
    began = perf_counter()
    answers = model.predict(Z)
    record["predict_seconds"] = round(perf_counter() - began, 3)
    record["accuracy"] = round(100 * float(np.mean(answers == z)), 2)
    print(json.dumps(record), flush=True)
    return record


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small, on the CPU; writes nothing")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder of devices.json")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    n_jobs = os.cpu_count()
    if options.quick:
        X, y = make_classification(2000, 8, random_state=0)
        small = {"pieces": 4, "max_iter": 2, "n_tiles": 8}
        measured("quick", "cpu", small, (X[:1500], y[:1500], X[1500:], y[1500:]), n_jobs)
        return
    records, data = [], {}
    for task, device, settings in RUNS:
        data = data if task in data else {task: covertype(task)}
        records.append(measured(task, device, settings, data[task], n_jobs))
        parts = {"machine": machine() | {"accelerator": accelerator()}, "records": records}
        write_text(options.out / "devices.json", json.dumps(parts, indent=1) + "\n")


def accelerator():
    import jax

    return jax.devices()[0].device_kind


if __name__ == "__main__":
    main()
