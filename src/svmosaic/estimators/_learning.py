"""Gates that learn: regions placed by the gradient of the loss, in a learned low-dimensional metric."""

import warnings
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from scipy import sparse
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples, check_is_fitted

from svmosaic._validation import check_choice, check_real, distance_from_origin, warn_if_far
from svmosaic.couplings import Coupling
from svmosaic.estimators._all_or_nothing import all_or_nothing
from svmosaic.estimators._fit_rows import FitRowsMixin
from svmosaic.estimators._gate_start import start_gates
from svmosaic.estimators._hold_out import hold_out
from svmosaic.estimators._learning_rows import MemoryLearningRows, single_precision
from svmosaic.estimators._parameters import (
    Count,
    Fraction,
    NotNegative,
    Positive,
    check_parameters,
    parameters,
    positional,
)
from svmosaic.estimators._progress import Progress
from svmosaic.learner import defaults
from svmosaic.learner.devices import MANY_ROWS, Device, device_scores, engine_of, find_device
from svmosaic.learner.gate_learner import GateLearner
from svmosaic.learner.loop import Plan, diverged, learn, mean_loss, mosaic_of, tiles_of
from svmosaic.model.heads import head_of
from svmosaic.rows import ChosenRows, copied
from svmosaic.solvers import Rows, problems_of, solve, warn_if_unconverged

# Epochs of the solver that polishes.
POLISH_EPOCHS = 1000
# If the rows lie more than this many times their spread away from the origin, descent was seen to fail: dense rows are
# centered then. Beyond the second number, float32 cannot distinguish the rows.
MOST_DISTANCE, MOST_DISTANCE_CENTERED = 25.0, 1e5


