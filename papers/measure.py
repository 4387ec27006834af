"""Measurement of a cell: settings are chosen by cross-validation, a model is fitted, scored and timed."""

import warnings
from collections.abc import Callable
from itertools import product
from time import perf_counter, process_time

import numpy as np
import sklearn.svm
from sklearn.kernel_approximation import AdditiveChi2Sampler
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

import svmosaic
from papers.describe import Cell, Method, Tuning
from papers.pictures import PICTURES, packed
from papers.tasks import draw, prepared, read, rows_of
from svmosaic.densities.conversion import OneVsRestMachine
from svmosaic.estimators._regularization_path import PATH_PARAMETERS, fit_path, has_path

FOLDS = 5


def _kernel_svm(**settings):
    return sklearn.svm.SVC(cache_size=1000, **settings)  # megabytes; the default of 200 is for smaller sets


def _multi_task(C, label_weight=1.0, **settings):
    penalty = label_weight / (2 * C)
    return svmosaic.MultiTaskMixtureSVC(label_weight=label_weight, alpha=penalty, beta=penalty, **settings)


MODELS: dict[str, Callable] = {
    "LSVM-MTL": _multi_task,
    "kernel SVM": _kernel_svm,
    # libSVM's way with several classes.
    "one-vs-one linear SVM": lambda **settings: sklearn.svm.SVC(kernel="linear", **settings),
    "one-vs-rest kernel SVM": lambda **settings: OneVsRestMachine(_kernel_svm(**settings)),
    "fused": lambda n_densities, **svm: svmosaic.FusedSVC(
        _kernel_svm(**svm), svmosaic.GaussianMixtureClassifier(n_densities), weight=0.5
    ),
    "additive SVM": lambda **settings: make_pipeline(AdditiveChi2Sampler(), svmosaic.LinearSVC(**settings)),
    # Eight neighbors unless a table says otherwise, as in the paper; the library's default is sixteen.
    "LocallyLinearSVC": lambda n_neighbors=8, **settings: svmosaic.LocallyLinearSVC(
        n_neighbors=n_neighbors, **settings
    ),
    "locally additive SVM": lambda **settings: svmosaic.LocallyLinearSVC(feature_map=AdditiveChi2Sampler(), **settings),
}


def build(method: Method, setting, seed, *, tuning=False):
    """The estimator of a method with the setting that was chosen."""
    parameters = {**method.settings, **(method.tune_settings if tuning else {}), **setting}
    model = (MODELS.get(method.model) or getattr(svmosaic, method.model))(**parameters)
    for part in getattr(model, "named_steps", {"": model}).values():
        if "random_state" in part.get_params(deep=False):
            part.set_params(random_state=seed)
    return model


def size_of(model) -> int | None:
    """Tiles, support vectors, boosted SVMs or densities; None if a model has nothing of this kind."""
    model = getattr(model, "steps", [(None, model)])[-1][1]
    if hasattr(model, "mosaic_"):
        return int(model.mosaic_.n_tiles)
    if hasattr(model, "n_support_"):
        return int(np.sum(model.n_support_))
    if isinstance(model, OneVsRestMachine):
        return len(np.unique(np.concatenate([machine.support_ for machine in model.estimators_])))
    if hasattr(model, "n_estimators_"):
        return int(model.n_estimators_)
    if hasattr(model, "svm_mixture_"):
        return len(model.svm_mixture_.centers) + len(model.mixture_.means_)
    return len(model.means_) if hasattr(model, "means_") else None


