"""The interface of rows for a fit of learned gates, implemented for rows in memory.

`svmosaic.scale.learning.PartitionedLearningRows` answers the same for rows in partitions.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from svmosaic.estimators._region_words import sample_regions
from svmosaic.explain.contributions import count_homes, homes_of
from svmosaic.learner.devices import engine_of, find_device
from svmosaic.rows import in_blocks


@dataclass(frozen=True)
class MemoryLearningRows:
    """Rows in memory, in single precision, and what they are to be learned as."""

    X: Any
    target: Any

    # How many learners take steps at the same time.
    n_replicas = 1

    @property
    def n_rows(self) -> int:
        return self.X.shape[0]

    def start(self, rng):
        """Rows and their target, by which the gate is placed: all of them."""
        return self.X, self.target

    def hold_out(self, n_held_out, split, rng):
        """The rows to train on, and those held out with their target, as `split` cuts them."""
        train, held = split(self.X, self.target, n_held_out, rng)
        return MemoryLearningRows(*train), held

    def engine(self, learner, plan, device):
        """What takes the steps; see `svmosaic.learner.loop.CoreEngine`."""
        return engine_of(learner, self.X, self.target.learned, self.target.weight, plan, find_device(device))

    def region_counts(self, mosaic, head, n_jobs):
        """Sums for `regions_`: one pass of scoring, by blocks whose codes and scores stay in the caches."""

        def of_block(block):
            X = self.X[block]
            codes = mosaic.gate.code(X, 1)
            return head.found(mosaic.score_codes(X, *codes, 1)), *homes_of(mosaic.gate, codes)

        parts = in_blocks(of_block, self.n_rows, n_jobs)
        found, *homes = (np.concatenate(part) for part in zip(*parts, strict=True))
        return count_homes(mosaic, head, homes, self.target.truth, found, self.X)

    def region_sample(self, mosaic, counts):
        """Rows from which regions can be described in words."""

        def take(at):
            rows = self.X[at]
            return mosaic.gate.code(rows), rows

        return sample_regions(mosaic, counts, self.n_rows, take)


def single_precision(X):
    """Rows as float32; ValueError if their values, which are finite, are too large for it."""
    if X.dtype == np.float32:
        return X
    with np.errstate(over="ignore"):
        X = X.astype(np.float32, copy=False)
    if not np.isfinite(X.data if sparse.issparse(X) else X).all():
        raise ValueError("X has values too large for float32: scale the features")
    return X
