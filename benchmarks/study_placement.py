"""Where the search should try kernel machines if rows are many: as it does now, before all others, or not at all.

Training rows of larger sets are divided anew twice: some are searched for 20 seconds on one thread, up to 4,000 others
judge. No test row is read into it. It needs an idle machine, as what the search has time for decides.

    python benchmarks/study_placement.py                    # adds to results/placement_study.json set by set
    python benchmarks/study_placement.py --sets mnist,usps  # some sets
    python benchmarks/study_placement.py --show             # means over the splits of what is stored
"""

import warnings
from dataclasses import replace
from unittest import mock

from common import RESULTS  # isort: skip; first: it sets the number of threads

import numpy as np
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from study_choice import training_rows
from study_search import study

from svmosaic import MosaicClassifier
from svmosaic.search import climb, rungs
from svmosaic.search.candidates import seeds

FILE = RESULTS / "placement_study.json"
SEARCHED = {"mnist": 7000, "letter": 10_000, "usps": 5500, "covtype": 20_000}
N_SPLITS, MOST_JUDGING, BUDGET = 2, 4000, 20.0


def without(scalings, n_rows, kernels=True):
    return seeds(scalings, n_rows, kernels=False)


def first(scalings, n_rows, kernels=True):
    baseline, *others = without(scalings, n_rows)
    best = [c for c in seeds(scalings, 1000) if c.family == "kernel"][:3]  # as for few rows
    return [baseline, *(replace(c, tiles=512) for c in best), *others]


def judged(name):
    rows, labels = training_rows(name)
    for split in range(N_SPLITS):
        X, Z, y, z = train_test_split(
            rows, labels, train_size=SEARCHED[name], stratify=labels, random_state=split
        )  # fmt: skip
        Z, z = Z[:MOST_JUDGING], z[:MOST_JUDGING]
        for title, placed in (("as it is", seeds), ("first", first), ("without", without)):
            # So fast that none is left out for the time it takes.
            speed = {"kernel": 1e12} if title == "first" else {}
            with mock.patch.object(climb, "seeds", placed), mock.patch.dict(rungs.USUAL_SPEED, speed):
                model = MosaicClassifier(BUDGET, n_jobs=1, random_state=0).fit(X, y)
            loss = log_loss(z, model.predict_proba(Z), labels=model.classes_)
            score = round(float(model.score(Z, z)), 5)
            yield {"set": name, "split": split, "kernels": title, "score": score, "loss": round(float(loss), 5)}


def show(records):
    for name in dict.fromkeys(r["set"] for r in records):
        for title in dict.fromkeys(r["kernels"] for r in records):
            found = [(r["score"], r["loss"]) for r in records if (r["set"], r["kernels"]) == (name, title)]
            print("{:10} {:10} {:.2%} log-loss {:.4f}".format(name, title, *np.mean(found, axis=0)))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    study(__doc__.splitlines()[0], FILE, SEARCHED, judged, show)
