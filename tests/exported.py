"""Models and rows on which everything that scores must agree: the engine, ONNX and C."""

import ctypes
import subprocess
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification
from sklearn.svm import SVC

from svmosaic import (
    BoostedTreesClassifier,
    ClusteredSVC,
    FusedSVC,
    GaussianMixtureClassifier,
    HierarchicalMixtureSVC,
    KernelSVC,
    KMeansSVC,
    LearnedGateSVC,
    LinearSVC,
    LocalCodingSVC,
    LocallyLinearSVC,
    MixtureSVC,
    MultiTaskMixtureSVC,
    TreeSVC,
)
from svmosaic.gates import CODINGS, CurvedGate, DistanceGate, ProjectedGate, SeveralGates, SingleCell, TreeGate
from svmosaic.maps.ramps import Ramps
from svmosaic.model.mosaic import LINKS, Mosaic

GRID = "on a grid, where distances tie"


@dataclass
class Fitted:
    """As much of a fitted estimator as scoring and exporting look at."""

    mosaic_: Mosaic
    classes_: np.ndarray
    calibration_: Any = None

    @property
    def n_features_in_(self):
        pieces = self.mosaic_.features.pieces
        return self.mosaic_.coef.shape[2] if pieces is None else pieces.n_inputs


def synthetic():
    """A mosaic for every coding, link and number of outputs, with centers and weights that float32 holds exactly.

    Coordinates are small multiples of 1/4, so that distances tie exactly, and are computed exactly.
    """
    models = {}
    for coding in CODINGS:
        for link in LINKS:
            for n_classes in (2, 3):
                rng = np.random.default_rng(len(models))
                centers = np.unique(rng.integers(-6, 7, size=(8, 4)) / 4.0, axis=0)
                # A mean of zero: subtracting it rounds nothing.
                centers = np.concatenate([centers, -centers])
                n_tiles, n_outputs = len(centers), 1 if n_classes == 2 else n_classes
                gate = DistanceGate(
                    centers, coding, 1 if coding == "nearest" else 4, 0.75,
                    log_prior=rng.integers(-3, 3, n_tiles) / 2.0 if coding == "softmax" else None,
                    factor=rng.integers(1, 5, n_tiles) / 2.0 if link == "vote" else None,
                )  # fmt: skip
                coef = rng.integers(-8, 9, size=(n_tiles, n_outputs, 4)) / 8.0
                mosaic = Mosaic(gate, coef, rng.integers(-8, 9, size=(n_tiles, n_outputs)) / 8.0, link)
                models[f"{coding}-{link}-{n_classes}"] = Fitted(mosaic, np.arange(n_classes) * 10)
    everywhere = DistanceGate(centers, "softmax", n_tiles, 0.5)
    models["soft-vote-3"] = Fitted(Mosaic(everywhere, coef, mosaic.intercept, "vote"), np.arange(3))
    return models


def training_set(n_classes):
    X, y = make_classification(
        300, 7, n_informative=5, n_redundant=0, n_classes=n_classes, n_clusters_per_class=1, random_state=2
    )  # fmt: skip
    return X.astype(np.float32), np.array(["ant", 'b"e?e', "cät"])[y]


