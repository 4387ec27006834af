"""The one fitted form: a gate and a bank of linear tiles."""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse

from svmosaic import _core
from svmosaic.rows import Rows

LINKS = ("identity", "vote")


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """A fitted transformer in front of the tiles, and whether the gate looks through it too.

    Attributes
    ----------
    transformer : fitted transformer
    code_space : {"input", "features"}
    """

    transformer: Any
    code_space: str

    def rows(self, X):
        """Rows for the gate and rows for the tiles."""
        features = self.transformer.transform(X)
        features = features.tocsr() if sparse.issparse(features) else np.ascontiguousarray(features)
        if features.dtype not in (np.float32, np.float64):
            features = features.astype(np.float64)
        return (X if self.code_space == "input" else features), features


@dataclass(frozen=True, eq=False)
class Mosaic:
    r"""A fitted mosaic of linear classifiers.

    .. math:: f_c(x) = \sum_k g_k(x) \, \text{link}(\langle w_{kc}, x \rangle + b_{kc})

    Attributes
    ----------
    gate : object with `n_tiles` and `code(X, n_jobs)`
        Says to which tiles a row belongs: tiles and weights, each of shape (n_samples, width). A gate with
        `core(dtype)` is evaluated inside the scoring loop of the core.
    coef : ndarray of shape (n_tiles, n_outputs, n_features)
    intercept : ndarray of shape (n_tiles, n_outputs)
    link : {"identity", "vote"}
        Margins add up, or vote by exp(-hinge(s)) - exp(-hinge(-s)).
    feature_map : FeatureMap or None
        What the tiles (and, if it says so, the gate) see instead of x.
    """

    gate: Any
    coef: np.ndarray
    intercept: np.ndarray
    link: str = "identity"
    feature_map: FeatureMap | None = None

    @property
    def n_tiles(self) -> int:
        return self.coef.shape[0]

    @property
    def n_bytes(self) -> int:
        """Size of the parameters."""
        gate = sum(value.nbytes for value in vars(self.gate).values() if isinstance(value, np.ndarray))
        return self.coef.nbytes + self.intercept.nbytes + gate

    def decision_function(self, X, n_jobs=None):
        """Scores of shape (n_samples, n_outputs); X is a validated array or CSR matrix."""
        n_threads = effective_n_jobs(n_jobs)
        gate_rows, tile_rows = (X, X) if self.feature_map is None else self.feature_map.rows(X)
        rows = Rows(tile_rows)
        out = np.empty((rows.n_rows, self.coef.shape[1]))
        tiles = self._tiles32 if rows.dtype == np.float32 else self._tiles64
        if hasattr(self.gate, "core") and gate_rows is tile_rows:
            tiles.score(self.gate.core(rows.dtype), rows.core, out, n_threads)
        else:
            tile, weight = self.gate.code(gate_rows, n_jobs)
            tiles.score_codes(rows.core, tile, weight, out, n_threads)
        return out

    @cached_property
    def _tiles32(self):
        return _core.TilesF32(*self._arguments())

    @cached_property
    def _tiles64(self):
        return _core.TilesF64(*self._arguments())

    def _arguments(self):
        coef = np.ascontiguousarray(self.coef, dtype=np.float64)
        return coef, np.ascontiguousarray(self.intercept, dtype=np.float64), self.link == "vote"

    def __getstate__(self):
        # What is packed in the core is rebuilt on demand.
        return {field.name: getattr(self, field.name) for field in fields(self)}
