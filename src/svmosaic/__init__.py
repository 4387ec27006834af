"""Mosaics of linear SVMs: kernel-SVM accuracy at a small fraction of its cost."""

from svmosaic.models import ClusteredSVC, KMeansSVC, LinearSVC, LocallyLinearSVC

__all__ = ["ClusteredSVC", "KMeansSVC", "LinearSVC", "LocallyLinearSVC"]
__version__ = "0.1.0"
