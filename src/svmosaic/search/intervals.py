"""Prediction intervals: two quantiles on one gate, corrected on held-out rows so that their coverage is valid."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold, train_test_split
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import check_is_fitted

from svmosaic._validation import check_real
from svmosaic.estimators.linear import LinearSVR
from svmosaic.maps import over_measured_rows
from svmosaic.model.heads import widened

# Up to so many rows, a fifth of them says little about the margin: all are held out in turn instead, in so many parts.
# With fewer parts, the models that find the margin are worse than the one that is kept, and intervals too wide.
FEW_ROWS, TURNS = 1000, 10


@dataclass(frozen=True, eq=False)
class Intervals:
    """Fitted prediction intervals.

    Attributes
    ----------
    model : fitted regressor with two quantiles
    margin : float
        Margin added on both sides, in units of y; negative if the quantiles were too far apart.
    coverage : float
        Fraction of the held-out rows inside, computed for each half of them with the margin of the other half; nan
        without `conformal`.
    n_held_out : int

    See Also
    --------
    fit_intervals : Fits them.
    """

    model: Any
    margin: float
    coverage: float
    n_held_out: int

    def predict(self, X):
        """Predict lower and upper ends, of shape (n_samples, 2): sorted quantiles, moved by the margin."""
        return widened(np.sort(self.model.predict(X), axis=1), self.margin)


class IntervalMixin:
    """`predict_interval`, for a regressor with the parameters `quantiles` and `conformal` that searches for a model."""

    @property
    def predict_interval(self):
        """Predict lower and upper ends, of shape (n_samples, 2), in units of y; available only with `quantiles`."""
        if self.quantiles is None:
            raise AttributeError(
                f"{type(self).__name__} has no predict_interval without quantiles: pass quantiles=(0.05, 0.95), say, "
                "and fit it again"
            )
        return self._predict_interval

    def _predict_interval(self, X):
        check_is_fitted(self, "intervals_")
        return self.intervals_.predict(self._rows(X))

    def predictor(self):
        """As of every model; it has `predict_interval` if the model has."""
        packed = super().predictor()
        found = self._intervals
        return packed if found is None else packed.with_interval(found.model.predictor(), found.margin)

    @property
    def _intervals(self):
        return getattr(self, "intervals_", None)  # not there before `fit`

    @property
    def coverage_(self):
        if self._intervals is None:
            raise AttributeError(
                f"this {type(self).__name__} has no intervals: fit it with quantiles=(0.05, 0.95), say"
            )
        return self.intervals_.coverage

    def _check_intervals(self, y):
        """Refuse what intervals cannot be fitted to, before the search rather than after it."""
        if self.quantiles is not None:
            check_one_target(y)

    def _fit_intervals(self, X, target, rng, parts):
        """Intervals by a model like the best part that can be fitted to quantiles, on unscaled rows."""
        if self.quantiles is None:
            return None
        able = [part for part in parts if "loss" in part.estimators[0].get_params()]
        if able:
            model, scaling = clone(able[0].estimators[0]), able[0].scaling
        else:  # boosted trees alone
            model, scaling = LinearSVR(0.1, pieces=16, n_jobs=self.n_jobs, random_state=rng.randint(2**31 - 1)), None
        found = fit_intervals(
            model.set_params(normalize_y=True, max_time=None), X if scaling is None else scaling.scale(X),
            target.truth, target.weight, quantiles=self.quantiles, conformal=self.conformal, random_state=rng,
        )  # fmt: skip
        found.model.mosaic_ = over_measured_rows(scaling, found.model.mosaic_)
        return found

    def _check_parameters(self):
        super()._check_parameters()
        check_conformal(self.conformal)
        if self.quantiles is not None:
            check_quantiles(self.quantiles)


def fit_intervals(
    model, X, y, sample_weight=None, *, quantiles=(0.05, 0.95), conformal=True, held_out=0.2, random_state=None
) -> Intervals:  # fmt: skip
    """Fit a regressor to two quantiles and, with `conformal`, correct them.

    The correction is split conformal prediction for quantiles (Romano, Patterson and Candes, 2019): the model is fitted
    without a part of the rows, and its quantiles are moved apart until that part has the requested coverage. New rows
    from the same distribution then lie inside with at least that probability, no matter how poor the quantiles are.

    With few rows, a part of them says little about the margin. Up to a thousand rows, ten-fold cross-validation is used
    instead, and the final model is fitted to all rows. The coverage is then usually closer to the requested one, and
    the intervals are narrower, but the coverage is not guaranteed: a model that changes much with each row can fall
    short.

    Parameters
    ----------
    model : regressor with the parameters `loss` and `quantile`
        A clone of it is fitted with ``loss="quantile"``.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the losses; held-out rows count equally.
    quantiles : pair of float, default=(0.05, 0.95)
        Increasing; their difference is the coverage.
    conformal : bool or {"split", "cross"}, default=True
        Hold out a part of the rows ("split"), or use cross-validation ("cross"); True chooses by the number of rows.
        False fits to all rows without a correction.
    held_out : float, default=0.2
        Fraction of the rows that is held out by "split".
    random_state : int, RandomState or None, default=None
        For the choice of the held-out rows.

    Returns
    -------
    Intervals

    See Also
    --------
    svmosaic.MosaicRegressor : Fits intervals with its parameter `quantiles`.
    """
    low, high = check_quantiles(quantiles)
    model = clone(model).set_params(loss="quantile", quantile=(low, high))
    y = np.asarray(y, dtype=np.float64)
    check_one_target(y)
    rows, weight = np.arange(len(y)), None if sample_weight is None else np.asarray(sample_weight)

    def fitted(train):
        return clone(model).fit(
            _safe_indexing(X, train), y[train], sample_weight=None if weight is None else weight[train]
        )

    if not check_conformal(conformal):
        return Intervals(fitted(rows), 0.0, np.nan, 0)
    rng = check_random_state(random_state)
    if conformal == "cross" or (conformal is True and len(y) <= FEW_ROWS):
        parts = list(KFold(max(2, min(TURNS, len(y))), shuffle=True, random_state=rng).split(rows))
    else:
        parts = [train_test_split(rows, test_size=held_out, random_state=rng)]
    models = [fitted(train) for train, _ in parts]
    ends = np.concatenate(
        [np.sort(m.predict(_safe_indexing(X, held)), axis=1) for m, (_, held) in zip(models, parts, strict=True)]
    )
    held = np.concatenate([held for _, held in parts])
    truth = y[held]
    margin, coverage = conformal_margin(ends, truth, high - low), cross_coverage(ends, truth, high - low)
    return Intervals(models[0] if len(parts) == 1 else fitted(rows), margin, coverage, len(held))


def check_conformal(conformal):
    """Return the value, or raise an error that lists the allowed values."""
    if not (isinstance(conformal, bool) or conformal in ("split", "cross")):
        raise ValueError(f"conformal must be True, False, 'split' or 'cross', got {conformal!r}")
    return conformal


def check_one_target(y):
    """Raise ValueError if there are several values per row."""
    if y.ndim != 1:
        raise ValueError(f"intervals need a one-dimensional y, got shape {y.shape}: fit a model for each target")


def check_quantiles(quantiles) -> tuple[float, float]:
    """Return two increasing numbers between 0 and 1, or raise an error."""
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
