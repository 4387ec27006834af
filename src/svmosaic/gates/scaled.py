"""A gate that scales the rows first."""

from dataclasses import dataclass

import numpy as np

from svmosaic.gates.protocol import CoreGate, OuterGate


@dataclass(frozen=True, eq=False)
class ScaledGate(OuterGate):
    """The codes of z = (x - center) * factor by another gate.

    Attributes
    ----------
    center : ndarray of shape (n_features,) or None
        None leaves zeros as they are, for sparse rows.
    factor : ndarray of shape (n_features,)
    inner : gate
        Over the scaled rows.
    """

    center: np.ndarray | None
    factor: np.ndarray
    inner: CoreGate

    def core_arguments(self):
        """The name of the gate's class in the core, and the arguments of its constructor."""
        center = None if self.center is None else np.ascontiguousarray(self.center, dtype=np.float64)
        factor = np.ascontiguousarray(self.factor, dtype=np.float64)
        return "ScaledGate", center, factor, self.inner.core_arguments()
