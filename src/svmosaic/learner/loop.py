"""The epochs of a learnt gate: schedule, hold-out, callbacks, time limit; and the fitted form of a learner."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from svmosaic.gates import DistanceGate, ProjectedGate, SplitTreeGate
from svmosaic.learner.gate_learner import HARD, hardening, one_cycle
from svmosaic.mosaic import Mosaic
from svmosaic.rows import Rows

# Batches are a 400th of the rows, within bounds: small ones learn more in an epoch, large ones cost less a row.
STEPS, SMALLEST_BATCH, LARGEST_BATCH = 400, 32, 1024


@dataclass
class Trace:
    """What happened in each epoch, and why they ended."""

    losses: list[float] = field(default_factory=list)
    validation_scores: list[float] = field(default_factory=list)
    stop_reason: str = "max_iter"


def batch_of(batch_size, n_rows) -> int:
    """Rows a step."""
    if batch_size is None:
        batch_size = int(np.clip(n_rows // STEPS, SMALLEST_BATCH, LARGEST_BATCH))
    return min(batch_size, n_rows)


def learn(estimator, learner, X, target, held, rng, fitting) -> Trace:
    """All epochs; with early stopping the learner ends as it was after its best one."""
    trace = Trace()
    n_rows, batch = X.shape[0], batch_of(estimator.batch_size, X.shape[0])
    n_batches = -(-n_rows // batch)
    n_steps = n_batches * estimator.max_iter
    deadline = np.inf if fitting.deadline is None else fitting.deadline
    best, best_epoch, kept = -np.inf, 0, None
    rows, name = Rows(X), type(estimator).__name__
    for epoch in range(estimator.max_iter):
        here = slice(epoch * n_batches, (epoch + 1) * n_batches)
        order = rng.permutation(n_rows).astype(np.int32)
        rates = one_cycle(estimator.learning_rate, n_steps, here)
        loss, n_met = one_pass(
            estimator, learner, rows, target, order, batch, rates, hardening(n_steps, here), deadline=deadline
        )
        if n_met == 0:
            trace.stop_reason = "max_time"
            break
        trace.losses.append(loss)
        check_divergence(learner, loss, epoch + 1, estimator.learning_rate)
        if estimator.early_stopping:
            trace.validation_scores.append(accuracy(mosaic_of(learner), held[0], held[1], estimator.n_jobs))
            if trace.validation_scores[-1] > best:
                best, best_epoch, kept = trace.validation_scores[-1], epoch, learner.copy()
        if estimator.verbose:
            score = f", validation {trace.validation_scores[-1]:.4f}" if trace.validation_scores else ""
            print(f"[{name}] epoch {epoch + 1}/{estimator.max_iter}: mean loss {loss:.6g}{score}")
        stop = fitting.step(
            estimator, "epoch", lambda: {"classes_": target.classes, "mosaic_": mosaic_of(learner)}
        )  # fmt: skip
        if n_met < n_rows:
            trace.stop_reason = "max_time"
        elif stop:
            trace.stop_reason = "callback"
        elif estimator.early_stopping and epoch - best_epoch >= estimator.n_iter_no_change:
            trace.stop_reason = "early_stopping"
        else:
            continue
        break
    if kept is not None:
        learner.restore(kept)
    return trace


def one_pass(estimator, learner, rows, target, order, batch, rates, sharpness, **options) -> tuple[float, int]:
    """One pass over the rows of `order`: their mean loss on the way, and how many were met in time."""
    loss, n_met = learner.epoch(
        rows, target.label.astype(np.int32), target.weight, order, batch, rates, sharpness=sharpness,
        learn_gate=bool(estimator.learn_gate), n_threads=effective_n_jobs(estimator.n_jobs), **options,
    )  # fmt: skip
    weight = float(target.weight[order[:n_met]].sum())
    return loss / weight if weight > 0 else 0.0, n_met


def still(n_batches):
    """The sharpness of a tree that goes on learning from a stream."""
    return np.full(n_batches, HARD)


def check_divergence(learner, loss, epoch, learning_rate):
    if not (np.isfinite(loss) and learner.is_finite):
        raise ValueError(
            f"learning diverged in epoch {epoch} with learning_rate={learning_rate}: "
            "standardise the features, or lower learning_rate"
        )


def accuracy(mosaic, X, target, n_jobs) -> float:
    return target.head.accuracy(mosaic.decision_function(X, n_jobs), target.label, target.weight)


def mosaic_of(learner) -> Mosaic:
    """The fitted form of what has been learnt so far."""
    tiles = learner.tile_weights()
    values = learner.gate[0].astype(np.float64)
    gate: Any = (
        SplitTreeGate(values) if learner.is_tree else DistanceGate(values, "softmax", learner.width, learner.tau)
    )
    if learner.projection is not None:
        gate = ProjectedGate(np.ascontiguousarray(learner.projection[0][:, :-1], dtype=np.float64), gate)
    return Mosaic(gate, tiles[:, :, :-1], tiles[:, :, -1])
