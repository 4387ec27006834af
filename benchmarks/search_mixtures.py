"""Settings of the mixtures by cross-validation on the training parts, and what they give on the test parts.

    SVMOSAIC_DATA=folder python benchmarks/search_mixtures.py [--set NAME ...] [--model NAME ...] [--seeds N]
    SVMOSAIC_DATA=folder python benchmarks/search_mixtures.py --no-search ...
    SVMOSAIC_DATA=folder python benchmarks/search_mixtures.py --no-test ...
    python benchmarks/search_mixtures.py --quick      # made-up rows, one model; writes nothing

Rows are scaled to unit norm, as in the papers' protocol; satimage is standardized. One rule for all sets, on at most
8,000 training rows (fewer where a row has more than 375 features, so that there are at most three million numbers):

1. every setting of the grid, with the published number of experts and without groups, by three folds and ten
   iterations;
2. the best eighth of them (of MixtureSVC's three settings that is one, which ends its search), with half, once and
   twice the number of experts, by six other splits (three folds, twice, shuffled anew, each with a start of its own)
   and all iterations: the highest mean is chosen;
3. the same with groups, on the same splits: groups are taken if the mean is higher.

The setting is trained on all training rows with three seeds (`--seeds`) and tested. `--no-test` prints what would be
chosen and does not look at the test rows. One JSON line per set goes to
benchmarks/results/mixtures_accuracy.json, which the slow tests read.
"""

import json
from pathlib import Path
from time import perf_counter

from common import arguments  # isort: skip; first: it sets the number of threads

import numpy as np
from setting import load
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, StratifiedKFold
from sklearn.preprocessing import StandardScaler, normalize

from svmosaic import MixtureSVC, MultiTaskMixtureSVC
from svmosaic.atomic import write_text
from svmosaic.datasets import make_xor

RESULTS = Path(__file__).parent / "results" / "mixtures_accuracy.json"
SEARCH_ROWS, SEARCH_NUMBERS, SEARCH_ITER = 8_000, 3_000_000, 10
REPEATS = 2

# beta = label_weight / (2C), for C from 1 to 100
PENALTIES = [
    {"label_weight": [rho], "beta": [rho / (2 * C)], "alpha": [rho / (2 * C)]}
    for rho in (5.0, 1.0)
    for C in (1.0, 10.0, 100.0)
]
# The model, what the first round tries, what the second adds to it, and the third.
GRIDS = {
    "MixtureSVC": (MixtureSVC(n_experts=20, nu=0.0), {"C": [1.0, 10.0, 100.0]}, {}, {}),
    "MultiTaskMixtureSVC": (
        MultiTaskMixtureSVC(n_experts=14, groups=None),
        [penalty | {"covariance_floor": [1e-1, 1e-2, 1e-3, 1e-5]} for penalty in PENALTIES],
        {"n_experts": [7, 14, 28]},
        {"groups": "relaxed"},
    ),
}
SETS = {
    "MixtureSVC": ["svmguide1", "ijcnn1", "usps", "mnist38"],
    "MultiTaskMixtureSVC": ["ijcnn1", "svmguide1", "pendigits", "satimage", "skin"],
}


def prepared(name):
    """Training and test rows of a set under its protocol."""
    if name == "quick":
        X, y = make_xor(400, random_state=0)
        return X[:300], y[:300], X[300:], y[300:]
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


def cross_validated(model, setting, X, y, seeds):
    """Mean accuracy in percent over three folds, shuffled with each of the seeds."""
    scores = []
    for seed in seeds:
        fresh = clone(model).set_params(**setting, random_state=seed)
        for train, test in StratifiedKFold(3, shuffle=True, random_state=seed).split(X, y):
            scores.append(fresh.fit(X[train], y[train]).score(X[test], y[test]))
    return round(100 * float(np.mean(scores)), 3)


def searched(model_name, X, y):
    """What cross-validation saw, best first: (setting, accuracy in percent) of the last round that took place."""
    model, grid, second, third = GRIDS[model_name]
    rows = np.random.RandomState(0).permutation(len(y))[: min(SEARCH_ROWS, SEARCH_NUMBERS // X.shape[1])]
    X, y = X[rows], y[rows]
    seen = first_round(model, grid, X, y)
    if not second:
        return seen
    finals = [setting | more for setting, _ in seen[: len(seen) // 8] for more in ParameterGrid(second)]
    splits = range(1, 1 + REPEATS)
    seen = ranked(finals, [cross_validated(model, setting, X, y, splits) for setting in finals])
    tied = seen[0][0] | third
    # Stable: without groups where the two are equal.
    return sorted([*seen, (tied, cross_validated(model, tied, X, y, splits))], key=lambda pair: -pair[1])


def first_round(model, grid, X, y):
    """Every setting of the grid, best first."""
    short = clone(model).set_params(max_iter=SEARCH_ITER)
    settings = list(ParameterGrid(grid))
    return ranked(settings, [cross_validated(short, setting, X, y, [0]) for setting in settings])


def ranked(settings, scores):
    return [(settings[i], scores[i]) for i in np.argsort(scores)[::-1]]


def tested(model_name, set_name, n_seeds, known):
    """Accuracy on the test part over a few seeds, with the setting by cross-validation or as known."""
    model = GRIDS[model_name][0]
    X, y, X_test, y_test = prepared(set_name)
    if known is None:
        began = perf_counter()
        ranking = searched(model_name, X, y)
        known = {
            "model": model_name,
            "set": set_name,
            "setting": ranking[0][0],
            "cv": ranking[0][1],
            "runners_up": ranking[1:],
            "search_seconds": round(perf_counter() - began),
        }
    scores, fit_seconds = [], []
    for seed in range(n_seeds):
        began = perf_counter()
        fitted = clone(model).set_params(**known["setting"], random_state=seed).fit(X, y)
        fit_seconds.append(perf_counter() - began)
        scores.append(100 * fitted.score(X_test, y_test))
    if scores:
        known |= {
            "test_mean": round(float(np.mean(scores)), 2),
            "test_std": round(float(np.std(scores)), 2),
            "seeds": n_seeds,
            "fit_seconds": round(float(np.median(fit_seconds)), 2),
        }
    return known


def main():
    options = arguments(
        __doc__,
        set={"nargs": "*"},
        no_search={"action": "store_true", "help": "test the stored settings as they are"},
        no_test={"action": "store_true", "help": "search, and leave the test rows alone"},
        seeds={"type": int, "default": 3},
        model={"nargs": "*", "default": list(GRIDS)},
    )
    stored = {}
    if RESULTS.exists():
        stored = {(r["model"], r["set"]): r for r in map(json.loads, RESULTS.read_text().splitlines())}
    for model_name in options.model:
        for set_name in ["quick"] if options.quick else SETS[model_name]:
            if (options.set and set_name not in options.set) or (options.quick and model_name != "MixtureSVC"):
                continue
            known = stored[model_name, set_name] if options.no_search else None
            result = tested(model_name, set_name, 0 if options.no_test else options.seeds, known)
            print(json.dumps(result), flush=True)
            stored[model_name, set_name] = result
            if not options.quick:
                write_text(RESULTS, "".join(json.dumps(r) + "\n" for r in stored.values()))


if __name__ == "__main__":
    main()
