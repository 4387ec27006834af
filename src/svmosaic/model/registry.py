"""Every type of our own that a fitted model may hold, listed once.

The list feeds the trusted types of model files, the exporters (which models they convert, and why they refuse others)
and the displays. Types are given by name, so that nothing is imported before it is needed. A package of your own adds
its types with `register`.
"""

from dataclasses import dataclass

KINDS = ("gate", "map", "calibration", "model", "part")


@dataclass(frozen=True)
class Registered:
    """One type: module and class, one of `KINDS` and, of a model without tiles, why it has none."""

    path: str
    kind: str
    no_tiles: str = ""

    @property
    def name(self) -> str:
        """The name of the class alone."""
        return self.path.rpartition(".")[2]


_TYPES = {
    "gate": (
        "gates.protocol.SingleCell", "gates.composed.CurvedGate", "gates.distance.DistanceGate",
        "gates.gaussian.GaussianGate", "gates.softmax_tree.HierarchicalGate", "gates.composed.ProjectedGate",
        "gates.softmax_tree.RBFGate", "gates.composed.ScaledGate", "gates.composed.SeveralGates",
        "gates.trees.TreeGate",
    ),
    "map": (
        "maps.composed.Composed", "maps.pieces.Pieces", "maps.ranks.Ranks", "maps.scaling.Scaling",
        "maps.transformer.TransformerMap",
    ),
    "calibration": (
        "model.calibration.Isotonic", "model.calibration.Odds", "model.calibration.Posterior",
        "model.calibration.Sigmoid", "model.calibration.Temperature",
    ),
    "model": (
        "estimators.boosted_linear.BoostedLinearSVC",
        "estimators.boosted_trees.BoostedTreesClassifier", "estimators.boosted_trees.BoostedTreesRegressor",
        "estimators.clustered.ClusteredSVC", "estimators.clustered.ClusteredSVR",
        "estimators.clustered.KMeansSVC", "estimators.clustered.KMeansSVR",
        "estimators.kernel.KernelSVC", "estimators.kernel.KernelSVR",
        "estimators.learned_gate.LearnedGateSVC", "estimators.learned_gate.LearnedGateSVR",
        "estimators.linear.LinearSVC", "estimators.linear.LinearSVR", "estimators.local_coding.LocalCodingSVC",
        "estimators.locally_linear.LocallyLinearSVC", "estimators.locally_linear.LocallyLinearSVR",
        "estimators.mixture.HierarchicalMixtureSVC", "estimators.mixture.MixtureSVC",
        "estimators.multitask_mixture.MultiTaskMixtureSVC", "estimators.neighbors.NeighborsSVC",
        "estimators.tree.TreeSVC", "estimators.tree.TreeSVR",
        "search.mosaic_classifier.MosaicClassifier", "search.mosaic_regressor.MosaicRegressor",
        "densities.conversion.ConvertedMixture", "densities.conversion.ConvertedSVM", "densities.fused.FusedSVC",
        "densities.gaussian_mixture.GaussianMixtureClassifier",
    ),
    "part": (
        "densities.conversion.OneVsRestMachine", "densities.fused.Blend", "densities.fused.Reduction",
        "densities.growth.Densities", "learner.gate_learner.GateLearner", "model.heads.Regress", "model.mosaic.Mosaic",
        "search.intervals.Intervals", "search.leaderboard.Leaderboard", "solvers.sgd.SgdOptions",
        "solvers.sgd.StochasticDescent", "table.columns.Column",
        "table.table_preparation.TablePreparation", "table.trained_model.TrainedModel",
    ),
}  # fmt: skip
_KERNELS = "it is a sum of kernels without an estimator around it; save() and predictor() take it"
_NO_TILES = {
    "BoostedLinearSVC": "it is a vote among the classes that its rounds name, which is no sum over tiles",
    "ConvertedMixture": _KERNELS,
    "ConvertedSVM": _KERNELS,
    "FusedSVC": "it is a blend of kernels and densities; its parts are svm_ and mixture_",
    "GaussianMixtureClassifier": "its classes are densities",
    "NeighborsSVC": "it has no fixed set of tiles, but keeps its training rows and solves an SVM for each query",
}

registered = {
    f"svmosaic.{path}": Registered(f"svmosaic.{path}", kind, _NO_TILES.get(path.rpartition(".")[2], ""))
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
        path = f"{cls.__module__}.{cls.__qualname__}"
        registered[path] = Registered(path, kind, no_tiles)
        return cls

    return add


def find(cls) -> Registered | None:
    """The entry of a class, or None if it is not registered."""
    return registered.get(f"{cls.__module__}.{cls.__qualname__}")


def entries(kind) -> list[Registered]:
    """All entries of a kind."""
    return [entry for entry in registered.values() if entry.kind == kind]
