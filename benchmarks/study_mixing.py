"""What classes gain from the scores of each other, two classes from an offset, and how strong priors should be.

Models of several kinds are fitted to training rows (of larger sets, to some of them). Five folds held
out in turn give the scores that matrix and offset are fitted to, and rows that no fold has seen judge them, beside
scores that are not mixed. Small sets are divided three times. No test row is read into it.

    python benchmarks/study_mixing.py                      # adds to results/mixing_study.json set by set
    python benchmarks/study_mixing.py --sets vehicle       # some sets
    python benchmarks/study_mixing.py --show               # means over the sets of what is stored
"""

import argparse
import json
from unittest import mock

import numpy as np
from auto_data import TABLES, adult, one_hot, paper_split, table_split
from common import RESULTS, grouped
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from svmosaic import KernelSVC, LinearSVC, LocallyLinearSVC, TreeSVC
from svmosaic.atomic import write_text
from svmosaic.model.calibration import fit_calibration
from svmosaic.model.heads import Classify, in_columns
from svmosaic.search import mixing

FILE = RESULTS / "mixing_study.json"
SETS = (
    "vehicle", "wine_white", "satimage", "usps", "pendigits", "letter", "covtype",
    "german_credit", "breast_cancer", "horse_colic", "oil_spill", "mammography", "adult", "heart", "diabetes", "german",
    "svmguide1", "ijcnn1",
)  # fmt: skip
PRIORS = (1.0, 2.0, 5.0, 10.0, 30.0)
# Rows that are fitted, of larger sets.
DRAWN = {
    "adult": 700, "mammography": 1500, "wine_white": 1500, "covtype": 2000, "ijcnn1": 1500, "satimage": 400,
    "usps": 1000, "pendigits": 300, "svmguide1": 300, "letter": 1500,
}  # fmt: skip
MOST_JUDGING, FEW, N_SPLITS = 6000, 2000, 3
LEAVES = {"tiles": "constant", "pieces": None, "min_rows_per_leaf": 1, "global_reg": 1e6}
MODELS = {
    "linear": make_pipeline(StandardScaler(), LinearSVC(C=0.1)),
    "linear with curves": LinearSVC(C=0.01, pieces=16),
    "local": make_pipeline(StandardScaler(), LocallyLinearSVC(16, n_neighbors=8, random_state=0)),
    "kernel": make_pipeline(StandardScaler(), KernelSVC(256, C=10.0, random_state=0)),
    "trees": TreeSVC(16, max_leaves=16, C=0.03, random_state=0),
    "leaves": TreeSVC(32, max_leaves=1000, C=0.3, random_state=0, **LEAVES),
}


def judged_by_all(name):
    if name in TABLES or name == "adult":
        train, test = adult() if name == "adult" else table_split(name, 0)
        X, y = one_hot(train, test)[0], train.y
    else:
        X, y, _, _ = paper_split(name, 0)
    X, y = np.asarray(X, dtype=np.float64), np.unique(y, return_inverse=True)[1]
    for split in range(1 if len(y) > FEW else N_SPLITS):
        yield from judged(name, split, X, y)


def judged(name, split, X, y):
    n_fitted = min(DRAWN.get(name, len(y)), round(0.7 * len(y)))
    X, Z, y, z = train_test_split(X, y, train_size=n_fitted, stratify=y, random_state=split)
    Z, z = Z[:MOST_JUDGING], z[:MOST_JUDGING]
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    for kind, model in MODELS.items():
        held_out = in_columns(cross_val_predict(clone(model), X, y, method="decision_function", cv=folds))
        scores = in_columns(clone(model).fit(X, y).decision_function(Z))
        about = {"set": name, "classes": int(y.max()) + 1, "split": split, "model": kind, "rows": len(y)}
        yield about | {"prior": None} | quality(held_out, scores, y, z)
        for prior in PRIORS:
            with mock.patch.object(mixing, "PRIOR", prior), mock.patch.object(mixing, "PRIOR_OF_OFFSETS", prior / 10):
                mix, mixed = mixing.fit_mixing(held_out, y)
            yield about | {"prior": prior} | quality(mixed, mix(scores), y, z)


def quality(held_out, scores, y, z):
    """Accuracy and log-loss of new rows, calibrated by the held-out scores, and the log-loss that these promise."""
    head = Classify(np.unique(y), fit_calibration("odds", held_out, y))
    losses = [
        -np.log(np.maximum(head.probabilities(s)[np.arange(len(t)), t], 1e-12)) for s, t in ((scores, z), (held_out, y))
    ]
    found = {"score": np.mean(head.answers(scores) == z), "loss": losses[0].mean(), "promised": losses[1].mean()}
    return {key: round(float(value), 5) for key, value in found.items()}


def show(records):
    """Print means over the splits: accuracy and log-loss as they are, and what each prior changes."""
    several = {r["set"]: r["classes"] > 2 for r in records}
    table = {
        key: np.mean([(r["score"], r["loss"]) for r in some], axis=0)
        for key, some in grouped(records, "set", "model", "prior").items()
    }
    print(f"{'':35}{'as they are':>18}" + "".join(f"{f'prior {prior:g}':>18}" for prior in PRIORS))
    gains: dict = {}
    for name, kind, prior in table:
        if prior is not None:
            continue
        score, loss = table[name, kind, None]
        cells = f"{100 * score:9.2f} {loss:8.4f}"
        for prior in PRIORS:
            after = table[name, kind, prior]
            gain = 100 * (after[0] - score), 100 * (after[1] / loss - 1)
            gains.setdefault((several[name], prior), []).append(gain)
            cells += f"{gain[0]:+9.2f} {gain[1]:+7.1f}%"
        print(f"{name:15}{kind:20}{cells}")
    for (more, prior), found in gains.items():
        points, percent = np.mean(found, axis=0)
        print(
            f"{'several' if more else 'two'} classes, prior {prior:g}: {points:+.2f} points, log-loss {percent:+.1f} %"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", help="names with commas between")
    parser.add_argument("--show", action="store_true", help="print what is stored, and end")
    options = parser.parse_args()
    records = json.loads(FILE.read_text()) if FILE.exists() else []
    if not options.show:
        for name in options.sets.split(",") if options.sets else SETS:
            records = [r for r in records if r["set"] != name] + list(judged_by_all(name))
            write_text(FILE, "[\n" + ",\n".join(json.dumps(r) for r in records) + "\n]\n")
            print(name, flush=True)
    show(records)
