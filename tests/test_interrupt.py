"""Ctrl-C ends a long solve, or any other long stage, within a second."""

import signal
import subprocess
import sys
import textwrap
import threading
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


STAGES = """
    import numpy as np
    from svmosaic import *
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal(({n}, {d})), rng.randint(3, size={n})
    model = {model}
    if {predict}:
        model.fit(X[:400], y[:400])
        fitted = model.decision_function(X[:10])
    print("start", flush=True)
    try:
        (model.predict if {predict} else lambda X: model.fit(X, y))(X)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        # Unfitted, or as it was before.
        assert (model.decision_function(X[:10]) == fitted).all() if {predict} else not hasattr(model, "mosaic_")
        assert not hasattr(model, "_fitting")
"""
ENDLESS = "tol=1e-12, max_iter=10**9, random_state=0"
GIVEN = "LocallyLinearSVC(anchors=rng.standard_normal((4000, 50)), code_scale=1.0)"


def interrupt(script, wait=0.5):
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True)
    watchdog = threading.Timer(90, child.kill)  # its output then ends, and the lines below fail
    watchdog.start()
    try:
        assert child.stdout.readline() == "start\n"
        time.sleep(wait)
        assert child.poll() is None, "the stage was over before the interrupt"
        sent = time.monotonic()
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "interrupted\n"
        assert time.monotonic() - sent < 1.0
        assert child.wait(timeout=30) == 0
    finally:
        watchdog.cancel()
        child.kill()
        child.wait()
        child.stdout.close()


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT the POSIX way")
@pytest.mark.parametrize(
    ("solver", "n_jobs", "n_classes"), [("dual", 1, 2), ("dual", 2, 5), ("newton", 1, 400), ("newton", 2, 400)]
)
def test_interrupt(solver, n_jobs, n_classes):
    interrupt(SCRIPT.format(solver=solver, n_jobs=n_jobs, n_classes=n_classes))


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT the POSIX way")
@pytest.mark.parametrize(
    ("n", "d", "model", "predict"),
    [
        pytest.param(100_000, 20, "KMeansSVC(300, rows_per_cluster=None, kmeans_iter=10**6)", False, id="k-means"),
        pytest.param(150_000, 50, GIVEN, False, id="coding"),
        pytest.param(1_000_000, 20, f"LinearSVC(1e9, solver='sgd', {ENDLESS})", False, id="sgd"),
        pytest.param(
            4000, 10, f"LocallyLinearSVC(9, C=1e8, multi_class='crammer_singer', loss='hinge', {ENDLESS})", False,
            id="all classes",
        ),
        pytest.param(
            20_000, 10, "MixtureSVC(20, tol=0.0, inner_tol=1e-9, max_iter=10**6, random_state=0)", False, id="EM"
        ),
        pytest.param(150_000, 50, GIVEN, True, id="prediction"),
    ],
)  # fmt: skip
def test_interrupt_of_every_stage(n, d, model, predict):
    interrupt(STAGES.format(n=n, d=d, model=model, predict=predict))
