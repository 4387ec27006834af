"""The front door of the solvers: picks one for each problem, runs independent problems side by side."""

import warnings
from contextlib import nullcontext
from functools import cache
from typing import Literal

import numpy as np
from joblib import effective_n_jobs
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import ThreadpoolController

from svmosaic.solvers.certificates import Solution, shortened
from svmosaic.solvers.control import Control
from svmosaic.solvers.dual_descent import solve_dual_descent
from svmosaic.solvers.hessians import n_pairs_of
from svmosaic.solvers.newton import LARGEST_DENSE, solve_newton
from svmosaic.solvers.sgd import solve_sgd

Solver = Literal["auto", "dual", "newton"]  # those with a certificate

# A rough cost model, in nanoseconds on one core of a 2023 server; only ratios matter. An epoch of descent reads
# each row's features once a block, and pays for jumping to the row; a Newton step reads all rows about three
# times and forms the Hessian from the third of the rows that is typically active.
_READ, _JUMP, _HESSIAN, _CHOLESKY, _CALL = 0.4, 70.0, 0.035, 0.1, 3e5
# Rows with curves of which few features are not zero add these to the Hessian pair by pair, at so much per square.
_SCATTERED = 1.2
# What a pair of tiles of a row adds to that: it is sorted by pair, and the row unpacked once more. A product with the
# Hessian reads the rows that are active once a block.
_PAIR, _PRODUCT = 400.0, 0.15
# Conjugate gradients: steps of a solve, and products per step. (Of dense rows that touch several blocks, these are read
# several times as fast; by descent, by passes and by products alike.)
_STEPS_BY_PRODUCTS, _PRODUCTS = 20, 20
# Bytes that the Hessian of rows of one tile may take, and those of the matrices that tiles have for themselves if rows
# touch several.
_LARGEST_HESSIAN, _LARGEST_OWN = 1e9, 2e8
# By the power of the loss: Newton's method ends on a piecewise quadratic objective in a few steps; a piecewise linear
# loss takes several of them for each proximal step.
_TYPICAL_EPOCHS, _TYPICAL_STEPS = 25, {1: 10, 2: 4}
# Epochs of descent before it is handed over, as a share of what Newton's method should take: rows that touch several
# tiles are hard on descent, which then either ends soon or drags on, on one thread. It goes on if its gap falls fast
# enough to end before Newton's method should; the rate since the start, which is faster, counts so many times less.
_PATIENCE_ALONE, _PATIENCE_CROSSED, _SLOWER = 2.0, 0.5, 2.0
# Values that a thread should have to read in a pass: as many as a piece of rows has in the core (core/passes.hpp).
_VALUES_PER_THREAD = 2**18
# Descent that has reached its limit is not handed to a Newton's method that should take longer than it did, unless it
# is short.
_SHORT = 2e9


