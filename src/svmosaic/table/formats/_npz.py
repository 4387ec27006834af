"""NPZ archives."""

from dataclasses import replace

import numpy as np
from scipy import sparse

from svmosaic.table.formats._npy import fault_of
from svmosaic.table.formats._table import Table, TableError, to_csr


def npz_tables(path, rows, label):
    try:
        # Opened here: numpy leaves the file open when it is no archive.
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except Exception as error:  # of zipfile, zlib, tokenize, ...: whatever it is, the file is to blame
        raise TableError(f"{path} could not be read as NPZ: {fault_of(error)}") from error
    table = _npz_table(arrays, label, str(path))
    if len(table) == 0:
        return
    for start in range(0, len(table), rows or len(table)):
        part = slice(start, start + (rows or len(table)))
        yield replace(table, X=table.X[part], y=None if table.y is None else table.y[part])


def _npz_table(arrays, label, name):
    if {"data", "indices", "indptr", "shape"} <= set(arrays):
        if arrays.get("format", np.array(b"csr")).item() != b"csr":
            raise TableError(f"{name} holds a sparse matrix that is not CSR: save X.tocsr()")
        X = to_csr(
            sparse.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=tuple(arrays["shape"]))
        )
        y = arrays.get(str(label or "y"))
    else:
        key, default = ("X", "y") if "X" in arrays else ("X_train", "y_train")
        if key not in arrays:
            raise TableError(f"{name} has no array X; it has {', '.join(map(repr, arrays)) or 'none'}")
        X, y = arrays[key], arrays.get(str(label or default))
    if label is not None and y is None:
        raise TableError(f"{name} has no array {str(label)!r} of labels; it has {', '.join(map(repr, arrays))}")
    if X.ndim != 2 or X.dtype.kind not in "fiub" or 0 in X.shape[1:]:
        raise TableError(f"{name}: X must be numbers in two dimensions, got {X.dtype} of shape {X.shape}")
    if y is not None and y.shape != (X.shape[0],):
        raise TableError(f"{name}: there are {X.shape[0]} rows, but labels of shape {y.shape}")
    X = X if X.dtype.kind == "f" else X.astype(np.float64)
    names = arrays.get("feature_names")
    fits = names is not None and names.shape == (X.shape[1],)
    names = [str(n) for n in names] if fits else [f"x{f}" for f in range(X.shape[1])]
    return Table(X, y, names, None if y is None else str(label or "y"))
