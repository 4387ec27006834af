"""Arrays: .npy files, memory-mapped so that only the rows needed are read, and .npz archives."""

from pathlib import Path

import numpy as np

from svmosaic.table.formats._table import Table, TableError, is_npy, table_of, to_csr


def npy_tables(path, rows, label, progress):
    """Tables of at most `rows` rows, with columns x0, x1, ...; the label is one of them, or another .npy file."""
    import pandas as pd

    X = _loaded(path, "NPY", mmap_mode="r")
    if X.ndim != 2 or X.dtype.kind not in "fiub" or X.shape[1] == 0:
        raise TableError(f"{path} must hold numbers in two dimensions, it holds {X.dtype} of shape {X.shape}")
    y = _loaded(label, "NPY", mmap_mode="r") if is_npy(label) else None
    if y is not None and y.shape != (len(X),):
        raise TableError(f"{path} has {len(X)} rows, but the labels in {label} have shape {y.shape}")
    rows = rows or max(1, len(X))
    for start in range(0, len(X), rows):
        part = slice(start, start + rows)
        # A copy: the pages of the file can then be given back.
        values = np.array(X[part], dtype=np.float64 if X.dtype.kind == "b" else None)
        frame = pd.DataFrame(values, columns=[f"x{f}" for f in range(X.shape[1])])
        if y is None:
            yield table_of(frame, label, str(path))
        else:
            yield Table(frame, np.array(y[part]), list(frame), Path(label).stem)
        if progress is not None:
            progress(min(part.stop, len(X)), len(X))


def npz_tables(path, rows, label):
    """Tables of at most `rows` rows of an archive, which is read whole."""
    arrays, name = _loaded(path, "NPZ"), str(path)
    if {"data", "indices", "indptr", "shape"} <= set(arrays):
        from scipy import sparse

        if arrays.get("format", np.array(b"csr")).item() != b"csr":
            raise TableError(f"{name} holds a sparse matrix that is not CSR: save X.tocsr()")
        parts = (arrays["data"], arrays["indices"], arrays["indptr"])
        X, default = to_csr(sparse.csr_array(parts, shape=tuple(arrays["shape"]))), "y"
    else:
        key, default = ("X", "y") if "X" in arrays else ("X_train", "y_train")
        if key not in arrays:
            raise TableError(f"{name} has no array X; it has {', '.join(map(repr, arrays)) or 'none'}")
        X = arrays[key]
    y = arrays.get(str(label or default))
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
    rows = rows or max(1, X.shape[0])
    for start in range(0, X.shape[0], rows):
        part = slice(start, start + rows)
        yield Table(X[part], None if y is None else y[part], names, None if y is None else str(label or "y"))


def _loaded(path, format, **options):
    """The array of a .npy file, or those of an archive by their names."""
    if not Path(path).exists():
        raise TableError(f"there is no file {path}")
    try:
        if format == "NPY":  # never a pickle; and no memory map of a file that could not be one
            return np.load(path, allow_pickle=False, **options)
        # Opened here: numpy leaves the file open when it is no archive.
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}
    except Exception as error:  # of the header's parser, the memory map, zipfile, ...: the file is to blame
        reason = "it holds no arrays of numbers or text" if "pickle" in str(error) else str(error)
        raise TableError(f"{path} could not be read as {format}: {reason or type(error).__name__}") from error
