"""Gates that learn: regions placed by the gradient of the loss, in a learned low-dimensional metric."""

import warnings
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples, check_is_fitted

from svmosaic._validation import check_choice, check_real, distance_from_origin, warn_if_far
from svmosaic.couplings import Coupling
from svmosaic.estimators._anchors import SCALE_ROWS, code_gate
from svmosaic.estimators._hold_out import hold_out
from svmosaic.estimators._parameters import (
    Count,
    Fraction,
    Knots,
    NotNegative,
    Positive,
    estimator,
    parameters,
    positional,
)
from svmosaic.estimators._progress import all_or_nothing
from svmosaic.estimators.base import BaseMosaicClassifier, BaseMosaicRegressor, FitMixin, ValuesMixin
from svmosaic.estimators.data import ROWS_PER_CENTER, Data
from svmosaic.estimators.tiles import describe
from svmosaic.gates import place_centers, principal_components
from svmosaic.learner.devices import MANY_ROWS, Device, device_scores, engine_of, find_device
from svmosaic.learner.gate_learner import GateLearner
from svmosaic.learner.loop import Plan, diverged, learn, mean_loss, mosaic_of, tiles_of
from svmosaic.losses import LOSSES, REGRESSION_LOSSES, SQUARED_HINGE
from svmosaic.maps import Pieces
from svmosaic.model.calibration import Temperature, fit_calibration
from svmosaic.model.heads import Classify
from svmosaic.rows import ChosenRows, copied, in_blocks
from svmosaic.solvers import Rows, problems_of, solve, warn_if_unconverged

# Settings that depend on the number of rows, chosen by cross-validation on the training parts of the data sets
# (benchmarks/study_defaults.py). Batches are a 400th of the rows, within bounds: small ones learn more in an epoch,
# large ones cost less per row.
STEPS, SMALLEST_BATCH, LARGEST_BATCH = 400, 32, 1024
# Fewer rows than this in the held-out part are no basis to stop early.
SMALLEST_HELD_OUT = 50
# Up to so many rows, a last run on all of them costs little and gains what the held-out part knows.
LARGEST_REFIT = 50_000
# Weight of the losses where tiles are polished, and epochs of the solver.
POLISH_C, POLISH_EPOCHS = 10.0, 1000
# If the rows lie more than this many times their spread away from the origin, descent was seen to fail: dense rows are
# centered then. Beyond the second number, float32 cannot distinguish the rows.
MOST_DISTANCE, MOST_DISTANCE_CENTERED = 25.0, 1e5
# The axes of each of several gates are scaled by up to this share, so that rows have other neighbors in each of them.
SPREAD = 0.3


class LearningRows(Data):
    """Rows in memory, in single precision, as a fit of learned gates takes them.

    `svmosaic.scale.learning.PartitionedLearningRows` answers the same for rows in partitions.
    """

    # How many learners take steps at the same time.
    n_replicas = 1

    def start(self, rng):
        """Rows and their target, by which the gate is placed: all of them."""
        return self.gate_rows, self.target

    def hold_out(self, n_held_out, in_place, rng):
        """Rows to train on, which may be read where they are, `in_place`, and (rows, target) held out."""
        X, target = self.gate_rows, self.target
        _, held = hold_out(self.n_rows, n_held_out, rng, target.label)
        is_held = np.zeros(self.n_rows, dtype=bool)
        is_held[held] = True
        train, held = np.flatnonzero(~is_held), np.flatnonzero(is_held)
        rows = ChosenRows(X, train) if in_place and not sparse.issparse(X) else X[train]
        return LearningRows.of(rows, target.take(train)), (X[held], target.take(held))

    def engine(self, learner, plan, device):
        """The loop that takes the steps; see `svmosaic.learner.loop.CoreEngine`."""
        return engine_of(learner, self.gate_rows, self.target.learned, self.target.weight, plan, find_device(device))


