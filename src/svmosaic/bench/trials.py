"""Accuracy and cost of models on one set, measured in one process, in one go."""

import os
import pickle
import platform
import warnings
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from pathlib import Path
from time import perf_counter

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from svmosaic.estimators._hold_out import hold_out
from svmosaic.maps import Scaling, over_measured_rows
from svmosaic.model.heads import head_of

_WARM_UP_ROWS = 300
_FIRST_ROWS = 1000  # of the growing parts by which the time of a fit is foretold
_GROWTH = 4
_ROWS_ALONE = 200  # single rows that are timed
_ROWS_BATCH = 20_000
_SHORT = 0.3  # seconds: what takes less is measured three times, and the fastest counts


@dataclass(frozen=True)
class Trial:
    """One model on one set.

    Attributes
    ----------
    model, key : str
    ours : bool
    accuracy : float, on the test rows; of models that predict values, R2
    fit_seconds : float
    batch_microseconds : float
        A row, of all test rows given at once (20,000 at most) to `predict`.
    row_microseconds : float
        A row given alone to `predict`: the median of 200.
    compiled_microseconds : float or None
        A row given alone to `predictor()`, scaling included; None for models that have none.
    n_bytes : int, of the pickle
    n_train, n_test : int
        Rows; fewer for training than available if all would have taken longer than the budget.
    parameters : dict, chosen by --tune
    note : str, what was remarkable
    """

    model: str
    key: str
    ours: bool
    accuracy: float
    fit_seconds: float
    batch_microseconds: float
    row_microseconds: float
    compiled_microseconds: float | None
    n_bytes: int
    n_train: int
    n_test: int
    parameters: dict
    note: str = ""

    def record(self) -> dict:
        """As JSON has it."""
        return asdict(self)


@dataclass(frozen=True)
class Skipped:
    """A model that was not measured, and why."""

    model: str
    key: str
    reason: str

    def record(self) -> dict:
        return asdict(self)


