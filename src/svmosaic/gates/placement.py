"""Where to put the centres of the tiles."""

import warnings

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array


def place_centers(X, n_centers, *, clusterer=None, sample_weight=None, rows_per_center=256, max_iter=10, rng):
    """Centres of the cells of X.

    Parameters
    ----------
    X : ndarray or CSR matrix
    n_centers : int
        How many, at most: never more than there are distinct rows.
    clusterer : None, array or clusterer
        None: k-means on a sample of the rows with a few Lloyd steps, which costs a tenth of k-means to convergence
        and loses no accuracy. An array of shape (n, n_features): these centres. An estimator: a clone of it is
        fitted to X, and its `cluster_centers_` (or else the means of its `labels_`) are taken.
    sample_weight : ndarray, optional
        Weighs the rows in k-means.
    rows_per_center : int or None
        Size of the sample, times the number of centres; None for all rows.
    max_iter : int
        Lloyd steps.
    rng : RandomState

    Returns
    -------
    ndarray of shape (n, n_features), of the dtype of X
    """
    if clusterer is None:
        centers = _sampled_kmeans(X, n_centers, sample_weight, rows_per_center, max_iter, rng)
    elif hasattr(clusterer, "fit"):
        centers = _clustered(X, clusterer, rng)
    elif isinstance(clusterer, str) or np.ndim(clusterer) == 0:
        raise ValueError(f"clusterer must be None, a clusterer or an array of centres, got {clusterer!r}")
    else:
        centers = check_array(clusterer, dtype=X.dtype, input_name="clusterer")
        if centers.shape[1] != X.shape[1]:
            raise ValueError(f"clusterer has centres of {centers.shape[1]} features, but X has {X.shape[1]}")
    return np.unique(np.ascontiguousarray(centers, dtype=X.dtype), axis=0)


def _sampled_kmeans(X, n_centers, sample_weight, rows_per_center, max_iter, rng):
    n_rows = X.shape[0]
    if rows_per_center is not None and n_rows > rows_per_center * n_centers:
        chosen = np.sort(rng.choice(n_rows, rows_per_center * n_centers, replace=False))
        X = X[chosen]
        sample_weight = None if sample_weight is None else sample_weight[chosen]
    n_centers = min(n_centers, X.shape[0])
    # Row-major copies: KMeans copies anyway, and subtracts the mean for accuracy.
    model = KMeans(n_centers, n_init=1, max_iter=max_iter, random_state=rng)
    with warnings.catch_warnings():
        # Few Lloyd steps are meant to stop early, and fewer distinct rows than centres are dealt with by the caller.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, sample_weight=sample_weight).cluster_centers_


def _clustered(X, clusterer, rng):
    model = clone(clusterer)
    if "random_state" in model.get_params() and model.get_params()["random_state"] is None:
        model.set_params(random_state=rng.randint(2**31 - 1))
    model.fit(X)
    if hasattr(model, "cluster_centers_"):
        return model.cluster_centers_
    if not hasattr(model, "labels_"):
        raise ValueError(f"clusterer={clusterer!r} has neither cluster_centers_ nor labels_ after fit")
    labels = model.labels_
    means = [X[labels == label].mean(axis=0) for label in np.unique(labels) if label >= 0]
    if not means:
        raise ValueError(f"clusterer={clusterer!r} found no cluster")
    return np.vstack([np.asarray(m).ravel() for m in means]) if sparse.issparse(X) else np.array(means)
