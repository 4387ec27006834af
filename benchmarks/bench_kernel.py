"""Kernel machines over anchors next to scikit-learn's SVC: accuracy, seconds, microseconds per row and size.

The columns are standardized, C = 10 and gamma="scale" for all, one thread; seconds are processor seconds. Nothing is
tuned, so that only the number of anchors differs.

    SVMOSAIC_DATA=/path/to/data python benchmarks/bench_kernel.py [--sets usps letter]
    python benchmarks/bench_kernel.py --quick                        synthetic rows, seconds
"""

import pickle
from time import process_time

from common import arguments, fastest, print_records, run_child, show, write_results  # isort: skip; first: it sets the number of threads

import numpy as np
from auto_data import paper_split
from sklearn.datasets import make_classification
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from svmosaic import KernelSVC, LinearSVC

SETS = ("satimage", "pendigits", "usps", "letter", "ijcnn1")
ANCHORS = (128, 512, 2048)
C = 10.0


def rows_of(name):
    """X, y, Z, z, standardized by the training rows."""
    if name == "quick":
        X, y = make_classification(1200, 10, n_informative=6, random_state=0)
        X, y, Z, z = X[:600], y[:600], X[600:], y[600:]
    else:
        X, y, Z, z = paper_split(name, 0)
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), y, scaler.transform(Z), z


def systems(quick):
    yield "SVC", SVC(C=C)
    for n_anchors in (16, 64) if quick else ANCHORS:
        yield f"KernelSVC, {n_anchors} anchors", KernelSVC(n_anchors, C=C, random_state=0)
    yield "LinearSVC", LinearSVC(C=1.0, random_state=0)


def measured(model, X, y, Z, z):
    """Accuracy, processor seconds of the fit, microseconds per row of a batch, and bytes of what predicts."""
    began = process_time()
    model.fit(X, y)
    seconds = process_time() - began
    fast = model.predictor() if hasattr(model, "predictor") else model
    rows = Z[:2000]
    microseconds = 1e6 * fastest(lambda: fast.predict(rows), repeats=3) / len(rows)
    return {
        "accuracy": round(float(np.mean(model.predict(Z) == z)), 5), "seconds": round(seconds, 3),
        "microseconds": round(microseconds, 3), "bytes": len(pickle.dumps(fast)),
    }  # fmt: skip


def main():
    options = arguments(__doc__, sets=SETS)
    records = []
    for name in ("quick",) if options.quick else options.sets:
        data = rows_of(name)
        for title, model in systems(options.quick):
            found = run_child(lambda model=model, data=data: measured(model, *data), limit=3600).value
            records.append({"set": name, "rows": len(data[1]), "model": title, **found})
            show(records[-1])
            write_results("kernel", "sets", records, options=options)
    print_records("Kernels over anchors", records)


if __name__ == "__main__":
    main()
