"""Fits that overlap in threads leave the libraries of the process as they were."""

import threading

import numpy as np
from threadpoolctl import threadpool_info

from svmosaic import LocallyLinearSVC, NeighborsSVC
from svmosaic._threads import one_thread


def threads_of():
    return sorted((library["user_api"], library["num_threads"]) for library in threadpool_info())


def blas():
    return {number for kind, number in threads_of() if kind == "blas"}


def test_the_last_of_overlapping_fits_restores_the_threads_of_blas():
    with one_thread():  # loads what it will limit
        pass
    before, entered, leave = threads_of(), threading.Event(), threading.Event()

    def hold():
        with one_thread():
            entered.set()
            leave.wait(10)

    first = threading.Thread(target=hold)
    first.start()
    entered.wait(10)
    with one_thread():
        leave.set()
        first.join()
        assert blas() == {1}  # the second still asks for it
    assert threads_of() == before


def test_estimators_in_threads():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 5))
    y = (X[:, 0] > 0).astype(int)
    LocallyLinearSVC(random_state=0).fit(X, y)
    before = threads_of()
    fits = [
        threading.Thread(target=lambda: [LocallyLinearSVC(random_state=0).fit(X, y) for _ in range(5)]),
        threading.Thread(target=lambda: NeighborsSVC(20).fit(X, y).predict(X)),
    ]
    for fit in fits:
        fit.start()
    for fit in fits:
        fit.join()
    assert threads_of() == before
