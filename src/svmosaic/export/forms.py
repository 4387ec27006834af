"""Models that are no mosaics, as plain arrays: what their `_export_form` returns and exporters write."""

from dataclasses import dataclass

import numpy as np

from svmosaic.model.calibration import Temperature


@dataclass(frozen=True, eq=False)
class Gaussians:
    r"""Class densities: the scores are :math:`\log p(k) p(x|k)`, for two classes the second less the first.

    Attributes
    ----------
    covariance : {"full", "diag", "isotropic"}
    means : ndarray of shape (n_densities, n_features)
    factors : ndarray
        Square roots of the precisions, one after another.
    log_weight : ndarray of shape (n_densities,)
        Logarithms of the heights of the densities.
    owner : ndarray of int, shape (n_densities,)
        The class of each density.
    """

    covariance: str
    means: np.ndarray
    factors: np.ndarray
    log_weight: np.ndarray
    owner: np.ndarray

    @property
    def n_classes(self) -> int:
        return int(self.owner.max()) + 1

    @property
    def calibration(self):
        """Bayes' rule: a softmax of the logarithms, which a temperature is."""
        return Temperature(0.5 if self.n_classes == 2 else 1.0)

    def by_class(self) -> "tuple[Gaussians, np.ndarray]":
        """The same with the densities of a class next to each other, and where each class starts and ends."""
        order = np.argsort(self.owner, kind="stable")
        factors = self.factors.reshape(len(self.means), -1)[order].ravel()
        owner = self.owner[order]
        starts = np.searchsorted(owner, np.arange(self.n_classes + 1))
        return Gaussians(self.covariance, self.means[order], factors, self.log_weight[order], owner), starts


@dataclass(frozen=True, eq=False)
class Fusion:
    r"""weight (sum_i a_ci exp(-gamma_i |x - v_i|^2) + b_c) + (1 - weight) exp(log_ratio) p(c) p(x|c).

    Attributes
    ----------
    weight : float
    log_ratio : float
    centers, gamma, coef, intercept : ndarray
        The kernels: of shape (n_kernels, n_features), (n_kernels,), (n_outputs, n_kernels) and (n_outputs,).
    densities : Gaussians
        Their logarithms are the scores where the weight is 0.
    """

    weight: float
    log_ratio: float
    centers: np.ndarray
    gamma: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    densities: Gaussians

    calibration = None