def measure(work, setting=None) -> dict:
    """The record of a cell or of a tuning. One thread, so that processor time is that of one core."""
    with threadpool_limits(1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if isinstance(work, Tuning):
            found = tune(work)
        elif work.method.model in PICTURES:
            found = {"kind": "picture", **PICTURES[work.method.model](**work.method.settings)}
        else:
            found = fit_and_score(work, setting or {})
    key, repeat = work.key
    heard = sorted({warning.category.__name__ for warning in caught})
    names = {"task": work.task.name, "method": work.method.name}
    return {"key": key, "repeat": repeat, **names, "warnings": heard, **found}


def fit_and_score(cell: Cell, setting) -> dict:
    """Fit with the setting that was chosen, and score on the test rows."""
    data = rows_of(cell.task, cell.repeat)
    model = build(cell.method, setting, cell.repeat)
    clock, processor = perf_counter(), process_time()
    model.fit(data.X_train, data.y_train)
    fit_clock, fit_seconds = perf_counter() - clock, process_time() - processor
    processor = process_time()
    predicted = model.predict(data.X_test)
    predict_seconds = process_time() - processor
    found = {
        "kind": "run",
        "setting": setting,
        "accuracy": 100 * float(np.mean(predicted == data.y_test)),
        "fit_seconds": round(fit_seconds, 4),
        "fit_clock": round(fit_clock, 4),
        "predict_seconds": round(predict_seconds, 4),
        "size": size_of(model),
        "train_rows": len(data.y_train),
        "test_rows": len(data.y_test),
        "features": data.X_train.shape[1],
    }
    if not cell.task.scene or cell.repeat > 0:
        return found
    # The predicted and the true class of every labeled pixel of an image.
    both = read(cell.task.source, cell.task.split, 0)
    _, X = prepared(cell.task.prepare, both.X_train[both.y_train > 0], np.vstack([both.X_train, both.X_test]))
    y = np.concatenate([both.y_train, both.y_test])
    # The set was shuffled: the same shuffle says where each pixel was.
    order, n_test = np.random.RandomState(0).permutation(len(y)), len(both.y_test)
    place = np.concatenate([order[n_test:], order[:n_test]])
    truth, shown = np.zeros(len(y), dtype=np.uint8), np.zeros(len(y), dtype=np.uint8)
    truth[place] = y
    shown[place[y > 0]] = model.predict(X[y > 0])
    return {**found, "map": {"truth": packed(truth), "predicted": packed(shown), "pixels": len(y)}}


def tune(tuning: Tuning) -> dict:
    """Accuracy of each setting of the grid over five folds, and the one that is chosen."""
    method = tuning.method
    data = rows_of(tuning.task, tuning.repeat)
    settings = grid_of(method)
    clock, processor = perf_counter(), process_time()
    if method.choose == "test":
        n = len(data.y_test)
        parts = [(data.X_train, data.y_train, data.X_test, data.y_test)]
    else:
        n_rows = min(method.tune_rows, method.tune_numbers // data.X_train.shape[1])
        chosen = draw(data.y_train, n_rows, seed=0)
        X, y = data.X_train[chosen], data.y_train[chosen]
        n = len(y)
        _, count = np.unique(y, return_counts=True)
        folds = StratifiedKFold(max(2, min(FOLDS, count.min())), shuffle=True, random_state=0)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The least populated class")
            parts = [(X[train], y[train], X[test], y[test]) for train, test in folds.split(X, y)]
    correct = np.zeros(len(settings))
    for X, y, X_test, y_test in parts:
        for k, model in _models(method, X, y, settings):
            correct[k] += np.sum(model.predict(X_test) == y_test)
    score = correct / n
    best = float(score.max())
    enough = best - np.sqrt(best * (1 - best) / n) if method.choose == "simplest" else best
    k = int(np.flatnonzero(score >= enough)[0])
    return {
        "kind": "tuning",
        "setting": settings[k],
        "accuracy": 100 * float(score[k]),
        "best": 100 * best,
        "scores": [round(100 * float(s), 3) for s in score],
        "tune_rows": n,
        "folds": len(parts),
        "fit_seconds": round(process_time() - processor, 3),
        "fit_clock": round(perf_counter() - clock, 3),
    }


def grid_of(method) -> list[dict]:
    """All settings of the grid, the last parameter fastest."""
    return [dict(zip(method.grid, values, strict=True)) for values in product(*method.grid.values())]


def _models(method, X, y, settings):
    """(place in the grid, fitted model) for every setting; one gate for those that can share it."""
    if not has_path(build(method, settings[0], 0, tuning=True)):
        for k, setting in enumerate(settings):
            yield k, build(method, setting, 0, tuning=True).fit(X, y)
        return
    groups: dict[tuple, list[int]] = {}
    for k, setting in enumerate(settings):
        gate = tuple((name, value) for name, value in setting.items() if name not in PATH_PARAMETERS)
        groups.setdefault(gate, []).append(k)
    for gate, places in groups.items():
        path = [{name: v for name, v in settings[k].items() if name in PATH_PARAMETERS} for k in places]
        model = build(method, dict(gate), 0, tuning=True)
        yield from zip(places, fit_path(model, X, y, path), strict=True)
