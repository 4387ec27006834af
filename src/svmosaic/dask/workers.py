"""Partitions that live on the workers of a Dask cluster."""

import pickle
from concurrent.futures import CancelledError

import dask.array as da
import dask.dataframe as dd
import distributed
from distributed.scheduler import KilledWorker

from svmosaic.scale.rounds import Partitions, Round, add

# Partial sums that one task adds up.
FAN_IN = 8
# Arguments above this size become a task of their own, so that workers pass them on to each other.
LARGE = 100_000
# How often a wait looks whether there is still a worker, in seconds.
PATIENCE = 10.0


class WorkerLostError(RuntimeError):
    """Rows were lost with a worker and cannot be recomputed; nothing was fitted.

    See Also
    --------
    svmosaic.dask.LinearSVC : Its `fit`, like that of the other estimators, raises it.
    """


class Workers(Partitions):
    """Partitions as futures: each is made from the collection by pure functions, so that Dask makes a lost one again.

    Parameters
    ----------
    client : distributed.Client
    parts : list of Future
    """

    def __init__(self, client, parts):
        super().__init__()
        self.client = client
        self.parts = parts
        self._known = _addresses(client)

    @property
    def n_parts(self) -> int:
        return len(self.parts)

    def gather(self, function, *args, each=None):
        found, sent = self._submit(function, args, each)
        values = self._results(found)
        self._note(function, sent, values[0] if values else None)
        return values

    def total(self, function, *args, each=None):
        found, sent = self._submit(function, args, each)
        while len(found) > FAN_IN:
            groups = [found[k : k + FAN_IN] for k in range(0, len(found), FAN_IN)]
            found = self.client.map(_sum, groups, pure=False)
        value = _sum(self._results(found))
        self._note(function, sent, value)
        return value

    def advance(self, function, *args, each=None):
        self.parts, sent = self._submit(function, args, each)
        self._note(function, sent, None)

    def keep(self, places):
        self.parts = [self.parts[k] for k in places]

    def _submit(self, function, args, each):
        size = len(pickle.dumps(args, protocol=5))
        if size > LARGE:
            args = self.client.submit(lambda args: args, args, pure=False)
        own = [()] * len(self.parts) if each is None else [(value,) for value in each]
        return self.client.map(_call, self.parts, own, function=function, args=args, pure=False), size

    def _note(self, function, sent, value):
        self.rounds.append(Round(function.__name__, sent, len(pickle.dumps(value, protocol=5))))

    def _results(self, futures):
        try:
            while True:
                try:
                    distributed.wait(futures, timeout=PATIENCE)
                    return self.client.gather(futures)
                except TimeoutError:
                    if not _addresses(self.client):
                        raise WorkerLostError(self._story("no worker is left")) from None
        except (KilledWorker, CancelledError) as error:
            raise WorkerLostError(self._story(str(error))) from error

    def _story(self, reason):
        lost = sorted(self._known - _addresses(self.client))
        return f"lost {', '.join(lost) or 'a worker'} during fit, with rows that cannot be made again: {reason}"


def _addresses(client):
    return set(client.scheduler_info(n_workers=-1)["workers"])


def _call(part, own, function, args):
    return function(part, *own, *args)


def _sum(values):
    total = values[0]
    for value in values[1:]:
        total = add(total, value)
    return total


def aligned(X, y, sample_weight=None):
    """Delayed rows, labels and weights (or None) of each partition."""
    if not isinstance(X, (da.Array, dd.DataFrame)):
        raise TypeError(
            f"X must be a Dask array or DataFrame, got {type(X).__name__}; for rows in memory there are the estimators "
            "of svmosaic itself"
        )
    if isinstance(X, da.Array):
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions, got an array of shape {X.shape}")
        X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
    blocks = [_blocks(X, "X", X)]
    blocks.append(_blocks(y, "y", X))
    blocks.append([None] * len(blocks[0]) if sample_weight is None else _blocks(sample_weight, "sample_weight", X))
    return list(zip(*blocks, strict=True))


def _blocks(values, name, X):
    """The partitions of a collection, which must be those of X."""
    if not isinstance(values, (da.Array, dd.DataFrame, dd.Series)):
        raise TypeError(f"{name} must be a Dask collection, as X is, got {type(values).__name__}")
    if isinstance(values, da.Array) and isinstance(X, da.Array):
        known = values.shape[0] == values.shape[0] and X.shape[0] == X.shape[0]  # nan where not known
        if known and values.shape[0] != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows, but {name} has {values.shape[0]}")
        if known and values.chunks[0] != X.chunks[0]:
            values = values.rechunk({0: X.chunks[0]})
    n_parts = X.numblocks[0] if isinstance(X, da.Array) else X.npartitions
    found = values.to_delayed()
    found = found.ravel().tolist() if isinstance(values, da.Array) else list(found)
    if len(found) != n_parts:
        raise ValueError(f"X has {n_parts} partitions, but {name} has {len(found)}; partition them in the same way")
    return found
