"""The curves of piecewise-linear tiles: the effect of each feature, tile by tile and overall."""

from dataclasses import dataclass

import numpy as np

from svmosaic.explain.contributions import Table, names_of
from svmosaic.gates import SeveralGates
from svmosaic.gates.several import n_choices


@dataclass(frozen=True, eq=False)
class Curve:
    """The effect of one feature on the margins of the tiles.

    The margin of a tile is the sum of its curves and its intercept.

    Attributes
    ----------
    name : str
        The name of the feature.
    knots : ndarray of shape (n_knots,)
        In the units of the column. A straight feature has two of them.
    sloped : ndarray of shape (n_sloped, n_outputs, n_knots)
        Values at the knots for the tiles that have weights; see `values` for all tiles.
    place : ndarray of int, shape (n_tiles,)
        The index into `sloped` for each tile; -1 for a tile without weights, whose curve is zero.
    mean : ndarray of shape (n_outputs, n_knots)
        The mean over the tiles, weighted by their shares of the training rows: the overall effect.
    straight : bool
        Whether the feature has only a slope, which continues beyond the knots. Other curves are linear between knots
        and constant beyond them.

    See Also
    --------
    Curves : The curves of all features, an attribute `curves_` of fitted models.
    """

    name: str
    knots: np.ndarray
    sloped: np.ndarray
    place: np.ndarray
    mean: np.ndarray
    straight: bool

    @property
    def values(self) -> np.ndarray:
        """Values at the knots, of shape (n_tiles, n_outputs, n_knots)."""
        values = np.zeros((len(self.place), *self.mean.shape))
        values[self.place >= 0] = self.sloped[self.place[self.place >= 0]]
        return values

    def __call__(self, x, tile=None):
        """Evaluate the curve at points.

        Parameters
        ----------
        x : array-like of shape (n_points,)
            Values of the feature.
        tile : int or None, default=None
            The index of a tile; None for the mean over the tiles.

        Returns
        -------
        ndarray of shape (n_outputs, n_points)
        """
        values = self.mean
        if tile is not None:
            place = self.place[tile]
            values = np.zeros_like(self.mean) if place < 0 else self.sloped[place]
        return self.at(x, values)

    def at(self, x, values):
        """Interpolate values that are given at the knots.

        Parameters
        ----------
        x : array-like of shape (n_points,)
            Values of the feature.
        values : ndarray of shape (n_outputs, n_knots)
            Values at the knots.

        Returns
        -------
        ndarray of shape (n_outputs, n_points)
        """
        x = np.asarray(x, dtype=np.float64)
        if self.straight:
            part = (x - self.knots[0]) / (self.knots[1] - self.knots[0])
            return values[:, :1] + part * (values[:, 1:] - values[:, :1])
        return np.array([np.interp(x, self.knots, line) for line in values])

    @property
    def spread(self) -> np.ndarray:
        """The range (maximum minus minimum) of the mean for each output: how much the feature can change a score."""
        return np.ptp(self.mean, axis=1)


