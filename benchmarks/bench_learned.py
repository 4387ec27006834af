"""LearnedGateSVC beside a tuned RBF SVC, LocallyLinearSVC and LightGBM; and learned against fixed regions by tiles.

Features are standardized by the training part (MNIST has rows of one norm instead); all choices (C and gamma of the
SVC) are made on a part held out from it.
Times are processor seconds of one thread. Records of a set replace those of its last run, the others stay.

    python benchmarks/bench_learned.py                           # all sets, then all curves; needs the data folder
    python benchmarks/bench_learned.py --sets letter mnist       # some sets
    python benchmarks/bench_learned.py --curves satimage         # some curves
    python benchmarks/bench_learned.py --sets covtype --without "RBF SVC, tuned" LightGBM
    python benchmarks/bench_learned.py --quick                   # digits only, under a minute; writes nothing
    python benchmarks/learned_page.py                            # puts what is stored into docs/learned_gates.md
"""

import argparse
from dataclasses import dataclass, field, replace
from functools import partial
from time import process_time

import numpy as np
from common import gradient_boosting, print_table, read_results, run_child, write_results  # first: sets the threads
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize
from sklearn.svm import SVC

from svmosaic import LearnedGateSVC, LocallyLinearSVC
from svmosaic.datasets import Dataset, load

# Rows that an RBF SVC is trained on, and tuned on, at most: it would not finish in ten minutes on more.
SVC_ROWS, TUNING_ROWS = 20_000, 3000
GRID = {"C": (1.0, 10.0, 100.0), "gamma": (0.25, 1.0, 4.0)}  # gamma as a multiple of scikit-learn's "scale"
# Rows whose prediction is timed, for models that need more than a few microseconds per row.
TIMED_ROWS = 2000
# Seconds on the wall that the solver of fixed regions may take; records tell what gap it had reached by then.
FIXED_SECONDS = 100
BIG = "LightGBM, 500 trees, 127 leaves"


@dataclass(frozen=True)
class Task:
    """A set, the numbers of tiles it is fitted with, and how many seeds."""

    tiles: tuple[int, ...]
    seeds: int = 3
    polished: bool = True
    max_rows: int | None = None
    settings: dict = field(default_factory=dict)  # of LearnedGateSVC, where they are not its defaults


TASKS = {
    "ijcnn1": Task((32,)),
    "letter": Task((100,)),
    "satimage": Task((50,)),
    # Chosen on the part that polishing holds out, among five settings with 16, 64 or no components and C from 1 to 4.
    "mnist": Task((100,), seeds=1, settings={"n_components": None, "n_neighbors": 16, "C": 4.0}),
    "covtype": Task((400, 1000), seeds=1, polished=False),
}
CURVES = {
    "ijcnn1": Task((4, 8, 16, 32, 64, 128), seeds=1),
    "letter": Task((13, 25, 50, 100, 200, 400), seeds=1),
    "satimage": Task((6, 12, 25, 50, 100), seeds=3),
    "covtype": Task((25, 50, 100, 200, 400), seeds=1, max_rows=60_000),
}


def digits():
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
    return Dataset(X, y, X_test, y_test)


def prepared(name, max_rows=None):
    data = digits() if name == "digits" else load(name)
    if name == "covtype":  # class 2 against the others, as in the papers
        data = replace(data, y_train=(data.y_train == 2).astype(int), y_test=(data.y_test == 2).astype(int))
    if max_rows is not None:  # they are shuffled
        data = replace(data, X_train=data.X_train[:max_rows], y_train=data.y_train[:max_rows])
    if name == "mnist":  # pixels that are hardly ever inked are noise once they are standardized
        train, test = (5 * normalize(X.astype(np.float32)) for X in (data.X_train, data.X_test))
        return Dataset(train, data.y_train, test, data.y_test)
    mean, std = data.X_train.mean(axis=0), np.maximum(data.X_train.std(axis=0), 1e-12)
    train, test = (((X - mean) / std).astype(np.float32) for X in (data.X_train, data.X_test))
    return Dataset(train, data.y_train, test, data.y_test)


def tuned_svc(data, seed=0):
    """C and gamma by a part held out from a sample of the training rows."""
    rng = np.random.RandomState(seed)
    rows = rng.permutation(len(data.y_train))[: TUNING_ROWS * 2]
    X, X_held, y, y_held = train_test_split(data.X_train[rows], data.y_train[rows], test_size=0.5, random_state=seed)
    scale = 1 / (X.shape[1] * X.var())
    settings = [{"C": C, "gamma": g * scale} for C in GRID["C"] for g in GRID["gamma"]]
    return SVC(**max(settings, key=lambda s: SVC(**s).fit(X, y).score(X_held, y_held)))


def fixed_regions(n_anchors, seed=0):
    return LocallyLinearSVC(n_anchors, loss="squared_hinge", max_time=FIXED_SECONDS, random_state=seed)


