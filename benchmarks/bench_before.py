"""Default fits on one thread, beside those of an earlier version of the library: processor seconds and test accuracy.

Each fit runs in a process of its own that imports the library from a folder; versions take turns, twice, quick fits are
repeated, and the fastest counts.

    pip install --no-deps --target FOLDER CHECKOUT_OF_THE_EARLIER_VERSION
    python benchmarks/bench_before.py --before FOLDER [--sets SET ...] [--quick]
"""

import json
import subprocess
import sys
from pathlib import Path

# Before NumPy: it gives every library one thread.
from common import arguments, print_table, read_results, show, write_results

SETS = ("svmguide1", "pendigits", "satimage", "letter", "ijcnn1", "usps", "covtype")
# The first edition's default was 8 neighbors, and is 16 now.
MODELS = ("LinearSVC", "ClusteredSVC", "LocallyLinearSVC", "LocallyLinearSVC(n_neighbors=8)")
# Of covertype (seven classes): settings, and rows, as many as the earlier version fits in some minutes.
COVERTYPE = {"LinearSVC": ({}, 500_000), "ClusteredSVC": ({"n_clusters": 64}, 100_000),
             "LocallyLinearSVC": ({"n_anchors": 50}, 20_000)}  # fmt: skip

# What a child does, with the library of a folder, or with the one that is installed if none is given. Finders of
# editable installations come before the path: they are the only ones that are objects.
CHILD = """
import sys, time, warnings
folder, name, model, settings, n_rows = sys.argv[1:]
if folder:
    sys.meta_path[:] = [finder for finder in sys.meta_path if isinstance(finder, type)]
    sys.path.insert(0, folder)
warnings.simplefilter("ignore")
import json
import numpy as np
import svmosaic
from sklearn.datasets import make_classification
from sklearn.utils import Bunch
from svmosaic.datasets import load
assert svmosaic.__file__.startswith(folder), svmosaic.__file__
if name == "quick":
    X, y = make_classification(400, random_state=0)
    data = Bunch(X_train=X, y_train=y, X_test=X, y_test=y)
else:
    data = load(name)
rows = np.random.RandomState(0).permutation(len(data.X_train))[: int(n_rows) or None]
X, X_test = data.X_train[rows].astype(np.float32), data.X_test.astype(np.float32)
mean, spread = X.mean(axis=0), X.std(axis=0)
spread[spread == 0] = 1.0
X, X_test = (X - mean) / spread, (X_test - mean) / spread
y = data.y_train[rows]
model = eval("svmosaic." + model, {"svmosaic": svmosaic})
model = (model() if isinstance(model, type) else model).set_params(random_state=0, n_jobs=1, **json.loads(settings))
model.fit(X[:200], y[:200])
seconds = []
while not seconds or (sum(seconds) < 1 and len(seconds) < 5):
    began = time.process_time()
    model.fit(X, y)
    seconds.append(time.process_time() - began)
print(json.dumps({"seconds": round(min(seconds), 3), "accuracy": round(100 * model.score(X_test, data.y_test), 3)}))
"""


def fitted(folder, name, model):
    """Seconds and accuracy of one fit by the library in `folder`."""
    settings, n_rows = COVERTYPE[model.split("(")[0]] if name == "covtype" else ({}, 0)
    command = [sys.executable, "-c", CHILD, str(folder), name, model, json.dumps(settings), str(n_rows)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(f"{model} on {name} with {folder}: {run.stderr.strip().splitlines()[-1]}")
    return json.loads(run.stdout.splitlines()[-1])


def main():
    before = {"type": Path, "metavar": "FOLDER", "help": "a folder with the earlier version installed"}
    options = arguments(__doc__, sets=SETS, before=before)
    if options.before is None and not options.quick:
        raise SystemExit("--before names a folder with the earlier version installed")
    folders = {"before": "" if options.before is None else options.before.resolve(), "now": ""}
    stored = read_results("threads").get("before", {}).get("records", [])
    records = [record for record in stored if record["set"] not in options.sets]
    for name in ("quick",) if options.quick else options.sets:
        for model in MODELS[: 2 if options.quick else None]:
            runs = {version: [] for version in folders}
            for _ in range(2):
                for version, folder in folders.items():
                    runs[version].append(fitted(folder, name, model))
            best = {version: min(several, key=lambda run: run["seconds"]) for version, several in runs.items()}
            records.append(
                {"set": name, "model": model,
                 "seconds": [best[version]["seconds"] for version in folders],
                 "accuracy": [best[version]["accuracy"] for version in folders]}
            )  # fmt: skip
            show(records[-1])
            write_results("threads", "before", records, {"covertype": COVERTYPE}, options)
    rows = [[r["set"], r["model"], *(" → ".join(map(str, r[key])) for key in ("seconds", "accuracy"))] for r in records]
    print_table("Before and now", ["set", "model", "seconds", "accuracy, %"], rows)


if __name__ == "__main__":
    main()
