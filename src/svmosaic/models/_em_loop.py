"""The EM loop of all mixture models: code, solve, update the gate, and again."""

import warnings
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from svmosaic import _core
from svmosaic.gates import Responsibilities
from svmosaic.models._experts import Bank

# Pairs of a smaller responsibility are left out of the M-step: free, and 1 to 3 pairs a row are left.
DROP = 1e-3


@dataclass(frozen=True)
class Mixture:
    """A gate and its experts."""

    gate: Any
    bank: Bank


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

    def add(self, objective, shares):
        self.objective.append(objective)
        self.n_experts.append(shares.n_experts)
        self.effective_experts.append(shares.effective_experts)


class EM:
    r"""Maximises :math:`\sum_i s_i \log \sum_j g_j(x_i) \exp(-\rho\,\text{hinge}_{ij}) - \text{penalty}(W)`.

    E-step: responsibilities, in the core. M-step: the gate's own (`gate.updated`), then the experts'. Either part
    raises the same lower bound of the objective or leaves it, so the objective never falls, except by leaving out
    small responsibilities or by removing experts. A step that lowers it for the first reason is taken back and tried
    again with more of them.

    Parameters
    ----------
    data : TrainingData
    experts : Experts
    label_weight : float
    gate_options : dict
        Passed on to `gate.updated`.
    tol : float
        Stop when the objective has risen by no more than this share of itself.
    max_iter : int
    deadline : float or None
        On the clock of `perf_counter`; the experts' own, so that what they take before the loop counts too.
    drop : float
        Smallest responsibility that is kept.
    n_threads : int
    """

    def __init__(self, data, experts, *, label_weight, gate_options, tol, max_iter, deadline, n_threads, drop=DROP):
        self.data = data
        self.experts = experts
        self.label_weight = label_weight
        self.gate_options = gate_options
        self.tol = tol
        self.max_iter = max_iter
        self.deadline = deadline
        self.drop = drop
        self.n_threads = n_threads

    def run(self, start: Mixture, watch) -> tuple[Mixture, Trace]:
        """EM from a start.

        `watch(iteration, mixture, trace)` is called after each accepted iteration, the start being number 0; what it
        returns other than None ends the loop and becomes the reason.
        """
        trace = Trace()
        mixture = start
        value, shares = self.e_step(mixture)
        trace.add(value, shares)
        trace.gap = self.experts_gap
        watch(0, mixture, trace)
        while trace.n_iter < self.max_iter:
            trace.n_iter += 1
            candidate = self.m_step(mixture, shares)
            new_value, new_shares = self.e_step(candidate)
            removed = new_shares.n_experts < shares.n_experts
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
                        "stopped at the best iterate. Standardise the features or lower inner_tol.",
                        ConvergenceWarning,
                        stacklevel=4,
                    )
                    break
                self.drop = 0.1 * self.drop if self.drop > 1e-8 else 0.0
                _, shares = self.e_step(mixture)
                continue
            mixture, value, shares = candidate, new_value, new_shares
            trace.add(value, shares)
            trace.gap = self.experts_gap
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

    @property
    def experts_gap(self) -> float:
        """The duality gap of the experts' problems in the last M-step."""
        return self.experts.gap

    def _late(self) -> bool:
        return self.deadline is not None and perf_counter() > self.deadline

    def e_step(self, mixture: Mixture) -> tuple[float, Responsibilities]:
        """The objective, and who answers for what."""
        data = self.data
        tree, given = mixture.gate.e_step_form(data.X)
        if tree is not None and data.tile_rows is not None:  # gate and experts see different rows
            tree, given = None, mixture.gate.log_weights(data.X, self.n_threads)
        log_likelihood = np.empty(len(data.weight))
        tiles = np.ascontiguousarray(mixture.bank.tiles)
        count, expert, q = _core.e_step(
            data.rows.core, tree, given, tiles, data.signs, self.label_weight, self.drop, log_likelihood, self.n_threads
        )
        offsets = np.concatenate([[0], np.cumsum(count, dtype=np.int64)])
        shares = Responsibilities(offsets, expert, q, data.weight, len(tiles))
        return float(np.dot(data.weight, log_likelihood)) - mixture.bank.penalty, shares

    def m_step(self, mixture: Mixture, shares: Responsibilities) -> Mixture:
        """Gate, then experts, for given responsibilities."""
        data = self.data
        gate, kept = mixture.gate.updated(data.gate_rows, data.X, shares, n_threads=self.n_threads, **self.gate_options)
        bank = self.experts.restrict(mixture.bank, kept)
        return Mixture(gate, self.experts.update(bank, shares.restricted(kept)))
