"""The classifier to try first: it chooses the model itself."""

from typing import Any

import numpy as np
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import check_random_state

from svmosaic._validation import validate_training
from svmosaic.calibration import KEEP_ORDER, Temperature, fit_calibration, require_rows
from svmosaic.models._all_or_nothing import all_or_nothing
from svmosaic.models._base import BaseMosaicClassifier
from svmosaic.models._families import build_classifier
from svmosaic.models._parameters import estimator
from svmosaic.models._searching import SearchMixin
from svmosaic.models._table_input import TableInputMixin, prepare_training
from svmosaic.search.judge import ClassJudge


@estimator
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
    metric : str or callable, default="accuracy"
        What to choose by: the name of any scorer of scikit-learn, such as "balanced_accuracy", "f1", "roc_auc",
        "average_precision" or "neg_log_loss", or a callable with the signature (estimator, X, y).
    pos_label : label, default=None
        The class that metrics such as "f1" are about, if there are two. None: the second of the sorted labels.
    class_weight : dict, "balanced" or None, default=None
        Weighs the rows of each class in the losses and in the calibration, so that `predict` and `predict_proba` answer
        as if the classes occurred in these proportions; the metric counts rows as they are.
    calibration : {"odds", "temperature", "sigmoid", "isotonic"} or None, default="odds"
        How `predict_proba` turns scores into probabilities, fitted to the scores of held-out rows. "temperature": the
        softmax of the scores times one number. "odds": for more than two classes a sigmoid, the same for all of them,
        normalized; for two the temperature. With these two, `predict` stays as it is. "sigmoid": Platt's, two numbers
        per class. "isotonic": a step function per class, for large sets. With any, `predict` is the most probable
        class. None: no `predict_proba`.

    Attributes
    ----------
    mosaic_ : Mosaic
        The fitted form, scaling included.
    regions_ : Table
        Rows, classes, accuracy and strongest features of each tile, on the training data; of at
        most 100,000 rows. Up to 256 tiles are described in words, as `summarise_regions` does.

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

    metric: Any = "accuracy"
    pos_label: Any = None
    class_weight: dict | str | None = None
    calibration: str | None = "odds"

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
        if self.calibration not in (None, *KEEP_ORDER):
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
        self._check_calibration()
