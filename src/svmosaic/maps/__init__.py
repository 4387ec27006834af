"""Feature maps: what the tiles, and perhaps the gate, see instead of the rows themselves.

Names are imported when they are first asked for: a predictor needs `Scaling` without SciPy.
"""

from typing import TYPE_CHECKING

from svmosaic._lazy import lazy

# ruff: noqa: F401
if TYPE_CHECKING:
    from svmosaic.maps.composed import Composed, over_measured_rows, same_map, scaled_first
    from svmosaic.maps.pieces import EncodedRows, Pieces
    from svmosaic.maps.protocol import IDENTITY, FeatureMap
    from svmosaic.maps.ranks import Ranks
    from svmosaic.maps.scaling import Scaling
    from svmosaic.maps.transformer import TransformerMap

__all__, __getattr__, __dir__ = lazy(
    globals(),
    {
        "composed": ["Composed", "over_measured_rows", "same_map", "scaled_first"],
        "pieces": ["EncodedRows", "Pieces"],
        "protocol": ["FeatureMap", "IDENTITY"],
        "ranks": ["Ranks"],
        "scaling": ["Scaling"],
        "transformer": ["TransformerMap"],
    },
)
