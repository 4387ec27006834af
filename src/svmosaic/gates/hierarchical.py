"""The hierarchical gate: RBF softmaxes in a tree of any number of levels."""

import numpy as np

from svmosaic.gates.distance import DistanceGate
from svmosaic.gates.placement import place_centers
from svmosaic.gates.softmax_tree import SoftmaxTree, among_siblings, within_variance


class HierarchicalGate(SoftmaxTree):
    """RBF softmaxes multiplied down a tree; see `SoftmaxTree`.

    See Also
    --------
    Gate : The interface of a gate.
    """

    @classmethod
    def from_rows(cls, X, weight, branching, *, tau=None, rng, inside=True):
        """Initialize by k-means, level by level: the cells of each level are divided into those of the next.

        Parameters
        ----------
        X : ndarray or CSR matrix
        weight : ndarray of shape (n_rows,)
        branching : sequence of int
            Children of each node, level by level. Fewer are used if a cell has fewer distinct rows.
        tau : float, optional
            The scale of all levels. None: 2 / D on each level, D the mean squared distance to the cell's center.
        rng : RandomState
        inside : bool

        Returns
        -------
        gate : HierarchicalGate
        tile : ndarray of int32, the tile of each row's cell
        """
        centers, parent, scale, mass = [], [], [], []
        node = np.full(X.shape[0], -1, dtype=np.int32)
        for n_children in branching:
            below = np.empty_like(node)
            first = len(centers)
            for top in np.unique(node):
                members = np.flatnonzero(node == top)
                placed = place_centers(X[members], n_children, sample_weight=weight[members], rng=rng)
                cell = DistanceGate(placed).code(X[members])[0][:, 0]
                used, cell = np.unique(cell, return_inverse=True)
                below[members] = len(centers) + cell
                centers.extend(placed[used].astype(np.float64))
                parent.extend([top] * len(used))
            node = below
            spread = within_variance(X, np.array(centers)[node], weight)
            default = 2.0 / spread if spread > 0 else 1.0
            scale.extend([default if tau is None else float(tau)] * (len(centers) - first))
            mass.append(np.bincount(node, weight, len(centers))[first:])
        parent = np.array(parent, dtype=np.int32)
        prior = among_siblings(np.concatenate(mass), parent)
        gate = cls(np.array(centers), np.array(scale), prior, parent, inside)
        return gate, np.searchsorted(gate.leaf, node).astype(np.int32)
