"""Gates by distance to centres: the nearest cell, and local codes over the nearest anchors."""

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from joblib import effective_n_jobs

from svmosaic import _core
from svmosaic.rows import Rows

CODINGS = ("nearest", "inverse", "softmax", "llc", "lle")


@dataclass(frozen=True, eq=False)
class DistanceGate:
    r"""Tiles and weights of a row by its distances to centres.

    The `width` nearest centres are chosen (of equals, the first) and weighed by the coding:

    - "nearest": all the weight to the nearest (width 1);
    - "inverse": :math:`1 / \lVert x - c_j \rVert`;
    - "softmax": :math:`\exp(-\text{scale} \lVert x - c_j \rVert^2 + \text{log\_prior}_j)`;
    - "llc" (locality-constrained linear coding): the weights, summing to one, that minimise
      :math:`\lVert x - \sum_j w_j c_j \rVert^2 + \text{scale}\, D^2 \sum_j (\ell_j w_j)^2` with
      :math:`\ell_j = \exp((d_j - d_{\max}) / d_{\max})`, the distances :math:`d_j` and their mean square :math:`D^2`;
    - "lle" (reconstruction weights of locally linear embedding): the same with :math:`\ell_j = 1`.

    Weights are normalised to sum to one, then multiplied by `factor` where given.

    Attributes
    ----------
    centers : ndarray of shape (n_tiles, n_features)
    coding : str
    width : int
    scale : float
    log_prior, factor : ndarray of shape (n_tiles,) or None
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

    def code(self, X, n_jobs=None):
        """Tiles and weights of each row, of shape (n_samples, width); weights None for all ones."""
        n_rows = X.shape[0]
        tile = np.empty((n_rows, self.width), dtype=np.int32)
        weight = np.empty((n_rows, self.width))
        self.core(X.dtype).code(Rows(X).core, tile, weight, effective_n_jobs(n_jobs))
        return tile, None if self.coding == "nearest" and self.factor is None else weight

    def core(self, dtype):
        """The gate in the core, for rows of this precision."""
        return self._core32 if dtype == np.float32 else self._core64

    @cached_property
    def _core32(self):
        return _core.GateF32(*self.core_arguments())

    @cached_property
    def _core64(self):
        return _core.GateF64(*self.core_arguments())

    def core_arguments(self):
        """What the gate in the core is made of."""
        centers = np.ascontiguousarray(self.centers, dtype=np.float64)
        return self.coding, centers, self.width, self.scale, self.log_prior, self.factor

    def __getstate__(self):
        # What is packed in the core is rebuilt on demand.
        return {field.name: getattr(self, field.name) for field in fields(self)}
