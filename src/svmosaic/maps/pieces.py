r"""Pieces: a curve per column instead of a slope.

Column f becomes a straight term and one hat function per knot :math:`u_0 < \dots < u_m`,

.. math:: z_f(x) = \text{clip}((x - \text{center}_f) \, \text{scale}_f, \pm\text{reach}_f) , \qquad
          \text{hat}_t(u_s) = [s = t] ,

linear between knots and constant beyond the outer ones. A tile that is linear in these features is an additive model
with one piecewise-linear curve per column. Between two knots only their two hats are not zero: rows are stored as they
are, with one byte per curve that says between which knots the value lies.
"""

import itertools
import numbers
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse

from svmosaic import _core
from svmosaic._validation import check_pieces
from svmosaic.maps.protocol import column_names, dense

# Knots are quantiles of at most this many rows: their error, less than half a percent, does not matter.
SAMPLE = 20_000
# Straight terms of columns with a curve are clipped at so many standard deviations.
REACH = 3.0


@dataclass(frozen=True, eq=False)
class Pieces:
    """Knots and straight terms of all columns.

    Attributes
    ----------
    center, scale, reach : ndarray of shape (n_inputs,)
        Of the straight terms. Reach is infinite for columns without a curve.
    column : ndarray of int32, shape (n_curves,)
        The columns that have a curve, in increasing order.
    start : ndarray of int32, shape (n_curves + 1,)
        Where the knots of each curve start in `knot`.
    knot : ndarray of shape (n_hats,)
    implicit_zeros : bool
        Fitted to sparse rows: zero is a knot of every curve, and its features are left out, so that zeros that are not
        stored need none.

    See Also
    --------
    FeatureMap : The interface of a feature map.
    """

    center: np.ndarray
    scale: np.ndarray
    reach: np.ndarray
    column: np.ndarray
    start: np.ndarray
    knot: np.ndarray
    implicit_zeros: bool = False

    # The gate sees the rows themselves, and so does the scorer, which finds the bins on its own.
    fused = True
    portable = True
    affine = None

    @classmethod
    def fit(cls, X, pieces, sample_weight=None, rng=None, n_jobs=None):
        """Choose knots.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_samples, n_inputs)
        pieces : int, or sequence of n_inputs arrays
            The largest number of knots per column; or the knots of each column, increasing, empty or None for a column
            without a curve.
        sample_weight : ndarray of shape (n_samples,), optional
        rng : RandomState, optional
            For the sample of a large X.
        n_jobs : int, optional
            Does not change the result.

        Returns
        -------
        Pieces
        """
        check_pieces("pieces", pieces)
        given = None
        if not isinstance(pieces, numbers.Integral):
            if len(pieces) != X.shape[1]:
                raise ValueError(f"pieces has knots for {len(pieces)} columns, but X has {X.shape[1]} features")
            given = [np.zeros(0) if u is None else np.asarray(u, dtype=np.float64) for u in pieces]
        here, weight = sample_of(X.shape[0], sample_weight, rng)
        implicit = sparse.issparse(X)
        n_knots = int(pieces) if given is None else 2
        if implicit:
            X = (X if here is None else X[here]).tocsc()
            X.sum_duplicates()
            arrays = X.data, X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64, copy=False)
            found = _core.find_sparse_knots(*arrays, np.ascontiguousarray(weight), n_knots, effective_n_jobs(n_jobs))
        else:
            found = _core.find_knots(
                np.ascontiguousarray(X), np.ascontiguousarray(weight), n_knots, effective_n_jobs(n_jobs), here
            )
        knot, bounds, center, scale, reach = found
        knots = [knot[first:last] for first, last in itertools.pairwise(bounds.tolist())]
        if given is not None:
            knots = [np.union1d(u, 0.0) if implicit and len(u) else u for u in given]
            reach = np.where([len(u) > 0 for u in knots], REACH, np.inf)
        return cls.of_knots(knots, center, scale, reach, implicit)

    @classmethod
    def of_knots(cls, knots, center, scale, reach, implicit_zeros=False):
        """Return pieces with given knots per column (none for a column without a curve) and straight terms."""
        column = np.array([f for f, u in enumerate(knots) if len(u)], dtype=np.int32)
        start = np.cumsum([0, *(len(knots[f]) for f in column)]).astype(np.int32)
        knot = np.concatenate([np.zeros(0), *(knots[f] for f in column)])
        return cls(center, scale, reach, column, start, knot, implicit_zeros)

    @property
    def n_inputs(self) -> int:
        return len(self.center)

    @property
    def n_features(self) -> int:
        """The number of features that the tiles see."""
        return self.n_inputs + len(self.knot)

    @property
    def knots(self) -> list[np.ndarray]:
        """The knots of each column, none for a column without a curve."""
        knots = [np.zeros(0)] * self.n_inputs
        for f, first, last in zip(self.column, self.start[:-1], self.start[1:], strict=True):
            knots[f] = self.knot[first:last]
        return knots

    @property
    def pieces(self) -> "Pieces":
        """Itself."""
        return self

    @property
    def owner(self) -> np.ndarray:
        """The input column of each feature that the tiles see."""
        return np.concatenate([np.arange(self.n_inputs), np.repeat(self.column, np.diff(self.start))])

    # ---- rows -------------------------------------------------------------------------------------------

    def rows(self, X):
        """Return the rows themselves for the gate, and encoded rows for the tiles."""
        return X, EncodedRows.of(self, X)

    def scored_rows(self, X):
        """Return the rows themselves for both."""
        return X, X

    def straight_terms(self, X):
        """The straight terms alone, in the precision of X: standardized and clipped columns."""
        center, scale, reach = (part.astype(X.dtype) for part in (self.center, self.scale, self.reach))
        if not self.implicit_zeros:
            return np.clip(((X.toarray() if sparse.issparse(X) else X) - center) * scale, -reach, reach)
        terms = sparse.csr_array(X, copy=True)
        terms.data = np.clip(terms.data * scale[terms.indices], -reach[terms.indices], reach[terms.indices])
        return terms

    def core(self, dtype):
        """The map in the core, for rows of this precision."""
        name, kind = ("_core32", _core.PiecesF32) if dtype == np.float32 else ("_core64", _core.PiecesF64)
        if name not in self.__dict__:
            kept = np.where(self.knot == 0, 0.0, 1.0) if self.implicit_zeros else np.ones(len(self.knot))
            self.__dict__[name] = kind(
                self.center, self.scale, -self.reach, self.reach, self.column, self.start, self.knot, kept
            )
        return self.__dict__[name]

    def __getstate__(self):
        # What is packed in the core, or folded, is made again on demand.
        return {field.name: getattr(self, field.name) for field in fields(self)}

    # ---- weights ----------------------------------------------------------------------------------------

    @cached_property
    def folded(self) -> "Folded":
        """The map with straight terms folded into the curves."""
        return Folded(self)

    def pack(self, coef):
        """Weights in the form of the scorer (see core/curves.hpp), and their curves."""
        folded = self.folded
        weights = (coef.reshape(-1, self.n_features) @ folded.matrix).reshape(*coef.shape[:-1], folded.matrix.shape[1])
        return weights, (folded.arguments, self.implicit_zeros)

    def expand(self, X):
        """The features that the tiles see, as a CSR matrix of float64: for a few rows, or for tests."""
        if self.implicit_zeros:
            X = sparse.coo_array(X)
            (row, column), value = X.coords, X.data
        else:
            X = dense(X)
            (row, column), value = np.indices(X.shape).reshape(2, -1), X.ravel()
        entry, feature, value = self.features_of(column, value.astype(np.float64))
        places = row[entry].astype(np.int32), feature.astype(np.int32)
        return sparse.csr_array((value, places), shape=(X.shape[0], self.n_features))

    def features_of(self, column, value):
        """The features of single entries, in plain NumPy.

        Parameters
        ----------
        column : ndarray of int, shape (n,)
        value : ndarray of shape (n,)

        Returns
        -------
        entry, feature, value : ndarrays of equal length
            One line per feature that is not zero, but for those of straight terms, which are all there.
        """
        entries = [np.arange(len(column))]
        features = [np.asarray(column, dtype=np.int64)]
        values = [np.clip((value - self.center[column]) * self.scale[column], -self.reach[column], self.reach[column])]
        order = np.argsort(column, kind="stable")
        bounds = np.searchsorted(column[order], [self.column, self.column + 1])
        for c, (first, last) in enumerate(bounds.T):
            here, u = order[first:last], self.knot[self.start[c] : self.start[c + 1]]
            for hat, weight in zip(*_hats(u, value[here], self.implicit_zeros), strict=True):
                there = weight > 0
                entries.append(here[there])
                features.append(self.n_inputs + self.start[c] + hat[there])
                values.append(weight[there])
        return np.concatenate(entries), np.concatenate(features), np.concatenate(values)

    # ---- explanations -----------------------------------------------------------------------------------

    def names(self, feature_names, n_features):
        """The names of the columns."""
        return column_names(feature_names, self.n_inputs)

    def values(self, X):
        """The rows themselves."""
        return dense(X)

    def contributions(self, coef, X):
        """The value of each column's curve."""
        X = dense(X)
        X = X.reshape(X.shape[0], *(1,) * (coef.ndim - 2), X.shape[1])
        out = coef[..., : self.n_inputs] * np.clip((X - self.center) * self.scale, -self.reach, self.reach)
        for c, f in enumerate(self.column):
            value, u = X[..., f : f + 1], self.knot[self.start[c] : self.start[c + 1]]
            for hat, weight in zip(*_hats(u, value, self.implicit_zeros), strict=True):
                at = self.n_inputs + self.start[c] + hat
                if len(coef) == 1 and coef.ndim == 2:  # one line of weights for all rows
                    out[..., f] += (weight * coef[0, at])[..., 0]
                    continue
                at = np.broadcast_to(at, (*coef.shape[:-1], 1))
                out[..., f] += (weight * np.take_along_axis(coef, at, axis=-1))[..., 0]
        return out

    def strengths(self, coef):
        """The largest minus the smallest value of each column's curve at its knots; of a straight term, its weight."""
        folded = self.folded
        values, _ = self.pack(coef)
        out = np.empty((*coef.shape[:-1], self.n_inputs))
        out[..., folded.straight] = np.abs(values[..., : len(folded.straight)])
        for f, here in zip(self.column, folded.places, strict=True):
            out[..., f] = np.ptp(values[..., here], axis=-1)
        return out


