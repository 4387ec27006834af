"""The regressor to try first: it chooses the model itself."""

from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import check_random_state

from svmosaic._validation import validate_values
from svmosaic.models._all_or_nothing import all_or_nothing
from svmosaic.models._base import BaseMosaicRegressor
from svmosaic.models._families import build_regressor
from svmosaic.models._searching import SearchMixin
from svmosaic.models._table_input import TableInputMixin, prepare_training
from svmosaic.models.intervals import IntervalMixin
from svmosaic.search.judge import ValueJudge


class MosaicRegressor(IntervalMixin, SearchMixin, TableInputMixin, CallbackSupportMixin, BaseMosaicRegressor):
    r"""Mosaic of linear regressions that chooses its models, their tiles and their scaling: the one to try first.

    The search is that of `MosaicClassifier`, over `LinearSVR`, `ClusteredSVR`, `LocallyLinearSVR`, `LearnedGateSVR` and
    `TreeSVR`: pass rows as they are measured. Candidates minimize squared errors, or absolute ones if the metric is
    about these. A weighted blend of the best few is the model if it is better on held-out rows.

    Parameters
    ----------
    time_budget : float or None, default=30
        Seconds for the search and the last fit together; None for no limit. Give it more for many rows. If the budget
        runs out, the choice depends on the speed of the machine: `budget_bound_` says whether it did. Otherwise the
        same `random_state` gives the same model.
    max_tiles : int, default=100000
        Tiles that the model may have, those of all gates and leaves of all trees counted. A lower number makes
        prediction cheaper.
    metric : str or callable, default="r2"
        What to choose by: the name of any scorer of scikit-learn for regressors, such as "neg_mean_absolute_error" or
        "neg_root_mean_squared_error", or a callable with the signature (estimator, X, y).
    blend : bool, default=True
        Whether a weighted sum of several models may be chosen. False: a single one, which is easier to explain.
    families : sequence of str or None, default=None
        What to choose among: "linear", "clustered", "local", "learned", "trees". None: all.
    quantiles : pair of float or None, default=None
        With (0.05, 0.95), `predict_interval` gives 90 % intervals: the model with the largest weight is fitted once
        more, to these two quantiles on one gate. Not counted in `time_budget`.
    conformal : bool, default=True
        Correct the intervals on a fifth of the rows, which their model is not fitted to, so that their coverage is
        valid; see `svmosaic.models.intervals.fit_intervals`.
    validation_fraction : float, default=0.2
        Share of the rows that is held out; 20,000 rows at most.
    categorical : list of str, optional
        Columns of a table to take as categories whatever they hold.
    ordered : dict of str to list, or list of str, optional
        Columns of a table whose categories have an order, from the lowest to the highest.
    drop : list of str, optional
        Columns of a table to leave out.
    n_jobs : int or None, default=None
        Threads. The result does not depend on it, unless the budget runs out.
    random_state : int, RandomState or None, default=None
        For the held-out part, the subsamples and all models.
    verbose : int, default=0
        1 prints every candidate and its score.

    Attributes
    ----------
    head_ : Regress
        The mean and the standard deviation of y, `center` and `scale`, by which scores become values.
    best_estimator_ : estimator
        The single model, or the one with the largest weight in the blend; like this estimator it takes rows as they are
        measured.
    parts_ : list of tuple
        (weight, estimator) of each model of the blend, the largest weight first.
    best_score_ : float
        Held-out score of the model; nan if there were too few rows to hold any out, and the model is linear.
    leaderboard_ : Leaderboard
        All that was tried, as for `MosaicClassifier`; `loss` is the mean squared or absolute error of the standardized
        values.
    budget_bound_ : bool
        Whether anything was left out for want of time.
    stop_reason_ : str
        Why the search ended.
    mosaic_ : Mosaic
        The fitted form, scaling included; its scores are standardized values.
    held_out_ : tuple of ndarray, or None
        Indices of the training rows (those of weight zero not counted) that were held out, and their scores, of shape
        (n_held_out, n_targets), by models that had not seen them; ``head_.answers(scores)`` are values.
    regions_ : Table
        Rows, mean and spread of y, mean absolute error and strongest features of each tile, on the training data; of at
        most 100,000 rows. Up to 64 tiles are described in words, as `summarise_regions` does.
    intervals_ : Intervals or None
        What `predict_interval` uses.
    coverage_ : float
        Share of held-out rows inside their intervals, with `quantiles` and `conformal`.
    preparation_ : TablePreparation or None
        From the columns of a table to the rows that `best_estimator_` takes; None if X was a matrix of numbers.
    n_features_in_ : int
    feature_names_in_ : ndarray, if X had names

    See Also
    --------
    MosaicClassifier : The same for classes.
    svmosaic.models.intervals.fit_intervals : Intervals for any regressor.

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

    def __init__(
        self,
        time_budget=30.0,
        *,
        max_tiles=100_000,
        metric="r2",
        blend=True,
        families=None,
        quantiles=None,
        conformal=True,
        validation_fraction=0.2,
        categorical=None,
        ordered=None,
        drop=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.time_budget = time_budget
        self.max_tiles = max_tiles
        self.metric = metric
        self.blend = blend
        self.families = families
        self.quantiles = quantiles
        self.conformal = conformal
        self.validation_fraction = validation_fraction
        self.categorical = categorical
        self.ordered = ordered
        self.drop = drop
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @all_or_nothing
    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Search, then fit the best to all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or frame of pandas, Polars or PyArrow
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional
            Weighs the rows in the losses and in the held-out score.

        Returns
        -------
        self
        """
        self._check_parameters()
        rng = check_random_state(self.random_state)
        prepared, rows = prepare_training(
            X, y, "regression", categorical=self.categorical, ordered=self.ordered, drop=self.drop, random_state=rng
        )
        rows, target = validate_values(self, rows, y, sample_weight)
        self._remember_table(prepared)
        judge = ValueJudge(rows, target, self.metric)
        wanted = judge.wanted if target.y.ndim > 1 else judge.wanted[:, 0]
        found = self._search(rows, wanted, judge, build_regressor, rng, (X, y, sample_weight))
        self.head_ = judge.head
        self._keep(found)
        self.region_counts_ = self._regions_of(rows, target.y)
        self.region_words_ = self._words_of_regions(X)
        self.intervals_ = self._fit_intervals(rows, target, rng)
        return self
