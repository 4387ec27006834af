"""Gates: where a row belongs, as (tile, weight) pairs."""

from svmosaic.gates.cells import NearestCell, SingleCell
from svmosaic.gates.gaussian import GaussianGate
from svmosaic.gates.hierarchical import HierarchicalGate
from svmosaic.gates.placement import place_centers
from svmosaic.gates.rbf import RBFGate
from svmosaic.gates.responsibilities import Responsibilities

__all__ = [
    "GaussianGate",
    "HierarchicalGate",
    "NearestCell",
    "RBFGate",
    "Responsibilities",
    "SingleCell",
    "place_centers",
]
