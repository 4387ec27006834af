"""One call of `fit`: done as a whole or not at all, its deadline, its callbacks and its lines of text."""

import threading
from contextlib import contextmanager
from functools import wraps
from time import perf_counter

import numpy as np

from svmosaic.model.heads import contrast
from svmosaic.solvers import Control, warn_if_unconverged

# Lines of many small problems come no closer than this.
SECONDS_A_LINE = 0.2


def all_or_nothing(fit):
    """A fit that ends in an error or an interrupt leaves the estimator's attributes as they were before it.

    Otherwise, a fit that is interrupted would leave a mix of attributes of the new and of the last fit:
    classes without a model, or a model with the calibration of another.
    """

    @wraps(fit)
    def whole(self, *args, **kwargs):
        before = dict(vars(self))
        try:
            return fit(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return whole


class Progress:
    """One call of `fit`: its deadline, its callbacks and its lines of text.

    Parameters
    ----------
    estimator : estimator
        Named in lines and warnings, and passed on to its callbacks. Nothing of it is called or changed.
    max_time : float or None
        Seconds from now until the deadline.
    X, y, sample_weight
        What was given to `fit`, for the callbacks.

    Attributes
    ----------
    context : callback context or None
        None: no callbacks, as in solves that are no steps of the model.
    snapshot : callable
        From a coupling and the block weights of each output to the attributes with which an estimator predicts.
    """

    def __init__(self, estimator, max_time=None, X=None, y=None, sample_weight=None):
        self.estimator, self.max_time = estimator, max_time
        self.name, self.verbose = type(estimator).__name__, bool(estimator.verbose)
        self.deadline = None if max_time is None else perf_counter() + max_time
        self.passed_on = {"X": X, "y": y, "metadata": {} if sample_weight is None else {"sample_weight": sample_weight}}
        self.context = self.snapshot = None

    @property
    def left(self) -> float | None:
        """Seconds to the deadline, if there is one."""
        return None if self.deadline is None else max(0.0, self.deadline - perf_counter())

    @property
    def late(self) -> bool:
        return self.left == 0.0

    @contextmanager
    def called_back(self, n_tasks):
        """The root task of the callbacks, for estimators that support them."""
        if not hasattr(self.estimator, "_init_callback_context"):
            yield
            return
        self.context = context = self.estimator._init_callback_context(max_subtasks=n_tasks)
        self.begin(context)
        yield
        self.end(context, dict)

    def begin(self, task):
        """Report that a task of the callbacks begins."""
        task.call_on_fit_task_begin(estimator=self.estimator, **self.passed_on)

    def end(self, task, attributes, metadata=None) -> bool:
        """Report that it has ended, with a function that returns the fitted attributes; whether to stop."""
        passed_on = self.passed_on | {"metadata": self.passed_on["metadata"] | (metadata or {})}
        return task.call_on_fit_task_end(estimator=self.estimator, reconstruction_attributes=attributes, **passed_on)

    def step(self, name, attributes=dict, **metadata) -> bool:
        """A task, just done, of a fit that goes by steps of its own; whether a callback wants no more of them."""
        if self.context is None:
            return False
        task = self.context.subcontext(task_name=name)
        self.begin(task)
        return self.end(task, attributes, metadata)

    def control(self, n_problems, coupling, shape, separable, n_outputs) -> Control:
        """For one call of the solvers.

        Parameters
        ----------
        n_problems : int
        coupling : Coupling
        shape : tuple of int
            Of the block weights of an output.
        separable : bool
            Whether tiles are solved one by one.
        n_outputs : int
        """
        listens = self.context is not None and bool(getattr(self.estimator, "_skl_callbacks", []))
        if not (listens or self.verbose):
            return Control(self.left)
        weights = [np.zeros(shape) for _ in range(n_outputs)]
        heard = _Iterations(self, listens, coupling, weights, [coupling.n_tiles if separable else 1] * n_problems)
        return Control(self.left, heard, every_epoch=listens, finished=heard.finished)

    def report(self, solutions, coupling, max_iter, control):
        """Print the outcome of each problem, and warn of those that stopped early."""
        if self.verbose:
            for c, s in enumerate(solutions):
                # Blocks are not tiles if tiles share some; all classes at once have one block per class and tile.
                tiles = s.weights.swapaxes(0, 1) if s.weights.ndim == 3 else coupling.tiles(s.weights)
                live = sum(bool(tile.any()) for tile in tiles)
                print(
                    f"[{self.name}] output {c + 1}/{len(solutions)}: objective {s.primal:.6g}, gap "
                    f"{s.gap:.3g} (required: {s.target:.3g}), {live} of {len(tiles)} tiles live, {s.n_iter} iterations "
                    f"({s.solver})"
                )
        warn_if_unconverged(solutions, max_iter, self.name, self.max_time if control.out_of_time else None)


class _Iterations:
    """Hears of every iteration of every problem, on whatever thread; prints, calls back, and may stop them."""

    def __init__(self, progress, listens, coupling, weights, parts):
        self.progress = progress
        self.coupling = coupling
        self.context = progress.context if listens else None
        self.weights = weights
        self.cells = parts[0]
        self.parts = parts  # that are not yet solved, of each problem
        self.tasks = [None] * len(parts)
        self.stop = False
        self._printed = -np.inf
        self._lock = threading.RLock()

    def __call__(self, place, n_iter, certify):
        with self._lock:
            now = perf_counter()
            many = len(self.parts) * self.cells > 1
            if self.progress.verbose and not (many and now - self._printed < SECONDS_A_LINE):
                self._printed = now
                self._print(place, n_iter, certify())
            if self.context is None:
                return False
            task = self._task(place[0]).subcontext(task_name="iteration")
            self.progress.begin(task)
            return self.progress.end(task, lambda: self._fitted(place, certify().weights)) or self.stop

    def finished(self, place, solution):
        """A problem, or one of its independent tiles, is solved."""
        with self._lock:
            self._take(place, solution.weights)
            self.parts[place[0]] -= 1
            if self.context is None or self.parts[place[0]] > 0:
                return
            self.stop |= self.progress.end(self._task(place[0]), lambda: self._fitted(place, solution.weights))

    def _task(self, k):
        if self.tasks[k] is None:
            self.tasks[k] = self.context.subcontext(task_name="output", max_subtasks=None)
            self.progress.begin(self.tasks[k])
        return self.tasks[k]

    def _print(self, place, n_iter, certificate):
        k, cell = place
        self._take(place, certificate.weights)
        live = sum(bool(tile.any()) for tile in self.coupling.tiles(self.weights[k]))
        where = f"output {k + 1}/{len(self.parts)}" + ("" if cell is None else f", tile {cell + 1}/{self.cells}")
        print(
            f"[{self.progress.name}] {where}, iteration {n_iter}: objective {certificate.primal:.6g}, "
            f"gap {certificate.gap:.3g}, {live} of {self.coupling.n_tiles} tiles live",
            flush=True,
        )

    def _take(self, place, weights):
        """Remember the newest weights of a problem."""
        k, cell = place
        if cell is not None:
            self.weights[k][cell] = weights[0]
        elif weights.ndim == 3:  # all classes at once
            self.weights = list(contrast(weights, axis=0))
        else:
            self.weights[k] = weights

    def _fitted(self, place, weights) -> dict:
        """The attributes with which an estimator predicts as the weights of this moment do."""
        self._take(place, weights)
        return self.progress.snapshot(self.coupling, self.weights)
