"""Epochs of the gate learner over rows that do not fit in memory: chunks in random order, shuffled in a buffer."""

from typing import Any

import numpy as np
from scipy import sparse

from svmosaic.learner.devices import engine_of

# Chunks whose rows are shuffled together.
BUFFER_CHUNKS = 4


class StreamEngine:
    """Epochs over chunks, with the interface of `CoreEngine`; it takes the steps of one for each buffer of rows.

    In every epoch the chunks come in another random order, and the rows of a few of them are shuffled together. Memory
    holds that buffer twice, and the chunk that is read meanwhile. If all rows fit in the buffer, they are shuffled as
    rows in memory are.

    Parameters
    ----------
    learner : GateLearner
        Changed in place.
    read : callable
        From places of chunks to an iterator over their (rows, target, weight), as `CoreEngine` takes them.
    n_chunks, n_rows : int
    plan : Plan
    device : jax.Device or None
    """

    def __init__(self, learner, read, n_chunks, n_rows, plan, device=None):
        self.learner, self.read, self.n_chunks, self.n_rows = learner, read, n_chunks, n_rows
        self.plan, self.device = plan, device
        # Buffers of one size: an accelerator compiles its loop for each size anew.
        n_batches = -(-BUFFER_CHUNKS * n_rows // (n_chunks * plan.batch_size))
        self.buffer_rows = n_batches * plan.batch_size
        self.inner: Any = None
        self._weight = np.float64(0.0)

    @property
    def n_batches(self) -> int:
        """Steps of an epoch."""
        return -(-self.n_rows // self.plan.batch_size)

    def order(self, rng):
        """The order of the chunks in an epoch, and the seed of what is shuffled in it."""
        return rng.permutation(self.n_chunks), rng.randint(2**31 - 1)

    def weight_met(self, order, n_met):
        """The total weight of the rows that the last epoch met."""
        return self._weight

    def epoch(self, order, rates, deadline=np.inf) -> tuple[float, int]:
        """Sum of the losses on the way, and the number of rows that were met before the deadline."""
        loss, n_met, self._weight = 0.0, 0, np.float64(0.0)
        for X, target, weight in self._buffers(*order):
            if self.inner is None:
                self.inner = engine_of(self.learner, X, target, weight, self.plan, self.device)
            else:
                self.inner.set_rows(X, target, weight)
            first = n_met // self.plan.batch_size
            here = slice(first, first - (-len(weight) // self.plan.batch_size))
            part, met = self.inner.epoch(np.arange(len(weight), dtype=np.int32), rates[here], deadline)
            loss, n_met, self._weight = loss + part, n_met + met, self._weight + weight[:met].sum()
            if met < len(weight):
                break
        return loss, n_met

    def _buffers(self, chunks, seed):
        """Shuffled rows, targets and weights: so many rows at a time that all batches but the last are full."""
        rng = np.random.RandomState(seed)
        held, n_held = [], 0
        for part in self.read(chunks):
            held.append(part)
            n_held += len(part[2])
            while n_held >= self.buffer_rows:
                whole, held = _joined(held), []
                order = rng.permutation(n_held)
                yield tuple(values[order[: self.buffer_rows]] for values in whole)
                rest = np.sort(order[self.buffer_rows :])
                held, n_held = [tuple(values[rest] for values in whole)], len(rest)
                del whole
        if n_held:
            order = rng.permutation(n_held)
            yield tuple(values[order] for values in _joined(held))

    def scores(self, X):
        """Scores of rows, of shape (n_rows, n_outputs), with what has been learned so far."""
        return self.inner.scores(X)

    @property
    def is_finite(self) -> bool:
        """Whether no parameter has overflowed."""
        return self.inner.is_finite

    def finish(self):
        """Bring what has been learned back to the learner."""
        if self.inner is not None:
            self.inner.finish()


def _joined(parts):
    if len(parts) == 1:
        return parts[0]
    X, target, weight = zip(*parts, strict=True)
    X = sparse.vstack(X, format="csr") if sparse.issparse(X[0]) else np.concatenate(X)
    return X, np.concatenate(target), np.concatenate(weight)
