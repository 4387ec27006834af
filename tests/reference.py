"""Slow, obvious NumPy versions of every formula; the tests compare the package with these.

Everything is written on the explicitly expanded matrix Z of a block problem: row r holds, at each block it
touches, its coefficient times (x, bias). The package never forms it.
"""

import numpy as np
from scipy import sparse

POWER = {"hinge": 1, "squared_hinge": 2}


def dense(X):
    """X as a float64 array."""
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)


def augment(X, bias):
    """(x_i, bias) of every row."""
    X = dense(X)
    return np.hstack([X, np.full((len(X), 1), float(bias))])


def expand(X, bias, tile, weight, own, shared, index=None):
    """Z for tiles W_k = own V_k + sum_s shared[k, s] V_{K+s} and rows coded over tiles."""
    rows = augment(X, bias)
    n_tiles, n_shared = shared.shape
    size = rows.shape[1]
    Z = np.zeros((len(tile), n_tiles + n_shared, size))
    for r in range(len(tile)):
        x = rows[r if index is None else index[r]]
        for a in range(tile.shape[1]):
            k = tile[r, a]
            g = 1.0 if weight is None else weight[r, a]
            Z[r, k] += g * own * x
            for s in range(n_shared):
                Z[r, n_tiles + s] += g * shared[k, s] * x
    return Z.reshape(len(tile), -1)


def expand_problem(problem, X):
    """Z of a `Problem` whose rows are X."""
    coupling = problem.coupling
    return expand(X, problem.rows.bias, problem.tile, problem.weight, coupling.own, coupling.shared, problem.index)


def expand_csvm(X, bias, cell, n_cells, global_reg):
    """Z of the clustered SVM, eq. 7 of the paper: own cell, and x / sqrt(lambda) at the global block (last)."""
    rows = augment(X, bias)
    Z = np.zeros((len(rows), n_cells + 1, rows.shape[1]))
    Z[np.arange(len(rows)), cell] = rows
    Z[:, n_cells] = rows / np.sqrt(global_reg)
    return Z.reshape(len(rows), -1)


def loss(margin, power, threshold=None):
    """max(0, t - m)^p, with thresholds of one if there are none."""
    threshold = np.ones(len(margin)) if threshold is None else threshold
    return np.array([max(0.0, t - m) ** power for m, t in zip(margin, threshold, strict=True)])


def primal(Z, sign, cost, v, power, threshold=None):
    """1/2 |v|^2 + sum_r c_r loss(s_r <z_r, v>)."""
    v = np.ravel(v)
    return 0.5 * v @ v + cost @ loss(sign * (Z @ v), power, threshold)


def weights(Z, sign, alpha):
    """V(alpha) = sum_r alpha_r s_r z_r."""
    return Z.T @ (alpha * sign)


def dual(Z, sign, cost, alpha, power, threshold=None):
    """sum_r t_r alpha_r - 1/2 |V(alpha)|^2, less sum_r alpha_r^2 / 4 c_r if p = 2."""
    v = weights(Z, sign, alpha)
    value = (alpha if threshold is None else threshold * alpha).sum() - 0.5 * v @ v
    if power == 2:
        value -= sum(a * a / (4 * c) for a, c in zip(alpha, cost, strict=True) if c > 0)
    return value


def infeasibility(alpha, cost, power):
    """How far the duals are outside their box; a row that costs nothing has none."""
    upper = np.where(cost > 0, np.inf, 0.0) if power == 2 else cost
    return float(max(0.0, -alpha.min(initial=0.0), (alpha - upper).max(initial=0.0)))


def kkt_residual(Z, sign, cost, alpha, power, threshold=None):
    """Largest violation of: margin t (less alpha / 2c) inside the box, at least t at 0, at most t at the cost."""
    margin = sign * (Z @ weights(Z, sign, alpha))
    threshold = np.ones(len(margin)) if threshold is None else threshold
    worst = 0.0
    for m, t, a, c in zip(margin, threshold, alpha, cost, strict=True):
        if c == 0:
            continue
        gradient = m - t + (a / (2 * c) if power == 2 else 0.0)
        if a == 0:
            worst = max(worst, -gradient)
        elif power == 1 and a == c:
            worst = max(worst, gradient)
        else:
            worst = max(worst, abs(gradient))
    return worst


