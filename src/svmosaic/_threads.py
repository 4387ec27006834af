"""One thread for the libraries of linear algebra and clustering, as long as a fit asks for it."""

from contextlib import contextmanager
from functools import cache
from threading import Lock

from threadpoolctl import ThreadpoolController

_lock = Lock()
_holders, _limits = 0, None


@contextmanager
def one_thread():
    """The same bits whatever the number of threads, and no wait for threads that a fork has lost.

    OpenMP has a number of threads for each thread that calls it. BLAS has one for the process: it is taken down by the
    first of several fits at the same time, and restored by the last.
    """
    global _holders, _limits
    # Selected first: a limit restores all libraries of its controller.
    with _libraries().select(user_api="openmp").limit(limits=1):
        with _lock:
            if _holders == 0:
                _limits = _libraries().select(user_api="blas").limit(limits=1)
            _holders += 1
        try:
            yield
        finally:
            with _lock:
                _holders -= 1
                if _holders == 0:
                    _limits.restore_original_limits()


@cache
def _libraries():
    """Libraries that scikit-learn calls; to look for them takes longer than clustering few rows does."""
    import sklearn.cluster  # noqa: F401  (only libraries that are loaded are found)

    return ThreadpoolController()
