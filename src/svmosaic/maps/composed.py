"""Two maps, one after the other."""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from svmosaic.maps.scaling import Scaling


@dataclass(frozen=True, eq=False)
class Composed:
    """A scaling followed by another map.

    Attributes
    ----------
    scaling : Scaling
    then : FeatureMap
        What follows, fitted to scaled rows.

    See Also
    --------
    FeatureMap : The interface of a feature map.
    """

    scaling: Scaling
    then: Any

    @property
    def fused(self) -> bool:
        """As in the inner map."""
        return self.then.fused

    @property
    def portable(self) -> bool:
        """As in the inner map."""
        return self.then.portable

    @property
    def affine(self):
        """Center and factor of the scaling."""
        return self.scaling.affine

    @property
    def pieces(self):
        """The pieces of the inner map."""
        return self.then.pieces

    def rows(self, X):
        """Rows for the gate and rows for the tiles."""
        return self.then.rows(self.scaling.scale(X))

    def scored_rows(self, X):
        """Rows for the gate and rows for the scorer of the core."""
        return self.then.scored_rows(self.scaling.scale(X))

    def pack(self, coef):
        """Weights and curves over scaled rows."""
        return self.then.pack(coef)

    def names(self, feature_names, n_features):
        """As in the inner map."""
        return self.then.names(feature_names, n_features)

    def values(self, X):
        """The unscaled rows, unless the inner map creates its own features."""
        return self.scaling.values(X) if self.then.portable else self.then.values(self.scaling.scale(X))

    def contributions(self, coef, X):
        """As in the inner map."""
        return self.then.contributions(coef, self.scaling.scale(X))

    def strengths(self, coef):
        """As in the inner map."""
        return self.then.strengths(coef)


def scaled_first(scaling, then=None):
    """A scaling in front of a map, or alone."""
    return scaling if then is None else Composed(scaling, then)


def over_measured_rows(scaling, mosaic):
    """Turn a mosaic over scaled rows into one over unscaled rows.

    Parameters
    ----------
    scaling : Scaling, Ranks or None
        None if rows are not scaled.
    mosaic : Mosaic
    """
    if scaling is None:
        return mosaic
    if hasattr(scaling, "over_rows"):
        return scaling.over_rows(mosaic)
    return replace(mosaic, feature_map=scaled_first(scaling, mosaic.feature_map))


def same_map(one, other) -> bool:
    """Whether two maps, either of which may be None, are the same: of one class, with equal arrays."""
    if one is other:
        return True
    if type(one) is not type(other) or hasattr(one, "transformer"):  # transformers cannot be compared
        return False
    pairs = ((getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    return all(same_map(a, b) if hasattr(a, "rows") else np.array_equal(a, b) for a, b in pairs)