@dataclass(frozen=True, eq=False)
class Curves:
    """The curves of all features of a model, in the order of its columns.

    Select a curve by the index or the name of its feature, or iterate over all curves.

    Attributes
    ----------
    curves : list of Curve
        One per feature.
    share : ndarray of shape (n_tiles,)
        The share of the training rows for which each tile has the largest weight. With several gates, the share for
        each gate, multiplied by the factor of the gate.
    output_names : list of str
        For each output, the class that positive values favor.

    See Also
    --------
    svmosaic.explain.displays.CurveDisplay : Plots the curves.
    svmosaic.explain.effects : Curves in the columns and units of a table.

    Examples
    --------
    >>> from svmosaic import KMeansSVC
    >>> from svmosaic.datasets import make_banana
    >>> X, y = make_banana(random_state=0)
    >>> curves = KMeansSVC(4, pieces=6, random_state=0).fit(X, y).curves_
    >>> curves
    Curves of 2 features and 4 tiles
    >>> curves["x1"].mean.shape == (1, len(curves["x1"].knots))
    True
    >>> sorted(curves.ranking()["feature"].tolist())
    ['x0', 'x1']
    """

    curves: list
    share: np.ndarray
    output_names: list

    def __len__(self):
        return len(self.curves)

    def __getitem__(self, feature) -> Curve:
        """Return a curve, by the index or the name of its feature."""
        if isinstance(feature, str):
            names = [curve.name for curve in self.curves]
            if feature not in names:
                raise KeyError(f"there is no feature {feature!r}; there are {', '.join(names)}")
            feature = names.index(feature)
        return self.curves[feature]

    def __iter__(self):
        return iter(self.curves)

    def ranking(self) -> Table:
        """Rank features by the range of their mean effect (the largest over the outputs), largest first."""
        spread = np.array([curve.spread.max() for curve in self.curves])
        order = np.argsort(-spread, kind="stable")
        return Table({"feature": np.array([self.curves[f].name for f in order]), "spread": spread[order]})

    def table(self) -> Table:
        """Return a table with one line per feature, knot, tile and output; tile -1 is the mean over tiles."""
        columns: dict = {"feature": [], "knot": [], "tile": [], "output": [], "value": []}
        for curve in self.curves:
            values = np.concatenate([curve.mean[None], curve.values])
            tile, output, knot = np.indices(values.shape).reshape(3, -1)
            columns["feature"].append(np.full(values.size, curve.name))
            columns["knot"].append(curve.knots[knot])
            columns["tile"].append(tile - 1)
            columns["output"].append(np.asarray(self.output_names)[output])
            columns["value"].append(values.ravel())
        return Table({name: np.concatenate(parts) for name, parts in columns.items()})

    def __repr__(self):
        return f"Curves of {len(self.curves)} features and {len(self.share)} tiles"


def curves_of(mosaic, rows_per_tile, output_names, feature_names=None) -> Curves:
    """Return the curves of a mosaic with pieces.

    Parameters
    ----------
    mosaic : Mosaic
    rows_per_tile : ndarray of shape (n_tiles,) or None
        Weights of the tiles in the means; None for equal weights.
    output_names : list of str
    feature_names : list of str, optional
        Names of the columns.
    """
    pieces = mosaic.features.pieces
    if pieces is None:
        raise AttributeError("this model has no curves: its tiles are linear in the features; fit it with pieces=16")
    share = _shares(mosaic, np.ones(mosaic.n_tiles) if rows_per_tile is None else rows_per_tile)
    packed, folded = pieces.pack(mosaic.coef)[0], pieces.folded
    center, factor = mosaic.features.affine or (None, np.ones(pieces.n_inputs))
    shift = np.zeros(pieces.n_inputs) if center is None else center
    names = names_of(mosaic, feature_names)
    found: list = [None] * pieces.n_inputs

    def keep(f, knots, values, straight):
        mean = np.einsum("k,kcm->cm", share[mosaic.sloped_tiles], values)
        found[f] = Curve(names[f], knots / factor[f] + shift[f], values, mosaic.place_of_tile, mean, straight)

    for k, f in enumerate(folded.straight):
        ends = pieces.center[f] + np.array([0.0, 1.0 / pieces.scale[f] if pieces.scale[f] else 1.0])
        slope = packed[:, :, k]
        top = slope if pieces.scale[f] else np.zeros_like(slope)
        keep(f, ends, np.stack([np.zeros_like(slope), top], axis=-1), True)
    for f, knots, here in zip(pieces.column, folded.knots, folded.places, strict=True):
        keep(f, knots, packed[:, :, here], False)
    return Curves(found, share, list(output_names))


def _shares(mosaic, rows_per_tile):
    gate = mosaic.gate
    owner, factors = np.zeros(mosaic.n_tiles, dtype=int), np.ones(1)
    if isinstance(gate, SeveralGates):
        # A gate of several trees counts once for each of them.
        owner, factors = gate.gate_of_tile, np.repeat(gate.factors, [n_choices(one) for one in gate.gates])
    total = np.maximum(np.bincount(owner, rows_per_tile, len(factors)), np.finfo(float).tiny)
    return rows_per_tile * (factors / total)[owner]
