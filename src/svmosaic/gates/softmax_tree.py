"""The gates of the mixtures of linear SVMs: softmaxes of distances to centroids, multiplied down a tree."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from svmosaic import _core
from svmosaic.gates.distance import DistanceGate
from svmosaic.gates.placement import place_centers
from svmosaic.gates.protocol import PackedGate
from svmosaic.rows import Rows


@dataclass(frozen=True, eq=False)
class SoftmaxTree(PackedGate):
    r"""A gate made of one softmax among each set of siblings of a tree.

    Node a, with centroid :math:`v_a`, scale :math:`\tau_a` and mixing coefficient :math:`\xi_a`, is chosen among its
    siblings b with probability

    .. math:: p(a \mid x) = \frac{\xi_a \exp(-\tau_a \lVert x - v_a \rVert^2)}
              {\sum_b \xi_b \exp(-\tau_b \lVert x - v_b \rVert^2)}

    (siblings share their scale), and the weight of a leaf, which is a tile, is the product of these along its path.
    With `inside=False` the coefficients :math:`\xi` stand outside the softmax, as the mixture paper prints it.

    Codes name all tiles. Weights below the rounding of the rows' precision, as a share of their sum, are zero.

    Attributes
    ----------
    centers : ndarray of shape (n_nodes, n_features)
    tau : ndarray of shape (n_nodes,)
    prior : ndarray of shape (n_nodes,)
        The coefficients xi; they sum to 1 among siblings.
    parent : ndarray of int32, shape (n_nodes,)
        -1 at the top. Parents come before their children, and siblings are neighbors.
    inside : bool
    """

    centers: np.ndarray
    tau: np.ndarray
    prior: np.ndarray
    parent: np.ndarray
    inside: bool = True

    @property
    def leaf(self):
        """The node of each tile."""
        return np.setdiff1d(np.arange(len(self.parent)), self.parent).astype(np.int32)

    @property
    def n_tiles(self) -> int:
        return len(self.leaf)

    @property
    def anchors(self) -> np.ndarray:
        """The centroids of the leaves."""
        return self.centers[self.leaf]

    def core_arguments(self):
        """The name of the gate's class in the core, and what it is made of: planes of rows less the origin."""
        origin = self.centers.mean(axis=0)
        moved = self.centers - origin
        plane = 2.0 * self.tau[:, None] * moved
        offset = -self.tau * np.einsum("af,af->a", moved, moved)
        return "SoftmaxGate", plane, offset, origin, self.log_prior, self.parent, self.leaf, bool(self.inside)

    @property
    def log_prior(self):
        """log xi of each node."""
        return np.log(np.maximum(self.prior, np.finfo(float).tiny))

    def log_weights(self, X, n_threads=1):
        """log g_j(x_i), of shape (n_samples, n_tiles)."""
        out = np.empty((X.shape[0], self.n_tiles))
        _core.gate_log_weights(Rows(X, bias=0.0).core, self.tree, out, n_threads)
        return out

    @property
    def tree(self):
        """The gate as the core reads it: the ``|x|^2`` of the distances cancels among siblings, which leaves planes."""
        # One origin for all centroids changes no softmax, and keeps the planes small where the data are far from zero.
        origin = self.centers.mean(axis=0)
        moved = self.centers - origin
        plane = np.zeros((len(self.centers), self.centers.shape[1] + 1))
        plane[:, :-1] = 2.0 * self.tau[:, None] * moved
        offset = -self.tau * np.einsum("af,af->a", moved, moved) - plane[:, :-1] @ origin
        return _core.SoftmaxTree(plane, offset, self.log_prior, self.parent, self.leaf, self.inside)

    def e_step_form(self, X):
        """What the E-step in the core reads: the gate itself, and no log weights."""
        return self.tree, None

    def cost(self, rows, shares, n_threads=1):
        r"""The gate's part of the M-step (eq. 13), and its gradient by the centroids (eq. 14).

        .. math:: f(v) = -\sum_i s_i \sum_j q_{ij} \log g_j(x_i) , \qquad
                  \nabla_{v_a} f = 2 \tau_a \sum_i s_i (Q_{ia} - Q_{i,\text{parent}}\, p(a \mid x_i)) (v_a - x_i)

        with :math:`Q_{ia}` the responsibility of the leaves below node a.
        """
        slope = np.empty((len(self.centers), self.centers.shape[1] + 1))
        value = _core.gate_slope(
            rows.core, self.tree, shares.offsets, shares.expert, shares.q, shares.weight, slope, n_threads
        )
        return value, 2.0 * self.tau[:, None] * (slope[:, :-1] - slope[:, -1:] * self.centers)

    def updated(self, rows, X, shares, *, nu=0.0, max_iter=10, n_threads=1):
        """Return the gate after its M-step, and which tiles remain.

        Mixing coefficients by eq. 20, which removes nodes that answer for no more than `nu` (their last sibling
        stays), then `max_iter` steps of L-BFGS on the centroids, from where they are. The new coefficients are kept
        only where the gate's part of the objective improves with them: eq. 20 maximizes it for the printed form, not
        with the coefficients inside the softmax.
        """
        mass = self._mass_of_nodes(shares.mass)
        live = _survivors(mass, self.parent, nu)
        kept = live[self.leaf]
        shares = shares.restricted(kept)
        above, place = self.parent[live], np.cumsum(live, dtype=np.int32) - 1
        parent = np.where(above < 0, -1, place[above]).astype(np.int32)
        before = replace(
            self, centers=self.centers[live], tau=self.tau[live], parent=parent,
            prior=among_siblings(self.prior[live], parent),
        )  # fmt: skip
        excess = np.maximum(mass[live] - nu, np.finfo(float).tiny)
        after, value = replace(before, prior=among_siblings(excess, parent))._moved(rows, shares, max_iter, n_threads)
        if value > before.cost(rows, shares, n_threads)[0]:
            after, _ = before._moved(rows, shares, max_iter, n_threads)
        return after, kept

    def _moved(self, rows, shares, max_iter, n_threads):
        """Centroids after a few steps of L-BFGS, and the cost there."""
        if max_iter == 0:
            return self, self.cost(rows, shares, n_threads)[0]
        total = shares.weight.sum()
        mass = self._mass_of_nodes(shares.mass)
        # In units in which the cost's curvature is about 1, so that the first step has a sensible length.
        unit = 1.0 / np.sqrt(2.0 * self.tau * np.maximum(mass / total, 1e-3))[:, None]

        def scaled_cost(z):
            gate = replace(self, centers=self.centers + unit * z.reshape(self.centers.shape))
            value, gradient = gate.cost(rows, shares, n_threads)
            return value / total, (unit * gradient).ravel() / total

        found = minimize(
            scaled_cost, np.zeros(self.centers.size), jac=True, method="L-BFGS-B",
            options={"maxiter": max_iter, "maxfun": 2 * max_iter + 2},
        )  # fmt: skip
        return replace(self, centers=self.centers + unit * found.x.reshape(self.centers.shape)), found.fun * total

    def _mass_of_nodes(self, mass_of_leaves):
        mass = np.zeros(len(self.parent))
        mass[self.leaf] = mass_of_leaves
        for a in range(len(mass) - 1, -1, -1):
            if self.parent[a] >= 0:
                mass[self.parent[a]] += mass[a]
        return mass


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


