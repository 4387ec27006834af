"""The problems of a fit, solved by the one Newton method over partitions.

Only sums and weights travel; the duals, one number per row, stay where the rows are. The duality gap is exact: it is a
difference of two sums. Problems of several outputs or folds ask in step, so that one pass over the rows answers all.
"""

import numpy as np

from svmosaic.scale.part import answer, move
from svmosaic.solvers import Control, Solution
from svmosaic.solvers.newton import FIRST_STEPS, Setting, newton_steps
from svmosaic.solvers.share import Evaluate


def solve_partitions(partitions, jobs, *, n_features, n_rows, one_tile, tol, max_iter, control=None):
    """Solve the problems of `jobs` over all partitions.

    Parameters
    ----------
    partitions : Partitions
    jobs : list of Job
    n_features : int
    n_rows : int
        Rows of all partitions; every round is checked to have seen as many.
    one_tile : bool
        Whether each row belongs to one tile, so that the Hessian is an arrow and its system is solved directly.
    tol : float
        Stop at a duality gap of tol times the objective at zero.
    max_iter : int
        Newton steps.
    control : Control, optional
        Is called after every step, and decides whether to stop.

    Returns
    -------
    list of Solution, without duals
    """
    control = control or Control()
    runs = []
    for k, job in enumerate(jobs):
        setting = Setting(job, job.coupling, job.loss, n_features, one_tile, travels=True, sight=job.sight)
        runs.append(
            newton_steps(
                setting, np.zeros(setting.shape), FIRST_STEPS[False], tol=tol, max_iter=max_iter,
                control=control.for_task((k, None), 0, 1),  # in step with each other: each of them has all the time
                keep=lambda found: None,
            )
        )  # fmt: skip
    asked = {k: next(run) for k, run in enumerate(runs)}
    solutions: list = [None] * len(jobs)
    while asked:
        moves = [question.move for question in asked.values() if question.move is not None]
        if moves:
            partitions.advance(move, moves, partitions.n_threads)
        answers = partitions.total(answer, list(asked.values()), partitions.n_threads)
        for k, found in zip(list(asked), answers, strict=True):
            if isinstance(asked[k], Evaluate) and found[0][0] != n_rows:
                raise RuntimeError(f"a round saw {found[0][0]:.0f} of {n_rows} rows: rows were lost, nothing is fitted")
            try:
                asked[k] = runs[k].send(found)
            except StopIteration as stop:
                certificate, n_iter, target = stop.value
                solutions[k] = Solution(certificate, None, n_iter, target, "newton")
                del asked[k]
    return solutions
