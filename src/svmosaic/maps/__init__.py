"""Feature maps: what the tiles, and perhaps the gate, see instead of the rows themselves.

Names are imported when they are first asked for: a predictor needs `Scaling` without SciPy.
"""

from typing import TYPE_CHECKING

from svmosaic._lazy import lazy

if TYPE_CHECKING:
    from svmosaic.maps.composed import Composed, same_map, scaled_first
    from svmosaic.maps.encoded_rows import EncodedRows
    from svmosaic.maps.identity import IDENTITY
    from svmosaic.maps.pieces import Pieces, check_pieces
    from svmosaic.maps.protocol import FeatureMap
    from svmosaic.maps.scaling import Scaling
    from svmosaic.maps.transformer import TransformerMap

__all__ = [
    "IDENTITY",
    "Composed",
    "EncodedRows",
    "FeatureMap",
    "Pieces",
    "Scaling",
    "TransformerMap",
    "check_pieces",
    "same_map",
    "scaled_first",
]

_PLACES = {
    "Composed": "composed",
    "EncodedRows": "encoded_rows",
    "FeatureMap": "protocol",
    "IDENTITY": "identity",
    "Pieces": "pieces",
    "Scaling": "scaling",
    "TransformerMap": "transformer",
    "check_pieces": "pieces",
    "same_map": "composed",
    "scaled_first": "composed",
}

__getattr__, __dir__ = lazy(globals(), {name: f"svmosaic.maps.{module}" for name, module in _PLACES.items()})
