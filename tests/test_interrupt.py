"""Ctrl-C ends a long solve, or any other long stage, within a second, and leaves the last fit as it was."""

import json
import signal
import subprocess
import sys
import textwrap
import threading
import time

import needs
import numpy as np
import pytest
import test_properties_estimators as properties
from numpy.testing import assert_array_equal

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


SLOW = pytest.mark.slow
pytestmark = pytest.mark.usefixtures("short_search")


SERVER = """
import json, sys
for line in sys.stdin:
    exec(json.loads(line), {})
    print("done", flush=True)
"""


class Server:
    """A process that runs one script after another, so that the library is imported once."""

    def __init__(self):
        self.child = None

    def start(self, script):
        if self.child is None or self.child.poll() is not None:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            self.child = subprocess.Popen([sys.executable, "-c", SERVER], **pipes)
        self.child.stdin.write(json.dumps(textwrap.dedent(script)) + "\n")
        self.child.stdin.flush()
        return self.child

    def stop(self):
        if self.child is not None:
            self.child.kill()
            self.child.communicate()
            self.child = None


@pytest.fixture(scope="module")
def server():
    server = Server()
    yield server
    server.stop()


def interrupt(script, wait=0.5, server=None):
    """Interrupt a script after its line "start"; scripts that change the library need a process of their own."""
    own = Server() if server is None else server
    child = own.start(script)
    watchdog = threading.Timer(90, child.kill)  # its output then ends, and the lines below fail
    watchdog.start()
    try:
        assert child.stdout.readline() == "start\n"
        time.sleep(wait)
        sent = time.monotonic()
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "interrupted\n", "the stage was over before the interrupt"
        assert time.monotonic() - sent < 1.0
        assert "done\n" in iter(child.stdout.readline, "")
    except BaseException:
        own.stop()
        raise
    finally:
        watchdog.cancel()
    if server is None:
        own.stop()


@needs.posix
@pytest.mark.parametrize(
    ("solver", "n_jobs", "n_classes"),
    [
        pytest.param("dual", 1, 2, marks=SLOW),
        ("dual", 2, 5),
        pytest.param("newton", 1, 400, marks=SLOW),
        ("newton", 2, 400),
    ],
)
def test_interrupt(solver, n_jobs, n_classes, server):
    interrupt(SCRIPT.format(solver=solver, n_jobs=n_jobs, n_classes=n_classes), server=server)


@needs.posix
@pytest.mark.parametrize(
    ("n", "d", "model", "predict"),
    [
        pytest.param(150_000, 50, GIVEN, False, id="coding", marks=SLOW),
        pytest.param(1_000_000, 20, f"LinearSVC(1e9, solver='sgd', {ENDLESS})", False, id="sgd"),
        pytest.param(
            4000, 10, f"LocallyLinearSVC(9, C=1e8, multi_class='crammer_singer', loss='hinge', {ENDLESS})", False,
            id="all classes", marks=pytest.mark.slow,
        ),
        pytest.param(
            150_000, 30, f"LocallyLinearSVC(60, solver='newton', n_jobs=2, {ENDLESS})", False, id="pairs of tiles",
            marks=SLOW,
        ),
        pytest.param(
            20_000, 10, "MixtureSVC(20, tol=0.0, max_iter=10**6, random_state=0)", False, id="EM"
        ),
        pytest.param(50_000, 20, "LearnedGateSVC(32, max_iter=10**6, random_state=0)", False, id="learned gate"),
        pytest.param(
            100_000, 20,
            "GaussianMixtureClassifier(64, tol=0.0, max_iter=10**6, random_state=0)", False, id="densities",
            marks=SLOW,
        ),
        pytest.param(
            20_000, 20, "MosaicClassifier(time_budget=None, random_state=0)", False, id="tuning", marks=SLOW
        ),
        pytest.param(150_000, 50, GIVEN, True, id="prediction"),
    ],
)  # fmt: skip
def test_interrupt_of_every_stage(n, d, model, predict, server):
    interrupt(STAGES.format(n=n, d=d, model=model, predict=predict), server=server)


STREAM = """
    import numpy as np
    from svmosaic import *
    from svmosaic.solvers import Control
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((200_000, 50)).astype(np.float32), rng.randint(20, size=200_000)
    model = LocallyLinearSVC(anchors=rng.standard_normal((8, 50)), code_scale=1.0, n_jobs={n_jobs}, t0=1e6)
    model.partial_fit(X[:2000], y[:2000], classes=range(20))
    before, seen = model.decision_function(X[:10]), model.n_samples_seen_
    run_all = Control.run_all
    Control.run_all = lambda *arguments: print("start", flush=True) or run_all(*arguments)  # after the coding
    try:
        model.partial_fit(np.concatenate([X] * 5), np.concatenate([y] * 5))
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        assert (model.decision_function(X[:10]) == before).all() and model.n_samples_seen_ == seen
        steps = [descent.n_steps for descent in model._stream]
        assert 20 * 2000 < sum(steps) < 20 * 1_002_000, steps
        model.partial_fit(X[:2000], y[:2000])
        assert [descent.n_steps for descent in model._stream] == [n + 2000 for n in steps]
"""


@needs.posix
@pytest.mark.parametrize("n_jobs", [pytest.param(1, marks=SLOW), 2])
def test_interrupt_of_a_batch(n_jobs):
    """The model stays what it was, and the next batch goes on from the rows that were met."""
    interrupt(STREAM.format(n_jobs=n_jobs))


