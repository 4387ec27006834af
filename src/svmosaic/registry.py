"""Every type of our own that a fitted model may hold, listed once.

The list feeds the trusted types of model files, the exporters (which models they convert, and why they refuse others)
and the displays. Types are given by name, so that nothing is imported before it is needed. A package of your own adds
its types with `register`.
"""

from dataclasses import dataclass

KINDS = ("gate", "map", "calibration", "model", "part")


@dataclass(frozen=True)
class Registered:
    """One type.

    Attributes
    ----------
    path : str
        Module and name of the class.
    kind : {"gate", "map", "calibration", "model", "part"}
        A part is anything else that a model holds.
    no_tiles : str
        Of a model without tiles: why there are none, as the rest of a sentence about it.
    """

    path: str
    kind: str
    no_tiles: str = ""

    @property
    def name(self) -> str:
        """The name of the class alone."""
        return self.path.rpartition(".")[2]


_KERNELS = "it is a sum of kernels without an estimator around it; save() and predictor() take it"
_TYPES = {
    "gate": (
        "svmosaic.gates.cells.SingleCell",
        "svmosaic.gates.curved.CurvedGate",
        "svmosaic.gates.distance.DistanceGate",
        "svmosaic.gates.gaussian.GaussianGate",
        "svmosaic.gates.hierarchical.HierarchicalGate",
        "svmosaic.gates.projected.ProjectedGate",
        "svmosaic.gates.rbf.RBFGate",
        "svmosaic.gates.scaled.ScaledGate",
        "svmosaic.gates.several.SeveralGates",
        "svmosaic.gates.split_tree.SplitTreeGate",
        "svmosaic.gates.trees.TreeGate",
    ),
    "map": (
        "svmosaic.maps.composed.Composed",
        "svmosaic.maps.pieces.Pieces",
        "svmosaic.maps.ranks.Ranks",
        "svmosaic.maps.scaling.Scaling",
        "svmosaic.maps.transformer.TransformerMap",
    ),
    "calibration": (
        "svmosaic.calibration.Isotonic",
        "svmosaic.calibration.Odds",
        "svmosaic.calibration.Posterior",
        "svmosaic.calibration.Sigmoid",
        "svmosaic.calibration.Temperature",
    ),
    "model": (
        "svmosaic.models.boosted_linear.BoostedLinearSVC",
        "svmosaic.models.clustered.ClusteredSVC",
        "svmosaic.models.clustered.KMeansSVC",
        "svmosaic.models.clustered_svr.KMeansSVR",
        "svmosaic.models.clustered_svr.ClusteredSVR",
        "svmosaic.models.hierarchical_mixture.HierarchicalMixtureSVC",
        "svmosaic.models.kernel.KernelSVC",
        "svmosaic.models.kernel.KernelSVR",
        "svmosaic.models.learned_gate.LearnedGateSVC",
        "svmosaic.models.learned_gate_svr.LearnedGateSVR",
        "svmosaic.models.linear.LinearSVC",
        "svmosaic.models.linear.LinearSVR",
        "svmosaic.models.local_coding.LocalCodingSVC",
        "svmosaic.models.locally_linear.LocallyLinearSVC",
        "svmosaic.models.locally_linear_svr.LocallyLinearSVR",
        "svmosaic.models.mixture.MixtureSVC",
        "svmosaic.models.mosaic_classifier.MosaicClassifier",
        "svmosaic.models.mosaic_regressor.MosaicRegressor",
        "svmosaic.models.multitask_mixture.MultiTaskMixtureSVC",
        "svmosaic.models.neighbors.NeighborsSVC",
        "svmosaic.models.tree.TreeSVC",
        "svmosaic.models.tree_svr.TreeSVR",
        "svmosaic.densities.conversion.ConvertedMixture",
        "svmosaic.densities.conversion.ConvertedSVM",
        "svmosaic.densities.fused.FusedSVC",
        "svmosaic.densities.gaussian_mixture.GaussianMixtureClassifier",
    ),
    "part": (
        "svmosaic.densities.blend.Blend",
        "svmosaic.densities.blend.Reduction",
        "svmosaic.densities.growth.Densities",
        "svmosaic.densities.one_vs_rest.OneVsRestMachine",
        "svmosaic.heads.Regress",
        "svmosaic.learner.gate_learner.GateLearner",
        "svmosaic.models.intervals.Intervals",
        "svmosaic.mosaic.Mosaic",
        "svmosaic.search.leaderboard.Leaderboard",
        "svmosaic.tabular.columns.Column",
        "svmosaic.tabular.table_preparation.TablePreparation",
        "svmosaic.tabular.trained_model.TrainedModel",
    ),
}
_NO_TILES = {
    "BoostedLinearSVC": "it is a vote among the classes that its rounds name, which is no sum over tiles",
    "ConvertedMixture": _KERNELS,
    "ConvertedSVM": _KERNELS,
    "FusedSVC": "it is a blend of kernels and densities; its parts are svm_ and mixture_",
    "GaussianMixtureClassifier": "its classes are densities",
    "NeighborsSVC": "it has no fixed set of tiles, but keeps its training rows and solves an SVM for each query",
}