@parameters
class LearningMixin(CallbackSupportMixin, FitRowsMixin):
    """Gate and tiles by gradient; what they are to predict, and how that is judged, is up to subclasses.

    These say what the rows are fitted to (`_validated`), how scores of the held-out part are judged (`_judge`), what a
    warm start must have in common with the last fit (`_asked_of`), and which loss polishes the tiles
    (`_polished_loss`). They may complete the head (`_own_head`, `_complete_head`).

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
    C : float, default=10.0
        Weight of the losses when the tiles are polished.
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
        the best epoch. "auto" does so if at least 50 rows are held out.
    n_iter_no_change : int, default=10
        Number of epochs without improvement after which `early_stopping` stops.
    validation_fraction : float, default=0.1
        Fraction of the rows held out for `early_stopping`, `polish` and (for a classifier) `calibration`.
    refit : bool or "auto", default="auto"
        After early stopping, train again on all rows, for the best number of epochs. "auto" does so for
        at most 50,000 rows. Never used with `polish` or `calibration`, which need the held-out rows.
    polish : bool, default=False
        Solve for the tiles with the gate frozen, and keep the tiles that are better on the held-out rows. Useful with
        many features and few rows. A classifier needs ``loss="squared_hinge"`` for it.
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
        Mean training loss of each epoch, including dropout; for regressors, of the normalized y; with `refit`, of the
        first run.
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
        Number of epochs; with `refit`, of both runs.
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
    C: Positive = 10.0
    learn_gate: bool = True
    max_iter: Count = 40
    learning_rate: Positive = 0.03
    batch_size: Count | None = None
    max_time: Positive | None = None
    early_stopping: bool | Literal["auto"] = "auto"
    n_iter_no_change: Count = 10
    validation_fraction: Fraction = 0.1
    refit: bool | Literal["auto"] = "auto"
    polish: bool = False
    tol: Positive = 1e-3
    warm_start: bool = False
    device: Device = "cpu"
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0
    pieces: Any = None

    _losses: ClassVar[tuple[str, ...]]

    @all_or_nothing
    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Learn the gate and the tiles.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,); for regressors also (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional
            Weighs the loss of each row.

        Returns
        -------
        self
        """
        self._check_parameters()
        rows, target = self._validated(X, y, sample_weight)
        if self.pieces is None:
            warn_if_far(self, rows, _most_distance(rows))
        rows = MemoryLearningRows(single_precision(rows), target)
        rng = check_random_state(self.random_state)
        fitting = Progress(self, self.max_time, X, y, sample_weight)
        with fitting.called_back(self.max_iter * (1 + self._refits(rows.n_rows))):
            self._learn(rows, rng, fitting)
        return self

    def _bend(self, rows, rng):
        """Nothing: curves are a part of the start."""

    def _fit_rows(self, rows, rng, progress):
        """The same from rows in partitions."""
        rows = rows.for_learning()
        if self.pieces is None:
            sample = rows.start(rng)[0]
            warn_if_far(self, sample, _most_distance(sample))
        self._learn(rows, rng, progress)

    def _n_held_out(self, n_rows) -> int:
        return max(1, round(self.validation_fraction * n_rows))

    def _hold_out(self, X, target, n_held_out, rng):
        """Training part and held-out part."""
        parts = hold_out(X.shape[0], n_held_out, rng, target.label)
        is_held = np.zeros(X.shape[0], dtype=bool)
        is_held[parts[1]] = True
        train, held = np.flatnonzero(~is_held), np.flatnonzero(is_held)
        # Nearly all rows are trained on: the core reads them where they are.
        X_train = ChosenRows(X, train) if self._learns_in_place(X) else X[train]
        return (X_train, target.take(train)), (X[held], target.take(held))

    def _learns_in_place(self, X) -> bool:
        """Whether training reads single rows only, by a projection and in the core, and names them as it likes."""
        on_cpu = self.device == "cpu" and not sparse.issparse(X)
        # Dropout is drawn by the index of a row: that among the training rows.
        return on_cpu and self.n_components is not None and not (self.pieces is not None or self.dropout or self.polish)

    def _stops(self, n_rows) -> bool:
        """Whether to stop early."""
        if self.early_stopping == "auto":
            return defaults.stops_early(self._n_held_out(n_rows))
        return bool(self.early_stopping)

    def _refits(self, n_rows) -> bool:
        """Whether to learn once more from all rows."""
        refits = defaults.refits(n_rows) if self.refit == "auto" else bool(self.refit)
        return refits and self._stops(n_rows) and not self._needs_held_out()

    def _learn(self, rows, rng, fitting):
        """From rows to the fitted attributes."""
        stops, target = self._stops(rows.n_rows), rows.target
        train, held = rows, None
        if stops or self._needs_held_out():
            train, held = rows.hold_out(self._n_held_out(rows.n_rows), self._hold_out, rng)
        before = getattr(self, "_learner", None)
        learner, trace = self._run(train, held if stops else None, self.max_iter, rng, fitting)
        self.loss_curve_, self.validation_scores_ = trace.losses, trace.validation_scores
        self.n_iter_, self.stop_reason_ = len(trace.losses), trace.stop_reason
        self.best_iter_ = trace.best_epoch + 1 if stops else self.n_iter_
        if self._refits(rows.n_rows) and trace.stop_reason in ("max_iter", "early_stopping"):
            self._learner = before  # a warm start begins where the first run did
            learner, last = self._run(rows, None, self.best_iter_, rng, fitting)
            self.n_iter_ += len(last.losses)
            if last.stop_reason != "max_iter":
                self.stop_reason_ = last.stop_reason
        self._warn_if_late()
        self._keep(learner, target)
        if self.polish:
            self._polish(learner, train.X, train.target, *held, rng)
        vars(self).update(self._complete_head(held, target).attributes)
        self._keep_regions(rows)

    def _run(self, rows, held, max_iter, rng, fitting):
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
                return {**self._own_head(target).attributes, "mosaic_": mosaic_of(learner)}

            return fitting.step("epoch", attributes)

        return learner, learn(
            engine, plan, rng, deadline=fitting.deadline, after_epoch=after_epoch,
            validate=held and (lambda: self._judge(engine.scores(held[0]), held[1])),
        )  # fmt: skip

    def _batch_size(self, n_rows, n_replicas=1):
        """Rows per step, of each learner if several take steps at the same time."""
        by_default = max(defaults.SMALLEST_BATCH, defaults.default_batch_size(n_rows) // n_replicas)
        return min(n_rows, by_default if self.batch_size is None else self.batch_size)

    def _warn_if_late(self):
        if self.stop_reason_ == "max_time":
            warnings.warn(
                f"{type(self).__name__}: learning stopped after max_time={self.max_time} s, in epoch {self.n_iter_} of "
                f"max_iter={self.max_iter}. Increase max_time or lower max_iter: the learning rate decays over all "
                "planned epochs.",
                ConvergenceWarning,
                stacklevel=5,
            )

    def _own_head(self, target):
        """The head of what has been learned, without the rows held out."""
        return target.head

    def _complete_head(self, held, target):
        """The head of the fitted model; `held` is the part held out (rows and target), if there is one."""
        return self._own_head(target)

    def _needs_held_out(self) -> bool:
        return bool(self.polish)

    def _loss_parameter(self, n_outputs):
        """What the learner's loss knows of each output."""
        return ()

    def _keep(self, learner, target):
        """What has been learned becomes the model."""
        self._learner, self.mosaic_, self.polished_ = learner, mosaic_of(learner), False
        vars(self).update(self._own_head(target).attributes)

    def _take_batch(self, X, target, first):
        """One pass over a validated batch of a stream, in minibatches at a constant learning rate."""
        X = single_precision(X)
        rng = check_random_state(self.random_state)
        learner = self._start(X, target, rng) if first else self._learner
        order = rng.permutation(X.shape[0]).astype(np.int32)
        plan = Plan(1, self._batch_size(len(order)), self.learning_rate, None, bool(self.learn_gate), self.n_jobs)
        rates = np.full(-(-len(order) // plan.batch_size), float(self.learning_rate))
        engine = engine_of(learner, X, target.learned, target.weight, plan, find_device(self.device))
        loss, _ = engine.epoch(order, rates)
        engine.finish()
        self.loss_curve_ = [*([] if first else self.loss_curve_), mean_loss(loss, target.weight)]
        self.n_iter_ = self.best_iter_ = len(self.loss_curve_)
        if not (np.isfinite(loss) and learner.is_finite):
            raise diverged(self.n_iter_, self.learning_rate)
        self._keep(learner, target)
        self._keep_regions(MemoryLearningRows(X, target))
        return self

    def _keep_regions(self, rows):
        """What `regions_` is made of."""
        self.region_counts_ = rows.region_counts(self.mosaic_, head_of(self), self.n_jobs)
        self._keep_region_sample(rows.region_sample(self.mosaic_, self.region_counts_))

    def _scores(self, X):
        check_is_fitted(self)
        on_cpu = sparse.issparse(X) or _num_samples(X) < MANY_ROWS
        device = None if on_cpu else find_device(self.device)
        return super()._scores(X) if device is None else device_scores(self.mosaic_, self._rows(X), device)

    def _check_parameters(self):
        check_parameters(self)
        check_choice("loss", self.loss, self._losses)
        self._check_pieces()

    def _start(self, X, target, rng) -> GateLearner:
        """The start: principal components, k-means in them, zero tiles; or the last fit."""
        settings = (
            self.loss, self.n_tiles, self.n_gates, self.n_components, self.n_neighbors, X.shape[1],
            self._asked_of(target), self.pieces if self.pieces is None else repr(self.pieces),
        )  # fmt: skip
        if self.warm_start and getattr(self, "_settings", None) == settings:
            learner = self._learner.copy()
            learner.set_decay(float(self.weight_decay))
            learner.dropout = float(self.dropout)
            return learner
        self._settings = settings
        pieces = self._fit_map(X, target, rng)
        if pieces is None:
            center = _center_if_far(X)
            terms = X if center is None else copied(X) - center
        else:
            center, terms = None, pieces.straight_terms(X)
        gates, width = start_gates(
            terms, self.n_gates, self.n_tiles, self.n_components,
            self.n_neighbors, target.weight, rng, self.n_jobs,
        )  # fmt: skip
        if pieces is not None:
            gates = [(anchors, tau, _over_all_features(projection, pieces)) for anchors, tau, projection in gates]
        return GateLearner(
            gates, n_features=X.shape[1] if pieces is None else pieces.n_features, n_outputs=target.n_outputs,
            width=width, decay=float(self.weight_decay), loss=self.loss,
            loss_parameter=self._loss_parameter(target.n_outputs), dropout=float(self.dropout),
            seed=rng.randint(2**31 - 1) if self.dropout else 0, pieces=pieces, center=center,
        )  # fmt: skip

    def _polish(self, learner, X, target, X_held, held, rng):
        """Solve for the tiles with the gate frozen, and keep them if the held-out part agrees."""
        gate = self.mosaic_.gate
        cost = self.C * target.weight
        loss, parameters = self._polished_loss()
        targets = [loss.rows(target.wanted(c), cost, **parameters(c)) for c in range(target.n_outputs)]
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


def _most_distance(X) -> float:
    """How many times their spread rows may lie away from the origin."""
    return MOST_DISTANCE if sparse.issparse(X) else MOST_DISTANCE_CENTERED


def _center_if_far(X):
    """The mean of dense rows that are too far from the origin to be learned from as they are; else None."""
    if sparse.issparse(X):
        return None
    mean, distance = distance_from_origin(X)
    return mean.astype(X.dtype) if distance > MOST_DISTANCE else None


def _over_all_features(projection, pieces):
    """A projection of the straight terms (None: the identity) as one of all features of pieces, hats at zero."""
    projection = np.eye(pieces.n_inputs, dtype=np.float32) if projection is None else projection
    return np.hstack([projection, np.zeros((len(projection), len(pieces.knot)), dtype=projection.dtype)])
