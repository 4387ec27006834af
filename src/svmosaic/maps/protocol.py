"""What a feature map answers: the one list that mosaics, predictors, explanations, displays and exporters rely on."""

from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np


class FeatureMap(Protocol):
    """Computes the input of the tiles of a mosaic, and possibly of its gate, from the rows.

    Tiles are linear in the features that they see: `coef` below has one number for each of them in its last axis.

    Attributes
    ----------
    fused : bool
        Whether the gate reads the same rows as the scorer of the core, so that rows can be coded and scored in one
        loop.
    portable : bool
        Whether a `Predictor` can carry the map with numpy and the core alone.
    affine : tuple of (center, factor), or None
        Set if the map replaces x by (x - center) * factor in front of everything else, gate included; center may be
        None for zero. For exporters and displays.
    pieces : Pieces or None
        The hat functions behind `affine`, if there are any.

    See Also
    --------
    svmosaic.model.mosaic.Mosaic : Contains a feature map.
    Pieces : Curves per feature.
    """

    @property
    def fused(self) -> bool: ...

    @property
    def portable(self) -> bool: ...

    @property
    def affine(self) -> tuple[np.ndarray | None, np.ndarray] | None: ...

    @property
    def pieces(self) -> Any: ...

    def rows(self, X) -> tuple[Any, Any]:
        """Rows for the gate and rows for the tiles: what a fit uses."""

    def scored_rows(self, X) -> tuple[Any, Any]:
        """Rows for the gate and rows for the scorer of the core, which are the same if the map is `fused`."""

    def pack(self, coef) -> tuple[np.ndarray, "PackedCurves | None"]:
        """Weights in the form of the scorer, and their curves, if any."""

    def names(self, feature_names, n_features) -> list[str]:
        """Names of the columns that contributions refer to.

        Parameters
        ----------
        feature_names : list of str or None
            Of the input columns.
        n_features : int
            Features that the tiles see.
        """

    def values(self, X) -> np.ndarray:
        """Dense float64 values of those columns, to be shown next to their contributions."""

    def contributions(self, coef, X) -> np.ndarray:
        """What each of these columns adds to the margin of a tile.

        Parameters
        ----------
        coef : ndarray of shape (n_rows, ..., n_features)
            The weights of a tile for each row, or one line for all rows.
        X : ndarray or CSR matrix of shape (n_rows, n_inputs)
        """

    def strengths(self, coef) -> np.ndarray:
        """How much each of those columns matters: absolute weights, or the spread of a curve; shape of `coef`."""


# The arguments of the core's Pieces class, and whether all curves are zero at zero.
PackedCurves = tuple[tuple[np.ndarray, ...], bool]


class PlainMap(ABC):
    """What maps share whose features are explained one by one: tiles are linear in what `rows` returns."""

    pieces = None

    def pack(self, coef):
        """The weights as they are."""
        return coef, None

    def contributions(self, coef, X):
        """Weight times feature."""
        _, rows = self.rows(X)
        rows = dense(rows)
        return coef * rows.reshape(rows.shape[0], *(1,) * (coef.ndim - 2), rows.shape[1])

    def strengths(self, coef):
        """Absolute weights."""
        return np.abs(coef)

    @abstractmethod
    def rows(self, X):
        """Rows for the gate and rows for the tiles."""


def dense(rows):
    """Rows as a float64 array."""
    return (rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)).astype(np.float64)


def column_names(feature_names, n_columns):
    """The names given, or x0, x1, ..."""
    if feature_names is None:
        return [f"x{f}" for f in range(n_columns)]
    return [str(name) for name in feature_names]


class Identity(PlainMap):
    """The map of a model without one: gate and tiles see the rows themselves."""

    fused = True
    portable = True
    affine = None

    def rows(self, X):
        """The rows, twice."""
        return X, X

    scored_rows = rows

    def names(self, feature_names, n_features):
        """The names given, or x0, x1, ..."""
        return column_names(feature_names, n_features)

    def values(self, X):
        """The rows, dense."""
        return dense(X)


IDENTITY = Identity()
