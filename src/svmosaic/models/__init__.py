"""The estimators, one paper a file."""

from svmosaic.models.clustered import ClusteredSVC, KMeansSVC
from svmosaic.models.linear import LinearSVC
from svmosaic.models.local_coding import LocallyLinearSVC

__all__ = ["ClusteredSVC", "KMeansSVC", "LinearSVC", "LocallyLinearSVC"]
