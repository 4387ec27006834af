"""Golden results: what each estimator gives on small fixed problems, stored so that a later version can be compared.

    python tests/golden.py --write tests/files/golden.json
    python tests/golden.py --compare tests/files/golden.json

`--compare` lists the cases whose results are not equal bit for bit, with the largest differences. Bits are only
comparable on one machine, with the same versions of the libraries: the core is compiled for several instruction sets.
`test_golden.py` compares the same results within tolerances. Only what users can reach is used here, because
everything else may move.
"""

import argparse
import dataclasses
import hashlib
import json
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import scipy
import sklearn
from scipy import sparse
from sklearn.base import RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import svmosaic
from svmosaic import (
    BoostedLinearSVC,
    BoostedTreesClassifier,
    BoostedTreesRegressor,
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
    outofcore,
    svm_to_mixture,
)
from svmosaic.couplings import ClusteredTasks

# Problems ---------------------------------------------------------------------------------------------------------

N_ROWS, N_FEATURES, N_QUERIES = 160, 5, 20


@dataclass(frozen=True)
class Rows:
    """A problem: rows with labels and perhaps weights to fit to, and rows to score."""

    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    queries: Any

    @property
    def weights(self):
        """The weights as an argument of `fit`."""
        return {} if self.weight is None else {"sample_weight": self.weight}

    @property
    def total_weight(self) -> float:
        return len(self.y) if self.weight is None else float(self.weight.sum())

    def batch(self, start, stop):
        """Some of the rows."""
        weight = None if self.weight is None else self.weight[start:stop]
        return Rows(self.X[start:stop], self.y[start:stop], weight, self.queries)


def problem(name) -> Rows:
    """The problem with this name, which lists what it holds, such as "two" or "many-csr-float32-weights".

    "two" classes are split by a product of features, "many" are three sectors with bent borders, both with noise. Some
    entries are zero, one row is all zeros, two rows are equal, and some weights are zero.
    "values" are numbers, "pairs" two of them per row.
    """
    held = name.split("-")
    rng = np.random.RandomState(0)  # its stream is frozen, unlike that of a Generator
    X = rng.standard_normal((N_ROWS + N_QUERIES, N_FEATURES))
    X[rng.uniform(size=X.shape) < 0.3] = 0.0
    X[0] = 0.0
    X[2] = X[1]
    noise = rng.standard_normal((len(X), 3))
    if "many" in held:
        sectors = X @ rng.standard_normal((N_FEATURES, 3)) + X[:, :1] * X[:, 1:4] + 0.5 * noise
        y = np.array(["ape", "bee", "cow"])[sectors[:N_ROWS].argmax(axis=1)]
    elif "values" in held or "pairs" in held:
        y = 70.0 + 10.0 * (X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * noise[:, 0])
        y = (np.stack([y, X[:, 3]], axis=1) if "pairs" in held else y)[:N_ROWS]
    else:
        y = (X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.3 * noise[:, 0] > 0)[:N_ROWS].astype(int)
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], N_ROWS) if "weights" in held else None
    X = X.astype(np.float32 if "float32" in held else np.float64)
    X = sparse.csr_array(X) if "csr" in held else X
    return Rows(X[:N_ROWS], y, weight, X[N_ROWS:])


# Ways to fit ------------------------------------------------------------------------------------------------------


def in_memory(model, rows):
    """The ordinary fit."""
    return clone(model).fit(rows.X, rows.y, **rows.weights)


