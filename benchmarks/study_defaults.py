"""How should an estimator be set by default? Settings judged on rows held out from the training parts of several sets.

A setting is fitted to three quarters (of LocallyLinearSVC: 80 %) of some training rows and scored on the rest; test
parts are not looked at, and of tables without a test part a quarter of the rows is kept out of the study. What counts
is the mean over the sets of the accuracy behind that of the best setting of each set, in points. Seconds are processor
seconds of one thread. Needs the data folder.

    python benchmarks/study_defaults.py learned                  # LearnedGateSVC; writes results/learned_study.json
    python benchmarks/study_defaults.py trees --processes 16     # TreeSVC, many fits at a time; trees_study.json
    python benchmarks/study_defaults.py local                    # LocallyLinearSVC; local_study.json
    python benchmarks/study_defaults.py learned --quick          # one set, two settings; writes nothing
"""

import sys
import warnings
from itertools import product
from time import process_time

from common import arguments, grouped, print_records, write_results  # isort: skip; first: it sets the number of threads

import auto_data
import numpy as np
from joblib import Parallel, delayed
from setting import load
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler, normalize

from svmosaic import LearnedGateSVC, LocallyLinearSVC, TreeSVC

TABLES = ("german_credit", "breast_cancer", "horse_colic", "wine_white")
SETS = {
    "learned": ("letter", "satimage", "ijcnn1", "pendigits", "svmguide1", "adult"),
    "trees": (*TABLES, "adult", "satimage", "letter", "pendigits", "covtype", "svmguide1"),
    "local": ("usps", "letter", "ijcnn1", "pendigits", "satimage", "svmguide1", "mnist"),
}
LARGEST, SEEDS = {"learned": 4000, "trees": 3000, "local": 12_000}, {"learned": 2, "trees": 2, "local": 1}
GRID = {
    "coding": ("softmax", "inverse"), "n_neighbors": (8, 16), "anchors": ("kmeans", "class"),
    "loss": ("hinge", "squared_hinge"), "C": (1.0, 10.0, 100.0),
}  # fmt: skip
ONE = {"n_tiles": 100, "n_neighbors": 8}
FOUR = {"n_gates": 4, "n_tiles": 32, "n_neighbors": 4}
EIGHT = {"n_gates": 8, "n_tiles": 16, "n_neighbors": 4}
LEARNED = {
    "one gate, 40 epochs": ONE | {"early_stopping": False},
    "one gate, early stopping": ONE,
    "one gate, decay 0.1": ONE | {"weight_decay": 0.1},
    "one gate, decay 1": ONE | {"weight_decay": 1.0},
    "four gates, early stopping": FOUR,
    "four gates, decay 0.1": FOUR | {"weight_decay": 0.1},
    "four gates, decay 1": FOUR | {"weight_decay": 1.0},
    "four gates, log-loss, decay 1": FOUR | {"loss": "log_loss", "weight_decay": 1.0},
    "eight gates, 40 epochs": EIGHT | {"early_stopping": False},
    "eight gates, early stopping": EIGHT,
    "eight gates, patience 20": EIGHT | {"n_iter_no_change": 20},
    "eight gates, decay 0.1": EIGHT | {"weight_decay": 0.1},
    "eight gates, decay 1": EIGHT | {"weight_decay": 1.0},
    "eight gates, dropout 0.1": EIGHT | {"dropout": 0.1},
    "eight gates, decay 0.1, dropout 0.1": EIGHT | {"weight_decay": 0.1, "dropout": 0.1},
    "eight gates, decay 0.1, dropout 0.1, rate 0.01": EIGHT
    | {"weight_decay": 0.1, "dropout": 0.1, "learning_rate": 0.01},
    "eight gates, log-loss": EIGHT | {"loss": "log_loss"},
    "eight gates, log-loss, decay 0.1, dropout 0.1": EIGHT | {"loss": "log_loss", "weight_decay": 0.1, "dropout": 0.1},
    "eight gates, log-loss, decay 1": EIGHT | {"loss": "log_loss", "weight_decay": 1.0},
    "eight gates, pieces, log-loss, decay 0.1, dropout 0.2": EIGHT
    | {"pieces": 16, "loss": "log_loss", "weight_decay": 0.1, "dropout": 0.2},
    "eight gates, pieces, log-loss, decay 1": EIGHT | {"pieces": 16, "loss": "log_loss", "weight_decay": 1.0},
}


def tree_settings():
    """Settings by name: a grid of what matters most, then one change at a time."""
    found = {}
    for n_trees, max_leaves, tiles, C in product((1, 32), (8, 32), ("constant", "linear"), (0.03, 0.1, 0.3, 1.0)):
        setting = {"n_trees": n_trees, "max_leaves": max_leaves, "tiles": tiles, "C": C}
        found[f"{n_trees} trees of {max_leaves}, {tiles}, C = {C:g}"] = setting
    few = (
        {"n_trees": 8}, {"n_trees": 100}, {"max_leaves": 128, "min_rows_per_leaf": 5}, {"min_rows_per_leaf": 5},
        {"global_reg": 3.0}, {"pieces": 8}, {"bootstrap": False}, {"bootstrap": False, "min_rows_per_leaf": 2},
    )  # fmt: skip
    many = (
        {"n_trees": 100, "max_leaves": 128}, {"n_trees": 100, "max_leaves": 128, "min_rows_per_leaf": 5},
        {"min_rows_per_leaf": 2}, {"min_rows_per_leaf": 50}, {"global_reg": 0.3}, {"pieces": 24},
    )  # fmt: skip
    for tiles, C, changes in (("constant", 0.1, few + many), ("constant", 0.3, few + many), ("linear", 0.1, few)):
        base = {"n_trees": 32, "max_leaves": 32, "tiles": tiles, "C": C}
        for change in changes:
            text = ", ".join(f"{key} = {value}" for key, value in change.items())
            found[f"32 trees of 32, {tiles}, C = {C:g}; {text}"] = base | change
    # Nothing but leaves: the global tile, whose penalty is so strong, stays zero.
    bare = {"tiles": "constant", "pieces": None, "global_reg": 1e24}
    for growth, C in product(("forest", "extra"), (0.1, 0.3, 1.0)):
        setting = bare | {"n_trees": 32, "max_leaves": 1000, "min_rows_per_leaf": 1, "growth": growth, "C": C}
        found[f"32 trees of 1000, only leaves, {growth}, C = {C:g}"] = setting
    return found


