"""Mosaics of linear SVMs: kernel-SVM accuracy at a small fraction of its cost."""

from svmosaic.models import (
    ClusteredSVC,
    FusedSVC,
    GaussianMixtureClassifier,
    KMeansSVC,
    LinearSVC,
    mixture_to_svm,
    svm_to_mixture,
)

__all__ = [
    "ClusteredSVC",
    "FusedSVC",
    "GaussianMixtureClassifier",
    "KMeansSVC",
    "LinearSVC",
    "mixture_to_svm",
    "svm_to_mixture",
]
__version__ = "0.1.0"
