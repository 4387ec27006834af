"""The classifier to try first: it chooses the model itself."""

import numpy as np
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import check_random_state

from svmosaic._validation import check_choice, validate_training
from svmosaic.calibration import METHODS, Temperature, fit_calibration, require_rows
from svmosaic.models._all_or_nothing import all_or_nothing
from svmosaic.models._base import BaseMosaicClassifier
from svmosaic.models._families import build_classifier
from svmosaic.models._searching import SearchMixin
from svmosaic.models._table_input import TableInputMixin, prepare_training
from svmosaic.search.judge import ClassJudge


class MosaicClassifier(SearchMixin, TableInputMixin, CallbackSupportMixin, BaseMosaicClassifier):
    r"""Mosaic of linear classifiers that chooses its models, their tiles and their scaling: the one to try first.

    Rows are scaled by the model itself: pass them as they are measured. Linear, clustered, locally linear, learned-gate
    and tree models, with and without a curve per feature, are judged on rows held out: of up to 4000 rows five parts in
    turn, of more a single part, with rungs of growing numbers of rows. The best are varied as long as there is time and
    it helps. If a weighted blend of the best few is better than the best one, the blend is the model: a weighted sum of
    mosaics is a mosaic. What was chosen is fitted once more to all rows, unless those held out are a twentieth of them
    or less.

    Parameters
    ----------
    time_budget : float or None, default=30
        Seconds for the search and the last fit together; None for no limit. Give it more for many rows. If the budget
        runs out, the choice depends on the speed of the machine: `budget_bound_` says whether it did. Otherwise the
        same `random_state` gives the same model.
    max_tiles : int, default=100000
        Tiles that the model may have, those of all gates and leaves of all trees counted. A lower number makes
        prediction cheaper.
    metric : str or callable, default="accuracy"
        What to choose by: the name of any scorer of scikit-learn, such as "balanced_accuracy", "f1", "roc_auc",
        "average_precision" or "neg_log_loss", or a callable with the signature (estimator, X, y).
    pos_label : label, default=None
        The class that metrics such as "f1" are about, if there are two. None: the second of the sorted labels.
    class_weight : dict, "balanced" or None, default=None
        Weighs the rows of each class in the losses and in the calibration, so that `predict` and `predict_proba` answer
        as if the classes occurred in these proportions; the metric counts rows as they are.
    blend : bool, default=True
        Whether a weighted sum of several models may be chosen. False: a single one, which is easier to explain.
    families : sequence of str or None, default=None
        What to choose among: "linear", "clustered", "local", "learned", "trees". None: all.
    validation_fraction : float, default=0.2
        Share of the rows that is held out; 20,000 rows at most.
    calibration : {"temperature", "sigmoid", "isotonic"} or None, default="temperature"
        How `predict_proba` turns scores into probabilities, fitted to the scores of held-out rows. "temperature": one
        number, `predict` stays as it is. "sigmoid": Platt's, two numbers per class. "isotonic": a step function per
        class, for large sets. With any, `predict` is the most probable class. None: no `predict_proba`.
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
    classes_ : ndarray of shape (n_classes,)
    best_estimator_ : estimator
        The single model, or the one with the largest weight in the blend; like this estimator it takes rows as they are
        measured.
    parts_ : list of tuple
        (weight, estimator) of each model of the blend, the largest weight first.
    best_score_ : float
        Held-out score of the model; nan if there were too few rows to hold any out, and the model is linear. Chosen as
        the best of many, it is a little too good to be expected of new rows.
    leaderboard_ : Leaderboard
        A list of dicts, which prints as a table. All that was tried, the last round first, then best first: model,
        tiles (of all gates), gates, pieces, C, scaling, details, rows (of the training part), parts (held out in turn),
        score, std (over the parts, nan for a single one), loss (held-out log-loss, after a temperature), seconds (of
        all its fits), failure (why it could not be fitted, or ""), chosen, weight (share in the model). Scores compare
        within a round, that is for equal rows and parts. `pandas.DataFrame(leaderboard_)` gives a frame.
    budget_bound_ : bool
        Whether anything was left out for want of time.
    stop_reason_ : str
        Why the search ended: "time budget", "no better model in ... trials", "nothing left to try", or "stopped by a
        callback".
    mosaic_ : Mosaic
        The fitted form, scaling included.
    calibration_ : Temperature, Sigmoid, Isotonic or None
        From scores to probabilities.
    held_out_ : tuple of ndarray, or None
        Indices of the training rows (those of weight zero not counted) that were held out, and their scores, of shape
        (n_held_out, n_outputs), by models that had not seen them.
    regions_ : Table
        Rows, classes, accuracy and strongest features of each tile, on the training data; of at
        most 100,000 rows. Up to 64 tiles are described in words, as `summarise_regions` does.
    preparation_ : TablePreparation or None
        From the columns of a table to the rows that `best_estimator_` takes; None if X was a matrix of numbers.
    n_features_in_ : int
    feature_names_in_ : ndarray, if X had names

    See Also
    --------
    MosaicRegressor : The same for values.
    TreeSVC : Regions that are rules, without a search.
    svmosaic.display.write_report : A page about the fitted model.

    Examples
    --------
    >>> from svmosaic import MosaicClassifier
    >>> from svmosaic.datasets import make_xor
    >>> X, y = make_xor(random_state=0)
    >>> model = MosaicClassifier(time_budget=5, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.98)
    True
    >>> model.predict_proba(X[:3]).shape
    (3, 2)
    """

    def __init__(
        self,
        time_budget=30.0,
        *,
        max_tiles=100_000,
        metric="accuracy",
        pos_label=None,
        class_weight=None,
        blend=True,
        families=None,
        validation_fraction=0.2,
        calibration="temperature",
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
        self.pos_label = pos_label
        self.class_weight = class_weight
        self.blend = blend
        self.families = families
        self.validation_fraction = validation_fraction
        self.calibration = calibration
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
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Weighs the rows in the losses, in the calibration and in the held-out score.

        Returns
        -------
        self
        """
        self._check_parameters()
        rng = check_random_state(self.random_state)
        prepared, rows = prepare_training(
            X, y, "classification", categorical=self.categorical, ordered=self.ordered, drop=self.drop, random_state=rng
        )
        rows, target = validate_training(self, rows, y, sample_weight, self.class_weight)
        self._remember_table(prepared)
        if self.calibration not in (None, "temperature"):
            require_rows(self.calibration, target.classes, np.bincount(target.label, minlength=len(target.classes)))
        judge = ClassJudge(rows, target, self.metric, self.pos_label)
        found = self._search(rows, target.classes[target.label], judge, build_classifier, rng, (X, y, sample_weight))
        self.classes_ = target.classes
        self.calibration_ = self._calibrated(found, target)
        self._keep(found)
        self.region_counts_ = self._regions_of(rows, target.label)
        self.region_words_ = self._words_of_regions(X)
        return self

    def _calibrated(self, found, target):
        """The calibration, fitted to scores of held-out rows."""
        if self.calibration is None:
            return None
        if found.rows is None or not np.ptp(found.scores):
            return Temperature(1.0)
        return fit_calibration(self.calibration, found.scores, target.label[found.rows], target.weight[found.rows])

    def _check_parameters(self):
        super()._check_parameters()
        if self.calibration is not None:
            check_choice("calibration", self.calibration, METHODS)
