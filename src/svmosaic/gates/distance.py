"""Gates by distance to centers: the nearest cell, and local codes over the nearest anchors."""

from dataclasses import dataclass

import numpy as np

from svmosaic.gates.protocol import PackedGate

CODINGS = ("nearest", "inverse", "softmax", "llc", "lle", "kernel")


@dataclass(frozen=True, eq=False)
class DistanceGate(PackedGate):
    r"""Tiles and weights of a row by its distances to centers.

    The `width` nearest centers are chosen (of equals, the first) and weighed by the coding:

    - "nearest": all the weight to the nearest (width 1);
    - "inverse": :math:`1 / \lVert x - c_j \rVert`;
    - "softmax": :math:`\exp(-\text{scale} \lVert x - c_j \rVert^2 + \text{log\_prior}_j)`;
    - "llc" (locality-constrained linear coding): the weights, summing to one, that minimize
      :math:`\lVert x - \sum_j w_j c_j \rVert^2 + \text{scale}\, D^2 \sum_j (\ell_j w_j)^2` with
      :math:`\ell_j = \exp((d_j - d_{\max}) / d_{\max})`, the distances :math:`d_j` and their mean square :math:`D^2`;
    - "lle" (reconstruction weights of locally linear embedding): the same with :math:`\ell_j = 1`;
    - "kernel": :math:`\exp(-\text{scale} \lVert x - c_j \rVert^2)`.

    Weights are normalized to sum to one, except for "kernel", then multiplied by `factor` if it is given.

    Attributes
    ----------
    centers : ndarray of shape (n_tiles, n_features)
    coding : str
    width : int
    scale : float
    log_prior, factor : ndarray of shape (n_tiles,) or None

    See Also
    --------
    Gate : The interface of a gate.
    """

    centers: np.ndarray
    coding: str = "nearest"
    width: int = 1
    scale: float = 1.0
    log_prior: np.ndarray | None = None
    factor: np.ndarray | None = None

    @property
    def n_tiles(self) -> int:
        return len(self.centers)

    @property
    def anchors(self) -> np.ndarray:
        """The centers."""
        return self.centers

    def code(self, X, n_jobs=None):
        """Tiles and weights of each row, of shape (n_samples, width); weights None for all ones."""
        tile, weight = super().code(X, n_jobs)
        return tile, None if self.coding == "nearest" and self.factor is None else weight

    def core_arguments(self):
        """The name of the gate's class in the core, and the arguments of its constructor."""
        centers = np.ascontiguousarray(self.centers, dtype=np.float64)
        return "DistanceGate", self.coding, centers, self.width, self.scale, self.log_prior, self.factor
