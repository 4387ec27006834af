"""Gates that learn: regions placed by the gradient of the loss, in a learned low-dimensional metric."""

import warnings
from dataclasses import replace

import numpy as np
from scipy import sparse
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples, check_is_fitted

from svmosaic._validation import check_choice, check_real, warn_if_far
from svmosaic.couplings import Coupling
from svmosaic.heads import head_of
from svmosaic.learner import defaults
from svmosaic.learner.devices import DEVICES, MANY_ROWS, device_scores, engine_of, find_device
from svmosaic.learner.gate_learner import GateLearner
from svmosaic.learner.loop import Plan, diverged, learn, mean_loss, mosaic_of
from svmosaic.models._all_or_nothing import all_or_nothing
from svmosaic.models._fit_rows import FitRowsMixin
from svmosaic.models._gate_start import start_gates
from svmosaic.models._learning_rows import MemoryLearningRows, single_precision
from svmosaic.models._progress import Progress
from svmosaic.solvers import Rows, problems_of, solve, warn_if_unconverged

# Epochs of the solver that polishes.
POLISH_EPOCHS = 1000
# The rows may lie this many times their spread away from the origin; beyond, descent was seen to fail.
MOST_DISTANCE = 25.0


class LearningMixin(CallbackSupportMixin, FitRowsMixin):
    """Gate and tiles by gradient; what they are to predict, and how that is judged, is up to subclasses.

    These say what the rows are fitted to (`_validated`), what the held-out part is (`_hold_out`) and how scores of it
    are judged (`_judge`), what a warm start must have in common with the last fit (`_asked_of`), and which loss
    polishes the tiles (`_polished_loss`). They may complete the head (`_own_head`, `_complete_head`).
    """

    _losses: tuple[str, ...]

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
            warn_if_far(self, rows, MOST_DISTANCE)
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
            warn_if_far(self, rows.start(rng)[0], MOST_DISTANCE)
        self._learn(rows, rng, progress)

    def _n_held_out(self, n_rows) -> int:
        return max(1, round(self.validation_fraction * n_rows))

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
        self.region_counts_ = rows.region_counts(self.mosaic_, head_of(self), self.n_jobs)

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
                f"max_iter={self.max_iter}. Increase max_time or lower max_iter: the learning rate falls over all "
                "epochs that are planned.",
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
        self.region_counts_ = self._count_regions(X, target.truth, self.mosaic_.gate.code(X, self.n_jobs))
        return self

    def _scores(self, X):
        check_is_fitted(self)
        on_cpu = sparse.issparse(X) or _num_samples(X) < MANY_ROWS
        device = None if on_cpu else find_device(self.device)
        return super()._scores(X) if device is None else device_scores(self.mosaic_, self._rows(X), device)

    def _check_parameters(self):
        check_choice("loss", self.loss, self._losses)
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
        gates, width = start_gates(
            X if pieces is None else pieces.straight_terms(X), self.n_gates, self.n_tiles, self.n_components,
            self.n_neighbors, target.weight, rng, self.n_jobs,
        )  # fmt: skip
        if pieces is not None:
            gates = [(anchors, tau, _over_all_features(projection, pieces)) for anchors, tau, projection in gates]
        return GateLearner(
            gates, n_features=X.shape[1] if pieces is None else pieces.n_features, n_outputs=target.n_outputs,
            width=width, decay=float(self.weight_decay), loss=self.loss,
            loss_parameter=self._loss_parameter(target.n_outputs), dropout=float(self.dropout),
            seed=rng.randint(2**31 - 1) if self.dropout else 0, pieces=pieces,
        )  # fmt: skip

    def _polish(self, learner, X, target, X_held, held, rng):
        """Solve for the tiles with the gate frozen, and keep them if the held-out part agrees."""
        gate = self.mosaic_.gate
        cost = self.C * target.weight
        loss, parameters = self._polished_loss()
        targets = [loss.rows(target.wanted(c), cost, **parameters(c)) for c in range(target.n_outputs)]
        coupling = Coupling.independent(gate.n_tiles)
        _, tile_rows = self.mosaic_.features.rows(X)
        problems = problems_of(Rows(tile_rows), gate.code(X, self.n_jobs), coupling, loss, targets)
        solutions = solve(
            problems, tol=self.tol, max_iter=POLISH_EPOCHS, seed=rng.randint(2**31 - 1), n_jobs=self.n_jobs,
        )  # fmt: skip
        warn_if_unconverged(solutions, POLISH_EPOCHS, type(self).__name__)
        self.dual_gap_ = np.array([s.gap for s in solutions])
        tiles = np.stack([s.weights for s in solutions], axis=1)
        polished = replace(self.mosaic_, coef=tiles[:, :, :-1], intercept=tiles[:, :, -1])
        self.polish_scores_ = tuple(
            self._judge(mosaic.decision_function(X_held, self.n_jobs), held) for mosaic in (self.mosaic_, polished)
        )
        self.polished_ = self.polish_scores_[1] > self.polish_scores_[0]
        if self.polished_:
            self.mosaic_ = polished
            learner.set_tile_weights(tiles)


def _over_all_features(projection, pieces):
    """A projection of the straight terms (None: the identity) as one of all features of pieces, hats at zero."""
    projection = np.eye(pieces.n_inputs, dtype=np.float32) if projection is None else projection
    return np.hstack([projection, np.zeros((len(projection), len(pieces.knot)), dtype=projection.dtype)])
