"""Curves: the effect of each feature of a model with pieces, and of each column of a table on any model."""

from dataclasses import dataclass

import numpy as np

from svmosaic.explain.contributions import Table, names_of
from svmosaic.gates import SeveralGates
from svmosaic.gates.composed import n_choices
from svmosaic.rows import evenly

# Points of a curve over time; of one that is a mean of scores, and the rows that it is the mean of.
DATES, QUANTILES, AVERAGED_ROWS = 120, 20, 200


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
        values : ndarray of shape (..., n_knots)
            Values at the knots.

        Returns
        -------
        ndarray of shape (..., n_points)
        """
        x = np.asarray(x, dtype=np.float64)
        if self.straight:
            part = (x - self.knots[0]) / (self.knots[1] - self.knots[0])
            return values[..., :1] + part * (values[..., 1:] - values[..., :1])
        lines = [np.interp(x, self.knots, line) for line in values.reshape(-1, len(self.knots))]
        return np.array(lines).reshape(*values.shape[:-1], *x.shape)

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
    """The curves of a mosaic with pieces; tiles count by their rows in the means, or alike."""
    pieces = mosaic.features.pieces
    if pieces is None:
        raise AttributeError("this model has no curves: its tiles are linear in the features; fit it with pieces=16")
    rows = np.ones(mosaic.n_tiles) if rows_per_tile is None else rows_per_tile
    gate, owner, factors = mosaic.gate, np.zeros(mosaic.n_tiles, dtype=int), np.ones(1)
    if isinstance(gate, SeveralGates):
        # A gate of several trees counts once for each of them.
        owner, factors = gate.gate_of_tile, np.repeat(gate.factors, [n_choices(one) for one in gate.gates])
    total = np.maximum(np.bincount(owner, rows, len(factors)), np.finfo(float).tiny)
    share = rows * (factors / total)[owner]
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


@dataclass(frozen=True, eq=False)
class Effect:
    """The effect of a column on the scores, an entry of the result of `effects`.

    Curves are relative to their mean over the rows. They are exact: linear between the points, which include every
    bend. For dates, whose months, weekdays and hours may matter, the points are evenly spaced. If all tiles are only
    numbers, as in kernel machines, a curve is the mean score of up to 200 rows with the column set to each point
    (partial dependence), and the points are quantiles.

    Attributes
    ----------
    name : str
        The name of the column.
    is_text : bool
        Whether the column holds categories.
    points : ndarray of float, or list of str
        Values of the column.
    mean : ndarray of shape (n_outputs, n_points)
        The mean effect over all rows, with the average weights of the tiles.
    regions : ndarray of shape (n_regions, n_outputs, n_points)
        The same over the rows of each region.

    See Also
    --------
    svmosaic.explain.effects : Computes the effects of all columns.
    """

    name: str
    is_text: bool
    points: np.ndarray | list
    mean: np.ndarray
    regions: np.ndarray


def effects(model, X, columns=None) -> list:
    """Compute the effect curves of columns.

    Parameters
    ----------
    model : fitted estimator with tiles, pipeline that ends in one, or TrainedModel
    X : table, array or sparse matrix
        Rows in the form that the model takes. At most 20,000 evenly spaced rows are used.
    columns : list of str, optional
        Only these.

    Returns
    -------
    list of Effect
        Their regions are the tiles that have rows, in order.

    See Also
    --------
    importances : Ranks the columns.
    svmosaic.explain.displays.CurveDisplay : Plots the curves of the features.

    Examples
    --------
    >>> from svmosaic import LinearSVC
    >>> from svmosaic.datasets import make_xor
    >>> from svmosaic.explain import effects
    >>> X, y = make_xor(random_state=0)
    >>> effect, _ = effects(LinearSVC(pieces=4, random_state=0).fit(X, y), X)
    >>> effect.mean.shape
    (1, 4)
    """
    from svmosaic.explain.subject import sampled  # here: estimators have curves, and a subject reads pipelines

    subject = sampled(model, X)
    chosen = list(range(len(subject.columns)))
    if columns is not None:
        unknown = [name for name in columns if name not in subject.names]
        if unknown:
            raise ValueError(f"columns has {unknown[0]!r}, which is not a column of X: {', '.join(subject.names)}")
        chosen = [subject.names.index(name) for name in columns]
    _, region = np.unique(subject.home, return_inverse=True)
    return effect_curves(subject, chosen, region, int(region.max()) + 1)


def effect_curves(subject, chosen, region_of_row, n_regions) -> list:
    """Effects of the columns with the indices `chosen`, in each region and over all rows."""
    if not subject.has_contributions:
        return [_dependence(subject, j, region_of_row, n_regions) for j in chosen]
    mosaic, prepared = subject.mosaic, subject.preparation
    # Mean weights of the tiles over the rows of each region, and last over all rows.
    tile, weight = subject.codes
    place = region_of_row[:, None].astype(np.int64) * mosaic.n_tiles + tile
    total = np.bincount(place.ravel(), weight.ravel(), n_regions * mosaic.n_tiles).reshape(n_regions, mosaic.n_tiles)
    n_rows = np.maximum(np.bincount(region_of_row, minlength=n_regions), 1)[:, None]
    share = np.concatenate([total / n_rows, total.sum(axis=0, keepdims=True) / max(subject.n_rows, 1)])
    share = share[:, mosaic.sloped_tiles]
    curves = None if mosaic.features.pieces is None else curves_of(mosaic, None, subject.head.output_names)
    center, factor = mosaic.features.affine or (None, None)
    found = []
    for j in chosen:
        column, values = subject.columns[j], subject.values(j)
        bends = [np.zeros(0)]
        for f in column.features:
            knots = np.zeros(0) if curves is None or curves[f].straight else curves[f].knots
            for step in reversed(prepared.steps):
                knots = knots / step.factor[f] + step.center[f]
            bends.append(knots)
        points = _points(column, values, np.concatenate(bends))
        tiles = np.zeros((*mosaic.coef.shape[:2], len(points)))
        for f, z in zip(column.features, subject.features_at(j, points).T, strict=True):  # none if it was left out
            if curves is not None:
                tiles += curves[f].at(z, curves[f].sloped)
            else:
                z = z if factor is None else (z - (0.0 if center is None else center[f])) * factor[f]
                tiles += mosaic.coef[:, :, f, None] * z
        effect = np.einsum("rk,kcp->rcp", share, tiles) * subject.scale[:, None]
        found.append(_centered(column, values, points, effect))
    return found


def _dependence(subject, j, region_of_row, n_regions):
    """Partial dependence on a column: mean scores of some rows with other values in it."""
    column, values = subject.columns[j], subject.values(j)
    quantiles = np.zeros(0)
    if not column.is_text and not np.isnan(values).all():
        quantiles = np.nanquantile(values, np.linspace(0, 1, QUANTILES), method="nearest")
    points = _points(column, values, quantiles)
    rows = evenly(subject.n_rows, AVERAGED_ROWS)
    X, region = subject.X[rows], region_of_row[rows]
    scores = np.stack([subject.scores_with(X, j, at) for at in subject.features_at(j, points)], axis=2)
    # A region without any of these rows has the curve of all.
    here = [region == r if (region == r).any() else slice(None) for r in range(n_regions)]
    return _centered(column, values, points, np.stack([scores[some].mean(axis=0) for some in [*here, slice(None)]]))


def _points(column, values, knots):
    """The texts of a column, or its ends and the knots between them."""
    if column.is_text:
        there, counts = np.unique(values.astype(str), return_counts=True)
        return [str(text) for text in there[np.argsort(-counts, kind="stable")]]
    low, high = np.nanmin(values, initial=np.inf), np.nanmax(values, initial=-np.inf)
    if not low < high:
        low, high = (0.0, 1.0) if low > high else (low, low + 1.0)
    if column.is_date:
        return np.linspace(low, high, DATES)
    return np.unique(np.concatenate([[low], knots[(knots > low) & (knots < high)], [high]]))


def _centered(column, values, points, curves):
    """The effect relative to its mean over the rows, from curves of shape (n_regions + 1, n_outputs, n_points)."""
    n_rows = max(len(values), 1)
    if column.is_text:
        place = {text: i for i, text in enumerate(points)}
        at = np.bincount([place[str(v)] for v in values], minlength=len(points)) / n_rows
    else:  # a row between two points counts for both in part
        values = values[~np.isnan(values)]
        left = np.clip(np.searchsorted(points, values, side="right") - 1, 0, len(points) - 2)
        part = np.clip((values - points[left]) / (points[left + 1] - points[left]), 0.0, 1.0)
        at = (np.bincount(left, 1.0 - part, len(points)) + np.bincount(left + 1, part, len(points))) / n_rows
    curves = curves - (curves * at).sum(axis=2, keepdims=True)
    return Effect(column.name, column.is_text, points, curves[-1], curves[:-1])
