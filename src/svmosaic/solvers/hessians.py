"""The Hessians of the second-order solvers: how they are formed, and how their systems are solved.

Rows that belong to one tile each make an arrow: one matrix per tile, and a border of the blocks that tiles share. Rows
with codes c over several tiles make one matrix per pair of tiles: row r adds curvature_r c_rs c_rt (x_r, bias) (x_r,
bias)^T to that of (s, t), and the system is a dense one, for few tiles of few features.
"""

import numpy as np
from scipy import sparse
from scipy.linalg import lapack

from svmosaic import _core
from svmosaic.couplings import Coupling
from svmosaic.rows import Rows
from svmosaic.solvers.problem import Problem

# Rows whose pairs of tiles are sorted at a time.
CROSSED_ROWS = 16_384
# Rows from which the correlation of codes is found, and the ridge that is added to it; 0.1 to 1 measured alike.
OVERLAP_ROWS, OVERLAP_RIDGE = 8192, 0.3
# Up to so many tiles: it costs their cube, once for all targets.
LARGEST_OVERLAP = 1000
# Up to this size a matrix is inverted faster by simple loops than by LAPACK.
LARGEST_SMALL = 128


def n_pairs_of(n_tiles: int) -> int:
    return n_tiles * (n_tiles + 1) // 2


def tile_hessians(problem, curvature, n_threads):
    """One matrix sum_r curvature_r code_r^2 (x_r, bias)(x_r, bias)^T per tile.

    Rows (or pairs of row and tile, if rows have several) are kept sorted by tile, so that one sweep finds the active
    ones.
    """
    n_tiles, size = problem.coupling.n_tiles, problem.shape[1]
    design, order, bounds, row, square = problem.once("sorted", _by_tile)
    if row is not None:
        curvature = curvature[row] if square is None else curvature[row] * square
    members, offsets = np.empty(len(curvature), np.int32), np.empty(n_tiles + 1, np.int64)
    n_active = _core.active_members(curvature, order, bounds, members, offsets, n_threads)
    out = np.empty((n_tiles, size, size))
    _core.tile_hessians(
        problem.rows.core, design or problem.design, members[:n_active], offsets, curvature, out, n_threads
    )
    return out


def _by_tile(problem):
    """(design, order, bounds, row, square); the last two are of sorted pairs of row and tile, if rows have several."""
    rows, tile, n_tiles = problem.rows, problem.tile, problem.coupling.n_tiles
    bounds = np.array([0, tile.size], dtype=np.int64)
    if n_tiles > 1:
        bounds = np.concatenate([bounds[:1], np.cumsum(np.bincount(tile.ravel(), minlength=n_tiles))])
    order = None if n_tiles == 1 else stable_order(tile.ravel(), n_tiles)
    if problem.one_tile_a_row:
        return None, order, bounds, None, None
    order = np.arange(tile.size, dtype=np.int32) if order is None else order
    row = order // np.int32(tile.shape[1])
    square = None if problem.weight is None else np.square(problem.weight.ravel()[order])
    place = row if problem.index is None else problem.index[row]
    return _core.Design(rows.core, tile.ravel()[order][:, None], None, place, n_tiles), None, bounds, row, square


def stable_order(values, end):
    """Positions of the values, which lie in [0, end), in their order; small integers are sorted in linear time."""
    return np.argsort(values.astype(np.int16) if end < 2**15 else values, kind="stable").astype(np.int32)


