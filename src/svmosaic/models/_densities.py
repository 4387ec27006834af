"""Sums of Gaussian kernels over blocks of rows: the one place where densities meet rows.

Squared distances are one matrix product a block, so that no matrix of all rows against all centres is ever held.
"""

import numpy as np
from scipy.special import logsumexp

# Values of a block of distances: 2 MB in float64, which stays in the cache between the product and the exponential.
_VALUES_PER_BLOCK = 1 << 18


def row_blocks(n_rows, n_columns):
    """Slices of the rows such that a block of `n_columns` columns stays small."""
    size = max(1, _VALUES_PER_BLOCK // max(1, n_columns))
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


def squared_distances(X, centers):
    """Squared Euclidean distances of shape (n_rows, n_centers) for one block of rows, float64."""
    # Both are moved to the middle of the centres: |x|^2 - 2 x.c + |c|^2 loses digits far from the origin.
    middle = centers.mean(axis=0)
    X, centers = X - middle, centers - middle
    distances = X @ (-2.0 * centers.T)
    distances += np.einsum("ij,ij->i", X, X)[:, None]
    distances += np.einsum("ij,ij->i", centers, centers)
    return np.maximum(distances, 0.0, out=distances)


def kernel_sums(X, centers, gamma, coef):
    """out[n, c] = sum_i coef[i, c] exp(-gamma_i |x_n - centers_i|^2), float64.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
    centers : ndarray of shape (n_centers, n_features)
    gamma : ndarray of shape (n_centers,)
    coef : ndarray of shape (n_centers, n_outputs)
    """
    out = np.empty((X.shape[0], coef.shape[1]))
    for rows in row_blocks(X.shape[0], len(centers)):
        kernel = squared_distances(X[rows], centers)
        kernel *= -gamma
        np.exp(kernel, out=kernel)
        np.matmul(kernel, coef, out=out[rows])
    return out


def class_log_sums(log_terms, owner, n_classes):
    """log sum_{i: owner_i = c} exp(log_terms[n, i]) for every class c, of shape (n_rows, n_classes)."""
    out = np.empty((log_terms.shape[0], n_classes))
    for c in range(n_classes):
        out[:, c] = logsumexp(log_terms[:, owner == c], axis=1)
    return out
