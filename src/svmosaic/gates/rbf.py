"""The RBF softmax gate of the mixture of linear SVMs."""

import numpy as np

from svmosaic.gates.softmax_tree import SoftmaxTree


class RBFGate(SoftmaxTree):
    r"""A softmax over distances to centroids: a `SoftmaxTree` of one level.

    .. math:: g_j(x) = \frac{\xi_j \exp(-\tau \lVert x - v_j \rVert^2)}
              {\sum_l \xi_l \exp(-\tau \lVert x - v_l \rVert^2)}

    See Also
    --------
    Gate : The interface of a gate.
    """

    @classmethod
    def from_centers(cls, centers, tau, *, prior=None, inside=True) -> "RBFGate":
        """Return a gate with one tile per center, all at the scale tau; mixing coefficients are equal unless given."""
        n_tiles = len(centers)
        prior = np.full(n_tiles, 1.0 / n_tiles) if prior is None else np.asarray(prior, dtype=np.float64)
        top = np.full(n_tiles, -1, dtype=np.int32)
        return cls(np.asarray(centers, dtype=np.float64), np.full(n_tiles, float(tau)), prior, top, inside)