def models_of(task, name):
    """(name, tiles, seed, make, most rows) of all that a set is fitted with."""
    kinds = {"learnt": {}, "learnt, polished": {"polish": True}}
    if not task.polished:
        del kinds["learnt, polished"]
    for K in task.tiles:
        for seed in range(task.seeds):
            for kind, settings in kinds.items():
                yield kind, K, seed, partial(LearnedGateSVC, K, random_state=seed, **task.settings, **settings), None
        yield "fixed", K, 0, partial(fixed_regions, K), None
    yield "LightGBM", None, 0, gradient_boosting, None
    if name == "covtype":
        yield BIG, None, 0, lambda: gradient_boosting(n_estimators=500, num_leaves=127), None
    yield "RBF SVC, tuned", None, 0, None, SVC_ROWS


def seconds_of(function, argument):
    start = process_time()
    function(argument)
    return process_time() - start


def measured(data, make, most_rows=None):
    """Fit in a child process; predict here."""
    X, y = data.X_train[:most_rows], data.y_train[:most_rows]
    if most_rows is not None and len(data.y_train) > most_rows:
        rows = np.random.RandomState(0).permutation(len(data.y_train))[:most_rows]
        X, y = data.X_train[rows], data.y_train[rows]
    estimator = tuned_svc(data) if make is None else make()
    run = run_child(lambda: estimator.fit(X, y))
    model = run.value
    predict = model.predictor().predict if hasattr(model, "predictor") else model.predict
    predict(data.X_test[:100])
    few = data.X_test[:TIMED_ROWS]
    cost = min(seconds_of(predict, few) for _ in range(5)) / len(few)
    record = {
        "accuracy": round(100 * float(np.mean(predict(data.X_test) == data.y_test)), 2),
        "fit_seconds": round(run.seconds, 2), "row_microseconds": round(1e6 * cost, 2), "train_rows": len(y),
        "peak_megabytes": None if run.peak_bytes is None else round(run.peak_bytes / 1e6),
    }  # fmt: skip
    if getattr(model, "polish", False):
        record["kept_polished"] = bool(model.polished_)
    if isinstance(model, LocallyLinearSVC):
        record["relative_gap"] = float(f"{max(model.dual_gap_) / (model.C * len(y)):.2g}")
    return record


def compare(name, task, without=()):
    """One record for each model of a set."""
    data = prepared(name)
    for kind, tiles, seed, make, most_rows in models_of(task, name):
        if kind in without:
            continue
        record = {"set": name, "model": kind, "tiles": tiles, "seed": seed} | measured(data, make, most_rows)
        print(f"{name}: {kind}, {tiles} tiles, seed {seed}: {record['accuracy']} %", flush=True)
        yield record


def curve(name, task):
    """Learned against fixed regions, by the number of tiles."""
    data = prepared(name, task.max_rows)
    for K in task.tiles:
        for seed in range(task.seeds):
            for kind, make in {
                "learnt": lambda K=K, seed=seed: LearnedGateSVC(K, random_state=seed),
                "fixed": lambda K=K, seed=seed: fixed_regions(K, seed),
            }.items():
                yield {"set": name, "model": kind, "tiles": K, "seed": seed} | measured(data, make)


def summary_of(records):
    """Mean accuracy of each model and number of tiles over its seeds."""
    groups = {}
    for r in records:
        groups.setdefault(f"{r['model']}, {r['tiles']} tiles" if r["tiles"] else r["model"], []).append(r["accuracy"])
    return {"mean_accuracy": {key: round(float(np.mean(values)), 2) for key, values in groups.items()}}


def report(title, records):
    columns = ["model", "tiles", "seed", "accuracy", "fit_seconds", "row_microseconds", "train_rows", "peak_megabytes"]
    print_table(title, columns, [[str(r[c]) for c in columns] for r in records])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="digits only; writes nothing")
    parser.add_argument("--sets", nargs="*", choices=TASKS, help="compare on these sets")
    parser.add_argument("--curves", nargs="*", choices=CURVES, help="draw the curves of these sets")
    parser.add_argument("--without", nargs="*", default=[], help="models to leave out, by their names in the table")
    options = parser.parse_args()
    if options.quick:
        report("digits", list(compare("digits", Task((20,), seeds=1))))
        report("digits, curve", list(curve("digits", Task((5, 20), seeds=1))))
        return
    everything = options.sets is None and options.curves is None
    for name in TASKS if everything else options.sets or ():
        records = list(compare(name, TASKS[name], options.without))
        report(name, records)
        kept = [] if not options.without else stored(name, [r["model"] for r in records])
        write_results("learned", name, records + kept, summary_of(records + kept))
    for name in CURVES if everything else options.curves or ():
        records = list(curve(name, CURVES[name]))
        report(f"{name}, curve", records)
        write_results("learned", f"{name} curve", records, summary_of(records))


def stored(name, models):
    """Records of an earlier run, of models that were left out of this one."""
    return [r for r in read_results("learned").get(name, {"records": []})["records"] if r["model"] not in models]


if __name__ == "__main__":
    main()
