"""Ensembles: a weighted sum of mosaics is a mosaic.

>>> import numpy as np
>>> from svmosaic import ClusteredSVC, LinearSVC
>>> from svmosaic.model.blending import blend
>>> from svmosaic.datasets import make_xor
>>> X, y = make_xor(random_state=0)
>>> parts = [ClusteredSVC(4, random_state=0).fit(X, y).mosaic_, LinearSVC(random_state=0).fit(X, y).mosaic_]
>>> both = blend(parts, [0.7, 0.3])
>>> both.n_tiles
5
>>> expected = 0.7 * parts[0].decision_function(X) + 0.3 * parts[1].decision_function(X)
>>> bool(np.allclose(both.decision_function(X), expected))
True
"""

import numpy as np

from svmosaic._validation import MOST_KNOTS
from svmosaic.gates import ScaledGate, SeveralGates, SingleCell
from svmosaic.maps import Pieces, Scaling, same_map
from svmosaic.model.mosaic import Mosaic

# Standard deviations up to which straight tiles continue in a blend with curves.
REACH = 100.0
# Knots that differ by less than this share of their range are merged: the scaling of rows rounds them.
SAME_KNOT = 1e-9


def blend(mosaics, weights=None) -> Mosaic:
    r"""Return the mosaic whose scores are a weighted sum of the scores of others.

    The result has all their tiles, and a gate that combines their gates, so everything that a mosaic can do
    (prediction, explanation, files, exports) works as for a single model. Linear models are merged into one tile.

    Mosaics that share a feature map keep it. Different scalings are applied inside the result: in the weights of the
    tiles, and before each gate. If some mosaics have pieces, the result has the knots of all of them, and tiles without
    pieces continue as straight lines up to 100 standard deviations from the mean, or ten times as far as the outermost
    knot.

    Parameters
    ----------
    mosaics : sequence of Mosaic
        They must have the same number of outputs and features, and the same link. To blend several, the link must be
        the identity, and their gates must be evaluated in the core.
    weights : array-like of shape (n_mosaics,), optional
        Finite weights. None: equal weights that sum to one.

    Returns
    -------
    Mosaic

    See Also
    --------
    svmosaic.model.mosaic.Mosaic : The fitted form of all models, their attribute `mosaic_`.
    svmosaic.MosaicClassifier : Searches for models and blends the best few.
    """
    mosaics = list(mosaics)
    if not mosaics:
        raise ValueError("mosaics must hold at least one mosaic")
    weights = np.full(len(mosaics), 1.0 / len(mosaics)) if weights is None else np.asarray(weights, dtype=np.float64)
    if weights.shape != (len(mosaics),) or not np.isfinite(weights).all():
        raise ValueError(f"weights must be {len(mosaics)} finite numbers, one per mosaic, got {weights!r}")
    for name, values in {
        "outputs": [m.coef.shape[1] for m in mosaics],
        "link": [m.link for m in mosaics],
    }.items():
        if len(set(values)) > 1:
            raise ValueError(f"mosaics must have the same {name}, got {values}")
    shared = mosaics[0].feature_map
    if not all(same_map(m.feature_map, shared) for m in mosaics):
        shared = _union([m.features for m in mosaics])
        mosaics = [_over_rows(m, shared) for m in mosaics]
    if len({m.coef.shape[2] for m in mosaics}) > 1:
        raise ValueError(f"mosaics must have the same features, got {[m.coef.shape[2] for m in mosaics]}")
    factors, parts = zip(*_parts(mosaics, weights), strict=True)
    singles = [isinstance(part.gate, SingleCell) for part in parts]
    if sum(singles) > 1 and mosaics[0].link == "identity":
        pairs = list(zip(factors, parts, singles, strict=True))
        coef = sum(factor * part.over_tiles(part.coef) for factor, part, single in pairs if single)
        intercept = sum(factor * part.intercept for factor, part, single in pairs if single)
        factors = (*(factor for factor, _, single in pairs if not single), 1.0)
        parts = (*(part for _, part, single in pairs if not single), Mosaic(SingleCell(), coef, intercept))
    if len(parts) == 1:
        (part,), (factor,) = parts, factors
        if mosaics[0].link != "identity" and factor != 1.0:
            raise ValueError(f"a single mosaic with the link {mosaics[0].link!r} cannot be weighted, got {weights!r}")
        coef, intercept = factor * part.coef, factor * part.intercept
        return Mosaic(part.gate, coef, intercept, mosaics[0].link, shared, part.sloped)
    if all(isinstance(part.gate, SingleCell) for part in parts):
        raise ValueError(f"linear models with the link {mosaics[0].link!r} cannot be blended")
    coef, intercept = (np.concatenate([getattr(part, name) for part in parts]) for name in ("coef", "intercept"))
    first = np.cumsum([0, *(part.n_tiles for part in parts)], dtype=np.int32)
    sloped = np.concatenate([start + part.sloped_tiles for start, part in zip(first[:-1], parts, strict=True)])
    return Mosaic(
        SeveralGates(tuple(part.gate for part in parts), np.array(factors)), coef, intercept, mosaics[0].link, shared,
        None if len(sloped) == first[-1] else sloped,
    )  # fmt: skip


