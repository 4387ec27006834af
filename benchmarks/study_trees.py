"""How should TreeSVC be set by default? Settings judged on rows held out from the training parts of ten sets.

A setting is fitted to 75 % of at most 3000 training rows and scored on the rest, for two seeds; test parts are not
looked at, and of tables without a test part a quarter of the rows is kept out of the study. What counts is the mean
over the sets of the accuracy behind that of the best setting of each set, in points. Needs the data folder.

    python benchmarks/study_trees.py                  # an hour; writes benchmarks/results/trees_study.json
    python benchmarks/study_trees.py --processes 16   # the same, many fits at a time
    python benchmarks/study_trees.py --quick          # one set, two settings; writes nothing
"""

import argparse
import warnings
from itertools import product
from time import process_time

from common import print_table, write_results  # isort: skip; first: it sets the number of threads

import numpy as np
import table_data
from joblib import Parallel, delayed
from setting import load
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from svmosaic import TreeSVC

TABLES = ("german_credit", "breast_cancer", "horse_colic", "wine_white")
SETS = (*TABLES, "adult", "satimage", "letter", "pendigits", "covtype", "svmguide1")
LARGEST, SEEDS = 3000, 2


def settings():
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
    for C in (0.03, 0.1, 0.3):
        setting = bare | {"n_trees": 50, "max_leaves": 64, "min_rows_per_leaf": 5, "growth": "boosted", "C": C}
        found[f"50 trees of 64, only leaves, boosted, C = {C:g}"] = setting
    return found


def training_part(name):
    """At most LARGEST rows of the training part."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
    elif name == "adult":
        (X, y), *_ = table_data.adult()
    elif name in TABLES:
        X, y = table_data.table(name)
        X, _, y, _ = train_test_split(X, y, test_size=0.25, random_state=0)
    else:
        data = load(name)
        X, y = data.X_train.astype(np.float64), data.y_train
    if len(y) > LARGEST:
        X, _, y, _ = train_test_split(X, y, train_size=LARGEST, random_state=0)
    return X, y


def judged(X, y, setting, seed):
    """Accuracy on the part held out, and what it took."""
    X, X_held, y, y_held = train_test_split(X, y, test_size=0.25, random_state=seed)
    setting = dict(setting)
    began = process_time()
    if not setting.pop("bootstrap", True):
        # Grown on the rows that the tiles are fitted to, all of them: does it overfit?
        forest = RandomForestClassifier(
            setting["n_trees"], max_leaf_nodes=setting["max_leaves"], bootstrap=False,
            min_samples_leaf=setting.pop("min_rows_per_leaf", 20), random_state=seed,
        )  # fmt: skip
        setting["trees"] = forest.fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = TreeSVC(**setting, max_time=60, random_state=seed).fit(X, y)
    accuracy = round(100 * float(model.score(X_held, y_held)), 2)
    return {"accuracy": accuracy, "seconds": round(process_time() - began, 2)}


def summary_of(records):
    """Points behind the best setting of each set, on average, and seconds; the best first."""
    names, sets = list(dict.fromkeys(r["setting"] for r in records)), list(dict.fromkeys(r["set"] for r in records))
    mean = {
        (s, n): np.mean([r["accuracy"] for r in records if (r["set"], r["setting"]) == (s, n)])
        for s, n in product(sets, names)
    }
    behind = {n: np.mean([max(mean[s, m] for m in names) - mean[s, n] for s in sets]) for n in names}
    seconds = {n: np.sum([r["seconds"] for r in records if r["setting"] == n]) for n in names}
    return {
        n: {"points_behind": round(float(behind[n]), 3), "seconds": round(float(seconds[n]), 1)}
        for n in sorted(names, key=behind.get)
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one set, two settings; writes nothing")
    parser.add_argument("--processes", type=int, default=1, help="fits at a time")
    parser.add_argument("--out", help="file to write to instead")
    options = parser.parse_args()
    chosen = dict(list(settings().items())[:2]) if options.quick else settings()
    data = {name: training_part(name) for name in (("digits",) if options.quick else SETS)}
    tasks = list(product(data, chosen, range(1 if options.quick else SEEDS)))
    found = Parallel(options.processes, verbose=5)(
        delayed(judged)(*data[name], chosen[label], seed) for name, label, seed in tasks
    )
    records = [
        {"set": name, "setting": label, "seed": seed} | one
        for (name, label, seed), one in zip(tasks, found, strict=True)
    ]
    summary = summary_of(records)
    rows = [[label, str(s["points_behind"]), str(s["seconds"])] for label, s in summary.items()]
    print_table("settings", ["setting", "points behind", "seconds"], rows)
    if not options.quick:
        write_results("trees_study", "defaults", records, summary, path=options.out)


if __name__ == "__main__":
    main()
