"""Gates made of other gates: over scaled, projected or curved rows, and several side by side."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from svmosaic.gates.protocol import CoreGate, PackedGate
from svmosaic.rows import copied

# Rows that principal components are computed from, and the most features for which that is by their covariance.
PROJECTION_SAMPLE = 20_000
LARGEST_COVARIANCE = 1000


class OuterGate(PackedGate):
    """A gate whose tiles are those of `inner`, which sees the rows changed in some way."""

    inner: CoreGate

    @property
    def n_tiles(self) -> int:
        return self.inner.n_tiles

    @property
    def width(self) -> int:
        return self.inner.width


@dataclass(frozen=True, eq=False)
class ScaledGate(OuterGate):
    """The codes of z = (x - center) * factor by another gate.

    Attributes
    ----------
    center : ndarray of shape (n_features,) or None
        None leaves zeros as they are, for sparse rows.
    factor : ndarray of shape (n_features,)
    inner : gate
        Over the scaled rows.
    """

    center: np.ndarray | None
    factor: np.ndarray
    inner: CoreGate

    def core_arguments(self):
        """The name of the gate's class in the core, and the arguments of its constructor."""
        center = None if self.center is None else np.ascontiguousarray(self.center, dtype=np.float64)
        factor = np.ascontiguousarray(self.factor, dtype=np.float64)
        return "ScaledGate", center, factor, self.inner.core_arguments()


@dataclass(frozen=True, eq=False)
class ProjectedGate(OuterGate):
    """The codes of z = P x by a gate of the projected space.

    Attributes
    ----------
    projection : ndarray of shape (n_components, n_features)
    inner : gate with a core form
        Over the components.

    See Also
    --------
    Gate : The interface of a gate.
    """

    projection: np.ndarray
    inner: CoreGate

    @property
    def anchors(self) -> np.ndarray | None:
        """The anchors of the inner gate, which are points of the projection; None if it has none."""
        return getattr(self.inner, "anchors", None)

    def core_arguments(self):
        """The name of the gate's class in the core, and the arguments of its constructor."""
        projection = np.ascontiguousarray(self.projection, dtype=np.float64)
        return "ProjectedGate", projection, self.inner.core_arguments()


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


@dataclass(frozen=True, eq=False)
class SeveralGates(PackedGate):
    r"""The codes of M gates, concatenated as the codes of one gate over all their tiles.

    The tiles of a gate are numbered after those of the gates before it, and its weights are multiplied by its factor:
    :math:`f(x) = \sum_m \text{factor}_m \sum_j g_{mj}(x) s_{mj}(x)`.

    Attributes
    ----------
    gates : tuple of gates
        `SingleCell` may be among them, but not be all of them.
    factors : ndarray of shape (n_gates,)

    See Also
    --------
    Gate : The interface of a gate.
    """

    gates: tuple[Any, ...]
    factors: np.ndarray

    @property
    def n_tiles(self) -> int:
        return sum(gate.n_tiles for gate in self.gates)

    @property
    def width(self) -> int:
        return sum(gate.width for gate in self.gates)

    @property
    def gate_of_tile(self):
        """The part of `split` that each tile belongs to, of shape (n_tiles,)."""
        parts, first = [], 0
        for gate in self.gates:
            choices = n_choices(gate)
            parts.append(first + (gate.tree_of_tile if choices > 1 else np.zeros(gate.n_tiles, dtype=np.intp)))
            first += choices
        return np.concatenate(parts)

    def split(self, codes):
        """Codes of this gate as those of its parts, a pair (tile, weight) per gate or tree; tiles keep numbers."""
        widths = [gate.width // n_choices(gate) for gate in self.gates for _ in range(n_choices(gate))]
        ends = np.cumsum(widths)[:-1]
        return list(zip(*(np.split(part, ends, axis=1) for part in codes), strict=True))

    def core_arguments(self):
        """The name of the gate's class in the core, and the arguments of its constructor."""
        factors = np.ascontiguousarray(self.factors, dtype=np.float64)
        return "SeveralGates", [gate.core_arguments() for gate in self.gates], factors


def n_choices(gate) -> int:
    """The number of groups of tiles, of each of which a row belongs to exactly one: one, or one per tree."""
    return getattr(gate, "n_choices", 1)


def principal_components(X, n_components, rng):
    """Directions of the largest variance, of shape (n_components, n_features); the same for dense and sparse rows."""
    many = X.shape[0] > PROJECTION_SAMPLE
    X = X[np.sort(rng.choice(X.shape[0], PROJECTION_SAMPLE, replace=False))] if many else copied(X)
    n_components = min(n_components, X.shape[1])
    if X.shape[1] > LARGEST_COVARIANCE:
        n_components = min(n_components, X.shape[0])
        from sklearn.decomposition import TruncatedSVD  # here, since it takes a while to import

        components = TruncatedSVD(n_components, random_state=rng).fit(X).components_
    else:
        X = X.astype(np.float64)
        mean = np.asarray(X.mean(axis=0)).ravel()
        products = X.T @ X
        products = products.toarray() if sparse.issparse(products) else products
        components = np.linalg.eigh(products - X.shape[0] * np.outer(mean, mean))[1].T[::-1][:n_components]
    # The sign of an eigenvector is a matter of rounding.
    largest = np.take_along_axis(components, np.abs(components).argmax(axis=1)[:, None], axis=1)
    return (components * np.where(largest < 0, -1, 1)).astype(np.float32)
