"""Mosaics of linear SVMs: kernel-SVM accuracy at a small fraction of its cost."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from svmosaic.models import (
        BoostedLinearSVC,
        ClusteredSVC,
        FusedSVC,
        GaussianMixtureClassifier,
        HierarchicalMixtureSVC,
        KMeansSVC,
        LearnedGateSVC,
        LinearSVC,
        LocalCodingSVC,
        LocallyLinearSVC,
        MixtureSVC,
        MosaicClassifier,
        MultiTaskMixtureSVC,
        NeighborsSVC,
        mixture_to_svm,
        svm_to_mixture,
    )

__all__ = [
    "BoostedLinearSVC",
    "ClusteredSVC",
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
    "load",
    "mixture_to_svm",
    "svm_to_mixture",
]
__version__ = "0.1.0"


def __getattr__(name):
    # Imported when first asked for: a pickled predictor needs numpy and the core, not scikit-learn.
    if name not in __all__:
        raise AttributeError(f"module 'svmosaic' has no attribute {name!r}")
    value = getattr(import_module("svmosaic.export.files" if name == "load" else "svmosaic.models"), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})
