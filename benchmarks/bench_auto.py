"""MosaicClassifier() as it comes, beside a tuned RBF SVC and LightGBM as it comes: accuracy and mean ranks.

SVC: standardised features, C and gamma from a grid by three-fold cross-validation on at most 3000 rows, then fitted to
at most 10,000 rows (`svc_rows` says to how many, so that it ends). MosaicClassifier and LightGBM get all training rows,
but for MNIST and covertype, which are cut to 10,000 and 50,000 for all three. Accuracies are of the official test
parts, or of a tenth of the rows where there is none; for sets of fewer than 2000 rows they are means over ten such
splits.

    python benchmarks/bench_auto.py            # needs the data folder; writes benchmarks/results/auto.json
    python benchmarks/bench_auto.py --quick    # bundled sets only, about a minute; writes nothing
    python benchmarks/bench_auto.py --sets heart,vehicle --budget 30
"""

import argparse
import warnings
from time import perf_counter

import numpy as np
from common import gradient_boosting, print_table, read_results, write_results  # first: it sets the number of threads
from scipy.stats import rankdata
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from svmosaic import MosaicClassifier
from svmosaic.datasets import Dataset, load

SETS = (
    "heart", "vehicle", "diabetes", "german", "svmguide1", "satimage", "pendigits", "usps", "letter", "ijcnn1", "skin",
    "mnist", "covtype",
)  # fmt: skip
# Training rows for all three models, where not all.
CUT = {"mnist": 10_000, "covtype": 50_000}
# Sets without an official split that are too small for one split to say much.
SPLITS = dict.fromkeys(("heart", "vehicle", "diabetes", "german"), 10)
MOST_SVC_ROWS, MOST_GRID_ROWS = 10_000, 3000
GRID = {"svc__C": [1.0, 10.0, 100.0], "svc__gamma": ["scale", 0.01, 0.1, 1.0]}
MODELS = ("MosaicClassifier", "SVC, tuned", "LightGBM")
QUICK = {"wine": load_wine, "breast_cancer": load_breast_cancer, "digits": load_digits}


def part(X, y, n_rows, seed=0):
    """At most so many rows, with the shares of the classes."""
    if len(y) <= n_rows:
        return X, y
    X, _, y, _ = train_test_split(X, y, train_size=n_rows, stratify=y, random_state=seed)
    return X, y


def read(name, split):
    data = load(name, random_state=split)
    if name in CUT:
        X, y = part(data.X_train, data.y_train, CUT[name])
        data = Dataset(X, y, data.X_test, data.y_test)
    return data


def bundled(name, split):
    X, y = QUICK[name](return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=split)
    return Dataset(X, y, X_test, y_test)


def fit_mosaic(X, y, seed, budget):
    model = MosaicClassifier(budget, random_state=seed).fit(X, y)
    best = next(line for line in model.leaderboard_ if line["chosen"])
    chosen = f"{type(model.best_estimator_).__name__} of {model.mosaic_.n_tiles} tiles, {best['scaling']} scaling"
    return model, {"chosen": chosen, "budget_bound": model.budget_bound_}


def fit_svc(X, y, seed, budget):
    pipeline = make_pipeline(StandardScaler(), SVC(cache_size=1000))
    search = GridSearchCV(pipeline, GRID, cv=3, refit=False).fit(*part(X, y, MOST_GRID_ROWS, seed))
    X, y = part(X, y, MOST_SVC_ROWS, seed)
    return pipeline.set_params(**search.best_params_).fit(X, y), {"svc_rows": len(y)}


def fit_lightgbm(X, y, seed, budget):
    return gradient_boosting(random_state=seed).fit(X, y), {}


FITS = dict(zip(MODELS, (fit_mosaic, fit_svc, fit_lightgbm), strict=True))


def measure(name, reader, n_splits, budget):
    """One record for each model."""
    for model, fit in FITS.items():
        accuracies, seconds, notes = [], [], {}
        for split in range(n_splits):
            data = reader(name, split)
            start = perf_counter()
            fitted, notes = fit(data.X_train, data.y_train, split, budget)
            seconds.append(perf_counter() - start)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # LightGBM names the features of arrays, and misses them
                accuracies.append(100 * float(np.mean(fitted.predict(data.X_test) == data.y_test)))
        yield {
            "set": name, "model": model, "accuracy": round(float(np.mean(accuracies)), 3),
            "std": round(float(np.std(accuracies)), 3), "splits": n_splits, "train_rows": len(data.y_train),
            "fit_seconds": round(float(np.mean(seconds)), 2), **notes,
        }  # fmt: skip


def mean_ranks(records):
    """Mean over the sets of the place of each model, 1 the best; equals share their places."""
    sets = sorted({r["set"] for r in records})
    table = np.array(
        [[next(r["accuracy"] for r in records if (r["set"], r["model"]) == (s, m)) for m in MODELS] for s in sets]
    )
    three = np.mean([rankdata(-row) for row in table], axis=0)
    two = np.mean([rankdata(-row[[0, 2]]) for row in table], axis=0)
    wins = int((table[:, 0] > table[:, 2]).sum())
    return {
        "sets": len(sets),
        "mean_rank": dict(zip(MODELS, np.round(three, 3).tolist(), strict=True)),
        "mean_rank_beside_lightgbm": dict(zip((MODELS[0], MODELS[2]), np.round(two, 3).tolist(), strict=True)),
        "better_than_lightgbm": wins,
        "mean_accuracy": dict(zip(MODELS, np.round(table.mean(axis=0), 3).tolist(), strict=True)),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="bundled sets only")
    parser.add_argument("--sets", help="names with commas between; others keep what an earlier run stored")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds for MosaicClassifier; its default is 60")
    options = parser.parse_args()
    chosen = options.sets.split(",") if options.sets else list(SETS)
    records = []
    if options.sets:
        stored = read_results("auto").get("accuracy", {"records": []})["records"]
        records = [r for r in stored if r["set"] not in chosen]
    for name in QUICK if options.quick else chosen:
        records += measure(
            name, bundled if options.quick else read, 1 if options.quick else SPLITS.get(name, 1),
            10.0 if options.quick else options.budget,
        )  # fmt: skip
        rows = [
            [str(r.get(c, "")) for c in ("model", "accuracy", "std", "fit_seconds", "chosen")] for r in records[-3:]
        ]
        print_table(name, ["model", "accuracy", "std", "fit_seconds", "chosen"], rows)
    summary = mean_ranks(records)
    print(summary)
    if not options.quick:
        order = {name: i for i, name in enumerate(SETS)}
        write_results("auto", "accuracy", sorted(records, key=lambda r: order.get(r["set"], 99)), summary)


if __name__ == "__main__":
    main()
