"""The classifier to try first: it chooses the model itself."""

from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import check_random_state

from svmosaic.estimators._parameters import estimator
from svmosaic.estimators._progress import all_or_nothing
from svmosaic.estimators._table_input import TableInputMixin, prepare_training
from svmosaic.estimators.base import BaseMosaicClassifier
from svmosaic.estimators.data import validate_training
from svmosaic.model.calibration import KEEP_ORDER, Temperature, fit_calibration, require_rows
from svmosaic.model.heads import Classify
from svmosaic.search._searching import SearchMixin
from svmosaic.search.judge import ClassJudge


@estimator
class MosaicClassifier(SearchMixin, TableInputMixin, CallbackSupportMixin, BaseMosaicClassifier):
    r"""Mosaic of linear classifiers that chooses its models, their tiles and their scaling. Try this model first.

    The model scales the rows itself. Linear, clustered, locally linear, kernel, learned-gate and tree models, boosted
    or not, with and without a curve per feature, are compared on held-out rows: by five-fold cross-validation for up to
    10,000 rows, and on a single held-out part for more, with increasing numbers of rows. Variations of the best models
    follow as long as they help. If a weighted blend of the best few is better than the best one, the blend is the
    model: a weighted sum of mosaics is a mosaic. The chosen models are fitted again to all rows, unless at most a
    twentieth of the rows was held out, or that would make them worse.

    Parameters
    ----------
    metric : str or callable, default="accuracy"
        Metric to optimize: the name of any scikit-learn scorer, such as "balanced_accuracy", "f1", "roc_auc",
        "average_precision" or "neg_log_loss", or a callable with the signature (estimator, X, y).
    pos_label : label, default=None
        For two classes, the positive class of metrics such as "f1". None: the second of the sorted labels.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes in the losses and in the calibration, so that `predict` and `predict_proba` answer as if
        the classes occurred in these proportions; the metric does not use them.
    calibration : {"odds", "temperature", "sigmoid", "isotonic"} or None, default="odds"
        How `predict_proba` converts scores to probabilities, fitted to the scores of held-out rows. "temperature": the
        softmax of the scores times one number. "odds": for more than two classes, a sigmoid with the same parameters
        for all of them, normalized; for two classes, the temperature. These two do not change `predict`. "sigmoid":
        Platt scaling, two parameters per class. "isotonic": a step function per class, for large data. With any of
        them, `predict` returns the most probable class. None: no `predict_proba`.

    Attributes
    ----------
    mosaic_ : Mosaic
        The fitted form, including the scaling.
    regions_ : Table
        Rows, classes, accuracy and strongest features of each tile on the training data, from at
        most 20,000 rows. Up to 256 tiles are described in words, as by `summarize_regions`.

    See Also
    --------
    MosaicRegressor : The same for regression.
    TreeSVC : Regions that are rules, without a search.
    svmosaic.explain.displays.write_report : An HTML report on the fitted model.

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

    metric: Any = "accuracy"
    pos_label: Any = None
    class_weight: dict | str | None = None
    calibration: str | None = "odds"

    @all_or_nothing
    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Search, then fit the best model to all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or frame of pandas, Polars or PyArrow
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows in the losses, in the calibration and in the held-out score, relative to their mean.

        Returns
        -------
        self
        """
        began = perf_counter()
        self._check_parameters()
        rng = check_random_state(self.random_state)
        prepared, rows = prepare_training(
            X, y, "classification", sample_weight=sample_weight, class_weight=self.class_weight,
            categorical=self.categorical, ordered=self.ordered, drop=self.drop, random_state=rng,
        )  # fmt: skip
        rows, target = validate_training(self, rows, y, sample_weight, self.class_weight)
        target = target.relative()
        present = np.unique(target.label)
        if len(present) < len(target.classes):  # classes of rows of weight zero alone are left out, as these rows are
            head = Classify(target.classes[present])
            target = replace(target, head=head, truth=np.searchsorted(present, target.label))
        self._remember_table(prepared)
        if self.calibration not in (None, *KEEP_ORDER):
            require_rows(self.calibration, target.classes, np.bincount(target.label, minlength=len(target.classes)))
        judge = ClassJudge(rows, target, self.metric, self.pos_label)
        found = self._search(rows, target.classes[target.label], judge, rng, (X, y, sample_weight), began)
        self.classes_ = target.classes
        self.calibration_ = self._calibrated(found, target)
        self._keep(found)
        self.region_counts_ = self._regions_of(rows, target.label)
        self.region_words_ = self._words_of_regions(X, sample_weight)
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
        self._check_calibration()
