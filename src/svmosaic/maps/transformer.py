"""A fitted scikit-learn transformer as a feature map."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from svmosaic.maps.protocol import PlainMap, column_names, dense


@dataclass(frozen=True, eq=False)
class TransformerMap(PlainMap):
    """A fitted transformer before the tiles, and possibly before the gate.

    Attributes
    ----------
    transformer : fitted transformer
    code_space : {"input", "features"}
        What the gate sees.

    See Also
    --------
    FeatureMap : The interface of a feature map.
    """

    transformer: Any
    code_space: str

    portable = False
    affine = None

    @property
    def fused(self) -> bool:
        """Whether the gate sees the features."""
        return self.code_space == "features"

    def rows(self, X):
        """Rows for the gate and rows for the tiles."""
        features = self._transform(X)
        return (X if self.code_space == "input" else features), features

    scored_rows = rows

    def _transform(self, X):
        features = self.transformer.transform(X)
        features = features.tocsr() if hasattr(features, "tocsr") else np.ascontiguousarray(features)
        return features if features.dtype in (np.float32, np.float64) else features.astype(np.float64)

    def names(self, feature_names, n_features):
        """The transformer's names of its features, if it has any."""
        try:
            feature_names = self.transformer.get_feature_names_out()
        except (AttributeError, ValueError):
            feature_names = None
        return column_names(feature_names, n_features)

    def values(self, X):
        """The features."""
        return dense(self._transform(X))
