"""Parquet and Arrow, by pyarrow (the extra `arrow`)."""

from pathlib import Path

import numpy as np
import pandas as pd

from svmosaic.table.formats._table import TableError, check_names, name_of


def arrow_frames(path, rows, format, dialect, progress=None):
    """Frames of at most `rows` rows; of the dialect, only the texts that mark missing values count."""
    try:
        import pyarrow as pa
        import pyarrow.dataset
    except ImportError as error:
        raise TableError(f"reading {name_of(path)} needs pyarrow: pip install pyarrow") from error
    path = Path(path)
    if path.is_file() and path.stat().st_size == 0:
        raise TableError(f"{path} is empty")
    try:
        dataset = pa.dataset.dataset(path, format="ipc" if format == "arrow" else format, partitioning="hive")
        check_names(dataset.schema.names, str(path))
        if rows is None:
            table = dataset.to_table()
            if table.num_rows:
                yield _frame_of(table, dialect)
            return
        done, total = 0, dataset.count_rows() if progress is not None else 0
        waiting = []  # batches end where files and row groups do: put together what is short
        # Read no further ahead than one batch: pyarrow would hold up to sixteen of each of four files, and buffer whole
        # files of Parquet.
        options = pa.dataset.ParquetFragmentScanOptions(pre_buffer=False) if format == "parquet" else None
        for batch in dataset.to_batches(
            batch_size=rows, batch_readahead=1, fragment_readahead=1, fragment_scan_options=options
        ):
            while batch.num_rows:
                room = rows - sum(part.num_rows for part in waiting)
                waiting.append(batch.slice(0, room))
                batch = batch.slice(room)
                if sum(part.num_rows for part in waiting) == rows:
                    yield _frame_of(pa.Table.from_batches(waiting), dialect)
                    waiting = []
                    done += rows
                    if progress is not None:
                        progress(done, total)
        if waiting:
            yield _frame_of(pa.Table.from_batches(waiting), dialect)
    except TableError:
        raise
    except Exception as error:  # pyarrow's own, but also of names that are no text, and others: the file is to blame
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise TableError(f"{path} could not be read as {format}: {reason}") from error


def _frame_of(table, dialect):
    """An Arrow table as a frame of numbers and text."""
    import pyarrow as pa

    table.validate(full=True)  # pyarrow would follow damaged offsets out of its memory
    frame = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type
        if pa.types.is_dictionary(kind):
            column = column.cast(kind.value_type)
            kind = kind.value_type
        if pa.types.is_nested(kind) or pa.types.is_binary(kind):
            raise TableError(f"column {name!r} holds {kind}, which is neither a number nor text")
        if pa.types.is_boolean(kind):
            words = column.to_pandas().map({True: "True", False: "False"})
            frame[name] = _text(words)
        elif pa.types.is_integer(kind) and column.null_count == 0:
            frame[name] = column.to_pandas()
        elif pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
            frame[name] = column.cast(pa.float64(), safe=False).to_pandas()  # whole numbers above 2^53 are rounded
        else:
            frame[name] = _text(column.cast(pa.string()).to_pandas(), dialect.na or ())
    return pd.DataFrame(frame)


def _text(column, na=()):
    """Text, with NaN for what is missing: pandas before 3 would write it out, as "None" or "nan"."""
    return column.astype("str").where(column.notna() & ~column.isin(na), np.nan)
