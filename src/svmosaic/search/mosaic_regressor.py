"""The regressor to try first: it chooses the model itself."""

from time import perf_counter
from typing import Any

from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import check_random_state

from svmosaic.estimators._parameters import estimator
from svmosaic.estimators._progress import all_or_nothing
from svmosaic.estimators._table_input import TableInputMixin, prepare_training
from svmosaic.estimators.base import BaseMosaicRegressor
from svmosaic.estimators.data import validate_values
from svmosaic.search._searching import SearchMixin
from svmosaic.search.intervals import IntervalMixin
from svmosaic.search.judge import ValueJudge


@estimator
class MosaicRegressor(TableInputMixin, IntervalMixin, SearchMixin, CallbackSupportMixin, BaseMosaicRegressor):
    r"""Mosaic of linear regressions that chooses its models, their tiles and their scaling. Try this model first.

    The search is that of `MosaicClassifier`, over `LinearSVR`, `ClusteredSVR`, `LocallyLinearSVR`, `LearnedGateSVR`,
    `TreeSVR` and `BoostedTreesRegressor`. The model scales the rows itself. Candidates minimize squared errors, or
    absolute errors if the metric is based on these. A weighted blend of the best few is the model if it is better on
    held-out rows.

    Parameters
    ----------
    metric : str or callable, default="r2"
        Metric to optimize: the name of any scikit-learn scorer for regressors, such as "neg_mean_absolute_error" or
        "neg_root_mean_squared_error", or a callable with the signature (estimator, X, y).
    quantiles : pair of float or None, default=None
        With (0.05, 0.95), `predict_interval` returns 90 % intervals: the model with the largest weight is fitted
        again, to these two quantiles on one gate; if it is boosted trees, the next one, or curves per column. Not
        counted in `time_budget`.
    conformal : bool or {"split", "cross"}, default=True
        Correct the intervals on rows that their model is not fitted to, so that their coverage is valid: on a fifth of
        the rows or, up to a thousand rows, by cross-validation; see `svmosaic.search.intervals.fit_intervals`.

    Attributes
    ----------
    mosaic_ : Mosaic
        The fitted form, including the scaling; its scores are predictions of the standardized y.
    regions_ : Table
        Rows, mean and spread of y, mean absolute error and strongest features of each tile on the training data, from
        at most 20,000 rows. Up to 256 tiles are described in words, as by `summarize_regions`.
    intervals_ : Intervals or None
        The fitted intervals that `predict_interval` uses.
    coverage_ : float
        With `quantiles` and `conformal`: fraction of held-out rows inside their intervals.

    See Also
    --------
    MosaicClassifier : The same for classification.
    svmosaic.search.intervals.fit_intervals : Intervals for any regressor.

    Examples
    --------
    >>> import numpy as np
    >>> from svmosaic import MosaicRegressor
    >>> X = np.random.default_rng(0).uniform(-2, 2, size=(300, 2))
    >>> y = np.sin(2 * X[:, 0]) * X[:, 1]
    >>> model = MosaicRegressor(time_budget=5, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    metric: Any = "r2"
    quantiles: Any = None
    conformal: Any = True

    @all_or_nothing
    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Search, then fit the best model to all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or frame of pandas, Polars or PyArrow
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows in the losses and in the held-out score, relative to their mean.

        Returns
        -------
        self
        """
        began = perf_counter()
        self._check_parameters()
        rng = check_random_state(self.random_state)
        prepared, rows = prepare_training(
            X, y, "regression", sample_weight=sample_weight, categorical=self.categorical, ordered=self.ordered,
            drop=self.drop, random_state=rng,
        )  # fmt: skip
        rows, target = validate_values(self, rows, y, sample_weight)
        target = target.relative()
        self._check_intervals(target.truth)
        self._remember_table(prepared)
        judge = ValueJudge(rows, target, self.metric)
        wanted = judge.wanted if target.truth.ndim > 1 else judge.wanted[:, 0]
        found = self._search(rows, wanted, judge, rng, (X, y, sample_weight), began)
        self.head_ = judge.head
        self._keep(found)
        self.region_counts_ = self._regions_of(rows, target.truth)
        self.region_words_ = self._words_of_regions(X, sample_weight)
        self.intervals_ = self._fit_intervals(rows, target, rng, found.parts)
        return self