def solve(
    problems, *, solver="auto", tol=1e-4, max_iter=1000, seed=0, n_jobs=None, start=None, sgd=None, control=None
) -> list[Solution]:
    """Solve independent problems, side by side on `n_jobs` threads.

    The result of each problem depends on it and on its place in the list alone, not on `n_jobs`.

    Parameters
    ----------
    problems : list of Problem
    solver : {"auto", "dual", "newton", "sgd"}
        "dual": coordinate descent. "newton": second order, for problems with one tile per row, or with tiles of few
        features that share nothing. "sgd": stochastic gradient descent, without a certificate. "auto": dual or newton,
        whichever should be faster; descent that drags on is handed to Newton's method, duals and all.
    tol : float
        Stop at a duality gap of tol times the objective at zero ("sgd": when five passes lower it by less).
    max_iter : int
        Epochs of descent, or Newton steps.
    seed : int
    n_jobs : int or None
    start : list of ndarray, optional
        Duals to start from.
    sgd : SgdOptions, optional
    control : Control, optional
        Limits the time, and gets reports of the progress.
    """
    control = control or Control()
    # Tiles that share nothing are problems of their own: (place in the list, rows there, problem, duals).
    tasks: list[tuple] = []
    places = []
    for k, problem in enumerate(problems):
        if not np.isfinite(problem.primal_at_zero):
            raise ValueError("the costs are too large: C times the sum of the weights overflows float64; lower C")
        alpha = None if start is None else start[k]
        for cell, (here, part) in enumerate(problem.split() if problem.separable else [(None, problem)]):
            tasks.append((k, here, part, alpha if here is None or alpha is None else alpha[here]))
            places.append((k, cell if problem.separable else None))
    # A problem can feed one thread by itself, and others with its rows.
    n_fed = 0
    for _, _, part, _ in tasks:
        n_fed += 1 + int(part.n_rows * part.tile.shape[1] * (8 + part.rows.stored_per_row) / _VALUES_PER_THREAD)
    n_workers = min(effective_n_jobs(n_jobs), n_fed)
    seeds = np.random.SeedSequence(seed).spawn(len(tasks))

    def run(t):
        _, _, part, alpha = tasks[t]
        solution = _solve_one(
            part, solver, tol=tol, max_iter=max_iter, seed=seeds[t], alpha=alpha, n_threads=n_workers,
            control=control.for_task(places[t], len(tasks) - t - 1, n_workers), sgd=sgd,
        )  # fmt: skip
        if not solution.converged and solution.settled is None:
            solution = shortened(part, solution, n_threads=n_workers)
        if control.finished is not None:
            control.finished(places[t], solution)
        return solution

    # Our threads go over problems and rows; BLAS's own, on matrices this small, would only get in their way. Their
    # number is only set if it is another, as that takes a while.
    several = [library for library in _blas().lib_controllers if library.num_threads != 1]
    with _blas().limit(limits=1) if several else nullcontext():
        solved = control.run_all(run, len(tasks), n_workers)
    solutions, first = [], 0
    for problem in problems:
        if not problem.separable:
            solutions.append(solved[first])
            first += 1
            continue
        # One solution out of those of independent tiles: values and gaps add up.
        last = first + problem.coupling.n_tiles
        found, alpha = solved[first:last], np.empty(problem.n_rows)
        for (_, here, _, _), s in zip(tasks[first:last], found, strict=True):
            alpha[here] = s.alpha
        first = last
        settled = None if all(s.settled is None for s in found) else all(s.converged for s in found)
        solver_names = "+".join(sorted({s.solver for s in found}))
        solutions.append(
            Solution(
                np.concatenate([s.weights for s in found]), sum(s.primal for s in found), sum(s.dual for s in found),
                alpha, max(s.n_iter for s in found), sum(s.target for s in found), solver_names, settled,
            )
        )  # fmt: skip
    return solutions


@cache
def _blas():
    return ThreadpoolController().select(user_api="blas")


def _solve_one(problem, solver, *, tol, max_iter, alpha, sgd, **options) -> Solution:
    if problem.primal_at_zero == 0:
        # No row pays anything at V = 0: that is the answer, and tol * P(0) = 0 is no tolerance to aim at.
        return solve_dual_descent(problem, tol=tol, max_iter=1, **options)
    if solver == "dual":
        return solve_dual_descent(problem, tol=tol, max_iter=max_iter, alpha=alpha, **options)
    if solver == "sgd":
        return solve_sgd(problem, tol=tol, max_iter=max_iter, options=sgd, **options)
    if solver == "newton":
        if not problem.one_tile_a_row and _own_bytes(problem) > _LARGEST_OWN:
            raise ValueError(
                f"solver='newton' forms a matrix per tile if rows belong to several, of at most {_LARGEST_OWN:.0g} "
                f"bytes in total; {problem.coupling.n_tiles} tiles of {problem.rows.n_features} features and a bias "
                f"need {_own_bytes(problem):.2g}: use 'auto', or fewer tiles"
            )
        return solve_newton(problem, tol=tol, max_iter=max_iter, alpha=alpha, **options)
    epoch, newton = _costs(problem)
    if newton <= _TYPICAL_EPOCHS * epoch:
        return solve_newton(problem, tol=tol, max_iter=max_iter, alpha=alpha, **options)
    # Descent that drags on is handed over.
    patience, more = float(max_iter), None
    if np.isfinite(newton) and problem.one_tile_a_row:
        patience = _PATIENCE_ALONE * int(newton / epoch)
    elif np.isfinite(newton):
        patience = max(_TYPICAL_EPOCHS, _PATIENCE_CROSSED * newton / epoch)
        more = _while_promising(problem, tol, max_iter, newton / epoch) if alpha is None else None
    patience = int(min(max_iter, patience))
    descent = solve_dual_descent(problem, tol=tol, max_iter=patience, alpha=alpha, more=more, **options)
    worthwhile = newton <= max(_SHORT, max_iter * epoch) or problem.one_tile_a_row
    if descent.converged or options["control"].stopped or not (np.isfinite(newton) and worthwhile):
        return descent
    second = solve_newton(problem, tol=tol, max_iter=max_iter, alpha=descent.alpha, **options)
    return second if second.gap <= descent.gap else descent