def settings_of(kind) -> dict:
    if kind == "local":
        grid = [dict(zip(GRID, values, strict=True)) for values in product(*GRID.values())]
        return {", ".join(f"{key}={value}" for key, value in setting.items()): setting for setting in grid}
    return LEARNED if kind == "learned" else tree_settings()


def training_part(kind, name):
    """Some rows of the training part: for trees as they are, else of common scale; of tables one-hot columns."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
    elif kind == "trees" and name == "adult":
        (X, y), *_ = auto_data.encoded_adult()
    elif name in TABLES:
        X, y = auto_data.encoded_table(name)
        X, _, y, _ = train_test_split(X, y, test_size=0.25, random_state=0)
    elif name == "adult":
        train, _ = auto_data.adult()
        X, y = auto_data.one_hot(train, train)[0], train.y
    else:
        data = load(name)
        X, y = data.X_train, data.y_train
    if len(y) > LARGEST[kind]:
        stratify = None if kind == "trees" else y
        X, _, y, _ = train_test_split(X, y, train_size=LARGEST[kind], random_state=0, stratify=stratify)
    if kind == "trees":
        return X.astype(np.float64), y
    if name in ("usps", "mnist"):
        return normalize(X), y
    return StandardScaler().fit_transform(X).astype(np.float64 if kind == "local" else np.float32), y


def model_of(kind, setting, seed, X, y):
    if kind == "learned":
        return LearnedGateSVC(**setting, random_state=seed)
    if kind == "local":
        return LocallyLinearSVC(**setting, max_iter=100, random_state=seed)
    setting = dict(setting)
    if not setting.pop("bootstrap", True):
        # Grown on the rows that the tiles are fitted to, all of them: does it overfit?
        forest = RandomForestClassifier(
            setting["n_trees"], max_leaf_nodes=setting["max_leaves"], bootstrap=False,
            min_samples_leaf=setting.pop("min_rows_per_leaf", 20), random_state=seed,
        )  # fmt: skip
        setting["trees"] = forest.fit(X, y)
    return TreeSVC(**setting, max_time=60, random_state=seed)


def judged(kind, X, y, setting, seed):
    """Accuracy on the part held out in percent (of LocallyLinearSVC: the error), and processor seconds."""
    stratify, share = None if kind == "trees" else y, 0.2 if kind == "local" else 0.25
    X, X_held, y, y_held = train_test_split(X, y, test_size=share, random_state=seed, stratify=stratify)
    began = process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = model_of(kind, setting, seed, X, y).fit(X, y)
    seconds, accuracy = round(process_time() - began, 2), 100 * float(model.score(X_held, y_held))
    if kind == "local":
        return setting | {"error": round(100 - accuracy, 3), "epochs": int(model.n_iter_), "seconds": seconds}
    return {"accuracy": round(accuracy, 2), "seconds": seconds}


def summary_of(records):
    """Points behind the best setting of each set, on average, and seconds, by setting; the best first."""
    behind: dict = {}
    for some in grouped(records, "set").values():
        means = {
            name: np.mean([r["accuracy"] if "accuracy" in r else 100 - r["error"] for r in found])
            for name, found in grouped(some, "setting").items()
        }
        for name, mean in means.items():
            behind.setdefault(name, []).append(max(means.values()) - mean)
    seconds = {name: sum(r["seconds"] for r in some) for name, some in grouped(records, "setting").items()}
    return {
        name: {"points_behind": round(float(np.mean(points)), 3), "seconds": round(seconds[name], 1)}
        for name, points in sorted(behind.items(), key=lambda item: np.mean(item[1]))
    }


def main(kind):
    options = arguments(__doc__, out=True, processes={"type": int, "default": 1, "help": "fits at a time"})
    settings = settings_of(kind)
    if options.quick:
        settings = dict(list(settings.items())[:2])
    data = {name: training_part(kind, name) for name in (("digits",) if options.quick else SETS[kind])}
    tasks = list(product(data, settings, range(1 if options.quick else SEEDS[kind])))
    found = Parallel(options.processes, verbose=5)(
        delayed(judged)(kind, *data[name], settings[label], seed) for name, label, seed in tasks
    )
    records = [
        {"set": name, "setting": label, "seed": seed} | one
        for (name, label, seed), one in zip(tasks, found, strict=True)
    ]
    summary = summary_of(records)
    print_records("settings", [{"setting": name, **one} for name, one in summary.items()])
    write_results(f"{kind}_study", "grid" if kind == "local" else "defaults", records, summary, options)


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in SETS:
        raise SystemExit(f"usage: study_defaults.py {{{','.join(SETS)}}} [--quick] [--processes N] [--out FILE]")
    main(sys.argv.pop(1))
