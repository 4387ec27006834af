"""Ensembles: a weighted sum of mosaics is a mosaic.

>>> import numpy as np
>>> from svmosaic import ClusteredSVC, LinearSVC
>>> from svmosaic.blending import blend
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

from svmosaic.gates import ScaledGate, SeveralGates, SingleCell
from svmosaic.maps import Scaling, same_map
from svmosaic.mosaic import Mosaic


def blend(mosaics, weights=None) -> Mosaic:
    r"""The mosaic whose scores are a weighted sum of the scores of others.

    The result has all their tiles, and a gate that is made of theirs, so that everything a mosaic can do (prediction,
    explanation, files, exports) works as for one model. Linear models are added up to one tile.

    Mosaics that share a feature map keep it. Scalings that differ are folded in: into the weights of the tiles, and
    in front of each gate.

    Parameters
    ----------
    mosaics : sequence of Mosaic
        With the same number of outputs and features, and the same link. The identity link and gates in the core are
        needed if there are several.
    weights : array-like of shape (n_mosaics,), optional
        Finite. None: all 1 / n_mosaics.

    Returns
    -------
    Mosaic
    """
    mosaics = list(mosaics)
    if not mosaics:
        raise ValueError("mosaics must hold at least one mosaic")
    weights = np.full(len(mosaics), 1.0 / len(mosaics)) if weights is None else np.asarray(weights, dtype=np.float64)
    if weights.shape != (len(mosaics),) or not np.isfinite(weights).all():
        raise ValueError(f"weights must be {len(mosaics)} finite numbers, one per mosaic, got {weights!r}")
    for name, values in {
        "outputs": [m.coef.shape[1] for m in mosaics],
        "features": [m.coef.shape[2] for m in mosaics],
        "link": [m.link for m in mosaics],
    }.items():
        if len(set(values)) > 1:
            raise ValueError(f"mosaics must have the same {name}, got {values}")
    shared = mosaics[0].feature_map
    if not all(same_map(m.feature_map, shared) for m in mosaics):
        mosaics, shared = [_unscaled(m) for m in mosaics], None
    parts = list(_parts(mosaics, weights))
    singles = [part for part in parts if isinstance(part[0], SingleCell)]
    if len(singles) > 1 and mosaics[0].link == "identity":
        coef, intercept = (sum(part[1] * part[i] for part in singles) for i in (2, 3))
        parts = [part for part in parts if not isinstance(part[0], SingleCell)] + [(SingleCell(), 1.0, coef, intercept)]
    gates, factors, coefs, intercepts = zip(*parts, strict=True)
    coef, intercept = np.concatenate(coefs), np.concatenate(intercepts)
    if len(gates) == 1:
        if mosaics[0].link != "identity" and factors[0] != 1.0:
            raise ValueError(f"a single mosaic with the link {mosaics[0].link!r} cannot be weighted, got {weights!r}")
        return Mosaic(gates[0], factors[0] * coef, factors[0] * intercept, mosaics[0].link, shared)
    if all(isinstance(gate, SingleCell) for gate in gates):
        raise ValueError(f"linear models with the link {mosaics[0].link!r} cannot be blended")
    return Mosaic(SeveralGates(gates, np.array(factors)), coef, intercept, mosaics[0].link, shared)


def _parts(mosaics, weights):
    """(gate, factor, coef, intercept) of each gate; a gate that is several is taken apart."""
    for mosaic, weight in zip(mosaics, weights, strict=True):
        if not hasattr(mosaic.gate, "core_arguments"):
            raise ValueError(f"a {type(mosaic.gate).__name__} cannot be blended: it is not evaluated in the core")
        if not isinstance(mosaic.gate, SeveralGates):
            yield mosaic.gate, float(weight), mosaic.coef, mosaic.intercept
            continue
        first = 0
        for gate, factor in zip(mosaic.gate.gates, mosaic.gate.factors, strict=True):
            tiles = slice(first, first + gate.n_tiles)
            yield gate, float(weight * factor), mosaic.coef[tiles], mosaic.intercept[tiles]
            first = tiles.stop


def _unscaled(mosaic) -> Mosaic:
    """The same mosaic with its scaling in the tiles and in front of the gate."""
    features = mosaic.features
    if not features.portable or features.pieces is not None:
        raise ValueError("mosaics with different feature maps cannot be blended: only scalings can be folded in")
    if features.affine is None:
        return mosaic
    scaling = Scaling(*features.affine)
    gate = mosaic.gate
    if isinstance(gate, SeveralGates):
        gate = SeveralGates(tuple(_scaled(part, scaling) for part in gate.gates), gate.factors)
    else:
        gate = _scaled(gate, scaling)
    coef, intercept = scaling.fold(mosaic.coef, mosaic.intercept)
    return Mosaic(gate, coef, intercept, mosaic.link)


def _scaled(gate, scaling):
    return gate if isinstance(gate, SingleCell) else ScaledGate(scaling.center, scaling.factor, gate)
