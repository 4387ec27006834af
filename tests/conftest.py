"""What all tests share."""

import itertools
import signal

import pytest

# A shell starts background jobs with Ctrl-C ignored, and every child inherits that: the tests that send it would wait.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def counting(n_settings=None):
    """Searches count steps instead of seconds, vary nothing, and try few settings."""
    from svmosaic.search import _searching, choice, engine

    whole, steps = engine.portfolio, itertools.count()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "portfolio", lambda *arguments: whole(*arguments)[:n_settings])
        patch.setattr(engine, "EFFORTS", {name: (n, 0, work) for name, (n, _, work) in engine.EFFORTS.items()})
        for module in (_searching, choice, engine):
            patch.setattr(module, "perf_counter", lambda: 1e-3 * next(steps))
        yield


@pytest.fixture
def counted_time():
    """A test whose searches count steps: a time budget leads to the same trials on any machine, slow or busy."""
    yield from counting()


@pytest.fixture
def one_short_search():
    """A test whose searches also try two candidates alone: what it shows does not depend on how many are tried."""
    yield from counting(2)


@pytest.fixture(scope="module")
def short_search():
    """The same for all tests of a module, and for what it fits once."""
    yield from counting(2)


@pytest.fixture(scope="module")
def impatient():
    """A function that fits a search of every family, which varies nothing."""
    from svmosaic.search import engine

    def fit(model, X, y):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(engine, "EFFORTS", {name: (16, 0, work) for name, (_, _, work) in engine.EFFORTS.items()})
            return model.fit(X, y)

    return fit


@pytest.fixture
def experts(monkeypatch):
    """A function that sets how far EM solves for the experts in an iteration."""

    def solved(tol=1e-3, max_iter=1000):
        monkeypatch.setattr("svmosaic.estimators._em.EXPERT_TOL", tol)
        monkeypatch.setattr("svmosaic.estimators._em.EXPERT_MAX_ITER", max_iter)

    return solved
