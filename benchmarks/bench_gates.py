"""LearnedGateSVC with settings by cross-validation: test accuracy over five seeds.

Rows are standardized by the training part; adult has a column per category. A setting is chosen among a few, the same
for all sets, by three folds of at most 20,000 training rows; then the model is fitted to all training rows with five
seeds. Times are processor seconds of one thread.

    python benchmarks/bench_gates.py                     # writes benchmarks/results/gates.json
    python benchmarks/bench_gates.py --processes 16      # the same, many fits at a time
    python benchmarks/bench_gates.py --quick             # digits, two settings; writes nothing
    python benchmarks/learned_page.py                    # puts what is stored into docs/learned_gates.md
"""

import argparse
import warnings
from time import process_time

from common import print_table, write_results  # isort: skip; first: it sets the number of threads

import auto_data
import numpy as np
from joblib import Parallel, delayed
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler

from svmosaic import LearnedGateSVC
from svmosaic.datasets import load

SETS = ("letter", "satimage", "ijcnn1", "pendigits", "svmguide1", "adult")
CHOOSING_ROWS, FOLDS, SEEDS = 20_000, 3, 5
SMOOTH = {"loss": "log_loss", "weight_decay": 0.1, "dropout": 0.1}
SETTINGS = {
    "as it comes": {},
    "100 tiles": {"n_tiles": 100},
    "200 tiles, 16 neighbors": {"n_tiles": 200, "n_neighbors": 16},
    "4 gates of 32": {"n_gates": 4, "n_tiles": 32, "n_neighbors": 4},
    "4 gates of 64": {"n_gates": 4, "n_tiles": 64, "n_neighbors": 8},
    "8 gates of 64": {"n_gates": 8, "n_tiles": 64, "n_neighbors": 8},
    "8 gates of 16, decay 0.1": {"n_gates": 8, "n_tiles": 16, "n_neighbors": 4, "weight_decay": 0.1},
    "8 gates of 16, log-loss": {"n_gates": 8, "n_tiles": 16, "n_neighbors": 4, **SMOOTH},
    "8 gates of 32, dropout 0.1": {"n_gates": 8, "n_tiles": 32, "n_neighbors": 8, "dropout": 0.1},
    "8 gates of 64, log-loss": {"n_gates": 8, "n_tiles": 64, "n_neighbors": 8, **SMOOTH},
    "16 tiles, pieces": {"n_tiles": 16, "pieces": 16},
    "8 gates of 16, pieces, log-loss": {"n_gates": 8, "n_tiles": 16, "n_neighbors": 2, "pieces": 16, **SMOOTH},
    "8 gates of 16, pieces, log-loss, decay 1": {
        "n_gates": 8, "n_tiles": 16, "n_neighbors": 2, "pieces": 16, "loss": "log_loss", "weight_decay": 1.0,
    },
}  # fmt: skip


def parts_of(name):
    """Standardized training rows and labels, and those of the test part."""
    if name == "digits":
        X, Z, y, z = train_test_split(*load_digits(return_X_y=True), test_size=0.3, random_state=0)
    elif name == "adult":
        train, test = auto_data.adult()
        (X, Z), y, z = auto_data.one_hot(train, test), train.y, test.y
    else:
        data = load(name)
        X, y, Z, z = data.X_train, data.y_train, data.X_test, data.y_test
    scaler = StandardScaler().fit(X)
    return *(scaler.transform(rows).astype(np.float32) for rows in (X, Z)), y, z


def fitted(X, y, setting, seed):
    """The model, and processor seconds."""
    began = process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LearnedGateSVC(**setting, random_state=seed).fit(X, y)
    return model, process_time() - began


def judged(X, y, setting, fold):
    """Accuracy on one of three parts of the training rows."""
    if len(y) > CHOOSING_ROWS:
        X, _, y, _ = train_test_split(X, y, train_size=CHOOSING_ROWS, random_state=0, stratify=y)
    train, held = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y))[fold]
    return fitted(X[train], y[train], setting, fold)[0].score(X[held], y[held])


def tested(data, setting, seed):
    """Test accuracy in percent, and processor seconds of the fit."""
    X, Z, y, z = data
    model, seconds = fitted(X, y, setting, seed)
    return round(100 * float(model.score(Z, z)), 3), round(seconds, 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="digits, two settings; writes nothing")
    parser.add_argument("--processes", type=int, default=1, help="fits at a time")
    parser.add_argument("--out", help="file to write to instead")
    options = parser.parse_args()
    sets = ("digits",) if options.quick else SETS
    settings = list(SETTINGS)[1:3] if options.quick else list(SETTINGS)
    data = {name: parts_of(name) for name in sets}
    tasks = [(name, label, fold) for name in sets for label in settings for fold in range(FOLDS)]
    workers = Parallel(options.processes, verbose=5)
    scores = workers(delayed(judged)(data[n][0], data[n][2], SETTINGS[label], fold) for n, label, fold in tasks)
    held_out = {name: {label: [] for label in settings} for name in sets}
    for (name, label, _), score in zip(tasks, scores, strict=True):
        held_out[name][label].append(100 * score)
    held_out = {name: {label: float(np.mean(one)) for label, one in means.items()} for name, means in held_out.items()}
    chosen = {name: max(held_out[name], key=held_out[name].get) for name in sets}
    runs = [(name, seed) for name in sets for seed in range(1 if options.quick else SEEDS)]
    found = workers(delayed(tested)(data[name], SETTINGS[chosen[name]], seed) for name, seed in runs)
    records = [
        {"set": name, "seed": seed, "setting": chosen[name], "accuracy": accuracy, "fit_seconds": seconds}
        for (name, seed), (accuracy, seconds) in zip(runs, found, strict=True)
    ]
    summary = {
        name: {
            "setting": chosen[name],
            "accuracy": round(float(np.mean([r["accuracy"] for r in records if r["set"] == name])), 2),
            "held_out": {label: round(value, 2) for label, value in held_out[name].items()},
        }
        for name in sets
    }
    rows = [[name, one["setting"], f"{one['accuracy']:.2f}"] for name, one in summary.items()]
    print_table("LearnedGateSVC", ["set", "setting", "test accuracy, %"], rows)
    if not options.quick:
        write_results("gates", "seeds", records, summary, path=options.out)


if __name__ == "__main__":
    main()
