"""Hierarchical mixture of linear SVMs (Fu, Robles-Kelly and Zhou, IEEE TNN 2010, section III-E)."""

from collections.abc import Sequence
from functools import partial

from svmosaic._validation import check_real
from svmosaic.estimators._parameters import estimator, positional
from svmosaic.estimators.mixture import SoftmaxMixture
from svmosaic.gates import HierarchicalGate


@estimator
class HierarchicalMixtureSVC(SoftmaxMixture):
    r"""Mixture of linear SVMs with a tree of gates.

    The weight of expert j, a leaf of the tree, is the product of the softmaxes along its path,

    .. math:: g_j(x) = \prod_{a \in \text{path}(j)} \frac{\xi_a e^{-\tau_a \lVert x - v_a \rVert^2}}
              {\sum_{b \text{ sibling of } a} \xi_b e^{-\tau_b \lVert x - v_b \rVert^2}} ,

    for any number of levels. The objective and the prediction are those of `MixtureSVC`. EM uses the joint
    responsibilities of the leaves; those of an inner node are the sums over the leaves below it. The pruning prior
    acts at each level; a leaf is removed together with the nodes above it that have no other children.

    Parameters
    ----------
    branching : sequence of int, default=(4, 5)
        Number of children of each node, level by level: (4, 5) means four nodes with five experts each. Fewer are used
        if a cell has fewer distinct rows.

    Attributes
    ----------
    node_centers_ : ndarray of shape (n_nodes, n_features)
        The centroids of all nodes, level by level.
    parent_ : ndarray of shape (n_nodes,)
        The node above each node, -1 at the top.
    mixing_ : ndarray of shape (n_nodes,)
        The coefficients xi, which sum to 1 among siblings.

    References
    ----------
    Z. Fu, A. Robles-Kelly and J. Zhou, Mixing Linear SVMs for Nonlinear Classification, IEEE Transactions on Neural
    Networks 21 (12), 2010.

    See Also
    --------
    MixtureSVC : One gate instead of a tree.
    MultiTaskMixtureSVC : Gaussian gates, and experts that form groups.

    Examples
    --------
    >>> from svmosaic import HierarchicalMixtureSVC
    >>> from svmosaic.datasets import make_xor
    >>> X, y = make_xor(random_state=0)
    >>> model = HierarchicalMixtureSVC(branching=(2, 2), random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    branching: Sequence[int] = positional((4, 5))

    @property
    def node_centers_(self):
        return self.mosaic_.gate.centers

    @property
    def parent_(self):
        return self.mosaic_.gate.parent

    @property
    def mixing_(self):
        return self.mosaic_.gate.prior

    def _check_parameters(self):
        super()._check_parameters()
        if not isinstance(self.branching, Sequence) or isinstance(self.branching, str) or not self.branching:
            raise ValueError(f"branching must be a sequence of one integer per level, got {self.branching!r}")
        for level, n_children in enumerate(self.branching):
            check_real(f"branching[{level}]", n_children, at_least=1, integer=True)

    def _starting(self, rows, rng):
        return partial(
            _start, branching=self.branching, tau=None if self.tau == "scale" else self.tau,
            inside=self.gate == "normalised", rows_per_center=self.rows_per_expert, max_iter=self.kmeans_iter,
        )  # fmt: skip


def _start(rows, rng, **options):
    """The tree of k-means cells within cells."""
    gate, tile = HierarchicalGate.from_rows(rows.X, rows.weight, rng=rng, **options)
    rows.assign(tile, gate.n_tiles)
    return gate