def crammer_singer_infeasibility(alpha, label, cost):
    """How far the duals are outside their bounds, and their sums over the classes from zero."""
    upper = np.zeros_like(alpha)
    upper[np.arange(len(label)), label] = cost
    return float(max(np.abs(alpha.sum(axis=1)).max(initial=0.0), (alpha - upper).max(initial=0.0)))


def tile_matrix(own, shared, size):
    """B with stacked tiles W = B stacked blocks V."""
    n_tiles = len(shared)
    return np.kron(np.hstack([own * np.eye(n_tiles), shared]), np.eye(size))


def newton_matrix(hessians, own, shared):
    """I + B^T diag(S_1 .. S_K) B as one dense matrix."""
    n_tiles, size, _ = hessians.shape
    B = tile_matrix(own, shared, size)
    S = np.zeros((n_tiles * size, n_tiles * size))
    for k in range(n_tiles):
        S[k * size : (k + 1) * size, k * size : (k + 1) * size] = hessians[k]
    return np.eye(B.shape[1]) + B.T @ S @ B


def vote(s):
    """exp(-hinge(s)) - exp(-hinge(-s))."""
    return np.exp(-max(0.0, 1 - s)) - np.exp(-max(0.0, 1 + s))


def posterior(s):
    """The vote divided by exp(-hinge(s)) + exp(-hinge(-s))."""
    return vote(s) / (np.exp(-max(0.0, 1 - s)) + np.exp(-max(0.0, 1 + s)))


def scores(X, tile, weight, coef, intercept, link):
    """f_c(x) = sum_k g_k(x) link(<w_kc, x> + b_kc)."""
    X = dense(X)
    out = np.zeros((len(X), coef.shape[1]))
    for i in range(len(X)):
        for a in range(tile.shape[1]):
            g = 1.0 if weight is None else weight[i, a]
            for c in range(coef.shape[1]):
                s = coef[tile[i, a], c] @ X[i] + intercept[tile[i, a], c]
                out[i, c] += g * {"identity": float, "vote": vote, "posterior": posterior}[link](s)
    return out


def csvm_objective(X, bias, cell, signs, cost, w_global, w_cells, global_reg, power):
    """The paper's eq. 4: lambda/2 |w|^2 + 1/2 sum_l |w_l - w|^2 + sum_i c_i loss(y_i <w_l(i), (x_i, bias)>)."""
    rows = augment(X, bias)
    value = 0.5 * global_reg * w_global @ w_global
    value += sum(0.5 * (w - w_global) @ (w - w_global) for w in w_cells)
    margin = [s * (w_cells[k] @ x) for s, k, x in zip(signs, cell, rows, strict=True)]
    return value + cost @ loss(margin, power)


def nearest(X, centers):
    """Index of the nearest center by the plain distance; the first of equals."""
    return np.array([np.argmin([np.sum((x - c) ** 2) for c in centers]) for x in dense(X)])


def knots(values, weight, n_knots):
    """The knots of a dense column, from rows of weight `weight`: none for two values or fewer."""
    distinct = np.unique(values)
    if len(distinct) <= 2:
        return np.zeros(0)
    return _chosen(values, weight, n_knots)


def _chosen(values, weight, n_knots):
    distinct = np.unique(values)
    if len(distinct) <= n_knots:
        return distinct
    mass = np.array([weight[values == u].sum() for u in distinct])
    heavy = mass > weight.sum() / n_knots
    m = n_knots - heavy.sum()
    rest, below = distinct[~heavy], np.cumsum(mass[~heavy])
    levels = np.array([0.5]) if m == 1 else np.arange(m) / (m - 1)
    quantiles = [rest[np.argmax(below >= level * below[-1] * (1 - 1e-12))] for level in levels]
    return np.unique(np.concatenate([distinct[heavy], quantiles]))


