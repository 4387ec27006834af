"""What does a prediction cost, one row at a time and in batches, and how good are the probabilities?

Every estimator of the library and its peers, trained on the same rows. Times are processor time, the best of several
repeats on one thread, in microseconds per row.
Beside each of our models stands the arithmetic lower bound: its multiply-adds at the machine's measured rate of a
matrix product, or its bytes at the measured rate of reading memory, whichever takes longer.

    python benchmarks/bench_predict.py [--quick]

--quick runs on synthetic data; otherwise SVMOSAIC_DATA must name the data folder. Peers that are not installed are left
out, each with a line that says so (the extra `bench` installs them).
"""

from common import RESULTS, arguments, show, write_document  # isort: skip; first: it sets the number of threads

import json
import pickle
import tempfile
import warnings
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from time import process_time

import numpy as np
import sklearn.svm
from setting import Dataset, data_folder, load, machine
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, normalize

from svmosaic import (
    ClusteredSVC,
    FusedSVC,
    GaussianMixtureClassifier,
    HierarchicalMixtureSVC,
    KMeansSVC,
    LearnedGateSVC,
    LinearSVC,
    LocalCodingSVC,
    LocallyLinearSVC,
    MixtureSVC,
    MultiTaskMixtureSVC,
    NeighborsSVC,
    svm_to_mixture,
)
from svmosaic.gates import GaussianGate, ProjectedGate
from svmosaic.gates.softmax_tree import SoftmaxTree


def main():
    probabilities = {"action": "store_true", "help": "only these, into the report that is stored"}
    options = arguments(__doc__, probabilities=probabilities)
    quick = options.quick
    if not quick and data_folder() is None:
        raise SystemExit("SVMOSAIC_DATA does not name a folder; --quick needs none")
    warnings.simplefilter("ignore", ConvergenceWarning)
    if options.probabilities and not quick:
        return finish(json.loads((RESULTS / "predict.json").read_text()), options)
    rates = machine_rates(0.05 if quick else 1.0)
    print(f"measured: {rates['macs'] / 1e9:.1f} G multiply-adds/s, {rates['bytes'] / 1e9:.1f} GB/s read, one thread")
    sets = quick_sets() if quick else real_sets()
    rows = {name: len(data.y_train) for name, data in sets.items()}
    report = {"machine": machine(), "rates": rates, "train_rows": rows, "cost": {}, "probabilities": {}}
    for name, data in sets.items():
        report["cost"][name] = measure_costs(name, data, rates, quick)
    finish(report, options)


def finish(report, options):
    """The probabilities, and the file."""
    for name, data in (quick_sets() if options.quick else calibration_sets()).items():
        report["probabilities"][name] = measure_probabilities(name, data, options.quick)
    report["probabilities_machine"] = machine()
    write_document("predict", report, options)


# ---- data --------------------------------------------------------------------------------


def scaled(data, rows, *, how="standard"):
    """At most `rows` training rows, standardized or (images) of unit norm."""
    chosen = np.random.RandomState(0).permutation(len(data.y_train))[:rows]
    X, X_test = data.X_train[chosen], data.X_test
    if how == "unit":
        X, X_test = normalize(X), normalize(X_test)
    else:
        scaler = StandardScaler().fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
    as_rows = lambda A: np.ascontiguousarray(A, dtype=np.float32)  # noqa: E731
    return Dataset(as_rows(X), data.y_train[chosen], as_rows(X_test), data.y_test)


def real_sets():
    return {"ijcnn1": scaled(load("ijcnn1"), 12_000), "mnist": scaled(load("mnist"), 15_000, how="unit")}


def calibration_sets():
    return {
        "ijcnn1": scaled(load("ijcnn1"), 4000),
        "satimage": scaled(load("satimage"), 4000),
        "usps": scaled(load("usps"), 4000, how="unit"),
    }


def quick_sets():
    sets = {}
    for name, n_classes, d in (("two classes", 2, 20), ("three classes", 3, 40)):
        X, y = make_classification(1000, d, n_informative=10, n_classes=n_classes, class_sep=1.5, random_state=0)
        sets[name] = scaled(Dataset(X[:400], y[:400], X[400:], y[400:]), 400)
    return sets


# ---- models --------------------------------------------------------------------------------


