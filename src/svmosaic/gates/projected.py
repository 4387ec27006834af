"""A gate that measures distances in a linear projection of the rows."""

from dataclasses import dataclass

import numpy as np
from sklearn.utils.extmath import safe_sparse_dot

from svmosaic.gates.distance import DistanceGate


@dataclass(frozen=True, eq=False)
class ProjectedGate:
    """The codes of z = P x over centres in the projected space.

    Attributes
    ----------
    projection : ndarray of shape (n_components, n_features)
    inner : DistanceGate
        Over the components.
    """

    projection: np.ndarray
    inner: DistanceGate

    @property
    def n_tiles(self) -> int:
        return self.inner.n_tiles

    @property
    def scale(self) -> float:
        return self.inner.scale

    def code(self, X, n_jobs=None):
        """Tiles and weights of each row, of shape (n_samples, width)."""
        z = safe_sparse_dot(X, self.projection.T.astype(X.dtype, copy=False), dense_output=True)
        return self.inner.code(np.ascontiguousarray(z), n_jobs)
