"""The curvature of problems some of whose blocks see only a part of the row: matrices of what each block sees.

They precondition conjugate gradients. Where blocks come in groups, such as the leaves of a tree, of which a row touches
one, the blocks of a group have nothing in common, and M groups leave a condition number of about M.
"""

import numpy as np

from svmosaic import _core
from svmosaic.couplings import Coupling
from svmosaic.rows import Rows
from svmosaic.solvers.hessians import arrow_solve, tile_hessians
from svmosaic.solvers.problem import Problem


def sighted_form(sight, n_blocks, n_features, largest) -> str | None:
    """What is formed of the curvature: matrices of all blocks, diagonals of those that see less, or nothing."""
    whole, n_rest, size = sight.n_full * (n_features + 1) ** 2, n_blocks - sight.n_full, sight.n_seen + 1
    if whole + n_rest * size**2 <= largest:
        return "tiles"
    return "diagonals" if whole + n_rest * size <= largest else None


def sighted_hessians(problem, curvature, n_threads, form):
    """The matrices of the blocks that see whole rows, and matrices or (form "diagonals") diagonals of the others."""
    full, rest = problem.once("seen", lambda: _seen(problem))
    matrices = tile_hessians(full, curvature, n_threads)
    if form == "tiles":
        return matrices, tile_hessians(rest, curvature, n_threads)
    squares, design = rest.once("squares", lambda: _squared(rest))
    out, up = np.empty(rest.shape), np.ones(problem.n_rows, dtype=np.int8)
    _core.accumulate(squares.core, design, up, curvature, out, n_threads)
    return matrices, out


def sighted_solve(matrices, coupling, residual):
    """The Newton direction as if blocks had no rows in common: solve (I + own^2 S) p = -residual with the matrices."""
    direction, first = np.zeros_like(residual), 0
    for group in matrices:
        # A block that sees less sees the first features, and the bias, which comes last.
        places = np.ix_(first + np.arange(len(group)), np.append(np.arange(group.shape[-1] - 1), residual.shape[1] - 1))
        if group.ndim == 3:
            direction[places] = arrow_solve(group, Coupling(coupling.own, np.zeros((len(group), 0))), residual[places])
        else:
            direction[places] = -residual[places] / (1.0 + coupling.own**2 * group)
        first += len(group)
    return direction


def _seen(problem):
    """The problem as two: of the blocks that see whole rows, and of the others with what they see."""
    n_full, n_blocks = problem.sight.n_full, problem.coupling.n_blocks
    block, coef = problem.coupling.blocks(problem.tile, problem.weight)
    coef = np.ones(block.shape) if coef is None else coef / problem.coupling.own
    is_full = block < n_full
    return (
        _group(problem, problem.rows, is_full, block, coef, n_full),
        _group(problem, problem.rows.seen(problem.sight.rest), ~is_full, block - n_full, coef, n_blocks - n_full),
    )


def _group(problem, rows, here, block, coef, n_blocks):
    used = here.any(axis=0)
    block, coef = np.where(here, block, 0)[:, used], np.where(here, coef, 0.0)[:, used]
    coupling = Coupling.independent(n_blocks)
    return Problem(rows, block, coef, coupling, problem.sign, problem.cost, problem.loss, problem.index)


def _squared(problem):
    X = problem.rows.X
    squares = Rows(X.multiply(X).tocsr() if hasattr(X, "multiply") else np.square(X), problem.rows.bias**2)
    return squares, _core.Design(
        squares.core, problem.tile, np.square(problem.weight), problem.index, problem.coupling.n_blocks
    )
