"""Loss after so many seconds: the search with several time budgets, LightGBM and a random forest as they come.

Seven tenths of at most 30,000 prepared training rows of each visible set are fitted, and the others judge: by the
log-loss, or by the squared error as a share of the variance. No test row is read. Two threads for each fit; `--jobs` of
them run at a time, so ask for no more than half of the cores.

    python benchmarks/bench_anytime.py --jobs 8              # results/anytime.json
    python benchmarks/bench_anytime.py --quick
"""

from common import arguments, mean_ranks, print_records, write_results  # isort: skip; first: it sets the number of threads

import warnings
from concurrent.futures import ProcessPoolExecutor
from math import exp, log
from statistics import mean, median
from time import perf_counter

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from study_search import SETS, training_rows

from svmosaic import MosaicClassifier, MosaicRegressor

BUDGETS = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
MOST_ROWS, SHARE, SMALLEST = 30_000, 0.3, 1e-6
PEER = "LightGBM"


def model_of(name, budget, is_class):
    """An estimator as it comes, with two threads."""
    if name == PEER:
        from lightgbm import LGBMClassifier, LGBMRegressor

        return (LGBMClassifier if is_class else LGBMRegressor)(n_jobs=2, verbose=-1)
    if name == "random forest":
        return (RandomForestClassifier if is_class else RandomForestRegressor)(n_jobs=2, random_state=0)
    return (MosaicClassifier if is_class else MosaicRegressor)(budget, n_jobs=2, random_state=0)


def measure(set_name, model, budget):
    """One fit and its loss."""
    warnings.simplefilter("ignore")
    X, y, task = training_rows(set_name, MOST_ROWS)
    is_class = task == "classification"
    X, Z, y, z = train_test_split(X, y, test_size=SHARE, stratify=y if is_class else None, random_state=0)
    began = perf_counter()
    fitted = model_of(model, budget, is_class).fit(X, y)
    seconds = perf_counter() - began
    if is_class:
        probabilities = np.clip(fitted.predict_proba(Z), SMALLEST, 1.0)
        loss = log_loss(z, probabilities / probabilities.sum(axis=1, keepdims=True), labels=fitted.classes_)
    else:
        loss = float(np.mean((fitted.predict(Z) - z) ** 2) / np.var(z))
    name = model if budget is None else f"{model}, {budget:g} s"
    return {"set": set_name, "model": name, "loss": round(float(loss), 5), "seconds": round(seconds, 2)}


def summary(records) -> list:
    """A line per model: its loss relative to LightGBM's."""
    peer = {r["set"]: r["loss"] for r in records if r["model"] == PEER}
    ranks, lines = mean_ranks(records, "loss"), []
    for model in dict.fromkeys(r["model"] for r in records):
        ratio = [max(r["loss"], 1e-3) / max(peer[r["set"]], 1e-3) for r in records if r["model"] == model]
        lines.append(
            {
                "model": model, "mean": round(exp(mean(map(log, ratio))), 3), "median": round(median(ratio), 3),
                "lower": sum(q < 1.0 for q in ratio), "near": sum(q <= 1.03 for q in ratio), "sets": len(ratio),
                "worst": round(max(ratio), 2), "rank": ranks[model],
                "seconds": round(max(r["seconds"] for r in records if r["model"] == model), 1),
            }
        )  # fmt: skip
    return lines


if __name__ == "__main__":
    options = arguments(__doc__, sets=[name for name in SETS if name != "mnist"], out=True,
                        jobs={"type": int, "default": 1, "help": "fits at a time"})  # fmt: skip
    sets, budgets = (["wine"], (1.0,)) if options.quick else (options.sets, BUDGETS)
    peers = ["random forest"] if options.quick else [PEER, "random forest"]
    work = [(name, "svmosaic", budget) for budget in budgets for name in sets]
    work += [(name, peer, None) for peer in peers for name in sets]
    with ProcessPoolExecutor(options.jobs) as pool:
        records = list(pool.map(measure, *zip(*work, strict=True)))
    records.sort(key=lambda r: r["model"] != PEER)
    if options.quick:
        print_records("losses", records)
    else:
        print_records("relative to LightGBM", summary(records))
        write_results("anytime", "training rows", records, summary(records), options)
