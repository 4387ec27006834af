"""How long does each solver take to come within 1e-3 of the optimum of the same linear SVM?

Every solver climbs a ladder of its own (ours: `tol`; the peers: `max_iter`, since their tolerances mean something
else), each rung a fresh run in a child process. One scorer, the objective in float64, judges all weights; the optimum
is our solver's at tol=1e-8, with its certificate. Also measured: memory beyond X, growth of time with the number of
rows, a hundred times the C, and the clustered SVM beside scikit-learn's LinearSVC on MNIST odd/even.

    python benchmarks/bench_solver.py [--quick] [--sets NAME ...] [--parts NAME ...]

--quick runs on synthetic data; otherwise SVMOSAIC_DATA must name the data folder.
"""

import common  # isort: skip  (first: it limits the threads of what is imported next)

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import sklearn.svm
from rehline import ReHLine_solver
from setting import data_folder, load
from sklearn.datasets import make_classification

from svmosaic import ClusteredSVC, LinearSVC

NEAR = 1e-3
LOSSES = ("hinge", "squared_hinge")
DATA = ("usps", "ijcnn1", "mnist", "covtype")
PARTS = ("race", "clustered", "growth", "large_cost", "memory")
TOLS = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5)
ITERATIONS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100, 200, 500, 1000)


@dataclass(frozen=True)
class Task:
    """Rows, signs, and the same with a constant feature in float64 for the solver that needs it."""

    name: str
    X: np.ndarray
    y: np.ndarray

    def objective(self, weights, loss):
        """1/2 |w|^2 + sum_i loss(y_i <w, (x_i, 1)>) with C = 1, in float64; the bias is last and penalized."""
        value = 0.5 * weights @ weights
        for start in range(0, len(self.y), 8192):
            part = slice(start, start + 8192)
            margin = self.y[part] * (self.X[part].astype(np.float64) @ weights[:-1] + weights[-1])
            slack = np.maximum(0.0, 1.0 - margin)
            value += np.sum(slack * slack if loss == "squared_hinge" else slack)
        return float(value)


def weights_of(model):
    return np.append(model.coef_[0], model.intercept_[0])


def ours(task, loss, tol):
    return weights_of(LinearSVC(loss=loss, tol=tol, max_iter=100_000, random_state=0).fit(task.X, task.y))


def liblinear(task, loss, max_iter):
    return weights_of(
        sklearn.svm.LinearSVC(loss=loss, tol=1e-12, max_iter=max_iter, random_state=0).fit(task.X, task.y)
    )


def rehline(task, loss, max_iter):
    X = np.hstack([task.X, np.ones((len(task.y), 1))], dtype=np.float64)
    y = task.y.astype(np.float64)
    if loss == "hinge":
        answer = ReHLine_solver(X, -y[None], np.ones((1, len(y))), max_iter=max_iter, tol=1e-12, verbose=0)
    else:  # a squared hinge is a Huber-like ReHU without end, of curvature 2
        none, root = np.empty((0, 0)), math.sqrt(2.0)
        S, T = -root * y[None], np.full((1, len(y)), root)
        answer = ReHLine_solver(
            X, none, none, np.full((1, len(y)), np.inf), S, T, max_iter=max_iter, tol=1e-12, verbose=0
        )
    return np.asarray(answer.beta)


SOLVERS = {"svmosaic": (ours, TOLS), "liblinear": (liblinear, ITERATIONS), "rehline": (rehline, ITERATIONS)}


def part(task, begin, end):
    return Task(task.name, task.X[begin:end], task.y[begin:end])


