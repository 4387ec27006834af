"""Gates: where a row belongs, as (tile, weight) pairs."""

from svmosaic.gates.cells import NearestCell, SingleCell
from svmosaic.gates.placement import place_centers

__all__ = ["NearestCell", "SingleCell", "place_centers"]
