"""The generative family: Gaussian mixture classifiers, the way from SVMs to mixtures and back, and their fusion."""

from typing import TYPE_CHECKING

from svmosaic._lazy import lazy

if TYPE_CHECKING:
    from svmosaic.densities.conversion import ConvertedMixture, ConvertedSVM, mixture_to_svm, svm_to_mixture
    from svmosaic.densities.fused import FusedSVC
    from svmosaic.densities.gaussian_mixture import GaussianMixtureClassifier

__all__ = [
    "ConvertedMixture",
    "ConvertedSVM",
    "FusedSVC",
    "GaussianMixtureClassifier",
    "mixture_to_svm",
    "svm_to_mixture",
]

_PLACES = {
    "ConvertedMixture": "conversion",
    "ConvertedSVM": "conversion",
    "FusedSVC": "fused",
    "GaussianMixtureClassifier": "gaussian_mixture",
    "mixture_to_svm": "conversion",
    "svm_to_mixture": "conversion",
}

__getattr__, __dir__ = lazy(globals(), {name: f"svmosaic.densities.{place}" for name, place in _PLACES.items()})
