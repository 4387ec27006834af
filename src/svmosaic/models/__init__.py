"""The estimators, one family per file. A file is imported when one of its names is asked for."""

from typing import TYPE_CHECKING

from svmosaic._lazy import lazy

if TYPE_CHECKING:
    from svmosaic.models.boosted_linear import BoostedLinearSVC
    from svmosaic.models.clustered import ClusteredSVC, KMeansSVC
    from svmosaic.models.clustered_svr import ClusteredSVR, KMeansSVR
    from svmosaic.models.hierarchical_mixture import HierarchicalMixtureSVC
    from svmosaic.models.learned_gate import LearnedGateSVC
    from svmosaic.models.learned_gate_svr import LearnedGateSVR
    from svmosaic.models.linear import LinearSVC, LinearSVR
    from svmosaic.models.local_coding import LocalCodingSVC
    from svmosaic.models.locally_linear import LocallyLinearSVC
    from svmosaic.models.locally_linear_svr import LocallyLinearSVR
    from svmosaic.models.mixture import MixtureSVC
    from svmosaic.models.mosaic_classifier import MosaicClassifier
    from svmosaic.models.mosaic_regressor import MosaicRegressor
    from svmosaic.models.multitask_mixture import MultiTaskMixtureSVC
    from svmosaic.models.neighbors import NeighborsSVC
    from svmosaic.models.tree import TreeSVC
    from svmosaic.models.tree_svr import TreeSVR

__all__ = [
    "BoostedLinearSVC",
    "ClusteredSVC",
    "ClusteredSVR",
    "HierarchicalMixtureSVC",
    "KMeansSVC",
    "KMeansSVR",
    "LearnedGateSVC",
    "LearnedGateSVR",
    "LinearSVC",
    "LinearSVR",
    "LocalCodingSVC",
    "LocallyLinearSVC",
    "LocallyLinearSVR",
    "MixtureSVC",
    "MosaicClassifier",
    "MosaicRegressor",
    "MultiTaskMixtureSVC",
    "NeighborsSVC",
    "TreeSVC",
    "TreeSVR",
]

_PLACES = {
    "BoostedLinearSVC": "boosted_linear",
    "ClusteredSVR": "clustered_svr",
    "ClusteredSVC": "clustered",
    "HierarchicalMixtureSVC": "hierarchical_mixture",
    "KMeansSVR": "clustered_svr",
    "KMeansSVC": "clustered",
    "LearnedGateSVR": "learned_gate_svr",
    "LearnedGateSVC": "learned_gate",
    "LinearSVR": "linear",
    "LinearSVC": "linear",
    "LocalCodingSVC": "local_coding",
    "LocallyLinearSVR": "locally_linear_svr",
    "LocallyLinearSVC": "locally_linear",
    "MixtureSVC": "mixture",
    "MosaicClassifier": "mosaic_classifier",
    "MosaicRegressor": "mosaic_regressor",
    "MultiTaskMixtureSVC": "multitask_mixture",
    "NeighborsSVC": "neighbors",
    "TreeSVR": "tree_svr",
    "TreeSVC": "tree",
}

__getattr__, __dir__ = lazy(globals(), {name: f"svmosaic.models.{place}" for name, place in _PLACES.items()})
