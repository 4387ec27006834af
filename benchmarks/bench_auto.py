"""MosaicClassifier() as it comes against LightGBM, CatBoost, a tuned RBF SVC, a linear SVC and a random forest.

Four parts. tables: german_credit, breast_cancer, horse_colic and wine_white by accuracy, mammography and oil_spill by
average precision of the rare class; 70 % of the rows to train, several splits. papers: the 13 sets of the papers,
official test parts, or a tenth of the rows; sets of fewer than 2000 rows over ten splits; MNIST and covertype are cut
to 10,000 and 50,000 training rows for all. adult: official parts. covertype7: all rows, seven classes, 80 % to train.

Every system gets the same training rows. MosaicClassifier takes tables as frames and is told the metric and the budget;
LightGBM and CatBoost are as they come, with categories as such; the SVC chooses among the scalings that
MosaicClassifier chooses among (standard, common, robust, none), C and gamma by three-fold cross-validation on at most
5000 rows, and is fitted to at most 50,000; SVC and random forest get one-hot rows, and so does scikit-learn's LinearSVC
with C = 1, standardized. Scores are of test rows, which choose nothing. The size is that of the pickled model, of ours
of its `predictor()`.

Each run of a system on a split is appended to a file as soon as it is done, so that many can run side by side:

    python benchmarks/bench_auto.py --part tables --only MosaicClassifier --threads 2 --out runs/a.jsonl
    python benchmarks/bench_auto.py --part covertype7 --budget 300 --out runs/b.jsonl
    python benchmarks/bench_auto.py --merge runs/*.jsonl     # into results/auto.json
    python benchmarks/bench_auto.py --short runs/c.jsonl     # runs with a short budget, into the same file
    python benchmarks/bench_auto.py --quick                  # bundled sets, a minute; writes nothing
"""

# ruff: noqa: E402

import argparse
import os
import sys

# Before any library is loaded: all get the same number of threads.
THREADS = int(sys.argv[sys.argv.index("--threads") + 1]) if "--threads" in sys.argv else 1
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = str(THREADS)

import json
import pickle
import warnings
from pathlib import Path
from time import perf_counter

import numpy as np
from auto_data import (
    BUDGETS,
    BUNDLED,
    PAPERS,
    PARTS,
    SMALL,
    TABLES,
    Table,
    adult,
    bundled_split,
    covertype_split,
    means_of,
    one_hot,
    paper_split,
    part,
    table_split,
)
from common import print_records, read_results, show, write_results
from setting import machine
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import accuracy_score, average_precision_score, log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC

from svmosaic import MosaicClassifier

MOST_SVC_ROWS, MOST_GRID_ROWS = 50_000, 5000
N_SPLITS = dict.fromkeys(SMALL, 10) | dict.fromkeys(("german_credit", "breast_cancer", "horse_colic", "oil_spill"), 10)
N_SPLITS |= {"mammography": 3, "wine_white": 3}
BUDGET = 30.0  # the default of MosaicClassifier


class Common(TransformerMixin, BaseEstimator):
    """Mean 0, and all columns by one number."""

    def fit(self, X, y=None):
        self.mean_, self.scale_ = X.mean(axis=0), np.sqrt(X.var(axis=0).mean()) or 1.0
        return self

    def transform(self, X):
        return (X - self.mean_) / self.scale_


class Split:
    """Training and test rows of a set, as a frame or as a matrix, whatever a system takes."""

    def __init__(self, train, test, metric="accuracy"):
        self.train, self.test, self.metric = train, test, metric
        classes, counts = np.unique(train[1], return_counts=True)
        self.rare = classes[counts.argmin()] if len(classes) == 2 else None

    @classmethod
    def of(cls, name, split):
        if name in TABLES or name == "adult":
            train, test = adult() if name == "adult" else table_split(name, split)
            return cls((train, train.y), (test, test.y), TABLES[name][3] if name in TABLES else "accuracy")
        if name == "covertype7":
            X, y, Z, z = covertype_split(split)
        else:
            X, y, Z, z = paper_split(name, split) if name in PAPERS else bundled_split(name, split)
        X, Z = (np.asarray(rows, dtype=np.float32 if len(y) > 100_000 else np.float64) for rows in (X, Z))
        return cls((X, y), (Z, z))

    @property
    def is_table(self):
        return isinstance(self.train[0], Table)

    def frames(self):
        (train, y), (test, _) = self.train, self.test
        if not self.is_table:
            return train, test, y
        frames = [train.frame(), test.frame()]
        for name in train.text:
            frames[1][name] = frames[1][name].cat.set_categories(frames[0][name].cat.categories)
        return *frames, y

    def matrices(self):
        (train, y), (test, _) = self.train, self.test
        return (*one_hot(train, test), y) if self.is_table else (train, test, y)


