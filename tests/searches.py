"""Searches for tests: fewer settings, and clocks that move when they are read."""

import itertools
from contextlib import contextmanager

import pytest

from svmosaic.search import _searching, choice, engine, mosaic_classifier, mosaic_regressor


@contextmanager
def search_of(n_settings=None, clock=None, variations=0):
    """Searches try no more than so many settings and variations; `clock` replaces that of the time budget."""
    efforts = {name: (min(n, n_settings or n), variations, work) for name, (n, _, work) in engine.EFFORTS.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "EFFORTS", efforts)
        for module in (_searching, choice, engine, mosaic_classifier, mosaic_regressor) if clock else ():
            patch.setattr(module, "perf_counter", clock)
        yield


def counted(step=1e-3):
    """A clock that moves on by a step whenever it is read."""
    return map(step.__mul__, itertools.count()).__next__


def ending_after(n_reads):
    """A clock that stands still for so many reads; then all time is over."""
    reads = itertools.count()
    return lambda: 0.0 if next(reads) < n_reads else 1e12
