"""The epochs of learned gates: schedule, held-out part, time limit; and the fitted form of a learner."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from svmosaic.gates import CurvedGate, DistanceGate, ProjectedGate, SeveralGates
from svmosaic.learner.gate_learner import Pace
from svmosaic.learner.schedule import MemoryOrder, one_cycle
from svmosaic.model.mosaic import Mosaic
from svmosaic.rows import ChosenRows, Rows, shuffled


@dataclass
class Trace:
    """What happened in each epoch, which one was best, and why they ended."""

    losses: list[float] = field(default_factory=list)
    validation_scores: list[float] = field(default_factory=list)
    best_epoch: int = 0
    stop_reason: str = "max_iter"


@dataclass(frozen=True)
class Plan:
    """How to learn.

    Attributes
    ----------
    epochs, batch_size : int
    learning_rate : float
        Peak of the schedule.
    patience : int or None
        Epochs without a better score on the held-out part after which to stop; None: no held-out part is scored.
    learn_gate : bool
    n_jobs : int or None
    """

    epochs: int
    batch_size: int
    learning_rate: float
    patience: int | None = None
    learn_gate: bool = True
    n_jobs: int | None = None


class CoreEngine(MemoryOrder):
    """Epochs of a learner in the core; learner/jax_loop.py has those on an accelerator.

    Parameters
    ----------
    learner : GateLearner
        Changed in place.
    X : ndarray, ChosenRows or CSR matrix, in the precision of the learner
    target : ndarray of shape (n_rows, 1) or (n_rows, n_outputs)
    weight : ndarray of shape (n_rows,)
    plan : Plan
    """

    def __init__(self, learner, X, target, weight, plan):
        self.learner, self.plan, self.pace = learner, plan, Pace()
        self.set_rows(X, target, weight)

    def set_rows(self, X, target, weight):
        """Other rows to learn from."""
        self.at, n_all = None, X.shape[0]
        if isinstance(X, ChosenRows):
            X, self.at, n_all = X.all, X.at, len(X.all)
        self.rows, self.weight = Rows(self.learner.tile_rows(X)), weight
        self.target = self._of_all(target, n_all, self.learner.tiles.dtype)
        self.weight_of_all = self._of_all(weight, n_all, np.float64)

    def _of_all(self, values, n_all, dtype):
        """Values of the rows to learn from, as values of all rows in the core: it names them by their place there."""
        if self.at is None:
            return np.ascontiguousarray(values, dtype=dtype)
        out = np.zeros((n_all, *values.shape[1:]), dtype=dtype)
        out[self.at] = values
        return out

    def order(self, rng):
        """The order of the rows in an epoch, by their places among all rows in the core."""
        return shuffled(rng, self.n_rows if self.at is None else self.at)

    def weight_met(self, order, n_met):
        """The weights of the rows that an epoch met."""
        return self.weight if n_met == len(self.weight) else self.weight_of_all[order[:n_met]]

    def epoch(self, order, rates, deadline=np.inf) -> tuple[float, int]:
        """Sum of the losses on the way, and the number of rows that were met before the deadline."""
        return self.learner.epoch(
            self.rows, self.target, self.weight_of_all, order, self.plan.batch_size, rates,
            learn_gate=self.plan.learn_gate, n_threads=effective_n_jobs(self.plan.n_jobs), deadline=deadline,
            pace=self.pace,
        )  # fmt: skip

    def scores(self, X):
        """Scores of rows, of shape (n_rows, n_outputs), with what has been learned so far."""
        return mosaic_of(self.learner).decision_function(X, self.plan.n_jobs)

    @property
    def is_finite(self) -> bool:
        """Whether no parameter has overflowed, if the loss does not show it: the hinge of NaN is zero in the core."""
        return self.learner.is_finite

    def finish(self):
        """Bring what has been learned back to the learner."""


def learn(
    engine, plan: Plan, rng, *, deadline=None, validate: Callable | None = None, after_epoch: Callable | None = None
) -> Trace:  # fmt: skip
    """All epochs. With patience the learner ends as it was after its best epoch.

    Parameters
    ----------
    engine : CoreEngine, or another with the same methods
    plan : Plan
    rng : RandomState
        Of the order of the rows.
    deadline : float or None
        On the clock `perf_counter`.
    validate : callable
        Returns the score of the held-out part; needed with patience.
    after_epoch : callable, optional
        Is given the trace; returns whether to stop.
    """
    trace = Trace()
    n_batches = engine.n_batches
    n_steps = n_batches * plan.epochs
    best, kept = -np.inf, None
    for epoch in range(plan.epochs):
        order = engine.order(rng)
        rates = one_cycle(plan.learning_rate, n_steps, slice(epoch * n_batches, (epoch + 1) * n_batches))
        loss, n_met = engine.epoch(order, rates, np.inf if deadline is None else deadline)
        if n_met == 0:
            trace.stop_reason = "max_time"
            break
        trace.losses.append(mean_loss(loss, engine.weight_met(order, n_met)))
        if not (np.isfinite(trace.losses[-1]) and engine.is_finite):
            raise diverged(epoch + 1, plan.learning_rate)
        if validate is not None and plan.patience is not None:
            trace.validation_scores.append(validate())
            if trace.validation_scores[-1] > best:
                engine.finish()
                best, trace.best_epoch, kept = trace.validation_scores[-1], epoch, engine.learner.copy()
        stop = after_epoch is not None and after_epoch(trace)
        if n_met < engine.n_rows:
            trace.stop_reason = "max_time"
        elif stop:
            trace.stop_reason = "callback"
        elif plan.patience is not None and epoch - trace.best_epoch >= plan.patience:
            trace.stop_reason = "early_stopping"
        else:
            continue
        break
    engine.finish()
    if kept is not None:
        engine.learner.restore(kept)
    if not engine.learner.is_finite:
        raise diverged(len(trace.losses), plan.learning_rate)
    return trace


def mean_loss(loss, weight) -> float:
    """The weighted mean of losses from their sum."""
    total = float(weight.sum())
    return loss / total if total > 0 else 0.0


def diverged(epoch, learning_rate) -> ValueError:
    return ValueError(
        f"learning diverged in epoch {epoch} with learning_rate={learning_rate}: "
        "standardize the features, or lower learning_rate"
    )


def mosaic_of(learner) -> Mosaic:
    """The fitted form of what has been learned so far."""
    pieces, center = learner.pieces, learner.center
    coef, intercept = tiles_of(learner.tile_weights(), center)
    n_components = learner.anchors.shape[2]
    gates = []
    for m, (first, end) in enumerate(zip(learner.first_tile[:-1], learner.first_tile[1:], strict=True)):
        anchors = learner.anchors[0, first:end].astype(np.float64)
        projection = None
        if learner.projection is not None:
            projection = learner.projection[0, m * n_components : (m + 1) * n_components, :-1]
            projection = np.ascontiguousarray(projection, dtype=np.float64)
        if center is not None:
            anchors += center if projection is None else projection @ center
        gate: Any = DistanceGate(anchors, "softmax", learner.width, float(learner.tau[m]))
        if projection is not None:
            gate = ProjectedGate(projection, gate) if pieces is None else CurvedGate.of_pieces(pieces, projection, gate)
        gates.append(gate)
    whole = gates[0] if len(gates) == 1 else SeveralGates(tuple(gates), np.full(len(gates), len(gates) ** -0.5))
    return Mosaic(whole, coef, intercept, feature_map=pieces)


def tiles_of(tiles, center):
    """Weights and intercepts for rows as they are, from tiles learned after the center was taken from the rows."""
    coef, intercept = tiles[:, :, :-1], tiles[:, :, -1]
    return coef, intercept if center is None else intercept - coef @ center.astype(np.float64)
