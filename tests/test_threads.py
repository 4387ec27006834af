"""Threads and processes: one model in many threads, fits under joblib, fits after a fork, the same bits throughout."""

import multiprocessing
import threading
import time
import warnings
from pathlib import Path

import needs
import numpy as np
import pytest
from joblib import Parallel, delayed
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_classification

import svmosaic
from svmosaic import ClusteredSVC, KMeansSVC, LearnedGateSVC, LinearSVC, LocallyLinearSVC, MixtureSVC

X, Y = make_classification(600, 8, n_informative=5, n_classes=3, random_state=0)
MODELS = [
    LinearSVC(random_state=0),
    KMeansSVC(4, random_state=0),
    ClusteredSVC(4, random_state=0),
    LocallyLinearSVC(9, n_neighbors=3, random_state=0),
    MixtureSVC(3, max_iter=3, random_state=0),
]
each = pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def fitted(model, **parameters):
    return clone(model).set_params(**parameters).fit(X, Y)


@each
def test_sixteen_threads_on_one_model(model):
    """Batches and rows at once from one estimator and one predictor: all as from a single thread."""
    model = fitted(model)
    predictor = model.predictor()
    scores, labels = model.decision_function(X), model.predict(X)
    single = np.array([predictor.predict(row) for row in X[:50]])
    # Fresh copies, so that what is packed on first use is packed by all threads at once.
    model, predictor = fitted(model), fitted(model).predictor()
    wrong, barrier = [], threading.Barrier(16)

    def work(seed):
        barrier.wait()
        part = np.random.default_rng(seed).permutation(len(X))[:200]
        try:
            for _ in range(5):
                assert_array_equal(model.decision_function(X[part]), scores[part])
                assert_array_equal(model.predict(X[part].astype(np.float64)), labels[part])
                assert_array_equal([predictor.predict(row) for row in X[:50]], single)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads)
    assert not wrong, wrong[0]


@pytest.mark.parametrize("part", ["codes", "scores", "predictor"])
def test_the_core_lets_other_threads_run(part):
    """While a batch is coded or scored, in a single call of the core, Python goes on elsewhere."""
    model = fitted(MODELS[3])
    many = np.random.default_rng(0).standard_normal((300_000, X.shape[1]))
    gate, predictor = model.mosaic_.gate, model.predictor()
    codes = gate.code(many)
    call = {
        "codes": lambda: gate.code(many),
        "scores": lambda: model.mosaic_.score_codes(many, *codes),
        "predictor": lambda: predictor.decision_function(many),
    }[part]
    began = threading.Event()
    times = []

    def work():
        began.set()
        times.append(time.perf_counter())
        call()
        times.append(time.perf_counter())

    for _ in range(3):  # a busy machine may give the other thread no time at all
        times.clear()
        began.clear()
        thread = threading.Thread(target=work)
        thread.start()
        began.wait()
        seen = []
        while thread.is_alive():
            seen.append(time.perf_counter())
            time.sleep(1e-4)
        first, last = times
        within = [t for t in seen if first + 0.2 * (last - first) < t < last - 0.2 * (last - first)]
        if len(within) > 5:
            return
    raise AssertionError(f"{len(within)} looks at the clock during {last - first:.3f} s of the core's work")


@each
def test_same_bits_for_one_and_two_threads_again_and_from_a_file(model, tmp_path):
    first = fitted(model, n_jobs=1)
    scores = first.decision_function(X)
    assert_array_equal(fitted(model, n_jobs=1).decision_function(X), scores)
    two = fitted(model, n_jobs=2)
    assert_array_equal(two.decision_function(X), scores)
    two.save(tmp_path / "model.svmosaic")
    assert_array_equal(svmosaic.load(tmp_path / "model.svmosaic").decision_function(X), scores)


