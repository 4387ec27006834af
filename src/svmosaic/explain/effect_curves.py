"""The effect of each column on the score: exact curves in the units of the table, overall and region by region."""

from dataclasses import dataclass

import numpy as np

from svmosaic.explain.curves import curves_of
from svmosaic.explain.subject import Subject, sampled
from svmosaic.rows import evenly

DATES = 120  # points of a curve over time
# Points of a curve, and rows that it is the mean of, if tiles are only numbers.
QUANTILES, AVERAGED_ROWS = 20, 200


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
    subject = sampled(model, X)
    chosen = list(range(len(subject.columns)))
    if columns is not None:
        unknown = [name for name in columns if name not in subject.names]
        if unknown:
            raise ValueError(f"columns has {unknown[0]!r}, which is not a column of X: {', '.join(subject.names)}")
        chosen = [subject.names.index(name) for name in columns]
    _, region = np.unique(subject.home, return_inverse=True)
    return effect_curves(subject, chosen, region, int(region.max()) + 1)


def effect_curves(subject: Subject, chosen, region_of_row, n_regions) -> list:
    """Effects of the columns at some indices.

    Parameters
    ----------
    subject : Subject
    chosen : sequence of int
    region_of_row : ndarray of int, shape (n_rows,)
    n_regions : int
    """
    if not subject.has_contributions:
        return [_dependence(subject, j, region_of_row, n_regions) for j in chosen]
    share = _shares(subject, region_of_row, n_regions)[:, subject.mosaic.sloped_tiles]
    curves = _Curves(subject)
    return [_effect(subject, j, share, curves) for j in chosen]


def _shares(subject, region_of_row, n_regions):
    """Mean weights of the tiles over the rows of each region, and last over all rows."""
    tile, weight = subject.codes
    n_tiles = subject.mosaic.n_tiles
    place = region_of_row[:, None].astype(np.int64) * n_tiles + tile
    total = np.bincount(place.ravel(), weight.ravel(), n_regions * n_tiles).reshape(n_regions, n_tiles)
    n_rows = np.bincount(region_of_row, minlength=n_regions)
    each = total / np.maximum(n_rows, 1)[:, None]
    return np.concatenate([each, total.sum(axis=0, keepdims=True) / max(subject.n_rows, 1)])


def _effect(subject, j, share, curves):
    column, values = subject.columns[j], subject.values(j)
    knots = np.concatenate([np.zeros(0), *(subject_knots(subject, f, curves) for f in column.features)])
    points = _points(column, values, knots)
    at = subject.features_at(j, points)
    tiles = np.zeros((*subject.mosaic.coef.shape[:2], len(points)))
    for i, f in enumerate(column.features):  # none of a column that was left out
        tiles += curves(f, at[:, i])
    return _centered(column, values, points, np.einsum("rk,kcp->rcp", share, tiles) * subject.scale[:, None])


def _dependence(subject, j, region_of_row, n_regions):
    """The effect of a column if tiles are only numbers: mean scores of rows in which it has other values."""
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


def _centered(column, values, points, found):
    """The effect relative to its mean over the rows, from curves of shape (n_regions + 1, n_outputs, n_points)."""
    found = found - (found * _rows_at(points, values, column.is_text)).sum(axis=2, keepdims=True)
    return Effect(column.name, column.is_text, points, found[-1], found[:-1])


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


def subject_knots(subject, f, curves):
    """Knots of a feature in the units of its column."""
    knots = curves.knots(f)
    for step in reversed(subject.preparation.steps):
        knots = knots / step.factor[f] + step.center[f]
    return knots


def _rows_at(points, values, is_text):
    """How many rows lie at each point, as shares; a row between two points counts for both in part."""
    if is_text:
        place = {text: i for i, text in enumerate(points)}
        return np.bincount([place[str(v)] for v in values], minlength=len(points)) / max(len(values), 1)
    values = values[~np.isnan(values)]
    left = np.clip(np.searchsorted(points, values, side="right") - 1, 0, len(points) - 2)
    fraction = np.clip((values - points[left]) / (points[left + 1] - points[left]), 0.0, 1.0)
    total = np.bincount(left, 1.0 - fraction, len(points)) + np.bincount(left + 1, fraction, len(points))
    return total / max(len(values), 1)


class _Curves:
    """What each feature of an estimator adds to the margins of the tiles that have weights."""

    def __init__(self, subject):
        mosaic = subject.mosaic
        self.coef, self.affine = mosaic.coef, mosaic.features.affine
        self.curves = None
        if mosaic.features.pieces is not None:
            self.curves = curves_of(mosaic, None, subject.head.output_names)

    def knots(self, f):
        """Where the curve of a feature bends."""
        return np.zeros(0) if self.curves is None or self.curves[f].straight else self.curves[f].knots

    def __call__(self, f, z):
        """Values of shape (n_sloped, n_outputs, n_points) at values of the feature."""
        if self.curves is not None:
            curve = self.curves[f]
            return np.array([curve.at(z, values) for values in curve.sloped]).reshape(*curve.sloped.shape[:2], len(z))
        if self.affine is not None:
            center, factor = self.affine
            z = (z - (0.0 if center is None else center[f])) * factor[f]
        return self.coef[:, :, f, None] * z
