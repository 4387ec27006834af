"""Gates and curves as the core holds them. This module needs numpy and the core only."""

import numpy as np

from svmosaic import _core


def pack_gate(arguments, dtype):
    """The gate in the core for rows of this precision.

    Parameters
    ----------
    arguments : tuple
        The name of its class in the core, then what it is made of; a tuple among that is a gate itself, a list holds
        several of them (None for the gate of a single tile).
    dtype : float32 or float64
    """
    name, *parts = arguments
    kind = getattr(_core, name + ("F32" if dtype == np.float32 else "F64"))
    return kind(*(_packed(part, dtype) for part in parts))


def _packed(part, dtype):
    if isinstance(part, tuple):
        return pack_gate(part, dtype)
    return [_packed(gate, dtype) for gate in part] if isinstance(part, list) else part


def without_duplicates(X):
    """Rows with one entry per place; an entry stored in two parts would spoil norms and distances.

    Parameters
    ----------
    X : ndarray, or sparse matrix in CSR format, which stays as it is: what is changed is a copy
    """
    if getattr(X, "has_canonical_format", True):
        return X
    summed = X.copy()
    summed.sum_duplicates()
    return summed


def pack_scorer(gate, tiles, curves, dtype, width=1):
    """The scorer in the core for rows of this precision.

    Parameters
    ----------
    gate : gate in the core, or None
    tiles : tuple of (coef, intercept, link, sloped, flat)
        `sloped`: the tiles that have weights, or None for all; `flat`: the tiles without curves, or None.
    curves : PackedCurves or None
        What a feature map packs with its weights.
    dtype : float32 or float64
    width : int
        The number of tiles per row, if there is no gate.
    """
    scorer, pieces = (_core.ScorerF32, _core.PiecesF32) if dtype == np.float32 else (_core.ScorerF64, _core.PiecesF64)
    coef, intercept, link, sloped, flat = tiles
    if curves is None:
        return scorer(gate, coef, intercept, link, width, sloped=sloped)
    arguments, zero_is_zero = curves
    flat = (None,) * 3 if flat is None else flat
    return scorer(gate, coef, intercept, link, width, pieces(*arguments), zero_is_zero, sloped, *flat)