class EncodedRows:
    """Rows with the bins of their curves; a matrix of the map's features that is never formed.

    Parameters
    ----------
    pieces : Pieces
    inputs : ndarray or CSR matrix of shape (n_rows, n_inputs)
        Float32 or float64.
    bins : ndarray of uint8
        Of shape (n_rows, n_curves), or one per stored entry of a CSR matrix.
    """

    ndim = 2

    def __init__(self, pieces, inputs, bins):
        self.pieces = pieces
        self.inputs = inputs
        self.bins = bins

    @classmethod
    def of(cls, pieces, X):
        """Find the bins of rows, dense or sparse."""
        if pieces.implicit_zeros:
            X = sparse.csr_array(X) if not sparse.issparse(X) else X.tocsr()
            if not X.has_canonical_format:
                X = X.copy()
                X.sum_duplicates()
            bins = np.empty(X.nnz, dtype=np.uint8)
            pieces.core(X.dtype).encode_sparse(X.data, X.indices.astype(np.int32, copy=False), bins)
        else:
            X = np.ascontiguousarray(X.toarray() if sparse.issparse(X) else X)
            bins = np.empty((X.shape[0], len(pieces.column)), dtype=np.uint8)
            pieces.core(X.dtype).encode(X, bins)
        return cls(pieces, X, bins)

    @property
    def shape(self) -> tuple[int, int]:
        return self.inputs.shape[0], self.pieces.n_features

    @property
    def dtype(self) -> np.dtype:
        return self.inputs.dtype

    def __len__(self) -> int:
        return self.inputs.shape[0]

    def __getitem__(self, rows):
        if self.pieces.implicit_zeros:
            return EncodedRows.of(self.pieces, self.inputs[rows])
        return EncodedRows(self.pieces, self.inputs[rows], self.bins[rows])

    def astype(self, dtype):
        """The rows in another precision."""
        return self if dtype == self.dtype else EncodedRows.of(self.pieces, self.inputs.astype(dtype))

    def toarray(self):
        """All features, float64: for a few rows."""
        return self.pieces.expand(self.inputs).toarray()

    def in_core(self, bias) -> Any:
        """The rows in the core, with a constant appended."""
        core = self.pieces.core(self.dtype)
        X = self.inputs
        if self.pieces.implicit_zeros:
            indices, indptr = X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64, copy=False)
            return _core.encoded_sparse_rows(core, X.data, indices, indptr, self.bins, bias)
        return _core.encoded_rows(core, np.ascontiguousarray(X), np.ascontiguousarray(self.bins), bias)


