"""The estimators, one paper a file."""

from svmosaic.models.clustered import ClusteredSVC, KMeansSVC
from svmosaic.models.linear import LinearSVC
from svmosaic.models.local_coding import LocallyLinearSVC
from svmosaic.models.local_coordinates import LocalCodingSVC
from svmosaic.models.neighbors import NeighborsSVC

__all__ = ["ClusteredSVC", "KMeansSVC", "LinearSVC", "LocalCodingSVC", "LocallyLinearSVC", "NeighborsSVC"]
