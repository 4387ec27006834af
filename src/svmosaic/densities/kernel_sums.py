"""Sums of Gaussian kernels and densities over rows: the one place where densities meet rows.

For prediction they are summed in the core, `KernelBank`; what EM and the reduction need, all the terms themselves, are
blocks of one matrix product here. Neither holds a matrix of all rows against all centers.
"""

import numpy as np
from joblib import effective_n_jobs

from svmosaic import _core
from svmosaic.rows import Rows

# Values of a block of distances: 2 MB in float64, which stays in the cache between the product and the exponential.
_VALUES_PER_BLOCK = 1 << 18


def row_blocks(n_rows, n_columns):
    """Slices of the rows such that a block of `n_columns` columns stays small."""
    size = max(1, _VALUES_PER_BLOCK // max(1, n_columns))
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


def squared_distances(X, centers):
    """Squared Euclidean distances of shape (n_rows, n_centers) for one block of rows, float64."""
    # Both are moved to the middle of the centers: |x|^2 - 2 x.c + |c|^2 loses digits far from the origin.
    middle = centers.mean(axis=0)
    X, centers = X - middle, centers - middle
    distances = X @ (-2.0 * centers.T)
    distances += np.einsum("ij,ij->i", X, X)[:, None]
    distances += np.einsum("ij,ij->i", centers, centers)
    return np.maximum(distances, 0.0, out=distances)


def kernel_sums(X, centers, gamma, coef, n_jobs=None):
    """out[n, c] = sum_i coef[i, c] exp(-gamma_i |x_n - centers_i|^2), float64; the threads do not matter."""
    out = np.empty((X.shape[0], coef.shape[1]))
    bank = _core.KernelBank(*kernel_bank(centers, gamma))
    bank.sums(Rows(X, 0.0).core, np.ascontiguousarray(coef.T), out, effective_n_jobs(n_jobs))
    return out


def log_kernel_sums(X, centers, precision, log_weight, owner, n_classes, n_jobs=None):
    """out[n, k] = log sum_{i: owner_i = k} exp(log_weight_i - sum_f precision_if (x_nf - centers_if)^2 / 2), float64.

    The precision has one column if it is the same in all features. The threads do not matter.
    """
    bank = _core.KernelBank(*density_bank(centers, precision, log_weight, owner, n_classes))
    out = np.empty((X.shape[0], n_classes))
    bank.log_sums(Rows(X, 0.0).core, out, effective_n_jobs(n_jobs))
    return out


def kernel_bank(centers, gamma):
    """What the core's `KernelBank` is made of, for `kernel_sums`."""
    return _bank(centers, gamma[:, None], np.zeros(len(centers)), np.array([0, len(centers)]))


def density_bank(centers, precision, log_weight, owner, n_classes):
    """What the core's `KernelBank` is made of, for `log_kernel_sums`."""
    order = np.argsort(owner, kind="stable")
    starts = np.searchsorted(owner[order], np.arange(n_classes + 1))
    return _bank(centers[order], 0.5 * precision[order], log_weight[order], starts)


def _bank(centers, sharpness, log_weight, starts):
    """exp(log_weight_i - sum_f sharpness_if (x_f - centers_if)^2), as planes over z and its squares."""
    # From the middle of the centers: the squares of rows far from the origin would lose the digits of the distances.
    middle = centers.mean(axis=0)
    moved = centers - middle
    planes = np.hstack([2.0 * sharpness * moved, -sharpness])
    offset = log_weight - (sharpness * moved * moved).sum(axis=1)
    return planes, offset, middle, starts.astype(np.int64)
