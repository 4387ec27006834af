"""LocallyLinearSVC on the papers' sets: error beside the papers', time beside a kernel SVM's.

Everything is as by default, which `study_local.py` found best on held-out parts of the training sets, but for C: it is
chosen here, on a held-out fifth of the training part. Images and ijcnn1 have rows of unit norm, as in the papers;
other features are standardized.
On MNIST the fit and the prediction are timed beside scikit-learn-intelex's `SVC` (or scikit-learn's, where that is not
installed) in the same run, and the fit is split into its stages.

    python benchmarks/bench_local.py            # needs the data folder; writes benchmarks/results/local.json
    python benchmarks/bench_local.py --quick    # digits only
"""

import argparse
import warnings
from time import perf_counter

import numpy as np
from common import print_table, write_results  # first: it sets the number of threads
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize

from svmosaic import LinearSVC, LocallyLinearSVC
from svmosaic.datasets import Dataset, load

# set, settings beside the defaults, published error of LL-SVM, error asked for
COSTS = (1.0, 10.0, 100.0)
RUNS = (
    ("mnist", {}, 1.85, 1.75),
    ("usps", {}, 5.78, 5.55),
    ("letter", {}, 5.32, 4.6),
    ("letter", {"n_anchors": 260}, 5.32, 4.2),
    ("ijcnn1", {}, 5.93, 1.5),
)


def prepared(name):
    """The set as float32: rows of unit norm where the papers have them, else standardized by the training part."""
    data = load(name)
    if name in ("usps", "mnist", "ijcnn1"):
        return Dataset(normalize(data.X_train), data.y_train, normalize(data.X_test), data.y_test)
    mean, std = data.X_train.mean(axis=0), np.maximum(data.X_train.std(axis=0), 1e-12)
    return Dataset((data.X_train - mean) / std, data.y_train, (data.X_test - mean) / std, data.y_test)


def digits():
    """scikit-learn's bundled digits, for --quick."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(normalize(X).astype(np.float32), y, test_size=0.3, random_state=0)
    return Dataset(X, y, X_test, y_test)


def with_chosen_cost(data, settings):
    """The settings with the C that does best on a held-out fifth of the training part."""
    X, X_held, y, y_held = train_test_split(
        data.X_train, data.y_train, test_size=0.2, random_state=0, stratify=data.y_train
    )
    scores = {}
    for cost in COSTS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = LocallyLinearSVC(**settings, C=cost, max_iter=100, random_state=0, n_jobs=2).fit(X, y)
        scores[cost] = model.score(X_held, y_held)
    return {**settings, "C": max(scores, key=scores.get)}


def timed(function, *arguments):
    start = perf_counter()
    value = function(*arguments)
    return value, perf_counter() - start


def stages(model, data):
    """Seconds for anchors, codes and tiles, by calling the estimator's own steps."""
    from sklearn.utils import check_random_state
    from svmosaic.estimators._composed_fit import MemoryRows

    from svmosaic._validation import validate_training
    from svmosaic.estimators._progress import Progress

    rows = MemoryRows.of(*validate_training(model, data.X_train, data.y_train))
    rng, options = check_random_state(0), model._options()
    gate, anchors = timed(model._fit_gate, rows, rng)
    _, coding = timed(rows.encode, gate, options)
    _, solving = timed(model._solving(), rows, model._couple(gate.n_tiles), options, Progress(model), rng)
    return {"anchors": anchors, "coding": coding, "solving": solving}


def measure(name, data, settings, repeats):
    """Mean and deviation of the error over seeds, with time to fit and to predict a row."""
    errors, fits, rows = [], [], []
    for seed in range(repeats):
        model = LocallyLinearSVC(**settings, random_state=seed, n_jobs=2)
        _, seconds = timed(model.fit, data.X_train, data.y_train)
        model.predict(data.X_test[:100])
        predicted, prediction = timed(model.predict, data.X_test)
        errors.append(100 * float(np.mean(predicted != data.y_test)))
        fits.append(seconds)
        rows.append(1e6 * prediction / len(data.y_test))
    return {
        "set": name, "settings": {"n_neighbors": LocallyLinearSVC().n_neighbors, **settings},
        "error": round(float(np.mean(errors)), 3),
        "deviation": round(float(np.std(errors)), 3), "repeats": repeats, "fit_seconds": round(min(fits), 3),
        "row_microseconds": round(min(rows), 3),
    }  # fmt: skip


def kernel_svm(data):
    """The kernel SVM that a user would pick: scikit-learn-intelex's where it is installed."""
    try:
        from sklearnex.svm import SVC

        peer = "scikit-learn-intelex SVC"
    except ImportError:
        from sklearn.svm import SVC

        peer = "scikit-learn SVC"
    # Fixed, sensible on rows of unit norm, but not tuned.
    model = SVC(C=10.0, gamma=5.0)
    _, seconds = timed(model.fit, data.X_train, data.y_train)
    predicted, prediction = timed(model.predict, data.X_test)
    return {
        "peer": peer, "error": round(100 * float(np.mean(predicted != data.y_test)), 3),
        "fit_seconds": round(seconds, 2), "row_microseconds": round(1e6 * prediction / len(data.y_test), 2),
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="bundled digits only, nothing is written")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--only", nargs="*")
    arguments = parser.parse_args()
    records, rows = [], []
    if arguments.quick:
        runs = [("digits", {"n_anchors": 50}, None, None)]
    else:
        runs = [run for run in RUNS if not arguments.only or run[0] in arguments.only]
    for name, settings, published, wanted in runs:
        data = digits() if name == "digits" else prepared(name)
        settings = with_chosen_cost(data, settings)
        record = measure(name, data, settings, arguments.repeats)
        linear = LinearSVC(random_state=0, n_jobs=2).fit(data.X_train, data.y_train)
        record |= {
            "linear_error": round(100 * (1 - linear.score(data.X_test, data.y_test)), 3),
            "published_error": published, "wanted_error": wanted,
        }  # fmt: skip
        if name in ("mnist", "digits"):
            record["stages"] = {
                key: round(value, 3) for key, value in stages(LocallyLinearSVC(**settings, n_jobs=2), data).items()
            }
            record["kernel"] = kernel_svm(data)
        records.append(record)
        rows.append(
            [name, settings.get("n_anchors", 100), record["error"], record["deviation"], published or "-",
             record["linear_error"], record["fit_seconds"], record["row_microseconds"]]
        )  # fmt: skip
        print(record, flush=True)
    print_table("LocallyLinearSVC", ["set", "anchors", "error %", "+-", "paper %", "linear %", "fit s", "us/row"], rows)
    for record in records:
        if "kernel" in record:
            kernel, total = record["kernel"], sum(record["stages"].values())
            placed = record["stages"]["anchors"] + record["stages"]["coding"]
            print(
                f"{record['set']}: {kernel['peer']} error {kernel['error']} %; our fit is "
                f"{kernel['fit_seconds'] / record['fit_seconds']:.1f} times faster, prediction "
                f"{kernel['row_microseconds'] / record['row_microseconds']:.1f} times; anchors and codes take "
                f"{placed / total:.0%} of our fit"
            )
    if not arguments.quick:
        write_results("local", "runs", records, {"repeats": arguments.repeats})


if __name__ == "__main__":
    main()
