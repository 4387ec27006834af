"""Gates as the core holds them. This module needs numpy and the core only."""

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
