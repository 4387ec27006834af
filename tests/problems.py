"""Small problems that hold what solvers stumble over."""

import numpy as np
from scipy import sparse

from svmosaic.couplings import Coupling
from svmosaic.solvers import Problem, Rows

STORAGES = {"dense": np.ascontiguousarray, "csr": sparse.csr_array}
SHAPES = ["linear", "cells", "global", "groups", "codes"]


def hard_data(seed, *, n=120, d=7, dtype=np.float64):
    """Overlapping classes, an all-zero row, two equal rows, sparse entries, unequal costs, some of them zero."""
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((n, d)) * rng.uniform(0.3, 3.0, d)
    X[rng.uniform(size=X.shape) < 0.3] = 0.0
    X[0] = 0.0
    X[2] = X[1]
    y = np.where(X @ rng.standard_normal(d) + 1.5 * rng.standard_normal(n) > 0, 1, -1).astype(np.int8)
    cost = rng.uniform(0.1, 3.0, n)
    cost[rng.choice(np.arange(3, n), 6, replace=False)] = 0.0
    return X.astype(dtype), y, cost


def coupling_of(shape, n_tiles, rng):
    """The coupling called `shape`."""
    if shape == "global":
        return Coupling.to_global(n_tiles, 2.0)
    if shape == "groups":
        return Coupling(0.7, rng.standard_normal((n_tiles, 2)))
    return Coupling.independent(n_tiles)


def hard_problem(seed, *, shape="linear", loss="hinge", storage="dense", dtype=np.float64, bias=1.0, n=120):
    """(problem, X): `hard_data` on one tile, or on four of which one is empty; "codes" puts rows on two tiles each."""
    X, y, cost = hard_data(seed, n=n, dtype=dtype)
    X = STORAGES[storage](X)
    rng = np.random.RandomState(seed + 100)
    n_tiles = 1 if shape == "linear" else 4
    tile = rng.randint(max(1, n_tiles - 1), size=(n, 1)).astype(np.int32)
    code = None
    if shape == "codes":  # of either sign
        tile = np.array([rng.choice(n_tiles - 1, 2, replace=False) for _ in range(n)], dtype=np.int32)
        code = rng.uniform(-0.5, 1.0, tile.shape)
    return Problem(Rows(X, bias), tile, code, coupling_of(shape, n_tiles, rng), y, cost, loss), X


def badly_scaled_data(seed=0, *, n=2000, d=20):
    """Features on scales from 1e-4 to 1e4, with 4 % of the labels wrong."""
    rng = np.random.RandomState(seed)
    scale = np.logspace(-4, 4, d)
    X = rng.standard_normal((n, d)) * scale
    y = np.where(X @ (rng.standard_normal(d) / scale) > 0, 1, -1)
    y[rng.uniform(size=n) < 0.04] *= -1
    return X, y.astype(np.int8)
