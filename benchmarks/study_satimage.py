"""Why satimage is hard for MultiTaskMixtureSVC: one change at a time, by cross-validation on its training part.

    SVMOSAIC_DATA=folder python benchmarks/study_satimage.py      # writes benchmarks/results/mixtures_satimage.json

Labels of test rows are not looked at. Beside the accuracy stands the share of training rows that go to another expert
once their label is known: an expert is trained on rows which a test row's gate, without a label, sends elsewhere.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from search_mixtures import prepared
from sklearn.base import clone
from sklearn.metrics import recall_score
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.neighbors import NearestNeighbors
from sklearn.svm import SVC

from svmosaic import LinearSVC, MultiTaskMixtureSVC
from svmosaic.atomic import write_text

RESULTS = Path(__file__).parent / "results" / "mixtures_satimage.json"
CHOSEN = MultiTaskMixtureSVC(
    14, groups=None, label_weight=1.0, beta=0.5, alpha=0.5, covariance_floor=0.1, random_state=0
)
# beta follows the label weight, so that the experts' penalty against their losses stays as it is.
CHANGES = {
    "14 experts": {},
    "covariance floor 0.01": {"covariance_floor": 0.01},
    "covariance floor 0.001": {"covariance_floor": 0.001},
    "diagonal covariances": {"covariance": "diag"},
    "label weight 5": {"label_weight": 5.0, "beta": 2.5},
    "classes weighted equally": {"class_weight": "balanced"},
}
REFERENCES = {
    "LinearSVC": LinearSVC(random_state=0),
    "RBF SVM, C = 10": SVC(C=10.0),
}


def moved_by_labels(model, X, y):
    """Share of rows whose most likely expert is another one once the label is known."""
    gate = model.mosaic_.gate.log_joint(X)
    signs = np.where(y[:, None] == model.classes_, 1.0, -1.0)
    scores = np.einsum("jcf,if->ijc", model.tile_coef_, X) + model.intercept_
    loss = np.maximum(0.0, 1.0 - signs[:, None, :] * scores).mean(axis=2)
    return float(np.mean(gate.argmax(axis=1) != (gate - model.label_weight * loss).argmax(axis=1)))


def validated(model, X, y, folds):
    """Accuracy in percent over the folds, recall of each class, and what the labels move."""
    found, moved = np.empty_like(y), []
    for train, test in folds:
        fitted = clone(model).fit(X[train], y[train])
        found[test] = fitted.predict(X[test])
        if isinstance(fitted, MultiTaskMixtureSVC):
            moved.append(moved_by_labels(fitted, X[train], y[train]))
    recall = recall_score(y, found, average=None)
    return {
        "accuracy": round(100 * float(np.mean(found == y)), 2),
        "recall": {int(k): round(100 * float(r), 1) for k, r in zip(np.unique(y), recall, strict=True)},
        "moved_by_labels": round(100 * float(np.mean(moved)), 1) if moved else None,
    }


def nearest(X_train, X_other):
    """Median distance of rows to the nearest training row."""
    return round(float(np.median(NearestNeighbors(n_neighbors=1).fit(X_train).kneighbors(X_other)[0])), 2)


def main():
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    X, y, X_test, _ = prepared("satimage")
    shuffled = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    blocks = list(KFold(3).split(X))
    result = {"changes": {}, "blocks": {}, "references": {}}
    for part, models in (
        ("changes", {name: clone(CHOSEN).set_params(**change) for name, change in CHANGES.items()}),
        ("references", REFERENCES),
    ):
        for name, model in models.items():
            result[part][name] = validated(model, X, y, shuffled)
            print(f"{name:<52}{json.dumps(result[part][name])}", flush=True)
    for name in ("14 experts", "label weight 5"):
        result["blocks"][name] = validated(clone(CHOSEN).set_params(**CHANGES[name]), X, y, blocks)
        print(f"blocks: {name:<44}{json.dumps(result['blocks'][name])}", flush=True)
    result["nearest"] = {
        "shuffled folds": round(float(np.mean([nearest(X[a], X[b]) for a, b in shuffled])), 2),
        "blocks": round(float(np.mean([nearest(X[a], X[b]) for a, b in blocks])), 2),
        "test rows": nearest(X, X_test),
    }
    values = np.linalg.eigvalsh(clone(CHOSEN).set_params(covariance_floor=1e-9).fit(X, y).covariances_)
    result["eigenvalues"] = {
        "largest": round(float(np.median(values[:, -1])), 3),
        "median": round(float(np.median(values)), 4),
        "smallest": round(float(np.median(values[:, 0])), 5),
        "below": {str(f): round(float(np.mean(values < f)), 2) for f in (0.1, 0.01, 0.001)},
    }
    print(json.dumps(result["nearest"]), json.dumps(result["eigenvalues"]))
    write_text(RESULTS, json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
