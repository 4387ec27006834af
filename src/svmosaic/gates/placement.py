"""Where to put the centers of the tiles."""

import warnings

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array
from threadpoolctl import threadpool_limits

from svmosaic import _core
from svmosaic._threads import one_thread
from svmosaic.gates.distance import DistanceGate
from svmosaic.rows import Rows

# Rows that k-means++ seeds from, at least, and a center.
SEEDS, SEEDS_PER_CENTER = 4096, 32
# Lloyd steps end when the squares of all moves add up to no more than this share of the variance of the centers.
KMEANS_TOL = 1e-4


def place_centers(
    X, n_centers, *, source="kmeans", label=None, sample_weight=None, rows_per_center=256, max_iter=10, rng,
    name="clusterer", n_jobs=None,
):  # fmt: skip
    """Centers of the cells of X, sorted, without duplicates.

    Parameters
    ----------
    X : ndarray or CSR matrix
    n_centers : int
        How many, at most: never more than there are distinct rows.
    source : {"kmeans", "class", "random"}, array or clusterer
        "kmeans": k-means on a sample of the rows with a few Lloyd steps: cheap next to k-means to convergence on all
        rows. "class": the same within each class, with centers shared out by class size (where there are fewer centers
        than classes, "kmeans"). "random": rows of X.
        An array of shape (n, n_features): these centers. An estimator with `cluster_centers_`: its centers,
        as they were fitted. Any other clusterer: a clone of it is fitted to X, and its `cluster_centers_` (or else the
        means of its `labels_`) are taken.
    label : ndarray of int, for source="class"
    sample_weight : ndarray, optional
        Weighs the rows in k-means.
    rows_per_center : int or None
        Size of the sample, times the number of centers; None for all rows.
    max_iter : int
        Lloyd steps.
    rng : RandomState
    name : str
        What the source is called in messages.
    n_jobs : int or None
        Threads; the centers do not depend on it.

    Returns
    -------
    ndarray of shape (n, n_features), of the dtype of X
    """
    sampling = sample_weight, rows_per_center, max_iter, rng, n_jobs
    if isinstance(source, str):
        if source == "kmeans":
            centers = sampled_kmeans(X, n_centers, *sampling)
        elif source == "class":
            centers = _kmeans_by_class(X, n_centers, label, *sampling)
        elif source == "random":
            chosen = X[rng.choice(X.shape[0], min(n_centers, X.shape[0]), replace=False)]
            centers = chosen.toarray() if sparse.issparse(X) else chosen
        else:
            raise ValueError(f"{name} must be 'kmeans', 'class', 'random', an array or a clusterer, got {source!r}")
    elif hasattr(source, "fit") and not hasattr(source, "cluster_centers_"):
        centers = _clustered(X, source, rng, name)
    elif np.ndim(source) == 0 and not hasattr(source, "cluster_centers_"):
        raise ValueError(f"{name} must be a clusterer or an array of centers, got {source!r}")
    else:
        centers = check_array(getattr(source, "cluster_centers_", source), dtype=X.dtype, input_name=name)
        if centers.shape[1] != X.shape[1]:
            raise ValueError(f"{name} has centers of {centers.shape[1]} features, but X has {X.shape[1]}")
    return np.unique(np.ascontiguousarray(centers, dtype=X.dtype), axis=0)


def sampled_kmeans(X, n_centers, sample_weight, rows_per_center, max_iter, rng, n_jobs=None):
    """Centers of k-means over at most `rows_per_center` rows per center."""
    n_rows = X.shape[0]
    if rows_per_center is not None and n_rows > rows_per_center * n_centers:
        chosen = np.sort(rng.choice(n_rows, rows_per_center * n_centers, replace=False))
        X = X[chosen]
        sample_weight = None if sample_weight is None else sample_weight[chosen]
    n_centers = min(n_centers, X.shape[0])
    n_seeds = max(SEEDS, SEEDS_PER_CENTER * n_centers)
    few = X.shape[0] <= n_seeds
    # Seeding by k-means++ costs more than all Lloyd steps; a part of the sample is enough for it.
    seeds = slice(None) if few else np.sort(rng.choice(X.shape[0], n_seeds, replace=False))
    centers = seed_centers(X[seeds], None if sample_weight is None else sample_weight[seeds], n_centers, rng, n_jobs)
    if not few:
        return _lloyd(X, centers, sample_weight, max_iter, n_jobs)
    from sklearn.cluster import KMeans  # here, since it takes a while to import

    model = KMeans(n_centers, init=centers, n_init=1, max_iter=max_iter)
    with warnings.catch_warnings(), one_thread():
        # Few Lloyd steps are meant to stop early, and fewer distinct rows than centers are dealt with by the caller.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, sample_weight=sample_weight).cluster_centers_


