"""What all tests share."""

import signal

import pytest

# A shell starts background jobs with Ctrl-C ignored, and every child inherits that: the tests that send it would wait.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module")
def short_search():
    """Searches that try few candidates, for tests of what does not depend on how many are tried."""
    from svmosaic.search import climb

    first = climb.seeds
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(climb, "seeds", lambda *arguments: first(*arguments)[:2])
        patch.setattr(climb, "PATIENCE", 1)
        yield
