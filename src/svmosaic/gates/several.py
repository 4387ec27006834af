"""Several gates as one: the gate of a model with several learned gates, and of a weighted sum of models."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from svmosaic.gates.protocol import PackedGate


@dataclass(frozen=True, eq=False)
class SeveralGates(PackedGate):
    r"""The codes of M gates, concatenated as the codes of one gate over all their tiles.

    The tiles of a gate are numbered after those of the gates before it, and its weights are multiplied by its factor:
    :math:`f(x) = \sum_m \text{factor}_m \sum_j g_{mj}(x) s_{mj}(x)`.

    Attributes
    ----------
    gates : tuple of gates
        `SingleCell` may be among them, but not be all of them.
    factors : ndarray of shape (n_gates,)

    See Also
    --------
    Gate : The interface of a gate.
    """

    gates: tuple[Any, ...]
    factors: np.ndarray

    @property
    def n_tiles(self) -> int:
        return sum(gate.n_tiles for gate in self.gates)

    @property
    def width(self) -> int:
        return sum(gate.width for gate in self.gates)

    @property
    def gate_of_tile(self):
        """The part of `split` that each tile belongs to, of shape (n_tiles,)."""
        parts, first = [], 0
        for gate in self.gates:
            choices = n_choices(gate)
            parts.append(first + (gate.tree_of_tile if choices > 1 else np.zeros(gate.n_tiles, dtype=np.intp)))
            first += choices
        return np.concatenate(parts)

    def split(self, codes):
        """Codes of this gate as those of its parts, a pair (tile, weight) per gate or tree; tiles keep numbers."""
        widths = [gate.width // n_choices(gate) for gate in self.gates for _ in range(n_choices(gate))]
        ends = np.cumsum(widths)[:-1]
        return list(zip(*(np.split(part, ends, axis=1) for part in codes), strict=True))

    def core_arguments(self):
        """The name of the gate's class in the core, and the arguments of its constructor."""
        factors = np.ascontiguousarray(self.factors, dtype=np.float64)
        return "SeveralGates", [gate.core_arguments() for gate in self.gates], factors


def n_choices(gate) -> int:
    """The number of groups of tiles, of each of which a row belongs to exactly one: one, or one per tree."""
    return getattr(gate, "n_choices", 1)
