"""A gate that is a binary tree of linear splits."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from svmosaic.gates._packed import PackedGate

# Rows a leaf that the start is computed from, and steps of the power method.
ROWS_PER_LEAF, POWER_STEPS = 64, 8


@dataclass(frozen=True, eq=False)
class SplitTreeGate(PackedGate):
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

    @property
    def n_tiles(self) -> int:
        return len(self.splits) + 1

    @property
    def width(self) -> int:
        return 1

    def code(self, X, n_jobs=None):
        """Tiles of each row, of shape (n_samples, 1), and None for weights of one."""
        return super().code(X, n_jobs)[0], None

    def core_arguments(self):
        """The name of the gate's class in the core, and what it is made of."""
        return "SplitTreeGate", np.ascontiguousarray(self.splits, dtype=np.float64)


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
