"""Gates as the core holds them. This module needs numpy and the core only."""

import numpy as np

from svmosaic import _core


def pack_gate(arguments, dtype):
    """The gate in the core for rows of this precision.

    Parameters
    ----------
    arguments : tuple
        The name of its class in the core, then what it is made of; a tuple among that is a gate itself.
    dtype : float32 or float64
    """
    name, *parts = arguments
    kind = getattr(_core, name + ("F32" if dtype == np.float32 else "F64"))
    return kind(*(pack_gate(part, dtype) if isinstance(part, tuple) else part for part in parts))
