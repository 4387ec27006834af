r"""EM of the mixtures, over rows in memory: the E-step in the core, the M-steps by the gate and by the shared solver.

It maximizes, over a gate g and experts W, which see rows with the constant :math:`\beta` appended,

.. math:: \sum_i s_i \log \sum_j g_j(x_i) \exp\Big(-\rho \sum_c \max(0, 1 - y_{ic} \langle w_{jc}, (x_i, \beta) \rangle)
          \Big) - \sum_c \tfrac12 \mathrm{tr}\, W_c^T G_c^{-1} W_c .

Gate and experts each raise the same lower bound of the objective or leave it, so the objective never falls, except by
leaving out small responsibilities or by removing experts. A step that lowers it for the first reason is taken back and
tried again with more of them.
"""

import copy
import warnings
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from svmosaic import _core
from svmosaic.couplings import Coupling, penalty
from svmosaic.gates import Responsibilities
from svmosaic.losses import HINGE
from svmosaic.model.mosaic import Mosaic
from svmosaic.rows import Rows, split_bias
from svmosaic.solvers import Control, Problem, solve
from svmosaic.solvers.certificates import margins

# Pairs of a smaller responsibility are left out of the M-step: free, and 1 to 3 pairs per row are left.
DROP = 1e-3
# Where the experts' solver stops in an iteration: the duality gap relative to the objective at zero, and the number of
# epochs or steps. Inexact solves are fine, since new weights are kept only if they are better.
EXPERT_TOL, EXPERT_MAX_ITER = 1e-3, 1000


@dataclass(frozen=True)
class Mixture:
    """A gate and its experts.

    Attributes
    ----------
    gate : gate
    tiles : ndarray of shape (n_experts, n_outputs, n_features + 1)
        The experts' weights.
    couplings : tuple of Coupling, one per output
        How the experts are tied.
    bias : float
        The constant appended to the rows that they see.
    gap : float
        Duality gap of the problems whose solutions they are, of all outputs together.
    """

    gate: Any
    tiles: np.ndarray
    couplings: tuple[Coupling, ...]
    bias: float
    gap: float = np.nan

    def mosaic(self, link, feature_map=None) -> Mosaic:
        """The fitted form; the experts see rows through the feature map, if there is one."""
        coef, intercept = split_bias(self.tiles, self.bias)
        return Mosaic(self.gate, coef.copy(), intercept, link, feature_map)


@dataclass
class Trace:
    """Records of each iteration, the start included, and the reason for which the loop ended."""

    objective: list[float] = field(default_factory=list)
    n_experts: list[int] = field(default_factory=list)
    effective_experts: list[float] = field(default_factory=list)
    validation_score: list[float] = field(default_factory=list)
    n_iter: int = 0
    stop_reason: str = "max_iter"

    def add(self, objective, mass):
        """An iteration that was accepted, with how much weight each expert answers for."""
        self.objective.append(objective)
        self.n_experts.append(len(mass))
        share = mass[mass > 0] / mass.sum()
        self.effective_experts.append(float(np.exp(-np.dot(share, np.log(share)))))


