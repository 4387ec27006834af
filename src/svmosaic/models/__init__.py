"""The estimators, one family per file. A file is imported when one of its names is first used."""

from typing import TYPE_CHECKING

from svmosaic._lazy import lazy

# ruff: noqa: F401
if TYPE_CHECKING:
    from svmosaic.models.boosted_linear import BoostedLinearSVC
    from svmosaic.models.clustered import ClusteredSVC, KMeansSVC
    from svmosaic.models.clustered_svr import ClusteredSVR, KMeansSVR
    from svmosaic.models.hierarchical_mixture import HierarchicalMixtureSVC
    from svmosaic.models.kernel import KernelSVC, KernelSVR
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

__all__, __getattr__, __dir__ = lazy(
    globals(),
    {
        "boosted_linear": ["BoostedLinearSVC"],
        "clustered": ["ClusteredSVC", "KMeansSVC"],
        "clustered_svr": ["ClusteredSVR", "KMeansSVR"],
        "hierarchical_mixture": ["HierarchicalMixtureSVC"],
        "kernel": ["KernelSVC", "KernelSVR"],
        "learned_gate": ["LearnedGateSVC"],
        "learned_gate_svr": ["LearnedGateSVR"],
        "linear": ["LinearSVC", "LinearSVR"],
        "local_coding": ["LocalCodingSVC"],
        "locally_linear": ["LocallyLinearSVC"],
        "locally_linear_svr": ["LocallyLinearSVR"],
        "mixture": ["MixtureSVC"],
        "mosaic_classifier": ["MosaicClassifier"],
        "mosaic_regressor": ["MosaicRegressor"],
        "multitask_mixture": ["MultiTaskMixtureSVC"],
        "neighbors": ["NeighborsSVC"],
        "tree": ["TreeSVC"],
        "tree_svr": ["TreeSVR"],
    },
)
