"""One small model file per class that can be saved, to show that later versions still read them.

    python tests/old_files.py tests/files/second_edition

writes the files of the current version to a new folder, with the expected scores in `expected.json`. Files that are
there are never written again: `test_old_files.py` opens those of all editions.
"""

import contextlib
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import RegressorMixin
from sklearn.cluster import KMeans
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import svmosaic
from svmosaic import (
    BoostedLinearSVC,
    ClusteredSVC,
    ClusteredSVR,
    FusedSVC,
    GaussianMixtureClassifier,
    HierarchicalMixtureSVC,
    KernelSVC,
    KernelSVR,
    KMeansSVC,
    KMeansSVR,
    LearnedGateSVC,
    LearnedGateSVR,
    LinearSVC,
    LinearSVR,
    LocalCodingSVC,
    LocallyLinearSVC,
    LocallyLinearSVR,
    MixtureSVC,
    MosaicClassifier,
    MosaicRegressor,
    MultiTaskMixtureSVC,
    NeighborsSVC,
    TreeSVC,
    TreeSVR,
    mixture_to_svm,
    svm_to_mixture,
)
from svmosaic.cli import main as command_line
from svmosaic.export.files import save

LOCAL = {"n_anchors": 3, "n_neighbors": 2, "random_state": 0}
LEARNED = {"n_tiles": 3, "n_components": 2, "n_neighbors": 2, "max_iter": 2, "random_state": 0}
MODELS = {
    "LinearSVC": LinearSVC(calibration="temperature", random_state=0),
    "KMeansSVC": KMeansSVC(2, random_state=0),
    "ClusteredSVC": ClusteredSVC(2, clusterer=KMeans(2, random_state=0), calibration="isotonic", random_state=0),
    "LocallyLinearSVC": LocallyLinearSVC(calibration="sigmoid", **LOCAL),
    "LocallyLinearSVC-feature_map": LocallyLinearSVC(feature_map=Nystroem(n_components=3, random_state=0), **LOCAL),
    "LocalCodingSVC": LocalCodingSVC(**LOCAL),
    "KernelSVC": KernelSVC(3, random_state=0),
    "KernelSVR": KernelSVR(3, random_state=0),
    "LearnedGateSVC": LearnedGateSVC(**LEARNED),
    "LearnedGateSVC-polish": LearnedGateSVC(polish=True, calibration="temperature", **LEARNED),
    "TreeSVC": TreeSVC(2, max_leaves=3, tiles="constant", random_state=0),
    "MixtureSVC": MixtureSVC(2, max_iter=2, calibration="posterior", random_state=0),
    "HierarchicalMixtureSVC": HierarchicalMixtureSVC((2, 2), max_iter=2, random_state=0),
    "MultiTaskMixtureSVC": MultiTaskMixtureSVC(2, covariance_floor=1e-2, max_iter=2, random_state=0),
    "GaussianMixtureClassifier": GaussianMixtureClassifier(2, random_state=0),
    "FusedSVC": FusedSVC(SVC(gamma=0.5), weight=0.5, max_densities=3, random_state=0),
    "NeighborsSVC": NeighborsSVC(10, random_state=0),
    "BoostedLinearSVC": BoostedLinearSVC(2, random_state=0),
    "MosaicClassifier": MosaicClassifier(time_budget=None, max_tiles=2, families=("linear", "local"), random_state=0),
    "MosaicRegressor": MosaicRegressor(time_budget=None, max_tiles=2, families=("linear", "local"), random_state=0),
    "LinearSVR": LinearSVR(loss="quantile", quantile=(0.1, 0.9), random_state=0),
    "KMeansSVR": KMeansSVR(2, random_state=0),
    "ClusteredSVR": ClusteredSVR(2, loss="expectile", random_state=0),
    "LocallyLinearSVR": LocallyLinearSVR(pieces=3, **LOCAL),
    "LearnedGateSVR": LearnedGateSVR(**LEARNED),
    "TreeSVR": TreeSVR(2, max_leaves=3, tiles="constant", random_state=0),
    "Pipeline": make_pipeline(StandardScaler(), LocallyLinearSVC(**LOCAL)),
}


def rows():
    """Two features on different scales, three classes."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((40, 2)).round(3)
    y = np.where(X[:, 0] * X[:, 1] > 0.1, "ape", np.where(X[:, 0] > 0, "bee", "cow"))
    return X * [2.0, 0.5], y


def values(X):
    """What regressors are fitted to."""
    return 20.0 + X[:, 0] * X[:, 1]


def table():
    """The same rows with a column of text, and a value that is missing."""
    X, y = rows()
    frame = pd.DataFrame({"long": X[:, 0], "wide": X[:, 1], "town": np.where(X[:, 1] > 0, "Bonn", "Rome"), "kind": y})
    frame.loc[3, "wide"] = np.nan
    return frame


def answers(model, queries) -> dict:
    """What a model says of rows, or of a table if `svmosaic train` made it."""
    trained = hasattr(model, "pipeline")
    X = pd.DataFrame(queries["table"]) if trained else np.array(queries["rows"])
    if isinstance(model, RegressorMixin):
        return {"class": type(model).__name__, "scores": model.predict(X).tolist(), "labels": []}
    scores = model.pipeline.decision_function(model.rows(X)) if trained else model.decision_function(X)
    found = {"class": type(model).__name__, "scores": scores.tolist(), "labels": model.predict(X).tolist()}
    if hasattr(model, "predict_proba"):
        found["probabilities"] = model.predict_proba(X).tolist()
    return found


def train(path):
    """A model file written by `svmosaic train`."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        table().to_csv("table.csv", index=False)
        arguments = ["train", "table.csv", "--label", "kind", "--model", "clustered", "--set", "n_clusters=2"]
        if command_line([*arguments, "-o", "model", "--quiet"]) != 0:
            raise RuntimeError("svmosaic train failed")
        path.write_bytes(Path("model").read_bytes())


def write(folder):
    """Write all model files, and what they are expected to say of ten rows."""
    folder = Path(folder).absolute()
    folder.mkdir()
    X, y = rows()
    models = {
        name: model.fit(X, values(X) if isinstance(model, RegressorMixin) else y) for name, model in MODELS.items()
    }
    models["ConvertedMixture"] = svm_to_mixture(SVC(gamma=0.1).fit(X, y == "ape"))
    models["ConvertedSVM"] = mixture_to_svm(models["GaussianMixtureClassifier"])
    for name, model in models.items():
        save(model, folder / f"{name}.svmosaic")
    train(folder / "TrainedModel.svmosaic")
    models["TrainedModel"] = svmosaic.load(folder / "TrainedModel.svmosaic")
    # Every fourth row; the missing value is not among them, so that JSON can hold them.
    queries = {"rows": X[::4].tolist(), "table": table()[::4].drop(columns="kind").to_dict("list")}
    expected = {**queries, **{name: answers(model, queries) for name, model in models.items()}}
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in expected.items()]
    (folder / "expected.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    write(*sys.argv[1:])
