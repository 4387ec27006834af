"""Parquet and Arrow, by pyarrow (the extra `arrow`)."""

from pathlib import Path

import numpy as np
import pandas as pd

from svmosaic.table.formats._table import TableError, check_names, name_of, table_of


def dataset_of(path, format):
    """A file, or a folder of Parquet, as a dataset of pyarrow."""
    import pyarrow.dataset

    return pyarrow.dataset.dataset(path, format="ipc" if format == "arrow" else format, partitioning="hive")


def arrow_tables(path, rows, format, dialect, label, progress):
    """Tables of at most `rows` rows; of the dialect, only the texts that mark missing values count."""
    try:
        import pyarrow as pa
        import pyarrow.dataset
    except ImportError as error:
        raise TableError(f"reading {name_of(path)} needs pyarrow: pip install pyarrow") from error
    path = Path(path)
    if path.is_file() and path.stat().st_size == 0:
        raise TableError(f"{path} is empty")
    try:
        dataset = dataset_of(path, format)
        check_names(dataset.schema.names, str(path))
        if rows is None:
            table = dataset.to_table()
            if table.num_rows:
                yield table_of(_frame_of(table, dialect), label, str(path))
            return
        done, total = 0, dataset.count_rows() if progress is not None else 0
        waiting, n_waiting = [], 0  # batches end where files and row groups do: put together what is short
        # Read no further ahead than one batch: pyarrow would hold up to sixteen of each of four files, and buffer whole
        # files of Parquet.
        options = pyarrow.dataset.ParquetFragmentScanOptions(pre_buffer=False) if format == "parquet" else None
        for batch in dataset.to_batches(
            batch_size=rows, batch_readahead=1, fragment_readahead=1, fragment_scan_options=options
        ):
            while batch.num_rows:
                part = batch.slice(0, rows - n_waiting)
                batch = batch.slice(part.num_rows)
                waiting.append(part)
                n_waiting += part.num_rows
                if n_waiting == rows:
                    yield table_of(_frame_of(pa.Table.from_batches(waiting), dialect), label, str(path))
                    waiting, n_waiting, done = [], 0, done + rows
                    if progress is not None:
                        progress(done, total)
        if waiting:
            yield table_of(_frame_of(pa.Table.from_batches(waiting), dialect), label, str(path))
    except TableError:
        raise
    except Exception as error:  # pyarrow's own, but also of names that are no text, and others: the file is to blame
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise TableError(f"{path} could not be read as {format}: {reason}") from error


def _frame_of(table, dialect):
    """An Arrow table as a frame of numbers and text, with NaN for missing text: pandas before 3 would write it out."""
    import pyarrow as pa

    table.validate(full=True)  # pyarrow would follow damaged offsets out of its memory
    frame = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        kind, na = column.type, dialect.na or ()
        if pa.types.is_nested(kind) or pa.types.is_binary(kind):
            raise TableError(f"column {name!r} holds {kind}, which is neither a number nor text")
        if pa.types.is_integer(kind) and column.null_count == 0:
            frame[name] = column.to_pandas()
        elif pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
            frame[name] = column.cast(pa.float64(), safe=False).to_pandas()  # whole numbers above 2^53 are rounded
        else:
            if pa.types.is_boolean(kind):
                text, na = column.to_pandas().map({True: "True", False: "False"}), ()
            else:
                text = column.cast(pa.string()).to_pandas()
            frame[name] = text.astype("str").where(text.notna() & ~text.isin(na), np.nan)
    return pd.DataFrame(frame)