def _hats(knots, value, implicit_zeros):
    """The two hats of each value that may not be zero, and their values; that of an implicit zero is left out."""
    left = np.searchsorted(knots[1:-1], value, side="right")
    fraction = np.clip((value - knots[left]) / (knots[left + 1] - knots[left]), 0.0, 1.0)
    hats, weights = (left, left + 1), (1.0 - fraction, fraction)
    if implicit_zeros:
        weights = tuple(np.where(knots[hat] == 0, 0.0, weight) for hat, weight in zip(hats, weights, strict=True))
    return hats, weights


def sampled(X, sample_weight=None, rng=None):
    """The rows that knots are found from, at most `SAMPLE`, and their weights.

    Parameters
    ----------
    X : ndarray or CSR matrix
    sample_weight : ndarray of shape (n_samples,), optional
    rng : RandomState, optional
    """
    here, weight = sample_of(X.shape[0], sample_weight, rng)
    return X if here is None else X[here], weight


def sample_of(n_rows, sample_weight=None, rng=None):
    """The indices of these rows, None for all of them, and their weights."""
    weight = np.ones(n_rows) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if n_rows <= SAMPLE:
        return None, weight
    rng = np.random.RandomState(0) if rng is None else rng
    drawn = np.zeros(n_rows, dtype=bool)  # sorts faster than np.sort
    drawn[rng.choice(n_rows, SAMPLE, replace=False)] = True
    here = np.flatnonzero(drawn)
    return here, weight[here]


