"""What the mixtures cost: an EM iteration beside k-means + SVM, a whole fit beside a kernel SVM, and growth with rows.

    SVMOSAIC_DATA=folder python benchmarks/bench_mixtures.py [--only speed|rows|growth]
    python benchmarks/bench_mixtures.py --quick

The full run reads ijcnn1 and MNIST and writes benchmarks/results/mixtures.json; `--quick` takes generated data and
writes nothing. Times are of one process and include everything `fit` does; beside seconds by the clock stand seconds of
the processor, which other work on the machine does not lengthen.
"""

import json
import warnings
from time import perf_counter, process_time

from common import RESULTS, arguments, show, write_document  # isort: skip; first: it sets the number of threads

import numpy as np
from setting import load, machine
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize
from sklearn.svm import SVC

from svmosaic import KMeansSVC, MixtureSVC
from svmosaic.datasets import make_two_spirals

C = 100.0
# What `nu` may be in the growth table, as a share of the training rows: 5 % is what each of 20 experts has on average.
PRUNING_SHARES = (0.0, 0.01, 0.02, 0.03, 0.04, 0.05)


def timed(model, X, y):
    """A fitted clone, and its seconds by the clock and of the processor."""
    model = clone(model)
    clock, processor = perf_counter(), process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    return model, perf_counter() - clock, process_time() - processor


def speed(X, y, X_test, y_test, n_experts, gamma):
    """One EM iteration against one fit of KMeansSVC, and a whole fit against SVC, in the same run."""
    em = MixtureSVC(n_experts, C=C, nu=0.0, tol=0.0, random_state=0)
    timed(em.set_params(max_iter=1), X[:500], y[:500])  # warms up
    cells = [timed(KMeansSVC(n_experts, C=C, random_state=0), X, y) for _ in range(2)]
    one = [timed(em.set_params(max_iter=1), X, y) for _ in range(2)]
    many = [timed(em.set_params(max_iter=11), X, y) for _ in range(2)]
    iteration = [(np.median([m[k] for m in many]) - np.median([o[k] for o in one])) / 10 for k in (1, 2)]
    cell_seconds = [np.median([c[k] for c in cells]) for k in (1, 2)]
    whole, seconds, processor = timed(MixtureSVC(n_experts, C=C, nu=0.0, random_state=0), X, y)
    kernel, kernel_seconds, kernel_processor = timed(SVC(C=C, gamma=gamma), X, y)
    result = {
        "rows": len(y), "experts": n_experts, "iteration_seconds": iteration[0], "kmeans_svc_seconds": cell_seconds[0],
        "iteration_over_kmeans_svc": iteration[0] / cell_seconds[0],
        "iteration_over_kmeans_svc_processor": iteration[1] / cell_seconds[1],
        "fit_seconds": seconds, "fit_iterations": whole.n_iter_,
        "svc_seconds": kernel_seconds, "svc_over_fit": kernel_seconds / seconds,
        "svc_over_fit_processor": kernel_processor / processor, "fit_accuracy": whole.score(X_test, y_test),
        "kmeans_svc_accuracy": cells[0][0].score(X_test, y_test), "svc_accuracy": kernel.score(X_test, y_test),
        "support_vectors": int(kernel.n_support_.sum()),
    }  # fmt: skip
    show(result)
    return result


def rows(X, y, sizes, n_experts):
    """Seconds of ten EM iterations against the number of rows."""
    model = MixtureSVC(n_experts, C=C, nu=0.0, tol=0.0, max_iter=10, random_state=0)
    table = []
    for n in sizes:
        chosen = np.random.RandomState(0).permutation(len(y))[:n]
        _, seconds, processor = timed(model, X[chosen], y[chosen])
        table.append({"rows": n, "seconds": seconds, "processor_seconds": processor})
        show(table[-1])
    exponent = np.polyfit(np.log([t["rows"] for t in table]), np.log([t["processor_seconds"] for t in table]), 1)[0]
    return {"table": table, "exponent": float(exponent)}


