"""LocallyLinearSVC on the papers' sets: error beside the papers', time beside a kernel SVM's.

Everything is as by default, which `study_defaults.py` found best on held-out parts of the training sets, but for C,
which is chosen here, on a held-out fifth of the training part. Images and ijcnn1 have rows of unit norm, as in the
papers; other features are standardized. On MNIST the fit and the prediction are timed beside scikit-learn-intelex's
`SVC` (or scikit-learn's, where that is not installed) in the same run, and the fit is split into its stages.

    python benchmarks/bench_local.py            # needs the data folder; writes benchmarks/results/local.json
    python benchmarks/bench_local.py --quick    # digits only
"""

import warnings
from time import perf_counter

import numpy as np
from auto_data import digits_split
from common import arguments, print_records, write_results  # first: it sets the number of threads
from setting import Dataset, load
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize

from svmosaic import LinearSVC, LocallyLinearSVC

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
    if name == "digits":
        X, X_test, y, y_test = digits_split()
        return Dataset(normalize(X).astype(np.float32), y, normalize(X_test).astype(np.float32), y_test)
    data = load(name)
    if name in ("usps", "mnist", "ijcnn1"):
        return Dataset(normalize(data.X_train), data.y_train, normalize(data.X_test), data.y_test)
    mean, std = data.X_train.mean(axis=0), np.maximum(data.X_train.std(axis=0), 1e-12)
    return Dataset((data.X_train - mean) / std, data.y_train, (data.X_test - mean) / std, data.y_test)


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

    from svmosaic.estimators._progress import Progress
    from svmosaic.estimators.data import Data, validate_training

    rows = Data.of(*validate_training(model, data.X_train, data.y_train))
    rng, options = check_random_state(0), model._options()
    gate, anchors = timed(model._gate, rows, rng)
    _, coding = timed(rows.encode, gate, options)
    _, solving = timed(model._solving or Data.solve, rows, model._coupling(gate.n_tiles), options, Progress(model), rng)
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
    options = arguments(__doc__, sets=[name for name, *_ in RUNS], repeats={"type": int, "default": 1})
    records = []
    if options.quick:
        runs = [("digits", {"n_anchors": 50}, None, None)]
    else:
        runs = [run for run in RUNS if run[0] in options.sets]
    for name, settings, published, wanted in runs:
        data = prepared(name)
        settings = with_chosen_cost(data, settings)
        record = measure(name, data, settings, options.repeats)
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
        print(record, flush=True)
    columns = ["set", "settings", "error", "deviation", "published_error", "linear_error", "fit_seconds"]
    print_records("LocallyLinearSVC", records, [*columns, "row_microseconds"])
    write_results("local", "runs", records, {"repeats": options.repeats}, options)


if __name__ == "__main__":
    main()
