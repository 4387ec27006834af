"""What a gate is: the protocol that scoring, training, files, exporters and displays rely on.

A gate is a frozen dataclass whose fields are arrays, numbers and texts. `Gate` is all that a fit and a prediction need.
A gate that the core evaluates is a `CoreGate`; subclass `PackedGate` and write `core_arguments`. A gate whose tiles
have a place is a `PlacedGate`. `Mosaic`, `Predictor` and the exporters look for these members, never for a class.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from joblib import effective_n_jobs

from svmosaic.packing import pack_gate
from svmosaic.rows import Rows


@runtime_checkable
class Gate(Protocol):
    """Assigns rows to tiles, with weights.

    See Also
    --------
    svmosaic.model.mosaic.Mosaic : Contains a gate.
    DistanceGate : A gate based on distances.
    """

    @property
    def n_tiles(self) -> int:
        """The number of tiles."""

    @property
    def width(self) -> int:
        """The number of tiles per row; all of them for a soft gate."""

    def code(self, X, n_jobs: int | None = None) -> tuple[np.ndarray, np.ndarray | None]:
        """Tiles and weights of each row.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_samples, n_features), float32 or float64
        n_jobs : int, optional
            Threads to use, as in scikit-learn. The codes must not depend on it; a gate may ignore it.

        Returns
        -------
        tile : ndarray of int32, shape (n_samples, width)
        weight : ndarray of float64, shape (n_samples, width), or None if all weights are one
        """


@runtime_checkable
class CoreGate(Gate, Protocol):
    """A gate with a core form: it is scored inside the core, packed into predictors, and exported by that form.

    See Also
    --------
    Gate : The interface of a gate.
    """

    def core(self, dtype) -> Any:
        """The gate in the core, for rows of this precision."""

    def core_arguments(self) -> tuple | None:
        """The name of the gate's class in the core, then the arguments of its constructor; None for a single tile.

        An argument that is such a tuple itself stands for an inner gate. Exporters know gates by these names, so two
        gates that share a core form share their exports.
        """


@runtime_checkable
class PlacedGate(Gate, Protocol):
    """A gate whose tiles have anchors that displays can mark.

    A gate that measures in a projection of the rows also has `projection`, of shape (n_components, n_features); its
    anchors are points of that projection.

    See Also
    --------
    Gate : The interface of a gate.
    """

    @property
    def anchors(self) -> np.ndarray | None:
        """One point per tile, of shape (n_tiles, n_features), or None if there are none."""


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
        name = "_core32" if dtype == np.float32 else "_core64"
        if name not in self.__dict__:
            self.__dict__[name] = pack_gate(self.core_arguments(), dtype)
        return self.__dict__[name]

    @abstractmethod
    def core_arguments(self):
        """The name of the gate's class in the core, and the arguments of its constructor."""

    def __getstate__(self):
        # What is packed in the core is rebuilt on demand.
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]


@dataclass(frozen=True)
class SingleCell:
    """The gate of a linear model: all rows belong to tile 0.

    See Also
    --------
    Gate : The interface of a gate.
    """

    n_tiles: ClassVar[int] = 1
    width: ClassVar[int] = 1

    def core_arguments(self):
        """None: a single tile needs no gate in the core."""
        return None

    def code(self, X, n_jobs=None):
        """Tiles (n_samples, 1) and weights (None: all ones) of each row."""
        return np.zeros((X.shape[0], 1), dtype=np.int32), None
