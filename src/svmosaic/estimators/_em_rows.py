"""Rows in memory, with the interface of EM."""

import copy
from dataclasses import replace
from time import perf_counter

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse

from svmosaic import _core
from svmosaic.couplings import Coupling
from svmosaic.estimators._experts import carried_over, expert_losses, total_gap
from svmosaic.gates import DistanceGate, Responsibilities
from svmosaic.gates.gaussian import moments
from svmosaic.gates.softmax_tree import within_variance
from svmosaic.rows import Rows
from svmosaic.solvers import Control, Problem, solve


def responsibilities(rows, X, signs, weight, mixture, label_weight, drop, n_threads):
    """The E-step of some rows: their log likelihood, and who answers for what. X are the rows as the gate sees them."""
    tree, given = mixture.gate.e_step_form(X)
    if tree is not None and rows.X is not X:  # gate and experts see different rows
        tree, given = None, mixture.gate.log_weights(X, n_threads)
    log_likelihood = np.empty(len(weight))
    tiles = np.ascontiguousarray(mixture.bank.tiles)
    count, expert, q = _core.e_step(
        rows.core, tree, given, tiles, signs, label_weight, drop, log_likelihood, n_threads
    )  # fmt: skip
    offsets = np.concatenate([[0], np.cumsum(count, dtype=np.int64)])
    shares = Responsibilities(offsets, expert, q, weight, len(tiles))
    return float(np.dot(weight, log_likelihood)), shares


class MemoryEMRows:
    """Rows in memory (`EMRows`), with what the initialization of a mixture needs.

    Parameters
    ----------
    rows : MemoryRows
    options : Options
        Of the experts' problems.
    gate_options : callable
        From the total weight of the rows to the options of the gate's M-step.
    rng : RandomState
    deadline : float or None
        On the clock of `perf_counter`: there solves are cut short, of which none makes an expert worse.
    """

    def __init__(self, rows, *, options, gate_options, rng, deadline):
        target = rows.target
        self.X, self.tile_rows = rows.gate_rows, rows.tile_rows
        self.weight, self.place = target.weight, rows.place
        self.signs = np.stack([target.signs(c) for c in range(target.n_outputs)], axis=1)
        self.options, self.rng, self.deadline = options, rng, deadline
        self.gate_options = gate_options(self.weight.sum())
        self.n_threads = effective_n_jobs(options.n_jobs)
        self.gate_rows = Rows(self.X, 1.0)
        self.shares = self.duals = self.pairs = None

    # ---- the start ----

    def mean_square(self) -> float:
        """The mean squared norm of the rows as the experts see them."""
        X = self.tile_rows
        if X is not self.X:
            squares = Rows(X, 0.0).squared_norms
        else:
            squares = X.multiply(X).sum(axis=1) if sparse.issparse(X) else np.einsum("if,if->i", X, X)
        return float(np.dot(np.asarray(squares).ravel(), self.weight) / self.weight.sum())

    def mean_variance(self) -> float:
        """The mean variance of the features."""
        mean = np.average(self.X, axis=0, weights=self.weight)
        return within_variance(self.X, mean[None, :], self.weight) / self.X.shape[1]

    def deal(self, centers):
        """Give each row to its nearest center; the centers that have rows."""
        gate = DistanceGate(centers)
        used, cell = np.unique(gate.code(self.X)[0][:, 0], return_inverse=True)
        self.assign(cell, len(used))
        return gate.centers[used].astype(np.float64)

    def assign(self, cell, n_cells):
        """Give each row to a cell."""
        self.shares = Responsibilities.hard(cell, self.weight, n_cells)

    def moments(self):
        """Sums of q (x, 1)(x, 1)^T of each cell, and its weight."""
        return moments(self.gate_rows, self.shares), self.shares.mass

    def append(self, bias):
        """Append the constant of the experts' intercepts to the rows."""
        self.rows = Rows(self.tile_rows, bias)

    # ---- EM ----

    def share_out(self, mixture, label_weight, drop):
        log_likelihood, self.shares = responsibilities(
            self.rows, self.X, self.signs, self.weight, mixture, label_weight, drop, self.n_threads
        )
        return log_likelihood, self.shares.mass

    def updated_gate(self, gate):
        return gate.updated(self.gate_rows, self.X, self.shares, n_threads=self.n_threads, **self.gate_options)

    def pair_up(self, kept, label_weight):
        self.shares = shares = self.shares.restricted(kept)
        if self.duals is not None:
            self.duals = carried_over(self.duals, self.pairs, kept, shares)
        self.pairs = shares.row, shares.expert
        first = Problem(
            self.rows, np.ascontiguousarray(shares.expert[:, None]), None, Coupling.independent(shares.n_experts),
            self._signs(0), label_weight * shares.cost, self.options.loss, shares.row,
        )  # fmt: skip
        # Of independent experts, one problem per output.
        self.problems = [first.with_target(self._signs(c), first.cost) for c in range(self.signs.shape[1])]

    def _signs(self, output):
        return np.ascontiguousarray(self.signs[self.shares.row, output])

    def solve(self, couplings):
        tied = [self._tied(problem, k) for problem, k in zip(self.problems, couplings, strict=True)]
        left = None if self.deadline is None else max(0.0, self.deadline - perf_counter())
        options = self.options
        solutions = solve(
            tied, solver=options.solver, tol=options.tol, max_iter=options.max_iter, n_jobs=options.n_jobs,
            start=self.duals, seed=self.rng.randint(2**31 - 1), control=Control(left),
        )  # fmt: skip
        self.duals = [s.alpha for s in solutions]
        tiles = [problem.coupling.tiles(s.weights) for problem, s in zip(tied, solutions, strict=True)]
        return np.stack(tiles, axis=1), total_gap(couplings, solutions, scaled=True)

    @staticmethod
    def _tied(problem, coupling) -> Problem:
        if coupling.n_shared == 0:
            # own^2 may as well multiply the costs, which leaves rows without coefficients.
            return problem.with_target(problem.sign, coupling.own**2 * problem.cost)
        return Problem(
            problem.rows, problem.tile, None, coupling, problem.sign, problem.cost, problem.loss, problem.index
        )  # fmt: skip

    def losses(self, banks):
        return [[expert_losses(problem, tiles[:, c]) for c, problem in enumerate(self.problems)] for tiles in banks]

    def afresh(self, weight) -> "MemoryEMRows":
        """The same rows and responsibilities with other weights and no duals: held-out rows have left no trace."""
        other = copy.copy(self)
        other.shares, other.duals, other.deadline = replace(self.shares, weight=weight), None, None
        return other
