"""Feature maps: what the tiles, and perhaps the gate, see instead of the rows themselves."""

from svmosaic.maps.scaling import Scaling
from svmosaic.maps.transformer import FeatureMap

__all__ = ["FeatureMap", "Scaling"]
