"""What happens in a cell: settings are chosen by cross-validation, a model is fitted, scored and timed."""

import base64
import warnings
import zlib
from itertools import product
from time import perf_counter, process_time

import numpy as np
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from svmosaic.estimators._regularization_path import PATH_PARAMETERS, fit_path, has_path
from svmosaic.experiments.describe import Cell, Tuning
from svmosaic.experiments.methods import build, size_of
from svmosaic.experiments.pictures import PICTURES
from svmosaic.experiments.tasks import draw, prepared, read, rows_of

FOLDS = 5


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
    return {
        "key": key,
        "repeat": repeat,
        "task": work.task.name,
        "method": work.method.name,
        "warnings": sorted({warning.category.__name__ for warning in caught}),
        **found,
    }


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
    if cell.task.scene and cell.repeat == 0:
        found["map"] = scene_map(cell.task, model)
    return found


def scene_map(task, model) -> dict:
    """The predicted and the true class of every labeled pixel of an image."""
    both = read(task.source, task.split, 0)
    _, X = prepared(task.prepare, both.X_train[both.y_train > 0], np.vstack([both.X_train, both.X_test]))
    y = np.concatenate([both.y_train, both.y_test])
    # The set was shuffled: the same shuffle says where each pixel was.
    order = np.random.RandomState(0).permutation(len(y))
    n_test = len(both.y_test)
    place = np.concatenate([order[n_test:], order[:n_test]])
    truth, predicted = np.zeros(len(y), dtype=np.uint8), np.zeros(len(y), dtype=np.uint8)
    truth[place] = y
    known = y > 0
    predicted[place[known]] = model.predict(X[known])
    return {"truth": packed(truth), "predicted": packed(predicted), "pixels": len(y)}


def packed(array) -> str:
    """Small whole numbers as text."""
    return base64.b64encode(zlib.compress(np.asarray(array, dtype=np.uint8).tobytes(), 9)).decode()


def unpacked(text, shape):
    """The array that `packed` was given."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype=np.uint8).reshape(shape)


def tune(tuning: Tuning) -> dict:
    """Accuracy of each setting of the grid over five folds, and the one that is chosen."""
    method = tuning.method
    data = rows_of(tuning.task, tuning.repeat)
    settings = grid_of(method)
    clock, processor = perf_counter(), process_time()
    if method.choose == "test":
        n, splits = len(data.y_test), [None]
        correct = np.zeros(len(settings))
        for k, model in _models(method, data.X_train, data.y_train, settings):
            correct[k] = np.sum(model.predict(data.X_test) == data.y_test)
    else:
        n, splits, correct = _cross_validate(method, data, settings)
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
        "folds": len(splits),
        "fit_seconds": round(process_time() - processor, 3),
        "fit_clock": round(perf_counter() - clock, 3),
    }


def _cross_validate(method, data, settings):
    """Rows that were seen, the folds, and right answers of each setting."""
    n_rows = min(method.tune_rows, method.tune_numbers // data.X_train.shape[1])
    chosen = draw(data.y_train, n_rows, seed=0)
    X, y = data.X_train[chosen], data.y_train[chosen]
    _, count = np.unique(y, return_counts=True)
    folds = StratifiedKFold(max(2, min(FOLDS, count.min())), shuffle=True, random_state=0)
    correct = np.zeros(len(settings))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")
        splits = list(folds.split(X, y))
    for train, test in splits:
        for k, model in _models(method, X[train], y[train], settings):
            correct[k] += np.sum(model.predict(X[test]) == y[test])
    return len(y), splits, correct


def grid_of(method) -> list[dict]:
    """All settings of the grid, the last parameter fastest."""
    return [dict(zip(method.grid, values, strict=True)) for values in product(*method.grid.values())]


def _models(method, X, y, settings):
    """(place in the grid, fitted model) for every setting; one gate for those that can share it."""
    first = build(method, settings[0], 0, tuning=True)
    if not has_path(first):
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
