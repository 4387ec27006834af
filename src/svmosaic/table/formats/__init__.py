"""Tables from files: CSV and TSV (also compressed), Parquet, Arrow/Feather, LIBSVM, NPY and NPZ, whole or in chunks.

Whatever is wrong with a file is a `TableError` of one sentence that names the file and, if possible, the line.
"""

# ruff: noqa: F401
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from svmosaic.table.formats._dialect import Dialect
from svmosaic.table.formats._table import (
    COMPRESSED,
    STDIN,
    Table,
    TableError,
    find_column,
    is_npy,
    is_number,
    name_of,
    to_csr,
    zip_member,
)

SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".libsvm": "libsvm",
    ".svmlight": "libsvm",
    ".svm": "libsvm",
    ".npz": "npz",
    ".npy": "npy",
}
FORMATS = tuple(dict.fromkeys(SUFFIXES.values()))
# What a number and a text of a table take in memory, and what a compressed file of text comes to.
NUMBER_BYTES, TEXT_BYTES, FROM_ZIPPED = 8, 64, 4
STREAMS = ("csv", "tsv", "libsvm")  # what can be read from a pipe, and compressed


def read_table(path, **options) -> Table:
    """All rows of a file, with the options of `read_chunks`."""
    return next(read_chunks(path, None, **options))


def read_chunks(
    path,
    rows=50_000,
    *,
    label=None,
    format=None,
    header=True,
    text=(),
    kept=(),
    n_features=None,
    dialect=None,
    zero_based=None,
    progress=None,
) -> Iterator[Table]:
    """The rows of a file, some at a time: no more of it is in memory, NPZ excepted.

    What a column holds is decided chunk by chunk, so `text` should name the columns that are text.

    Parameters
    ----------
    path : str or path
        The format follows from the ending of the name: csv, tsv, tab, libsvm, svm, svmlight (these also with .gz,
        .bz2, .xz or .zip), parquet, pq, arrow, feather, ipc, npz, npy. A folder is read as Parquet. "-" is the standard
        input.
    rows : int or None, default=50_000
        At most so many rows in a chunk; None is all of them.
    label : str or int, optional
        Name of the label column, or its place if there is no such name (-1 is the last). In an NPZ file, the name of
        the array of labels, by default y. LIBSVM files have their labels in front. Columns of an NPY file are called
        x0, x1, ...; its labels may be in another one, whose path this then is.
    format : {"csv", "tsv", "parquet", "arrow", "libsvm", "npz", "npy"}, optional
        Whatever the name says. The standard input is CSV if nothing else is asked for.
    header : bool, default=True
        Whether the first line of a CSV file names the columns; otherwise they are called x0, x1, ...
    text : collection of str
        Columns of a CSV file to read as text even if they look like numbers.
    kept : collection of str
        Columns of a CSV file, by name or place, to read as labels that are text: "NA" in them is not missing.
    n_features : int, optional
        Columns of a LIBSVM file, of which some may have no entry in this one.
    dialect : Dialect, optional
        Which texts are missing, and how numbers are written.
    zero_based : bool, optional
        Whether the features of a LIBSVM file count from 0; if not given, its first chunk decides.
    progress : callable (done, total), optional
        Called after a chunk, with the bytes of text or the rows of Arrow read so far, and their number.

    Yields
    ------
    Table
    """
    if rows is not None and rows < 1:
        raise ValueError(f"rows must be at least 1, got {rows!r}")
    if str(path) != STDIN and not Path(path).exists():
        raise TableError(f"there is no file {path}")
    name, format, dialect = name_of(path), format_of(path, format), dialect or Dialect()
    if str(path) == STDIN and format not in STREAMS:
        raise TableError(f"{format} cannot be read from the standard input: only {', '.join(STREAMS)}")
    # Readers are imported when needed: a command that only prints its help does not wait for pandas.
    if format in ("csv", "tsv"):
        from svmosaic.table.formats._csv import csv_tables

        delimiter = "\t" if format == "tsv" else None
        tables = csv_tables(path, name, rows, header, delimiter, dialect, text, kept, label, progress)
    elif format == "libsvm":
        from svmosaic.table.formats._libsvm import libsvm_tables

        tables = libsvm_tables(path, name, rows, n_features, zero_based, progress)
    elif format in ("npz", "npy"):
        from svmosaic.table.formats._arrays import npy_tables, npz_tables

        tables = npz_tables(path, rows, label) if format == "npz" else npy_tables(path, rows, label, progress)
    else:
        from svmosaic.table.formats._arrow import arrow_tables

        tables = arrow_tables(path, rows, format, dialect, label, progress)
    empty = True
    for table in tables:
        empty = False
        yield table
    if empty:
        raise TableError(f"{name} has no rows")


def format_of(path, format=None) -> str:
    """The format of a file by its name, unless given."""
    if format is not None:
        if format not in FORMATS:
            raise TableError(f"the format must be one of {', '.join(FORMATS)}, got {format!r}")
        return format
    if str(path) == STDIN:
        return "csv"
    path = Path(path)
    if path.is_dir():
        return "parquet"
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] == [".zip"] and len(suffixes) < 2 and path.is_file():
        try:
            with zipfile.ZipFile(path) as archive:
                suffixes = [Path(zip_member(archive, path)).suffix.lower(), ".zip"]
        except zipfile.BadZipFile as error:
            raise TableError(f"{path} is damaged: it could not be unzipped ({error})") from error
    if suffixes and suffixes[-1] in COMPRESSED:
        found = SUFFIXES.get(suffixes[-2]) if len(suffixes) > 1 else None
        if found in STREAMS:
            return found
    elif suffixes and suffixes[-1] in SUFFIXES:
        return SUFFIXES[suffixes[-1]]
    raise TableError(
        f"the format of {path} cannot be inferred from its name, which should end in {', '.join(SUFFIXES)} "
        f"(compressed text files: also in {', '.join(COMPRESSED)}): name it with --format"
    )


def size_in_memory(path, format) -> int | None:
    """Bytes of the table once read, about; None for what is only ever read whole (or cannot be read at all)."""
    path = Path(path)
    try:
        if format in ("csv", "tsv"):
            return path.stat().st_size * (FROM_ZIPPED if path.suffix.lower() in COMPRESSED else 1)
        if format == "npy":
            return int(np.load(path, mmap_mode="r", allow_pickle=False).size) * NUMBER_BYTES
        if format in ("parquet", "arrow"):
            from svmosaic.table.formats._arrow import dataset_of

            dataset = dataset_of(path, format)
            widths = [
                TEXT_BYTES if str(t) in ("string", "large_string") else NUMBER_BYTES for t in dataset.schema.types
            ]
            return dataset.count_rows() * sum(widths)
    except Exception:  # a file that cannot be read: whoever reads it says so, with its name and the reason
        return None
    return None