def sparse_knots(values, weight, n_knots):
    """The knots of a sparse column: zero, and those of the values that are not."""
    stored = values != 0
    if len(np.unique(values[stored])) < 2:
        return np.zeros(0)
    return np.union1d(_chosen(values[stored], weight[stored], n_knots - 1), 0.0)


def expand_pieces(X, knots, center, scale, reach, implicit_zeros=False):
    """(straight terms, hats of the first curve, ...), a hat being the interpolation of a row of the unit matrix."""
    X = dense(X)
    straight = np.clip((X - center) * scale, -reach, reach)
    hats = [
        np.interp(X[:, f], u, np.eye(len(u))[t]) * (0.0 if implicit_zeros and u[t] == 0 else 1.0)
        for f, u in enumerate(knots)
        for t in range(len(u))
    ]
    return np.column_stack([straight, *hats])


def boosted_scores(X, target, weight, loss, *, n_rounds, rate, max_leaves, min_rows, l2, min_curvature):
    """Scores of the rows by boosted trees: in each round, for each output, the leaf that gains most is split next.

    Derivatives are rounded as in `core/boosting.hpp`, so that equal gains are equal there, too.
    """
    n, n_outputs = target.shape
    start = (weight @ target) / weight.sum()
    if loss != "squared_error":
        share = start.clip(1e-6, 1 - 1e-6)
        start = np.log(share / (1 - share)) if loss == "log_loss" else np.log(share)
    scores = np.tile(start, (n, 1))
    for _ in range(n_rounds):
        each = np.exp(scores - scores.max(axis=1, keepdims=True))
        before = each / each.sum(axis=1, keepdims=True) if loss == "softmax" else 1 / (1 + np.exp(-scores))
        for c in range(n_outputs):
            if loss == "squared_error":
                slope, curvature = weight * (scores[:, c] - target[:, c]), weight
            else:
                factor = n_outputs / (n_outputs - 1) if loss == "softmax" else 1.0
                slope = weight * (before[:, c] - target[:, c])
                curvature = np.maximum(factor * weight * before[:, c] * (1 - before[:, c]), 1e-16 * weight)
            steps = min(2147483647 // (n + 1), 32767)
            g, h = (unit * np.rint(d / unit) for d in (slope, curvature) for unit in [np.abs(d).max() / steps])
            leaves = [np.arange(n)]
            while len(leaves) < max_leaves:
                best = max(
                    (_best_split(X, g, h, weight, rows, min_rows, l2, min_curvature) for rows in leaves),
                    key=lambda s: s[0],
                )
                if best[0] <= 0:
                    break
                _, left, right = best
                at = next(k for k, rows in enumerate(leaves) if len(rows) == len(left) + len(right) and left[0] in rows)
                leaves[at : at + 1] = [left, right]
            for rows in leaves:
                scores[rows, c] -= rate * slope[rows].sum() / (curvature[rows].sum() + l2)
    return scores


def _best_split(X, g, h, weight, rows, min_rows, l2, min_curvature):
    """(gain, rows to the left, rows to the right) of the best split of a leaf, with rows counted by their curvature."""
    best = (0.0, None, None)
    if weight[rows].sum() < 2 * min_rows:
        return best
    least = max(min_curvature, min_rows * h[rows].sum() / weight[rows].sum()) * (1 - 1e-9)
    for values in X[rows].T:
        for cut in np.unique(values)[:-1]:
            sides = rows[values <= cut], rows[values > cut]
            sums = [(g[side].sum(), h[side].sum()) for side in (*sides, rows)]
            if min(sums[0][1], sums[1][1]) < least:
                continue
            gains = [slope**2 / (curvature + l2) for slope, curvature in sums]
            gain = gains[0] + gains[1] - gains[2]
            if gain > best[0] * (1 + 1e-12):
                best = (gain, *sides)
    return best