def fit_mosaic(split, seed, budget):
    X, Z, y = split.frames()
    settings = {"metric": split.metric, "n_jobs": THREADS, "random_state": seed}
    if split.metric != "accuracy":
        settings["pos_label"] = split.rare
    model = MosaicClassifier(budget, **settings).fit(X, y)
    parts = ", ".join(f"{weight:.0%} {type(part).__name__}" for weight, part in model.parts_)
    notes = {"budget": budget, "chosen": parts, "tiles": model.mosaic_.n_tiles, "trials": len(model.leaderboard_)}
    return model, Z, notes | {"stop_reason": model.stop_reason_, "held_out_score": round(float(model.best_score_), 5)}


def fit_lightgbm(split, seed, budget):
    from lightgbm import LGBMClassifier

    X, Z, y = split.frames()
    return LGBMClassifier(n_jobs=THREADS, verbose=-1, random_state=seed).fit(X, y), Z, {}


def fit_catboost(split, seed, budget):
    from catboost import CatBoostClassifier

    X, Z, y = split.frames()
    text = split.train[0].text if split.is_table else []
    if text:
        X, Z = (frame.assign(**{name: frame[name].astype(str).fillna("") for name in text}) for frame in (X, Z))
    model = CatBoostClassifier(
        thread_count=THREADS, random_seed=seed, verbose=False, allow_writing_files=False, cat_features=text or None
    )
    return model.fit(X, y), Z, {}


def fit_svc(split, seed, budget):
    X, Z, y = split.matrices()
    pipeline = make_pipeline(StandardScaler(), SVC(cache_size=1000))
    grid = {
        "standardscaler": [StandardScaler(), Common(), RobustScaler(), "passthrough"],
        "svc__C": [0.3, 1.0, 10.0, 100.0],
        "svc__gamma": ["scale", 0.01, 0.1, 1.0],
    }
    few = part(X, y, MOST_GRID_ROWS, seed)
    search = GridSearchCV(pipeline, grid, cv=3, refit=False, scoring=scorer_of(split), n_jobs=THREADS).fit(*few)
    X, y = part(X, y, MOST_SVC_ROWS, seed)
    return pipeline.set_params(**search.best_params_).fit(X, y), Z, {"svc_rows": len(y)}


def scorer_of(split):
    if split.metric == "accuracy":
        return "accuracy"
    return lambda model, X, y: average_precision_score(y == split.rare, _toward(model, X, split.rare))


def fit_forest(split, seed, budget):
    X, Z, y = split.matrices()
    return RandomForestClassifier(300, n_jobs=THREADS, random_state=seed).fit(X, y), Z, {}


def fit_linear(split, seed, budget):
    X, Z, y = split.matrices()
    return make_pipeline(StandardScaler(), LinearSVC(random_state=seed)).fit(X, y), Z, {}


SYSTEMS = {
    "MosaicClassifier": fit_mosaic, "LightGBM": fit_lightgbm, "CatBoost": fit_catboost, "SVC, tuned": fit_svc,
    "RandomForest": fit_forest, "LinearSVC": fit_linear,
}  # fmt: skip
OURS = "MosaicClassifier"


def _toward(model, rows, label):
    """How much a model of two classes thinks that rows are of one of them."""
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(rows))[:, list(model.classes_).index(label)]
    return model.decision_function(rows) * (1 if model.classes_[1] == label else -1)


def size_of(model) -> int:
    """Bytes of what predicts, pickled."""
    return len(pickle.dumps(model.predictor() if hasattr(model, "predictor") else model))


def measure(name, system, number, budget) -> dict | None:
    """One run; None if the system is not installed."""
    split = Split.of(name, number)
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # LightGBM names the features of arrays, and misses them
        try:
            model, rows, notes = SYSTEMS[system](split, number, budget)
        except ImportError as error:
            print(f"{system} is left out: {error}", flush=True)
            return None
        seconds = perf_counter() - start
        truth = split.test[1]
        start = perf_counter()
        found = np.ravel(model.predict(rows))
        predicting = perf_counter() - start
        scores = {"accuracy": accuracy_score(truth, found)}
        if split.rare is not None:
            toward = _toward(model, rows, split.rare)
            scores["average_precision"] = average_precision_score(truth == split.rare, toward)
            scores["roc_auc"] = roc_auc_score(truth == split.rare, toward)
        if hasattr(model, "predict_proba"):
            scores["log_loss"] = log_loss(truth, np.asarray(model.predict_proba(rows)), labels=model.classes_)
    return {
        "set": name, "model": system, "split": number, "score": round(100 * float(scores[split.metric]), 3),
        "metric": split.metric, **{key: round(float(value), 5) for key, value in scores.items()},
        "train_rows": len(split.train[1]), "threads": THREADS, "fit_seconds": round(seconds, 2),
        "predict_microseconds": round(1e6 * predicting / len(truth), 2), "n_bytes": size_of(model), **notes,
    }  # fmt: skip