def estimators():
    """Every estimator, some with each calibration."""
    return {
        "linear": LinearSVC(tol=1e-3, random_state=0),
        "linear-temperature": LinearSVC(tol=1e-3, calibration="temperature", random_state=0),
        "linear-pieces": LinearSVC(tol=1e-3, pieces=6, random_state=0),
        "cells-pieces": KMeansSVC(4, tol=1e-3, pieces=5, random_state=0),
        "local-pieces": LocallyLinearSVC(10, n_neighbors=4, pieces=5, random_state=0),
        "mixture-pieces": MixtureSVC(4, pieces=5, max_iter=3, random_state=0),
        "learned-pieces": LearnedGateSVC(6, n_components=3, n_neighbors=3, max_iter=3, pieces=5, random_state=0),
        "kmeans-sigmoid": KMeansSVC(4, tol=1e-2, calibration="sigmoid", random_state=0),
        "kmeans-odds": KMeansSVC(4, tol=1e-2, calibration="odds", random_state=0),
        "clustered": ClusteredSVC(4, tol=1e-2, random_state=0),
        "clustered-isotonic": ClusteredSVC(4, tol=1e-2, calibration="isotonic", random_state=0),
        "local-temperature": LocallyLinearSVC(12, n_neighbors=4, tol=1e-2, calibration="temperature", random_state=0),
        "local-inverse": LocallyLinearSVC(12, n_neighbors=4, coding="inverse", tol=1e-2, random_state=0),
        "local-llc": LocallyLinearSVC(12, n_neighbors=4, coding="llc", tol=1e-2, random_state=0),
        "local-lle": LocallyLinearSVC(12, n_neighbors=4, coding="lle", tol=1e-2, random_state=0),
        "kernels": KernelSVC(12, tol=1e-2, random_state=0),
        "coordinates-isotonic": LocalCodingSVC(12, n_neighbors=4, tol=1e-2, calibration="isotonic", random_state=0),
        "rules": TreeSVC(3, max_leaves=5, tiles="constant", min_rows_per_leaf=5, pieces=None, tol=1e-2, random_state=0),
        "rules-linear-temperature": TreeSVC(
            2, max_leaves=4, tiles="linear", pieces=5, tol=1e-2, calibration="temperature", random_state=0
        ),
        "boosted": BoostedTreesClassifier(4, max_leaves=5, early_stopping=False, random_state=0),
        "boosted-isotonic": BoostedTreesClassifier(4, max_leaves=5, calibration="isotonic", random_state=0),
        "mixture": MixtureSVC(6, max_iter=4, random_state=0),
        "mixture-sigmoid": MixtureSVC(6, max_iter=4, calibration="sigmoid", random_state=0),
        "mixture-paper": MixtureSVC(6, gate="paper", nu=0, max_iter=2, calibration="posterior", random_state=0),
        "tree-posterior": HierarchicalMixtureSVC((2, 3), max_iter=4, calibration="posterior", random_state=0),
        "tree-paper": HierarchicalMixtureSVC((2, 1, 2), gate="paper", nu=0, max_iter=2, random_state=0),
        "gaussian-temperature": multitask("full", calibration="temperature"),
        "gaussian-diag": multitask("diag"),
        "gaussian-isotropic": multitask("isotropic", calibration="posterior"),
        "learned": LearnedGateSVC(10, n_components=None, n_neighbors=3, max_iter=3, random_state=0),
        "learned-projected": LearnedGateSVC(
            10, n_components=3, n_neighbors=3, max_iter=3, calibration="temperature", random_state=0
        ),
    }


def multitask(covariance, calibration=None):
    return MultiTaskMixtureSVC(
        5, covariance=covariance, covariance_floor=1e-2, max_iter=3, calibration=calibration, random_state=0
    )


def densities():
    """Every model that is made of densities and has no tiles."""
    machine = SVC(gamma=0.05)
    return {
        "one": GaussianMixtureClassifier(),
        "spherical": GaussianMixtureClassifier(3, covariance="spherical", pooling="none", random_state=0),
        "diag": GaussianMixtureClassifier(3, covariance="diag", pooling="none", random_state=0),
        "full": GaussianMixtureClassifier(2, covariance="full", pooling="class", random_state=0),
        "each-full": GaussianMixtureClassifier(2, covariance="full", pooling="none", random_state=0),
        "fused": FusedSVC(machine, weight=0.5, random_state=0),
        "fused-sigmoid": FusedSVC(machine, weight=0.3, calibration="sigmoid", max_densities=20, random_state=0),
        "fused-svm": FusedSVC(machine, weight=1.0, random_state=0),
        "fused-mixture": FusedSVC(machine, weight=0.0, random_state=0),
    }


