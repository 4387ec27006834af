"""The estimators, one paper a file."""

from svmosaic.models.clustered import ClusteredSVC, KMeansSVC
from svmosaic.models.linear import LinearSVC
from svmosaic.models.mixture import MixtureSVC

__all__ = ["ClusteredSVC", "KMeansSVC", "LinearSVC", "MixtureSVC"]
