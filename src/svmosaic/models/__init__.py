"""The estimators, one family per file. A file is imported when one of its names is asked for."""

from typing import TYPE_CHECKING

from svmosaic._lazy import lazy

if TYPE_CHECKING:
    from svmosaic.models.boosted_linear import BoostedLinearSVC
    from svmosaic.models.clustered import ClusteredSVC, KMeansSVC
    from svmosaic.models.hierarchical_mixture import HierarchicalMixtureSVC
    from svmosaic.models.learned_gate import LearnedGateSVC
    from svmosaic.models.linear import LinearSVC
    from svmosaic.models.local_coding import LocalCodingSVC
    from svmosaic.models.locally_linear import LocallyLinearSVC
    from svmosaic.models.mixture import MixtureSVC
    from svmosaic.models.mosaic_classifier import MosaicClassifier
    from svmosaic.models.multitask_mixture import MultiTaskMixtureSVC
    from svmosaic.models.neighbors import NeighborsSVC
    from svmosaic.models.tree import TreeSVC

__all__ = [
    "BoostedLinearSVC",
    "ClusteredSVC",
    "HierarchicalMixtureSVC",
    "KMeansSVC",
    "LearnedGateSVC",
    "LinearSVC",
    "LocalCodingSVC",
    "LocallyLinearSVC",
    "MixtureSVC",
    "MosaicClassifier",
    "MultiTaskMixtureSVC",
    "NeighborsSVC",
    "TreeSVC",
]

_PLACES = {
    "BoostedLinearSVC": "boosted_linear",
    "ClusteredSVC": "clustered",
    "HierarchicalMixtureSVC": "hierarchical_mixture",
    "KMeansSVC": "clustered",
    "LearnedGateSVC": "learned_gate",
    "LinearSVC": "linear",
    "LocalCodingSVC": "local_coding",
    "LocallyLinearSVC": "locally_linear",
    "MixtureSVC": "mixture",
    "MosaicClassifier": "mosaic_classifier",
    "MultiTaskMixtureSVC": "multitask_mixture",
    "NeighborsSVC": "neighbors",
    "TreeSVC": "tree",
}

__getattr__, __dir__ = lazy(globals(), {name: f"svmosaic.models.{place}" for name, place in _PLACES.items()})
