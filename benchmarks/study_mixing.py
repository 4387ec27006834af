"""What classes gain from the scores of each other, and how strong the prior of the matrix should be.

Models of several kinds are fitted to training rows of sets with more than two classes (of larger sets, to the draws of
study_choice.py). Five folds held out in turn give the scores that the matrix is fitted to, and rows that no fold has
seen judge it, beside scores that are not mixed. No test row is read into it.

    python benchmarks/study_mixing.py                      # adds to results/mixing_study.json set by set
    python benchmarks/study_mixing.py --sets vehicle       # some sets
    python benchmarks/study_mixing.py --show               # means over the sets of what is stored
"""

from unittest import mock

import numpy as np
from common import RESULTS
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from study_choice import DRAWN, training_rows
from study_search import study

from svmosaic import KernelSVC, LinearSVC, LocallyLinearSVC, TreeSVC, mixing
from svmosaic.calibration import fit_odds, odds_losses

FILE = RESULTS / "mixing_study.json"
SETS = ("vehicle", "wine_white", "satimage", "usps", "pendigits", "letter", "covtype")
PRIORS = (1.0, 2.0, 5.0, 10.0, 30.0)
MOST_JUDGING = 6000
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
    X, y = training_rows(name)
    y = np.unique(y, return_inverse=True)[1]
    n_fitted = min(DRAWN.get(name, len(y)), round(0.7 * len(y)))
    X, Z, y, z = train_test_split(X, y, train_size=n_fitted, stratify=y, random_state=0)
    Z, z = Z[:MOST_JUDGING], z[:MOST_JUDGING]
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    for kind, model in MODELS.items():
        held_out = cross_val_predict(clone(model), X, y, method="decision_function", cv=folds)
        scores = clone(model).fit(X, y).decision_function(Z)
        yield line(name, kind, len(y), None, held_out, scores, y, z)
        for prior in PRIORS:
            with mock.patch.object(mixing, "PRIOR", prior), mock.patch.object(mixing, "PRIOR_OF_OFFSETS", prior / 10):
                mix, mixed = mixing.fit_mixing(held_out, y)
            yield line(name, kind, len(y), prior, mixed, mix(scores), y, z)


def line(name, kind, n_rows, prior, held_out, scores, y, z):
    """Accuracy and log-loss of new rows, by odds that are fitted to the held-out scores."""
    slope, offset = fit_odds(held_out, y)
    losses, _, _ = odds_losses(slope * scores + offset, z)
    promised, _, _ = odds_losses(slope * held_out + offset, y)
    return {
        "set": name, "model": kind, "rows": n_rows, "prior": prior,
        "score": round(float((scores.argmax(1) == z).mean()), 5),
        "loss": round(float(losses.mean()), 5), "promised": round(float(promised.mean()), 5),
    }  # fmt: skip


def show(records):
    table = {(r["set"], r["model"], r["prior"]): r for r in records}
    print(f"{'':35}{'as they are':>18}" + "".join(f"{f'prior {prior:g}':>18}" for prior in PRIORS))
    gains = {prior: [] for prior in PRIORS}
    for name, kind, prior in table:
        if prior is not None:
            continue
        before = table[name, kind, None]
        cells = f"{100 * before['score']:9.2f} {before['loss']:8.4f}"
        for prior in PRIORS:
            after = table[name, kind, prior]
            gains[prior].append((100 * (after["score"] - before["score"]), 100 * (after["loss"] / before["loss"] - 1)))
            cells += f"{gains[prior][-1][0]:+9.2f} {gains[prior][-1][1]:+7.1f}%"
        print(f"{name:15}{kind:20}{cells}")
    for prior, found in gains.items():
        points, percent = np.mean(found, axis=0)
        print(f"prior {prior:g}: {points:+.2f} points, log-loss {percent:+.1f} %, on average")


if __name__ == "__main__":
    study(__doc__.splitlines()[0], FILE, SETS, judged_by_all, show)
