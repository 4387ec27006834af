"""LearnedGateSVC beside LocallyLinearSVC: the same numbers of tiles, learnt regions against fixed ones.

Features are standardised by the training part. Times are processor seconds of one thread.

    python benchmarks/bench_learned.py            # needs the data folder; writes benchmarks/results/learned.json
    python benchmarks/bench_learned.py --quick    # digits only, under 15 seconds; writes nothing
"""

import argparse
from time import process_time

import numpy as np
from common import print_table, write_results  # first: it sets the number of threads
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from svmosaic import LearnedGateSVC, LocallyLinearSVC
from svmosaic.datasets import Dataset, load

# set, tiles
RUNS = (("ijcnn1", 32), ("letter", 100), ("satimage", 50))


def standardised(data):
    mean, std = data.X_train.mean(axis=0), np.maximum(data.X_train.std(axis=0), 1e-12)
    train, test = (((X - mean) / std).astype(np.float32) for X in (data.X_train, data.X_test))
    return Dataset(train, data.y_train, test, data.y_test)


def digits():
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
    return Dataset(X, y, X_test, y_test)


def timed(function, *arguments):
    start = process_time()
    value = function(*arguments)
    return value, process_time() - start


def measure(name, data, n_tiles):
    """One record for each model."""
    fixed = {"n_anchors": n_tiles, "loss": "squared_hinge"}
    models = {
        "learnt": LearnedGateSVC(n_tiles, random_state=0),
        "learnt, polished": LearnedGateSVC(n_tiles, polish=True, random_state=0),
        "fixed": LocallyLinearSVC(**fixed, random_state=0),
    }
    for kind, model in models.items():
        _, fit = timed(model.fit, data.X_train, data.y_train)
        predictor = model.predictor()
        predictor.predict(data.X_test[:100])
        predicted, prediction = timed(predictor.predict, data.X_test)
        yield {
            "set": name, "tiles": n_tiles, "model": kind,
            "accuracy": round(100 * float(np.mean(predicted == data.y_test)), 2), "fit_seconds": round(fit, 2),
            "row_microseconds": round(1e6 * prediction / len(data.y_test), 2),
            "kept_polished": bool(getattr(model, "polished_", False)),
        }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="digits only")
    quick = parser.parse_args().quick
    records = []
    for name, n_tiles in (("digits", 20),) if quick else RUNS:
        data = standardised(digits() if quick else load(name))
        records += measure(name, data, n_tiles)
    columns = ["set", "tiles", "model", "accuracy", "fit_seconds", "row_microseconds", "kept_polished"]
    print_table("Learnt and fixed regions", columns, [[str(record[c]) for c in columns] for record in records])
    if not quick:
        best = {name: max(r["accuracy"] for r in records if r["set"] == name) for name, _ in RUNS}
        write_results("learned", "accuracy", records, {"best_accuracy": best})


if __name__ == "__main__":
    main()
