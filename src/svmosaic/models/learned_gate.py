"""Classifiers whose gates learn."""

import numpy as np

from svmosaic._validation import validate_batch, validate_training
from svmosaic.calibration import Temperature, fit_calibration
from svmosaic.heads import Classify
from svmosaic.losses import SQUARED_HINGE
from svmosaic.models._all_or_nothing import all_or_nothing
from svmosaic.models._base import BaseMosaicClassifier
from svmosaic.models._hold_out import hold_out
from svmosaic.models._learning import LearningMixin


class LearnedGateSVC(LearningMixin, BaseMosaicClassifier):
    r"""Mosaic of linear classifiers whose regions are learned with the tiles.

    .. math:: f_c(x) = \frac{1}{\sqrt{M}} \sum_m \sum_{j \in N_m(x)} g_{mj}(x) (\langle w_{jc}, x \rangle + b_{jc}) ,
              \quad g_m = \text{softmax}_{j \in N_m(x)}(-\tau_m \lVert P_m x - v_j \rVert^2)

    with :math:`N_m(x)` the `n_neighbors` anchors of gate m nearest to :math:`P_m x`. Projections P, anchors v,
    sharpness :math:`\tau` and tiles are learned together by minibatches of the loss, with Adam, a one-cycle
    schedule, and weight decay and dropout on the tiles. The loss is the squared hinge,
    :math:`\sum_i s_i \sum_c \max(0, 1 - y_{ic} f_c(x_i))^2`, one against the rest, or the multinomial log-loss. Start:
    principal components (of several gates each has its own random rotation of them), k-means in them, zero tiles. A
    part of the rows is held out to find the best epoch. The problem is not convex, and there is no certificate for the
    gate. With `polish`, the tiles are then solved for with the gate frozen; they minimize

    .. math:: \tfrac12 \sum_j \lVert (w_{jc}, b_{jc}) \rVert^2 + C \sum_i s_i \max(0, 1 - y_{ic} f_c(x_i))^2

    for each output c, to a certified gap, and what is better on the held-out part is kept.

    Standardize the features first. Learning is in float32.

    Parameters
    ----------
    n_tiles : int, default=100
        Number of anchors of each gate, and so of its tiles.
    n_gates : int, default=1
        Number of gates. Several small gates are less a matter of the seed than a large one: 8 gates of 16 tiles with 2
        neighbors cost about as much as one of 128 tiles with 16.
    n_components : int or None, default=16
        Dimension of the projection of each gate, at most the number of features; None gives x itself to the gate.
    n_neighbors : int, default=8
        Anchors of each gate that share a row.
    loss : {"squared_hinge", "log_loss"}, default="squared_hinge"
        "log_loss" is multinomial; its scores are log-odds, so that `predict_proba` needs no calibration.
    weight_decay : float, default=0.01
        Share of itself that a tile loses per step, times the learning rate. Raise it, up to 1, if the training rows are
        learned by heart.
    dropout : float, default=0.0
        Share of the features that the tiles do not see, at most 0.9, drawn anew for each row in each step; the gate
        sees all. Another remedy for learning by heart.
    C : float, default=10.0
        Weight of the losses when the tiles are polished.
    learn_gate : bool, default=True
        False keeps projection, anchors and sharpness as they start, and learns the tiles only.
    max_iter : int, default=40
        Epochs.
    learning_rate : float, default=0.03
        Peak of the schedule, for tiles; the gate learns at 0.3 of it.
    batch_size : int or None, default=None
        Rows per step. None takes a 400th of the rows, but at least 32 and at most 1024.
    max_time : float or None, default=None
        Seconds after which learning stops, between two batches, with what has been learned by then and a warning; the
        rate has not fallen yet, so that fewer epochs are the better way to a shorter fit.
    early_stopping : bool or "auto", default="auto"
        Score a held-out part after each epoch, stop after `n_iter_no_change` epochs without a better score, and keep
        the best. "auto" does so if the held-out part has at least 50 rows.
    n_iter_no_change : int, default=10
        Epochs without a better score after which `early_stopping` stops.
    validation_fraction : float, default=0.1
        Size of the part held out from training for `early_stopping`, `polish` and `calibration`.
    refit : bool or "auto", default="auto"
        After early stopping, learn once more from all rows, for the number of epochs that was best. "auto" does so for
        at most 50,000 rows. Never together with `polish` or `calibration`, which need the held-out part.
    polish : bool, default=False
        Solve for the tiles with the gate frozen, and keep what is better on the held-out part. Worth its time if
        features are many and rows few. Needs ``loss="squared_hinge"``.
    tol : float, default=1e-3
        Duality gap of the polished tiles, as a share of the objective at zero.
    warm_start : bool, default=False
        Start `fit` from the gate and tiles of the last one; anew if classes, features, loss, `n_tiles`, `n_gates`,
        `n_components` or `n_neighbors` have changed.
    class_weight : dict, "balanced" or None, default=None
        Multiplies the sample weight of the rows of each class.
    calibration : {"temperature", "sigmoid", "isotonic"} or None, default=None
        How `predict_proba` turns scores into probabilities; see `LinearSVC`. The gate has learned from the labels too,
        so the calibration is fitted to a part held out from training, of size `validation_fraction`. None: the
        probabilities of the log-loss, or, with the squared hinge, no `predict_proba`.
    device : {"cpu", "gpu", "auto"}, default="cpu"
        Where to learn, and to score 10,000 rows or more. "gpu" needs JAX and an accelerator, and dense rows; "auto" is
        the CPU if there is none. On the CPU results have the same bits whatever `n_jobs`; on an accelerator they are
        reproducible up to the order in which it adds numbers.
    n_jobs : int or None, default=None
        Threads. The result does not depend on it.
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
        1 prints the mean loss of each epoch.
    pieces : int, sequence of arrays or None, default=None
        A curve per feature and tile instead of a slope, as in `LinearSVC`; the gate measures distances in a projection
        of the same features, which starts from the principal components of the standardized columns (``n_components=
        None``: from these columns themselves). Features need not be standardized then. Learned on the CPU only.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    mosaic_ : Mosaic
        The fitted form.
    loss_curve_ : list of float
        Mean loss met during each epoch, dropout included; of the first run, with `refit`.
    validation_scores_ : list of float
        Accuracy on the held-out part after each epoch, with `early_stopping`.
    best_iter_ : int
        Epochs that were best on the held-out part; `n_iter_` without early stopping.
    polish_scores_ : tuple of float
        With `polish`: accuracy on the held-out part of the learned and of the polished tiles.
    polished_ : bool
        Whether the tiles are the polished ones.
    dual_gap_ : ndarray of shape (n_outputs,)
        With `polish`: certified gap of the polished tiles.
    n_iter_ : int
        Epochs, of both runs with `refit`.
    stop_reason_ : str
        "max_iter", "max_time", "early_stopping" or "callback".
    n_features_in_ : int
    feature_names_in_ : ndarray, if X had names

    See Also
    --------
    LearnedGateSVR : The same for values.
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

    _losses = ("squared_hinge", "log_loss")

    def __init__(
        self,
        n_tiles=100,
        *,
        n_gates=1,
        n_components=16,
        n_neighbors=8,
        loss="squared_hinge",
        weight_decay=0.01,
        dropout=0.0,
        C=10.0,
        learn_gate=True,
        max_iter=40,
        learning_rate=0.03,
        batch_size=None,
        max_time=None,
        early_stopping="auto",
        n_iter_no_change=10,
        validation_fraction=0.1,
        refit="auto",
        polish=False,
        tol=1e-3,
        warm_start=False,
        class_weight=None,
        calibration=None,
        device="cpu",
        n_jobs=None,
        random_state=None,
        verbose=0,
        pieces=None,
    ):
        self.n_tiles = n_tiles
        self.n_gates = n_gates
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.loss = loss
        self.weight_decay = weight_decay
        self.dropout = dropout
        self.C = C
        self.learn_gate = learn_gate
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_time = max_time
        self.early_stopping = early_stopping
        self.n_iter_no_change = n_iter_no_change
        self.validation_fraction = validation_fraction
        self.refit = refit
        self.polish = polish
        self.tol = tol
        self.warm_start = warm_start
        self.class_weight = class_weight
        self.calibration = calibration
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.pieces = pieces

    @all_or_nothing
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """One pass over a batch of a stream, in minibatches at a constant learning rate.

        The first batch, unless `fit` came before, places the projection and the gate. `regions_` is then about the rows
        of this batch.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like of shape (n_classes,), optional
            All classes that the stream will bring; needed in the first call.
        sample_weight : array-like of shape (n_samples,), optional
            Weighs the loss of each row.

        Returns
        -------
        self
        """
        self._check_parameters()
        first = not hasattr(self, "mosaic_")
        X, target = validate_batch(
            self, X, y, None if first else self.classes_, classes, sample_weight, self.class_weight
        )
        return self._take_batch(X, target, first)

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

    def _hold_out(self, X, target, n_held_out, rng):
        """Training part and held-out part, each with the same shares of the classes if there are enough rows."""
        return [(X[rows], target.take(rows)) for rows in map(np.sort, hold_out(target.label, n_held_out, rng))]

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
            raise ValueError(f"polish=True needs loss='squared_hinge', which it solves for, got loss={self.loss!r}")
