"""What the world outside says to a solver under way: stop, be quick; and what it is told of the progress."""

import threading
from concurrent.futures import ThreadPoolExecutor, wait
from time import perf_counter

from svmosaic import _core


class Control:
    """Passed to every solver of one call of `solve`.

    Parameters
    ----------
    max_time : float or None
        Seconds from now in which all problems together should be done.
    watch : callable, optional
        `watch(place, n_iter, certify)` is told of iteration `n_iter` of problem `place`; `certify()` computes the
        certificate of the weights as they are. What it returns other than False stops the problem there.
    every_epoch : bool
        Whether `watch` wants to hear of each epoch, or a few times a second.
    finished : callable, optional
        `finished(place, solution)` is told of each answer. A place is the number of the problem and, where its tiles
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
        """For a problem about to start, with `n_waiting` others still to come: its share of the time that is left."""
        share = None
        if self.deadline is not None:
            left = max(0.0, self.deadline - perf_counter())
            share = perf_counter() + left * min(1.0, n_workers / (n_waiting + 1))
        return TaskControl(self, place, share)

    def run_all(self, run, n_tasks, n_workers) -> list:
        """What `run(t)` returns for every task, side by side; workers without a task help others with their rows."""
        if n_workers == 1:
            return [run(t) for t in range(n_tasks)]
        pool, left = _core.Pool(), iter(range(n_tasks))
        results: list = [None] * n_tasks
        failures: list[BaseException] = []

        def work():
            try:
                with pool:
                    for t in left:
                        results[t] = run(t)
                pool.serve()
            except BaseException as failure:  # such as a callback's: the others need not go on
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


class TaskControl:
    """The control of one problem."""

    def __init__(self, control, place, deadline):
        self.control = control
        self.place = place
        self.deadline = deadline
        self.every_epoch = control.every_epoch
        self.watch = control.watch
        self.stopped = False

    def unwatched(self) -> "TaskControl":
        """The same for a part of the problem, whose iterations are nobody's business."""
        part = TaskControl(self.control, self.place, self.deadline)
        part.watch = None
        return part

    def seconds(self, most) -> float:
        """How long the core may run before it should ask again."""
        return most if self.deadline is None else min(most, max(0.0, self.deadline - perf_counter()))

    def check(self):
        """Raise KeyboardInterrupt where one has come in, on whatever thread."""
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
