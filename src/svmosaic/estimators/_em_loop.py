"""EM of all mixture models, written once: rows in memory and rows in partitions answer the same questions."""

import copy
import warnings
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, Protocol

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from svmosaic.estimators._experts import Bank
from svmosaic.model.mosaic import Mosaic
from svmosaic.rows import split_bias

# Pairs of a smaller responsibility are left out of the M-step: free, and 1 to 3 pairs per row are left.
DROP = 1e-3


@dataclass(frozen=True)
class Mixture:
    """A gate and its experts, which see rows with the constant `bias` appended."""

    gate: Any
    bank: Bank
    bias: float

    def mosaic(self, link, feature_map=None) -> Mosaic:
        """The fitted form; the experts see rows through the feature map, if there is one."""
        coef, intercept = split_bias(self.bank.tiles, self.bias)
        return Mosaic(self.gate, coef.copy(), intercept, link, feature_map)


class EMRows(Protocol):
    """The interface of rows for EM, wherever they are. Responsibilities and duals stay with the rows."""

    def share_out(self, mixture, label_weight, drop) -> tuple[float, np.ndarray]:
        """The E-step: the log likelihood, and how much weight each expert answers for."""

    def updated_gate(self, gate) -> tuple[Any, np.ndarray]:
        """The gate after its M-step, and which experts are left."""

    def pair_up(self, kept, label_weight):
        """Make the pairs of rows and experts that are left the rows of the experts' problems."""

    def solve(self, couplings) -> tuple[np.ndarray, float]:
        """Solve for the experts of every output: tiles, and the duality gap of all problems together."""

    def losses(self, banks) -> list:
        """For each array of tiles, the losses of each output and expert."""


@dataclass
class Trace:
    """What happened in each iteration, the start included, and why the loop ended."""

    objective: list[float] = field(default_factory=list)
    n_experts: list[int] = field(default_factory=list)
    effective_experts: list[float] = field(default_factory=list)
    validation_score: list[float] = field(default_factory=list)
    # Steps that were taken back because they lowered the objective, with the value they led to.
    refused: list[float] = field(default_factory=list)
    # Of the experts' problems, as the last M-step left them.
    gap: float = np.nan
    n_iter: int = 0
    stop_reason: str = "max_iter"

    def add(self, objective, mass, gap):
        """An iteration that was accepted."""
        self.objective.append(objective)
        self.n_experts.append(len(mass))
        self.effective_experts.append(effective_number(mass))
        self.gap = gap


def effective_number(mass) -> float:
    """exp(entropy) of the experts' shares: K for K equal ones, 1 if one answers for all."""
    share = mass[mass > 0] / mass.sum()
    return float(np.exp(-np.dot(share, np.log(share))))