def _survivors(mass, parent, nu):
    """Mask of the nodes that answer for more than nu; the heaviest of all siblings always does."""
    live = mass > nu
    for top in np.unique(parent):
        siblings = np.flatnonzero(parent == top)
        if not live[siblings].any():
            live[siblings[mass[siblings].argmax()]] = True
    for a in range(len(parent)):  # from the top down: what hangs on a removed node goes with it
        if parent[a] >= 0 and not live[parent[a]]:
            live[a] = False
    return live


def among_siblings(value, parent):
    """Values divided by their sum over siblings."""
    total = np.bincount(parent + 1, value)
    return value / total[parent + 1]


def scale_of(X, centers, weight):
    """The default scale tau = 2 / D, with D the mean squared distance of the rows to their nearest center."""
    nearest = DistanceGate(centers).code(X)[0][:, 0]
    mean = within_variance(X, centers[nearest] if len(centers) > 1 else centers, weight)
    return 2.0 / mean if mean > 0 else 1.0


def within_variance(X, centers, weight) -> float:
    """Weighted mean of |x_i - centers_i|^2 (one center a row, or one for all), without a copy of all rows."""
    total = 0.0
    for first in range(0, X.shape[0], 4096):
        batch = slice(first, first + 4096)
        rows = X[batch].toarray() if hasattr(X, "toarray") else X[batch]
        offset = rows.astype(np.float64) - (centers if len(centers) == 1 else centers[batch])
        total += np.dot(weight[batch], np.einsum("if,if->i", offset, offset))
    return total / weight.sum()
