"""EM over partitions: the E-step where the rows are, the M-step from sums.

The loop, its steps, stop rules and steps back are those of rows in memory (`svmosaic.estimators._em_loop.EM`).
Responsibilities and duals stay with the rows. The Gaussians come from sums of q (x, 1)(x, 1)^T, the experts from the
optimizer of all models.
"""

from dataclasses import replace
from time import perf_counter

import numpy as np

from svmosaic.couplings import Coupling
from svmosaic.estimators._em_rows import responsibilities
from svmosaic.estimators._experts import carried_over, expert_losses, total_gap
from svmosaic.gates import DistanceGate, GaussianGate, Responsibilities
from svmosaic.gates.gaussian import moments
from svmosaic.model.heads import signs_of
from svmosaic.rows import Rows
from svmosaic.scale.part import Job
from svmosaic.scale.solve import solve_partitions
from svmosaic.solvers import Control
from svmosaic.solvers.certificates import weights_of


class PartitionedEMRows:
    """Rows in partitions (`EMRows`), with what the initialization of a mixture of Gaussians needs.

    Parameters
    ----------
    rows : PartitionedRows
    options : Options
        Of the experts' problems.
    gate_options : ignored: Gaussians have none
    rng : ignored: nothing is random here
    deadline : float or None
        On the clock of `perf_counter`.
    """

    def __init__(self, rows, *, options, gate_options, rng, deadline):
        self.partitions, self.place = rows.partitions, rows.place
        self.n_rows, self.n_seen, self.n_outputs = rows.n_rows, rows.n_seen, rows.target.n_outputs
        self.feature_map = rows.feature_map
        self.options, self.deadline, self.n_threads = options, deadline, rows.partitions.n_threads
        self.mass = self.cells = self.sums = None
        self.solved = False

    # ---- the start ----

    def deal(self, centers):
        """Give each row to its nearest center; the centers that have rows."""
        sums, mass = self.partitions.total(cell_moments, DistanceGate(centers))
        self.cells = DistanceGate(centers[mass > 0])
        self.sums, self.mass = sums[mass > 0], mass[mass > 0]
        return self.cells.centers

    def moments(self):
        """Sums of q (x, 1)(x, 1)^T of each cell, and its weight."""
        return self.sums, self.mass

    def _second_moments(self):
        whole = self.sums.sum(axis=0) / self.mass.sum()
        return np.diagonal(whole)[:-1], whole[:-1, -1]

    def mean_square(self) -> float:
        """The mean squared norm of the rows as the experts see them."""
        if self.feature_map is not None:
            return float(self.partitions.total(weighted_squares)) / self.mass.sum()
        return float(self._second_moments()[0].sum())

    def mean_variance(self) -> float:
        """The mean variance of the features."""
        squares, mean = self._second_moments()
        return float(np.mean(squares - mean**2))

    def append(self, bias):
        """Append the constant of the experts' intercepts to the rows."""
        self.partitions.advance(deal_cells, self.cells, self.n_outputs, bias)

    # ---- EM ----

    def share_out(self, mixture, label_weight, drop):
        self.partitions.advance(share_out, mixture, label_weight, drop, self.n_threads)
        log_likelihood, self.mass = self.partitions.total(shares_summary)
        return float(log_likelihood), self.mass

    def updated_gate(self, gate):
        kept = gate.alive(self.mass)
        sums, mass = self.partitions.total(share_moments, kept)
        return GaussianGate.from_moments(sums, mass, floor=gate.floor, covariance=gate.covariance), kept

    def pair_up(self, kept, label_weight):
        self.partitions.advance(pair_up, kept, label_weight)

    def solve(self, couplings):
        jobs = [Job(c, c, len(couplings), coupling, self.options.loss) for c, coupling in enumerate(couplings)]
        start = None
        if self.solved:
            # The duals of pairs that stay are with the rows; the weights they imply are where the solver begins.
            start = self.partitions.total(implied_weights, jobs, self.n_threads)
        left = None if self.deadline is None else max(0.0, self.deadline - perf_counter())
        solutions = solve_partitions(
            self.partitions, jobs, n_features=self.n_seen, n_rows=self.n_rows, one_tile=True, start=start,
            keep_duals=True, control=Control(left), tol=self.options.tol, max_iter=self.options.max_iter,
        )  # fmt: skip
        self.solved = True
        tiles = [coupling.tiles(s.weights) for coupling, s in zip(couplings, solutions, strict=True)]
        return np.stack(tiles, axis=1), total_gap(couplings, solutions)

    def losses(self, banks):
        return self.partitions.total(losses_of, banks, self.options.loss, self.n_threads)


# ---- on one partition -----------------------------------------------------------------------------------------------


def weighted_squares(part):
    """The weighted sum of the squared norms of the rows that the experts see."""
    return np.dot(part.weight, Rows(part.tile_rows, 0.0).squared_norms)


def cell_moments(part, gate):
    """Sums of (x, 1)(x, 1)^T in each cell, and its weight."""
    shares = _of_cells(part, gate)
    return moments(Rows(part.X), shares), shares.mass


def _of_cells(part, gate):
    return Responsibilities.hard(gate.code(part.X)[0][:, 0], part.weight, gate.n_tiles)


def deal_cells(part, gate, n_outputs, bias):
    """With each row dealt to its cell."""
    extra = {"shares": _of_cells(part, gate), "n_outputs": n_outputs}
    return replace(part, bias=bias, extra=extra, duals={}, built={})


def share_out(part, mixture, label_weight, drop, n_threads):
    """With the responsibilities of the E-step."""
    n_outputs = part.extra["n_outputs"]
    signs = np.stack([signs_of(part.label, c, n_outputs) for c in range(n_outputs)], axis=1)
    value, shares = responsibilities(
        Rows(part.tile_rows, part.bias), part.X, signs, part.weight, mixture, label_weight, drop, n_threads
    )
    return replace(part, extra={**part.extra, "shares": shares, "value": value})


def shares_summary(part):
    """Log likelihood and the experts' masses."""
    return np.array(part.extra["value"]), part.extra["shares"].mass


def share_moments(part, kept):
    """Sums of q (x, 1)(x, 1)^T and masses of the experts that are left."""
    shares = part.extra["shares"].restricted(kept)
    return moments(Rows(part.X), shares), shares.mass


def pair_up(part, kept, label_weight):
    """With (row, expert) pairs as problem rows, and the duals of pairs that were there before."""
    shares = part.extra["shares"].restricted(kept)
    cost = label_weight * shares.cost
    duals = {}
    if part.duals:
        carried = carried_over(list(part.duals.values()), part.extra["pairs"], kept, shares)
        duals = {slot: np.clip(alpha, 0.0, cost) for slot, alpha in zip(part.duals, carried, strict=True)}
    tile = np.ascontiguousarray(shares.expert[:, None])
    extra = {**part.extra, "shares": shares, "pairs": (shares.row, shares.expert)}
    return replace(part, tile=tile, code=None, index=shares.row, cost=cost, duals=duals, extra=extra, built={})


def implied_weights(part, jobs, n_threads):
    """The block weights of each job's duals."""
    return [weights_of(part.problem(job), part.center(job), n_threads) for job in jobs]


def losses_of(part, banks, loss, n_threads):
    """For each array of tiles and output: the losses of each expert."""
    n_experts, n_outputs, _ = banks[0].shape
    alone = Coupling.independent(n_experts)
    problems = [part.problem(Job(c, c, n_outputs, alone, loss)) for c in range(n_outputs)]
    return [[expert_losses(problem, tiles[:, c], n_threads) for c, problem in enumerate(problems)] for tiles in banks]
