"""How should LearnedGateSVC be set by default? Settings judged on parts held out from the training parts of six sets.

A setting is fitted to 75 % of at most 4000 training rows and scored on the rest, for two seeds; test sets are not
looked at. What counts is the mean over the sets of the error beyond that of the best setting of each set, in points.
Times are processor seconds of one thread. Needs the data folder.

    python benchmarks/study_learned.py                  # writes benchmarks/results/learned_study.json
    python benchmarks/study_learned.py --processes 16   # the same, many fits at a time
    python benchmarks/study_learned.py --quick          # one set, two settings; writes nothing
"""

import argparse
import warnings
from time import process_time

from common import print_table, write_results  # isort: skip; first: it sets the number of threads

import auto_data
import numpy as np
from joblib import Parallel, delayed
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from svmosaic import LearnedGateSVC
from svmosaic.datasets import load

SETS = ("letter", "satimage", "ijcnn1", "pendigits", "svmguide1", "adult")
LARGEST, SEEDS = 4000, 2
ONE = {"n_tiles": 100, "n_neighbors": 8}
FOUR = {"n_gates": 4, "n_tiles": 32, "n_neighbors": 4}
EIGHT = {"n_gates": 8, "n_tiles": 16, "n_neighbors": 4}
SETTINGS = {
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


def training_part(name):
    """At most LARGEST rows of the training part, standardized; of tables, categories one by one."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
    elif name == "adult":
        train, _ = auto_data.adult()
        X, y = auto_data.one_hot(train, train)[0], train.y
    else:
        data = load(name)
        X, y = data.X_train, data.y_train
    if len(y) > LARGEST:
        X, _, y, _ = train_test_split(X, y, train_size=LARGEST, random_state=0, stratify=y)
    return StandardScaler().fit_transform(X).astype(np.float32), y


def judged(X, y, setting, seed):
    """Accuracy on the part held out, and what it took."""
    X, X_held, y, y_held = train_test_split(X, y, test_size=0.25, random_state=seed, stratify=y)
    began = process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LearnedGateSVC(**setting, random_state=seed).fit(X, y)
    seconds = process_time() - began
    accuracy = round(100 * float(model.score(X_held, y_held)), 2)
    return {"accuracy": accuracy, "seconds": round(seconds, 2), "best_epoch": model.best_iter_}


def summary_of(records):
    """Points behind the best setting of each set, on average, and seconds."""
    names, sets = list(dict.fromkeys(r["setting"] for r in records)), list(dict.fromkeys(r["set"] for r in records))
    mean = {
        (s, n): np.mean([r["accuracy"] for r in records if (r["set"], r["setting"]) == (s, n)])
        for s in sets
        for n in names
    }
    behind = {n: np.mean([max(mean[s, m] for m in names) - mean[s, n] for s in sets]) for n in names}
    seconds = {n: np.sum([r["seconds"] for r in records if r["setting"] == n]) for n in names}
    return {n: {"points_behind": round(float(behind[n]), 3), "seconds": round(float(seconds[n]), 1)} for n in names}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one set, two settings; writes nothing")
    parser.add_argument("--processes", type=int, default=1, help="fits at a time")
    parser.add_argument("--out", help="file to write to instead")
    options = parser.parse_args()
    sets = ("digits",) if options.quick else SETS
    settings = dict(list(SETTINGS.items())[:2]) if options.quick else SETTINGS
    data = {name: training_part(name) for name in sets}
    seeds = range(1 if options.quick else SEEDS)
    tasks = [(name, label, seed) for name in sets for label in settings for seed in seeds]
    found = Parallel(options.processes, verbose=5)(
        delayed(judged)(*data[name], settings[label], seed) for name, label, seed in tasks
    )
    records = [
        {"set": name, "setting": label, "seed": seed} | one
        for (name, label, seed), one in zip(tasks, found, strict=True)
    ]
    summary = summary_of(records)
    rows = sorted(
        ([label, str(s["points_behind"]), str(s["seconds"])] for label, s in summary.items()), key=lambda r: float(r[1])
    )
    print_table("settings", ["setting", "points behind", "seconds"], rows)
    if not options.quick:
        write_results("learned_study", "defaults", records, summary, path=options.out)


if __name__ == "__main__":
    main()