LARGE = [
    LinearSVC(solver="newton", random_state=0),
    LinearSVC(solver="newton", loss="squared_hinge", random_state=0),
    KMeansSVC(24, tol=1e-2, random_state=0),
    ClusteredSVC(24, solver="newton", tol=1e-2, random_state=0),
    LocallyLinearSVC(24, n_neighbors=4, tol=0.1, random_state=0),
    LearnedGateSVC(24, max_iter=1, random_state=0),
]


@pytest.mark.parametrize("model", LARGE, ids=repr)
def test_same_bits_for_any_number_of_threads_of_many_rows(model):
    """Rows enough for several pieces of every pass, a sample for the start, and k-means in the core."""
    X, y = make_classification(40_000, 10, n_informative=5, n_classes=3, n_clusters_per_class=1, random_state=0)
    X = X.astype(np.float32)
    first = clone(model).set_params(n_jobs=1).fit(X, y)
    for n_jobs in (2, 4):
        other = clone(model).set_params(n_jobs=n_jobs).fit(X, y)
        assert_array_equal(other.mosaic_.coef, first.mosaic_.coef)
        assert_array_equal(other.mosaic_.intercept, first.mosaic_.intercept)
        assert_array_equal(other.predict(X[:500]), first.predict(X[:500]))


def _fit_and_score(model):
    return fitted(model).decision_function(X[:20])


def _fit_in_child(queue, model):
    queue.put(_fit_and_score(model))


@needs.posix
@each
def test_fit_after_fork(model):
    """No lock or pool of the parent is missed in the child."""
    model = clone(model).set_params(n_jobs=2)
    wanted = _fit_and_score(model)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 on: forking with threads around
        child = context.Process(target=_fit_in_child, args=(queue, model))
        child.start()
    try:
        # k-means adds up by as many OpenMP threads as it is given: one in the child, so the last digits may differ.
        assert_allclose(queue.get(timeout=30), wanted, rtol=1e-6, atol=1e-8)
        child.join(timeout=10)
        assert child.exitcode == 0
    finally:
        child.kill()


@needs.posix
def test_fork_while_another_thread_fits():
    stop = threading.Event()

    def work():
        while not stop.is_set():
            fitted(MODELS[1], n_jobs=2)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        time.sleep(0.1)
        test_fit_after_fork(MODELS[0])
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_fits_under_joblib(backend):
    wanted = [_fit_and_score(model) for model in MODELS]
    found = Parallel(n_jobs=2, backend=backend)(delayed(_fit_and_score)(model) for model in MODELS)
    for one, two in zip(wanted, found, strict=True):
        assert_allclose(one, two, rtol=1e-6, atol=1e-8)  # see test_fit_after_fork


PF_EXITING = 0x4  # of the kernel's flags of a task, include/linux/sched.h


def _running_threads():
    """The number of threads of this process, without those that were joined and are still listed for a while."""
    running = 0
    for task in Path("/proc/self/task").iterdir():
        try:
            fields = (task / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
        running += not int(fields[6]) & PF_EXITING
    return running


def _threads_in_fit(n_jobs):
    """The largest number of threads seen while a model that may use `n_jobs` is fitted inside of a joblib worker."""
    rng = np.random.default_rng(0)
    big, labels = rng.standard_normal((20_000, 20)), rng.integers(0, 8, 20_000)
    seen, done = [0], threading.Event()

    def count():
        while not done.is_set():
            seen[0] = max(seen[0], _running_threads())
            time.sleep(0.001)

    before = _running_threads()
    watcher = threading.Thread(target=count)
    watcher.start()
    try:
        LinearSVC(solver="newton", max_iter=3, n_jobs=n_jobs).fit(big, labels)
    finally:
        done.set()
        watcher.join()
    return seen[0] - before - 1


@needs.linux
def test_no_more_threads_than_asked_for():
    """n_jobs counts the threads that work; None is the caller's alone, within joblib's threads too."""
    assert _threads_in_fit(None) == 0
    assert _threads_in_fit(2) <= 2  # the caller waits for them
    within = Parallel(n_jobs=2, backend="threading")(delayed(_threads_in_fit)(None) for _ in range(1))
    assert within == [0]