def part_of(task, n):
    """A few rows of both classes, to warm up with."""
    few = np.r_[np.flatnonzero(task.y > 0)[: n // 2], np.flatnonzero(task.y < 0)[: n // 2]]
    return Task(task.name, task.X[few], task.y[few])


def climb(task, loss, solver, optimum, limit):
    """The rungs up to the first that comes near enough, or that takes longer than the limit."""
    function, ladder = SOLVERS[solver]
    few = part_of(task, 200)
    rungs = []
    for setting in ladder:
        run = common.run_child(
            lambda setting=setting: function(task, loss, setting),
            warm_up=lambda: function(few, loss, ladder[0]),
            limit=limit,
            repeats=3,
        )
        above = None if run.value is None else task.objective(run.value, loss) / optimum - 1.0
        rungs.append(
            {"task": task.name, "loss": loss, "solver": solver, "setting": setting, "seconds": round(run.seconds, 5),
             "suboptimality": above, "finished": above is not None, "reached": above is not None and above <= NEAR}
        )  # fmt: skip
        if rungs[-1]["reached"] or above is None:
            break
    return rungs


def race(task, loss, limit):
    """All ladders on one task."""
    best = common.run_child(lambda: ours(task, loss, 1e-8))
    optimum = task.objective(best.value, loss)
    records = []
    for solver in SOLVERS:
        records += climb(task, loss, solver, optimum, limit)
        common.show(records[-1])
    return records


def race_all(tasks, limit, write):
    """Both losses on every task, each task written as it is done."""
    for task in tasks:
        records = [record for loss in LOSSES for record in race(task, loss, limit)]
        write(f"race: {task.name}", records, {"limit_seconds": limit})
        yield from records


def race_summary(records):
    """Ratios of the peers' seconds to ours, at the last rung of every ladder."""
    last = {(r["task"], r["loss"], r["solver"]): r for r in records}
    common.print_records(f"Processor seconds to within {NEAR:g} of the optimum", list(last.values()))
    summary = {}
    for peer in ("liblinear", "rehline"):
        ends = {key[:2]: r for key, r in last.items() if key[2] == peer}
        ratios = np.array([r["seconds"] / last[*key, "svmosaic"]["seconds"] for key, r in ends.items()])
        summary[peer] = {
            "geometric_mean": round(float(np.exp(np.log(ratios).mean())), 2), "smallest": round(float(ratios.min()), 2),
            "lower_bounds": sum(not r["reached"] for r in ends.values()),
        }  # fmt: skip
    print(summary)
    return summary


def memory_all(tasks):
    """Peak memory of a fit beyond X, in units of X as float32; the peer's does not depend on its iterations."""
    records = []
    for task in tasks:
        for loss in LOSSES:
            models = {
                "svmosaic": LinearSVC(loss=loss, random_state=0),
                "scikit-learn": sklearn.svm.LinearSVC(loss=loss, max_iter=2, random_state=0),
            }
            shares = {name: peak_share(task, model) for name, model in models.items()}
            records.append({"task": task.name, "loss": loss, "memory_beyond_X": shares})
            common.show(records[-1])
    known = [r["memory_beyond_X"]["svmosaic"] for r in records if r["memory_beyond_X"]["svmosaic"] is not None]
    return records, {"largest_memory_beyond_X": max(known, default=None)}


def peak_share(task, model):
    few = part_of(task, 6_000)  # enough rows for the same solver, whose code is then in memory
    run = common.run_child(lambda: model.fit(task.X, task.y) and None, warm_up=lambda: model.fit(few.X, few.y))
    return None if run.peak_bytes is None else round(run.peak_bytes / (4 * task.X.size), 3)


def growth(task):
    """Fit seconds at n, 2n, 4n, 8n rows."""
    order = np.random.RandomState(0).permutation(len(task.y))
    sizes = [len(task.y) // 8 * k for k in (1, 2, 4, 8)]
    models = {
        "LinearSVC, hinge": lambda: LinearSVC(random_state=0),
        "LinearSVC, squared hinge": lambda: LinearSVC(loss="squared_hinge", random_state=0),
        "ClusteredSVC, hinge": lambda: ClusteredSVC(random_state=0),
    }
    records, steps = [], []
    for name, make in models.items():
        seconds = []
        for n in sizes:
            X, y = task.X[order[:n]], task.y[order[:n]]
            few = part_of(task, 200)
            run = common.run_child(
                lambda make=make, X=X, y=y: make().fit(X, y) and None,
                warm_up=lambda make=make, few=few: make().fit(few.X, few.y),
                repeats=3,
            )
            seconds.append(run.seconds)
            records.append({"task": task.name, "model": name, "rows": n, "fit_seconds": round(run.seconds, 4)})
        steps += [b / a for a, b in pairwise(seconds)]
    common.print_records("Growth", records)
    return records, {"largest_step_ratio": round(max(steps), 2)}


def large_cost(task, C=100.0, epochs=100):
    """A hundred times the C: seconds of the default solver to a gap of 1e-6, beside the gap descent is left with."""
    few, records = part_of(task, 200), []
    settings = {"auto": {"tol": 1e-6}, "dual": {"tol": 1e-6, "solver": "dual", "max_iter": epochs}}
    for loss in LOSSES:
        for solver, setting in settings.items():
            model = LinearSVC(C, loss=loss, random_state=0, **setting)
            run = common.run_child(
                lambda model=model: model.fit(task.X, task.y).dual_gap_[0],
                warm_up=lambda model=model: model.fit(few.X, few.y),
            )
            gap = float(run.value) / (C * len(task.y))
            about = {"task": task.name, "C": C, "loss": loss, "solver": solver}
            records.append(about | {"seconds": round(run.seconds, 3), "gap": gap})
            common.show(records[-1])
    return records, {}


def clustered(train, test, n_clusters=8):
    """ClusteredSVC with its defaults beside scikit-learn's LinearSVC: accuracy and seconds of the whole fit."""
    models = {
        "scikit-learn LinearSVC (defaults)": lambda: sklearn.svm.LinearSVC(random_state=0),
        "scikit-learn LinearSVC (hinge)": lambda: sklearn.svm.LinearSVC(loss="hinge", random_state=0),
        "svmosaic LinearSVC": lambda: LinearSVC(random_state=0),
        f"svmosaic ClusteredSVC, {n_clusters} cells": lambda: ClusteredSVC(n_clusters, random_state=0),
    }
    few = part_of(train, 200)
    records = []
    for name, make in models.items():
        run = common.run_child(
            lambda make=make: make().fit(train.X, train.y),
            warm_up=lambda make=make: make().fit(few.X, few.y),
            limit=600,
        )
        accuracy = None if run.value is None else round(float(run.value.score(test.X, test.y)), 4)
        records.append({"task": train.name, "model": name, "fit_seconds": round(run.seconds, 3), "accuracy": accuracy})
        common.show(records[-1])
    return records, {
        "csvm_accuracy": records[-1]["accuracy"],
        "csvm_seconds": records[-1]["fit_seconds"],
        "sklearn_linear_svc_seconds": records[0]["fit_seconds"],
    }


# ---- data -----------------------------------------------------------------------------------------


def unit_rows(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def standardized(X, like):
    spread = like.std(axis=0)
    return ((X - like.mean(axis=0)) / np.where(spread > 0, spread, 1.0)).astype(np.float32)


def signs(positive):
    return np.where(positive, 1, -1).astype(np.int8)


def odd_even(name):
    data = load(name)
    return (
        Task(f"{name} odd/even", unit_rows(data.X_train), signs(data.y_train % 2 == 1)),
        Task(f"{name} odd/even", unit_rows(data.X_test), signs(data.y_test % 2 == 1)),
    )


def real_tasks(only):
    """One at a time, so that no two large sets are held at once."""
    if "usps" in only:
        yield odd_even("usps")[0]
    if "ijcnn1" in only:
        data = load("ijcnn1")
        yield Task("ijcnn1", standardized(data.X_train, data.X_train), signs(data.y_train == 1))
    if "mnist" in only:
        yield odd_even("mnist")[0]
    if "covtype" in only:
        yield covertype()


def covertype():
    data = load("covtype", test_size=0)
    return Task("covtype 2 v rest", standardized(data.X_train, data.X_train), signs(data.y_train == 2))


def synthetic(n, d, seed=0):
    X, y = make_classification(n, d, n_informative=d // 2, flip_y=0.05, n_clusters_per_class=4, random_state=seed)
    return Task("synthetic", standardized(X, X), signs(y == 1))


def main():
    options = common.arguments(
        __doc__, sets=DATA, parts=PARTS, limit={"type": float, "default": 120.0, "help": "seconds a rung may take"}
    )
    if options.quick:
        task = synthetic(12_000, 24)
        race_summary(list(race_all([task], 2.0, write=lambda *_: None)))
        memory_all([synthetic(40_000, 60)])
        growth(task)
        large_cost(task)
        clustered(part(task, 0, 9_000), part(task, 9_000, 12_000))
        return
    if data_folder() is None:
        raise SystemExit("SVMOSAIC_DATA does not name the data folder; try --quick")

    def write(*result):
        common.write_results("solver", *result)

    if "race" in options.parts:
        list(race_all(real_tasks(options.sets), options.limit, write))
        parts = common.read_results("solver")
        raced = [record for name in parts if name.startswith("race: ") for record in parts[name]["records"]]
        write("race", [], race_summary(raced))
    if "clustered" in options.parts:
        write("clustered", *clustered(*odd_even("mnist")))
    if "growth" in options.parts:
        write("growth", *growth(covertype()))
    if "large_cost" in options.parts:
        write("large_cost", *large_cost(covertype()))
    if "memory" in options.parts:
        write("memory", *memory_all(real_tasks(options.sets)))


if __name__ == "__main__":
    main()
