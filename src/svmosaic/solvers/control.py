"""How the caller controls a running solver (stop, time limit) and receives reports of its progress."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from svmosaic import _core


class Control:
    """Passed to every solver of one call of `solve`.

    Parameters
    ----------
    max_time : float or None
        Seconds from now in which all problems together should be done.
    watch : callable, optional
        `watch(place, n_iter, certify)` is called after iteration `n_iter` of problem `place`; `certify()` computes the
        certificate of the current weights. Any result other than False stops the problem.
    every_epoch : bool
        Whether to call `watch` after every epoch, instead of a few times per second.
    finished : callable, optional
        `finished(place, solution)` is called with each solution. A place is the index of the problem and, if its tiles
        are independent and solved one by one, that of the tile (otherwise None). Both may be called from any thread.
    """

    def __init__(self, max_time=None, watch=None, every_epoch=False, finished=None):
        self.interrupted = threading.Event()
        self.deadline = None if max_time is None else perf_counter() + max_time
        self.watch = watch
        self.every_epoch = every_epoch and watch is not None
        self.finished = finished
        self.out_of_time = False

    def for_task(self, place, n_waiting, n_workers) -> "TaskControl":
        """The control of a problem that is about to start, with its share of the remaining time; `n_waiting` follow."""
        share = None
        if self.deadline is not None:
            left = max(0.0, self.deadline - perf_counter())
            share = perf_counter() + left * min(1.0, n_workers / (n_waiting + 1))
        return TaskControl(self, place, share, self.every_epoch, self.watch)

    def run_all(self, run, n_tasks, n_workers) -> list:
        """Results of `run(t)` for every task, run in parallel; workers without a task help others with their rows."""
        results: list = [None] * n_tasks
        if n_workers == 1:
            for t in range(n_tasks):
                results[t] = run(t)
            return results
        pool, left = _core.Pool(), iter(range(n_tasks))
        failures: list[BaseException] = []

        def work():
            try:
                with pool:
                    for t in left:
                        results[t] = run(t)
                pool.serve()
            except BaseException as failure:  # such as a callback's: the other problems are stopped
                failures.append(failure)
                self.interrupted.set()

        with ThreadPoolExecutor(n_workers) as threads:
            try:
                wait([threads.submit(work) for _ in range(n_workers)])
            except BaseException:  # an interrupt
                self.interrupted.set()
                raise
        if failures:
            raise failures[0]
        return results


@dataclass
class TaskControl:
    """The control of one problem, with the time until which it may run and the callbacks of `Control`."""

    control: Control
    place: Any
    deadline: float | None
    every_epoch: bool = False
    watch: Callable | None = None
    stopped: bool = False

    def seconds(self, most) -> float:
        """How long the core may run before it should ask again."""
        return most if self.deadline is None else min(most, max(0.0, self.deadline - perf_counter()))

    def check(self):
        """Raise KeyboardInterrupt if there was an interrupt, on any thread."""
        if self.control.interrupted.is_set():
            raise KeyboardInterrupt

    def over(self, n_iter, certify) -> bool:
        """Tell of an iteration; whether to stop after it."""
        if n_iter == 0:
            return False
        if self.watch is not None and self.watch(self.place, n_iter, certify):
            self.stopped = True
        if self.deadline is not None and perf_counter() >= self.deadline:
            self.stopped = self.control.out_of_time = True
        return self.stopped


# For a solver that is called by itself.
def alone() -> TaskControl:
    return Control().for_task(0, 0, 1)
