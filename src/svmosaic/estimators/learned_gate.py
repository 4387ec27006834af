"""Classifiers whose gates learn."""

import numpy as np

from svmosaic._validation import validate_training
from svmosaic.estimators._all_or_nothing import all_or_nothing
from svmosaic.estimators._base import BaseMosaicClassifier
from svmosaic.estimators._learning import LearningMixin
from svmosaic.estimators._parameters import estimator
from svmosaic.losses import SQUARED_HINGE
from svmosaic.model.calibration import Temperature, fit_calibration
from svmosaic.model.heads import Classify


@estimator
class LearnedGateSVC(LearningMixin, BaseMosaicClassifier):
    r"""Mosaic of linear classifiers whose regions are learned with the tiles.

    .. math:: f_c(x) = \frac{1}{\sqrt{M}} \sum_m \sum_{j \in N_m(x)} g_{mj}(x) (\langle w_{jc}, x \rangle + b_{jc}) ,
              \quad g_m = \text{softmax}_{j \in N_m(x)}(-\tau_m \lVert P_m x - v_j \rVert^2)

    with :math:`N_m(x)` the `n_neighbors` anchors of gate m nearest to :math:`P_m x`. Projections P, anchors v,
    sharpness :math:`\tau` and tiles are learned together by minibatches of the loss, with Adam, a one-cycle
    schedule, and weight decay and dropout on the tiles. The loss is the squared hinge,
    :math:`\sum_i s_i \sum_c \max(0, 1 - y_{ic} f_c(x_i))^2`, one-vs-rest, or the multinomial log-loss. Training starts
    from principal components (with several gates, a random rotation of them for each), k-means in this projection, and
    zero tiles. A part of the rows is held out to find the best epoch. The problem is not convex, and there is no
    certificate for the gate. With `polish`, the tiles are then solved for with the gate frozen; they minimize

    .. math:: \tfrac12 \sum_j \lVert (w_{jc}, b_{jc}) \rVert^2 + C \sum_i s_i \max(0, 1 - y_{ic} f_c(x_i))^2

    for each output c, to a certified gap, and the tiles that are better on the held-out rows are kept.

    Standardize the features first; dense rows far from the origin are centered internally. Training uses float32.

    Parameters
    ----------
    loss : {"squared_hinge", "log_loss"}, default="squared_hinge"
        "log_loss" is multinomial; its scores are log-odds, so `predict_proba` needs no calibration.
    class_weight : dict, "balanced" or None, default=None
        Multiplies the sample weight of the rows of each class.
    calibration : {"temperature", "odds", "sigmoid", "isotonic"} or None, default=None
        How `predict_proba` converts scores to probabilities; see `LinearSVC`. The gate has learned from the labels too,
        so the calibration is fitted to rows held out from training, a fraction `validation_fraction`. None: the
        probabilities of the log-loss or, with the squared hinge, no `predict_proba`.

    See Also
    --------
    LearnedGateSVR : The same for regression.
    LocallyLinearSVC : Fixed anchors, and a convex problem.

    Examples
    --------
    >>> from svmosaic import LearnedGateSVC
    >>> from svmosaic.datasets import make_xor
    >>> X, y = make_xor(random_state=0)
    >>> model = LearnedGateSVC(n_tiles=8, n_neighbors=2, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.98)
    True
    """

    loss: str = "squared_hinge"
    class_weight: dict | str | None = None

    _losses = ("squared_hinge", "log_loss")

    @all_or_nothing
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Learn from a batch of a stream in one pass, in minibatches at a constant learning rate.

        The first batch, unless `fit` was called before, initializes the projection and the gate. `regions_` then
        describes the rows of this batch.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like of shape (n_classes,), optional
            All classes that occur in the stream; required in the first call.
        sample_weight : array-like of shape (n_samples,), optional
            Weighs the loss of each row.

        Returns
        -------
        self
        """
        return self._fit_batch(X, y, classes, sample_weight)

    def _own_head(self, target):
        """Scores of the log-loss are log-odds: for two classes of s, and `Temperature` takes the softmax of (-s, s)."""
        if self.loss != "log_loss":
            return target.head
        return Classify(target.classes, Temperature(0.5 if target.n_outputs == 1 else 1.0))

    @property
    def _scores_are_log_odds(self) -> bool:
        return self.loss == "log_loss"

    def _complete_head(self, held, target):
        if self.calibration is None:
            return self._own_head(target)
        X, target = held
        if len(np.unique(target.label)) < len(target.classes):
            raise ValueError(
                f"calibration={self.calibration!r} needs rows of every class in the part held out: raise "
                f"validation_fraction={self.validation_fraction}, or pass calibration=None"
            )
        scores = self.mosaic_.decision_function(X, self.n_jobs)
        calibration = fit_calibration(self.calibration, scores, target.label, target.sample_weight)
        return Classify(target.classes, calibration)

    def _validated(self, X, y, sample_weight):
        return validate_training(self, X, y, sample_weight, self.class_weight)

    def _needs_held_out(self):
        return super()._needs_held_out() or self.calibration is not None

    def _judge(self, scores, target):
        return target.head.accuracy(scores, target.label, target.weight)

    def _asked_of(self, target):
        return target.classes.tolist()

    def _polished_loss(self):
        return SQUARED_HINGE, lambda output: {}

    def _check_parameters(self):
        self._check_calibration()
        super()._check_parameters()
        if self.polish and self.loss != "squared_hinge":
            raise ValueError(f"polish=True needs loss='squared_hinge', got loss={self.loss!r}")
