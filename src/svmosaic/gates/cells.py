"""Gates that give each row to one tile."""

from dataclasses import dataclass

import numpy as np
from sklearn.utils import gen_batches
from sklearn.utils.extmath import row_norms, safe_sparse_dot

# Rows are coded in batches, so that no n_samples x n_tiles array is held for large n.
BATCH = 4096


@dataclass(frozen=True)
class SingleCell:
    """The gate of a linear model: everything belongs to tile 0."""

    @property
    def n_tiles(self) -> int:
        return 1

    def code(self, X):
        """Tiles (n_samples, 1) and weights (None: all ones) of each row."""
        return np.zeros((X.shape[0], 1), dtype=np.int32), None


@dataclass(frozen=True)
class NearestCell:
    """Each row belongs to the nearest centre.

    Attributes
    ----------
    centers : ndarray of shape (n_tiles, n_features)
    """

    centers: np.ndarray

    @property
    def n_tiles(self) -> int:
        return len(self.centers)

    def code(self, X):
        """Tiles (n_samples, 1) and weights (None: all ones) of each row."""
        tile = np.empty((X.shape[0], 1), dtype=np.int32)
        centers = self.centers.astype(X.dtype, copy=False)
        half_norms = 0.5 * row_norms(centers, squared=True)
        for batch in gen_batches(X.shape[0], BATCH):
            # |x - c|^2 = |x|^2 - 2 (x.c - |c|^2 / 2): the nearest centre has the largest bracket.
            closeness = safe_sparse_dot(X[batch], centers.T, dense_output=True) - half_norms
            tile[batch, 0] = closeness.argmax(axis=1)
        return tile, None
