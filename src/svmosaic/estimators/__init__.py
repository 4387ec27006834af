"""The estimators, one family per file. A file is imported when one of its names is first used."""

from typing import TYPE_CHECKING

from svmosaic._lazy import lazy

# ruff: noqa: F401
if TYPE_CHECKING:
    from svmosaic.estimators.boosted_linear import BoostedLinearSVC
    from svmosaic.estimators.clustered import ClusteredSVC, KMeansSVC
    from svmosaic.estimators.clustered_svr import ClusteredSVR, KMeansSVR
    from svmosaic.estimators.kernel import KernelSVC, KernelSVR
    from svmosaic.estimators.learned_gate import LearnedGateSVC
    from svmosaic.estimators.learned_gate_svr import LearnedGateSVR
    from svmosaic.estimators.linear import LinearSVC, LinearSVR
    from svmosaic.estimators.local_coding import LocalCodingSVC
    from svmosaic.estimators.locally_linear import LocallyLinearSVC
    from svmosaic.estimators.locally_linear_svr import LocallyLinearSVR
    from svmosaic.estimators.mixture import HierarchicalMixtureSVC, MixtureSVC
    from svmosaic.estimators.multitask_mixture import MultiTaskMixtureSVC
    from svmosaic.estimators.neighbors import NeighborsSVC
    from svmosaic.estimators.tree import TreeSVC
    from svmosaic.estimators.tree_svr import TreeSVR

__all__, __getattr__, __dir__ = lazy(
    globals(),
    {
        "boosted_linear": ["BoostedLinearSVC"],
        "clustered": ["ClusteredSVC", "KMeansSVC"],
        "clustered_svr": ["ClusteredSVR", "KMeansSVR"],
        "kernel": ["KernelSVC", "KernelSVR"],
        "learned_gate": ["LearnedGateSVC"],
        "learned_gate_svr": ["LearnedGateSVR"],
        "linear": ["LinearSVC", "LinearSVR"],
        "local_coding": ["LocalCodingSVC"],
        "locally_linear": ["LocallyLinearSVC"],
        "locally_linear_svr": ["LocallyLinearSVR"],
        "mixture": ["HierarchicalMixtureSVC", "MixtureSVC"],
        "multitask_mixture": ["MultiTaskMixtureSVC"],
        "neighbors": ["NeighborsSVC"],
        "tree": ["TreeSVC"],
        "tree_svr": ["TreeSVR"],
    },
)
