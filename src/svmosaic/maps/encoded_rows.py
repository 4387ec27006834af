"""Rows as piecewise-linear tiles see them, stored as the rows themselves and one byte per value with a curve."""

from typing import Any

import numpy as np
from scipy import sparse

from svmosaic import _core


class EncodedRows:
    """Rows with the bins of their curves; a matrix of the map's features that is never formed.

    Parameters
    ----------
    pieces : Pieces
    inputs : ndarray or CSR matrix of shape (n_rows, n_inputs)
        Float32 or float64.
    bins : ndarray of uint8
        Of shape (n_rows, n_curves), or one per stored entry of a CSR matrix.
    """

    ndim = 2

    def __init__(self, pieces, inputs, bins):
        self.pieces = pieces
        self.inputs = inputs
        self.bins = bins

    @classmethod
    def of(cls, pieces, X):
        """Find the bins of rows, dense or sparse."""
        if pieces.implicit_zeros:
            X = sparse.csr_array(X) if not sparse.issparse(X) else X.tocsr()
            if not X.has_canonical_format:
                X = X.copy()
                X.sum_duplicates()
            bins = np.empty(X.nnz, dtype=np.uint8)
            pieces.core(X.dtype).encode_sparse(X.data, X.indices.astype(np.int32, copy=False), bins)
        else:
            X = np.ascontiguousarray(X.toarray() if sparse.issparse(X) else X)
            bins = np.empty((X.shape[0], len(pieces.column)), dtype=np.uint8)
            pieces.core(X.dtype).encode(X, bins)
        return cls(pieces, X, bins)

    @property
    def shape(self) -> tuple[int, int]:
        return self.inputs.shape[0], self.pieces.n_features

    @property
    def dtype(self) -> np.dtype:
        return self.inputs.dtype

    def __len__(self) -> int:
        return self.inputs.shape[0]

    def __getitem__(self, rows):
        if self.pieces.implicit_zeros:
            return EncodedRows.of(self.pieces, self.inputs[rows])
        return EncodedRows(self.pieces, self.inputs[rows], self.bins[rows])

    def astype(self, dtype):
        """The rows in another precision."""
        return self if dtype == self.dtype else EncodedRows.of(self.pieces, self.inputs.astype(dtype))

    def toarray(self):
        """All features, float64: for a few rows."""
        return self.pieces.expand(self.inputs).toarray()

    def in_core(self, bias) -> Any:
        """The rows in the core, with a constant appended."""
        core = self.pieces.core(self.dtype)
        X = self.inputs
        if self.pieces.implicit_zeros:
            indices, indptr = X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64, copy=False)
            return _core.encoded_sparse_rows(core, X.data, indices, indptr, self.bins, bias)
        return _core.encoded_rows(core, np.ascontiguousarray(X), np.ascontiguousarray(self.bins), bias)