def our_models(n_tiles, n_features):
    wide = n_features > 200  # a full covariance per tile would have more numbers than there are rows
    models = {
        "LinearSVC": LinearSVC(tol=1e-3, random_state=0),
        "KMeansSVC": KMeansSVC(n_tiles, tol=1e-2, random_state=0),
        "ClusteredSVC": ClusteredSVC(n_tiles, tol=1e-2, random_state=0),
        "LocallyLinearSVC": LocallyLinearSVC(n_tiles, tol=1e-2, random_state=0),
        "LocalCodingSVC": LocalCodingSVC(n_tiles, tol=1e-2, random_state=0),
        "LearnedGateSVC": LearnedGateSVC(n_tiles, max_iter=10, random_state=0),
        "MixtureSVC": MixtureSVC(20, max_iter=10, random_state=0),
        "HierarchicalMixtureSVC": HierarchicalMixtureSVC((4, 5), max_iter=10, random_state=0),
        "MultiTaskMixtureSVC": MultiTaskMixtureSVC(
            14, covariance="isotropic" if wide else "full", covariance_floor=1e-3, max_iter=5, random_state=0
        ),
        "GaussianMixtureClassifier": GaussianMixtureClassifier(4, random_state=0),
        "NeighborsSVC": NeighborsSVC(50, tol=1e-2, random_state=0),
    }
    if not wide:  # one kernel machine per class takes minutes to train on images
        models["FusedSVC"] = FusedSVC(sklearn.svm.SVC(C=10), weight=0.5, random_state=0)
    return models


