"""A gate that is a binary tree of linear splits."""

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse

from svmosaic import _core
from svmosaic.rows import Rows

# Rows a leaf that the start is computed from, and steps of the power method.
ROWS_PER_LEAF, POWER_STEPS = 64, 8


@dataclass(frozen=True, eq=False)
class TreeGate:
    r"""The leaf that a row comes to: one tile, of weight one.

    With K leaves the K - 1 inner nodes are numbered as in a heap: node i has children 2 i + 1 and 2 i + 2, and leaf j
    is number K - 1 + j. A row goes right where :math:`\langle \theta_i, x \rangle + b_i > 0`. The depth is the
    logarithm of K to base 2, rounded down for some leaves and up for others: a row costs about log2(K) n_features.

    Attributes
    ----------
    splits : ndarray of shape (n_tiles - 1, n_features + 1)
        :math:`(\theta_i, b_i)`.
    """

    splits: np.ndarray
    width = 1

    @property
    def n_tiles(self) -> int:
        return len(self.splits) + 1

    def code(self, X, n_jobs=None):
        """Tiles of each row, of shape (n_samples, 1), and None for weights of one."""
        tile = np.empty((X.shape[0], 1), dtype=np.int32)
        core = self._core32 if X.dtype == np.float32 else self._core64
        core.code(Rows(X).core, tile, effective_n_jobs(n_jobs))
        return tile, None

    @cached_property
    def _core32(self):
        return _core.SplitTreeF32(np.ascontiguousarray(self.splits, dtype=np.float64))

    @cached_property
    def _core64(self):
        return _core.SplitTreeF64(np.ascontiguousarray(self.splits, dtype=np.float64))

    def __getstate__(self):
        # What is packed in the core is rebuilt on demand.
        return {field.name: getattr(self, field.name) for field in fields(self)}


def plant_tree(X, n_leaves, rng):
    """Splits to start from: along the main direction of the rows of each node, so that leaves hold as many rows each.

    Margins have a deviation of one over the rows of their node.

    Parameters
    ----------
    X : ndarray or CSR matrix
    n_leaves : int
    rng : RandomState

    Returns
    -------
    ndarray of shape (n_leaves - 1, n_features + 1)
    """
    n_sample = ROWS_PER_LEAF * n_leaves
    if X.shape[0] > n_sample:
        X = X[np.sort(rng.choice(X.shape[0], n_sample, replace=False))]
    below = np.ones(2 * n_leaves - 1, dtype=int)  # leaves under each node
    for node in range(n_leaves - 2, -1, -1):
        below[node] = below[2 * node + 1] + below[2 * node + 2]
    splits = np.zeros((n_leaves - 1, X.shape[1] + 1))
    parts = {0: np.arange(X.shape[0])}
    for node in range(n_leaves - 1):
        rows = parts.pop(node)
        direction = _main_direction(X[rows], rng)
        along = np.asarray(X[rows] @ direction, dtype=np.float64)
        cut = np.quantile(along, below[2 * node + 1] / below[node]) if len(along) else 0.0
        scale = 1 / (np.std(along) or 1.0) if len(along) else 1.0
        splits[node] = np.append(scale * direction, -scale * cut)
        parts[2 * node + 1], parts[2 * node + 2] = rows[along <= cut], rows[along > cut]
    return splits


def _main_direction(X, rng):
    """About the direction of the largest variance, by a few steps of the power method."""
    direction = rng.standard_normal(X.shape[1])
    if X.shape[0] > 1:
        mean = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
        for _ in range(POWER_STEPS):
            along = X @ direction - mean @ direction
            step = X.T @ along - mean * along.sum()
            step = step if not sparse.issparse(step) else step.toarray().ravel()
            if not np.linalg.norm(step) > 0:
                break
            direction = step / np.linalg.norm(step)
    return direction / np.linalg.norm(direction)