def measure(peer, data, setting, *, tune=False) -> Trial | Skipped:
    """Fit one model within the budget, and measure it.

    Parameters
    ----------
    peer : Peer
    data : Dataset
    setting : Setting
    tune : bool, default=False
        Choose among the peer's grid by the score on a fifth of the training rows.

    Returns
    -------
    Trial or Skipped
    """
    reason = peer.missing()
    if reason is None and peer.dense and sparse.issparse(data.X_train):
        reason = "it takes dense rows only"
    if reason is not None:
        return Skipped(peer.name, peer.key, reason)
    try:
        with _quietly(setting.n_jobs) as heard:
            return _measure(peer, data, setting, tune, heard)
    except (ImportError, ValueError, ArithmeticError, MemoryError, RuntimeError) as error:
        # One model that cannot take this set should not take the table with it.
        return Skipped(peer.name, peer.key, f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")


def _measure(peer, data, setting, tune, heard):
    model = peer.build(setting)
    if peer.scaled:
        model = make_pipeline(StandardScaler(with_mean=not sparse.issparse(data.X_train)), model)
    order = spread_order(data.y_train, setting.seed)
    warm = order[:_WARM_UP_ROWS]
    quick = model.set_params(time_budget=0.5) if peer.budgeted else model
    clone(quick).fit(data.X_train[warm], data.y_train[warm]).predict(data.X_test[:10])
    heard.clear()
    model = peer.build(setting) if peer.budgeted else model
    parameters = _tuned(model, peer, data, order, setting) if tune and peer.grid else {}
    model.set_params(**parameters)
    fitted, seconds, n_train = fit_within(
        model, data.X_train, data.y_train, order, np.inf if peer.budgeted else setting.budget
    )
    batch = data.X_test[:_ROWS_BATCH]
    batch_seconds = _fastest(lambda: fitted.predict(batch))
    score = fitted.score(data.X_test, data.y_test)
    predictor = compiled(fitted) if peer.ours else None
    notes = sorted({type_of for type_of in heard})
    if n_train < len(data.y_train):
        notes.insert(0, f"fitted to {n_train} rows: all would take longer than {setting.budget:g} s")
    return Trial(
        peer.name, peer.key, peer.ours, float(score), seconds, 1e6 * batch_seconds / batch.shape[0],
        _alone(fitted.predict, data.X_test, two_dimensional=True),
        None if predictor is None else _alone(predictor, data.X_test, two_dimensional=False),
        len(pickle.dumps(fitted)), n_train, len(data.y_test),
        {name.split("__")[-1]: value for name, value in parameters.items()}, "; ".join(notes),
    )  # fmt: skip


def spread_order(y, seed):
    """A shuffled order of the rows in which each class comes among the first."""
    order = np.random.RandomState(seed).permutation(len(y))
    first = np.sort(np.unique(y[order], return_index=True)[1])
    return np.concatenate([order[first], np.delete(order, first)])


def fit_within(model, X, y, order, budget):
    """Fit to all rows, or to as many as the budget should allow.

    The time is foretold from parts of 1000, 4000, ... rows, with the growth that they show.

    Returns
    -------
    model, seconds of its fit, number of rows
    """
    n, rows = len(y), _FIRST_ROWS
    before = None
    if np.isfinite(budget) and n > 2 * rows:
        while rows < n:
            fitted, seconds = _timed_fit(model, X, y, order[:rows])
            # Between linear and a little more than quadratic; what takes no time says nothing of its growth.
            power = 1.5 if before is None else np.clip(np.log(seconds / before) / np.log(_GROWTH), 1.0, 2.5)
            if seconds * (n / rows) ** power <= budget:
                break
            if seconds * _GROWTH**power > budget:
                allowed = int(rows * max(1.0, budget / seconds) ** (1 / power))
                if allowed >= 1.5 * rows:
                    rows = min(n, allowed)
                    fitted, seconds = _timed_fit(model, X, y, order[:rows])
                return fitted, seconds, rows
            rows, before = min(n, rows * _GROWTH), seconds
    fitted, seconds = _timed_fit(model, X, y, np.sort(order))
    if np.isfinite(budget):
        for _ in range(2):
            if seconds > _SHORT:
                break
            fitted, again = _timed_fit(model, X, y, np.sort(order))
            seconds = min(seconds, again)
    return fitted, seconds, n


def _timed_fit(model, X, y, rows):
    fresh = clone(model)
    X, y = X[rows], y[rows]
    start = perf_counter()
    fresh.fit(X, y)
    return fresh, max(perf_counter() - start, 1e-6)


def _tuned(model, peer, data, order, setting):
    """The best of the grid, on a fifth of the training rows."""
    prefix = f"{model.steps[-1][0]}__" if peer.scaled else ""
    n_held = max(1, len(order) // 5)
    held, train = order[-n_held:], order[:-n_held]
    scores = []
    for values in product(*peer.grid.values()):
        settings = {prefix + name: value for name, value in zip(peer.grid, values, strict=True)}
        candidate = clone(model).set_params(**settings)
        fitted, _, _ = fit_within(
            candidate, data.X_train[train], data.y_train[train], np.arange(len(train)), setting.budget
        )
        scores.append((float(fitted.score(data.X_train[held], data.y_train[held])), settings))
    return max(scores, key=lambda entry: entry[0])[1]


def compiled(model):
    """The predictor of one of our models, with the scaling before it; None if it has none."""
    last = model[-1] if hasattr(model, "steps") else model
    mosaic = getattr(last, "mosaic_", None)
    if mosaic is None:
        return None
    if last is not model:
        scaler = model[0]
        scaling = Scaling(scaler.mean_ if scaler.with_mean else None, 1 / scaler.scale_)
        mosaic = over_measured_rows(scaling, mosaic)
    return mosaic.compile(head=head_of(last))


def _fastest(work):
    seconds = []
    for _ in range(3):
        start = perf_counter()
        work()
        seconds.append(perf_counter() - start)
        if sum(seconds) > _SHORT:
            break
    return min(seconds)


def _alone(answer, X, *, two_dimensional):
    """Microseconds of one row given alone: the median over rows, for a second at most."""
    if not two_dimensional and sparse.issparse(X):
        return None
    rows = [X[[i]] if two_dimensional else X[i] for i in range(min(_ROWS_ALONE, X.shape[0]))]
    for row in rows[:3]:
        answer(row)
    times, begin = [], perf_counter()
    for row in rows:
        start = perf_counter()
        answer(row)
        times.append(perf_counter() - start)
        if perf_counter() - begin > 1.0:
            break
    return 1e6 * float(np.median(times))


@contextmanager
def _quietly(n_jobs):
    """Set the number of threads, and collect the names of warnings instead of showing them."""
    heard = []
    with warnings.catch_warnings(), threadpool_limits(n_jobs):
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, category, *rest: heard.append(_remark(category))
        yield heard


def _remark(category):
    return "did not converge" if category.__name__ == "ConvergenceWarning" else category.__name__


def subset(data, max_rows, seed=0):
    """The set with at most so many rows for training, and as many for testing."""
    if max_rows is None:
        return data
    train = np.sort(spread_order(data.y_train, seed)[:max_rows])
    test = np.sort(np.random.RandomState(seed).permutation(len(data.y_test))[:max_rows])
    return replace(
        data, X_train=data.X_train[train], y_train=data.y_train[train], X_test=data.X_test[test],
        y_test=data.y_test[test], train_rows=None, test_rows=None,
    )  # fmt: skip


def table_data(X, y, *, name, test_size=0.25, seed=0, task="classification"):
    """A table's rows, prepared: missing numbers filled in, text as zeros and ones, cut into two parts.

    Parameters
    ----------
    X : DataFrame, CSR matrix or ndarray, as `svmosaic.table.formats.read_table` gives it
    y : ndarray
    name : str
    test_size : float, default=0.25
    seed : int, default=0
    task : {"classification", "regression"}
        Whether y holds classes or values.

    Returns
    -------
    Dataset
    """
    from svmosaic.datasets import Dataset
    from svmosaic.table.preparation import build_preparation, clean_labels, clean_values, kinds_of, to_input

    y, there = (clean_values if task == "regression" else clean_labels)(y)
    kinds = kinds_of(X)
    if not there.all():
        X = X[there]
    if not sparse.issparse(X):
        names = list(X.columns) if hasattr(X, "columns") else [f"x{f}" for f in range(X.shape[1])]
        X = to_input(X, names, kinds)
    known, label = np.unique(y, return_inverse=True)
    if len(known) < 2:
        what = "classes" if task == "classification" else "values"
        raise ValueError(f"{name} has no two {what} among its labels: there is nothing to classify")
    n_test = int(np.ceil(test_size * len(y)))
    train, test = hold_out(len(y), n_test, seed, label if task == "classification" else None)
    part = X.iloc if hasattr(X, "iloc") else X
    X_train, X_test = part[train], part[test]
    if not sparse.issparse(X_train):  # sparse rows are numbers, and there as they are
        preparation = build_preparation(X_train, scale=False, task=task)
        X_train, X_test = preparation.fit_transform(X_train, y[train]), preparation.transform(X_test)
    X_train, X_test = (_compact(part) for part in (X_train, X_test))
    return Dataset(X_train, y[train], X_test, y[test], name)


def _compact(X, most=50_000_000):
    """Dense if that is not wasteful: many peers accept nothing else."""
    if sparse.issparse(X):
        return X.toarray() if X.shape[0] * X.shape[1] <= most else X.tocsr()
    return np.ascontiguousarray(X)


def business() -> str | None:
    """A sentence about other work on the machine, which makes all times too long; None if there is little."""
    if not hasattr(os, "getloadavg"):
        return None
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    return (
        f"the machine is busy (load {load:.1f} on {cores} cores): times are too long" if load > 0.75 * cores else None
    )


PACKAGES = (
    "svmosaic",
    "scikit-learn",
    "scikit-learn-intelex",
    "lightgbm",
    "lleaves",
    "onnxruntime",
    "numpy",
    "scipy",
    "rehline",
)


def machine() -> dict:
    """Where and with what a run was made."""
    packages: dict[str, str | None] = {}
    for name in PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = None
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "system": platform.system(),
        "python": platform.python_version(),
        "packages": packages,
    }


def _processor():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
