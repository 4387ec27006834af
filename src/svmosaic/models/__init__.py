"""The estimators, one paper a file."""

from svmosaic.models.clustered import ClusteredSVC, KMeansSVC
from svmosaic.models.hierarchical import HierarchicalMixtureSVC
from svmosaic.models.linear import LinearSVC
from svmosaic.models.mixture import MixtureSVC
from svmosaic.models.multitask import MultiTaskMixtureSVC

__all__ = ["ClusteredSVC", "HierarchicalMixtureSVC", "KMeansSVC", "LinearSVC", "MixtureSVC", "MultiTaskMixtureSVC"]
