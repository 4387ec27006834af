"""Gates: where a row belongs, as (tile, weight) pairs."""

from svmosaic.gates.cells import SingleCell
from svmosaic.gates.distance import CODINGS, DistanceGate
from svmosaic.gates.placement import place_centers
from svmosaic.gates.projected import ProjectedGate, principal_components

__all__ = ["CODINGS", "DistanceGate", "ProjectedGate", "SingleCell", "place_centers", "principal_components"]
