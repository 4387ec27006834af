"""Mosaics of linear SVMs: kernel-SVM accuracy at a small fraction of its cost."""

from svmosaic.models import (
    ClusteredSVC,
    HierarchicalMixtureSVC,
    KMeansSVC,
    LinearSVC,
    MixtureSVC,
    MultiTaskMixtureSVC,
)

__all__ = [
    "ClusteredSVC",
    "HierarchicalMixtureSVC",
    "KMeansSVC",
    "LinearSVC",
    "MixtureSVC",
    "MultiTaskMixtureSVC",
]
__version__ = "0.1.0"
