"""Ctrl-C ends a long solve within a second."""

import signal
import subprocess
import sys
import textwrap
import time

import pytest

SCRIPT = """
    import numpy as np
    from svmosaic import LinearSVC
    rng = np.random.RandomState(0)
    if "{solver}" == "dual":
        # Overlapping classes at a huge C: hours of epochs.
        X, y = rng.standard_normal((2000, 5)) * [1, 10, 100, 1e3, 1e4], rng.randint({n_classes}, size=2000)
        C, tol = 1e8, 1e-12
    else:
        # Many classes: minutes of Newton steps, none of them long.
        X, y = rng.standard_normal((20000, 100)), rng.randint({n_classes}, size=20000)
        C, tol = 10.0, 1e-10
    model = LinearSVC(C, solver="{solver}", tol=tol, max_iter=10**9, n_jobs={n_jobs}, random_state=0)
    print("start", flush=True)
    try:
        model.fit(X, y)
    except KeyboardInterrupt:
        assert not hasattr(model, "mosaic_")
        print("interrupted", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT the POSIX way")
@pytest.mark.parametrize(
    ("solver", "n_jobs", "n_classes"), [("dual", 1, 2), ("dual", 2, 5), ("newton", 1, 400), ("newton", 2, 400)]
)
def test_interrupt(solver, n_jobs, n_classes):
    script = textwrap.dedent(SCRIPT.format(solver=solver, n_jobs=n_jobs, n_classes=n_classes))
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "start\n"
        time.sleep(0.5)
        assert child.poll() is None, "the solve was over before the interrupt"
        sent = time.monotonic()
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "interrupted\n"
        assert time.monotonic() - sent < 1.0
        child.wait(timeout=10)
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
