"""Rows on disk, by chunks: Parquet files and memory-mapped arrays."""

import mmap
from pathlib import Path

import numpy as np

from svmosaic._validation import check_real
from svmosaic.scale.part import Raw

# Values in a chunk where its size is not given: 64 MB as float32.
CHUNK_VALUES = 16_000_000


def open_source(source, label=None, sample_weight=None, chunk_rows=None, features=None):
    """A source of chunks, which `Chunks` reads; for a fit, if there is a label, it must have rows.

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
    check_real("chunk_rows", chunk_rows, at_least=1, integer=True, optional=True)
    if hasattr(source, "shape"):
        opened, name = ArraySource(source, label, sample_weight, chunk_rows), "the array"
    else:
        path, name = Path(source), repr(str(source))
        if not path.exists():
            raise FileNotFoundError(f"there is no {name}")
        if path.suffix == ".npy":
            opened = ArraySource(np.load(path, mmap_mode="r"), label, sample_weight, chunk_rows)
        else:
            opened = ParquetSource(path, label, sample_weight, chunk_rows, features)
    if label is not None and opened.n_chunks == 0:
        raise ValueError(f"{name} has no rows")
    return opened


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
        if X.dtype.kind not in "biufO":  # NumPy would turn dates and text into numbers, and drop imaginary parts
            raise ValueError(f"the rows are of type {X.dtype}, which is not numeric; encode them first")
        self.X, self.y, self.weight = X, _array(y, "label"), _array(weight, "sample_weight")
        for name, values in (("label", self.y), ("sample_weight", self.weight)):
            if values is not None and len(values) != len(X):
                raise ValueError(f"there are {len(X)} rows, but {name} has {len(values)} entries")
        n_rows = chunk_rows or max(1, CHUNK_VALUES // max(1, X.shape[1]))
        self.bounds = [*range(0, len(X), n_rows), len(X)]
        self.n_chunks = len(self.bounds) - 1
        mapped = getattr(X, "filename", None)
        self.files = [] if mapped is None else [mapped]

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
        self.files, self.label, self.weight = files, label, weight
        opened = {}
        for file in files:
            try:
                with parquet.ParquetFile(file) as content:
                    opened[file] = content.schema_arrow, content.metadata
            except (OSError, ValueError) as error:
                raise ValueError(f"{file} cannot be read as Parquet: {error}") from error
        # Files without rows are passed over, whatever their columns; of a source without any, the first names them.
        used = [file for file in files if opened[file][1].num_rows] or files[:1]
        first, schema = used[0], opened[used[0]][0]
        for name, what in ((label, "label"), (weight, "sample_weight")):
            if name is not None and name not in schema.names:
                raise ValueError(f"{what}={name!r} is not a column of {first.name}; it has {', '.join(schema.names)}")
        self.names = list(features or [name for name in schema.names if name not in (label, weight)])
        missing = [name for name in self.names if name not in schema.names]
        if missing:
            raise ValueError(f"these columns are needed, but {first.name} does not have them: {', '.join(missing)}")
        limit = chunk_rows or max(1, CHUNK_VALUES // max(1, len(self.names)))
        narrow, self.chunks = True, []  # (file, row groups)
        for file in used:
            here, groups = opened[file]
            if groups.num_rows:
                narrow = _check_types(file, here, schema, first, self.names, label, weight) and narrow
            size = limit  # a chunk ends with its file
            for g in range(groups.num_row_groups):
                n_rows = groups.row_group(g).num_rows
                if n_rows == 0:
                    continue
                if size + n_rows > limit:
                    self.chunks.append((file, []))
                    size = 0
                self.chunks[-1][1].append(g)
                size += n_rows
        self.dtype = np.dtype(np.float32 if narrow else np.float64)
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


def _check_types(file, schema, first_schema, first, names, label, weight) -> bool:
    """Whether float32 holds all values of the columns of a file, which must be numeric; labels are as in the first."""
    import pyarrow
    from pyarrow import types

    narrow = {
        pyarrow.float32(), pyarrow.float16(), pyarrow.int8(), pyarrow.int16(), pyarrow.uint8(), pyarrow.uint16(),
        pyarrow.bool_(),
    }  # fmt: skip

    def is_number(kind):
        return types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind)

    def family(kind):  # labels of one family have one order and one meaning
        kind = kind.value_type if types.is_dictionary(kind) else kind
        return "a number" if is_number(kind) else "text" if "string" in str(kind) else str(kind)

    for name in [*names, *(other for other in (label, weight) if other is not None)]:
        if schema.names.count(name) != 1:
            many = "no column" if name not in schema.names else "several columns"
            raise ValueError(f"{file.name} has {many} {name!r}; {first.name} has {', '.join(first_schema.names)}")
        kind = schema.field(name).type
        if name != label and not is_number(kind):
            raise ValueError(
                f"{file.name}: column {name!r} is of type {kind}, which is not numeric; encode it first, or leave it "
                "out"
            )
    if label is not None and family(schema.field(label).type) != family(first_schema.field(label).type):
        raise ValueError(
            f"{file.name}: the label {label!r} is of type {schema.field(label).type}, and in {first.name} of type "
            f"{first_schema.field(label).type}: write both in the same type"
        )
    return all(schema.field(name).type in narrow for name in names)