def seed_centers(X, sample_weight, n_centers, rng, n_jobs):
    """Rows by k-means++, in float64; scikit-learn's draws, and so its centers but for rounding, on all threads."""
    weight = np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    n_trials = 2 + int(np.log(n_centers))
    chosen = np.empty(n_centers, dtype=np.int32)
    chosen[0] = rng.choice(X.shape[0], p=weight / weight.sum())
    uniform = rng.uniform(size=(n_centers - 1, n_trials))
    _core.seed_centers(Rows(X.astype(np.float64), bias=0.0).core, weight, uniform, chosen, effective_n_jobs(n_jobs))
    centers = X[chosen]
    return (centers.toarray() if sparse.issparse(centers) else centers).astype(np.float64)


def _lloyd(X, centers, sample_weight, max_iter, n_jobs):
    """Lloyd steps until cells or centers hardly change, or `max_iter`; a cell without rows keeps its center.

    Scikit-learn's add up in an order that depends on the threads. Here each step is a pass of the core, which does not.
    """
    rows, n_threads = Rows(X, bias=1.0), effective_n_jobs(n_jobs)  # the constant adds up the weights
    weight = np.ones(rows.n_rows) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    positive, sums = np.ones(rows.n_rows, dtype=np.int8), np.empty((len(centers), rows.n_features + 1))
    before = None
    for _ in range(max_iter):
        cell, _ = DistanceGate(centers.astype(X.dtype)).code(X, n_jobs)
        if before is not None and np.array_equal(cell, before):
            break
        before = cell
        _core.accumulate(
            rows.core, _core.Design(rows.core, cell, None, None, len(centers)), positive, weight, sums, n_threads
        )
        mass = sums[:, -1:]
        last, centers = centers, np.where(mass > 0, sums[:, :-1] / np.where(mass > 0, mass, 1.0), centers)
        if np.square(centers - last).sum() <= KMEANS_TOL * centers.var(axis=0).mean():
            break
    return centers


def _kmeans_by_class(X, n_centers, label, sample_weight, rows_per_center, max_iter, rng, n_jobs):
    shares = class_shares(np.bincount(label), n_centers)
    if shares is None:
        return sampled_kmeans(X, n_centers, sample_weight, rows_per_center, max_iter, rng, n_jobs)
    parts = []
    for k in np.flatnonzero(shares):
        here = np.flatnonzero(label == k)
        weight = None if sample_weight is None else sample_weight[here]
        parts.append(sampled_kmeans(X[here], shares[k], weight, rows_per_center, max_iter, rng, n_jobs))
    return np.concatenate(parts)


def class_shares(counts, n_centers):
    """How many of the centers each class gets, from the sizes of the classes; None if there are too few."""
    present = np.flatnonzero(counts)
    if n_centers < len(present):
        return None
    # One center a class at least; the rest by the size of the classes (largest remainders).
    quota = counts[present] * (n_centers - len(present)) / counts.sum()
    shares = np.zeros(len(counts), dtype=int)
    shares[present] = 1 + np.floor(quota).astype(int)
    for k in np.argsort(-(quota % 1), kind="stable")[: n_centers - shares.sum()]:
        shares[present[k]] += 1
    return shares


def _clustered(X, clusterer, rng, name):
    model = clone(clusterer)
    if model.get_params().get("random_state", 0) is None:
        model.set_params(random_state=rng.randint(2**31 - 1))
    with threadpool_limits(1):  # of whatever libraries it has brought along
        model.fit(X)
    if hasattr(model, "cluster_centers_"):
        return model.cluster_centers_
    if not hasattr(model, "labels_"):
        raise ValueError(f"{name}={clusterer!r} has neither cluster_centers_ nor labels_ after fit")
    labels = model.labels_
    means = [np.asarray(X[labels == label].mean(axis=0)).ravel() for label in np.unique(labels) if label >= 0]
    if not means:
        raise ValueError(f"{name}={clusterer!r} found no cluster")
    return np.vstack(means)
