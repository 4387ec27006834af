"""How tiles share strength: tile weights as a combination of blocks of an ordinary linear SVM.

Tiles are independent, pulled toward a global vector, or form groups of similar weights (clustered multi-task learning:
Zhou, Chen and Ye, NIPS 2011).
"""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy.optimize import brentq

Groups = Literal["relaxed", "hard"]


@dataclass(frozen=True)
class Coupling:
    r"""Tiles composed of a block of their own and of shared blocks.

    With blocks :math:`V_0, \dots, V_{K-1}` (own) and :math:`V_K, \dots, V_{K+S-1}` (shared), tile k is

    .. math:: W_k = \text{own} \cdot V_k + \sum_s \text{shared}_{ks} V_{K+s} ,

    so that :math:`\tfrac12\lVert V\rVert^2` penalizes the tiles by :math:`\tfrac12 \mathrm{tr}(W^T G^{-1} W)`
    with :math:`G = \text{own}^2 I + \text{shared}\,\text{shared}^T`: diagonal plus low rank.

    Attributes
    ----------
    own : float
        Weight of a tile's own block, positive.
    shared : ndarray of shape (n_tiles, n_shared)
        Weights of the shared blocks. No columns: independent tiles.
    n_tiles, n_shared, n_blocks : int
        Tiles, shared blocks, and blocks of either kind.

    See Also
    --------
    ClusteredTasks : Tiles that form groups.
    """

    own: float
    shared: np.ndarray
    n_tiles: int = field(init=False, repr=False)
    n_shared: int = field(init=False, repr=False)
    n_blocks: int = field(init=False, repr=False)

    def __post_init__(self):
        n_tiles, n_shared = self.shared.shape
        vars(self).update(n_tiles=n_tiles, n_shared=n_shared, n_blocks=n_tiles + n_shared)

    @classmethod
    def independent(cls, n_tiles: int) -> "Coupling":
        """Return the coupling of independent tiles (G = I)."""
        return cls(1.0, np.zeros((n_tiles, 0)))

    @classmethod
    def to_global(cls, n_tiles: int, global_reg: float) -> "Coupling":
        """Return the coupling that pulls tiles toward one global vector (CSVM, G = I + 11^T / global_reg)."""
        return cls(1.0, np.full((n_tiles, 1), 1.0 / np.sqrt(global_reg)))

    def blocks(self, tile, weight):
        """Turn codes over tiles into codes over blocks.

        Parameters
        ----------
        tile : ndarray of int32, shape (n_rows, width)
        weight : ndarray of float64, shape (n_rows, width), or None for all ones

        Returns
        -------
        block : ndarray of int32, shape (n_rows, width + n_shared)
        coef : ndarray of float64 of the same shape, or None for all ones
        """
        if self.n_shared == 0:
            if self.own == 1.0:
                return tile, weight
            return tile, np.full(tile.shape, self.own) if weight is None else self.own * weight
        n_rows, width = tile.shape
        block = np.empty((n_rows, width + self.n_shared), dtype=np.int32)
        block[:, :width] = tile
        block[:, width:] = self.n_tiles + np.arange(self.n_shared)
        coef = np.empty(block.shape)
        coef[:, :width] = self.own if weight is None else self.own * weight
        coef[:, width:] = 0.0
        for column in range(width):
            share = self.shared[tile[:, column]]
            coef[:, width:] += share if weight is None else weight[:, column, None] * share
        return block, coef

    def tiles(self, blocks):
        """Tile weights of shape (n_tiles, n_features + 1) from block weights."""
        own, shared = blocks[: self.n_tiles], blocks[self.n_tiles :]
        return self.own * own + self.shared @ shared

    def split(self, blocks, n_sighted=None):
        """Tile weights without the bias, which comes last in blocks, and the bias of each tile.

        Parameters
        ----------
        blocks : ndarray of shape (n_blocks, n_features + 1)
        n_sighted : int, optional
            Only the first so many blocks have weights other than the bias; None: all of them.

        Returns
        -------
        weights : ndarray of shape (n_sloped, n_features)
            Of the tiles that may have any.
        bias : ndarray of shape (n_tiles,)
        sloped : ndarray of int32, shape (n_sloped,), or None
            Those tiles; None: all of them.
        """
        if n_sighted is None or n_sighted >= self.n_tiles or self.n_shared:
            tiles = self.tiles(blocks)
            return tiles[:, :-1], tiles[:, -1], None
        return self.own * blocks[:n_sighted, :-1], self.own * blocks[:, -1], np.arange(n_sighted, dtype=np.int32)