class EM:
    """The loop, with what it keeps of the rows: responsibilities, and the duals of the experts' problems.

    Parameters
    ----------
    rows : Data
    tasks : ClusteredTasks
        Says how the experts are tied.
    label_weight : float
        The rho of the objective.
    gate_options : dict
        Of the gate's M-step.
    fit_intercept : bool
    solver : str
        For the experts.
    tol : float
        Stop when the objective has risen by no more than this share of itself.
    max_iter : int
    rng : RandomState
    deadline : float or None
        On the clock of `perf_counter`: there solves are cut short, of which none makes an expert worse.
    n_jobs : int or None
    """

    def __init__(
        self, rows, tasks, *, label_weight, gate_options, fit_intercept, solver, tol, max_iter, rng, deadline, n_jobs
    ):
        target = rows.target
        self.X, self.weight = rows.gate_rows, target.weight
        self.signs = np.stack([target.head.wanted(target.truth, c) for c in range(target.n_outputs)], axis=1)
        self.bias = intercept_constant(rows.tile_rows, self.weight) if fit_intercept else 0.0
        self.gate_rows, self.rows = Rows(self.X, 1.0), Rows(rows.tile_rows, self.bias)
        self.tasks, self.label_weight, self.gate_options = tasks, label_weight, gate_options
        self.solver, self.tol, self.max_iter = solver, tol, max_iter
        self.rng, self.deadline, self.n_jobs = rng, deadline, n_jobs
        self.n_threads, self.drop = effective_n_jobs(n_jobs), DROP
        self.shares = self.duals = self.pairs = None

    def run(self, gate, shares, watch=lambda *_: None) -> tuple[Mixture, Trace]:
        """EM from a gate and the responsibilities of its tiles, with experts from nothing.

        `watch(iteration, mixture, trace)` is called after each accepted iteration, the start being number 0; what it
        returns other than None ends the loop and becomes the reason.
        """
        self.shares = shares
        n_experts, n_outputs = gate.n_tiles, self.signs.shape[1]
        nothing = np.zeros((n_experts, n_outputs, self.rows.n_features + 1))
        mixture = Mixture(gate, nothing, (self.tasks.start(n_experts),) * n_outputs, self.bias)
        mixture = self.solve_experts(mixture, np.ones(n_experts, dtype=bool))
        value, mass = self.e_step(mixture)
        trace = Trace()
        trace.add(value, mass)
        watch(0, mixture, trace)
        while trace.n_iter < self.max_iter:
            trace.n_iter += 1
            candidate = self.m_step(mixture)
            new_value, new_mass = self.e_step(candidate)
            gain, removed = new_value - value, len(new_mass) < len(mass)
            if gain < 0 and not removed:
                if self._late():
                    trace.stop_reason = "max_time"
                    break
                if -gain <= self.tol * abs(value):
                    trace.stop_reason = "tol"
                    break
                if self.drop == 0.0:
                    trace.stop_reason = "objective fell"
                    warnings.warn(
                        f"the EM objective fell from {value:.6g} to {new_value:.6g} in iteration {trace.n_iter}; "
                        "stopped at the best iterate. Standardize the features.",
                        ConvergenceWarning,
                        stacklevel=6,
                    )
                    break
                self.drop = 0.1 * self.drop if self.drop > 1e-8 else 0.0
                _, mass = self.e_step(mixture)
                continue
            mixture, value, mass = candidate, new_value, new_mass
            trace.add(value, mass)
            reason = watch(trace.n_iter, mixture, trace)
            if reason is None and self._late():  # before the next: where solves are cut short, little is gained
                reason = "max_time"
            if reason is None and gain <= self.tol * abs(value) and not removed:
                reason = "tol"
            if reason is not None:
                trace.stop_reason = reason
                break
        return mixture, trace

    def _late(self) -> bool:
        return self.deadline is not None and perf_counter() > self.deadline

    def e_step(self, mixture) -> tuple[float, np.ndarray]:
        """The objective, and how much weight each expert answers for."""
        tree, given = mixture.gate.e_step_form(self.X)
        if tree is not None and self.rows.X is not self.X:  # gate and experts see different rows
            tree, given = None, mixture.gate.log_weights(self.X, self.n_threads)
        log_likelihood, tiles = np.empty(len(self.weight)), np.ascontiguousarray(mixture.tiles)
        count, expert, q = _core.e_step(
            self.rows.core, tree, given, tiles, self.signs, self.label_weight, self.drop, log_likelihood, self.n_threads
        )  # fmt: skip
        offsets = np.concatenate([[0], np.cumsum(count, dtype=np.int64)])
        self.shares = Responsibilities(offsets, expert, q, self.weight, len(tiles))
        cost = sum(penalty(coupling, mixture.tiles[:, c]) for c, coupling in enumerate(mixture.couplings))
        return float(np.dot(self.weight, log_likelihood)) - cost, self.shares.mass

    def m_step(self, mixture) -> Mixture:
        """Gate, then experts, for the responsibilities of the last E-step."""
        gate, kept = mixture.gate.updated(
            self.gate_rows, self.X, self.shares, n_threads=self.n_threads, **self.gate_options
        )
        mixture = replace(mixture, gate=gate)
        if not kept.all():
            tiles = mixture.tiles[kept]
            couplings = tuple(self.tasks.fit(tiles[:, c]) for c in range(tiles.shape[1]))
            mixture = replace(mixture, tiles=tiles, couplings=couplings)
        return self.solve_experts(mixture, kept)

    def solve_experts(self, mixture, kept) -> Mixture:
        r"""Experts no worse than those of the mixture: for each output c, weights W that lower

        .. math:: \tfrac12 \mathrm{tr}\, W^T G^{-1} W
                  + \rho \sum_{ij} s_i q_{ij} \max(0, 1 - y_{ic} \langle w_j, (x_i, \beta) \rangle) ,

        then a coupling G that lowers the first term. Independent experts are accepted one by one, coupled ones
        together. `kept` says which experts of the responsibilities are left.
        """
        self.shares = shares = self.shares.restricted(kept)
        if self.duals is not None:
            self.duals = carried_over(self.duals, self.pairs, kept, shares)
        self.pairs = shares.row, shares.expert
        signs = [np.ascontiguousarray(self.signs[shares.row, c]) for c in range(self.signs.shape[1])]
        expert, alone = np.ascontiguousarray(shares.expert[:, None]), Coupling.independent(shares.n_experts)
        cost = self.label_weight * shares.cost
        first = Problem(self.rows, expert, None, alone, signs[0], cost, HINGE, shares.row)
        problems = [first.with_target(sign, first.cost) for sign in signs]  # of independent experts
        # own^2 may as well multiply the costs, which leaves rows without coefficients.
        tied = [
            problem.with_target(problem.sign, coupling.own**2 * problem.cost)
            if coupling.n_shared == 0
            else Problem(self.rows, problem.tile, None, coupling, problem.sign, problem.cost, HINGE, shares.row)
            for problem, coupling in zip(problems, mixture.couplings, strict=True)
        ]
        left = None if self.deadline is None else max(0.0, self.deadline - perf_counter())
        solutions = solve(
            tied, solver=self.solver, tol=EXPERT_TOL, max_iter=EXPERT_MAX_ITER, n_jobs=self.n_jobs, start=self.duals,
            seed=self.rng.randint(2**31 - 1), control=Control(left),
        )  # fmt: skip
        self.duals = [s.alpha for s in solutions]
        tiles, couplings, gap = mixture.tiles.copy(), [], 0.0
        for c, (problem, coupling, solution) in enumerate(zip(problems, mixture.couplings, solutions, strict=True)):
            found = tied[c].coupling.tiles(solution.weights)
            old, new = (expert_objectives(problem, coupling, weights) for weights in (tiles[:, c], found))
            tiles[:, c] = np.where(np.atleast_1d(improved(old, new))[:, None], found, tiles[:, c])
            couplings.append(self.tasks.fit(tiles[:, c], coupling))
            gap += solution.gap / (coupling.own**2 if coupling.n_shared == 0 else 1.0)
        return replace(mixture, tiles=tiles, couplings=tuple(couplings), gap=float(gap))

    def afresh(self, mixture, weight) -> Mixture:
        """The mixture with experts from nothing, tied as they were, for other weights of the rows and the same
        responsibilities: rows of weight zero have left no trace in them."""
        other = copy.copy(self)
        other.shares, other.duals, other.deadline = replace(self.shares, weight=weight), None, None
        nothing = replace(mixture, tiles=np.zeros_like(mixture.tiles))
        return other.solve_experts(nothing, np.ones(len(nothing.tiles), dtype=bool))


def intercept_constant(X, weight) -> float:
    """The root mean square norm of the rows: with this constant an intercept costs no more than the weights, which are
    penalized like it, of an expert that is as far from the origin as the rows are."""
    if sparse.issparse(X):
        squares = X.multiply(X).sum(axis=1)
    elif isinstance(X, np.ndarray):
        squares = np.einsum("if,if->i", X, X)
    else:
        squares = Rows(X, 0.0).squared_norms
    square = float(np.dot(np.asarray(squares).ravel(), weight) / weight.sum())
    return float(np.sqrt(square)) if square > 0 else 1.0


def improved(old, new):
    """Where new weights replace old ones: their own primal is no larger (erratum 6)."""
    return new <= old


def expert_objectives(problem, coupling, tiles):
    """The primal of each expert if they are independent, else of all together."""
    losses = problem.cost * HINGE.value(margins(problem, np.ascontiguousarray(tiles), 1))
    losses = np.bincount(problem.tile[:, 0], losses, len(tiles))
    if coupling.n_shared == 0:
        return 0.5 * np.einsum("jf,jf->j", tiles, tiles) / coupling.own**2 + losses
    return penalty(coupling, tiles) + losses.sum()


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
