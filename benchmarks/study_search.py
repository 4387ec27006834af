"""Which settings the search tries first: all of them judged on training rows of all visible sets, and a greedy order.

Every setting of `svmosaic.search.plan.settings` is judged on at most 12,000 training rows of each set (those of split
0; no test row is read): three parts held out in turn of up to 6000 rows, one of more. The order then adds, one by one,
the setting that lowers the mean over the sets of the best loss so far the most, as a share of the best loss of all
settings, with a penalty for its work.

    python benchmarks/study_search.py                       # adds to results/search_study.json set by set
    python benchmarks/study_search.py --sets 'heart;vehicle' --processes 2
    python benchmarks/study_search.py --order               # print the order that follows from what is stored
"""

import argparse
import json

import numpy as np
from auto_data import BUNDLED, PAPERS, TABLES, adult, bundled_split, paper_split, part, table_split
from bench_regression import LABELS, frame_of
from common import RESULTS
from joblib import Parallel, delayed

from svmosaic.estimators._table_input import prepare_training
from svmosaic.estimators.data import validate_training, validate_values
from svmosaic.estimators.linear import LinearSVC, LinearSVR
from svmosaic.search import FAMILIES
from svmosaic.search.engine import Search
from svmosaic.search.judge import ClassJudge, ValueJudge
from svmosaic.search.plan import Rung, folds_of, settings

FILE = RESULTS / "search_study.json"
MOST_ROWS, FEW_ROWS, PARTS = 12_000, 6000, 3
SETS = (*TABLES, "adult", *PAPERS, *(f"{name}, values" for name in LABELS))
# Work, in multiplications per row and column, that is worth a share of the loss of one in a hundred.
WORTH = 3e4


def training_rows(name, most=MOST_ROWS):
    """At most so many prepared training rows, what is asked for (labels, or values), and the task."""
    if name.endswith(", values"):
        X, y = frame_of(name.removesuffix(", values"))
        train = np.random.RandomState(0).permutation(len(y))[: int(0.8 * len(y))][:most]
        X, y, task = X.iloc[train].reset_index(drop=True), y[train], "regression"
    else:
        if name in (*PAPERS, *BUNDLED):
            X, y, _, _ = (bundled_split if name in BUNDLED else paper_split)(name, 0)
        else:
            train = adult()[0] if name == "adult" else table_split(name, 0)[0]
            X, y = train.frame(), train.y
        label, count = np.unique(y, return_counts=True)
        rows, _ = part(np.flatnonzero(np.isin(y, label[count >= 6])), y[np.isin(y, label[count >= 6])], most)
        X, y, task = (X.iloc[rows].reset_index(drop=True) if hasattr(X, "iloc") else X[rows]), y[rows], "classification"
    _, X = prepare_training(X, y, task, random_state=np.random.RandomState(0))
    return np.ascontiguousarray(X, dtype=np.float64), y, task


def measure(name) -> list:
    """A line per setting."""
    X, y, task = training_rows(name)
    if task == "classification":
        X, target = validate_training(LinearSVC(), X, y)
        judge, y = ClassJudge(X, target, "accuracy"), target.classes[target.label]
    else:
        X, target = validate_values(LinearSVR(), X, y)
        judge = ValueJudge(X, target, "r2")
        y = judge.wanted[:, 0]
    folds = folds_of(target, 1 / PARTS, np.random.RandomState(0))[:PARTS]
    search = Search(
        X, y, judge, folds, effort="best", most_tiles=100_000, deadline=None, seed=0, n_jobs=1, say=lambda line: None,
        watch=lambda search: False, families=FAMILIES,
    )  # fmt: skip
    search.rungs = [Rung(min(len(train) for train, _ in folds), PARTS if len(X) <= FEW_ROWS else 1)]
    lines = []
    for setting, candidate in settings(search.usual, len(X)).items():
        candidate = search.usable(candidate, search.rungs[0].n_rows)
        if candidate is None:
            continue
        search._attempt(0, [candidate])
        trial = search.trials[-1]
        if not trial.failure:
            work = candidate.work(len(X), search.density, target.n_outputs)
            lines.append(
                {
                    "set": name, "rows": len(X), "setting": setting, "loss": round(trial.loss, 5),
                    "score": round(trial.score, 5), "seconds": round(trial.seconds, 3), "work": round(work / X.size, 1),
                }
            )  # fmt: skip
    print(name, X.shape, "best:", min(lines, key=lambda r: r["loss"]), flush=True)
    return lines


def order(records, n=None):
    """Settings, the most useful first, with the mean excess of the loss after each."""
    sets = sorted({r["set"] for r in records})
    names = sorted({r["setting"] for r in records})
    loss = np.full((len(names), len(sets)), np.inf)
    work = np.zeros(len(names))
    for r in records:
        loss[names.index(r["setting"]), sets.index(r["set"])] = r["loss"]
        work[names.index(r["setting"])] += r["work"] / len(sets)
    # Losses are shares of the best; what is far behind is behind, no matter how far.
    excess = np.minimum(loss / np.maximum(loss.min(axis=0), 1e-3) - 1.0, 1.0)
    best, left = np.ones(len(sets)), list(range(len(names)))
    while left and (n is None or len(names) - len(left) < n):
        value = [np.minimum(best, excess[k]).mean() + 0.01 * work[k] / WORTH for k in left]
        chosen = left.pop(int(np.argmin(value)))
        best = np.minimum(best, excess[chosen])
        yield names[chosen], float(best.mean())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", help="names, separated by semicolons")
    parser.add_argument("--processes", type=int, default=1, help="sets at a time")
    parser.add_argument(
        "--order", action="store_true", help="print the order that follows from what is stored, and end"
    )
    parser.add_argument("--quick", action="store_true", help="one small set, not stored")
    options = parser.parse_args()
    stored = json.loads(FILE.read_text()) if FILE.exists() else []
    if options.order:
        for few in (True, False):
            print("up to 4000 rows" if few else "more rows")
            for name, excess in order([r for r in stored if (r["rows"] <= 4000) == few]):
                print(f"  {name}: {excess:.4f}")
    elif options.quick:
        measure("wine")
    else:
        asked = options.sets.split(";") if options.sets else SETS
        found = Parallel(options.processes)(delayed(measure)(name) for name in asked)
        kept = [r for r in stored if r["set"] not in asked]
        FILE.write_text(json.dumps(kept + [r for lines in found for r in lines], indent=1) + "\n")