@dataclass(frozen=True)
class ClusteredTasks:
    r"""Finds the coupling under which tiles (tasks) form groups, given their weights W, one line per tile.

    The penalty is

    .. math:: \alpha \sum_g \sum_{j \in g} \lVert w_j - \bar w_g \rVert^2 + \beta \lVert W \rVert^2

    for "hard" groups, and for "relaxed" ones its convex relaxation

    .. math:: \alpha \eta (1 + \eta) \, \mathrm{tr}\, W^T (\eta I + M)^{-1} W , \qquad
              \eta = \beta / \alpha, \quad \mathrm{tr}\, M = r, \quad 0 \preceq M \preceq I ,

    which is the same if M is the projection on the groups' indicators. Either is a `Coupling`, of penalty
    :math:`\tfrac12 \mathrm{tr}\, W^T G^{-1} W` with :math:`G = (\eta I + M) / (2 \alpha \eta (1 + \eta))`.

    Attributes
    ----------
    groups : {"relaxed", "hard"} or None
        None: no groups, the penalty is :math:`\beta \lVert W \rVert^2` and the tiles are independent.
    n_groups : int
        The number of groups r.
    alpha : float
        Weight of the variance within groups.
    beta : float
        Weight of the squared norm; beta = 1 / (2C) for the C of a linear SVM.

    See Also
    --------
    Coupling : How tiles share blocks of weights.
    """

    groups: str | None = "relaxed"
    n_groups: int = 5
    alpha: float = 0.1
    beta: float = 0.05

    def start(self, n_tiles: int) -> Coupling:
        """Return the initial coupling: independent tiles (M = r/K I, the middle of its set)."""
        if self.groups is None:
            return Coupling(np.sqrt(0.5 / self.beta), np.zeros((n_tiles, 0)))
        share = min(self.n_groups, n_tiles) / n_tiles
        return Coupling(np.sqrt((self._eta + share) * self._unit), np.zeros((n_tiles, 0)))

    def fit(self, tiles, previous: Coupling | None = None) -> Coupling:
        """The best coupling for the weights (relaxed: exact; hard: k-means, no worse than the previous groups)."""
        if self.groups is None:
            return self.start(len(tiles))
        if self.groups == "relaxed":
            return self._of_spectrum(*relaxed_spectrum(tiles, self.n_groups, self._eta))
        found = self.of_labels(grouped(tiles, self.n_groups))
        if previous is not None and previous.n_tiles == len(tiles) and previous.n_shared > 0:
            return min(previous, found, key=lambda coupling: penalty(coupling, tiles))
        return found

    def of_labels(self, labels) -> Coupling:
        """Return the coupling of given groups: M is the projection on their indicators."""
        _, labels = np.unique(labels, return_inverse=True)
        indicator = np.eye(labels.max() + 1)[labels]
        return self._of_spectrum(np.ones(indicator.shape[1]), indicator / np.sqrt(indicator.sum(axis=0)))

    def matrix(self, coupling: Coupling):
        """The matrix M of a coupling created here; the identity if there are no groups."""
        if self.groups is None:
            return np.eye(coupling.n_tiles)
        return gram(coupling) / self._unit - self._eta * np.eye(coupling.n_tiles)

    def labels(self, coupling: Coupling):
        """The group of each tile: given for hard groups, by k-means on the eigenvectors of M for relaxed ones."""
        n_tiles = coupling.n_tiles
        if self.groups is None:
            return np.arange(n_tiles)
        if coupling.n_shared == 0:
            return np.zeros(n_tiles, dtype=int)
        if self.groups == "hard":
            return coupling.shared.argmax(axis=1)
        values, vectors = np.linalg.eigh(self.matrix(coupling))
        n_groups = min(self.n_groups, n_tiles)
        return grouped(vectors[:, -n_groups:] * np.maximum(values[-n_groups:], 0.0), n_groups)

    @property
    def _eta(self) -> float:
        return self.beta / self.alpha

    @property
    def _unit(self) -> float:
        return 0.5 / (self.alpha * self._eta * (1.0 + self._eta))

    def _of_spectrum(self, values, vectors) -> Coupling:
        used = values > 1e-9
        shared = vectors[:, used] * np.sqrt(self._unit * values[used])
        return Coupling(np.sqrt(self._unit * self._eta), np.ascontiguousarray(shared))