def rows_for(model, seed=0):
    """Random rows and adversarial ones, as float32: {kind: rows}."""
    rng = np.random.default_rng(seed)
    d = model.n_features_in_
    gate = model.mosaic_.gate if hasattr(model, "mosaic_") else getattr(model, "mixture_", model)
    places = [getattr(gate, name) for name in ("centers", "means", "means_") if hasattr(gate, name)]
    centers = places[0] if places else np.ones((2, d))
    kinds = {
        "random": rng.standard_normal((200, d)),
        "on an anchor": centers,
        "between two anchors": (centers[:-1] + centers[1:]) / 2,
        GRID: rng.integers(-4, 5, size=(200, d)) / 4.0,
        "zero": np.zeros((1, d)),
        "tiny": rng.standard_normal((20, d)) * 1e-30,
        "large": rng.standard_normal((50, d)) * 1e4,
        "huge": rng.standard_normal((50, d)) * 1e15,
        "mixed": rng.standard_normal((50, d)) * 10.0 ** rng.integers(-20, 12, size=(50, d)),
    }
    return {kind: np.ascontiguousarray(X, dtype=np.float32) for kind, X in kinds.items()}


def scale_of(model, X):
    """What rounding is relative to: the sum of |w_f x_f| + |b| of a row, at most over tiles, times its weights."""
    mosaic = model.mosaic_
    coef, intercept = mosaic.over_tiles(mosaic.coef).reshape(-1, mosaic.coef.shape[2]), mosaic.intercept.ravel()
    seen = X.astype(float) if mosaic.features.pieces is None else mosaic.features.expand(X.astype(float)).toarray()
    reach = (np.abs(seen) @ np.abs(coef).T + np.abs(intercept)).max(axis=1)
    _, weight = mosaic.gate.code(X)
    spread = 1.0 if weight is None else np.abs(weight).sum(axis=1)
    if mosaic.link != "identity":
        # Votes of large margins are settled; those of small ones feel the rounding of the margin.
        settled = (np.abs(seen @ coef.T + intercept) > 20 + 1e-5 * reach[:, None]).all(axis=1)
        reach = np.where(settled, 1.0, reach)
    if isinstance(mosaic.gate, (ProjectedGate, CurvedGate)):
        # The projection is rounded to float32, and the softmax behind it feels that the more, the farther the row.
        inner = mosaic.gate.inner
        seen, projection = projected(mosaic.gate, X)
        rounding = 1e-6 * (np.abs(seen) @ np.abs(projection).T).sum(axis=1)
        logit = 2 * inner.scale * np.ptp(inner.centers, axis=0).max() * rounding
        reach = reach * (1.0 + np.minimum(logit, 1.0) / 1e-5)
    return np.maximum(1.0, reach * spread)


def projected(gate, X):
    """What a gate projects, and the projection."""
    if isinstance(gate, ProjectedGate):
        return X.astype(float), gate.projection
    ramps = Ramps.of(gate.projection, gate.center, gate.scale, gate.column, gate.start, gate.knot)
    values = (X.astype(float)[:, ramps.column] - ramps.center) * ramps.factor
    return np.clip(values, ramps.low, ramps.high), ramps.coef


def choice_is_clear(model, X):
    """Rows whose choice of tiles does not hang on the last digits of float32 products."""
    gate = model.mosaic_.gate
    if gate.width == gate.n_tiles:
        return np.ones(len(X), dtype=bool)
    if isinstance(gate, SeveralGates) and all(isinstance(part, (SingleCell, TreeGate)) for part in gate.gates):
        return np.ones(len(X), dtype=bool)  # comparisons are exact
    X, error = X.astype(float), 0.0
    if isinstance(gate, (ProjectedGate, CurvedGate)):
        seen, projection = projected(gate, X)
        error = 1e-6 * np.abs(seen) @ np.abs(projection).T
        X, gate = seen @ projection.T, gate.inner
    z = X - gate.centers.mean(axis=0)
    c = gate.centers - gate.centers.mean(axis=0)
    terms = z[:, None, :] * c - c**2 / 2
    closeness = np.sort(terms.sum(axis=2), axis=1)[:, ::-1]
    rounding = 4e-7 * (np.abs(z[:, None, :] * c).sum(axis=2) + (c**2).sum(axis=1)).max(axis=1)
    rounding = rounding + (error * np.abs(c).max(axis=0)).sum(axis=1) if np.ndim(error) else rounding
    return closeness[:, gate.width - 1] - closeness[:, gate.width] > rounding