def peer_models(X, y, quick):
    """Fitted peers: name -> (predict of a batch, object for its size)."""
    peers = {}
    linear = sklearn.svm.LinearSVC(random_state=0).fit(X, y)
    peers["scikit-learn LinearSVC"] = (linear.predict, linear)
    kernel = sklearn.svm.SVC(C=10).fit(X, y)
    peers["scikit-learn SVC"] = (kernel.predict, kernel)
    if len(kernel.classes_) == 2:  # the same machine, whole and with a tenth of its support vectors, in our core
        whole = svm_to_mixture(kernel)
        few = svm_to_mixture(kernel, max_densities=max(1, len(whole.centers) // 10), X=X, random_state=0)
        peers["SVC by svm_to_mixture"] = (whole.predict, whole)
        peers["SVC by svm_to_mixture, a tenth"] = (few.predict, few)
    intelex = installed("sklearnex.svm", "scikit-learn-intelex SVC")
    if intelex:
        fast = intelex.SVC(C=10).fit(X, y)
        peers["scikit-learn-intelex SVC"] = (fast.predict, fast)
    mapped = make_pipeline(Nystroem(n_components=100 if quick else 300, random_state=0), sklearn.svm.LinearSVC())
    mapped.fit(X, y)
    peers["Nystroem + LinearSVC"] = (mapped.predict, mapped)
    lightgbm = installed("lightgbm", "LightGBM")
    if lightgbm:
        labels = np.unique(y, return_inverse=True)[1]
        n_classes = int(labels.max()) + 1
        options = {"objective": "binary"} if n_classes == 2 else {"objective": "multiclass", "num_class": n_classes}
        booster = lightgbm.train(
            {**options, "verbosity": -1, "num_threads": 1}, lightgbm.Dataset(X, labels), 10 if quick else 100
        )
        winner = (lambda p: p > 0.5) if n_classes == 2 else (lambda p: p.argmax(axis=1))
        classes = np.unique(y)
        peers["LightGBM native"] = (lambda A: classes[winner(booster.predict(A)).astype(int)], booster)
        lleaves = installed("lleaves", "LightGBM compiled by lleaves")
        if lleaves and booster.num_trees() > 200:
            print(f"  LightGBM by lleaves: compiling {booster.num_trees()} trees takes many minutes, left out")
        elif lleaves:
            with tempfile.TemporaryDirectory() as folder:
                path = str(Path(folder) / "model.txt")
                booster.save_model(path)
                compiled = lleaves.Model(model_file=path)
                compiled.compile()
            predict = lambda A: classes[winner(compiled.predict(A, n_jobs=1)).astype(int)]  # noqa: E731
            peers["LightGBM by lleaves"] = (predict, booster)
    return peers


@cache
def installed(module, what):
    try:
        return import_module(module)
    except ImportError:
        print(f"  {what}: not installed, left out")
        return None


def onnx_session(model):
    """Our export in onnxruntime on one thread: a function of a batch, and the size of the file."""
    runtime = installed("onnxruntime", "onnxruntime")
    if runtime is None:
        return None, None
    data = model.to_onnx().SerializeToString()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = runtime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return (lambda X: session.run(["label"], {"X": X})[0]), len(data)


# ---- costs --------------------------------------------------------------------------------


def best_seconds(work, *, at_least, repeats=5):
    """Processor seconds of one call: the best mean of several rounds that each take a while.

    With one thread that is the time on an idle machine, whatever else runs.
    """
    work()
    start = process_time()
    work()
    once = max(process_time() - start, 1e-7)
    n = max(1, int(at_least / once))
    best = np.inf
    for _ in range(repeats):
        start = process_time()
        for _ in range(n):
            work()
        best = min(best, (process_time() - start) / n)
    return best


def row_cost(predict, X, quick):
    """Microseconds of a call with one row, over different rows."""
    some = [X[i : i + 1] for i in range(10 if quick else 50)]

    def work():
        for x in some:
            predict(x)

    return 1e6 * best_seconds(work, at_least=0.002 if quick else 0.05) / len(some)


def batch_cost(predict, X, quick):
    """Microseconds a row of a call with all of X."""
    return 1e6 * best_seconds(lambda: predict(X), at_least=0.002 if quick else 0.1) / len(X)


def gate_macs(gate, d):
    """Multiply-adds of a gate for one row of d features, and of the weights it gives."""
    if isinstance(gate, ProjectedGate):
        p = len(gate.projection)
        return p * d + gate_macs(gate.inner, p)
    if isinstance(gate, SoftmaxTree):
        return len(gate.parent) * d
    if isinstance(gate, GaussianGate):
        return gate.n_tiles * d * (d if gate.covariance == "full" else 1)
    return 0 if gate.n_tiles == 1 else gate.n_tiles * d + (gate.width * d if gate.width > 1 else 0)


def bound(mosaic, X, rates):
    """Microseconds a row that the multiply-adds or the bytes take at the least, and their numbers."""
    _, n_outputs, d = mosaic.coef.shape
    weight = mosaic.gate.code(X)[1]
    # Of posteriors most weights are zero: what counts are the tiles that rows need on average.
    needed = 1.0 if weight is None else float(np.count_nonzero(weight, axis=1).mean())
    macs = round(gate_macs(mosaic.gate, d) + needed * n_outputs * d)
    bytes_read = 4 * d + 8 * n_outputs
    return 1e6 * max(macs / rates["macs"], bytes_read / rates["bytes"]), macs, bytes_read


def measure_costs(name, data, rates, quick):
    X, y, X_test, y_test = data.X_train, data.y_train, data.X_test[:10_000], data.y_test[:10_000]
    print(
        f"\n{name}: {len(y)} rows to train, {len(y_test)} to test, {X.shape[1]} features, {len(np.unique(y))} classes"
    )
    records = []
    for title, model in our_models(20 if quick else 100, X.shape[1]).items():
        model.fit(X, y)
        records.append(our_record(title, model, X_test, y_test, rates, quick))
        show(records[-1])
    for title, (predict, thing) in peer_models(X, y, quick).items():
        record = {
            "model": title,
            "accuracy": float((predict(X_test) == y_test).mean()),
            "row_us": row_cost(predict, X_test, quick),
            "batch_us": batch_cost(predict, X_test[:2000], quick),
            "pickle_bytes": len(pickle.dumps(thing)),
        }
        records.append(record)
        show(record)
    return records


def our_record(title, model, X, y, rates, quick):
    """Costs and sizes of one of our models: through the predictor where it has one, else through `predict`."""
    mosaic = getattr(model, "mosaic_", None)
    compiled = hasattr(model, "predictor")
    predict = model.predictor() if compiled else model.predict
    # The lazy one solves an SVM per row.
    X, y = (X[:200], y[:200]) if isinstance(model, NeighborsSVC) else (X, y)
    rows = [x if compiled else x[None] for x in X[:50]]
    at_least = 0.002 if quick else 0.05
    record = {
        "model": title,
        "ours": True,
        "accuracy": float((predict(X) == y).mean()),
        "row_us": 1e6 * best_seconds(lambda: [predict(x) for x in rows], at_least=at_least) / len(rows),
        "batch_us": batch_cost(predict, X, quick),
    }
    if compiled:
        record["estimator_row_us"] = row_cost(model.predict, X, quick)
    if mosaic is not None:
        record["bound_us"], record["multiply_adds"], record["bytes_read"] = bound(mosaic, X, rates)
    if not isinstance(model, NeighborsSVC):
        run, record["onnx_bytes"] = onnx_session(model)
        if run is not None:
            record["onnx_row_us"], record["onnx_batch_us"] = row_cost(run, X, quick), batch_cost(run, X, quick)
    return {**record, **sizes(model)}


def sizes(model):
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.svmosaic")
        found = {"saved_bytes": (Path(folder) / "model.svmosaic").stat().st_size}
        if not isinstance(model, (NeighborsSVC, FusedSVC)):  # which have no C
            found["c_bytes"] = model.to_c(Path(folder) / "model.c")[0].stat().st_size
    if hasattr(model, "mosaic_"):
        found["parameter_bytes"] = model.mosaic_.n_bytes
    return found


# ---- probabilities --------------------------------------------------------------------------------


def expected_calibration_error(probabilities, y_places, n_bins=15):
    """Mean gap between confidence and accuracy, over equal bins of confidence."""
    confidence = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == y_places
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    gaps = [abs(confidence[bins == b].mean() - right[bins == b].mean()) * (bins == b).mean() for b in np.unique(bins)]
    return float(np.sum(gaps))


def measure_probabilities(name, data, quick):
    print(f"\nprobabilities, {name}: {len(data.y_train)} rows to train")
    n_tiles = 8 if quick else 50
    models = {}
    for method in ("temperature", "sigmoid", "isotonic"):
        models[f"LinearSVC, {method}"] = LinearSVC(tol=1e-3, calibration=method, random_state=0)
        models[f"ClusteredSVC, {method}"] = ClusteredSVC(8, tol=1e-2, calibration=method, random_state=0)
        models[f"LocallyLinearSVC, {method}"] = LocallyLinearSVC(n_tiles, tol=1e-2, calibration=method, random_state=0)
        linear = sklearn.svm.LinearSVC(random_state=0)
        models[f"CalibratedClassifierCV(LinearSVC), {method}"] = CalibratedClassifierCV(linear, method=method)
        models[f"LearnedGateSVC, {method}"] = LearnedGateSVC(n_tiles, calibration=method, max_iter=10, random_state=0)
    for method in ("temperature", "sigmoid", "isotonic", "posterior"):
        models[f"MixtureSVC, {method}"] = MixtureSVC(8, max_iter=10, calibration=method, random_state=0)
    models["GaussianMixtureClassifier, its own"] = GaussianMixtureClassifier(4, random_state=0)
    models["NeighborsSVC, sigmoid"] = NeighborsSVC(50, tol=1e-2, calibration="sigmoid", random_state=0)
    kernel = CalibratedClassifierCV(sklearn.svm.SVC(C=10), method="sigmoid", ensemble=False)
    models["CalibratedClassifierCV(SVC), sigmoid"] = kernel
    records = []
    # Labels 0, 1, ...: scikit-learn 1.9's temperature scaling goes wrong on others, such as -1 and 1.
    classes, labels = np.unique(data.y_train, return_inverse=True)
    places = np.searchsorted(classes, data.y_test)
    for title, model in models.items():
        start = process_time()
        model.fit(data.X_train, labels)
        seconds = process_time() - start
        record = {"model": title, "fit_s": seconds}
        if hasattr(model, "mosaic_"):
            plain = model.__class__(**{**model.get_params(), "calibration": None})
            start = process_time()
            plain.fit(data.X_train, labels)
            record["fit_without_s"] = process_time() - start
            predictor, row = model.predictor(), np.ascontiguousarray(data.X_test[0])
            record["row_us"] = [
                round(1e6 * best_seconds(partial(ask, row), at_least=0.02), 2)
                for ask in (predictor.predict, predictor.predict_proba)
            ]
        p = model.predict_proba(data.X_test)
        record["accuracy"] = float((p.argmax(axis=1) == places).mean())
        record["log_loss"] = float(log_loss(places, p, labels=np.arange(p.shape[1])))
        record["ece"] = expected_calibration_error(p, places)
        records.append(record)
        show(record)
    return records


# ---- the machine --------------------------------------------------------------------------------


def machine_rates(seconds):
    """Multiply-adds a second of a float32 matrix product, and bytes per second of reading memory, on one thread."""
    A = np.ones((1024, 1024), dtype=np.float32)
    big = np.ones(32 * 2**20, dtype=np.float32)
    macs = 1024**3 / best_seconds(lambda: A @ A, at_least=seconds / 5)
    return {"macs": macs, "bytes": big.nbytes / best_seconds(lambda: big @ big, at_least=seconds / 5)}


if __name__ == "__main__":
    main()
