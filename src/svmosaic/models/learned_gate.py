"""Gates that learn: regions placed by the gradient of the loss, in a learnt low-dimensional metric."""

import warnings

import numpy as np
from scipy import sparse
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state

from svmosaic._validation import check_choice, check_real, validate_batch, validate_training, warn_if_far
from svmosaic.calibration import fit_calibration
from svmosaic.couplings import Coupling
from svmosaic.gates import place_centers, plant_tree, principal_components
from svmosaic.learner.gate_learner import GateLearner
from svmosaic.learner.loop import accuracy, batch_of, check_divergence, learn, mosaic_of, one_pass, still
from svmosaic.losses import SQUARED_HINGE
from svmosaic.models._all_or_nothing import all_or_nothing
from svmosaic.models._base import BaseMosaicClassifier
from svmosaic.models._progress import Fitting
from svmosaic.models.locally_linear import code_gate
from svmosaic.mosaic import Mosaic
from svmosaic.solvers import Rows, problems_of, solve, warn_if_unconverged

GATES = ("anchors", "tree")
# Epochs of the solver that polishes.
POLISH_EPOCHS = 1000
# The rows may lie this many times their spread away from the origin; beyond, descent was seen to fail.
MOST_DISTANCE = 25.0


class LearnedGateSVC(CallbackSupportMixin, BaseMosaicClassifier):
    r"""Mosaic of linear SVMs whose regions are learnt with the tiles.

    .. math:: f_c(x) = \sum_{j \in N(x)} g_j(x) (\langle w_{jc}, x \rangle + b_{jc}) , \quad
              g = \text{softmax}_{j \in N(x)}(-\tau \lVert P x - v_j \rVert^2)

    with N(x) the `n_neighbors` anchors nearest to P x; or, with ``gate="tree"``, g one for the leaf that P x comes to
    and zero for the others, after training with shares
    :math:`\prod_i \sigma(\pm t (\langle \theta_i, P x \rangle + \beta_i))`, the product over the nodes on the way to a
    leaf, of which t grows until they are hard. Projection P, anchors v and sharpness :math:`\tau` or splits
    :math:`\theta, \beta`, and tiles are learnt together by minibatches of the squared hinge loss
    :math:`\sum_i s_i \sum_c \max(0, 1 - y_{ic} f_c(x_i))^2`, one against the rest, with Adam, a one-cycle schedule and
    weight decay on the tiles. Start: principal components, k-means or splits at medians in them, zero tiles. The
    problem is not convex, and there is no certificate for the gate. With `polish`, the tiles are then solved for with
    the gate frozen; they minimise

    .. math:: \tfrac12 \sum_j \lVert (w_{jc}, b_{jc}) \rVert^2 + C \sum_i s_i \max(0, 1 - y_{ic} f_c(x_i))^2

    for each output c, to a certified gap, and what is better on a held-out part is kept.

    Standardise the features first. Learning is in float32.

    Parameters
    ----------
    n_tiles : int, default=100
        Number of anchors or leaves, and so of tiles.
    gate : {"anchors", "tree"}, default="anchors"
        "anchors": the nearest share a row. "tree": a binary tree of linear splits of P x, soft at first and hard in the
        end, which gives each row one leaf at the cost of log2(n_tiles) splits.
    n_components : int or None, default=16
        Dimension of the projection, at most the number of features; None gives x itself to the gate.
    n_neighbors : int, default=8
        Anchors that share a row; leaves that share it while a tree is soft.
    weight_decay : float, default=0.01
        Share of itself that a tile loses a step, times the learning rate.
    C : float, default=10.0
        Weight of the losses when the tiles are polished.
    learn_gate : bool, default=True
        False keeps projection, anchors and sharpness as they start, and learns the tiles only.
    max_iter : int, default=40
        Epochs.
    learning_rate : float, default=0.03
        Peak of the schedule, for tiles; the gate learns at 0.3 of it.
    batch_size : int or None, default=None
        Rows a step. None takes a 400th of the rows, but at least 32 and at most 1024.
    max_time : float or None, default=None
        Seconds after which learning stops, between two batches, with what has been learnt by then and a warning; the
        rate has not fallen yet, so that fewer epochs are the better way to a shorter fit.
    early_stopping : bool, default=False
        Score a held-out part after each epoch, stop after `n_iter_no_change` epochs without a better score, and keep
        the best.
    n_iter_no_change : int, default=10
        Epochs without a better score after which `early_stopping` stops.
    validation_fraction : float, default=0.1
        Size of the part held out from training for `early_stopping` and `polish`.
    polish : bool, default=False
        Solve for the tiles with the gate frozen, and keep what is better on the held-out part. Worth its time where
        features are many and rows few.
    tol : float, default=1e-3
        Duality gap of the polished tiles, as a share of the objective at zero.
    warm_start : bool, default=False
        Start `fit` from the gate and tiles of the last one; anew where classes, features, `gate`, `n_tiles`,
        `n_components` or `n_neighbors` are not the same any more.
    class_weight : dict, "balanced" or None, default=None
        Multiplies the sample weight of the rows of each class.
    calibration : {"temperature", "sigmoid", "isotonic"} or None, default=None
        How `predict_proba` turns scores into probabilities; see `LinearSVC`. The gate has learnt from the labels too,
        so the calibration is fitted to a part held out from training, of size `validation_fraction`. None: no
        `predict_proba`.
    n_jobs : int or None, default=None
        Threads. The result does not depend on it.
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
        1 prints the mean loss of each epoch.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    mosaic_ : Mosaic
        The fitted form.
    loss_curve_ : list of float
        Mean loss met during each epoch.
    validation_scores_ : list of float
        Accuracy on the held-out part after each epoch, with `early_stopping`.
    polish_scores_ : tuple of float
        With `polish`: accuracy on the held-out part of the learnt and of the polished tiles.
    polished_ : bool
        Whether the tiles are the polished ones.
    dual_gap_ : ndarray of shape (n_outputs,)
        With `polish`: certified gap of the polished tiles.
    n_iter_ : int
        Epochs.
    stop_reason_ : str
        "max_iter", "max_time", "early_stopping" or "callback".
    n_features_in_ : int
    feature_names_in_ : ndarray, where X had names

    Examples
    --------
    >>> from svmosaic import LearnedGateSVC
    >>> from svmosaic.datasets import make_xor
    >>> X, y = make_xor(random_state=0)
    >>> model = LearnedGateSVC(n_tiles=8, n_neighbors=2, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.98)
    True
    """

    def __init__(
        self,
        n_tiles=100,
        *,
        gate="anchors",
        n_components=16,
        n_neighbors=8,
        weight_decay=0.01,
        C=10.0,
        learn_gate=True,
        max_iter=40,
        learning_rate=0.03,
        batch_size=None,
        max_time=None,
        early_stopping=False,
        n_iter_no_change=10,
        validation_fraction=0.1,
        polish=False,
        tol=1e-3,
        warm_start=False,
        class_weight=None,
        calibration=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.n_tiles = n_tiles
        self.gate = gate
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.weight_decay = weight_decay
        self.C = C
        self.learn_gate = learn_gate
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_time = max_time
        self.early_stopping = early_stopping
        self.n_iter_no_change = n_iter_no_change
        self.validation_fraction = validation_fraction
        self.polish = polish
        self.tol = tol
        self.warm_start = warm_start
        self.class_weight = class_weight
        self.calibration = calibration
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @all_or_nothing
    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Learn the gate and the tiles.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Weighs the loss of each row.

        Returns
        -------
        self
        """
        self._check_parameters()
        rows, target = validate_training(self, X, y, sample_weight, self.class_weight)
        warn_if_far(self, rows, MOST_DISTANCE)
        rows = _single_precision(rows)
        rng = check_random_state(self.random_state)
        fitting = Fitting(self.max_time, X, y, sample_weight)
        with fitting.called_back(self, self.max_iter):
            self._learn(rows, target, rng, fitting)
        return self

    def _learn(self, rows, target, rng, fitting):
        train, held = (rows, target), None
        if self.early_stopping or self.polish or self.calibration is not None:
            train, held = self._hold_out(rows, target, rng)
        learner = self._start(*train, rng)
        trace = learn(self, learner, *train, held, rng, fitting)
        self.loss_curve_, self.validation_scores_ = trace.losses, trace.validation_scores
        self.n_iter_, self.stop_reason_ = len(trace.losses), trace.stop_reason
        if trace.stop_reason == "max_time":
            warnings.warn(
                f"{type(self).__name__}: learning stopped after max_time={self.max_time} s, in epoch {self.n_iter_} of "
                f"max_iter={self.max_iter}. Increase max_time or lower max_iter: the learning rate falls over all "
                "epochs that are planned.",
                ConvergenceWarning,
                stacklevel=5,
            )
        self.classes_ = target.classes
        self.mosaic_ = mosaic_of(learner)
        self.polished_ = False
        if self.polish:
            self._polish(learner, *train, *held, rng)
        self._learner = learner
        self.calibration_ = self._calibrate_on(held)
        self.region_counts_ = self._count_regions(rows, target.label, self.mosaic_.gate.code(rows, self.n_jobs))

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
        X = _single_precision(X)
        rng = check_random_state(self.random_state)
        learner = self._start(X, target, rng) if first else self._learner
        order = rng.permutation(X.shape[0]).astype(np.int32)
        batch = batch_of(self.batch_size, X.shape[0])
        n_batches = -(-len(order) // batch)
        rates = np.full(n_batches, float(self.learning_rate))
        loss, _ = one_pass(self, learner, Rows(X), target, order, batch, rates, still(n_batches))
        self.loss_curve_ = [*([] if first else self.loss_curve_), loss]
        check_divergence(learner, loss, len(self.loss_curve_), self.learning_rate)
        self.classes_, self._learner, self.mosaic_ = target.classes, learner, mosaic_of(learner)
        self.polished_ = False
        self.calibration_ = None
        self.n_iter_ = len(self.loss_curve_)
        self.region_counts_ = self._count_regions(X, target.label, self.mosaic_.gate.code(X, self.n_jobs))
        return self

    def _calibrate_on(self, held):
        if self.calibration is None:
            return None
        X, target = held
        if len(np.unique(target.label)) < len(target.classes):
            raise ValueError(
                f"calibration={self.calibration!r} needs rows of every class in the part held out: raise "
                f"validation_fraction={self.validation_fraction}, or pass calibration=None"
            )
        scores = self.mosaic_.decision_function(X, self.n_jobs)
        return fit_calibration(self.calibration, scores, target.label, target.sample_weight)

    def _check_parameters(self):
        self._check_calibration()
        check_choice("gate", self.gate, GATES)
        check_real("n_tiles", self.n_tiles, at_least=1, integer=True)
        check_real("n_components", self.n_components, at_least=1, integer=True, optional=True)
        check_real("n_neighbors", self.n_neighbors, at_least=1, integer=True)
        check_real("weight_decay", self.weight_decay, at_least=0)
        check_real("C", self.C, above=0)
        check_real("max_iter", self.max_iter, at_least=1, integer=True)
        check_real("learning_rate", self.learning_rate, above=0)
        check_real("batch_size", self.batch_size, at_least=1, integer=True, optional=True)
        check_real("max_time", self.max_time, above=0, optional=True)
        check_real("n_iter_no_change", self.n_iter_no_change, at_least=1, integer=True)
        check_real("validation_fraction", self.validation_fraction, above=0, at_most=0.9)
        check_real("tol", self.tol, above=0)

    def _hold_out(self, X, target, rng):
        """Training part and held-out part, each with the same shares of the classes where there are enough rows."""
        n_rows, counts = X.shape[0], np.bincount(target.label, minlength=len(target.classes))
        n_held = max(1, round(self.validation_fraction * n_rows))
        enough = counts.min() >= 2 and len(counts) <= n_held <= n_rows - len(counts)
        parts = train_test_split(
            np.arange(n_rows), test_size=n_held, random_state=rng, stratify=target.label if enough else None
        )
        return [(X[rows], target.take(rows)) for rows in map(np.sort, parts)]

    def _start(self, X, target, rng) -> GateLearner:
        """The start: principal components, k-means or a tree in them, zero tiles; or the last fit."""
        settings = (self.gate, self.n_tiles, self.n_components, self.n_neighbors, X.shape[1], target.classes.tolist())
        if self.warm_start and getattr(self, "_settings", None) == settings:
            learner = self._learner.copy()
            learner.set_decay(float(self.weight_decay))
            return learner
        self._settings = settings
        projection = None if self.n_components is None else principal_components(X, self.n_components, rng)
        z = X if projection is None else np.ascontiguousarray(X @ projection.T)
        if self.gate == "tree":
            gate, tau = plant_tree(z, self.n_tiles, rng), None
            width = min(self.n_neighbors, self.n_tiles)
        else:
            gate = place_centers(z, self.n_tiles, sample_weight=target.weight, rng=rng)
            codes = code_gate(z, gate, "softmax", self.n_neighbors, None, rng)
            tau, width = codes.scale, codes.width
        return GateLearner(
            gate, tau, projection, n_features=X.shape[1], n_outputs=target.n_outputs, width=width,
            decay=float(self.weight_decay),
        )  # fmt: skip

    def _polish(self, learner, X, target, X_held, held, rng):
        """Solve for the tiles with the gate frozen, and keep them if the held-out part agrees."""
        gate = self.mosaic_.gate
        cost = self.C * target.weight
        targets = [SQUARED_HINGE.rows(target.signs(c), cost) for c in range(target.n_outputs)]
        coupling = Coupling.independent(gate.n_tiles)
        problems = problems_of(Rows(X), gate.code(X, self.n_jobs), coupling, SQUARED_HINGE, targets)
        solutions = solve(
            problems, tol=self.tol, max_iter=POLISH_EPOCHS, seed=rng.randint(2**31 - 1), n_jobs=self.n_jobs,
        )  # fmt: skip
        warn_if_unconverged(solutions, POLISH_EPOCHS, type(self).__name__)
        self.dual_gap_ = np.array([s.gap for s in solutions])
        tiles = np.stack([s.weights for s in solutions], axis=1)
        polished = Mosaic(gate, tiles[:, :, :-1], tiles[:, :, -1])
        self.polish_scores_ = tuple(accuracy(m, X_held, held, self.n_jobs) for m in (self.mosaic_, polished))
        self.polished_ = self.polish_scores_[1] > self.polish_scores_[0]
        if self.polished_:
            self.mosaic_ = polished
            learner.set_tile_weights(tiles)


def _single_precision(X):
    with np.errstate(over="ignore"):
        X = X.astype(np.float32, copy=False)
    if not np.isfinite(X.data if sparse.issparse(X) else X).all():
        raise ValueError("X has values too large for float32: scale the features")
    return X
