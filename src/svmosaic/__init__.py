"""Mosaics of linear SVMs: certified fits, microsecond predictions, exact explanations."""

from typing import TYPE_CHECKING

from svmosaic._lazy import lazy
from svmosaic._version import __version__ as __version__

if TYPE_CHECKING:
    from svmosaic.densities import FusedSVC, GaussianMixtureClassifier, mixture_to_svm, svm_to_mixture
    from svmosaic.models import (
        BoostedLinearSVC,
        ClusteredSVC,
        ClusteredSVR,
        HierarchicalMixtureSVC,
        KMeansSVC,
        KMeansSVR,
        LearnedGateSVC,
        LearnedGateSVR,
        LinearSVC,
        LinearSVR,
        LocalCodingSVC,
        LocallyLinearSVC,
        LocallyLinearSVR,
        MixtureSVC,
        MosaicClassifier,
        MosaicRegressor,
        MultiTaskMixtureSVC,
        NeighborsSVC,
        TreeSVC,
        TreeSVR,
    )

__all__ = [
    "BoostedLinearSVC",
    "ClusteredSVC",
    "ClusteredSVR",
    "FusedSVC",
    "GaussianMixtureClassifier",
    "HierarchicalMixtureSVC",
    "KMeansSVC",
    "KMeansSVR",
    "LearnedGateSVC",
    "LearnedGateSVR",
    "LinearSVC",
    "LinearSVR",
    "LocalCodingSVC",
    "LocallyLinearSVC",
    "LocallyLinearSVR",
    "MixtureSVC",
    "MosaicClassifier",
    "MosaicRegressor",
    "MultiTaskMixtureSVC",
    "NeighborsSVC",
    "TreeSVC",
    "TreeSVR",
    "load",
    "mixture_to_svm",
    "svm_to_mixture",
]

_DENSITIES = ("FusedSVC", "GaussianMixtureClassifier", "mixture_to_svm", "svm_to_mixture")
# A pickled predictor needs numpy and the core, not scikit-learn.
__getattr__, __dir__ = lazy(
    globals(),
    dict.fromkeys(__all__, "svmosaic.models")
    | dict.fromkeys(_DENSITIES, "svmosaic.densities")
    | {"load": "svmosaic.export.files"},
)
