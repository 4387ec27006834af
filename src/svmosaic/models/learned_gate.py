"""Gates that learn: regions placed by the gradient of the loss, in a learned low-dimensional metric."""

import warnings
from dataclasses import replace

import numpy as np
from scipy import sparse
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples, check_is_fitted

from svmosaic._validation import (
    check_choice,
    check_real,
    validate_batch,
    validate_rows,
    validate_training,
    warn_if_far,
)
from svmosaic.calibration import Temperature, fit_calibration
from svmosaic.couplings import Coupling
from svmosaic.heads import head_of
from svmosaic.learner import defaults
from svmosaic.learner.devices import DEVICES, MANY_ROWS, device_scores, engine_of, find_device
from svmosaic.learner.gate_learner import GateLearner
from svmosaic.learner.loop import Plan, diverged, learn, mean_loss, mosaic_of
from svmosaic.losses import SQUARED_HINGE
from svmosaic.models._all_or_nothing import all_or_nothing
from svmosaic.models._base import BaseMosaicClassifier
from svmosaic.models._gate_start import start_gates
from svmosaic.models._hold_out import hold_out
from svmosaic.models._progress import Progress
from svmosaic.solvers import Rows, problems_of, solve, warn_if_unconverged

LOSSES = ("squared_hinge", "log_loss")
# Epochs of the solver that polishes.
POLISH_EPOCHS = 1000
# The rows may lie this many times their spread away from the origin; beyond, descent was seen to fail.
MOST_DISTANCE = 25.0


