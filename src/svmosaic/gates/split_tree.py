"""A gate that is a binary tree of linear splits."""

from dataclasses import dataclass

import numpy as np

from svmosaic.gates._packed import PackedGate


@dataclass(frozen=True, eq=False)
class SplitTreeGate(PackedGate):
    r"""The leaf that a row comes to: one tile, of weight one.

    Models of version 0.1 could learn such a gate; files that hold one are still read and predict.

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
        """The name of the gate's class in the core, and the arguments of its constructor."""
        return "SplitTreeGate", np.ascontiguousarray(self.splits, dtype=np.float64)
