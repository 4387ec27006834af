"""What gates share that the core evaluates."""

from abc import ABC, abstractmethod
from dataclasses import fields
from functools import cached_property

import numpy as np
from joblib import effective_n_jobs

from svmosaic.gates.protocol import CoreGate
from svmosaic.packing import pack_gate
from svmosaic.rows import Rows


class PackedGate(ABC):
    """A gate with `core_arguments()`: its packed form, created when it is first needed, and its codes."""

    @property
    @abstractmethod
    def n_tiles(self) -> int:
        """The number of tiles."""

    @property
    def width(self) -> int:
        """The number of tiles per row: here all of them, many with weight zero."""
        return self.n_tiles

    def code(self, X, n_jobs=None):
        """Tiles and weights of each row, of shape (n_samples, width)."""
        tile = np.empty((X.shape[0], self.width), dtype=np.int32)
        weight = np.empty(tile.shape)
        self.core(X.dtype).code(Rows(X).core, tile, weight, effective_n_jobs(n_jobs))
        return tile, weight

    def core(self, dtype):
        """The gate in the core, for rows of this precision."""
        return self._core32 if dtype == np.float32 else self._core64

    @cached_property
    def _core32(self):
        return pack_gate(self.core_arguments(), np.float32)

    @cached_property
    def _core64(self):
        return pack_gate(self.core_arguments(), np.float64)

    @abstractmethod
    def core_arguments(self):
        """The name of the gate's class in the core, and the arguments of its constructor."""

    def __getstate__(self):
        # What is packed in the core is rebuilt on demand.
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]


class OuterGate(PackedGate):
    """A gate whose tiles are those of `inner`, which sees the rows changed in some way."""

    inner: CoreGate

    @property
    def n_tiles(self) -> int:
        return self.inner.n_tiles

    @property
    def width(self) -> int:
        return self.inner.width
