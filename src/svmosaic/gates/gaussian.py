"""The Gaussian gate: the posterior of a mixture of Gaussians."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import sparse

from svmosaic import _core
from svmosaic.gates.protocol import PackedGate
from svmosaic.rows import Rows

Covariance = Literal["full", "diag", "isotropic"]


@dataclass(frozen=True, eq=False)
class GaussianGate(PackedGate):
    r"""Rows belong to Gaussians by their posterior, :math:`g_j(x) = \pi_j N(x; \mu_j, \Sigma_j) / p(x)`.

    Codes name all tiles. Weights below the rounding of the rows' precision, as a share of their sum, are zero.

    Attributes
    ----------
    means : ndarray of shape (n_tiles, n_features)
    factors : ndarray
        Square roots of the precisions: :math:`\Sigma_j^{-1} = F_j F_j^T` of shape (n_tiles, n_features, n_features),
        or the inverse standard deviations, (n_tiles, n_features) for "diag", (n_tiles, 1) for "isotropic".
    prior : ndarray of shape (n_tiles,)
        The mixing coefficients pi.
    floor : float
        No eigenvalue of a covariance is below this variance.
    covariance : {"full", "diag", "isotropic"}

    See Also
    --------
    Gate : The interface of a gate.
    """

    means: np.ndarray
    factors: np.ndarray
    prior: np.ndarray
    floor: float
    covariance: str = "full"

    @classmethod
    def from_shares(cls, rows, shares, *, floor, covariance) -> "GaussianGate":
        r"""The weighted M-step: maximizes :math:`\sum_{ij} s_i q_{ij} \log \pi_j N(x_i; \mu_j, \Sigma_j)`.

        Among covariances with no eigenvalue below the floor the maximizer is the weighted covariance with its
        eigenvalues lifted to the floor, so the step is exact and EM's objective rises.
        """
        sums, mass = moments(rows, shares), shares.mass
        sums = sums / np.maximum(mass, np.finfo(float).tiny)[:, None, None]
        means, second = sums[:, :-1, -1], sums[:, :-1, :-1]
        if covariance == "full":
            covariances = second - means[:, :, None] * means[:, None, :]
            values, vectors = np.linalg.eigh(covariances)
            factors = vectors / np.sqrt(np.maximum(values, floor))[:, None, :]
        else:
            variances = np.einsum("jff->jf", second) - means**2
            if covariance == "isotropic":
                variances = variances.mean(axis=1, keepdims=True)
            factors = 1.0 / np.sqrt(np.maximum(variances, floor))
        return cls(means, factors, mass / mass.sum(), floor, covariance)

    @property
    def n_tiles(self) -> int:
        return len(self.means)

    @property
    def anchors(self) -> np.ndarray:
        """The means."""
        return self.means

    @property
    def covariances(self):
        """Sigma of each tile: matrices, variances, or one variance."""
        if self.covariance == "full":
            root = np.linalg.inv(self.factors)
            return np.swapaxes(root, 1, 2) @ root
        return 1.0 / self.factors**2

    def log_joint(self, X):
        r""":math:`\log \pi_j N(x_i; \mu_j, \Sigma_j)`, of shape (n_samples, n_tiles)."""
        if sparse.issparse(X):
            raise ValueError("the Gaussian gate needs dense rows; use X.toarray(), or MixtureSVC for sparse rows")
        out = np.empty((X.shape[0], self.n_tiles))
        self.core(X.dtype).log_joint(Rows(X).core, out)
        return out - 0.5 * self.means.shape[1] * np.log(2.0 * np.pi)

    def core_arguments(self):
        """The name of the gate's class in the core, and the arguments of its constructor."""
        factors = np.ascontiguousarray(self.factors, dtype=np.float64).ravel()
        return "GaussianGate", self.covariance, np.ascontiguousarray(self.means), factors, self.log_weight

    @property
    def log_weight(self):
        """log prior plus log determinant of the factor, of each tile."""
        if self.covariance == "full":
            log_det = np.linalg.slogdet(self.factors)[1]
        else:
            log_det = np.broadcast_to(np.log(self.factors), self.means.shape).sum(axis=1)
        with np.errstate(divide="ignore"):  # a prior of zero: weight zero
            return log_det + np.log(self.prior)

    def e_step_form(self, X):
        """What the E-step in the core reads: no softmax tree, but log joint densities."""
        return None, self.log_joint(X)

    def updated(self, rows, X, shares, **_):
        """Return the gate after its M-step, and which tiles remain: those whose responsibilities exceed rounding."""
        kept = shares.mass > 1e-10 * shares.mass.sum()
        shares = shares.restricted(kept)
        return type(self).from_shares(rows, shares, floor=self.floor, covariance=self.covariance), kept


def moments(rows, shares):
    """Sums of q (x, 1)(x, 1)^T of each tile, by the core's pass for Hessians."""
    n_tiles, size = shares.n_experts, rows.n_features + 1
    if rows.bias != 1.0:
        raise ValueError(f"moments need rows with a bias of 1, got {rows.bias}")
    design = _core.Design(rows.core, np.ascontiguousarray(shares.expert[:, None]), None, shares.row, n_tiles)
    order = np.argsort(shares.expert, kind="stable").astype(np.int32)
    offsets = np.searchsorted(shares.expert[order], np.arange(n_tiles + 1)).astype(np.int64)
    sums = np.empty((n_tiles, size, size))
    _core.tile_hessians(rows.core, design, order, offsets, shares.cost, sums)
    return sums
