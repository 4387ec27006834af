"""What all tests share."""

import signal

import pytest

# A shell starts background jobs with Ctrl-C ignored, and every child inherits that: the tests that send it would wait.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def counted_time():
    """A test whose searches vary nothing, and count steps instead of seconds."""
    from searches import counted, search_of

    with search_of(clock=counted()):
        yield


@pytest.fixture
def one_short_search():
    """A test whose searches try two settings and vary nothing: what it shows does not depend on how many are tried."""
    from searches import search_of

    with search_of(2):
        yield


@pytest.fixture(scope="module")
def short_search():
    """The same for all tests of a module, and for what it fits once."""
    from searches import search_of

    with search_of(2):
        yield


@pytest.fixture
def experts(monkeypatch):
    """A function that sets how far EM solves for the experts in an iteration."""

    def solved(tol=1e-3, max_iter=1000):
        monkeypatch.setattr("svmosaic.estimators._em.EXPERT_TOL", tol)
        monkeypatch.setattr("svmosaic.estimators._em.EXPERT_MAX_ITER", max_iter)

    return solved