def crossed_hessians(problem, curvature, n_threads, check=None):
    """The matrices of the pairs of tiles (s <= t), those of s = 0 first.

    Parameters
    ----------
    problem : Problem
    curvature : ndarray of shape (n_rows,)
        Not negative.
    n_threads : int
    check : callable, optional
        Called now and then; may raise.

    Returns
    -------
    ndarray of shape (n_tiles (n_tiles + 1) / 2, n_features + 1, n_features + 1)
    """
    rows, tile, code, index, n_tiles = (
        problem.rows, problem.tile, problem.weight, problem.index, problem.coupling.n_tiles,
    )  # fmt: skip
    left, right = np.triu_indices(tile.shape[1])
    n_pairs, size = n_pairs_of(n_tiles), rows.n_features + 1
    out, part = np.zeros((n_pairs, size, size)), np.empty((n_pairs, size, size))
    alive = np.flatnonzero(curvature)
    for begin in range(0, len(alive), CROSSED_ROWS):
        if check is not None:
            check()
        here = alive[begin : begin + CROSSED_ROWS]
        tiles, codes = tile[here], np.ones(tile[here].shape) if code is None else code[here]
        s, t = np.minimum(tiles[:, left], tiles[:, right]), np.maximum(tiles[:, left], tiles[:, right])
        pair = (s * n_tiles - s * (s - 1) // 2 + t - s).ravel()
        order = stable_order(pair, n_pairs)
        weight = (curvature[here, None] * codes[:, left] * codes[:, right]).ravel()[order]
        pair = np.ascontiguousarray(pair[order], dtype=np.int32)
        row = here[order // len(left)]
        places = (row if index is None else index[row]).astype(np.int32)
        design = _core.Design(rows.core, pair[:, None], None, places, n_pairs)
        for sign in (1, -1):  # the core takes roots of weights; some codes are negative
            active = np.flatnonzero(sign * weight > 0).astype(np.int32)
            if len(active):
                offsets = np.searchsorted(pair[active], np.arange(n_pairs + 1)).astype(np.int64)
                _core.tile_hessians(rows.core, design, active, offsets, np.abs(weight), part, n_threads)
                out += sign * part
    return out


def crossed_solve(hessians, coupling, residual):
    """The Newton direction: solve (I + own^2 S) p = -residual with the matrices S of all pairs of tiles."""
    n_tiles, size = residual.shape
    whole = np.empty((n_tiles, size, n_tiles, size))
    for (s, t), block in zip(zip(*np.triu_indices(n_tiles), strict=True), hessians, strict=True):
        whole[s, :, t], whole[t, :, s] = block, block.T
    whole = whole.reshape(n_tiles * size, n_tiles * size)
    whole *= coupling.own**2
    return arrow_solve(whole[None], Coupling.independent(1), residual.reshape(1, -1)).reshape(residual.shape)


def one_in(share, n_rows):
    """One row out of `share` consecutive ones, as int32. It is drawn: rows may have a period, as those of ijcnn1."""
    n_groups = n_rows // share
    pick = np.random.default_rng(0).integers(share, size=n_groups, dtype=np.int32)
    return pick + np.arange(0, share * n_groups, share, dtype=np.int32)


def crossed_solver(problem, matrices, n_threads):
    r"""Solves with an approximate Hessian of rows that belong to several tiles; a function of a vector.

    The tiles' own matrices :math:`R_k R_k^T = I + \text{own}^2 S_k` are on its diagonal, and the block of two tiles is
    taken for :math:`\Gamma_{kl} R_k R_l^T`, where :math:`\Gamma` is the correlation of the codes: it says how far rows
    of one tile belong to the other. A ridge keeps it from being trusted too much. One matrix per tile and one with a
    row per tile thus do the work of all pairs of tiles.
    """
    factors = tile_inverses(matrices, problem.coupling.own**2, n_threads, of_factors=True)
    shares = problem.once("overlap", _overlap_inverse)

    def solve(residual):
        scaled = shares @ np.matmul(factors, residual[:, :, None])[:, :, 0]
        return np.matmul(factors.transpose(0, 2, 1), scaled[:, :, None])[:, :, 0]

    return solve


def _overlap_inverse(problem):
    """The inverse of the codes' correlation and a ridge, from a sample of the rows."""
    n_tiles, width = problem.coupling.n_tiles, problem.tile.shape[1]
    here = one_in(max(1, problem.n_rows // OVERLAP_ROWS), problem.n_rows)
    code = np.ones((len(here), width)) if problem.weight is None else problem.weight[here]
    codes = sparse.csr_array(
        (code.ravel(), problem.tile[here].ravel(), np.arange(0, code.size + 1, width)), shape=(len(here), n_tiles)
    )
    products = (codes.T @ codes).toarray()
    size = np.sqrt(np.where(products.diagonal() > 0, products.diagonal(), 1.0))
    correlation = products / size[:, None] / size
    correlation[np.diag_indices(n_tiles)] = 1.0 + OVERLAP_RIDGE
    return np.linalg.inv(correlation / (1.0 + OVERLAP_RIDGE))


def arrow_solve(hessians, coupling, residual):
    r"""The Newton direction: solve (I + B S B^T) p = -residual.

    S holds one matrix per tile, and B maps tiles to blocks as the coupling does. With
    :math:`M_k = (I + \text{own}^2 S_k)^{-1}`, eliminating a tile's own block leaves
    :math:`U_{ks} U_{kt} (I - M_k) / \text{own}^2` on the shared blocks (s, t).
    """
    n_tiles, n_shared, own = coupling.n_tiles, coupling.n_shared, coupling.own
    size = residual.shape[1]
    direction = np.empty_like(residual)
    if n_shared == 0:
        for k in range(n_tiles):
            matrix = own**2 * hessians[k]
            matrix.flat[:: size + 1] += 1.0
            direction[k] = -_solve_positive(matrix, residual[k])
        return direction
    eye = np.eye(size)
    inverse = tile_inverses(hessians, own**2)
    curvature = (eye - inverse) / own**2
    shared = coupling.shared
    schur = np.einsum("ks,kt,kij->sitj", shared, shared, curvature, optimize=True)
    schur = schur.reshape(n_shared * size, n_shared * size) + np.eye(n_shared * size)
    pulled = np.einsum("kij,kj->ki", curvature, residual[:n_tiles])
    right = -residual[n_tiles:] + own * np.einsum("ks,ki->si", shared, pulled)
    direction[n_tiles:] = _solve_positive(schur, right.ravel()).reshape(n_shared, size)
    moved = shared @ direction[n_tiles:]
    direction[:n_tiles] = -np.einsum("kij,kj->ki", inverse, residual[:n_tiles])
    direction[:n_tiles] -= own * np.einsum("kij,kj->ki", curvature, moved)
    return direction


def tile_inverses(matrices, scale, n_threads=1, of_factors=False):
    """(I + scale S)^-1 of each matrix, or the inverses of their Cholesky factors: small ones by the core, large ones by
    LAPACK.
    """
    eye = np.eye(matrices.shape[1])
    inverse = np.full_like(matrices, np.nan)
    if len(eye) <= LARGEST_SMALL:
        _core.tile_inverses(matrices, scale, inverse, n_threads, of_factors)
    for k in np.flatnonzero(np.isnan(inverse[:, 0, 0])):
        factor = _factor(eye + scale * matrices[k])
        if factor is not None:
            inverse[k] = lapack.dtrtri(factor, lower=1)[0] if of_factors else lapack.dpotrs(factor, eye, lower=1)[0]
    return inverse


def _solve_positive(matrix, right):
    """Cholesky solve; NaN where no ridge helps."""
    factor = _factor(matrix)
    return np.full_like(right, np.nan) if factor is None else lapack.dpotrs(factor, right, lower=1)[0]


def _factor(matrix):
    """The lower Cholesky factor; where rounding spoilt positive definiteness, with a larger and larger ridge.

    None where no ridge helps: the matrix holds infinities.
    """
    ridge = 0.0
    while ridge <= 1.0:
        # Transposed, a symmetric matrix is as LAPACK wants it.
        factor, info = lapack.dpotrf((matrix + ridge * np.diag(matrix.diagonal()) if ridge else matrix).T, lower=1)
        if info == 0:
            return factor
        ridge = max(10.0 * ridge, 1e-14)
    return None


# ---- blocks that see only a part of the row -------------------------------------------------------------
#
# Matrices of what each block sees precondition conjugate gradients. Where blocks come in groups, such as the leaves of
# a tree, of which a row touches one, the blocks of a group have nothing in common, and M groups leave a condition
# number of about M.


def sighted_form(sight, n_blocks, n_features, largest) -> str | None:
    """What is formed of the curvature: matrices of all blocks, diagonals of those that see less, or nothing."""
    whole, n_rest, size = sight.n_full * (n_features + 1) ** 2, n_blocks - sight.n_full, sight.n_seen + 1
    if whole + n_rest * size**2 <= largest:
        return "tiles"
    return "diagonals" if whole + n_rest * size <= largest else None


def sighted_hessians(problem, curvature, n_threads, form):
    """The matrices of the blocks that see whole rows, and matrices or (form "diagonals") diagonals of the others."""
    full, rest = problem.once("seen", _seen)
    matrices = tile_hessians(full, curvature, n_threads)
    if form == "tiles":
        return matrices, tile_hessians(rest, curvature, n_threads)
    squares, design = rest.once("squares", _squared)
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
