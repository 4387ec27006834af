"""LearnedGateSVC with settings by cross-validation: test accuracy over five seeds.

Rows are standardized by the training part; adult has a column per category. A setting is chosen among a few, the same
for all sets, by three folds of at most 20,000 training rows; then the model is fitted to all training rows with five
seeds. Times are processor seconds of one thread.

    python benchmarks/bench_gates.py                     # writes benchmarks/results/gates.json
    python benchmarks/bench_gates.py --processes 16      # the same, many fits at a time
    python benchmarks/bench_gates.py --sets satimage     # one set; what is stored of the others stays
    python benchmarks/bench_gates.py --resume            # settings that are stored for a set are not fitted again
    python benchmarks/bench_gates.py --quick             # digits, two settings; writes nothing
    python benchmarks/pages.py learned_gates             # puts what is stored into docs/learned_gates.md
"""

import warnings
from time import process_time

from common import arguments, print_table, read_results, write_results  # isort: skip; first: it sets the number of threads

import auto_data
import numpy as np
from joblib import Parallel, delayed
from setting import load
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler

from svmosaic import LearnedGateSVC

SETS = ("letter", "satimage", "ijcnn1", "pendigits", "svmguide1", "adult")
CHOOSING_ROWS, FOLDS, SEEDS = 20_000, 3, 5
TO_THE_END = {"dropout": 0.1, "early_stopping": False}
CURVES = {"n_tiles": 16, "pieces": 16}
SETTINGS = {
    "as it comes": {},
    "200 tiles, 16 neighbors": {"n_tiles": 200, "n_neighbors": 16},
    "4 gates of 64": {"n_gates": 4, "n_tiles": 64},
    "8 gates of 64": {"n_gates": 8, "n_tiles": 64},
    "8 gates of 32, dropout 0.1": {"n_gates": 8, "n_tiles": 32, "dropout": 0.1},
    "100 tiles, dropout 0.1, 40 epochs": TO_THE_END,
    "200 tiles, 16 neighbors, dropout 0.1, 40 epochs": {"n_tiles": 200, "n_neighbors": 16, **TO_THE_END},
    "8 gates of 16, dropout 0.1, 40 epochs": {"n_gates": 8, "n_tiles": 16, "n_neighbors": 4, **TO_THE_END},
    "8 gates of 64, dropout 0.1, 40 epochs": {"n_gates": 8, "n_tiles": 64, **TO_THE_END},
    "16 gates of 16, dropout 0.1, 40 epochs": {"n_gates": 16, "n_tiles": 16, **TO_THE_END},
    "8 gates of 16, log-loss, dropout 0.1, 40 epochs": {
        "n_gates": 8, "n_tiles": 16, "n_neighbors": 4, "loss": "log_loss", **TO_THE_END,
    },
    "4 tiles, pieces": {"n_tiles": 4, "pieces": 16},
    "4 gates of 4, pieces, dropout 0.1": {"n_gates": 4, "n_tiles": 4, "pieces": 16, "dropout": 0.1},
    "4 gates of 4, 32 pieces, dropout 0.1": {"n_gates": 4, "n_tiles": 4, "pieces": 32, "dropout": 0.1},
    "16 tiles, pieces": CURVES,
    "16 tiles, pieces, decay 1": {"weight_decay": 1.0, **CURVES},
    "16 tiles, pieces, log-loss, decay 1": {"loss": "log_loss", "weight_decay": 1.0, **CURVES},
    "8 gates of 16, pieces, log-loss, decay 1": {
        "n_gates": 8, "n_neighbors": 2, "loss": "log_loss", "weight_decay": 1.0, **CURVES,
    },
}  # fmt: skip


def parts_of(name):
    """Standardized training rows and labels, and those of the test part."""
    if name == "digits":
        X, Z, y, z = auto_data.digits_split()
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


def held_out(data, settings, workers, known):
    """Percent of rows right, held out in turn, by setting; those that are known are not fitted again."""
    tasks = [(label, fold) for label in settings if label not in known for fold in range(FOLDS)]
    scores = workers(delayed(judged)(data[0], data[2], SETTINGS[label], fold) for label, fold in tasks)
    found = {label: [] for label, _ in tasks}
    for (label, _), score in zip(tasks, scores, strict=True):
        found[label].append(100 * score)
    means = known | {label: round(float(np.mean(values)), 2) for label, values in found.items()}
    return {label: means[label] for label in settings}


def chosen_and_tested(name, settings, n_seeds, workers, before):
    """Records of the seeds, and a summary with the setting that was best held out.

    `before` is what is stored of the set if it is gone on with: the test rows are not scored again unless another
    setting is best.
    """
    data, last = parts_of(name), before.get("summary", {})
    means = held_out(data, settings, workers, last.get("held_out", {}))
    chosen = max(means, key=means.get)
    records = before["records"] if chosen == last.get("setting") else seeds_of(name, data, chosen, n_seeds, workers)
    accuracy = round(float(np.mean([r["accuracy"] for r in records])), 2)
    return records, {"setting": chosen, "accuracy": accuracy, "held_out": means}


def seeds_of(name, data, chosen, n_seeds, workers):
    """Test accuracy by seed."""
    found = workers(delayed(tested)(data, SETTINGS[chosen], seed) for seed in range(n_seeds))
    return [
        {"set": name, "seed": seed, "setting": chosen, "accuracy": accuracy, "fit_seconds": seconds}
        for seed, (accuracy, seconds) in enumerate(found)
    ]


def main():
    options = arguments(
        __doc__,
        sets=SETS,
        out=True,
        resume={"action": "store_true", "help": "keep the scores of settings that are stored for a set"},
        processes={"type": int, "default": 1, "help": "fits at a time"},
    )
    settings = list(SETTINGS)[1:3] if options.quick else list(SETTINGS)
    workers, rows = Parallel(options.processes, verbose=5), []
    for name in ("digits",) if options.quick else options.sets:
        before = read_results("gates").get(name, {}) if options.resume else {}
        records, summary = chosen_and_tested(name, settings, 1 if options.quick else SEEDS, workers, before)
        rows.append([name, summary["setting"], f"{summary['accuracy']:.2f}"])
        on = before.get("machine") if records is before.get("records") else None  # where the seeds were run
        write_results("gates", name, records, summary, options, on=on)
    print_table("LearnedGateSVC", ["set", "setting", "test accuracy, %"], rows)


if __name__ == "__main__":
    main()
