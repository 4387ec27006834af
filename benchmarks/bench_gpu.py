"""Learned gates on an accelerator: seconds to train and to predict, compile time apart.

The learner itself, without the estimator; bench_devices.py has that, on covertype.

Needs NumPy and JAX, and the .npz file of MNIST in the folder SVMOSAIC_DATA; neither scikit-learn nor the
compiled core. Settings are fixed; nothing is chosen here.

    python benchmarks/bench_gpu.py                                # everything; writes benchmarks/results/gpu.json
    python benchmarks/bench_gpu.py --tasks MNIST scaling
    python benchmarks/bench_gpu.py --out folder                   # writes folder/gpu.json
    python benchmarks/bench_gpu.py --quick                        # small and synthetic, on any device; writes nothing
"""

import argparse
import json
import os
import platform
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "src"))  # the learner needs no more of the package than its files

from svmosaic.learner.jax_loop import JaxEngine, score_rows  # noqa: E402
from svmosaic.learner.schedule import one_cycle  # noqa: E402

SAMPLE, LLOYD_STEPS, SHARPNESS = 20_000, 10, 4.0


@dataclass(frozen=True)
class Task:
    """A set, and how to learn it."""

    tiles: int
    epochs: int
    batch: int
    components: int | None = 16
    neighbors: int = 8
    rate: float = 0.03
    decay: float = 0.01
    data: dict = field(default_factory=dict)


TASKS = {
    "MNIST": Task(100, 40, 256, components=None, neighbors=16, data={"name": "mnist"}),
    "ten million rows": Task(256, 2, 8192, data={"name": "synthetic", "rows": 10_000_000}),
}
SCALING = (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 50_000_000)
QUICK = {"quick": Task(16, 2, 256, components=4, data={"name": "synthetic", "rows": 4000})}


# ---- rows ------------------------------------------------------------------------------------------------------------


def rows_of(task):
    """Training and test rows, standardized; labels as positions of the classes."""
    name = task.data["name"]
    if name == "synthetic":
        X, y = synthetic(task.data["rows"] + 100_000)
        X, X_test, y, y_test = X[100_000:], X[:100_000], y[100_000:], y[:100_000]
    else:
        arrays = np.load(Path(os.environ["SVMOSAIC_DATA"]) / f"{name}.npz")
        X, y, X_test, y_test = (arrays[key] for key in ("X_train", "y_train", "X_test", "y_test"))
        X, X_test = X.astype(np.float32), X_test.astype(np.float32)
    classes = np.unique(y)
    y, y_test = np.searchsorted(classes, y), np.searchsorted(classes, y_test)
    if name == "mnist":  # pixels that are hardly ever inked are noise once they are standardized
        X, X_test = (5 * part / np.linalg.norm(part, axis=1, keepdims=True) for part in (X, X_test))
        return X, y, X_test, y_test
    mean, std = X.mean(axis=0), np.maximum(X.std(axis=0), 1e-12)
    X, X_test = (np.clip((part - mean) / std, -5, 5) for part in (X, X_test))
    return X, y, X_test, y_test


def synthetic(n_rows, n_features=50, seed=0):
    """Two classes by the signs of two products, with noise in the other features."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features), dtype=np.float32)
    return X, (X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] > 0).astype(int)


# ---- learning --------------------------------------------------------------------------------------------------------


def learner_of(task, X, n_classes, seed=0):
    """A learner at its start, as plain arrays: principal components, k-means in them, zero tiles."""
    rng = np.random.default_rng(seed)
    sample = X[np.sort(rng.choice(len(X), min(len(X), max(SAMPLE, 64 * task.tiles)), replace=False))]
    components = None
    if task.components is not None:
        centered = sample[:SAMPLE].astype(np.float64) - sample[:SAMPLE].mean(axis=0)
        components = np.linalg.eigh(centered.T @ centered)[1].T[::-1][: task.components]
    n_outputs = 1 if n_classes == 2 else n_classes
    z = sample if components is None else (sample @ components.T).astype(np.float32)
    anchors, distances = kmeans(z, task.tiles, task.neighbors, rng)

    def moving(value):
        stacked = np.zeros((3, *np.shape(value)), dtype=np.float32)
        stacked[0] = value
        return stacked

    projection = None
    if components is not None:
        projection = moving(np.hstack([components, np.zeros((len(components), 1))]))
    log_tau = np.log(SHARPNESS / np.median(distances))
    return SimpleNamespace(
        tiles=moving(np.zeros((task.tiles, n_outputs * (X.shape[1] + 1)))), anchors=moving(anchors),
        projection=projection, log_tau=moving(np.array([log_tau])).astype(np.float64), idle_since=np.zeros(task.tiles),
        clock=np.zeros(2), first_tile=[0, task.tiles], n_outputs=n_outputs, width=task.neighbors, loss="squared_hinge",
        loss_parameter=[], dropout=0.0, seed=seed, decay=task.decay, gate_rate=0.3, centered=lambda rows: rows,
    )  # fmt: skip


@jax.jit
def _lloyd(z, centers):
    close = z @ centers.T - 0.5 * jnp.sum(centers**2, axis=1)
    member = jax.nn.one_hot(jnp.argmax(close, axis=1), len(centers), dtype=z.dtype)
    counts = member.sum(axis=0)[:, None]
    return jnp.where(counts > 0, member.T @ z / jnp.maximum(counts, 1), centers), close


def kmeans(z, n_centers, n_neighbors, rng):
    """Centers after a few steps of Lloyd's, and squared distances of rows to the n-th nearest."""
    centers = jnp.asarray(z[rng.choice(len(z), n_centers, replace=False)])
    rows = jnp.asarray(z)
    for _ in range(LLOYD_STEPS):
        centers, _ = _lloyd(rows, centers)
    few = rows[:2000]
    _, close = _lloyd(few, centers)
    squared = jnp.sum(few**2, axis=1) - 2 * jax.lax.top_k(close, n_neighbors)[0][:, -1]
    return np.asarray(centers), np.maximum(np.asarray(squared), 1e-9)