def _parts(mosaics, weights):
    """Yield (factor, mosaic) for each gate, without link and feature map; a gate of several gates is split up."""
    for mosaic, weight in zip(mosaics, weights, strict=True):
        if not hasattr(mosaic.gate, "core_arguments"):
            raise ValueError(f"a {type(mosaic.gate).__name__} cannot be blended: it is not evaluated in the core")
        if not isinstance(mosaic.gate, SeveralGates):
            yield float(weight), mosaic
            continue
        first = 0
        for gate, factor in zip(mosaic.gate.gates, mosaic.gate.factors, strict=True):
            last = first + gate.n_tiles
            here = slice(*np.searchsorted(mosaic.sloped_tiles, [first, last]))
            sloped = None if mosaic.sloped is None else mosaic.sloped[here] - np.int32(first)
            yield float(weight * factor), Mosaic(gate, mosaic.coef[here], mosaic.intercept[first:last], sloped=sloped)
            first = last


def _union(features) -> Pieces | None:
    """Pieces over unscaled rows that have all knots of these maps; None if all maps are scalings."""
    if not all(one.portable for one in features):
        raise ValueError("mosaics with different feature maps cannot be blended: only scalings and pieces can be")
    bent = [one for one in features if one.pieces is not None]
    if not bent:
        return None
    center, scale = _straight(bent[0])
    scale = np.where(scale == 0, 1.0, scale)
    knots = [_merged([_knots(one)[f] for one in bent if f in _knots(one)]) for f in range(len(center))]
    if max(map(len, knots)) > MOST_KNOTS - 2:
        raise ValueError(f"mosaics to be blended have more than {MOST_KNOTS - 2} knots in a column together")
    farthest = [np.abs((u - c) * s).max(initial=0.0) for u, c, s in zip(knots, center, scale, strict=True)]
    reach = np.where([len(u) > 0 for u in knots], np.maximum(REACH, 10.0 * np.array(farthest)), np.inf)
    return Pieces.of_knots(knots, center, scale, reach, bent[0].pieces.implicit_zeros)


def _straight(features):
    """Center and factor of the straight terms of a map over unscaled rows."""
    center, factor = features.affine or (None, 1.0)
    center = 0.0 if center is None else center
    if features.pieces is None:
        return center, factor
    return center + features.pieces.center / factor, features.pieces.scale * factor


def _knots(features) -> dict:
    """The knots of each column with a curve, straight terms included, in the units of unscaled rows."""
    center, factor = features.affine or (None, np.ones(features.pieces.n_inputs))
    center = np.zeros(len(factor)) if center is None else center
    pairs = zip(features.pieces.column.tolist(), features.pieces.folded.knots, strict=True)
    return {f: u / factor[f] + center[f] for f, u in pairs}


def _merged(parts):
    """All knots of a column; knots that differ only by rounding are merged."""
    if not parts:
        return np.zeros(0)
    u = np.unique(np.concatenate(parts))
    apart = np.diff(u) > SAME_KNOT * max(np.ptp(u), np.abs(u).max() * SAME_KNOT)
    return u[np.append(True, apart)]


def _over_rows(mosaic, shared) -> Mosaic:
    """The same mosaic over unscaled rows: its scaling applied before the gate, its tiles in the shared pieces."""
    features, gate = mosaic.features, mosaic.gate
    if features.affine is not None:
        scaling = Scaling(*features.affine)
        if isinstance(gate, SeveralGates):
            gate = SeveralGates(tuple(_scaled(part, scaling) for part in gate.gates), gate.factors)
        else:
            gate = _scaled(gate, scaling)
    n_inputs = mosaic.coef.shape[2] if features.pieces is None else features.pieces.n_inputs
    center, factor = (np.broadcast_to(part, n_inputs) for part in _straight(features))
    slope = mosaic.coef[..., :n_inputs].copy()
    curves = {}
    if features.pieces is not None:
        slope[..., features.pieces.column] = 0.0
        values, own = features.pieces.pack(mosaic.coef)[0], _knots(features)
        curves = {f: (own[f], values[..., here]) for f, here in zip(own, features.pieces.folded.places, strict=True)}
    slope, folded = Scaling(center, factor).fold(slope, mosaic.intercept[mosaic.sloped_tiles])
    intercept = mosaic.intercept.astype(folded.dtype)  # a copy: tiles that are only a number stay as they are
    intercept[mosaic.sloped_tiles] = folded
    if shared is None:
        return Mosaic(gate, slope, intercept, mosaic.link, sloped=mosaic.sloped)
    coef = np.zeros((*slope.shape[:2], shared.n_features))
    coef[..., :n_inputs] = slope / shared.scale
    places = zip(shared.column.tolist(), shared.start[:-1], shared.start[1:], strict=True)
    for f, first, last in places:
        if f in curves:
            u, values = curves[f]
            hats = coef[..., n_inputs + first : n_inputs + last]
            at_knots = np.array([np.interp(shared.knots[f], u, unit) for unit in np.eye(len(u))])
            hats[:] = values @ at_knots
    intercept[mosaic.sloped_tiles] += slope @ shared.center
    return Mosaic(gate, coef, intercept, mosaic.link, shared, mosaic.sloped)


def _scaled(gate, scaling):
    return gate if isinstance(gate, SingleCell) else ScaledGate(scaling.center, scaling.factor, gate)
