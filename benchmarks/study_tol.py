"""What `tol` buys: accuracy on held-out training rows, and processor seconds, of looser and tighter fits.

Each estimator is fitted to training rows of each set with every `tol`, and scored on other training rows, in folds;
test rows are never looked at. The default should be the loosest `tol` that costs less than 0.05 points on every set,
compared with the tightest. Where there are few rows, a single row is more than that: `rows_apart` is the number of
held-out rows by which two fits differ.

    python benchmarks/study_tol.py [--sets usps letter] [--jobs 16] [--out FILE] [--quick]
"""

from concurrent.futures import ThreadPoolExecutor
from time import process_time

from common import arguments, print_records, run_child, write_results  # before NumPy: it gives every library one thread

# isort: split
import numpy as np
from setting import load
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

from svmosaic import ClusteredSVC, KMeansSVC, LinearSVC, LocallyLinearSVC
from svmosaic.datasets import make_xor

SETS = (
    "covtype", "mnist", "usps", "letter", "ijcnn1", "skin", "pendigits", "satimage", "svmguide1", "vehicle", "german",
    "diabetes", "heart",
)  # fmt: skip
TOLS = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 1e-4)
MODELS = {
    "LinearSVC": LinearSVC(random_state=0),
    "KMeansSVC": KMeansSVC(16, random_state=0),
    "ClusteredSVC": ClusteredSVC(16, random_state=0),
    "LocallyLinearSVC": LocallyLinearSVC(50, random_state=0),
}
MOST_ROWS, FOLDS = 12_000, 3


def main():
    options = arguments(
        __doc__,
        sets=SETS,
        out=True,
        jobs={"type": int, "default": 1, "help": "fits at a time, each a process"},
        limit={"type": float, "default": 150.0, "help": "seconds for the folds of one fit"},
    )
    with ThreadPoolExecutor(options.jobs) as pool:
        asked = {
            name: (len(X), [(model, tol, pool.submit(study, model, X, y, tol, options.limit))
                            for model in MODELS for tol in ((1e-1, 1e-3) if options.quick else TOLS)])
            for name, X, y in data(options)
        }  # fmt: skip
        for name, (n_rows, fits) in asked.items():
            records = compared([(model, tol, future.result()) for model, tol, future in fits], n_rows)
            print_records(f"{name}, {n_rows} rows", records)
            write_results("tol", name, records, {"rows": n_rows, "folds": FOLDS}, options)


def data(options):
    """Name, rows and labels of each set: some of its training rows."""
    if options.quick:
        yield "xor", *make_xor(random_state=0)
        return
    for name in options.sets:
        found = load(name, download=False)
        order = np.random.default_rng(0).permutation(len(found.X_train))[:MOST_ROWS]
        X = found.X_train[order]
        yield name, X.toarray() if hasattr(X, "toarray") else X, found.y_train[order]


def study(model, X, y, tol, limit):
    """Rows that are answered right when held out, and processor seconds of the fits; None past the limit."""

    def folds():
        right, seconds = 0, 0.0
        for train, held_out in KFold(FOLDS, shuffle=True, random_state=0).split(X):
            scaler = StandardScaler().fit(X[train])
            rows, others = (scaler.transform(X[here]).astype(np.float32) for here in (train, held_out))
            fitted = clone(MODELS[model]).set_params(tol=tol)
            began = process_time()
            fitted.fit(rows, y[train])
            seconds += process_time() - began
            right += int((fitted.predict(others) == y[held_out]).sum())
        return right, seconds

    return run_child(folds, limit=limit).value


def compared(fits, n_rows):
    """A record per fit that ended, with what it lost compared with the tightest one of its model."""
    done = [(model, tol, found) for model, tol, found in fits if found is not None]
    records = []
    for model, tol, (right, seconds) in done:
        _, best = min((other_tol, other[0]) for name, other_tol, other in done if name == model)
        records.append({"model": model, "tol": tol, "accuracy": round(100 * right / n_rows, 3),
                        "rows_apart": best - right, "points_lost": round(100 * (best - right) / n_rows, 3),
                        "processor_seconds": round(seconds, 3)})  # fmt: skip
    return records


if __name__ == "__main__":
    main()