@parameters
class _LearnedGate(FitMixin):
    """Gate and tiles by gradient.

    Subclasses say how scores of the held-out part are judged (`_judge`), which loss polishes the tiles
    (`_solved_loss`), what the learner's loss knows of each output (`_loss_parameter`), and may complete the head.

    Parameters
    ----------
    n_tiles : int, default=100
        Number of anchors of each gate, and therefore of its tiles.
    n_gates : int, default=1
        Number of gates. Several small gates depend less on the seed than one large gate: 8 gates of 16 tiles with 2
        neighbors cost about as much as one gate of 128 tiles with 16.
    n_components : int or None, default=16
        Dimension of the projection of each gate, at most the number of features; None passes x itself to the gate.
    n_neighbors : int, default=8
        Number of anchors of each gate that share a row.
    weight_decay : float, default=0.01
        Fraction by which a tile shrinks per step, times the learning rate. Raise it, up to 1, if the model overfits.
    dropout : float, default=0.0
        Fraction of the features that are hidden from the tiles, at most 0.9, drawn for each row in each step; the gate
        sees all features. Another remedy for overfitting.
    learn_gate : bool, default=True
        False keeps the initial projection, anchors and sharpness, and learns only the tiles.
    max_iter : int, default=40
        Number of epochs.
    learning_rate : float, default=0.03
        Peak learning rate of the tiles; the gate uses 0.3 of it.
    batch_size : int or None, default=None
        Rows per step. None uses a 400th of the rows, but at least 32 and at most 1024.
    max_time : float or None, default=None
        Seconds after which training stops between two batches, with the current model and a warning. The learning rate
        has not decayed by then, so for a shorter fit, fewer epochs are better.
    early_stopping : bool or "auto", default="auto"
        Score held-out rows after each epoch, stop after `n_iter_no_change` epochs without improvement, and keep
        the best epoch. "auto" does so if at least 50 rows are held out. At most 50,000 rows are then learned once more,
        the held-out ones included, for the best number of epochs, except with `polish` or `calibration`.
    n_iter_no_change : int, default=10
        Number of epochs without improvement after which `early_stopping` stops.
    validation_fraction : float, default=0.1
        Fraction of the rows held out for `early_stopping`, `polish` and (for a classifier) `calibration`.
    polish : bool, default=False
        Solve for the tiles with the gate frozen, with C=10, and keep the tiles that are better on the held-out
        rows. Useful with many features and few rows. A classifier needs ``loss="squared_hinge"`` for it.
    tol : float, default=1e-3
        Duality gap of the polished tiles, relative to the objective at zero.
    warm_start : bool, default=False
        Start `fit` from the gate and tiles of the last fit, unless classes or targets, features, loss, `n_tiles`,
        `n_gates`, `n_components` or `n_neighbors` have changed.
    device : {"cpu", "gpu", "auto"}, default="cpu"
        Device for training, and for scoring 10,000 rows or more. "gpu" needs JAX, an accelerator and dense rows; "auto"
        uses the CPU if there is no accelerator. On the CPU, results are bit-for-bit the same for every `n_jobs`; on an
        accelerator, they are reproducible up to the order of additions.
    n_jobs : int or None, default=None
        Number of threads. The result does not depend on it.
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
        1 prints the mean loss of each epoch.
    pieces : int, sequence of arrays or None, default=None
        A curve per feature and tile instead of a slope, as in `LinearSVC`; the gate measures distances in a projection
        of the same features, which starts from the principal components of the standardized columns (``n_components=
        None``: from these columns themselves). Features need not be standardized then.

    Attributes
    ----------
    loss_curve_ : list of float
        Mean training loss of each epoch, including dropout; for regressors, of the normalized y; of the first run
        if there are two.
    validation_scores_ : list of float
        With `early_stopping`: accuracy, or for regressors the negative mean loss, on the held-out rows after each
        epoch.
    best_iter_ : int
        Best number of epochs on the held-out rows; `n_iter_` without early stopping.
    polish_scores_ : tuple of float
        With `polish`: the score of the learned and of the polished tiles on the held-out rows.
    polished_ : bool
        Whether the polished tiles were kept.
    dual_gap_ : ndarray of shape (n_outputs,)
        With `polish`: certified gap of the polished tiles.
    n_iter_ : int
        Number of epochs, of both runs if there are two.
    stop_reason_ : str
        "max_iter", "max_time", "early_stopping" or "callback".
    """

    n_tiles: Count = positional(100)
    n_gates: Count = 1
    n_components: Count | None = 16
    n_neighbors: Count = 8
    loss: str
    weight_decay: NotNegative = 0.01
    dropout: Annotated[float, partial(check_real, at_least=0, at_most=0.9)] = 0.0
    learn_gate: bool = True
    max_iter: Count = 40
    learning_rate: Positive = 0.03
    batch_size: Count | None = None
    max_time: Positive | None = None
    early_stopping: bool | Literal["auto"] = "auto"
    n_iter_no_change: Count = 10
    validation_fraction: Fraction = 0.1
    polish: bool = False
    tol: Positive = 1e-3
    warm_start: bool = False
    device: Device = "cpu"
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0
    pieces: Knots | None = None

    def _n_tasks(self, target):
        return self.max_iter * (1 + self._hold_out_plan(len(target.truth))[2])

    def _hold_out_plan(self, n_rows) -> tuple[int, bool, bool]:
        """Size of the held-out part, whether to stop early by it, and whether to learn once more from all rows."""
        n_held = max(1, round(self.validation_fraction * n_rows))
        stops = n_held >= SMALLEST_HELD_OUT if self.early_stopping == "auto" else bool(self.early_stopping)
        return n_held, stops, stops and not self._keeps_held_out and n_rows <= LARGEST_REFIT

    @property
    def _keeps_held_out(self) -> bool:
        """Whether held-out rows have another use than early stopping."""
        return bool(self.polish) or getattr(self, "calibration", None) is not None

    def _fit_rows(self, data, rng, progress):
        """From data, in memory or in partitions, to the fitted attributes."""
        in_memory, rows = isinstance(data, Data), data
        if self.pieces is None:
            X = data.gate_rows if in_memory else data.start(rng)[0]
            warn_if_far(self, X, MOST_DISTANCE if sparse.issparse(X) else MOST_DISTANCE_CENTERED)
        if in_memory:
            rows = LearningRows.of(single_precision(data.gate_rows), data.target)
        target, train, held = rows.target, rows, None
        n_held, stops, refits = self._hold_out_plan(rows.n_rows)
        if stops or self._keeps_held_out:
            # Nearly all rows are trained on. The core reads them where they are if single rows are all it needs, and
            # their names do not matter: dropout is drawn by the index of a row among the training rows.
            in_place = self.device == "cpu" and self.n_components is not None
            in_place = in_place and self.pieces is None and not (self.dropout or self.polish)
            train, held = rows.hold_out(n_held, in_place, rng)
        before = getattr(self, "_learner", None)
        learner, trace = self._run(train, held if stops else None, self.max_iter, rng, progress)
        self.loss_curve_, self.validation_scores_ = trace.losses, trace.validation_scores
        self.n_iter_, self.stop_reason_ = len(trace.losses), trace.stop_reason
        self.best_iter_ = trace.best_epoch + 1 if stops else self.n_iter_
        if refits and trace.stop_reason in ("max_iter", "early_stopping"):
            self._learner = before  # a warm start begins where the first run did
            learner, last = self._run(rows, None, self.best_iter_, rng, progress)
            self.n_iter_ += len(last.losses)
            if last.stop_reason != "max_iter":
                self.stop_reason_ = last.stop_reason
        if self.stop_reason_ == "max_time":
            warnings.warn(
                f"{progress.name}: learning stopped after max_time={self.max_time} s, in epoch {self.n_iter_} of "
                f"max_iter={self.max_iter}. Increase max_time or lower max_iter: the learning rate decays over all "
                "planned epochs.",
                ConvergenceWarning,
                stacklevel=5,
            )
        self._learner, self.mosaic_, self.polished_ = learner, mosaic_of(learner), False
        if self.polish:
            self._polish(learner, train.gate_rows, train.target, *held, rng)
        self._keep(rows, self._head(target, held))

    def _run(self, rows, held, max_iter, rng, progress):
        """Learn from the start; with a held-out part, stop early. Returns the learner and the trace."""
        target = rows.target
        learner = self._start(*rows.start(rng), rng)
        plan = Plan(
            max_iter, self._batch_size(rows.n_rows, rows.n_replicas), self.learning_rate,
            self.n_iter_no_change if held else None, bool(self.learn_gate), self.n_jobs,
        )  # fmt: skip
        engine = rows.engine(learner, plan, self.device)

        def after_epoch(trace):
            if self.verbose:
                score = f", validation {trace.validation_scores[-1]:.4f}" if trace.validation_scores else ""
                print(
                    f"[{type(self).__name__}] epoch {len(trace.losses)}/{max_iter}: mean loss {trace.losses[-1]:.6g}"
                    f"{score}"
                )

            def attributes():
                engine.finish()
                return {**self._head(target).attributes, "mosaic_": mosaic_of(learner)}

            return progress.step("epoch", attributes)

        return learner, learn(
            engine, plan, rng, deadline=progress.deadline, after_epoch=after_epoch,
            validate=held and (lambda: self._judge(engine.scores(held[0]), held[1])),
        )  # fmt: skip

    def _batch_size(self, n_rows, n_replicas=1):
        """Rows per step, of each learner if several take steps at the same time."""
        by_default = int(np.clip(n_rows // STEPS, SMALLEST_BATCH, LARGEST_BATCH))
        by_default = max(SMALLEST_BATCH, by_default // n_replicas)
        return min(n_rows, by_default if self.batch_size is None else self.batch_size)

    def _head(self, target, held=None):
        """The head, completed by the part held out (rows and target) if it is given."""
        return target.head

    def _loss_parameter(self, n_outputs):
        return ()

    def _keep(self, rows, head):
        """Keep the head, and what `regions_` is made of."""
        vars(self).update(head.attributes)
        self.region_counts_, sample = describe(rows, self.mosaic_, head, self.n_jobs)
        self._keep_region_sample(sample)

    def _take_batch(self, X, target, first):
        """One pass over a validated batch of a stream, in minibatches at a constant learning rate."""
        rows, rng = LearningRows.of(single_precision(X), target), check_random_state(self.random_state)
        learner = self._start(rows.gate_rows, target, rng) if first else self._learner
        order = rng.permutation(rows.n_rows).astype(np.int32)
        plan = Plan(1, self._batch_size(len(order)), self.learning_rate, None, bool(self.learn_gate), self.n_jobs)
        rates = np.full(-(-len(order) // plan.batch_size), float(self.learning_rate))
        engine = rows.engine(learner, plan, self.device)
        loss, _ = engine.epoch(order, rates)
        engine.finish()
        self.loss_curve_ = [*([] if first else self.loss_curve_), mean_loss(loss, target.weight)]
        self.n_iter_ = self.best_iter_ = len(self.loss_curve_)
        if not (np.isfinite(loss) and learner.is_finite):
            raise diverged(self.n_iter_, self.learning_rate)
        self._learner, self.mosaic_, self.polished_ = learner, mosaic_of(learner), False
        self._keep(rows, self._head(target))
        return self

    def _scores(self, X):
        check_is_fitted(self)
        on_cpu = sparse.issparse(X) or _num_samples(X) < MANY_ROWS
        device = None if on_cpu else find_device(self.device)
        return super()._scores(X) if device is None else device_scores(self.mosaic_, self._rows(X), device)

    def _start(self, X, target, rng) -> GateLearner:
        """The start: principal components, k-means in them, zero tiles; or the last fit."""
        settings = (
            self.loss, self.n_tiles, self.n_gates, self.n_components, self.n_neighbors, X.shape[1], repr(self.pieces),
            target.classes.tolist() if is_classifier(self) else np.shape(target.head.center),
        )  # fmt: skip
        if self.warm_start and getattr(self, "_settings", None) == settings:
            learner = self._learner.copy()
            learner.set_decay(float(self.weight_decay))
            learner.dropout = float(self.dropout)
            return learner
        self._settings = settings
        pieces = center = None
        terms = X
        if self.pieces is not None:
            pieces = Pieces.fit(X, self.pieces, target.sample_weight, rng, self.n_jobs)
            terms = pieces.straight_terms(X)
        elif not sparse.issparse(X):
            mean, distance = distance_from_origin(X)
            if distance > MOST_DISTANCE:
                center = mean.astype(X.dtype)
                terms = copied(X) - center
        gates, width = start_gates(
            terms, self.n_gates, self.n_tiles, self.n_components,
            self.n_neighbors, target.weight, rng, self.n_jobs,
        )  # fmt: skip
        if pieces is not None:  # projections of all features of pieces, in which hats count for nothing
            for k, (anchors, tau, projection) in enumerate(gates):
                projection = np.eye(pieces.n_inputs, dtype=np.float32) if projection is None else projection
                hats = np.zeros((len(projection), len(pieces.knot)), dtype=projection.dtype)
                gates[k] = anchors, tau, np.hstack([projection, hats])
        return GateLearner(
            gates, n_features=X.shape[1] if pieces is None else pieces.n_features, n_outputs=target.n_outputs,
            width=width, decay=float(self.weight_decay), loss=self.loss,
            loss_parameter=self._loss_parameter(target.n_outputs), dropout=float(self.dropout),
            seed=rng.randint(2**31 - 1) if self.dropout else 0, pieces=pieces, center=center,
        )  # fmt: skip

    def _polish(self, learner, X, target, X_held, held, rng):
        """Solve for the tiles with the gate frozen, and keep them if the held-out part agrees."""
        gate, (loss, given) = self.mosaic_.gate, self._solved_loss()
        cost = POLISH_C * target.weight
        targets = [loss.rows(target.head.wanted(target.truth, c), cost, c, **given) for c in range(target.n_outputs)]
        coupling = Coupling.independent(gate.n_tiles)
        problems = problems_of(Rows(learner.tile_rows(X)), gate.code(X, self.n_jobs), coupling, loss, targets)
        solutions = solve(
            problems, tol=self.tol, max_iter=POLISH_EPOCHS, seed=rng.randint(2**31 - 1), n_jobs=self.n_jobs,
        )  # fmt: skip
        warn_if_unconverged(solutions, POLISH_EPOCHS, type(self).__name__)
        self.dual_gap_ = np.array([s.gap for s in solutions])
        tiles = np.stack([s.weights for s in solutions], axis=1)
        coef, intercept = tiles_of(tiles, learner.center)
        polished = replace(self.mosaic_, coef=coef, intercept=intercept)
        self.polish_scores_ = tuple(
            self._judge(mosaic.decision_function(X_held, self.n_jobs), held) for mosaic in (self.mosaic_, polished)
        )
        self.polished_ = self.polish_scores_[1] > self.polish_scores_[0]
        if self.polished_:
            self.mosaic_ = polished
            learner.set_tile_weights(tiles)


@estimator
class LearnedGateSVC(_LearnedGate, BaseMosaicClassifier):
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

    .. math:: \tfrac12 \sum_j \lVert (w_{jc}, b_{jc}) \rVert^2 + 10 \sum_i s_i \max(0, 1 - y_{ic} f_c(x_i))^2

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

    loss: Literal["squared_hinge", "log_loss"] = "squared_hinge"
    class_weight: dict | str | None = None

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

    @property
    def _scores_are_log_odds(self) -> bool:
        return self.loss == "log_loss"

    def _head(self, target, held=None):
        if held is None or self.calibration is None:
            if self.loss != "log_loss":
                return target.head
            # Scores are log-odds: for two classes of s, and `Temperature` takes the softmax of (-s, s).
            return Classify(target.classes, Temperature(0.5 if target.n_outputs == 1 else 1.0))
        X, target = held
        if len(np.unique(target.label)) < len(target.classes):
            raise ValueError(
                f"calibration={self.calibration!r} needs rows of every class in the part held out: raise "
                f"validation_fraction={self.validation_fraction}, or pass calibration=None"
            )
        scores = self.mosaic_.decision_function(X, self.n_jobs)
        return Classify(target.classes, fit_calibration(self.calibration, scores, target.label, target.sample_weight))

    def _judge(self, scores, target):
        return target.head.accuracy(scores, target.label, target.weight)

    def _solved_loss(self):
        return SQUARED_HINGE, {}

    def _check_parameters(self):
        super()._check_parameters()
        if self.polish and self.loss != "squared_hinge":
            raise ValueError(f"polish=True needs loss='squared_hinge', got loss={self.loss!r}")


@estimator
class LearnedGateSVR(ValuesMixin, _LearnedGate, BaseMosaicRegressor):
    r"""Mosaic of linear regressions whose regions are learned with the tiles.

    .. math:: f(x) = \frac{1}{\sqrt{M}} \sum_m \sum_{j \in N_m(x)} g_{mj}(x) (\langle w_j, x \rangle + b_j) ,
              \quad g_m = \text{softmax}_{j \in N_m(x)}(-\tau_m \lVert P_m x - v_j \rVert^2)

    with :math:`N_m(x)` the `n_neighbors` anchors of gate m nearest to :math:`P_m x`. Projections P, anchors v,
    sharpness :math:`\tau` and tiles are learned together by minibatches of the loss, as in `LearnedGateSVC`; several
    targets share the gate. With `polish`, the tiles are then solved for with the gate frozen; they minimize

    .. math:: \tfrac12 \sum_j \lVert (w_j, b_j) \rVert^2 + 10 \sum_i s_i \, \text{loss}(y_i - f(x_i))

    to a certified gap, and the tiles that are better on the held-out rows are kept.

    Standardize the features first; dense rows far from the origin are centered internally. Training uses float32.

    Parameters
    ----------
    loss : str, default="squared_error"
        With the residual r = y - f(x) of a row, "squared_error": r^2; "epsilon_insensitive": max(0, \|r\| - epsilon),
        and "squared_epsilon_insensitive" its square; "quantile": q max(0, r) + (1 - q) max(0, -r) with q the
        `quantile`, and "expectile" the same with squares.

    See Also
    --------
    LearnedGateSVC : The same for classification.
    LocallyLinearSVR : Fixed anchors, and a convex problem.

    Examples
    --------
    >>> import numpy as np
    >>> from svmosaic import LearnedGateSVR
    >>> X = np.random.default_rng(0).uniform(-2, 2, size=(1000, 2))
    >>> y = np.sin(2 * X[:, 0]) * X[:, 1]
    >>> model = LearnedGateSVR(n_tiles=16, n_neighbors=4, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    loss: Annotated[str, partial(check_choice, choices=("squared_error", *REGRESSION_LOSSES))] = "squared_error"

    @all_or_nothing
    def partial_fit(self, X, y, sample_weight=None):
        """Learn from a batch of a stream in one pass, in minibatches at a constant learning rate.

        The first batch, unless `fit` was called before, initializes the projection and the gate, and determines the
        mean and the standard deviation by which y is normalized. `regions_` then describes the rows of this batch.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional
            Weighs the loss of each row.

        Returns
        -------
        self
        """
        return self._fit_batch(X, y, sample_weight)

    def _judge(self, scores, target):
        """Minus the mean loss, summed over targets as the learner does."""
        total = 0.0
        loss, given = self._solved_loss()
        for c in range(target.n_outputs):
            rows = loss.rows(target.head.wanted(target.truth, c), np.asarray(target.weight), c, **given)
            total += np.dot(rows.cost, loss.value(rows.sign * scores[rows.index, c], rows.threshold))
        return -float(total / target.weight.sum())

    def _solved_loss(self):
        """The loss of the learner as the solvers know it, and its parameters."""
        if self.loss == "squared_error":
            return LOSSES["squared_epsilon_insensitive"], {**self._loss_parameters(), "epsilon": 0.0}
        return LOSSES[self.loss], self._loss_parameters()

    def _loss_parameter(self, n_outputs):
        name = "epsilon" if self.loss == "squared_error" else LOSSES[self.loss].parameters[0]
        value = self._loss_parameters()[name]
        return value if isinstance(value, list) else [value] * n_outputs


def single_precision(X):
    """Rows as float32; ValueError if their values, which are finite, are too large for it."""
    if X.dtype == np.float32:
        return X
    with np.errstate(over="ignore"):
        X = X.astype(np.float32, copy=False)
    if not np.isfinite(X.data if sparse.issparse(X) else X).all():
        raise ValueError("X has values too large for float32: scale the features")
    return X


def start_gates(X, n_gates, n_tiles, n_components, n_neighbors, weight, rng, n_jobs=None):
    """Gates for a `GateLearner`, and how many tiles share a row in each of them.

    One gate has the principal components as they are. Of several, each has its own random rotation of them, with the
    axes scaled by 1 - `SPREAD` to 1 + `SPREAD`, and k-means from its own seed.

    Parameters
    ----------
    X : ndarray, CSR matrix or, with components, ChosenRows
    n_gates, n_tiles, n_neighbors : int
        Tiles and neighbors of each gate.
    n_components : int or None
    weight : ndarray of shape (n_rows,)
    rng : RandomState
    n_jobs : int or None

    Returns
    -------
    gates : list of (anchors, tau, projection)
    width : int
    """
    components = None if n_components is None else principal_components(X, n_components, rng)
    gates, widths = [], []
    for _ in range(n_gates):
        projection = components
        if n_gates > 1 and components is not None:
            q, r = np.linalg.qr(rng.standard_normal((len(components), len(components))))
            rotation = rng.uniform(1 - SPREAD, 1 + SPREAD, len(q))[:, None] * (q * np.sign(np.diag(r)))
            projection = (rotation @ components).astype(np.float32)
        if projection is None:
            z = X
        elif X.shape[0] > max(ROWS_PER_CENTER * n_tiles, SCALE_ROWS):  # only samples of them are computed
            z = _ProjectedRows(X, projection, n_jobs)
        else:
            z = np.ascontiguousarray(copied(X) @ projection.T)
        anchors = place_centers(
            z, n_tiles, sample_weight=weight, rows_per_center=ROWS_PER_CENTER, rng=rng, n_jobs=n_jobs
        )
        codes = code_gate(z, anchors, "softmax", n_neighbors, None, rng)
        gates.append((anchors, codes.scale, projection))
        widths.append(codes.width)
    return gates, min(widths)


class _ProjectedRows:
    """Rows times a projection, computed on demand for the rows with given indices."""

    ndim = 2

    def __init__(self, X, projection, n_jobs):
        self.X, self.projection, self.n_jobs = X, projection, n_jobs
        self.shape, self.dtype = (X.shape[0], len(projection)), np.result_type(X.dtype, projection.dtype)

    def __getitem__(self, rows):
        out = np.empty((len(rows), len(self.projection)), dtype=self.dtype)

        def project(block):
            out[block] = self.X[rows[block]] @ self.projection.T

        in_blocks(project, len(rows), self.n_jobs)
        return out
