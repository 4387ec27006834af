"""Data rows as the core reads them."""

from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse

from svmosaic import _core
from svmosaic.packing import without_duplicates

# The core is called for about this many multiplications at a time (some tenths of a second), to look for interrupts.
WORK_A_CALL = 1e9
# Rows that a thread takes at a time where threads are Python's: what is computed of them stays in its caches.
BLOCK_ROWS = 4096
# Fewer items are left to NumPy: handing over the state takes as long.
SHORT_ORDER = 1000


def row_blocks(n_rows: int, work: float) -> list[slice]:
    """Slices of the rows that the core may take at once, for so many multiplications per row."""
    size = max(1, int(WORK_A_CALL / max(1.0, work)))
    return [slice(begin, min(begin + size, n_rows)) for begin in range(0, n_rows, size)]


def in_blocks(work, n_rows: int, n_jobs=None) -> list:
    """What `work` returns for slices of some thousands of rows each, one after another.

    Threads of Python work on them: worth it where NumPy takes long. Calls of the core in `work` should have one thread.
    """
    blocks = [slice(begin, min(begin + BLOCK_ROWS, n_rows)) for begin in range(0, n_rows, BLOCK_ROWS)]
    n_threads = min(effective_n_jobs(n_jobs), len(blocks))
    if n_threads <= 1:
        return [work(block) for block in blocks]
    with ThreadPoolExecutor(n_threads) as threads:
        return list(threads.map(work, blocks))


def bias_of(fit_intercept, intercept_scaling) -> float:
    """The constant appended to each row for the intercept; 0 for a model without one."""
    return float(intercept_scaling) if fit_intercept else 0.0


def split_bias(tiles, bias):
    """Weights and intercepts from weights of the rows (x, bias)."""
    return tiles[..., :-1], bias * tiles[..., -1]


class Rows:
    """Data rows (x_i, bias) as the core reads them: dense or CSR, float32 or float64, not copied.

    Parameters
    ----------
    X : ndarray, CSR matrix or EncodedRows of shape (n_samples, n_features)
    bias : float
        The constant appended to each row; 0 for a model without intercept.
    """

    def __init__(self, X, bias: float = 1.0):
        if X.dtype not in (np.float32, np.float64):
            raise ValueError(f"rows must be float32 or float64, got {X.dtype}")
        self.is_encoded = hasattr(X, "in_core")
        if self.is_encoded:
            self.core = X.in_core(bias)
            self.n_stored = self.core.n_stored
        elif sparse.issparse(X):
            X = without_duplicates(X.tocsr())
            indices = X.indices.astype(np.int32, copy=False)
            indptr = X.indptr.astype(np.int64, copy=False)
            self.core = _core.Rows.sparse(X.data, indices, indptr, X.shape[1], bias)
            self.n_stored = X.nnz
        else:
            self.core = _core.Rows.dense(np.ascontiguousarray(X), bias)
            self.n_stored = X.size
        self.X = X
        self.dtype = X.dtype
        self.n_rows, self.n_features = X.shape
        self.stored_per_row = self.n_stored / max(1, self.n_rows)
        self.bias = bias

    @cached_property
    def squared_norms(self):
        out = np.empty(self.n_rows)
        _core.squared_norms(self.core, out)
        return out

    def seen(self, sight) -> "Rows":
        """The rows as a block sees them that does not see all: "straight" or "bias"."""
        if sight == "bias":
            return Rows(np.empty((self.n_rows, 0), dtype=self.dtype), self.bias)
        pieces = getattr(self.X, "pieces", None)
        return self if pieces is None else Rows(pieces.straight_terms(self.X.inputs), self.bias)

    def squared_norms_of(self, sight):
        """The same of what a block sees that does not see all: "straight" or "bias"."""
        if sight == "bias":
            return np.broadcast_to(float(self.bias) ** 2, self.n_rows)
        out = np.empty(self.n_rows)
        _core.squared_norms(self.core, out, straight=True)
        return out


def total_variance(X, weight) -> float:
    """The sum of the variances of the columns of weighted rows; 1 if it is no more than rounding."""
    X, share = X.astype(np.float64), weight / weight.sum()
    mean = np.ravel(share @ X)
    away = np.ravel((X.multiply(X) if sparse.issparse(X) else (X - mean) ** 2).sum(axis=1))
    total = float(share @ away) - (float(mean @ mean) if sparse.issparse(X) else 0.0)
    return total if total > 1e-12 * float(mean @ mean) else 1.0


class ChosenRows:
    """Some rows of a dense array, of which nothing is copied until it is indexed by `[...]`, like an array.

    Attributes
    ----------
    all : ndarray of shape (n_all, n_features)
    at : ndarray of int32, shape (n_rows,)
        Indices of the rows.
    """

    ndim = 2

    def __init__(self, all_rows, at):
        self.all, self.at = all_rows, at.astype(np.int32, copy=False)

    @property
    def shape(self):
        return len(self.at), self.all.shape[1]

    @property
    def dtype(self):
        return self.all.dtype

    def __getitem__(self, rows):
        return np.take(self.all, self.at[rows], axis=0)


def copied(X):
    """Rows as an array or a matrix of their own."""
    return X[:] if isinstance(X, ChosenRows) else X


def evenly(n_rows, most):
    """Indices of at most so many rows, drawn evenly."""
    return np.arange(n_rows) if n_rows <= most else np.linspace(0, n_rows - 1, most).astype(np.intp)


def shuffled(rng, items):
    """Items in a random order, as int32: what ``rng.permutation(items)`` returns, in a fraction of its time.

    Parameters
    ----------
    rng : RandomState
        Left as by the call of its own method.
    items : int or ndarray of int, shape (n_items,)
        A number stands for the integers below it.
    """
    n_items = items if np.ndim(items) == 0 else len(items)
    if n_items < SHORT_ORDER or rng.get_state(legacy=False)["bit_generator"] != "MT19937":
        return rng.permutation(items).astype(np.int32)
    items = np.arange(items, dtype=np.int32) if np.ndim(items) == 0 else np.array(items, dtype=np.int32)
    state = rng.get_state(legacy=False)
    words = state["state"]
    words["pos"] = _core.shuffle(words["key"], words["pos"], items)
    rng.set_state(state)
    return items