def check_agreement(model, X, labels, scores, *, kind):
    """Scores within 1e-5, relative to the terms that are added, and the same labels but for ties in rounding."""
    from numpy.testing import assert_array_less

    # On multiples of 1/4 nothing is rounded: there even a tie is decided the same way, for the first.
    exact = isinstance(model, Fitted) and kind in ("on an anchor", "between two anchors", GRID, "zero")
    if not exact:
        chosen = choice_is_clear(model, X)
        assert chosen.mean() > 0.9 or kind in ("between two anchors", GRID, "zero", "tiny", "mixed"), kind
        X, labels, scores = X[chosen], np.asarray(labels)[chosen], scores[chosen]
    if not len(X):
        return
    predictor = model.mosaic_.compile(model.classes_, model.calibration_)
    expected = predictor.decision_function(X).reshape(len(X), -1)
    slack = 1e-5 * scale_of(model, X)
    worst = np.abs(scores.reshape(expected.shape) - expected).max(axis=1)
    assert_array_less(worst, slack + 1e-30, err_msg=kind)
    if model.calibration_ is None:
        ordered = np.sort(np.column_stack([-expected, expected]) if expected.shape[1] == 1 else expected, axis=1)
        clear = ordered[:, -1] - ordered[:, -2] > 2 * slack
    else:
        ordered = np.sort(predictor.predict_proba(X), axis=1)
        clear = ordered[:, -1] - ordered[:, -2] > 1e-4
    assert clear.mean() > 0.5 or kind != "random"
    np.testing.assert_array_equal(np.asarray(labels)[clear], predictor.predict(X)[clear], err_msg=kind)


def check_densities(model, X, labels, scores, *, kind):
    """The same of a model without tiles: scores within 1e-5 of their size, or of the terms that they are made of."""
    expected = model.decision_function(X).reshape(len(X), -1)
    joint = np.abs(getattr(model, "mixture_", model).predict_joint_log_proba(X)).max(axis=1)
    slack = 1e-5 * np.maximum(np.maximum(1.0, np.abs(expected).max(axis=1)), joint)
    within = np.abs(scores.reshape(expected.shape) - expected).max(axis=1) <= slack
    # What is beyond float32 is infinite there.
    assert (within | ~(np.abs(expected) < 3e38).all(axis=1)).all(), kind
    if getattr(model, "calibration_", None) is None:
        both = np.column_stack([-expected, expected]) if expected.shape[1] == 1 else expected
    else:
        both, slack = model.predict_proba(X), 1e-4
    ordered = np.sort(both, axis=1)
    clear = ordered[:, -1] - ordered[:, -2] > 2 * slack
    assert clear.mean() > 0.5 or kind != "random"
    np.testing.assert_array_equal(np.asarray(labels)[clear], model.predict(X)[clear], err_msg=kind)


def run_c(source, frame, kinds, *, name="m"):
    """Scores of the rows of a frame by a C file, text as the file's own function numbers it, dates as days."""
    library = source.with_suffix(".so")
    strict = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-overlength-strings"]
    subprocess.run(["cc", *strict, "-fPIC", "-shared", source, "-o", library, "-lm"], check=True)
    compiled = ctypes.CDLL(str(library))
    rows = rows_in_c(compiled, frame, kinds, name)
    scores, pointer = np.empty(len(rows), dtype=np.float32), ctypes.c_void_p
    for x, out in zip(rows, scores.reshape(-1, 1), strict=True):
        getattr(compiled, f"{name}_scores")(x.ctypes.data_as(pointer), out.ctypes.data_as(pointer))
    return scores


def rows_in_c(compiled, frame, kinds, name):
    """The rows of a frame as a compiled C file takes them."""
    text = getattr(compiled, f"{name}_text", None)
    if text is not None:
        text.restype, text.argtypes = ctypes.c_float, [ctypes.c_int, ctypes.c_char_p]
    rows = np.empty(frame.shape, dtype=np.float32)
    for c, kind in enumerate(kinds):
        values = frame.iloc[:, c]
        if kind == "text":
            words = [None if pd.isna(v) else str(v).encode() for v in values]
            rows[:, c] = [text(c, word) for word in words]
        elif kind == "date":
            rows[:, c] = (pd.to_datetime(values) - pd.Timestamp(0)) / pd.Timedelta(days=1)
        else:
            rows[:, c] = values.astype("Float64").to_numpy(np.float32, na_value=np.nan)
    return rows
