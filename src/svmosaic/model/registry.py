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
        "svmosaic.gates.softmax_tree.HierarchicalGate",
        "svmosaic.gates.projected.ProjectedGate",
        "svmosaic.gates.softmax_tree.RBFGate",
        "svmosaic.gates.scaled.ScaledGate",
        "svmosaic.gates.several.SeveralGates",
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
        "svmosaic.model.calibration.Isotonic",
        "svmosaic.model.calibration.Odds",
        "svmosaic.model.calibration.Posterior",
        "svmosaic.model.calibration.Sigmoid",
        "svmosaic.model.calibration.Temperature",
    ),
    "model": (
        "svmosaic.estimators.boosted_linear.BoostedLinearSVC",
        "svmosaic.estimators.boosted_trees.BoostedTreesClassifier",
        "svmosaic.estimators.boosted_trees.BoostedTreesRegressor",
        "svmosaic.estimators.clustered.ClusteredSVC",
        "svmosaic.estimators.clustered.KMeansSVC",
        "svmosaic.estimators.clustered.KMeansSVR",
        "svmosaic.estimators.clustered.ClusteredSVR",
        "svmosaic.estimators.mixture.HierarchicalMixtureSVC",
        "svmosaic.estimators.kernel.KernelSVC",
        "svmosaic.estimators.kernel.KernelSVR",
        "svmosaic.estimators.learned_gate.LearnedGateSVC",
        "svmosaic.estimators.learned_gate.LearnedGateSVR",
        "svmosaic.estimators.linear.LinearSVC",
        "svmosaic.estimators.linear.LinearSVR",
        "svmosaic.estimators.local_coding.LocalCodingSVC",
        "svmosaic.estimators.locally_linear.LocallyLinearSVC",
        "svmosaic.estimators.locally_linear.LocallyLinearSVR",
        "svmosaic.estimators.mixture.MixtureSVC",
        "svmosaic.search.mosaic_classifier.MosaicClassifier",
        "svmosaic.search.mosaic_regressor.MosaicRegressor",
        "svmosaic.estimators.multitask_mixture.MultiTaskMixtureSVC",
        "svmosaic.estimators.neighbors.NeighborsSVC",
        "svmosaic.estimators.tree.TreeSVC",
        "svmosaic.estimators.tree.TreeSVR",
        "svmosaic.densities.conversion.ConvertedMixture",
        "svmosaic.densities.conversion.ConvertedSVM",
        "svmosaic.densities.fused.FusedSVC",
        "svmosaic.densities.gaussian_mixture.GaussianMixtureClassifier",
    ),
    "part": (
        "svmosaic.densities.fused.Blend",
        "svmosaic.densities.fused.Reduction",
        "svmosaic.densities.growth.Densities",
        "svmosaic.densities.conversion.OneVsRestMachine",
        "svmosaic.model.heads.Regress",
        "svmosaic.learner.gate_learner.GateLearner",
        "svmosaic.search.intervals.Intervals",
        "svmosaic.solvers.sgd.SgdOptions",
        "svmosaic.solvers.sgd.StochasticDescent",
        "svmosaic.model.mosaic.Mosaic",
        "svmosaic.search.leaderboard.Leaderboard",
        "svmosaic.table.columns.Column",
        "svmosaic.table.table_preparation.TablePreparation",
        "svmosaic.table.trained_model.TrainedModel",
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
    >>> from svmosaic.model.registry import find, register
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
