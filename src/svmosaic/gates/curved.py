"""A gate that measures distances in a projection of piecewise-linear features."""

from dataclasses import dataclass

import numpy as np

from svmosaic.gates.protocol import CoreGate, OuterGate


@dataclass(frozen=True, eq=False)
class CurvedGate(OuterGate):
    """The codes of z = P phi(x), where each component of z is a sum of piecewise-linear curves, one per column.

    It reads the rows themselves.

    Attributes
    ----------
    center, scale : ndarray of shape (n_features,)
        Of the columns without a curve, which count as (x - center) * scale.
    column : ndarray of int32, shape (n_curves,)
        The columns that have a curve.
    start : ndarray of int32, shape (n_curves + 1,)
        Where the knots of each curve start.
    knot : ndarray of shape (n_knots,)
    zero_is_zero : bool
        Whether all curves are zero at zero.
    projection : ndarray of shape (n_components, n_straight + n_knots + 1)
        Slopes of the columns without a curve, values of the curves at their knots, and the sum of all at zero.
    inner : gate with a core form
        Over the components.
    """

    center: np.ndarray
    scale: np.ndarray
    column: np.ndarray
    start: np.ndarray
    knot: np.ndarray
    zero_is_zero: bool
    projection: np.ndarray
    inner: CoreGate

    @classmethod
    def of_pieces(cls, pieces, projection, inner) -> "CurvedGate":
        """The gate of a projection of the features of pieces.

        Parameters
        ----------
        pieces : Pieces
        projection : ndarray of shape (n_components, pieces.n_features)
        inner : gate with a core form
        """
        packed, ((center, scale, _, _, column, start, knot, _), zero_is_zero) = pieces.pack(projection)
        return cls(center, scale, column, start, knot, zero_is_zero, packed, inner)

    def core_arguments(self):
        """The name of the gate's class in the core, and the arguments of its constructor."""
        projection = np.ascontiguousarray(self.projection, dtype=np.float64)
        return (
            "CurvedGate", self.center, self.scale, self.column, self.start, self.knot, bool(self.zero_is_zero),
            projection, self.inner.core_arguments(),
        )  # fmt: skip
