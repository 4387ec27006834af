"""The one fitted form: a gate and a bank of linear tiles."""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from svmosaic import _core
from svmosaic.solvers import Rows

LINKS = ("identity", "vote")


@dataclass(frozen=True)
class Mosaic:
    r"""A fitted mosaic of linear classifiers.

    .. math:: f_c(x) = \sum_k g_k(x) \, \text{link}(\langle w_{kc}, x \rangle + b_{kc})

    Attributes
    ----------
    gate : object with `code(X)`
        Says to which tiles a row belongs: tiles and weights, each of shape (n_samples, width).
    coef : ndarray of shape (n_tiles, n_outputs, n_features)
    intercept : ndarray of shape (n_tiles, n_outputs)
    link : {"identity", "vote"}
        Margins add up, or vote by exp(-hinge(s)) - exp(-hinge(-s)).
    """

    gate: Any
    coef: np.ndarray
    intercept: np.ndarray
    link: str = "identity"

    @cached_property
    def _tiles(self):
        return np.ascontiguousarray(np.concatenate([self.coef, self.intercept[:, :, None]], axis=2), dtype=np.float64)

    def __getstate__(self):
        # Without the joined array, which can be made again: a saved model holds each weight once.
        return {field.name: getattr(self, field.name) for field in fields(self)}

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
        tile, weight = self.gate.code(X)
        out = np.empty((X.shape[0], self.coef.shape[1]))
        _core.score(Rows(X).core, tile, weight, self._tiles, self.link == "vote", out, effective_n_jobs(n_jobs))
        return out
