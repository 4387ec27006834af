"""Partitions held by the process itself, to compare fits over partitions with fits to all rows."""

from svmosaic.scale.rounds import Partitions, add, own


class InMemory(Partitions):
    """Partitions in a list of `Raw`."""

    def __init__(self, parts, n_threads=1):
        super().__init__()
        self.parts = parts
        self.n_threads = n_threads

    @property
    def n_parts(self) -> int:
        return len(self.parts)

    def gather(self, function, *args, each=None):
        found = [function(part, *own(each, k), *args) for k, part in enumerate(self.parts)]
        self._log(function, args, found[0] if found else None)
        return found

    def total(self, function, *args, each=None):
        value, *others = self.gather(function, *args, each=each)
        for other in others:
            value = add(value, other)
        return value

    def stream(self, function, *args, order):
        return (function(self.parts[k], *args) for k in order)

    def advance(self, function, *args, each=None):
        self.parts = [function(part, *own(each, k), *args) for k, part in enumerate(self.parts)]

    def keep(self, places):
        self.parts = [self.parts[k] for k in places]
