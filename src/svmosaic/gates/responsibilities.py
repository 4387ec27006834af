"""Which expert answers for which row, as the sparse outcome of an E-step."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class Responsibilities:
    """Pairs (row, expert) with the share q of the row that the expert answers for; they sum to 1 in each row.

    Attributes
    ----------
    offsets : ndarray of int64, shape (n_rows + 1,)
        Row i has the pairs offsets[i] to offsets[i + 1], in the order of the experts.
    expert : ndarray of int32, shape (n_pairs,)
    q : ndarray of float64, shape (n_pairs,)
    weight : ndarray of float64, shape (n_rows,), the weights of the rows
    n_experts : int
    """

    offsets: np.ndarray
    expert: np.ndarray
    q: np.ndarray
    weight: np.ndarray
    n_experts: int

    @classmethod
    def hard(cls, expert, weight, n_experts) -> "Responsibilities":
        """Each row belongs to one expert."""
        n_rows = len(expert)
        return cls(np.arange(n_rows + 1), expert.astype(np.int32), np.ones(n_rows), weight, n_experts)

    @cached_property
    def row(self):
        """The row of each pair, as int32."""
        return np.repeat(np.arange(len(self.weight), dtype=np.int32), np.diff(self.offsets))

    @cached_property
    def cost(self):
        """q times the weight of the row, of each pair."""
        return self.q * self.weight[self.row]

    @cached_property
    def mass(self):
        """How much weight each expert answers for."""
        return np.bincount(self.expert, self.cost, self.n_experts)

    def restricted(self, kept) -> "Responsibilities":
        """To the experts where the mask `kept` is true; a row without any of them has no pairs left."""
        if kept.all():
            return self
        alive = kept[self.expert]
        row, expert, q = self.row[alive], self.expert[alive], self.q[alive]
        total = np.bincount(row, q, len(self.weight))
        offsets = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(self.weight)))])
        place = np.cumsum(kept, dtype=np.int32) - 1
        return Responsibilities(
            offsets.astype(np.int64), place[expert].astype(np.int32), q / total[row], self.weight, int(kept.sum())
        )