def train(task, X, y, n_classes, device):
    """The trained engine, and seconds: to send the rows, to compile, and for all epochs."""
    plan = SimpleNamespace(batch_size=min(task.batch, len(y)), learn_gate=True)
    n_batches = -(-len(y) // plan.batch_size)
    weight = np.ones(len(y), dtype=np.float32)
    began = perf_counter()
    learner = learner_of(task, X, n_classes)
    start_seconds = perf_counter() - began
    began = perf_counter()
    engine = JaxEngine(learner, X, y[:, None], weight, plan, device)
    jax.block_until_ready(engine.rows)
    seconds = {"start": start_seconds, "transfer": perf_counter() - began}
    state, clock = jax.device_get(engine.state), learner.clock.copy()
    order = np.arange(len(y), dtype=np.int32)
    began = perf_counter()
    engine.epoch(order, np.full(n_batches, 1e-3))
    first = perf_counter() - began
    engine.state, learner.clock[:] = jax.device_put(state, device), clock
    rng = np.random.default_rng(0)
    began = perf_counter()
    for epoch in range(task.epochs):
        order = rng.permutation(len(y)).astype(np.int32)
        steps = slice(epoch * n_batches, (epoch + 1) * n_batches)
        engine.epoch(order, one_cycle(task.rate, task.epochs * n_batches, steps))
    seconds["train"] = perf_counter() - began
    seconds["compile"] = max(0.0, first - seconds["train"] / task.epochs)
    return engine, seconds


def accuracy_of(engine, X, y):
    scores = engine.scores(X)
    predicted = scores[:, 0] > 0 if scores.shape[1] == 1 else scores.argmax(axis=1)
    return round(100 * float(np.mean(predicted == y)), 2)


def measured(name, task, device):
    X, y, X_test, y_test = rows_of(task)
    engine, seconds = train(task, X, y, int(y.max()) + 1, device)
    record = {
        "task": name, "rows": len(y), "features": X.shape[1], "tiles": task.tiles, "epochs": task.epochs,
        "batch": task.batch, **{f"{part}_seconds": round(value, 3) for part, value in seconds.items()},
        "accuracy": accuracy_of(engine, X_test, y_test), "peak_gigabytes": peak(device),
    }  # fmt: skip
    if task.data["name"] == "synthetic":
        record |= predictions(engine, X, device)
    print(json.dumps(record), flush=True)
    return record


def predictions(engine, X, device):
    """Seconds to predict all rows: sent from the host, and when they are on the device already."""
    state, width = engine.state, engine.settings.width
    seconds = {}
    for where in ("host", "device"):
        rows = X if where == "host" else jax.device_put(X, device)
        for _ in range(2):  # the first compiles
            began = perf_counter()
            score_rows(state.value, state.valid, width, rows, device)
            seconds[f"predict_from_{where}_seconds"] = round(perf_counter() - began, 3)
    return seconds


def scaling(sizes, device, n_features=50):
    """Seconds per epoch by number of rows, made on the device."""
    for n_rows in sizes:
        task = Task(256, 2, 8192)
        key = jax.random.PRNGKey(0)
        X = jax.random.normal(key, (n_rows, n_features), dtype=jnp.float32)
        y = (X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] > 0).astype(jnp.float32)
        sample = np.asarray(X[:SAMPLE])
        learner = learner_of(task, sample, 2)
        plan = SimpleNamespace(batch_size=task.batch, learn_gate=True)
        engine = JaxEngine(learner, X, y[:, None], np.ones(n_rows, dtype=np.float32), plan, device)
        n_batches = -(-n_rows // task.batch)
        order = np.random.default_rng(0).permutation(n_rows).astype(np.int32)
        times = []
        for _ in range(3):
            began = perf_counter()
            engine.epoch(order, np.full(n_batches, 0.01))
            times.append(perf_counter() - began)
        record = {"task": "scaling", "rows": n_rows, "epoch_seconds": round(min(times[1:]), 4)}
        print(json.dumps(record), flush=True)
        yield record
        del X, y, engine


def peak(device):
    stats = device.memory_stats() or {}
    return round(stats["peak_bytes_in_use"] / 2**30, 2) if "peak_bytes_in_use" in stats else None


def machine(device):
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"), "device": device.device_kind, "cores": os.cpu_count(),
        "system": platform.system(), "python": platform.python_version(), "jax": jax.__version__,
        "numpy": np.__version__,
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small and synthetic; writes nothing")
    parser.add_argument("--tasks", nargs="*", choices=[*TASKS, "scaling"], help="only these")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder of gpu.json")
    options = parser.parse_args()
    device = jax.devices()[0]
    if options.quick:
        for name, task in QUICK.items():
            measured(name, task, device)
        list(scaling((20_000,), device))
        return
    path = options.out / "gpu.json"
    parts = json.loads(path.read_text()) if path.exists() else {}
    for name in options.tasks or [*TASKS, "scaling"]:
        records = list(scaling(SCALING, device)) if name == "scaling" else [measured(name, TASKS[name], device)]
        parts[name] = {"machine": machine(device), "records": records}
        path.write_text(json.dumps(parts, indent=1) + "\n")  # after each task, should the time run out


if __name__ == "__main__":
    main()
