"""The one fitted form: a gate and a bank of linear tiles."""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from svmosaic import _core
from svmosaic.solvers import Rows

LINKS = ("identity", "vote")


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
    """

    gate: Any
    coef: np.ndarray
    intercept: np.ndarray
    link: str = "identity"

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
        rows, n_threads = Rows(X), effective_n_jobs(n_jobs)
        out = np.empty((rows.n_rows, self.coef.shape[1]))
        tiles = self._tiles32 if rows.dtype == np.float32 else self._tiles64
        if hasattr(self.gate, "core"):
            tiles.score(self.gate.core(rows.dtype), rows.core, out, n_threads)
        else:
            tile, weight = self.gate.code(X, n_jobs)
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
