"""Prediction intervals: two quantiles on one gate, corrected on held-out rows so that their coverage is valid."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import check_is_fitted

from svmosaic._validation import check_real
from svmosaic.maps import Scaling, scaled_first


@dataclass(frozen=True, eq=False)
class Intervals:
    """Fitted intervals.

    Attributes
    ----------
    model : fitted regressor with two quantiles
    margin : float
        What is added to both sides, in units of y; negative if the quantiles were too far apart.
    coverage : float
        Share of the held-out rows inside, each half of them judged with the margin of the other half; nan without
        `conformal`.
    n_held_out : int
    """

    model: Any
    margin: float
    coverage: float
    n_held_out: int

    def predict(self, X):
        """Lower and upper ends, of shape (n_samples, 2): quantiles in order, with the margin."""
        return widened(np.sort(self.model.predict(X), axis=1), self.margin)

    def predictor(self) -> "IntervalPredictor":
        """For single rows and batches without checks; see `IntervalPredictor`."""
        return IntervalPredictor(self.model.predictor(), self.margin)


@dataclass(frozen=True, eq=False)
class IntervalPredictor:
    """Intervals from packed arrays: the compiled predictor of the two quantiles, and the margin.

    Attributes
    ----------
    quantiles : predictor of a regressor with two quantiles
    margin : float
    """

    quantiles: Any
    margin: float

    def predict(self, X):
        """Lower and upper ends, of shape (2,) for one row and (n_samples, 2) for several."""
        found = np.asarray(self.quantiles.predict(X))
        return widened(np.sort(found.reshape(-1, 2), axis=1), self.margin).reshape(found.shape)


class IntervalMixin:
    """`predict_interval`, for a regressor with the parameters `quantiles` and `conformal` and a `best_estimator_`."""

    @property
    def predict_interval(self):
        """Lower and upper ends from X, of shape (n_samples, 2), in units of y; there with `quantiles` only."""
        if self.quantiles is None:
            raise AttributeError(
                f"{type(self).__name__} has no predict_interval without quantiles: pass quantiles=(0.05, 0.95), say, "
                "and fit it again"
            )
        return self._predict_interval

    def _predict_interval(self, X):
        check_is_fitted(self, "intervals_")
        return self.intervals_.predict(self._rows(X))

    @property
    def coverage_(self):
        if getattr(self, "intervals_", None) is None:
            raise AttributeError(
                f"this {type(self).__name__} has no intervals: fit it with quantiles=(0.05, 0.95), say"
            )
        return self.intervals_.coverage

    def _fit_intervals(self, X, target, rng):
        """Intervals by a model like the best one, on rows as they are measured."""
        if self.quantiles is None:
            return None
        affine = self.best_estimator_.mosaic_.features.affine
        scaling = None if affine is None else Scaling(*affine)
        model = clone(self.best_estimator_).set_params(normalize_y=True, max_time=None)
        found = fit_intervals(
            model, X if scaling is None else scaling.scale(X), target.y, target.weight,
            quantiles=self.quantiles, conformal=self.conformal, random_state=rng,
        )  # fmt: skip
        if scaling is not None:
            mosaic = found.model.mosaic_
            found.model.mosaic_ = replace(mosaic, feature_map=scaled_first(scaling, mosaic.feature_map))
        return found

    def _check_parameters(self):
        super()._check_parameters()
        if self.quantiles is not None:
            check_quantiles(self.quantiles)


def fit_intervals(
    model, X, y, sample_weight=None, *, quantiles=(0.05, 0.95), conformal=True, held_out=0.2, random_state=None
) -> Intervals:  # fmt: skip
    """Fit a regressor to two quantiles and, with `conformal`, correct them.

    The correction is split conformal prediction for quantiles (Romano, Patterson and Candes, 2019): the model is fitted
    without a part of the rows, and its quantiles are moved apart until the share of that part that lies between them is
    the one asked for. New rows like the training rows then lie inside with at least that probability, however bad the
    quantiles are.

    Parameters
    ----------
    model : regressor with the parameters `loss` and `quantile`
        A clone of it is fitted with ``loss="quantile"``.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    sample_weight : array-like of shape (n_samples,), optional
        Weighs the losses; held-out rows count equally.
    quantiles : pair of float, default=(0.05, 0.95)
        Increasing; their difference is the coverage.
    conformal : bool, default=True
        False fits to all rows, and corrects nothing.
    held_out : float, default=0.2
        Share of the rows for the correction.
    random_state : int, RandomState or None, default=None
        Draws them.

    Returns
    -------
    Intervals
    """
    low, high = check_quantiles(quantiles)
    model = clone(model).set_params(loss="quantile", quantile=(low, high))
    y = np.asarray(y, dtype=np.float64)
    if y.ndim != 1:
        raise ValueError(f"intervals are for y of one dimension, got shape {y.shape}: fit a model for each target")
    if not conformal:
        return Intervals(model.fit(X, y, sample_weight=sample_weight), 0.0, np.nan, 0)
    rng = check_random_state(random_state)
    train, held = train_test_split(np.arange(len(y)), test_size=held_out, random_state=rng)
    weight = None if sample_weight is None else np.asarray(sample_weight)[train]
    model.fit(_safe_indexing(X, train), y[train], sample_weight=weight)
    ends, truth = np.sort(model.predict(_safe_indexing(X, held)), axis=1), y[held]
    margin = conformal_margin(ends, truth, high - low)
    return Intervals(model, margin, cross_coverage(ends, truth, high - low), len(held))


def check_quantiles(quantiles) -> tuple[float, float]:
    """Two increasing numbers between 0 and 1, or an error that says so."""
    if np.ndim(quantiles) != 1 or len(quantiles) != 2:
        raise ValueError(f"quantiles must be two numbers, such as (0.05, 0.95), got {quantiles!r}")
    for q in quantiles:
        check_real("quantiles", q, above=0, below=1)
    if not quantiles[0] < quantiles[1]:
        raise ValueError(f"quantiles must increase, got {quantiles!r}")
    return float(quantiles[0]), float(quantiles[1])


def conformal_margin(ends, y, coverage) -> float:
    """How far the ends must move apart for this coverage of rows that are not seen.

    Parameters
    ----------
    ends : ndarray of shape (n_rows, 2)
        Quantiles of rows that their model was not fitted to.
    y : ndarray of shape (n_rows,)
    coverage : float
    """
    beyond = np.sort(np.maximum(ends[:, 0] - y, y - ends[:, 1]))
    place = int(np.ceil((len(y) + 1) * coverage))
    if place > len(y):
        raise ValueError(
            f"{len(y)} held-out rows are too few for intervals with a coverage of {coverage:g}: at least "
            f"{int(np.ceil(coverage / (1 - coverage)))} are needed; pass conformal=False, or more rows"
        )
    return float(beyond[place - 1])


def cross_coverage(ends, y, coverage) -> float:
    """Coverage of rows by halves, each with the margin of the other; nan if the halves are too small for it."""
    half = np.arange(len(y)) % 2 == 0
    inside = []
    for here in (half, ~half):
        if int(np.ceil(((~here).sum() + 1) * coverage)) > (~here).sum():
            return np.nan
        moved = widened(ends[here], conformal_margin(ends[~here], y[~here], coverage))
        inside.append((moved[:, 0] <= y[here]) & (y[here] <= moved[:, 1]))
    return float(np.concatenate(inside).mean())


def widened(ends, margin):
    """Ends moved apart by a margin; those that would cross meet in the middle."""
    low, high = ends[:, 0] - margin, ends[:, 1] + margin
    middle = 0.5 * (low + high)
    return np.stack([np.minimum(low, middle), np.maximum(high, middle)], axis=1)
