"""Gates: where a row belongs, as (tile, weight) pairs."""

from svmosaic.gates.composed import CurvedGate, ProjectedGate, ScaledGate, SeveralGates, principal_components
from svmosaic.gates.distance import CODINGS, DistanceGate
from svmosaic.gates.gaussian import GaussianGate
from svmosaic.gates.placement import place_centers
from svmosaic.gates.protocol import CoreGate, Gate, PlacedGate, SingleCell
from svmosaic.gates.responsibilities import Responsibilities
from svmosaic.gates.softmax_tree import HierarchicalGate, RBFGate
from svmosaic.gates.trees import TreeGate

__all__ = [
    "CODINGS",
    "CoreGate",
    "CurvedGate",
    "DistanceGate",
    "Gate",
    "GaussianGate",
    "HierarchicalGate",
    "PlacedGate",
    "ProjectedGate",
    "RBFGate",
    "Responsibilities",
    "ScaledGate",
    "SeveralGates",
    "SingleCell",
    "TreeGate",
    "place_centers",
    "principal_components",
]