def _while_promising(problem, tol, max_iter, most):
    """Epochs to add after those that were made, if the fall of the gap promises an end within `most` more."""
    last = 0, problem.primal_at_zero

    def more(n_iter, gap) -> int:
        nonlocal last
        fall = np.log(last[1] / gap) / (n_iter - last[0]) / (1.0 if last[0] else _SLOWER)
        last = n_iter, gap
        needed = np.log(gap / (tol * problem.primal_at_zero)) / fall if fall > 0 else np.inf
        # Few epochs may raise the gap.
        return int(min(max(needed, _TYPICAL_EPOCHS), max_iter - n_iter)) if needed <= most else 0

    return more


def _own_bytes(problem) -> float:
    """What the tiles' own matrices take."""
    return 8.0 * problem.coupling.n_tiles * problem.shape[1] ** 2


def _costs(problem) -> tuple[float, float]:
    """Estimated costs of an epoch of descent and of a solve by Newton's method, infinite where that does not apply."""
    rows, n_rows, stored, size = problem.rows, problem.n_rows, problem.rows.stored_per_row, problem.shape[1]
    n_tiles, n_shared, width = problem.coupling.n_tiles, problem.coupling.n_shared, problem.tile.shape[1]
    jump = 2 * _JUMP if rows.is_encoded else _JUMP  # to the numbers of a row, and to its bins
    epoch = n_rows * (jump + _READ * (width + n_shared) * stored)
    if problem.one_tile_a_row:
        possible = 8.0 * size**2 * (3 * n_tiles + n_shared**2) <= _LARGEST_HESSIAN
        hessian = min(_HESSIAN * size**2, _SCATTERED * (1 + stored) ** 2 if rows.is_encoded else np.inf)
        width, cholesky = 1 + n_shared, _CHOLESKY * size**3 * (n_tiles / 3 + n_shared**3)
    else:
        possible = n_shared == 0 and _own_bytes(problem) <= _LARGEST_OWN
        hessian = n_pairs_of(width) * (_HESSIAN * size**2 + _PAIR)
        cholesky = _CHOLESKY * problem.n_weights**3 / 3
    if not possible or problem.sight is not None:
        return epoch, np.inf
    if not problem.one_tile_a_row and problem.n_weights > LARGEST_DENSE:  # directions by conjugate gradients
        row = _JUMP + width * (stored * (3 * _READ + _PRODUCTS * _PRODUCT) + _HESSIAN * size**2 / 3)
        return epoch, _STEPS_BY_PRODUCTS * (n_rows * row + 2 * _PRODUCTS * _READ * problem.n_weights * size + _CALL)
    step = n_rows * (3 * _READ * width * stored + hessian / 3 + _JUMP)
    return epoch, _TYPICAL_STEPS[problem.loss.power] * (step + cholesky + _CALL)


def warn_if_unconverged(solutions, max_iter, name, max_time=None):
    """Warn of the worst problem that stopped before its gap was reached; by `max_time` seconds, if that is given."""
    late = [s for s in solutions if not s.converged]
    if not late:
        return
    limit, what = ("max_iter", f"max_iter={max_iter}") if max_time is None else ("max_time", f"max_time={max_time} s")
    if late[0].settled is not None:
        warnings.warn(
            f"{name}: stochastic descent stopped after {what}{'' if max_time else ' passes'} with the objective of "
            f"{len(late)} of {len(solutions)} problems still falling. Increase {limit} or raise tol.",
            ConvergenceWarning,
            stacklevel=3,
        )
        return
    worst = max(late, key=lambda s: s.gap / max(s.target, 1e-300))
    warnings.warn(
        f"{name}: {len(late)} of {len(solutions)} problems stopped after {what}{'' if max_time else ' iterations'}; "
        f"the worst has a duality gap of {worst.gap:.3g}, above the required {worst.target:.3g}. Standardize the "
        f"features, increase {limit}, raise tol, or lower C.",
        ConvergenceWarning,
        stacklevel=3,
    )