class Folded:
    """Pieces with the straight term of each curve folded into the curve: the ends where it is clipped become knots.

    Attributes
    ----------
    straight : ndarray of int
        The columns without a curve.
    knots : list of ndarray
        The knots of each curve.
    places : list of slice
        Where the values of each curve stand among the packed weights.
    matrix : CSR matrix of shape (n_features, n_packed)
        Turns weights over the map's features into packed ones: slopes of columns without a curve, the values of the
        curves at their knots, and the sum of all curves at zero.
    arguments : tuple
        Of the core's class.
    """

    def __init__(self, pieces):
        self.knots = []
        for f, first, last in zip(pieces.column, pieces.start[:-1], pieces.start[1:], strict=True):
            ends = pieces.center[f] + np.array([-1, 1]) * pieces.reach[f] / (pieces.scale[f] or np.inf)
            self.knots.append(np.union1d(pieces.knot[first:last], ends[np.isfinite(ends)]))
        start = np.cumsum([0, *map(len, self.knots)])
        knot = np.concatenate([np.zeros(0), *self.knots])
        self.straight = np.setdiff1d(np.arange(pieces.n_inputs), pieces.column)
        n_straight = len(self.straight)
        self.places = [slice(n_straight + a, n_straight + b) for a, b in itertools.pairwise(start)]

        at_knot, feature, value = pieces.features_of(np.repeat(pieces.column, np.diff(start)), knot)
        _, at_zero, zero = pieces.features_of(np.arange(pieces.n_inputs), np.zeros(pieces.n_inputs))
        packed = n_straight + len(knot)
        self.matrix = sparse.csr_array(
            (
                np.concatenate([np.ones(n_straight), value, zero]),
                (
                    np.concatenate([self.straight, feature, at_zero]),
                    np.concatenate([np.arange(n_straight), n_straight + at_knot, np.full(len(zero), packed)]),
                ),
            ),
            shape=(pieces.n_features, packed + 1),
        )
        unclipped = np.full(pieces.n_inputs, np.inf)
        self.arguments = (
            pieces.center, pieces.scale, -unclipped, unclipped, pieces.column, start.astype(np.int32), knot,
            np.ones(len(knot)),
        )  # fmt: skip
