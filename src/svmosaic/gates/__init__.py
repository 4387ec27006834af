"""Gates: where a row belongs, as (tile, weight) pairs."""

from svmosaic.gates.cells import SingleCell
from svmosaic.gates.curved import CurvedGate
from svmosaic.gates.distance import CODINGS, DistanceGate
from svmosaic.gates.gaussian import GaussianGate
from svmosaic.gates.placement import place_centers
from svmosaic.gates.projected import ProjectedGate, principal_components
from svmosaic.gates.protocol import CoreGate, Gate, PlacedGate
from svmosaic.gates.responsibilities import Responsibilities
from svmosaic.gates.scaled import ScaledGate
from svmosaic.gates.several import SeveralGates
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