CALIBRATION = """
    from dataclasses import replace
    import numpy as np
    from svmosaic import *
    {slow}
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((2000, 5)) * [1, 10, 100, 1e3, 1e4], rng.randint(2, size=2000)
    model = {model}.set_params(calibration="sigmoid", random_state=0)
    try:
        model.fit(X, y)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        assert not hasattr(model, "mosaic_") and not hasattr(model, "classes_")
"""
# What comes after the model itself, made to last.
FOLDS = """
    from svmosaic.estimators.data import Data
    calibrate = Data.calibrate

    def slowly(self, method, fit, solve_tiles, options, *more):
        print("start", flush=True)
        options = replace(options, C=1e8, tol=1e-12, max_iter=10**9)
        return calibrate(self, method, fit, solve_tiles, options, *more)

    Data.calibrate = slowly
"""
EXPERTS = """
    from svmosaic.estimators import _em
    _em.EXPERT_MAX_ITER = 1
    afresh = _em.EM.afresh

    def slowly(self, mixture, weight):
        print("start", flush=True)
        self.solver, _em.EXPERT_TOL, _em.EXPERT_MAX_ITER = "dual", 1e-14, 10**9
        return afresh(self, mixture, weight)

    _em.EM.afresh = slowly
"""


@needs.posix
@pytest.mark.parametrize(
    ("model", "slow"),
    [
        ("LinearSVC(1e-6, solver='dual', tol=0.1)", FOLDS),
        pytest.param("MixtureSVC(2, C=1e6, max_iter=1)", EXPERTS, marks=SLOW),
    ],
    ids=["folds", "experts"],
)
def test_interrupt_of_calibration(model, slow):
    interrupt(CALIBRATION.format(model=model, slow=slow))


GRID = """
    import numpy as np
    from sklearn.model_selection import GridSearchCV
    from svmosaic import *
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((2000, 5)) * [1, 10, 100, 1e3, 1e4], rng.randint(2, size=2000)
    search = GridSearchCV(LinearSVC(solver="dual", tol=1e-12, max_iter=10**9), {"C": [1e8, 1e9]}, cv=3)
    print("start", flush=True)
    try:
        search.fit(X, y)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        assert not hasattr(search, "best_estimator_")
"""
TRAIN = """
    import os, sys
    import numpy as np
    from svmosaic.cli import main
    rng = np.random.RandomState(0)
    os.chdir({folder!r})
    # A short run first, so that the interrupt meets the search and no import: Python ends by the signal, whoever caught
    # it, if it came while a module made a class from text, as dataclasses do.
    np.savez("rows.npz", X=rng.standard_normal((60, 2)), y=np.arange(60) % 3)
    assert main(["train", "rows.npz", "-o", "model.svmosaic", "--budget", "1", "--quiet", "--jobs", "1"]) == 0
    np.savez("rows.npz", X=rng.standard_normal((20_000, 20)), y=rng.randint(3, size=20_000))
    open("model.svmosaic", "w").write("the last one")
    print("start", flush=True)
    code = main(["train", "rows.npz", "-o", "model.svmosaic", "--budget", "10m", "--quiet", "--jobs", "1"])
    print("interrupted" if code == 130 else code, flush=True)
    assert sorted(os.listdir()) == ["model.svmosaic", "rows.npz"], os.listdir()
    assert open("model.svmosaic").read() == "the last one"
"""


@needs.posix
@pytest.mark.slow
def test_interrupt_of_a_grid_search():
    interrupt(GRID)


@needs.posix
def test_interrupt_of_the_command_train(tmp_path):
    """The file that was there stays, and no other appears."""
    interrupt(TRAIN.format(folder=str(tmp_path)), wait=1.5)


def interrupted_at(call, fit):
    """Run `fit` with an interrupt at the given call of a function of the library; how many calls there were."""
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        if event == "call" and "/svmosaic/" in frame.f_code.co_filename.replace("\\", "/"):
            calls += 1
            if calls == call:
                raise KeyboardInterrupt

    sys.setprofile(count)
    try:
        fit()
    except KeyboardInterrupt:
        assert calls == call, "an interrupt that is none of ours"
    else:
        assert call is None, "the interrupt was swallowed"
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@properties.each
def test_an_interrupt_anywhere_leaves_the_last_fit(estimator):
    """Every attribute is the very object that it was, wherever in the next fit the interrupt comes."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)), np.array(["a", "b", "c"])[np.arange(60) % 3]
    others, numbers = rng.standard_normal((50, 2)), np.arange(50) % 2
    known = properties.inspect.signature(estimator).parameters
    wanted = {"calibration": "sigmoid", "covariance_floor": 0.01}
    settings = {name: value for name, value in wanted.items() if name in known}
    model = properties.small(estimator, **settings).fit(X, y)
    scores, before = properties.quietly(model.decision_function, X), dict(vars(model))
    fresh = properties.small(estimator, **settings)
    total = interrupted_at(None, lambda: fresh.fit(others, numbers))
    # From the first call on, and among the last, where the new model is being put together.
    for call in sorted({1, 3, *(round(share * total) for share in (0.1, 0.5, 0.9, 0.97, 1.0))} - {0}):
        interrupted_at(call, lambda: model.fit(others, numbers))
        assert vars(model).keys() == before.keys()
        assert all(vars(model)[name] is value for name, value in before.items())
    assert_array_equal(properties.quietly(model.decision_function, X), scores)
    fresh = properties.small(estimator, **settings)
    interrupted_at(round(0.97 * total), lambda: fresh.fit(others, numbers))
    assert not [name for name in vars(fresh) if name.endswith("_")], "neither fitted nor unfitted"
