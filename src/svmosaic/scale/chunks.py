"""Partitions of a file, one after another on one machine: memory holds two chunks, whatever the file holds."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from svmosaic.scale.rounds import Partitions, add, own


class Chunks(Partitions):
    """The chunks of a source, read again in every round, the next one while one is worked on.

    What a fit stores for each row (labels, codes, duals) is kept in files in a folder.

    Parameters
    ----------
    source : object with `n_chunks`, `read(k)` for rows, labels and weights, and `rows(k)`
    folder : path
        For files of about 20 bytes per row and output.
    n_threads : int
    """

    def __init__(self, source, folder, n_threads=1):
        super().__init__()
        self.source = source
        self.folder = Path(folder)
        self.n_threads = n_threads
        self._chunks = list(range(source.n_chunks))
        self._pending = []

    @property
    def n_parts(self) -> int:
        return len(self._chunks)

    def gather(self, function, *args, each=None):
        found = [function(part, *own(each, k), *args) for k, part in enumerate(self._parts())]
        self._log(function, args, found[0] if found else None)
        return found

    def total(self, function, *args, each=None):
        value = None
        for k, part in enumerate(self._parts()):
            found = function(part, *own(each, k), *args)
            value = found if value is None else add(value, found)
        self._log(function, args, value)
        return value

    def advance(self, function, *args, each=None):
        self._log(function, args, None)
        self._pending.append((function, args, each))

    def stream(self, function, *args, order):
        if self._pending:  # by all chunks, of which the caller may not want all
            for _ in self._parts():
                pass
        self._log(function, args, None)
        return (function(part, *args) for part in self._parts(order))

    def keep(self, places):
        self._chunks = [self._chunks[k] for k in places]

    def _parts(self, order=None):
        pending, self._pending = self._pending, []
        order = range(self.n_parts) if order is None else order
        with ThreadPoolExecutor(1) as reader:
            ahead = reader.submit(self._read, self._chunks[order[0]]) if len(order) else None
            for at, k in enumerate(order):
                chunk, part = self._chunks[k], ahead.result()
                if at + 1 < len(order):
                    ahead = reader.submit(self._read, self._chunks[order[at + 1]])
                for function, args, each in pending:
                    part = function(part, *own(each, k), *args)
                if pending:
                    self._path(chunk).write_bytes(pickle.dumps(replace(part, X=None), protocol=5))
                yield part

    def _read(self, chunk):
        path = self._path(chunk)
        if not path.exists():
            return self.source.read(chunk)
        part = pickle.loads(path.read_bytes())  # written by ourselves, in a folder of our own
        X = self.source.rows(chunk)
        return replace(part, X=X if part.kept is None else X[part.kept], built={})

    def _path(self, chunk):
        return self.folder / f"{chunk}.part"
