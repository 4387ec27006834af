"""Rows on disk, by chunks: Parquet files and memory-mapped arrays."""

import mmap
from pathlib import Path

import numpy as np

from svmosaic.scale.part import Raw

# Values in a chunk where its size is not given: 64 MB as float32.
CHUNK_VALUES = 16_000_000


def open_source(source, label=None, sample_weight=None, chunk_rows=None, features=None):
    """What `Chunks` reads from.

    Parameters
    ----------
    source : path or array
        A Parquet file, a folder of them, a .npy file (memory-mapped), or an array, such as a `numpy.memmap`. Or any
        object with `n_chunks`, `read(k)`, which gives a `Raw`, and `rows(k)`, the rows of that.
    label : str or array, optional
        The column of the labels; for an array of rows, the labels, as an array or the path of a .npy file.
    sample_weight : str or array, optional
        The same for weights.
    chunk_rows : int, optional
        Rows at a time; None for 64 MB of float32.
    features : list of str, optional
        The columns to use; None for all but label and weight. Not for arrays.
    """
    if hasattr(source, "n_chunks"):
        return source
    if hasattr(source, "shape"):
        return ArraySource(source, label, sample_weight, chunk_rows)
    path = Path(source)
    if not path.exists():
        raise FileNotFoundError(f"there is no {str(path)!r}")
    if path.suffix == ".npy":
        return ArraySource(np.load(path, mmap_mode="r"), label, sample_weight, chunk_rows)
    return ParquetSource(path, label, sample_weight, chunk_rows, features)


def _array(values, name):
    if values is None or hasattr(values, "shape"):
        return values
    if isinstance(values, (str, Path)):
        return np.load(values, mmap_mode="r")
    raise TypeError(f"{name} must be an array or the path of a .npy file, got {values!r}")


