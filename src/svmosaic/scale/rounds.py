"""What a holder of partitions does: functions are carried to the rows, and only what they return travels."""

import pickle
from abc import ABC, abstractmethod
from dataclasses import dataclass


@dataclass(frozen=True)
class Round:
    """One pass over the partitions.

    Attributes
    ----------
    name : str
        The function that was carried to the rows.
    sent : int
        Bytes of its arguments: what each worker receives.
    returned : int
        Bytes of what it returns, of one partition: what each worker sends.
    """

    name: str
    sent: int
    returned: int


class Partitions(ABC):
    """Holds partitions and carries functions to them.

    A function takes a partition first. `each` gives it one further argument a partition, before the common ones.

    Attributes
    ----------
    rounds : list of Round
        What has traveled so far.
    n_threads : int
        Threads of the core on one partition.
    steps_between_averages : int or None
        How learned gates learn: None, from rows that come to this process (`stream`); else on the partitions, each
        with a learner of its own, and so many steps of them between two averages.
    """

    n_threads: int = 1
    steps_between_averages: int | None = None

    def __init__(self):
        self.rounds = []

    @property
    @abstractmethod
    def n_parts(self) -> int:
        """How many there are."""

    @abstractmethod
    def gather(self, function, *args, each=None) -> list:
        """What the function returns, of each partition in order."""

    @abstractmethod
    def total(self, function, *args, each=None):
        """The sum over partitions, in order, of what the function returns (see `add`)."""

    @abstractmethod
    def advance(self, function, *args, each=None):
        """Put what the function returns in the place of the partition, at the latest in the next round."""

    @abstractmethod
    def keep(self, places):
        """Forget all partitions but these."""

    def _log(self, function, args, value):
        size = len(pickle.dumps(args, protocol=5)), len(pickle.dumps(value, protocol=5))
        self.rounds.append(Round(function.__name__, *size))


def own(each, k) -> tuple:
    """The arguments that partition k has for itself."""
    return () if each is None else (each[k],)


def add(left, right):
    """The sum of two results: of arrays and numbers, of lists, tuples and dicts of them place by place."""
    if isinstance(left, dict):
        return {key: add(value, right[key]) for key, value in left.items()}
    if isinstance(left, (list, tuple)):
        return [add(a, b) for a, b in zip(left, right, strict=True)]
    return left + right
