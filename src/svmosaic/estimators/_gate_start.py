"""Where gates start to learn: principal components, k-means in them, zero tiles."""

import numpy as np

from svmosaic.estimators._anchors import SCALE_ROWS, code_gate
from svmosaic.gates import place_centers, principal_components
from svmosaic.rows import copied, in_blocks

# The axes of each of several gates are scaled by up to this share, so that rows have other neighbors in each of them.
SPREAD = 0.3
# Rows per anchor, at most, that k-means sees.
SAMPLED_PER_CENTER = 256


def start_gates(X, n_gates, n_tiles, n_components, n_neighbors, weight, rng, n_jobs=None):
    """Gates for a `GateLearner`, and how many tiles share a row in each of them.

    One gate has the principal components as they are. Of several, each has its own random rotation of them, with the
    axes scaled by 1 - `SPREAD` to 1 + `SPREAD`, and k-means from its own seed.

    Parameters
    ----------
    X : ndarray, CSR matrix or, with components, ChosenRows
    n_gates, n_tiles, n_neighbors : int
        Tiles and neighbors of each gate.
    n_components : int or None
    weight : ndarray of shape (n_rows,)
    rng : RandomState
    n_jobs : int or None

    Returns
    -------
    gates : list of (anchors, tau, projection)
    width : int
    """
    components = None if n_components is None else principal_components(X, n_components, rng)
    gates, widths = [], []
    for _ in range(n_gates):
        projection = components
        if n_gates > 1 and components is not None:
            projection = (_rotation(len(components), rng) @ components).astype(np.float32)
        z = X if projection is None else _projected(X, projection, n_tiles, n_jobs)
        anchors = place_centers(
            z, n_tiles, sample_weight=weight, rows_per_center=SAMPLED_PER_CENTER, rng=rng, n_jobs=n_jobs
        )
        codes = code_gate(z, anchors, "softmax", n_neighbors, None, rng)
        gates.append((anchors, codes.scale, projection))
        widths.append(codes.width)
    return gates, min(widths)


class _ProjectedRows:
    """Rows times a projection, computed on demand for the rows with given indices."""

    ndim = 2

    def __init__(self, X, projection, n_jobs):
        self.X, self.projection, self.n_jobs = X, projection, n_jobs
        self.shape, self.dtype = (X.shape[0], len(projection)), np.result_type(X.dtype, projection.dtype)

    def __getitem__(self, rows):
        out = np.empty((len(rows), len(self.projection)), dtype=self.dtype)

        def project(block):
            out[block] = self.X[rows[block]] @ self.projection.T

        in_blocks(project, len(rows), self.n_jobs)
        return out


def _projected(X, projection, n_tiles, n_jobs):
    """The rows in a projection; if there are many, only samples are computed."""
    if X.shape[0] > max(SAMPLED_PER_CENTER * n_tiles, SCALE_ROWS):
        return _ProjectedRows(X, projection, n_jobs)
    return np.ascontiguousarray(copied(X) @ projection.T)


def _rotation(n, rng):
    """A random rotation, its axes scaled."""
    q, r = np.linalg.qr(rng.standard_normal((n, n)))
    return rng.uniform(1 - SPREAD, 1 + SPREAD, n)[:, None] * (q * np.sign(np.diag(r)))
