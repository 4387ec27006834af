"""The two parts of the fusion on one scale, and the report of a reduction."""

from dataclasses import dataclass

import numpy as np

from svmosaic.densities.conversion import ConvertedMixture
from svmosaic.densities.gaussian_mixture import GaussianMixtureClassifier
from svmosaic.densities.kernel_predictor import kernel_predictor, scaled_densities
from svmosaic.model.heads import flattened


@dataclass(frozen=True)
class Blend:
    """weight * svm + (1 - weight) * exp(log_ratio) * mixture, in units of the SVM's decision values."""

    svm: ConvertedMixture
    mixture: GaussianMixtureClassifier
    log_ratio: float

    @classmethod
    def fit(cls, svm, mixture, X, sample_weight, scale):
        """Bring the two parts to a common scale on the rows X."""
        if scale == "raw":
            # Both as normalized mixtures, as printed: exp(log_scale_) turns densities into decision values.
            return cls(svm, mixture, svm.log_scale_)
        values = svm.decision_function(X)
        if values.ndim == 1:
            lead = np.abs(values)
        else:
            best = np.partition(values, -2, axis=1)[:, -2:]
            lead = best[:, 1] - best[:, 0]
        best = np.partition(mixture.predict_joint_log_proba(X), -2, axis=1)[:, -2:]
        with np.errstate(divide="ignore"):
            log_lead = best[:, 1] + np.log(-np.expm1(best[:, 0] - best[:, 1]))
        middle, log_middle = (
            np.quantile(v, 0.5, weights=sample_weight, method="inverted_cdf") for v in (lead, log_lead)
        )
        ratio = np.log(middle) - log_middle if middle > 0 else 0.0
        return cls(svm, mixture, float(ratio) if np.isfinite(ratio) else 0.0)

    def decision_function(self, X, weight, n_jobs=None):
        """The parts' own values at weight 0 and 1, else their blend."""
        if weight == 0:
            return self.mixture.decision_function(X)
        if weight == 1:
            return self.svm.decision_function(X, n_jobs)
        return weight * self.svm.decision_function(X, n_jobs) + (1 - weight) * self.scaled_densities(X)

    def scaled_densities(self, X):
        """exp(log_ratio) p(k) p(x|k), for two classes their difference; through logarithms, so nothing underflows."""
        return flattened(scaled_densities(self.mixture.predict_joint_log_proba(X), self.log_ratio))

    def predictor(self, weight, calibration=None):
        """A `Predictor` of the parts that the weight leaves."""
        machine = None if weight == 0 else self.svm.packed()
        densities = None if weight == 1 else self.mixture._densities.packed()
        return kernel_predictor(
            self.mixture.classes_, self.svm.centers.shape[1], machine, densities, weight=weight,
            log_ratio=self.log_ratio, calibration=calibration,
        )  # fmt: skip


@dataclass(frozen=True)
class Reduction:
    """What `max_densities` saves and costs, for the SVM part alone.

    Attributes
    ----------
    n_support : int
        Support vectors of the full SVM.
    n_densities : int
        Densities left.
    accuracy_full, accuracy_reduced : float
        Cross-validated accuracies of the full and of the reduced SVM.
    agreement : float
        Share of the rows on which the two agree, cross-validated.
    """

    n_support: int
    n_densities: int
    accuracy_full: float
    accuracy_reduced: float
    agreement: float
