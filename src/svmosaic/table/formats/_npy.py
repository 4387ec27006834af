"""Arrays in .npy files, memory-mapped: only the rows that are needed are read."""

from pathlib import Path

import numpy as np

from svmosaic.table.formats._table import TableError


def npy_frames(path, rows, labels=None, progress=None):
    """Frames of at most `rows` rows, with columns x0, x1, ..., and the labels of these rows.

    Parameters
    ----------
    labels : path of a .npy file, optional
        One label a row.
    """
    import pandas as pd

    X = _opened(path)
    if X.ndim != 2 or X.dtype.kind not in "fiub" or X.shape[1] == 0:
        raise TableError(f"{path} must hold numbers in two dimensions, it holds {X.dtype} of shape {X.shape}")
    y = None if labels is None else _opened(labels)
    if y is not None and y.shape != (len(X),):
        raise TableError(f"{path} has {len(X)} rows, but the labels in {labels} have shape {y.shape}")
    names = [f"x{f}" for f in range(X.shape[1])]
    for start in range(0, len(X), rows or max(1, len(X))):
        part = slice(start, start + (rows or len(X)))
        # A copy: the pages of the file can then be given back.
        values = np.array(X[part], dtype=np.float64 if X.dtype.kind == "b" else None)
        yield pd.DataFrame(values, columns=names), None if y is None else np.array(y[part])
        if progress is not None:
            progress(min(part.stop, len(X)), len(X))


def is_npy(path) -> bool:
    """Whether a label is the name of a .npy file, and not of a column."""
    return path is not None and Path(str(path)).suffix == ".npy"


def _opened(path):
    if not Path(path).exists():
        raise TableError(f"there is no file {path}")
    try:
        # Never a pickle; and no memory map of a file that could not be one.
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # of the header's parser, the memory map, ...: whatever it is, the file is to blame
        raise TableError(f"{path} could not be read as NPY: {fault_of(error)}") from error


def fault_of(error) -> str:
    """Why numpy could not read a file, without its advice to unpickle it."""
    return "it holds no arrays of numbers or text" if "pickle" in str(error) else str(error) or type(error).__name__
