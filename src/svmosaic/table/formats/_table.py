"""What all readers share: the table, its errors, columns by name, files opened."""

import bz2
import difflib
import gzip
import lzma
import os
import sys
import zipfile
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

STDIN = "-"
PIECE = 1 << 20  # of a line that is read at once
LONGEST_LINE = 1 << 28
COMPRESSED = (".gz", ".bz2", ".xz", ".zip")


class TableError(ValueError):
    """A file cannot be read as a table, or the table lacks a required column or rows.

    See Also
    --------
    svmosaic.table.trained_model.open_model : Opens a model that was trained on a table.
    """


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of a file.

    Attributes
    ----------
    X : DataFrame, CSR matrix (LIBSVM) or ndarray (NPZ)
        In a DataFrame, a column is numeric if all its values are numbers, and otherwise text (missing: NaN).
    y : ndarray or None
        The labels, if any were asked for or come with the format.
    feature_names : list of str
        Of the columns of X. For LIBSVM the indices that the file uses.
    label : str or None
        The name of the label column.
    missing_labels : dict of str to int
        Texts in the label column of a CSV file that were taken as missing, and how many rows hold each.
    """

    X: Any
    y: np.ndarray | None
    feature_names: list[str]
    label: str | None = None
    missing_labels: dict = field(default_factory=dict)

    def __len__(self):
        return self.X.shape[0]


def find_column(columns, label, name="the table") -> str:
    """The column called `label`, or at that place if it is a number and no column is called so."""
    columns = list(columns)
    if str(label) in columns:
        return str(label)
    try:
        place = int(label)
    except ValueError:
        near = difflib.get_close_matches(str(label), columns, n=3, cutoff=0.5)
        shown = ", ".join(map(repr, near or columns[:8])) + (", ..." if not near and len(columns) > 8 else "")
        raise TableError(
            f"{name} has no column {str(label)!r}; {'the nearest are' if near else 'its columns are'} {shown}"
        ) from None
    if not -len(columns) <= place < len(columns):
        if len(columns) == 1:
            raise TableError(
                f"{name} has one column, {columns[0]!r}: columns are separated by commas, semicolons or tabs"
            )
        raise TableError(f"{name} has {len(columns)} columns, so there is no column with index {place}")
    return columns[place]


def is_number(column) -> bool:
    """Whether a column holds numbers; truth values are text."""
    import pandas as pd  # here, since it takes a while to import

    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def is_npy(path) -> bool:
    """Whether a label is the name of a .npy file, and not of a column."""
    return path is not None and Path(str(path)).suffix == ".npy"


def table_of(frame, label, name, missing_labels=None) -> Table:
    """A frame as a table, with the label column taken out."""
    if label is None:
        return Table(frame, None, list(frame.columns))
    column = find_column(frame.columns, label, name)
    X = frame.drop(columns=column)
    if X.shape[1] == 0:
        raise TableError(f"{name} has no column besides the label {column!r}")
    return Table(X, frame[column].to_numpy(), list(X.columns), column, missing_labels or {})


def check_names(columns, name, hint=""):
    """Columns are identified by their names, so each needs one of its own; `hint` ends the message."""
    seen = set()
    for place, column in enumerate(columns):
        if not column:
            index = ", as an index that pandas writes (index=False leaves it out)" if place == 0 else ""
            raise TableError(f"{name}: column {place + 1} has no name{index}{hint}")
        if column in seen:
            raise TableError(f"{name}: two columns are called {column!r}, so neither can be named{hint}")
        seen.add(column)


def to_csr(X):
    """A sparse matrix as CSR with 32-bit indices, which is what estimators take."""
    from scipy import sparse

    X = sparse.csr_array(X)
    if X.indices.dtype == np.int32 and X.indptr.dtype == np.int32:
        return X
    if max(X.nnz, *X.shape) >= 2**31:
        raise TableError(f"sparse rows with {X.nnz} entries and of shape {X.shape} are too large")
    parts = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
    return sparse.csr_array(parts, shape=X.shape)


def name_of(path):
    return "the standard input" if str(path) == STDIN else str(path)


@contextmanager
def opened(path, progress=None):
    """A file or the standard input as bytes, decompressed, and a function that calls `progress` with what is read."""
    if str(path) == STDIN:
        yield sys.stdin.buffer, lambda: None
        return
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size

            def report():
                if progress is not None and size:
                    progress(file.tell(), size)

            start = file.read(6)
            file.seek(0)
            reader = next((reader for magic, reader in DECOMPRESSORS.items() if start.startswith(magic)), None)
            if reader is None:
                yield file, report
            else:
                with reader(file) as content:
                    yield content, report
    except (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError, zipfile.BadZipFile) as error:
        raise TableError(f"{path} is damaged: it could not be unzipped ({error})") from error
    except NotImplementedError as error:  # how zipfile names a method of compression that it lacks, such as Deflate64
        raise TableError(f"{path} could not be unzipped ({error}): unzip it with another program first") from error
    except RuntimeError as error:  # how zipfile asks for a password
        if "password" not in str(error):
            raise
        raise TableError(f"{path} is encrypted: unzip it first") from error
    except OSError as error:
        raise TableError(f"{path} could not be read: {error.strerror or error}") from error


def read_line(file, name, number):
    """The next line of a file of text or bytes, empty at its end; an error gives the name and the number.

    What is no text is noticed early: a file of zeros has a single line, which would not fit into memory.
    """
    piece = file.readline(PIECE)
    is_bytes = isinstance(piece, bytes)
    if len(piece) < PIECE and (b"\0" if is_bytes else "\0") not in piece:
        return piece
    pieces, size = [], 0
    while True:
        if (b"\0" if is_bytes else "\0") in piece:
            raise TableError(f"{name} is not text: line {number} holds a zero byte")
        pieces.append(piece)
        size += len(piece)
        if len(piece) < PIECE or piece.endswith(b"\n" if is_bytes else "\n"):
            return type(piece)().join(pieces)
        if size >= LONGEST_LINE:
            raise TableError(f"{name} is not a table: line {number} is longer than {LONGEST_LINE} characters")
        piece = file.readline(PIECE)


@contextmanager
def _open_zip(file):
    with zipfile.ZipFile(file) as archive, archive.open(zip_member(archive, file.name)) as content:
        yield content


def zip_member(archive, name) -> str:
    """The one file of an archive."""
    files = [n for n in archive.namelist() if not n.endswith("/") and not n.startswith("__MACOSX/")]
    if len(files) != 1:
        raise TableError(f"{name} holds {len(files)} files: a zip archive is read if it holds one table")
    return files[0]


# By how a file begins, whatever its name.
DECOMPRESSORS: dict[bytes, Any] = {
    b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open, b"PK\x03\x04": _open_zip,
}  # fmt: skip
