r"""Fewer kernels for the same function: a reduced set by clustering, least squares and descent on the centers."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from sklearn.utils import check_random_state

from svmosaic.densities.kernel_sums import squared_distances

# Rows on which the reduced function is compared with the full one.
_MAX_ROWS = 4000

# Ridge of the least squares, as a share of the mean squared kernel column: keeps nearly equal kernels from cancelling.
_RIDGE = 1e-6


@dataclass(frozen=True)
class Expansion:
    """sum_i coef[i, c] exp(-gamma |x - centers_i|^2) + intercept[c]"""

    centers: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray


def reduce_expansion(centers, coef, intercept, gamma, n_centers, rows, random_state=None, *, max_iter=50):
    r"""An expansion with `n_centers` kernels close to the given one over `rows`.

    Minimizes over centers z, coefficients b and intercepts

    .. math:: \frac1n \sum_n \lVert g(x_n) - f(x_n) \rVert^2 + \rho \lVert b \rVert^2

    from a start with z the k-means centers of the given ones, each counted by the size of its coefficients. For given
    z the rest is a linear least squares problem, so that the descent (L-BFGS) is over z alone.
    """
    from sklearn.cluster import KMeans  # here, since it takes a while to import

    rng = check_random_state(random_state)
    if len(rows) > _MAX_ROWS:
        rows = rows[rng.choice(len(rows), _MAX_ROWS, replace=False)]
    rows = np.asarray(rows, dtype=np.float64)
    size = np.abs(coef).sum(axis=1)
    distinct = len(np.unique(centers, axis=0))
    kmeans = KMeans(min(n_centers, distinct), n_init=1, random_state=rng).fit(centers, sample_weight=size)
    start = kmeans.cluster_centers_.astype(np.float64)
    target = np.exp(-gamma * squared_distances(rows, centers)) @ coef + intercept
    # A common unit, so that the stopping rule means the same for any SVM.
    unit = max(float(np.sqrt(np.mean((target - target.mean(axis=0)) ** 2))), np.finfo(np.float64).tiny)
    target = target / unit
    ridge = _RIDGE * float(np.mean(np.exp(-2 * gamma * squared_distances(rows, start))))
    found = minimize(
        lambda z: misfit(z.reshape(start.shape), rows, target, gamma, ridge),
        start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": max_iter},
    )  # fmt: skip
    z = found.x.reshape(start.shape)
    solution = fit_coefficients(z, rows, target, gamma, ridge)[1] * unit
    return Expansion(z, solution[:-1], solution[-1])


def fit_coefficients(z, rows, target, gamma, ridge):
    """Kernel columns, ridge solution (the intercept last, hardly penalized) and residuals for the centers z."""
    kernel = np.exp(-gamma * squared_distances(rows, z))
    design = np.column_stack([kernel, np.ones(len(rows))])
    penalty = penalty_of(len(z), ridge)
    gram = design.T @ design / len(rows) + np.diag(penalty)
    solution = np.linalg.solve(gram, design.T @ target / len(rows))
    return kernel, solution, design @ solution - target


def penalty_of(n_centers, ridge):
    return np.append(np.full(n_centers, ridge), 1e-6 * ridge)


def misfit(z, rows, target, gamma, ridge):
    """Half the objective at the best coefficients for the centers z, and its gradient."""
    kernel, solution, residual = fit_coefficients(z, rows, target, gamma, ridge)
    value = 0.5 * np.mean((residual**2).sum(axis=1)) + 0.5 * (penalty_of(len(z), ridge) @ solution**2).sum()
    # The inner problem is solved exactly, so this is the gradient with the coefficients held.
    pull = kernel * (residual @ solution[:-1].T) / len(rows)
    return value, (2 * gamma * (pull.T @ rows - pull.sum(axis=0)[:, None] * z)).ravel()
