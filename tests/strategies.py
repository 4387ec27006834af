"""Data as unpleasant as the outside world's, for property tests, and how many of them to try.

`SVMOSAIC_PROPERTIES=1000 python -m pytest tests/test_properties_*.py` tries that many, at random, in each test.
"""

import os
import tempfile

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from scipy import sparse

COMMON = {
    "deadline": None,
    "database": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
}


def tries(few):
    """Settings of one test: a few examples, the same ones each time, or as many random ones as the environment says."""
    many = int(os.environ.get("SVMOSAIC_PROPERTIES", 0))
    return settings(max_examples=many or few, derandomize=not many, **COMMON)


SCALES = [1e-12, 1e-6, 1e-3, 1.0, 1e3, 1e6, 1e12]


@st.composite
def matrices(draw, min_rows=2, max_rows=40, max_features=6, dtypes=(np.float64, np.float32)):
    """Rows with duplicates, constant and empty columns, columns of very different sizes; C order, finite."""
    n = draw(st.integers(min_rows, max_rows))
    d = draw(st.integers(1, max_features))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.standard_normal((n, d))
    kind = draw(st.sampled_from(["plain", "scaled", "mixed", "sparse", "far", "few", "zero"]))
    if kind == "scaled":
        X *= draw(st.sampled_from(SCALES))
    elif kind == "mixed":
        X *= 10.0 ** rng.uniform(-12, 12, d)
    elif kind == "sparse":
        X[rng.uniform(size=X.shape) < 0.7] = 0.0
    elif kind == "far":
        X += 1e6
    elif kind == "few":  # many equal rows
        X = X[rng.integers(0, max(1, n // 8), n)]
    elif kind == "zero":
        X[:] = 0.0
    if draw(st.booleans()):
        X[:, rng.integers(d)] = draw(st.sampled_from([0.0, 1.0, -3e5]))
    if draw(st.booleans()):
        X[rng.integers(n)] = X[0]
    return np.ascontiguousarray(X, dtype=draw(st.sampled_from(dtypes)))


def _strided(X):
    wide = np.full((2 * X.shape[0], 3 * X.shape[1]), np.nan, dtype=X.dtype)
    wide[::2, ::3] = X
    return wide[::2, ::3]


def _read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def _mapped(X):
    with tempfile.NamedTemporaryFile(suffix=".npy") as file:
        np.save(file, X)
        file.flush()
        return np.load(file.name, mmap_mode="r")


def _unsorted(X):
    """CSR with unsorted indices and entries in two parts."""
    coo = sparse.coo_array(X)
    half = (coo.data / 2).astype(X.dtype)
    rows, cols = coo.coords
    doubled = sparse.coo_array(
        (np.concatenate([half, (coo.data - half).astype(X.dtype)]), (np.tile(rows, 2), np.tile(cols[:], 2))),
        shape=X.shape,
    )
    order = np.argsort(doubled.coords[0], kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(doubled.coords[0], minlength=X.shape[0]))]).astype(np.int32)
    return sparse.csr_array((doubled.data[order], doubled.coords[1][order].astype(np.int32), indptr), shape=X.shape)


# The same numbers, held in other ways.
DENSE = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "strided": _strided,
    "backwards": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "read-only": _read_only,
    "mapped": _mapped,
    "big-endian": lambda X: X.astype(X.dtype.newbyteorder(">")),
    "list": lambda X: X.astype(float).tolist(),
}
SPARSE = {
    "csr": sparse.csr_array,
    "csr_matrix": sparse.csr_matrix,
    "csc": sparse.csc_array,
    "coo": sparse.coo_array,
    "lil": sparse.lil_array,
    "dok": sparse.dok_array,
    "unsorted": _unsorted,
}

LABELS = {
    "int": lambda k: k,
    "negative": lambda k: k - 7,
    "bool": lambda k: k > 0,
    "float": lambda k: k.astype(float),
    "text": lambda k: np.array(["nein", "ja", "très", "多"])[k],
    "object": lambda k: np.array(["b", "a", "long name", ""], dtype=object)[k],
    "uint8": lambda k: (k + 252).astype(np.uint8),
    "large": lambda k: k + 2**40,
}


@st.composite
def targets(draw, n):
    """Labels of any type for n rows; one row per class, a lone row of a class, or balanced."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_classes = draw(st.integers(2, min(4, n)))
    kind = draw(st.sampled_from(["balanced", "lone", "sorted"]))
    k = np.arange(n) % n_classes
    if kind == "lone":
        k = np.zeros(n, dtype=int)
        k[:n_classes] = np.arange(n_classes)
    if kind != "sorted":
        k = rng.permutation(k)
    name = draw(st.sampled_from(sorted(LABELS)))
    return LABELS[name](np.minimum(k, 1) if name == "bool" else k)


@st.composite
def weights(draw, n):
    """None, or weights with zeros, or of very different sizes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["none", "zeros", "ints", "wide"]))
    if kind == "none":
        return None
    if kind == "zeros":
        return rng.integers(0, 2, n).astype(float)
    if kind == "ints":
        return rng.integers(0, 4, n)
    return 10.0 ** rng.uniform(-9, 9, n)
