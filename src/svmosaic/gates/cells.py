"""Gates that give each row to one tile."""

from dataclasses import dataclass

import numpy as np
from sklearn.utils import gen_batches
from sklearn.utils.extmath import safe_sparse_dot

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
        # With m the mean of the centres, |x - c|^2 = |x - m|^2 - 2 (x.(c - m) - (c - m).(c + m) / 2): the nearest
        # centre has the largest bracket. Taking m off the centres keeps float32 exact enough far from the origin.
        centers = self.centers.astype(np.float64, copy=False)
        mean = centers.mean(axis=0)
        apart = centers - mean
        offset = (0.5 * np.einsum("kf,kf->k", apart, centers + mean)).astype(X.dtype)
        directions = apart.astype(X.dtype).T
        for batch in gen_batches(X.shape[0], BATCH):
            closeness = safe_sparse_dot(X[batch], directions, dense_output=True) - offset
            tile[batch, 0] = closeness.argmax(axis=1)
        return tile, None
