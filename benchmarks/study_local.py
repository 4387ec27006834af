"""How should LocallyLinearSVC be set by default? A grid on the training parts of several data sets.

Each setting is fitted to 80 % of a training set and scored on the rest; test sets are not looked at. The defaults are
those with the smallest mean error relative to the best setting of each set. Needs the data folder.

    python benchmarks/study_local.py            # writes benchmarks/results/local_study.json
"""

import argparse
from itertools import product

import numpy as np
from common import print_table, write_results  # first: it sets the number of threads
from setting import load
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize

from svmosaic import LocallyLinearSVC

SETS = ("usps", "letter", "ijcnn1", "pendigits", "satimage", "svmguide1", "mnist")
LARGEST = 12_000
GRID = {
    "coding": ("softmax", "inverse"),
    "n_neighbors": (8, 16),
    "anchors": ("kmeans", "class"),
    "loss": ("hinge", "squared_hinge"),
    "C": (1.0, 10.0, 100.0),
}


def training_part(name):
    """At most LARGEST rows of the training part: images of unit norm, the others standardized."""
    data = load(name)
    X, y = data.X_train, data.y_train
    if len(y) > LARGEST:
        X, _, y, _ = train_test_split(X, y, train_size=LARGEST, random_state=0, stratify=y)
    X = normalize(X) if name in ("usps", "mnist") else (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    return train_test_split(X, y, test_size=0.2, random_state=0, stratify=y)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=SETS)
    arguments = parser.parse_args()
    records = []
    for name in arguments.only:
        X, X_held, y, y_held = training_part(name)
        for values in product(*GRID.values()):
            setting = dict(zip(GRID, values, strict=True))
            model = LocallyLinearSVC(**setting, max_iter=100, random_state=0, n_jobs=2)
            error = 100 * (1 - _quiet(model, X, y).score(X_held, y_held))
            records.append({"set": name, **setting, "error": round(error, 3), "epochs": int(model.n_iter_)})
        best = min((r for r in records if r["set"] == name), key=lambda r: r["error"])
        print(name, best, flush=True)
    report(records)


def _quiet(model, X, y):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def report(records):
    """Mean over the sets of the error above the best of the grid, for each setting."""
    names = sorted({r["set"] for r in records})
    best = {name: min(r["error"] for r in records if r["set"] == name) for name in names}
    excess = {}
    for r in records:
        setting = tuple(r[key] for key in GRID)
        excess.setdefault(setting, []).append(r["error"] - best[r["set"]])
    ranked = sorted(excess.items(), key=lambda item: np.mean(item[1]))
    rows = [[*map(str, setting), f"{np.mean(e):.3f}", f"{np.max(e):.3f}"] for setting, e in ranked[:12]]
    print_table("error above the best of each set, percentage points", [*GRID, "mean", "worst"], rows)
    summary = [dict(zip(GRID, s, strict=True), mean=round(float(np.mean(e)), 3)) for s, e in ranked[:12]]
    write_results("local_study", "grid", records, {"ranking": summary, "best": best})


if __name__ == "__main__":
    main()
