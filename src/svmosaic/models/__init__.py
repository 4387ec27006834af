"""The estimators, one paper a file. A file is imported when one of its names is asked for."""

from typing import TYPE_CHECKING

from svmosaic._lazy import lazy

if TYPE_CHECKING:
    from svmosaic.models.auto import MosaicClassifier
    from svmosaic.models.boosted import BoostedLinearSVC
    from svmosaic.models.clustered import ClusteredSVC, KMeansSVC
    from svmosaic.models.conversion import ConvertedMixture, ConvertedSVM, mixture_to_svm, svm_to_mixture
    from svmosaic.models.fusion import FusedSVC
    from svmosaic.models.gaussian_mixture import GaussianMixtureClassifier
    from svmosaic.models.hierarchical import HierarchicalMixtureSVC
    from svmosaic.models.learned_gate import LearnedGateSVC
    from svmosaic.models.linear import LinearSVC
    from svmosaic.models.local_coding import LocallyLinearSVC
    from svmosaic.models.local_coordinates import LocalCodingSVC
    from svmosaic.models.mixture import MixtureSVC
    from svmosaic.models.multitask import MultiTaskMixtureSVC
    from svmosaic.models.neighbors import NeighborsSVC

__all__ = [
    "BoostedLinearSVC",
    "ClusteredSVC",
    "ConvertedMixture",
    "ConvertedSVM",
    "FusedSVC",
    "GaussianMixtureClassifier",
    "HierarchicalMixtureSVC",
    "KMeansSVC",
    "LearnedGateSVC",
    "LinearSVC",
    "LocalCodingSVC",
    "LocallyLinearSVC",
    "MixtureSVC",
    "MosaicClassifier",
    "MultiTaskMixtureSVC",
    "NeighborsSVC",
    "mixture_to_svm",
    "svm_to_mixture",
]

# Where each name is: a newcomer's estimator should not wait for all the others.
_PLACES = {
    "MosaicClassifier": "auto",
    "BoostedLinearSVC": "boosted",
    "ClusteredSVC": "clustered",
    "KMeansSVC": "clustered",
    "ConvertedMixture": "conversion",
    "ConvertedSVM": "conversion",
    "mixture_to_svm": "conversion",
    "svm_to_mixture": "conversion",
    "FusedSVC": "fusion",
    "GaussianMixtureClassifier": "gaussian_mixture",
    "HierarchicalMixtureSVC": "hierarchical",
    "LearnedGateSVC": "learned_gate",
    "LinearSVC": "linear",
    "LocallyLinearSVC": "local_coding",
    "LocalCodingSVC": "local_coordinates",
    "MixtureSVC": "mixture",
    "MultiTaskMixtureSVC": "multitask",
    "NeighborsSVC": "neighbors",
}

__getattr__, __dir__ = lazy(globals(), {name: f"svmosaic.models.{place}" for name, place in _PLACES.items()})
