"""Mosaics of linear SVMs: kernel-SVM accuracy at a small fraction of its cost."""

from svmosaic.models import ClusteredSVC, KMeansSVC, LinearSVC, LocalCodingSVC, LocallyLinearSVC, NeighborsSVC

__all__ = ["ClusteredSVC", "KMeansSVC", "LinearSVC", "LocalCodingSVC", "LocallyLinearSVC", "NeighborsSVC"]
__version__ = "0.1.0"
