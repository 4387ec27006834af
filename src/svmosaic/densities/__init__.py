"""The generative family: Gaussian mixture classifiers, the way from SVMs to mixtures and back, and their fusion."""

from typing import TYPE_CHECKING

from svmosaic._lazy import lazy

# ruff: noqa: F401
if TYPE_CHECKING:
    from svmosaic.densities.conversion import ConvertedMixture, ConvertedSVM, mixture_to_svm, svm_to_mixture
    from svmosaic.densities.fused import FusedSVC
    from svmosaic.densities.gaussian_mixture import GaussianMixtureClassifier

__all__, __getattr__, __dir__ = lazy(
    globals(),
    {
        "conversion": ["ConvertedMixture", "ConvertedSVM", "mixture_to_svm", "svm_to_mixture"],
        "fused": ["FusedSVC"],
        "gaussian_mixture": ["GaussianMixtureClassifier"],
    },
)