class LearnedGateSVC(CallbackSupportMixin, BaseMosaicClassifier):
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
        if self.pieces is None:
            warn_if_far(self, rows, MOST_DISTANCE)
        rows = _single_precision(rows)
        rng = check_random_state(self.random_state)
        fitting = Progress(self, self.max_time, X, y, sample_weight)
        n_held_out = max(1, round(self.validation_fraction * rows.shape[0]))
        stops = defaults.stops_early(n_held_out) if self.early_stopping == "auto" else bool(self.early_stopping)
        needs_held_out = self.polish or self.calibration is not None
        refits = defaults.refits(rows.shape[0]) if self.refit == "auto" else bool(self.refit)
        refits = refits and stops and not needs_held_out
        with fitting.called_back(self.max_iter * (1 + refits)):
            train, held = (rows, target), None
            if stops or needs_held_out:
                train, held = self._hold_out(rows, target, n_held_out, rng)
            before = getattr(self, "_learner", None)
            learner, trace = self._run(*train, held if stops else None, self.max_iter, rng, fitting)
            self.loss_curve_, self.validation_scores_ = trace.losses, trace.validation_scores
            self.n_iter_, self.stop_reason_ = len(trace.losses), trace.stop_reason
            self.best_iter_ = trace.best_epoch + 1 if stops else self.n_iter_
            if refits and trace.stop_reason in ("max_iter", "early_stopping"):
                self._learner = before  # a warm start begins where the first run did
                learner, last = self._run(rows, target, None, self.best_iter_, rng, fitting)
                self.n_iter_ += len(last.losses)
                if last.stop_reason != "max_iter":
                    self.stop_reason_ = last.stop_reason
            self._warn_if_late()
            self.classes_, self.mosaic_, self._learner = target.classes, mosaic_of(learner), learner
            self.polished_ = False
            if self.polish:
                self._polish(learner, *train, *held, rng)
            self.calibration_ = self._calibrate(held, target)
            self.region_counts_ = self._count_regions(rows, target.label, self.mosaic_.gate.code(rows, self.n_jobs))
        return self

    def _run(self, X, target, held, max_iter, rng, fitting):
        """Learn from the start; with a held-out part, stop early. Returns the learner and the trace."""
        learner = self._start(X, target, rng)
        plan = Plan(
            max_iter, self._batch_size(X.shape[0]), self.learning_rate, self.n_iter_no_change if held else None,
            bool(self.learn_gate), self.n_jobs,
        )  # fmt: skip
        engine = engine_of(learner, X, target.label[:, None], target.weight, plan, find_device(self.device))

        def after_epoch(trace):
            if self.verbose:
                score = f", validation {trace.validation_scores[-1]:.4f}" if trace.validation_scores else ""
                print(
                    f"[{type(self).__name__}] epoch {len(trace.losses)}/{max_iter}: mean loss {trace.losses[-1]:.6g}"
                    f"{score}"
                )

            def attributes():
                engine.finish()
                calibration = self._own_calibration(target)
                return {"classes_": target.classes, "mosaic_": mosaic_of(learner), "calibration_": calibration}

            return fitting.step("epoch", attributes)

        return learner, learn(
            engine, plan, rng, deadline=fitting.deadline, after_epoch=after_epoch,
            validate=held and (lambda: held[1].head.accuracy(engine.scores(held[0]), held[1].label, held[1].weight)),
        )  # fmt: skip

    def _batch_size(self, n_rows):
        return min(n_rows, defaults.default_batch_size(n_rows) if self.batch_size is None else self.batch_size)

    def _warn_if_late(self):
        if self.stop_reason_ == "max_time":
            warnings.warn(
                f"{type(self).__name__}: learning stopped after max_time={self.max_time} s, in epoch {self.n_iter_} of "
                f"max_iter={self.max_iter}. Increase max_time or lower max_iter: the learning rate falls over all "
                "epochs that are planned.",
                ConvergenceWarning,
                stacklevel=5,
            )

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
        plan = Plan(1, self._batch_size(len(order)), self.learning_rate, None, bool(self.learn_gate), self.n_jobs)
        rates = np.full(-(-len(order) // plan.batch_size), float(self.learning_rate))
        engine = engine_of(learner, X, target.label[:, None], target.weight, plan, find_device(self.device))
        loss, _ = engine.epoch(order, rates)
        engine.finish()
        self.loss_curve_ = [*([] if first else self.loss_curve_), mean_loss(loss, target.weight)]
        self.n_iter_ = self.best_iter_ = len(self.loss_curve_)
        if not (np.isfinite(loss) and learner.is_finite):
            raise diverged(self.n_iter_, self.learning_rate)
        self.classes_, self._learner, self.mosaic_ = target.classes, learner, mosaic_of(learner)
        self.polished_ = False
        self.calibration_ = self._own_calibration(target)
        self.region_counts_ = self._count_regions(X, target.label, self.mosaic_.gate.code(X, self.n_jobs))
        return self

    def decision_function(self, X):
        """Signed scores: of shape (n_samples,) for two classes, else (n_samples, n_classes)."""
        check_is_fitted(self)
        on_cpu = sparse.issparse(X) or _num_samples(X) < MANY_ROWS or self.mosaic_.feature_map is not None
        device = None if on_cpu else find_device(self.device)
        if device is None:
            return super().decision_function(X)
        return head_of(self).shaped(device_scores(self.mosaic_, validate_rows(self, X), device))

    def _own_calibration(self, target):
        """Scores of the log-loss are log-odds: for two classes of s, and `Temperature` takes the softmax of (-s, s)."""
        if self.loss != "log_loss":
            return None
        return Temperature(0.5 if target.n_outputs == 1 else 1.0)

    @property
    def _scores_are_log_odds(self) -> bool:
        return self.loss == "log_loss"

    def _calibrate(self, held, target):
        if self.calibration is None:
            return self._own_calibration(target)
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
        check_choice("loss", self.loss, LOSSES)
        check_choice("device", self.device, DEVICES)
        self._check_pieces()
        for name in ("n_tiles", "n_gates", "n_neighbors", "max_iter", "n_iter_no_change"):
            check_real(name, getattr(self, name), at_least=1, integer=True)
        check_real("n_components", self.n_components, at_least=1, integer=True, optional=True)
        check_real("batch_size", self.batch_size, at_least=1, integer=True, optional=True)
        check_real("weight_decay", self.weight_decay, at_least=0)
        check_real("dropout", self.dropout, at_least=0, at_most=0.9)
        for name in ("C", "learning_rate", "tol"):
            check_real(name, getattr(self, name), above=0)
        check_real("max_time", self.max_time, above=0, optional=True)
        check_real("validation_fraction", self.validation_fraction, above=0, at_most=0.9)
        for name in ("early_stopping", "refit"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                check_choice(name, getattr(self, name), ("auto",))
        if self.polish and self.loss != "squared_hinge":
            raise ValueError(f"polish=True needs loss='squared_hinge', which it solves for, got loss={self.loss!r}")

    def _hold_out(self, X, target, n_held_out, rng):
        """Training part and held-out part, each with the same shares of the classes if there are enough rows."""
        return [(X[rows], target.take(rows)) for rows in map(np.sort, hold_out(target.label, n_held_out, rng))]

    def _start(self, X, target, rng) -> GateLearner:
        """The start: principal components, k-means in them, zero tiles; or the last fit."""
        settings = (
            self.loss, self.n_tiles, self.n_gates, self.n_components, self.n_neighbors, X.shape[1],
            target.classes.tolist(), self.pieces if self.pieces is None else repr(self.pieces),
        )  # fmt: skip
        if self.warm_start and getattr(self, "_settings", None) == settings:
            learner = self._learner.copy()
            learner.set_decay(float(self.weight_decay))
            learner.dropout = float(self.dropout)
            return learner
        self._settings = settings
        pieces = self._fit_map(X, target, rng)
        gates, width = start_gates(
            X if pieces is None else pieces.straight_terms(X), self.n_gates, self.n_tiles, self.n_components,
            self.n_neighbors, target.weight, rng,
        )  # fmt: skip
        if pieces is not None:
            gates = [(anchors, tau, _over_all_features(projection, pieces)) for anchors, tau, projection in gates]
        return GateLearner(
            gates, n_features=X.shape[1] if pieces is None else pieces.n_features, n_outputs=target.n_outputs,
            width=width, decay=float(self.weight_decay), loss=self.loss, dropout=float(self.dropout),
            seed=rng.randint(2**31 - 1) if self.dropout else 0, pieces=pieces,
        )  # fmt: skip

    def _polish(self, learner, X, target, X_held, held, rng):
        """Solve for the tiles with the gate frozen, and keep them if the held-out part agrees."""
        gate = self.mosaic_.gate
        cost = self.C * target.weight
        targets = [SQUARED_HINGE.rows(target.signs(c), cost) for c in range(target.n_outputs)]
        coupling = Coupling.independent(gate.n_tiles)
        _, tile_rows = self.mosaic_.features.rows(X)
        problems = problems_of(Rows(tile_rows), gate.code(X, self.n_jobs), coupling, SQUARED_HINGE, targets)
        solutions = solve(
            problems, tol=self.tol, max_iter=POLISH_EPOCHS, seed=rng.randint(2**31 - 1), n_jobs=self.n_jobs,
        )  # fmt: skip
        warn_if_unconverged(solutions, POLISH_EPOCHS, type(self).__name__)
        self.dual_gap_ = np.array([s.gap for s in solutions])
        tiles = np.stack([s.weights for s in solutions], axis=1)
        polished = replace(self.mosaic_, coef=tiles[:, :, :-1], intercept=tiles[:, :, -1])
        self.polish_scores_ = tuple(
            held.head.accuracy(mosaic.decision_function(X_held, self.n_jobs), held.label, held.weight)
            for mosaic in (self.mosaic_, polished)
        )
        self.polished_ = self.polish_scores_[1] > self.polish_scores_[0]
        if self.polished_:
            self.mosaic_ = polished
            learner.set_tile_weights(tiles)


def _over_all_features(projection, pieces):
    """A projection of the straight terms (None: the identity) as one of all features of pieces, hats at zero."""
    projection = np.eye(pieces.n_inputs, dtype=np.float32) if projection is None else projection
    return np.hstack([projection, np.zeros((len(projection), len(pieces.knot)), dtype=projection.dtype)])


def _single_precision(X):
    with np.errstate(over="ignore"):
        X = X.astype(np.float32, copy=False)
    if not np.isfinite(X.data if sparse.issparse(X) else X).all():
        raise ValueError("X has values too large for float32: scale the features")
    return X