def in_chunks(n_chunks):
    """A fit over so many partitions."""
    return lambda model, rows: outofcore.fit(
        model, rows.X, rows.y, sample_weight=rows.weight, chunk_rows=-(-N_ROWS // n_chunks)
    )


def on_workers(n_parts):
    """A fit over so many partitions of a Dask array."""

    def fit(model, rows):
        import dask.array as da  # here, since they take seconds to import
        import distributed

        import svmosaic.dask

        size = -(-N_ROWS // n_parts)
        X, y = da.from_array(rows.X, chunks=(size, -1)), da.from_array(rows.y, chunks=size)
        with distributed.Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
            distant = getattr(svmosaic.dask, type(model).__name__)
            return distant(client=client, **model.get_params(deep=False)).fit(X, y).to_local()

    return fit


def in_batches(n_batches):
    """A stream of batches."""

    def fit(model, rows):
        model, size = clone(model), -(-N_ROWS // n_batches)
        for start in range(0, N_ROWS, size):
            batch = rows.batch(start, start + size)
            classes = {} if isinstance(model, RegressorMixin) else {"classes": np.unique(rows.y)}
            model.partial_fit(batch.X, batch.y, **classes, **batch.weights)
        return model

    return fit


def and_one_batch_more(model, rows):
    """A fit to half of the rows, then the others as one batch."""
    half = rows.batch(N_ROWS // 2, N_ROWS)
    return in_memory(model, rows.batch(0, N_ROWS // 2)).partial_fit(half.X, half.y, **half.weights)


def converted(convert):
    """A fit that is then converted."""
    return lambda model, rows: convert(in_memory(model, rows))


# Cases ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """An estimator, a problem and a way to fit."""

    name: str
    model: Any
    problem: str
    fit: Callable = in_memory

    @property
    def tolerance(self) -> float:
        """Largest difference of scores and probabilities, as a share of the largest."""
        return max([1e-6, *(value for text, value in LOOSER.items() if text in self.name)])

    @property
    def objective_tolerance(self) -> float:
        """Largest difference of objectives, which are flat near their optimum, as a share of the largest."""
        return max(1e-6, self.tolerance / 100)


# Tolerances of cases with these texts in their names. Other cases may only differ by rounding in another order.
LOOSER = {
    "float32": 1e-5,
    "LearnedGateSV": 1e-5,  # float32 inside
    "newton": 1e-5,  # another path to the optimum may be taken; descent and Newton's method are this close
    "chunks": 1e-5,
    "dask": 1e-5,
    "MixtureSVC": 1e-4,  # EM makes rounding errors grow
    "reduced": 1e-3,  # a local optimum of a function that is not convex
}
# Solved so far that the results hardly depend on the path to the optimum.
EXACT = {"tol": 1e-10, "max_iter": 100_000, "random_state": 0}
SEARCH = {"time_budget": None, "max_tiles": 4, "families": ("linear", "local"), "random_state": 0}
CONSTANT_LEAVES = {
    "max_leaves": 4, "tiles": "constant", "min_rows_per_leaf": 5, "tol": 1e-9, "max_iter": 100_000, "random_state": 0
}  # fmt: skip
LOCAL = {"n_anchors": 8, "n_neighbors": 3}
LEARNED = {"early_stopping": False, "n_tiles": 8, "n_components": 3, "n_neighbors": 3, "max_iter": 3, "random_state": 0}
EM = {"max_iter": 3, "random_state": 0}
KERNEL = SVC(C=10.0, gamma=0.1, tol=1e-8)

DENSE = ("two", "many-weights", "two-float32", "many-float32")
ALL = ("two", "many-weights", "two-csr-weights", "many-csr-float32")
BOTH = ("two", "many")
VALUES = ("values", "pairs-weights", "values-csr-weights", "pairs-csr-float32")
MODELS = {
    "LinearSVC": (LinearSVC(tol=1e-4, random_state=0), ALL),  # a tolerance as users have it
    "LinearSVC-hinge-dual": (LinearSVC(solver="dual", **EXACT), ALL),
    "LinearSVC-hinge-newton": (LinearSVC(solver="newton", **EXACT), ALL),
    "LinearSVC-squared_hinge-dual": (LinearSVC(loss="squared_hinge", solver="dual", **EXACT), ALL),
    "LinearSVC-squared_hinge-newton": (LinearSVC(loss="squared_hinge", solver="newton", **EXACT), ALL),
    "LinearSVC-hinge-sgd": (LinearSVC(solver="sgd", tol=1e-4, max_iter=20, random_state=0), ALL),
    "LinearSVC-squared_hinge-sgd": (
        LinearSVC(loss="squared_hinge", solver="sgd", tol=1e-4, max_iter=20, random_state=0), ("two",)),
    "LinearSVC-balanced": (LinearSVC(class_weight="balanced", fit_intercept=False, **EXACT), BOTH),
    "LinearSVC-temperature": (LinearSVC(calibration="temperature", **EXACT), ("two",)),
    "KMeansSVC": (KMeansSVC(4, **EXACT), ALL),
    "KMeansSVC-squared_hinge-newton": (KMeansSVC(4, loss="squared_hinge", solver="newton", **EXACT), ("two",)),
    "KMeansSVC-tasks": (KMeansSVC(4, coupling=ClusteredTasks(), **EXACT), BOTH),
    "ClusteredSVC": (ClusteredSVC(4, **EXACT), ALL),
    "ClusteredSVC-squared_hinge": (ClusteredSVC(4, loss="squared_hinge", **EXACT), BOTH),
    "ClusteredSVC-isotonic": (ClusteredSVC(4, calibration="isotonic", **EXACT), BOTH),
    "LocallyLinearSVC": (LocallyLinearSVC(**LOCAL, **EXACT), ALL),
    "LocallyLinearSVC-hinge": (LocallyLinearSVC(loss="hinge", **LOCAL, **EXACT), BOTH),
    "LocallyLinearSVC-llc": (LocallyLinearSVC(coding="llc", **LOCAL, **EXACT), BOTH),
    "LocallyLinearSVC-inverse": (LocallyLinearSVC(coding="inverse", anchors="random", **LOCAL, **EXACT), ("two",)),
    "LocallyLinearSVC-crammer_singer": (
        LocallyLinearSVC(multi_class="crammer_singer", loss="hinge", **LOCAL, **EXACT), ("many", "many-csr-weights")),
    "LocallyLinearSVC-feature_map": (
        LocallyLinearSVC(feature_map=Nystroem(n_components=8, gamma=0.1, random_state=0), **LOCAL, **EXACT), BOTH),
    "LocallyLinearSVC-sgd": (LocallyLinearSVC(solver="sgd", tol=1e-3, max_iter=10, random_state=0, **LOCAL), BOTH),
    "LocallyLinearSVC-sigmoid": (LocallyLinearSVC(calibration="sigmoid", **LOCAL, **EXACT), BOTH),
    "LocalCodingSVC": (LocalCodingSVC(**LOCAL, **EXACT), ALL),
    "LocalCodingSVC-squared_hinge": (LocalCodingSVC(loss="squared_hinge", **LOCAL, **EXACT), ("two",)),
    "KernelSVC": (KernelSVC(12, **EXACT), ALL),
    "LearnedGateSVC-anchors": (LearnedGateSVC(**LEARNED), ALL),
    "LearnedGateSVC-polish": (LearnedGateSVC(polish=True, tol=1e-10, **LEARNED), BOTH),
    "LearnedGateSVC-temperature": (LearnedGateSVC(calibration="temperature", **LEARNED), ("many",)),
    "MixtureSVC": (MixtureSVC(4, **EM), ALL),
    "MixtureSVC-posterior": (MixtureSVC(4, calibration="posterior", **EM), BOTH),
    "MixtureSVC-stopped": (MixtureSVC(4, early_stopping=True, n_iter_no_change=1, **EM), ("two",)),
    "HierarchicalMixtureSVC": (HierarchicalMixtureSVC((2, 2), **EM), ALL),
    "MultiTaskMixtureSVC": (MultiTaskMixtureSVC(3, covariance_floor=1e-2, **EM), DENSE),
    "MultiTaskMixtureSVC-auto": (MultiTaskMixtureSVC(3, **EM), BOTH),
    "GaussianMixtureClassifier": (GaussianMixtureClassifier(2, random_state=0), DENSE),
    "GaussianMixtureClassifier-full": (GaussianMixtureClassifier(2, covariance="full", random_state=0), BOTH),
    "GaussianMixtureClassifier-unlabelled": (
        GaussianMixtureClassifier(2, pooling="class", unlabeled="cow", random_state=0), ("many",)),
    "FusedSVC": (FusedSVC(KERNEL, GaussianMixtureClassifier(2), weight=0.5, random_state=0), DENSE),
    "FusedSVC-auto": (FusedSVC(KERNEL, densities=(1, 2), cv=2, random_state=0), BOTH),
    "FusedSVC-reduced": (FusedSVC(KERNEL, weight=0.5, max_densities=4, random_state=0), ("two",)),
    "FusedSVC-temperature": (FusedSVC(KERNEL, weight=0.5, calibration="temperature", random_state=0), ("two",)),
    "NeighborsSVC": (NeighborsSVC(15, **EXACT | {"tol": 1e-8}), ALL),
    "NeighborsSVC-sigmoid": (NeighborsSVC(15, calibration="sigmoid", **EXACT | {"tol": 1e-8}), BOTH),
    "BoostedLinearSVC": (BoostedLinearSVC(5, **EXACT), (*ALL[:3], "two-float32")),
    "BoostedLinearSVC-stopped": (
        BoostedLinearSVC(5, early_stopping=True, n_iter_no_change=1, calibration="sigmoid", **EXACT), ("two",)),
    "BoostedTreesClassifier": (BoostedTreesClassifier(20, random_state=0), ALL),
    "BoostedTreesClassifier-all-rounds": (
        BoostedTreesClassifier(8, row_share=0.7, early_stopping=False, calibration="sigmoid", random_state=0),
        ("two",)),
    "BoostedTreesRegressor": (BoostedTreesRegressor(20, random_state=0), VALUES),
    "TreeSVC": (TreeSVC(3, **CONSTANT_LEAVES), ALL),
    "TreeSVC-linear": (
        TreeSVC(1, max_leaves=4, tiles="linear", pieces=None, tol=1e-9, max_iter=100_000, random_state=0), ("two",)),
    "MosaicClassifier": (MosaicClassifier(**SEARCH), ALL),
    "MosaicClassifier-isotonic": (MosaicClassifier(calibration="isotonic", **SEARCH), ("two",)),
    "MosaicRegressor": (MosaicRegressor(**SEARCH), VALUES),
    "LinearSVR": (LinearSVR(**EXACT), VALUES),
    "LinearSVR-squared-newton": (
        LinearSVR(loss="squared_epsilon_insensitive", solver="newton", normalize_y=False, **EXACT), VALUES),
    "LinearSVR-expectile": (LinearSVR(loss="expectile", quantile=0.8, **EXACT), ("values",)),
    "LinearSVR-quantiles": (LinearSVR(loss="quantile", quantile=(0.1, 0.9), **EXACT), ("values",)),
    "KMeansSVR": (KMeansSVR(4, **EXACT), VALUES),
    "ClusteredSVR": (ClusteredSVR(4, **EXACT), VALUES),
    "LocallyLinearSVR": (LocallyLinearSVR(**LOCAL, **EXACT), VALUES),
    "LocallyLinearSVR-sgd": (
        LocallyLinearSVR(solver="sgd", tol=1e-3, max_iter=10, random_state=0, **LOCAL), ("values",)),
    "KernelSVR": (KernelSVR(12, **EXACT), VALUES),
    "LearnedGateSVR": (LearnedGateSVR(**LEARNED), VALUES),
    "LearnedGateSVR-polish": (
        LearnedGateSVR(loss="epsilon_insensitive", polish=True, tol=1e-10, **LEARNED), ("values",)),
    "TreeSVR": (TreeSVR(3, **CONSTANT_LEAVES), VALUES),
}  # fmt: skip

PARTITIONED = {
    "LinearSVC": LinearSVC(**EXACT),
    "KMeansSVC": KMeansSVC(4, **EXACT),
    "ClusteredSVC": ClusteredSVC(4, **EXACT),
    "ClusteredSVC-temperature": ClusteredSVC(4, loss="squared_hinge", calibration="temperature", **EXACT),
    "LocallyLinearSVC": LocallyLinearSVC(**LOCAL, **EXACT),
}
STREAMED = {
    "LocallyLinearSVC": LocallyLinearSVC(tol=1e-3, random_state=0, **LOCAL),
    "LearnedGateSVC": LearnedGateSVC(**LEARNED),
}


def _cases():
    for name, (model, problems) in MODELS.items():
        for given in problems:
            yield Case(f"{name}/{given}", model, given)
    for name, model in PARTITIONED.items():
        for n_chunks, given in enumerate(("two", "many-weights", "two-float32", "many-float32"), 1):
            yield Case(f"{name}/{given}/chunks-{n_chunks}", model, given, in_chunks(n_chunks))
    for name, model in STREAMED.items():
        for given in ("two", "many-csr-weights"):
            yield Case(f"{name}/{given}/batches-4", model, given, in_batches(4))
        yield Case(f"{name}/two/fit-and-batch", model, "two", and_one_batch_more)
    for model in (LocallyLinearSVR(random_state=0, **LOCAL), LearnedGateSVR(**LEARNED)):
        yield Case(f"{type(model).__name__}/values-weights/batches-4", model, "values-weights", in_batches(4))
    yield Case("ClusteredSVC/many/dask-3", ClusteredSVC(4, **EXACT), "many", on_workers(3))
    yield Case("svm_to_mixture/two", KERNEL, "two", converted(svm_to_mixture))
    yield Case("svm_to_mixture/many", OneVsRestClassifier(KERNEL), "many", converted(svm_to_mixture))
    yield Case("mixture_to_svm/many", GaussianMixtureClassifier(2, random_state=0), "many", converted(mixture_to_svm))


CASES = {case.name: case for case in _cases()}

# Results ----------------------------------------------------------------------------------------------------------

# The first that a fitted model has is its objective.
OBJECTIVES = (
    "objective_", "log_likelihood_", "loss_curve_", "losses_", "estimator_errors_", "best_score_", "log_ratio_",
)  # fmt: skip
# What a model without a mosaic is made of.
ARRAYS = (
    "estimator_coef_", "intercept_", "estimator_weights_", "means_", "covariances_", "weights_", "dual_coef_",
    "centers", "svm_mixture_",
)  # fmt: skip


def result(case) -> dict:
    """What is stored of a case."""
    rows = problem(case.problem)
    # Experts are solved exactly, for the same reason as `EXACT`.
    exact = mock.patch("svmosaic.estimators._em.EXPERT_TOL", 1e-8)
    with warnings.catch_warnings(), threadpool_limits(1), exact:
        warnings.simplefilter("ignore", ConvergenceWarning)  # stochastic descent is stopped early on purpose
        model = case.fit(case.model, rows)
        found = scores_of(model, rows.queries)
    objective = next((getattr(model, name) for name in OBJECTIVES if hasattr(model, name)), None)
    if objective is not None and np.isfinite(objective).all():
        found["objective"] = np.ravel(objective).tolist()
    gap = np.ravel(getattr(model, "dual_gap_", np.nan))
    if np.isfinite(gap).all():
        found["gap"] = gap.tolist()
        found["gap_limit"] = case.model.tol * getattr(case.model, "C", 10.0) * rows.total_weight
    if getattr(model, "n_iter_", None) is not None:
        found["n_iter"] = int(model.n_iter_)
    found["arrays"] = {name: digest(values) for name, values in parts_of(model).items()}
    found["file"] = from_file(model, rows.queries)
    return found


def scores_of(model, X) -> dict:
    """Scores (of a regressor, predictions), labels and, if there are any, probabilities."""
    if isinstance(model, RegressorMixin):
        return {"scores": model.predict(X).tolist(), "labels": ""}
    found = {"scores": model.decision_function(X).tolist(), "labels": " ".join(map(str, model.predict(X)))}
    if hasattr(model, "predict_proba"):
        found["probabilities"] = model.predict_proba(X).tolist()
    return found


def from_file(model, X) -> str:
    """Whether a saved model scores as before: "same" or "other", or "refused" if it cannot be saved."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.svmosaic"
        try:
            model.save(path)
        except ValueError:  # it holds something that a file must not hold
            return "refused"
        return "same" if scores_of(svmosaic.load(path), X) == scores_of(model, X) else "other"


def parts_of(model) -> dict:
    """The arrays of a fitted model by the name of what holds them."""
    if not hasattr(model, "mosaic_"):
        return {name: leaves(getattr(model, name)) for name in ARRAYS if hasattr(model, name)}
    mosaic = model.mosaic_
    return {"gate": leaves(mosaic.gate), "coef": [mosaic.over_tiles(mosaic.coef)], "intercept": [mosaic.intercept]}


def leaves(part) -> list:
    """All arrays and numbers with fractions in a part of a model, whatever its fields are called."""
    if dataclasses.is_dataclass(part):
        return [leaf for field in dataclasses.fields(part) for leaf in leaves(getattr(part, field.name))]
    return [part] if isinstance(part, np.ndarray | float) else []


def digest(arrays) -> str:
    """A hash of the bits, types and shapes of some arrays, in any order."""
    parts = []
    for array in map(np.asarray, arrays):
        header = f"{array.dtype.str}{array.shape}".encode()
        parts.append(hashlib.sha256(header + np.ascontiguousarray(array).tobytes()).hexdigest())
    return hashlib.sha256("".join(sorted(parts)).encode()).hexdigest()[:12]


# Comparison -------------------------------------------------------------------------------------------------------


def largest_difference(found, stored) -> float:
    """The largest difference of two arrays, as a share of the largest entry of the second."""
    found, stored = np.asarray(found, dtype=float), np.asarray(stored, dtype=float)
    if found.shape != stored.shape:
        return np.inf
    return float(np.abs(found - stored).max() / max(np.abs(stored).max(), np.finfo(float).tiny))


def differences(found, stored) -> dict:
    """The largest difference of all that is measured in numbers."""
    names = [name for name in ("scores", "probabilities", "objective") if name in stored]
    return {name: largest_difference(found.get(name, []), stored[name]) for name in names}


def disagreements(case, found, stored) -> list[str]:
    """Where results differ by more than the case allows, in words."""
    allowed = {"objective": case.objective_tolerance}
    said = [
        f"{name} differ by {value:.1e}, more than {allowed.get(name, case.tolerance):.0e}, of the largest"
        for name, value in differences(found, stored).items()
        if not value <= allowed.get(name, case.tolerance)
    ]
    if found["labels"] != stored["labels"]:
        said.append(f"labels are {found['labels']}, not {stored['labels']}")
    if set(found) != set(stored):
        said.append(f"there are {', '.join(found)}, not {', '.join(stored)}")
    if "gap" in found and not max(found["gap"]) <= found["gap_limit"]:
        said.append(f"the gap {max(found['gap']):.3g} is above {found['gap_limit']:.3g}")
    if found["file"] not in ("same", stored["file"]):
        said.append(f"a model from its file is {found['file']!r}, not {stored['file']!r}")
    return said


# Command line -----------------------------------------------------------------------------------------------------


def versions() -> dict:
    """What the bits depend on, apart from the machine."""
    return {module.__name__: module.__version__ for module in (svmosaic, np, scipy, sklearn)}


def write(path):
    """Store the results of all cases, one per line."""
    lines = [f"{json.dumps(name)}: {json.dumps(result(case), separators=(',', ':'))}" for name, case in CASES.items()]
    path.write_text(f'{{"versions": {json.dumps(versions())},\n"cases": {{\n' + ",\n".join(lines) + "\n}}\n")


def changed(found, stored) -> list[str]:
    """What is not equal bit for bit."""
    flat = [{**one, **one["arrays"]} for one in (found, stored)]
    names = dict.fromkeys([*flat[1], *flat[0]])
    return [name for name in names if name != "arrays" and flat[0].get(name) != flat[1].get(name)]


def compare(path, match="") -> bool:
    """Print a table of the cases that differ from the stored ones; return whether all are within their tolerances."""
    stored = json.loads(path.read_text())
    if stored["versions"] != versions():
        print(f"stored with {stored['versions']}, compared with {versions()}")
    chosen = [name for name in CASES if match in name]
    beyond, table = [], []
    for name in chosen:
        found, known = result(CASES[name]), stored["cases"].get(name)
        if known is None:
            table.append([name, "", "", "not stored"])
        elif changed(found, known):
            off = max(differences(found, known).values())
            said = disagreements(CASES[name], found, known)
            beyond += [f"{name}: {words}" for words in said]
            table.append([name, f"{off:.1e}", "no" if said else "yes", ", ".join(changed(found, known))])
    if table:
        table.insert(0, ["case", "largest difference", "within tolerance", "bits differ in"])
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        print(*("  ".join(map(str.ljust, line, widths)).rstrip() for line in table), sep="\n")
    print(*beyond, sep="\n", end="\n" if beyond else "")
    print(f"{len(chosen)} cases, {len(chosen) - max(0, len(table) - 1)} equal bit for bit")
    return not beyond


def main(arguments=None) -> int:
    """Write or compare; 1 if a case is beyond its tolerance."""
    parser = argparse.ArgumentParser(description="Store the results of all estimators, or compare with stored ones.")
    task = parser.add_mutually_exclusive_group(required=True)
    task.add_argument("--write", type=Path, metavar="FILE", help="store the results of all cases")
    task.add_argument("--compare", type=Path, metavar="FILE", help="list the cases whose results are not the stored")
    parser.add_argument("--match", default="", metavar="TEXT", help="compare only cases with this in their name")
    options = parser.parse_args(arguments)
    if options.write:
        write(options.write)
        return 0
    return 0 if compare(options.compare, options.match) else 1


if __name__ == "__main__":
    sys.exit(main())
