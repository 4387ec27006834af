"""A coupling: tile weights as a combination of blocks of an ordinary linear SVM."""

from dataclasses import dataclass, field

import numpy as np


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
