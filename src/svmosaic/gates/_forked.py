"""OpenMP in a process that was forked.

The threads of GNU's OpenMP, which scikit-learn's k-means runs on, do not survive a fork, and the child waits for them
for ever. With one thread it needs none.
"""

import os
from contextlib import nullcontext

from threadpoolctl import ThreadpoolController

_forked = False


def _remember():
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_remember)


def safe_openmp():
    """A context in which OpenMP uses one thread if this process was forked, and as many as it likes if not."""
    return ThreadpoolController().limit(limits=1, user_api="openmp") if _forked else nullcontext()
