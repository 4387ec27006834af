"""The experts' share of the M-step: weighted linear SVMs by the shared solver, never worse than they were."""

from dataclasses import dataclass
from time import perf_counter

import numpy as np

from svmosaic.couplings import ClusteredTasks, Coupling
from svmosaic.couplings.clustered import penalty
from svmosaic.losses import HINGE
from svmosaic.solvers import Control, Problem, Rows, solve
from svmosaic.solvers.certificates import margins


@dataclass(frozen=True)
class Bank:
    """The experts' weights, and how they are tied.

    Attributes
    ----------
    tiles : ndarray of shape (n_experts, n_outputs, n_features + 1)
    couplings : tuple of Coupling, one an output
    """

    tiles: np.ndarray
    couplings: tuple[Coupling, ...]

    @property
    def penalty(self) -> float:
        """What the objective pays for the weights."""
        return sum(penalty(coupling, self.tiles[:, c]) for c, coupling in enumerate(self.couplings))


def improved(old, new):
    """Where new weights replace old ones: their own primal is no larger (erratum 6)."""
    return new <= old


def total_gap(couplings, solutions, *, scaled=False) -> float:
    """The gaps of all outputs, in units of the objective; `scaled` where own^2 was multiplied into the costs."""
    return float(
        sum(
            s.gap / (k.own**2 if scaled and k.n_shared == 0 else 1.0) for k, s in zip(couplings, solutions, strict=True)
        )
    )


class Experts:
    r"""Updates of the experts: for each output c, weights W that lower

    .. math:: \tfrac12 \mathrm{tr}\, W^T G^{-1} W
              + \rho \sum_{ij} s_i q_{ij} \max(0, 1 - y_{ic} \langle w_j, (x_i, \beta) \rangle) ,

    then a coupling G that lowers the first term. Independent experts are accepted one by one, coupled ones together.

    Parameters
    ----------
    rows : Rows
    signs : ndarray of int8, shape (n_rows, n_outputs)
    tasks : ClusteredTasks
        Says how the experts are tied.
    label_weight : float
        The :math:`\rho` of the objective.
    solver, tol, max_iter, n_jobs
        Passed on to `solve`.
    rng : RandomState
    deadline : float or None
        On the clock of `perf_counter`: there solves are cut short, of which none makes an expert worse.
    """

    def __init__(
        self, rows: Rows, signs, tasks: ClusteredTasks, *, label_weight, solver, tol, max_iter, n_jobs, rng,
        deadline=None,
    ):  # fmt: skip
        self.rows = rows
        self.signs = signs
        self.tasks = tasks
        self.label_weight = label_weight
        self.options = {"solver": solver, "tol": tol, "max_iter": max_iter, "n_jobs": n_jobs}
        self.rng = rng
        self.deadline = deadline
        self._duals: tuple | None = None
        self.gap = np.nan  # of the last update, over all outputs

    def start(self, shares) -> Bank:
        """Experts from nothing."""
        n_outputs = self.signs.shape[1]
        tiles = np.zeros((shares.n_experts, n_outputs, self.rows.n_features + 1))
        return self.update(Bank(tiles, (self.tasks.start(shares.n_experts),) * n_outputs), shares)

    def update(self, bank: Bank, shares) -> Bank:
        """Experts no worse than the bank's for these responsibilities."""
        tiles = bank.tiles.copy()
        loss_cost = self.label_weight * shares.cost
        plain = Problem(
            self.rows, np.ascontiguousarray(shares.expert[:, None]), None, Coupling.independent(shares.n_experts),
            self.signs[shares.row, 0], loss_cost, HINGE, shares.row,
        )  # fmt: skip
        problems = [self._problem(plain, c, coupling, shares) for c, coupling in enumerate(bank.couplings)]
        left = None if self.deadline is None else max(0.0, self.deadline - perf_counter())
        solutions = solve(
            problems, start=self._warm(shares), seed=self.rng.randint(2**31 - 1), control=Control(left), **self.options
        )
        self._duals = shares.row, shares.expert, [s.alpha for s in solutions]
        self.gap = total_gap(bank.couplings, solutions, scaled=True)
        for c, (problem, solution) in enumerate(zip(problems, solutions, strict=True)):
            found = problem.coupling.tiles(solution.weights)
            target = plain.with_target(problem.sign, loss_cost)
            coupling = bank.couplings[c]
            old, new = self._primal(target, coupling, tiles[:, c]), self._primal(target, coupling, found)
            tiles[:, c] = np.where(np.atleast_1d(improved(old, new))[:, None], found, tiles[:, c])
        couplings = tuple(self.tasks.fit(tiles[:, c], k) for c, k in enumerate(bank.couplings))
        return Bank(tiles, couplings)

    def afresh(self, bank: Bank, shares) -> Bank:
        """Experts solved from nothing, tied as in the bank: rows of weight zero have left no trace in them."""
        duals, self._duals = self._duals, None
        found = self.update(Bank(np.zeros_like(bank.tiles), bank.couplings), shares)
        self._duals = duals
        return found

    def restrict(self, bank: Bank, kept) -> Bank:
        """The bank without the experts that were removed."""
        if kept.all():
            return bank
        if self._duals is not None:
            row, expert, alphas = self._duals
            alive = kept[expert]
            place = np.cumsum(kept, dtype=np.int32) - 1
            self._duals = row[alive], place[expert[alive]], [a[alive] for a in alphas]
        tiles = bank.tiles[kept]
        return Bank(tiles, tuple(self.tasks.fit(tiles[:, c]) for c in range(tiles.shape[1])))

    def _problem(self, plain, output, coupling, shares) -> Problem:
        signs = np.ascontiguousarray(self.signs[shares.row, output])
        if coupling.n_shared == 0:
            # own^2 may as well multiply the costs, which leaves rows without coefficients.
            return plain.with_target(signs, coupling.own**2 * plain.cost)
        return Problem(self.rows, plain.tile, None, coupling, signs, plain.cost, HINGE, shares.row)

    def _primal(self, target, coupling, tiles):
        """The objective of one output: of each expert where they are independent, else of all together."""
        losses = target.cost * HINGE.value(margins(target, np.ascontiguousarray(tiles)))
        if coupling.n_shared == 0:
            norms = np.einsum("jf,jf->j", tiles, tiles)
            return 0.5 * norms / coupling.own**2 + np.bincount(target.tile[:, 0], losses, len(tiles))
        return penalty(coupling, tiles) + losses.sum()

    def _warm(self, shares):
        """The last duals of the pairs that are still there, zero for new ones; the solver clips them to the costs."""
        if self._duals is None:
            return None
        row, expert, alphas = self._duals
        known = row * np.int64(shares.n_experts) + expert
        wanted = shares.row * np.int64(shares.n_experts) + shares.expert
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        found = known[place] == wanted
        return [np.where(found, alpha[place], 0.0) for alpha in alphas]
