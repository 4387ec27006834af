"""Many settings on one gate: how a grid is searched without placing the same tiles again and again."""

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from svmosaic.estimators._progress import Progress
from svmosaic.estimators.base import ComposedModel
from svmosaic.estimators.data import Data
from svmosaic.estimators.tiles import fit_tiles

# Parameters that leave the gate as it is. Duals stay feasible when they change, once scaled with C.
PATH_PARAMETERS = ("C", "global_reg")


def has_path(estimator) -> bool:
    """Whether `fit_path` can do better than one fit per setting: not where the gate depends on the tiles."""
    return isinstance(estimator, ComposedModel)


def fit_path(estimator, X, y, settings):
    """Yield a fitted clone of the estimator for each setting; the gate is fitted once.

    Every solve starts from the duals of the one before, scaled with C, which are feasible for it and, along a path of
    rising C, nearly optimal. Each model reaches its own `tol`, so it equals that of a separate `fit` up to that
    tolerance.

    Parameters
    ----------
    estimator : a mosaic whose gate is fitted first
    X, y : training rows, and their labels or values
    settings : sequence of dict
        Values of `C` and `global_reg` (those the estimator has), best ordered by rising C.
    """
    if not has_path(estimator):
        raise TypeError(f"fit_path needs a mosaic whose gate is fitted first, got {type(estimator).__name__}")
    for setting in settings:
        unknown = set(setting) - set(PATH_PARAMETERS)
        if unknown:
            raise ValueError(f"fit_path varies {' and '.join(PATH_PARAMETERS)} only, got {sorted(unknown)}")
    first = clone(estimator)
    first._check_parameters()
    X, target = first._validated(X, y, None)
    rng = check_random_state(first.random_state)
    data = Data.of(X, target)
    if (feature_map := first._map(data, rng)) is not None:
        data.map(feature_map)
    gate = first._gate(data, rng)
    duals, cost = None, None
    for setting in settings:
        model = clone(estimator).set_params(**setting)
        model._check_parameters()
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(first, name):
                setattr(model, name, getattr(first, name))
        start = None if duals is None else [alpha * (model.C / cost) for alpha in duals]
        fit = fit_tiles(
            data, gate, model._coupling(gate.n_tiles), model._options(), Progress(model), rng,
            solve_tiles=model._solving, start=start,
        )  # fmt: skip
        model._remember(target.head, fit, data.n_rows)
        duals, cost = [s.alpha for s in fit.solutions], model.C
        if not all(alpha is not None and np.isfinite(alpha).all() for alpha in duals):
            duals = None  # stochastic descent has none to start from
        yield model
