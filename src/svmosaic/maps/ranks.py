r"""Ranks: columns scaled by the rank of each value among the others.

A column becomes the share of the rows below its value, equal values counting by half,

.. math:: z_f(x) = \frac{F_f(x) - \mu_f}{\sigma_f} , \qquad F_f(u) = P(X_f < u) + \tfrac12 P(X_f = u) ,

with the mean and the standard deviation of F over the rows: mean 0 and variance 1, as of a uniform distribution for a
column without ties. F is taken at a few quantiles, linear between them and constant beyond. No monotone
transformation of a column changes z, except between the knots.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from svmosaic.gates import CurvedGate, ProjectedGate, SeveralGates, SingleCell
from svmosaic.maps.pieces import Pieces, sampled

# Quantiles per column at most. Tiles hold a number for each, so that more would make models larger.
KNOTS = 32


@dataclass(frozen=True, eq=False)
class Ranks:
    """Ranks of dense columns, used before a model in place of a `Scaling`.

    A curve per column in front of linear tiles is the same as tiles with curves. So the ranks do not stay: `over_rows`
    makes a model over ranks one over the rows themselves.

    Attributes
    ----------
    pieces : Pieces
        The knots. Columns with one or two values have none, and are standardized, which is the same; a constant is 0.
    value : ndarray of shape (n_hats,)
        z at the knots.

    See Also
    --------
    FeatureMap : The interface of a feature map.
    """

    pieces: Pieces
    value: np.ndarray

    @classmethod
    def fit(cls, X, sample_weight=None, rng=None, n_jobs=None) -> "Ranks":
        """Find the quantiles of the columns, from a sample if there are many rows.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
        sample_weight : ndarray of shape (n_samples,), optional
        rng : RandomState, optional
            For the sample.
        n_jobs : int, optional
            Does not change the result.
        """
        _check_dense(X)
        X, weight = sampled(X, sample_weight, rng)
        knots = Pieces.fit(X, KNOTS, weight, n_jobs=n_jobs).knots
        share = weight / weight.sum()
        center, spread = _moments(X.astype(np.float64), share)
        with np.errstate(divide="ignore"):
            factor = np.where(spread > 0, 1.0 / spread, 0.0)
        pieces = Pieces.of_knots(knots, center, factor, np.full(len(center), np.inf))
        return cls(pieces, np.concatenate([np.zeros(0), *(_ranks(X[:, f], share, knots[f]) for f in pieces.column)]))

    def scale(self, X):
        """Return the scaled rows, in their precision."""
        _check_dense(X)
        pieces = self.pieces
        center, factor = (part.astype(X.dtype, copy=False) for part in (pieces.center, pieces.scale))
        scaled = (X - center) * factor
        for f, first, last in zip(pieces.column, pieces.start[:-1], pieces.start[1:], strict=True):
            scaled[..., f] = np.interp(X[..., f], pieces.knot[first:last], self.value[first:last])
        return scaled

    def over_rows(self, mosaic):
        """The mosaic over unscaled rows with the same scores as the given mosaic over their ranks."""
        if mosaic.feature_map is not None:
            raise ValueError(
                f"ranks cannot precede a {type(mosaic.feature_map).__name__}: fit the model without pieces "
                "and without a feature map"
            )
        gate = mosaic.gate
        if isinstance(gate, SeveralGates):
            gate = SeveralGates(tuple(map(self._gate, gate.gates)), gate.factors)
        else:
            gate = self._gate(gate)
        return replace(mosaic, gate=gate, coef=self._bent(mosaic.coef), feature_map=self.pieces)

    def _gate(self, gate):
        if isinstance(gate, SingleCell):
            return gate
        if not isinstance(gate, ProjectedGate):
            gate = ProjectedGate(np.eye(self.pieces.n_inputs), gate)
        return CurvedGate.of_pieces(self.pieces, self._bent(gate.projection), gate.inner)

    def _bent(self, coef):
        """Weights over the features of the pieces that do to a row what the given ones do to its ranks."""
        straight = np.array(coef, dtype=np.float64)
        hats = straight[..., self.pieces.owner[self.pieces.n_inputs :]] * self.value
        straight[..., self.pieces.column] = 0.0
        return np.concatenate([straight, hats], axis=-1)


def _check_dense(X):
    if sparse.issparse(X):
        raise ValueError("ranks need dense rows, because the rank of zero is not zero: pass X.toarray()")


def _ranks(x, share, knots):
    """z of a column at its knots."""
    order = np.argsort(x, kind="stable")
    below = np.concatenate([[0.0], np.cumsum(share[order])])
    first, last = (np.searchsorted(x[order], knots, side=side) for side in ("left", "right"))
    ranks = 0.5 * (below[first] + below[last])
    center, spread = _moments(np.interp(x, knots, ranks), share)
    return (ranks - center) / spread if spread > 0 else np.zeros(len(knots))


def _moments(X, share):
    """Mean and standard deviation of columns; exactly zero for those that are constant."""
    center = share @ X
    spread = np.sqrt(share @ (X - center) ** 2)
    return center, np.where(X.min(axis=0) == X.max(axis=0), 0.0, spread)
