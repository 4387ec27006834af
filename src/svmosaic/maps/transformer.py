"""A fitted scikit-learn transformer as a feature map."""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """A fitted transformer in front of the tiles, and whether the gate looks through it too.

    Attributes
    ----------
    transformer : fitted transformer
    code_space : {"input", "features"}
    """

    transformer: Any
    code_space: str

    def rows(self, X):
        """Rows for the gate and rows for the tiles."""
        features = self.transformer.transform(X)
        features = features.tocsr() if hasattr(features, "tocsr") else np.ascontiguousarray(features)
        if features.dtype not in (np.float32, np.float64):
            features = features.astype(np.float64)
        return (X if self.code_space == "input" else features), features
