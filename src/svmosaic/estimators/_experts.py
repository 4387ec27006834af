"""The experts of a mixture: weights and how they are tied, when new ones are accepted, which duals carry over."""

from dataclasses import dataclass

import numpy as np

from svmosaic.couplings import Coupling
from svmosaic.couplings.clustered import penalty
from svmosaic.losses import HINGE
from svmosaic.solvers.certificates import margins


@dataclass(frozen=True)
class Bank:
    """The experts' weights, and how they are tied.

    Attributes
    ----------
    tiles : ndarray of shape (n_experts, n_outputs, n_features + 1)
    couplings : tuple of Coupling, one per output
    """

    tiles: np.ndarray
    couplings: tuple[Coupling, ...]

    @property
    def penalty(self) -> float:
        """What the objective pays for the weights."""
        return sum(penalty(coupling, self.tiles[:, c]) for c, coupling in enumerate(self.couplings))

    def restricted(self, kept, tasks) -> "Bank":
        """The bank without the experts that were removed."""
        if kept.all():
            return self
        tiles = self.tiles[kept]
        return Bank(tiles, tuple(tasks.fit(tiles[:, c]) for c in range(tiles.shape[1])))

    def accepting(self, found, before, after, tasks) -> "Bank":
        """The bank with the weights `found` that are no worse than its own, tied anew.

        Parameters
        ----------
        found : ndarray of the shape of `tiles`
        before, after : arrays of shape (n_outputs, n_experts)
            Losses of the old and of the new weights.
        tasks : ClusteredTasks
        """
        tiles = self.tiles.copy()
        for c, coupling in enumerate(self.couplings):
            old, new = (_objective(coupling, *part) for part in ((tiles[:, c], before[c]), (found[:, c], after[c])))
            tiles[:, c] = np.where(np.atleast_1d(improved(old, new))[:, None], found[:, c], tiles[:, c])
        return Bank(tiles, tuple(tasks.fit(tiles[:, c], k) for c, k in enumerate(self.couplings)))


def improved(old, new):
    """Where new weights replace old ones: their own primal is no larger (erratum 6)."""
    return new <= old


def _objective(coupling, tiles, losses):
    """Of each expert if they are independent, else of all together."""
    if coupling.n_shared == 0:
        return 0.5 * np.einsum("jf,jf->j", tiles, tiles) / coupling.own**2 + losses
    return penalty(coupling, tiles) + losses.sum()


def expert_losses(problem, tiles, n_threads=1):
    """The losses of each expert in the problem of an output, whose rows are pairs of rows and experts."""
    losses = problem.cost * HINGE.value(margins(problem, np.ascontiguousarray(tiles), n_threads))
    return np.bincount(problem.tile[:, 0], losses, len(tiles))


def carried_over(duals, pairs, kept, shares):
    """Duals of the pairs that there are now: the last ones if a pair was there before, else zero.

    Parameters
    ----------
    duals : list of ndarray
        One dual per pair as it was, for each output.
    pairs : (row, expert) as they were
    kept : ndarray of bool
        Which of those experts are left.
    shares : Responsibilities
        The pairs as they are, sorted by row and expert.
    """
    row, expert = pairs
    if not kept.all():
        alive = kept[expert]
        row, expert = row[alive], (np.cumsum(kept, dtype=np.int32) - 1)[expert[alive]]
        duals = [alpha[alive] for alpha in duals]
    if len(row) == 0:
        return [np.zeros(len(shares.expert)) for _ in duals]
    known = row * np.int64(shares.n_experts) + expert
    wanted = shares.row * np.int64(shares.n_experts) + shares.expert
    place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    found = known[place] == wanted
    return [np.where(found, alpha[place], 0.0) for alpha in duals]


def total_gap(couplings, solutions, *, scaled=False) -> float:
    """The gaps of all outputs, in units of the objective; `scaled` where own^2 was multiplied into the costs."""
    return float(
        sum(
            s.gap / (k.own**2 if scaled and k.n_shared == 0 else 1.0) for k, s in zip(couplings, solutions, strict=True)
        )
    )
