"""Boosted trees against LightGBM: seconds for as many rounds and leaves, and the loss of held-out rows.

100 rounds of trees with 31 leaves on seven tenths of at most 30,000 training rows of each set (covertype7: of 400,000
training rows), after a first fit that is not timed; no test row is read.

    python benchmarks/bench_boosting.py --threads 1 2      # results/boosting.json
    python benchmarks/bench_boosting.py --quick
"""

from common import arguments, fastest, print_records, write_results  # isort: skip; first: it sets the number of threads

from time import perf_counter

import numpy as np
from auto_data import covertype_split
from bench_anytime import MOST_ROWS
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from study_search import training_rows

from svmosaic import BoostedTreesClassifier, BoostedTreesRegressor

SETS = (
    "german_credit",
    "mammography",
    "wine_white",
    "adult",
    "letter",
    "satimage",
    "ijcnn1",
    "beijing_pm25, values",
    "covertype7",
)
SETTINGS = {"learning_rate": 0.1, "max_leaves": 31, "min_rows_per_leaf": 20, "l2": 0.0, "column_share": 1.0}


def rows_of(name):
    """Rows to fit and rows to judge by."""
    if name == "covertype7":
        X, y, _, _ = covertype_split(0)
        X, y, task = np.ascontiguousarray(X[:400_000], dtype=np.float64), y[:400_000], "classification"
    else:
        X, y, task = training_rows(name, MOST_ROWS)
    is_class = task == "classification"
    return *train_test_split(X, y, test_size=0.3, stratify=y if is_class else None, random_state=0), is_class


def measure(name, n_threads, quick):
    """A line: seconds and losses of both."""
    from lightgbm import LGBMClassifier, LGBMRegressor

    X, Z, y, z, is_class = rows_of(name)
    peer = (LGBMClassifier if is_class else LGBMRegressor)(n_jobs=n_threads, verbose=-1)
    ours = (BoostedTreesClassifier if is_class else BoostedTreesRegressor)(
        100, early_stopping=False, n_jobs=n_threads, random_state=0, **SETTINGS
    )
    line = {"set": name, "rows": len(X), "columns": X.shape[1], "threads": n_threads}
    for title, model in (("ours", ours), ("LightGBM", peer)):
        seconds = fastest(
            lambda model=model: model.fit(X, y), repeats=1 if quick or len(X) > 50_000 else 3, clock=perf_counter
        )
        found = model.predict_proba(Z) if is_class else model.predict(Z)
        loss = log_loss(z, found, labels=model.classes_) if is_class else np.mean((found - z) ** 2) / np.var(z)
        line |= {f"{title}, s": round(seconds, 3), f"{title}, loss": round(float(loss), 4)}
    return line | {"ratio": round(line["ours, s"] / line["LightGBM, s"], 2)}


if __name__ == "__main__":
    options = arguments(__doc__, sets=SETS, out=True,
                        threads={"type": int, "nargs": "+", "default": [1], "help": "numbers of threads"})  # fmt: skip
    sets, threads = (["wine"], [1]) if options.quick else (options.sets, options.threads)
    try:
        records = [measure(name, n_threads, options.quick) for n_threads in threads for name in sets]
    except ImportError:
        if not options.quick:
            raise
        print("LightGBM is not installed (extra `bench`): nothing to compare with")
    else:
        print_records("boosted trees", records)
        write_results("boosting", "training rows", records, None, options)
