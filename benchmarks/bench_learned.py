"""LearnedGateSVC compared with a tuned RBF SVC, LocallyLinearSVC and LightGBM; and with fixed regions, by tiles.

Features are standardized by the training part (MNIST has rows of one norm instead); all choices (C and gamma of the
SVC) are made on a part held out from it. Times are processor seconds of one thread.
Every run is written as soon as it is done, in place of the same run of an earlier day; the others stay.

    python benchmarks/bench_learned.py                           # all sets, then all curves; needs the data folder
    python benchmarks/bench_learned.py --resume                  # the same, without the runs that are stored
    python benchmarks/bench_learned.py --only letter mnist       # some sets
    python benchmarks/bench_learned.py --curves satimage         # some curves
    python benchmarks/bench_learned.py --only covtype --models "learned, curves"
    python benchmarks/bench_learned.py --quick                   # digits only, under a minute; writes nothing
    python benchmarks/pages.py learned_gates                     # puts what is stored into docs/learned_gates.md
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from time import process_time

import numpy as np
from auto_data import digits_split

# Before NumPy: it gives every library one thread.
from common import arguments, gradient_boosting, grouped, print_records, read_results, run_child, show, write_results
from setting import Dataset, load
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize
from sklearn.svm import SVC

from svmosaic import LearnedGateSVC, LocallyLinearSVC

# Rows that an RBF SVC is trained on, and tuned on, at most: it would not finish in ten minutes on more.
SVC_ROWS, TUNING_ROWS = 20_000, 3000
GRID = {"C": (1.0, 10.0, 100.0), "gamma": (0.25, 1.0, 4.0)}  # gamma as a multiple of scikit-learn's "scale"
# Rows whose prediction is timed, for models that need more than a few microseconds per row.
TIMED_ROWS = 2000
# Seconds on the wall that the solver of fixed regions may take; records have the gap that it had reached by then.
FIXED_SECONDS = 100
BIG = "LightGBM, 500 trees, 127 leaves"


# How LearnedGateSVC is set, besides its tiles. Curves need few epochs: of 8, 12 and 16, each better than the last on a
# tenth held out from the training rows of covertype, 12 take well under a minute with 1000 tiles.
KINDS = {
    "learned": {},
    "learned, polished": {"polish": True},
    "learned, curves": {"pieces": 12, "max_iter": 12, "early_stopping": False},
}


@dataclass(frozen=True)
class Task:
    """A set, the numbers of tiles it is fitted with, how many seeds, and which of `KINDS`."""

    tiles: tuple[int, ...]
    seeds: int = 3
    kinds: tuple[str, ...] = ("learned", "learned, polished")
    max_rows: int | None = None
    settings: dict = field(default_factory=dict)  # of LearnedGateSVC, if they are not its defaults


@dataclass(frozen=True)
class Trial:
    """A model to fit; `make` is None for the SVC, which is tuned first."""

    model: str
    tiles: int | None
    seed: int
    make: Callable | None
    most_rows: int | None = None

    @property
    def key(self):
        return self.model, self.tiles, self.seed


TASKS = {
    "ijcnn1": Task((32,)),
    "letter": Task((100,)),
    "satimage": Task((50,)),
    # Chosen on the part that polishing holds out, among five settings with 16, 64 or no components and C from 1 to 4.
    "mnist": Task((100,), seeds=1, settings={"n_components": None, "n_neighbors": 16, "C": 4.0}),
    "covtype": Task((400, 1000), seeds=1, kinds=("learned", "learned, curves")),
}
CURVES = {
    "ijcnn1": Task((4, 8, 16, 32, 64, 128), seeds=1),
    "letter": Task((13, 25, 50, 100, 200, 400), seeds=1),
    "satimage": Task((6, 12, 25, 50, 100), seeds=3),
    "covtype": Task((25, 50, 100, 200, 400), seeds=1, max_rows=60_000),
}


def prepared(name, max_rows=None):
    if name == "digits":
        X, X_test, y, y_test = digits_split()
        data = Dataset(X, y, X_test, y_test)
    else:
        data = load(name)
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


def compared(task, name):
    """All that a set is fitted with."""
    for K in task.tiles:
        for seed in range(task.seeds):
            for kind in task.kinds:
                settings = task.settings | KINDS[kind]
                yield Trial(kind, K, seed, partial(LearnedGateSVC, K, random_state=seed, **settings))
        yield Trial("fixed", K, 0, partial(fixed_regions, K))
    yield Trial("LightGBM", None, 0, gradient_boosting)
    if name == "covtype":
        yield Trial(BIG, None, 0, partial(gradient_boosting, n_estimators=500, num_leaves=127))
    yield Trial("RBF SVC, tuned", None, 0, None, SVC_ROWS)


def by_tiles(task, name):
    """Learned and fixed regions with more and more tiles."""
    for K in task.tiles:
        for seed in range(task.seeds):
            yield Trial("learned", K, seed, partial(LearnedGateSVC, K, random_state=seed))
            yield Trial("fixed", K, seed, partial(fixed_regions, K, seed))


PARTS = {name: (name, task, compared) for name, task in TASKS.items()} | {
    f"{name} curve": (name, task, by_tiles) for name, task in CURVES.items()
}
QUICK = {
    "digits": ("digits", Task((20,), seeds=1, kinds=tuple(KINDS)), compared),
    "digits curve": ("digits", Task((5, 20), seeds=1), by_tiles),
}


def seconds_of(function, argument):
    start = process_time()
    function(argument)
    return process_time() - start


def measured(data, make, most_rows):
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


def run(name, part, task, trials, options):
    """Records of a part, old and new; each new one is stored at once, and models that are gone are dropped."""
    trials = list(trials(task, name))
    old = {} if options.quick else read_results("learned").get(part, {})
    kept = {(r["model"], r["tiles"], r["seed"]): r for r in old.get("records", [])}
    missing = [trial for trial in trials if wanted(trial, kept, options)]
    data = prepared(name, task.max_rows) if missing else None
    for trial in missing:
        about = {"set": name, "model": trial.model, "tiles": trial.tiles, "seed": trial.seed}
        found = measured(data, trial.make, trial.most_rows)
        kept[trial.key] = about | found | {"date": str(date.today())}
        show({"part": part, **kept[trial.key]})
        records = in_order(trials, kept)
        write_results("learned", part, records, summary_of(records), options)
    return in_order(trials, kept)


def wanted(trial, kept, options):
    """Whether to run it: of the models that were asked for, and, to resume, not stored."""
    return (options.models is None or trial.model in options.models) and not (options.resume and trial.key in kept)


def in_order(trials, kept):
    return [kept[trial.key] for trial in trials if trial.key in kept]


def summary_of(records):
    """Mean accuracy of each model and number of tiles over its seeds."""
    means = {}
    for (model, tiles), some in grouped(records, "model", "tiles").items():
        means[f"{model}, {tiles} tiles" if tiles else model] = round(float(np.mean([r["accuracy"] for r in some])), 2)
    return {"mean_accuracy": means}


def main():
    options = arguments(
        __doc__,
        only={"nargs": "*", "choices": TASKS, "metavar": "SET", "help": "compare on these sets"},
        curves={"nargs": "*", "choices": CURVES, "metavar": "SET", "help": "draw the curves of these sets"},
        models={"nargs": "+", "help": "only these, by their names in the results"},
        resume={"action": "store_true", "help": "leave out the runs that are stored"},
    )
    parts = PARTS
    if options.only is not None or options.curves is not None:
        asked = [*(options.only or ()), *(f"{name} curve" for name in options.curves or ())]
        parts = {part: PARTS[part] for part in asked}
    for part, (name, task, trials) in (QUICK if options.quick else parts).items():
        columns = ["model", "tiles", "seed", "accuracy", "fit_seconds", "row_microseconds", "train_rows"]
        print_records(part, run(name, part, task, trials, options), columns)


if __name__ == "__main__":
    main()