def merge(files):
    """Put stored runs into results/auto.json, a part each; the last run of a set, system, split and budget counts."""
    before = read_results("auto")
    stored = {part: value["records"] for part, value in before.items() if part in PARTS}
    machines = {part: value["machine"] for part, value in before.items()}
    runs = {}
    for name in PARTS:
        for record in stored.get(name, []):
            # Which processor a run was on, once those of a part are not all of one machine.
            runs[name, *_key(record)] = {"processor": machines[name]["processor"], **record}
    for file in files:
        for line in Path(file).read_text().splitlines():
            record = json.loads(line)
            name = record.pop("part")
            machines[name] = record.pop("machine")
            runs[name, *_key(record)] = {"processor": machines[name]["processor"], **record}
    for name, sets in PARTS.items():
        records = [record for key, record in runs.items() if key[0] == name]
        if not records:
            continue
        records.sort(
            key=lambda r: (sets.index(r["set"]), list(SYSTEMS).index(r["model"]), r.get("budget", 0), r["split"])
        )
        write_results("auto", name, records, on=machines[name])
        show_means(name, records)


def merge_short(files):
    """Put means of our runs with a short budget into results/auto.json."""
    lines = [json.loads(line) for file in files for line in Path(file).read_text().splitlines()]
    keys = ("set", "budget", "splits", "score", "fit_seconds")
    records = [{key: run[key] for key in keys} for run in means_of(lines).values()]
    write_results("auto", "short", records, on=lines[-1]["machine"])


def _key(record):
    return record["set"], record["model"], record["split"], record.get("budget")


def show_means(title, records):
    """Print the means of each set and system over its splits."""
    columns = ["set", "model", "score", "std", "log_loss", "fit_seconds", "predict_microseconds", "chosen"]
    means = [r | {"set": name, "model": model} for (name, model), r in means_of(records).items()]
    print_records(title, means, columns)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="bundled sets only")
    parser.add_argument("--part", choices=PARTS, help="one part; all by default")
    parser.add_argument("--sets", help="names with commas between")
    parser.add_argument("--only", choices=SYSTEMS, help="one system")
    parser.add_argument("--splits", type=int, help="splits of each set")
    parser.add_argument("--first-split", type=int, default=0, help="the number of the first split")
    parser.add_argument("--budget", type=float, help="seconds for MosaicClassifier")
    parser.add_argument("--threads", type=int, default=1, help="for every system")
    parser.add_argument("--out", default="auto_runs.jsonl", help="file to which each run is appended")
    parser.add_argument("--merge", nargs="+", metavar="FILE", help="put runs into results/auto.json, and end")
    parser.add_argument("--short", nargs="+", metavar="FILE", help="the same for runs with a short budget")
    options = parser.parse_args()
    if options.short:
        return merge_short(options.short)
    if options.merge:
        return merge(options.merge)
    parts, records = {"bundled": tuple(BUNDLED)} if options.quick else PARTS, []
    for name, sets in parts.items():
        for one in sets if options.part in (None, name) else ():
            if options.sets is None or one in options.sets.split(","):
                records += _run(name, one, options)
    show_means("quick" if options.quick else "runs", records)


def _run(part_name, name, options):
    systems = [options.only] if options.only else list(SYSTEMS)
    budget = options.budget or (3.0 if options.quick else BUDGETS.get(name, BUDGET))
    n_splits = 1 if options.quick else options.splits or N_SPLITS.get(name, 1)
    systems = [s for s in systems if not (options.quick and s in ("CatBoost", "SVC, tuned"))]
    for number in range(options.first_split, options.first_split + n_splits):
        for system in systems:
            record = measure(name, system, number, budget)
            if record is None:
                continue
            yield record
            show(record)
            if not options.quick:
                with open(options.out, "a") as file:
                    file.write(json.dumps({"part": part_name, **record, "machine": machine()}) + "\n")


if __name__ == "__main__":
    main()
