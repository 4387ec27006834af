"""Settings of the mixtures by cross-validation on the training parts, and what they give on the test parts.

    SVMOSAIC_DATA=folder python benchmarks/search_mixtures.py [--set NAME ...] [--model NAME ...] [--seeds N]
    SVMOSAIC_DATA=folder python benchmarks/search_mixtures.py --no-search ...

Rows are scaled to unit norm, as in the papers' protocol; satimage is standardised. Three folds of at most 8,000
training rows and ten iterations choose the setting: the first in the grid, whose order is from strong to weak
penalties, within one standard error of the best. Three seeds of it (`--seeds`), trained on all training rows, are
tested. One JSON line a set goes to benchmarks/results/mixtures_accuracy.json.
"""

import argparse
import json
from pathlib import Path
from time import perf_counter

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import StandardScaler, normalize

from svmosaic import MixtureSVC, MultiTaskMixtureSVC
from svmosaic.datasets import load

RESULTS = Path(__file__).parent / "results" / "mixtures_accuracy.json"
SEARCH_ROWS, SEARCH_ITER = 8_000, 10

FLOORS = [1e-1, 1e-2, 1e-3, 1e-5]
GRIDS = {
    "MixtureSVC": (
        MixtureSVC(n_experts=20, nu=0.0, random_state=0),
        {"C": [1.0, 10.0, 100.0]},
    ),
    "MultiTaskMixtureSVC": (
        MultiTaskMixtureSVC(n_experts=14, random_state=0),
        # beta = label_weight / (2C), for C from 1 to 100; the default label weight first, then the paper's
        [
            {"label_weight": [rho], "beta": [rho / (2 * C)], "alpha": [rho / (2 * C)], "covariance_floor": FLOORS}
            for rho in (5.0, 1.0)
            for C in (1.0, 10.0, 100.0)
        ],
    ),
}
# What the slow tests use: `--no-search` tests these settings as they are.
KNOWN = {
    "MixtureSVC": {
        "svmguide1": {"C": 100.0},
        "ijcnn1": {"C": 100.0},
        "usps": {"C": 10.0},
        "mnist38": {"C": 10.0},
    },
    "MultiTaskMixtureSVC": {
        "ijcnn1": {"alpha": 0.025, "beta": 0.025, "covariance_floor": 0.1},
        "svmguide1": {"alpha": 0.025, "beta": 0.025, "covariance_floor": 1e-5},
        "pendigits": {"alpha": 0.25, "beta": 0.25, "covariance_floor": 0.01},
        "satimage": {"label_weight": 1.0, "groups": None, "beta": 0.5, "covariance_floor": 0.1},
        "skin": {"alpha": 0.25, "beta": 0.25, "covariance_floor": 1e-5},
    },
}
SETS = {
    "MixtureSVC": ["svmguide1", "ijcnn1", "usps", "mnist38"],
    "MultiTaskMixtureSVC": ["ijcnn1", "svmguide1", "pendigits", "satimage", "skin"],
}


def prepared(name):
    """Training and test rows of a set under its protocol."""
    data = load("mnist" if name == "mnist38" else name)
    X, y, X_test, y_test = data.X_train, data.y_train, data.X_test, data.y_test
    if name == "satimage":
        scaler = StandardScaler().fit(X)
        return scaler.transform(X), y, scaler.transform(X_test), y_test
    if name == "mnist38":
        chosen, test = np.isin(y, (3, 8)), np.isin(y_test, (3, 8))
        X, y, X_test, y_test = X[chosen], y[chosen], X_test[test], y_test[test]
    if name == "usps":
        y, y_test = y % 2, y_test % 2
    if name == "pendigits":
        y, y_test = y < 5, y_test < 5
    return normalize(X), y, normalize(X_test), y_test


def searched(model, grid, X, y):
    """The setting that cross-validation chooses, and the best score it saw."""
    rows = np.random.RandomState(0).permutation(len(y))[:SEARCH_ROWS]
    short = clone(model).set_params(max_iter=SEARCH_ITER)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(short, grid, cv=folds, refit=False).fit(X[rows], y[rows])
    score = search.cv_results_["mean_test_score"]
    enough = score.max() - np.sqrt(score.max() * (1 - score.max()) / len(rows))
    return search.cv_results_["params"][np.flatnonzero(score >= enough)[0]], float(score.max())


def tested(model_name, set_name, n_seeds, search):
    """Accuracy on the test part over a few seeds, with the setting by cross-validation or as known."""
    model, grid = GRIDS[model_name]
    X, y, X_test, y_test = prepared(set_name)
    setting, score = searched(model, grid, X, y) if search else (KNOWN[model_name][set_name], None)
    scores, fit_seconds = [], []
    for seed in range(n_seeds):
        began = perf_counter()
        fitted = model.set_params(**setting, random_state=seed).fit(X, y)
        fit_seconds.append(perf_counter() - began)
        scores.append(100 * fitted.score(X_test, y_test))
    return {
        "model": model_name,
        "set": set_name,
        "setting": setting,
        "cv": None if score is None else round(100 * score, 2),
        "test_mean": round(float(np.mean(scores)), 2),
        "test_std": round(float(np.std(scores)), 2),
        "seeds": n_seeds,
        "fit_seconds": round(float(np.median(fit_seconds)), 2),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", nargs="*")
    parser.add_argument("--no-search", action="store_true", help="test the settings of the slow tests as they are")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--model", nargs="*", default=list(GRIDS))
    options = parser.parse_args()
    known = {}
    if RESULTS.exists():
        known = {(r["model"], r["set"]): r for r in map(json.loads, RESULTS.read_text().splitlines())}
    for model_name in options.model:
        for set_name in SETS[model_name]:
            if options.set and set_name not in options.set:
                continue
            result = tested(model_name, set_name, options.seeds, not options.no_search)
            print(json.dumps(result), flush=True)
            known[model_name, set_name] = result
            RESULTS.parent.mkdir(exist_ok=True)
            RESULTS.write_text("".join(json.dumps(r) + "\n" for r in known.values()))


if __name__ == "__main__":
    main()