def relaxed_spectrum(tiles, trace, eta):
    r"""Eigenvalues and eigenvectors of the M that minimizes :math:`\mathrm{tr}\, W^T (\eta I + M)^{-1} W`.

    M shares its eigenvectors with :math:`W W^T`; with singular values :math:`\sigma_i` of W, its eigenvalues are
    :math:`\mathrm{clip}(\sigma_i / s - \eta, 0, 1)`, with s such that they sum to the trace.
    """
    n_tiles = len(tiles)
    squares, vectors = np.linalg.eigh(tiles @ tiles.T)
    sigma = np.sqrt(np.maximum(squares, 0.0))
    if trace >= n_tiles:
        return np.ones(n_tiles), vectors
    positive = sigma > 1e-10 * max(sigma.max(), 1e-300)
    if positive.sum() <= trace:
        # More groups than dimensions: M = I on the span of W, and the rest of the trace where it costs nothing.
        values = np.full(n_tiles, (trace - positive.sum()) / max(1, n_tiles - positive.sum()))
        values[positive] = 1.0
        return values, vectors

    def excess(log_s):
        return np.clip(sigma / np.exp(log_s) - eta, 0.0, 1.0).sum() - trace

    low = np.log(sigma[positive].min() / (1.0 + eta)) - 1.0
    high = np.log(sigma.max() / eta) + 1.0
    s = np.exp(brentq(excess, low, high, xtol=1e-14, rtol=1e-14))
    return np.clip(sigma / s - eta, 0.0, 1.0), vectors


def grouped(points, n_groups):
    """Labels of k-means on a few points, started from Ward's tree: the same groups whatever the seed."""
    if len(points) <= n_groups:
        return np.arange(len(points))
    from scipy.cluster.hierarchy import fcluster, linkage  # here, since it takes a while to import

    labels = fcluster(linkage(points, "ward"), n_groups, "maxclust") - 1
    for _ in range(20):
        means = np.array([points[labels == g].mean(axis=0) for g in np.unique(labels)])
        nearest = np.square(points[:, None, :] - means[None, :, :]).sum(axis=2).argmin(axis=1)
        if len(np.unique(nearest)) < len(means) or (nearest == labels).all():
            break
        labels = nearest
    return labels


def gram(coupling: Coupling):
    """G = own^2 I + shared shared^T of a coupling."""
    return coupling.own**2 * np.eye(coupling.n_tiles) + coupling.shared @ coupling.shared.T


def penalty(coupling: Coupling, tiles) -> float:
    """1/2 tr W^T G^-1 W: what the weights of the tiles cost under a coupling."""
    if coupling.n_shared == 0:
        return 0.5 * float(np.vdot(tiles, tiles)) / coupling.own**2
    return 0.5 * float(np.vdot(tiles, np.linalg.solve(gram(coupling), tiles)))
