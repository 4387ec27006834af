"""Results, one JSON line each, on disk before the next run begins."""

import json
import os
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows has other locks; there two runs at a time are the user's care
    fcntl = None  # type: ignore[assignment]


class Store:
    """An append-only file of records, by key.

    A run may be killed at any moment. A record is either complete, ended by a newline, or absent: a last line that
    lacks its newline, or is not JSON, is removed when the store is opened for writing, and ignored when it is read.
    A later record replaces an earlier one with the same key.

    See Also
    --------
    run : Fills it.
    """

    def __init__(self, path):
        self.path = Path(path)
        self.records: dict[tuple[str, int], dict] = {}
        self._file = None
        self._read()

    def _read(self) -> int:
        """Read all whole records; returns how many bytes they are."""
        whole = 0
        lines = self.path.read_bytes().splitlines(keepends=True) if self.path.exists() else []
        for number, line in enumerate(lines, 1):
            try:
                if not line.endswith(b"\n"):
                    raise ValueError("no newline at its end")
                record = json.loads(line)
                key = record["key"], record["repeat"]
            except (ValueError, KeyError, TypeError) as error:
                if number == len(lines):
                    break
                raise ValueError(f"{self.path}, line {number} is not a record ({error}); remove it") from error
            self.records[key] = record
            whole += len(line)
        return whole

    def __contains__(self, key) -> bool:
        return key in self.records

    def get(self, key):
        return self.records.get(key)

    def __enter__(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Unbuffered, and at the end whatever another process may have done in between.
        self._file = open(self.path, "ab", buffering=0)
        if fcntl is not None:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                self._file.close()
                raise RuntimeError(
                    f"another run is writing to {self.path}; wait for it or give another file"
                ) from error
        # Again, now that nobody else writes: another run may have added to it since.
        self._file.truncate(self._read())
        return self

    def __exit__(self, *exception):
        self._file.close()
        self._file = None

    def add(self, record):
        """Write a record to disk; once this returns, the record survives a crash of the process or the machine."""
        if self._file is None:
            raise RuntimeError("the store is open for reading only: use `with store:`")
        line = json.dumps(record, sort_keys=True, allow_nan=False) + "\n"
        self._file.write(line.encode())
        os.fsync(self._file.fileno())
        self.records[record["key"], record["repeat"]] = record