class ArraySource:
    """Rows of an array, which may be memory-mapped."""

    def __init__(self, X, y=None, weight=None, chunk_rows=None):
        if X.ndim != 2:
            raise ValueError(f"the rows must have two dimensions, got an array of shape {X.shape}")
        self.X, self.y, self.weight = X, _array(y, "label"), _array(weight, "sample_weight")
        for name, values in (("label", self.y), ("sample_weight", self.weight)):
            if values is not None and len(values) != len(X):
                raise ValueError(f"there are {len(X)} rows, but {name} has {len(values)} entries")
        n_rows = chunk_rows or max(1, CHUNK_VALUES // max(1, X.shape[1]))
        self.bounds = [*range(0, len(X), n_rows), len(X)]
        self.n_chunks = len(self.bounds) - 1

    def read(self, k) -> Raw:
        here = slice(self.bounds[k], self.bounds[k + 1])
        y = None if self.y is None else np.array(self.y[here])
        weight = None if self.weight is None else np.array(self.weight[here])
        return Raw(self.rows(k), y, weight, f"rows {here.start} to {here.stop - 1}")

    def rows(self, k):
        """A copy of a chunk, as float32 or float64; the pages it was read from are dropped."""
        rows = self.X[self.bounds[k] : self.bounds[k + 1]]
        dtype = rows.dtype if rows.dtype in (np.float32, np.float64) else np.float64
        copy = np.array(rows, dtype=dtype, order="C", subok=False)
        _drop_pages(self.X)
        return copy

    def inputs(self, k):
        """What a fitted estimator is given."""
        return self.rows(k)


def _drop_pages(array):
    """Pages of a mapped file count as memory of the process until the system wants them for others: give them back."""
    if isinstance(array, np.memmap) and array.mode == "r" and hasattr(mmap, "MADV_DONTNEED"):
        array._mmap.madvise(mmap.MADV_DONTNEED)


class ParquetSource:
    """Columns of Parquet files, a few row groups at a time.

    A row group is read whole: files written for this should have row groups no larger than a chunk.
    """

    def __init__(self, path, label=None, weight=None, chunk_rows=None, features=None):
        parquet = _parquet()
        files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
        if not files:
            raise FileNotFoundError(f"there is no .parquet file in {str(path)!r}")
        schema = parquet.read_schema(files[0])
        for name, what in ((label, "label"), (weight, "sample_weight")):
            if name is not None and name not in schema.names:
                raise ValueError(
                    f"{what}={name!r} is not a column of {files[0].name}; it has {', '.join(schema.names)}"
                )
        self.label, self.weight = label, weight
        self.names = list(features or [name for name in schema.names if name not in (label, weight)])
        missing = [name for name in self.names if name not in schema.names]
        if missing:
            raise ValueError(f"these columns are needed, but {files[0].name} does not have them: {', '.join(missing)}")
        self.dtype = _common_type(schema, self.names)
        limit = chunk_rows or max(1, CHUNK_VALUES // max(1, len(self.names)))
        self.chunks = []  # (file, row groups)
        for file in files:
            groups = parquet.ParquetFile(file).metadata
            size = limit  # a chunk ends with its file
            for g in range(groups.num_row_groups):
                n_rows = groups.row_group(g).num_rows
                if size + n_rows > limit:
                    self.chunks.append((file, []))
                    size = 0
                self.chunks[-1][1].append(g)
                size += n_rows
        self.n_chunks = len(self.chunks)

    def read(self, k) -> Raw:
        if self.label is None:
            raise ValueError("label must name the column of the labels")
        others = [name for name in (self.label, self.weight) if name is not None]
        table = self._table(k, others)
        y = table.column(self.label).to_numpy()
        weight = None if self.weight is None else table.column(self.weight).to_numpy()
        return Raw(NamedRows(self.rows(k), self.names), y, weight, self._where(k))

    def rows(self, k):
        table = self._table(k, self.names)
        out = np.empty((table.num_rows, len(self.names)), dtype=self.dtype)
        for f, name in enumerate(self.names):
            try:
                out[:, f] = table.column(name).to_numpy()
            except (TypeError, ValueError) as error:
                raise ValueError(f"{self._where(k)}: column {name!r} is not numeric: {error}") from error
        return out

    def inputs(self, k):
        """What a fitted estimator is given: a table, so that the names of the columns are checked."""
        import pandas

        return pandas.DataFrame(self.rows(k), columns=self.names, copy=False)

    def _table(self, k, names):
        file, groups = self.chunks[k]
        with _parquet().ParquetFile(file) as opened:
            missing = [name for name in names if name not in opened.schema_arrow.names]
            if missing:
                raise ValueError(f"{file.name} has no column {missing[0]!r}, which {self.chunks[0][0].name} has")
            return opened.read_row_groups(groups, columns=names, use_threads=False)

    def _where(self, k):
        file, groups = self.chunks[k]
        return f"{file.name}, row groups {groups[0]} to {groups[-1]}"


class NamedRows(np.ndarray):
    """An array of rows that knows the names of its columns."""

    def __new__(cls, X, names):
        rows = X.view(cls)
        rows.columns = names
        return rows

    def __array_finalize__(self, other):
        self.columns = getattr(other, "columns", None)


def _parquet():
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("Parquet files need pyarrow: pip install pyarrow") from error
    return pyarrow.parquet


def _common_type(schema, names):
    import pyarrow

    narrow = {
        pyarrow.float32(), pyarrow.float16(), pyarrow.int8(), pyarrow.int16(), pyarrow.uint8(), pyarrow.uint16(),
        pyarrow.bool_(),
    }  # fmt: skip
    for name in names:
        kind = schema.field(name).type
        if not (pyarrow.types.is_floating(kind) or pyarrow.types.is_integer(kind) or pyarrow.types.is_boolean(kind)):
            raise ValueError(
                f"column {name!r} is of type {kind}, which is not numeric; encode it first, or leave it out"
            )
    return np.dtype(np.float32 if all(schema.field(name).type in narrow for name in names) else np.float64)
