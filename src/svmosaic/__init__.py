"""Mosaics of linear SVMs: kernel-SVM accuracy at a small fraction of its cost."""

from svmosaic.models import ClusteredSVC, KMeansSVC, LinearSVC, MixtureSVC

__all__ = ["ClusteredSVC", "KMeansSVC", "LinearSVC", "MixtureSVC"]
__version__ = "0.1.0"