_registered = {
    path: Registered(path, kind, _NO_TILES.get(path.rpartition(".")[2], ""))
    for kind, paths in _TYPES.items()
    for path in paths
}

# What files of earlier versions call a type, and what it is called now.
RENAMED = {
    "svmosaic.gates.tree.TreeGate": "svmosaic.gates.split_tree.SplitTreeGate",
    "svmosaic.models._blend.Blend": "svmosaic.densities.blend.Blend",
    "svmosaic.models._blend.Reduction": "svmosaic.densities.blend.Reduction",
    "svmosaic.models._mixture_em.Densities": "svmosaic.densities.growth.Densities",
    "svmosaic.models._one_vs_rest.OneVsRestMachine": "svmosaic.densities.one_vs_rest.OneVsRestMachine",
    "svmosaic.models.auto.MosaicClassifier": "svmosaic.models.mosaic_classifier.MosaicClassifier",
    "svmosaic.models.boosted.BoostedLinearSVC": "svmosaic.models.boosted_linear.BoostedLinearSVC",
    "svmosaic.models.conversion.ConvertedMixture": "svmosaic.densities.conversion.ConvertedMixture",
    "svmosaic.models.conversion.ConvertedSVM": "svmosaic.densities.conversion.ConvertedSVM",
    "svmosaic.models.fusion.FusedSVC": "svmosaic.densities.fused.FusedSVC",
    "svmosaic.models.gaussian_mixture.GaussianMixtureClassifier": (
        "svmosaic.densities.gaussian_mixture.GaussianMixtureClassifier"
    ),
    "svmosaic.models.hierarchical.HierarchicalMixtureSVC": (
        "svmosaic.models.hierarchical_mixture.HierarchicalMixtureSVC"
    ),
    "svmosaic.models.local_coding.LocallyLinearSVC": "svmosaic.models.locally_linear.LocallyLinearSVC",
    "svmosaic.models.local_coordinates.LocalCodingSVC": "svmosaic.models.local_coding.LocalCodingSVC",
    "svmosaic.models.multitask.MultiTaskMixtureSVC": "svmosaic.models.multitask_mixture.MultiTaskMixtureSVC",
    "svmosaic.maps.transformer.FeatureMap": "svmosaic.maps.transformer.TransformerMap",
    "svmosaic.mosaic.FeatureMap": "svmosaic.maps.transformer.TransformerMap",
    "svmosaic.scaling.Scaling": "svmosaic.maps.scaling.Scaling",
    "svmosaic.solvers.learner.GateLearner": "svmosaic.learner.gate_learner.GateLearner",
    "svmosaic.trained.TrainedModel": "svmosaic.tabular.trained_model.TrainedModel",
}


def register(kind, *, no_tiles=""):
    """Add a class of your own, as a decorator: models that hold it can then be saved, loaded and exported.

    `svmosaic.load` builds objects of registered classes only. Registering a class says that a file may do so.

    Parameters
    ----------
    kind : {"gate", "map", "calibration", "model", "part"}
        A part is anything else that a model holds.
    no_tiles : str, optional
        For a model without tiles: why, as the rest of a sentence about it.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from svmosaic.registry import find, register
    >>> @register("part")
    ... @dataclass(frozen=True)
    ... class Note:
    ...     text: str
    >>> find(Note).kind
    'part'
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")

    def add(cls):
        path = _path(cls)
        _registered[path] = Registered(path, kind, no_tiles)
        return cls

    return add


def find(cls) -> Registered | None:
    """The entry of a class, or None if it is not registered."""
    return _registered.get(_path(cls))


def entries(kind=None) -> list[Registered]:
    """All entries, or those of one kind."""
    return [entry for entry in _registered.values() if kind in (None, entry.kind)]


def is_registered(path) -> bool:
    """Whether there is a type of this module and name."""
    return path in _registered


def _path(cls) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