def prune(X, y, n_experts, n_rows):
    """The share of the rows to take as `nu`: the largest within one standard error of the best on a hold-out."""
    chosen = np.random.RandomState(1).permutation(len(y))[:n_rows]
    train, held_out = chosen[n_rows // 4 :], chosen[: n_rows // 4]
    table = []
    for share in PRUNING_SHARES:
        model, _, _ = timed(grown(n_experts, share * len(train)), X[train], y[train])
        table.append({"share": share, "experts": model.n_experts_, "accuracy": model.score(X[held_out], y[held_out])})
        show(table[-1])
    best = max(t["accuracy"] for t in table)
    enough = best - np.sqrt(best * (1 - best) / len(held_out))
    return {"rows": n_rows, "table": table, "share": max(t["share"] for t in table if t["accuracy"] >= enough)}


def grown(n_experts, nu):
    """The mixture of the growth table."""
    return MixtureSVC(n_experts, C=10.0, nu=nu, max_iter=10, gate_iter=5, random_state=0)


def growth(X, y, X_test, y_test, sizes, kernel_limit, n_experts, share):
    """Live experts against support vectors as the training set grows."""
    table = []
    for n in sizes:
        chosen = np.random.RandomState(0).permutation(len(y))[:n]
        model, seconds, _ = timed(grown(n_experts, share * n), X[chosen], y[chosen])
        line = {
            "rows": n, "experts_at_start": int(model.experts_per_iter_[0]), "experts": model.n_experts_,
            "accuracy": model.score(X_test, y_test), "seconds": seconds, "support_vectors": None, "svc_accuracy": None,
        }  # fmt: skip
        if n <= kernel_limit:
            kernel, _, _ = timed(SVC(C=10.0), X[chosen], y[chosen])
            line |= {"support_vectors": int(kernel.n_support_.sum()), "svc_accuracy": kernel.score(X_test, y_test)}
        table.append(line)
        show(line)
    return table


def quick():
    X, y = make_two_spirals(4000, random_state=0)
    X_test, y_test = make_two_spirals(1000, random_state=1)
    X, X_test = X / 20, X_test / 20
    speed(X, y, X_test, y_test, 20, 100.0)
    rows(X, y, [500, 1000, 2000, 4000], 20)
    pruned = prune(X, y, 20, 1000)
    growth(X, y, X_test, y_test, [250, 1000, 4000], 4000, 20, pruned["share"])


def full(options):
    only, path = options.only, RESULTS / "mixtures.json"
    result = json.loads(path.read_text()) if path.exists() else {}
    if only in (None, "speed", "rows"):
        data = load("ijcnn1")
        X, X_test = normalize(data.X_train), normalize(data.X_test)
        if only in (None, "speed"):
            # gamma on unit-norm rows by the variance of the features would be far too small a scale for ijcnn1.
            result["speed"] = speed(X, data.y_train, X_test, data.y_test, 20, 16.0)
        if only in (None, "rows"):
            result["rows"] = rows(X, data.y_train, [3125, 6250, 12500, 25000, 49990], 20)
    if only in (None, "growth"):
        data = load("mnist")
        X, X_test = normalize(data.X_train), normalize(data.X_test)
        sizes = [100, 500, 1000, 5000, 10000, 60000]
        result["prune"] = prune(X, data.y_train % 2, 20, 4000)
        share = result["prune"]["share"]
        result["growth"] = growth(X, data.y_train % 2, X_test, data.y_test % 2, sizes, options.kernel_limit, 20, share)
    result["machine"] = machine()
    write_document("mixtures", result, options)


def main():
    options = arguments(
        __doc__,
        only={"choices": ["speed", "rows", "growth"]},
        kernel_limit={"type": int, "default": 60_000, "help": "largest training set for the kernel SVM"},
    )
    quick() if options.quick else full(options)


if __name__ == "__main__":
    main()
