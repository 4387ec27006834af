"""Gates: where a row belongs, as (tile, weight) pairs."""

from svmosaic.gates.cells import SingleCell
from svmosaic.gates.distance import CODINGS, DistanceGate
from svmosaic.gates.placement import place_centers

__all__ = ["CODINGS", "DistanceGate", "SingleCell", "place_centers"]