class EM:
    r"""Maximizes :math:`\sum_i s_i \log \sum_j g_j(x_i) \exp(-\rho\,\text{hinge}_{ij}) - \text{penalty}(W)`.

    E-step: responsibilities, in the core. M-step: the gate's own, then the experts'. Either part raises the same lower
    bound of the objective or leaves it, so the objective never falls, except by leaving out small responsibilities or
    by removing experts. A step that lowers it for the first reason is taken back and tried again with more of them.

    Parameters
    ----------
    rows : EMRows
    tasks : ClusteredTasks
        Says how the experts are tied.
    label_weight : float
        The :math:`\rho` of the objective.
    tol : float
        Stop when the objective has risen by no more than this share of itself.
    max_iter : int
    deadline : float or None
        On the clock of `perf_counter`; that of the rows' solves too, so that what they take before the loop counts.
    drop : float
        Smallest responsibility that is kept.
    """

    def __init__(self, rows: EMRows, tasks, *, label_weight, tol, max_iter, deadline, drop=DROP):
        self.rows = rows
        self.tasks = tasks
        self.label_weight = label_weight
        self.tol = tol
        self.max_iter = max_iter
        self.deadline = deadline
        self.drop = drop
        self.gap = np.nan  # of the experts' problems in the last M-step

    def start(self, gate, n_outputs, n_features, bias) -> Mixture:
        """Experts from nothing, for the responsibilities that the rows have."""
        n_experts = gate.n_tiles
        tiles = np.zeros((n_experts, n_outputs, n_features + 1))
        bank = Bank(tiles, (self.tasks.start(n_experts),) * n_outputs)
        return Mixture(gate, self.update(bank, np.ones(n_experts, dtype=bool)), bias)

    def run(self, start: Mixture, watch) -> tuple[Mixture, Trace]:
        """EM from a start.

        `watch(iteration, mixture, trace)` is called after each accepted iteration, the start being number 0; what it
        returns other than None ends the loop and becomes the reason.
        """
        trace = Trace()
        mixture = start
        value, mass = self.e_step(mixture)
        trace.add(value, mass, self.gap)
        watch(0, mixture, trace)
        while trace.n_iter < self.max_iter:
            trace.n_iter += 1
            candidate = self.m_step(mixture)
            new_value, new_mass = self.e_step(candidate)
            removed = len(new_mass) < len(mass)
            gain = new_value - value
            if gain < 0 and not removed:
                trace.refused.append(new_value)
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
                        "stopped at the best iterate. Standardize the features or lower inner_tol.",
                        ConvergenceWarning,
                        stacklevel=4,
                    )
                    break
                self.drop = 0.1 * self.drop if self.drop > 1e-8 else 0.0
                _, mass = self.e_step(mixture)
                continue
            mixture, value, mass = candidate, new_value, new_mass
            trace.add(value, mass, self.gap)
            reason = watch(trace.n_iter, mixture, trace)
            if reason is not None:
                trace.stop_reason = reason
                break
            if self._late():  # before the next: where solves are cut short, little is gained
                trace.stop_reason = "max_time"
                break
            if gain <= self.tol * abs(value) and not removed:
                trace.stop_reason = "tol"
                break
        return mixture, trace

    def _late(self) -> bool:
        return self.deadline is not None and perf_counter() > self.deadline

    def e_step(self, mixture: Mixture) -> tuple[float, np.ndarray]:
        """The objective, and how much weight each expert answers for."""
        log_likelihood, mass = self.rows.share_out(mixture, self.label_weight, self.drop)
        return log_likelihood - mixture.bank.penalty, mass

    def m_step(self, mixture: Mixture) -> Mixture:
        """Gate, then experts, for the responsibilities that the rows have."""
        gate, kept = self.rows.updated_gate(mixture.gate)
        return replace(mixture, gate=gate, bank=self.update(mixture.bank.restricted(kept, self.tasks), kept))

    def update(self, bank: Bank, kept) -> Bank:
        r"""Experts no worse than the bank's: for each output c, weights W that lower

        .. math:: \tfrac12 \mathrm{tr}\, W^T G^{-1} W
                  + \rho \sum_{ij} s_i q_{ij} \max(0, 1 - y_{ic} \langle w_j, (x_i, \beta) \rangle) ,

        then a coupling G that lowers the first term. Independent experts are accepted one by one, coupled ones
        together.
        """
        self.rows.pair_up(kept, self.label_weight)
        found, self.gap = self.rows.solve(bank.couplings)
        before, after = self.rows.losses([bank.tiles, found])
        return bank.accepting(found, before, after, self.tasks)

    def afresh(self, mixture: Mixture, rows: EMRows) -> Mixture:
        """The mixture with experts solved from nothing, tied as they were, for the responsibilities of other rows."""
        other = copy.copy(self)
        other.rows = rows
        bank = Bank(np.zeros_like(mixture.bank.tiles), mixture.bank.couplings)
        return replace(mixture, bank=other.update(bank, np.ones(len(bank.tiles), dtype=bool)))
