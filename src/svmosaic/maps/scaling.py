"""Scaling inside a fitted model: the model takes unscaled rows and scales them itself.

This module needs numpy alone, so that a predictor can hold a scaling too.
"""

from dataclasses import dataclass

import numpy as np

from svmosaic.maps.protocol import PlainMap, column_names, dense


@dataclass(frozen=True, eq=False)
class Scaling(PlainMap):
    """z = (x - center) * factor, feature by feature, in the precision of x.

    In a `Mosaic`, it takes the place of a feature map, before the gate and the tiles.

    Attributes
    ----------
    center : ndarray of shape (n_features,) or None
        None leaves zeros as they are, for sparse rows.
    factor : ndarray of shape (n_features,)

    See Also
    --------
    FeatureMap : The interface of a feature map.
    """

    center: np.ndarray | None
    factor: np.ndarray

    fused = True
    portable = True

    @property
    def affine(self):
        """Center and factor."""
        return self.center, self.factor

    def scale(self, X):
        """Scale rows, or one row: returns an ndarray, or a CSR matrix if X is one."""
        factor = self.factor.astype(X.dtype, copy=False)
        if hasattr(X, "indptr"):
            if self.center is not None:
                raise ValueError("this model was fitted to dense rows and centers them: pass X.toarray()")
            scaled = X.copy()
            scaled.data = X.data * factor[X.indices]
            return scaled
        if self.center is None:
            return X * factor
        return (X - self.center.astype(X.dtype, copy=False)) * factor

    def rows(self, X):
        """Rows for the gate and rows for the tiles, which are the same."""
        scaled = self.scale(X)
        return scaled, scaled

    scored_rows = rows

    def names(self, feature_names, n_features):
        """The names of the columns."""
        return column_names(feature_names, n_features)

    def values(self, X):
        """The unscaled rows."""
        return dense(X)

    def fold(self, coef, intercept):
        """Return the weights and intercepts for x that give the same scores as the given ones for z."""
        scaled = coef * self.factor
        return scaled, intercept if self.center is None else intercept - scaled @ self.center
