"""How much memory a table would take, before it is read."""

from pathlib import Path

import numpy as np

from svmosaic.table.formats._table import COMPRESSED

NUMBER_BYTES, TEXT_BYTES = 8, 64
# Text to table, and zipped to text: what files of numbers with some digits come to.
FROM_TEXT, FROM_ZIPPED = 1, 4


def size_in_memory(path, format) -> int | None:
    """Bytes of the table once read, about; None for what is only ever read whole (or cannot be read at all).

    Parameters
    ----------
    path : path of a file or, for Parquet, a folder
    format : str
    """
    path = Path(path)
    try:
        if format in ("csv", "tsv"):
            return path.stat().st_size * (FROM_ZIPPED if path.suffix.lower() in COMPRESSED else FROM_TEXT)
        if format == "npy":
            return int(np.load(path, mmap_mode="r", allow_pickle=False).size) * NUMBER_BYTES
        if format in ("parquet", "arrow"):
            import pyarrow as pa
            import pyarrow.dataset

            dataset = pa.dataset.dataset(path, format="ipc" if format == "arrow" else format, partitioning="hive")
            text = sum(pa.types.is_string(t) or pa.types.is_large_string(t) for t in dataset.schema.types)
            return dataset.count_rows() * (
                NUMBER_BYTES * len(dataset.schema.names) + (TEXT_BYTES - NUMBER_BYTES) * text
            )
    except Exception:  # a file that cannot be read: whoever reads it says so, with its name and the reason
        return None
    return None
