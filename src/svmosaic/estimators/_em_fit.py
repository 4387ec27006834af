"""A mixture fitted by EM, from a plan: the parameters of a model without the model."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from svmosaic.couplings import ClusteredTasks
from svmosaic.estimators._em_loop import EM, Mixture, Trace
from svmosaic.estimators._em_rows import MemoryEMRows
from svmosaic.estimators.data import Data
from svmosaic.estimators.tiles import Options
from svmosaic.rows import bias_of


@dataclass(frozen=True)
class Plan:
    """What a mixture is and how it is fitted.

    Attributes
    ----------
    start : callable
        From `MemoryEMRows` and a RandomState to a gate; it leaves the rows dealt out to cells.
    tasks : ClusteredTasks
        How the experts are tied.
    label_weight : float
        The rho of the objective.
    options : Options
        Of the experts' problems.
    intercept : tuple
        `fit_intercept` and `intercept_scaling`, see `bias_of`.
    gate_options : callable
        From the total weight of the rows to the options of the gate's M-step.
    tol, max_iter : of EM
    link : {"vote", "posterior"}
        How experts add up.
    """

    start: Callable
    tasks: ClusteredTasks
    label_weight: float
    options: Options
    intercept: tuple[bool, Any]
    gate_options: Callable
    tol: float
    max_iter: int
    link: str


def fit_em(rows: Data, plan: Plan, rng, deadline, watch) -> tuple[EM, Mixture, Trace]:
    """Start, then EM.

    Parameters
    ----------
    rows : Data
    plan : Plan
    rng : RandomState
    deadline : float or None
        On the clock of `perf_counter`.
    watch : callable
        See `EM.run`.
    """
    shared = MemoryEMRows(rows, options=plan.options, gate_options=plan.gate_options, rng=rng, deadline=deadline)
    gate = plan.start(shared, rng)
    bias = bias_of(*plan.intercept, shared.mean_square)
    shared.append(bias)
    loop = EM(
        shared, plan.tasks, label_weight=plan.label_weight, tol=plan.tol, max_iter=plan.max_iter, deadline=deadline
    )
    start = loop.start(gate, rows.target.n_outputs, rows.n_seen, bias)
    return loop, *loop.run(start, watch)
