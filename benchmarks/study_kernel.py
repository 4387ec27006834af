"""Which kernel machines the search should begin with: a grid of settings, judged on rows that were not fitted.

The rows are those of study_choice.py: training rows of small sets divided anew, and draws of training rows of larger
ones. No test row is read into it. The best few settings together, each chosen to lower the mean over the sets of the
least loss, are the first kernel machines of `svmosaic.search.candidates.seeds`.

    python benchmarks/study_kernel.py                      # adds to results/kernel_study.json set by set
    python benchmarks/study_kernel.py --sets heart,vehicle # some sets
    python benchmarks/study_kernel.py --show               # the portfolio of what is stored
"""

import warnings

import numpy as np
from auto_data import TABLES
from common import RESULTS
from sklearn.model_selection import train_test_split
from study_choice import DRAWN, MANY, N_SPLITS, SETS, training_rows
from study_search import study

from svmosaic import KernelSVC, LinearSVC
from svmosaic.estimators.data import validate_training
from svmosaic.search.candidates import power_of_two
from svmosaic.search.judge import ClassJudge

FILE = RESULTS / "kernel_study.json"
SCALINGS, SHARPNESS, COSTS = ("standard", "common"), (0.1, 0.3, 1.0, 3.0), (0.1, 1.0, 10.0, 100.0)
MOST_JUDGING = 3000


def judged(name, split):
    X, y = training_rows(name)
    metric = TABLES[name][3] if name in TABLES else "accuracy"
    classes, counts = np.unique(y, return_counts=True)
    rare = classes[counts.argmin()] if metric != "accuracy" else None
    n_rows = DRAWN.get(name, round(0.7 * len(y)))
    X, Z, y, z = train_test_split(X, y, train_size=n_rows, stratify=y, random_state=split)
    Z, z = Z[:MOST_JUDGING], z[:MOST_JUDGING]
    varied = np.ptp(X, axis=0) > 0
    X, Z = X[:, varied], Z[:, varied]
    _, truth = validate_training(LinearSVC(), Z, z)
    judge, rows = ClassJudge(Z, truth, metric, rare), np.arange(len(z))
    n_anchors = min(power_of_two(12 * n_rows**0.5, 32, 512), n_rows // 2)
    for scaling in SCALINGS:
        unit = X.std(axis=0) if scaling == "standard" else X.std()
        A, B = (X - X.mean(axis=0)) / unit, (Z - X.mean(axis=0)) / unit
        for sharpness in SHARPNESS:
            for C in COSTS:
                gamma = sharpness / A.var(axis=0).sum()
                model = KernelSVC(n_anchors, C=C, gamma=gamma, tol=1e-2, random_state=0).fit(A, y)
                scores = judge.scores_of(model, B)
                factor, shift = judge.temper(scores, rows)
                scores = factor * scores + shift
                yield {
                    "set": name, "split": split, "scaling": scaling, "sharpness": sharpness, "C": C,
                    "score": round(judge.score(scores, rows), 5), "loss": round(judge.loss(scores, rows), 5),
                }  # fmt: skip


def show(records, n_chosen=6):
    """The settings of a greedy portfolio, and how far the best of them is behind the best of all, by the loss."""
    sets = list(dict.fromkeys(r["set"] for r in records))
    settings = list(dict.fromkeys((r["scaling"], r["sharpness"], r["C"]) for r in records))
    losses = {(s, c): [] for s in sets for c in settings}
    for r in records:
        losses[r["set"], (r["scaling"], r["sharpness"], r["C"])].append(r["loss"])
    mean = np.array([[np.mean(losses[s, c]) for c in settings] for s in sets])
    behind = mean / mean.min(axis=1, keepdims=True) - 1.0
    reached = np.full(len(sets), np.inf)
    for _ in range(n_chosen):
        best = min(range(len(settings)), key=lambda k: np.minimum(reached, behind[:, k]).mean())
        reached = np.minimum(reached, behind[:, best])
        print("{}, sharpness {:g}, C {:g}".format(*settings[best]), f": {reached.mean():.1%} behind")


def judged_by_all(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [record for split in range(N_SPLITS) for record in judged(name, split)]


if __name__ == "__main__":
    few = [name for name in SETS if not name.endswith(MANY)]
    study(__doc__.splitlines()[0], FILE, few, judged_by_all, show)
