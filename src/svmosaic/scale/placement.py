"""Where to put centers when no one holds all rows: the local models' sample, or Lloyd steps over all partitions."""

import numpy as np
from scipy import sparse

from svmosaic.gates import DistanceGate, place_centers
from svmosaic.gates.placement import SEEDS, SEEDS_PER_CENTER, class_shares, sampled_kmeans, seed_centers
from svmosaic.scale.part import lloyd, rows_at


def take(partitions, chosen, stratum=None):
    """Rows, weights and labels at these (sorted) places among all rows, or among those of one class."""
    X, weight, label = zip(*partitions.gather(rows_at, chosen, stratum), strict=True)
    X = sparse.vstack(X, format="csr") if sparse.issparse(X[0]) else np.concatenate(X)
    return X, np.concatenate(weight), np.concatenate(label)


def sample(partitions, n_rows, n_sample, rng, stratum=None):
    """Rows, weights and labels of a sample without replacement, the same however the rows are partitioned."""
    chosen = np.arange(n_rows) if n_rows <= n_sample else np.sort(rng.choice(n_rows, n_sample, replace=False))
    return take(partitions, chosen, stratum)


def place(partitions, survey, n_centers, *, source, rows_per_center, max_iter, rng, name, n_jobs=None):
    """Centers as placed by `svmosaic.gates.place_centers`: the same if that function uses a sample.

    With `rows_per_center` None, k-means++ chooses seeds from a sample, and each Lloyd step is a round over all rows, in
    which the sums of the cells travel.
    """
    options = rows_per_center, max_iter, rng, n_jobs
    if not isinstance(source, str):
        if hasattr(source, "fit") and not hasattr(source, "cluster_centers_"):
            raise ValueError(
                f"{name}={source!r} would have to be fitted to all rows at once; fit it to a sample, or give centers"
            )
        return place_centers(
            np.empty((1, survey.n_features), survey.dtype), n_centers, source=source, rng=rng, name=name
        )
    if source == "class":
        shares = class_shares(survey.class_counts, n_centers)
        source = "kmeans" if shares is None else source
    if source == "kmeans":
        centers = _kmeans(partitions, survey.n_rows, n_centers, None, *options)
    elif source == "class":
        centers = np.concatenate(
            [
                _kmeans(partitions, survey.class_counts[k], shares[k], k, *options)
                for k in np.flatnonzero(survey.class_counts)
            ]
        )
    elif source == "random":
        chosen = rng.choice(survey.n_rows, min(n_centers, survey.n_rows), replace=False)
        centers, _, _ = take(partitions, np.sort(chosen))
        centers = centers.toarray() if sparse.issparse(centers) else centers
    else:
        raise ValueError(f"{name} must be 'kmeans', 'class', 'random', an array or a clusterer, got {source!r}")
    return np.unique(np.ascontiguousarray(centers, dtype=survey.dtype), axis=0)


def _kmeans(partitions, n_rows, n_centers, stratum, rows_per_center, max_iter, rng, n_jobs):
    if rows_per_center is not None:
        X, weight, _ = sample(partitions, n_rows, rows_per_center * n_centers, rng, stratum)
        return sampled_kmeans(X, n_centers, weight, None, max_iter, rng, n_jobs)
    X, weight, _ = sample(partitions, n_rows, max(SEEDS, SEEDS_PER_CENTER * n_centers), rng, stratum)
    centers = seed_centers(X, weight, min(n_centers, X.shape[0]), rng, n_jobs)
    last = np.inf
    for _ in range(max_iter):
        sums, mass, inertia = partitions.total(lloyd, DistanceGate(centers.astype(X.dtype)), stratum)
        if inertia >= last:
            break
        last = inertia
        # A cell without rows keeps its center.
        centers = np.where(mass[:, None] > 0, sums / np.where(mass > 0, mass, 1.0)[:, None], centers)
    return centers
