"""What a fit tells of itself on the way: lines of text, scikit-learn's callbacks, and the time it has left."""

import copy
import threading
from contextlib import contextmanager
from time import perf_counter

import numpy as np

from svmosaic.heads import contrast
from svmosaic.solvers import Control, Solution
from svmosaic.solvers.certificates import Certificate

# Lines of many small problems come no closer than this.
SECONDS_A_LINE = 0.2


class Fitting:
    """One call of `fit`: its deadline, its callbacks, and the gate once there is one. Gone when the call returns."""

    def __init__(self, max_time, X=None, y=None, sample_weight=None):
        self.deadline = None if max_time is None else perf_counter() + max_time
        self.passed_on = {"X": X, "y": y, "metadata": {} if sample_weight is None else {"sample_weight": sample_weight}}
        self.context = self.gate = self.feature_map = None
        self.last = None  # the control of the last call of the solvers

    @contextmanager
    def called_back(self, estimator, n_tasks):
        """The root task of the callbacks, for estimators that support them."""
        if not hasattr(estimator, "_init_callback_context"):
            yield
            return
        self.context = context = estimator._init_callback_context(max_subtasks=n_tasks)
        context.call_on_fit_task_begin(estimator=estimator, **self.passed_on)
        yield
        context.call_on_fit_task_end(estimator=estimator, reconstruction_attributes=dict, **self.passed_on)

    def step(self, estimator, name, attributes=dict) -> bool:
        """A task, just done, of a fit that goes by steps of its own; whether a callback wants no more of them."""
        if self.context is None:
            return False
        task = self.context.subcontext(task_name=name)
        task.call_on_fit_task_begin(estimator=estimator, **self.passed_on)
        return task.call_on_fit_task_end(
            estimator=estimator, reconstruction_attributes=attributes, **self.passed_on
        )  # fmt: skip

    @property
    def left(self) -> float | None:
        """Seconds to the deadline, if there is one."""
        return None if self.deadline is None else max(0.0, self.deadline - perf_counter())

    @property
    def late(self) -> bool:
        return self.left == 0.0

    def control(self, estimator, problems, coupling, bias, target, n_outputs) -> Control:
        """For one call of the solvers."""
        listens = self.context is not None and bool(getattr(estimator, "_skl_callbacks", []))
        if not (listens or estimator.verbose):
            return Control(self.left)
        progress = Progress(self, estimator, problems, coupling, bias, target, n_outputs, listens)
        return Control(self.left, progress, every_epoch=listens, finished=progress.finished)


class Progress:
    """Hears of every iteration of every problem, on whatever thread; prints, calls back, and may stop them."""

    def __init__(self, fitting, estimator, problems, coupling, bias, target, n_outputs, listens):
        self.fitting, self.estimator = fitting, estimator
        self.coupling, self.bias, self.classes = coupling, bias, target.classes
        self.context = fitting.context if listens else None
        self.weights = [np.zeros(problems[0].shape) for _ in range(n_outputs)]
        self.cells = coupling.n_tiles if problems[0].separable else 1
        self.parts = [self.cells] * len(problems)
        self.tasks = [None] * len(problems)
        self.stop = False
        self._printed = -np.inf
        self._lock = threading.RLock()

    def __call__(self, place, n_iter, certify):
        with self._lock:
            if self.estimator.verbose:
                self._print(place, n_iter, certify)
            if self.context is None:
                return False
            task = self._task(place[0]).subcontext(task_name="iteration")
            task.call_on_fit_task_begin(estimator=self.estimator, **self.fitting.passed_on)
            stop = task.call_on_fit_task_end(
                estimator=self.estimator, reconstruction_attributes=lambda: self._fitted(place, certify().weights),
                **self.fitting.passed_on,
            )  # fmt: skip
            return stop or self.stop

    def finished(self, place, solution):
        """A problem, or one of its independent tiles, is solved."""
        with self._lock:
            self._take(place, solution.weights)
            self.parts[place[0]] -= 1
            if self.context is None or self.parts[place[0]] > 0:
                return
            self.stop |= self._task(place[0]).call_on_fit_task_end(
                estimator=self.estimator, reconstruction_attributes=lambda: self._fitted(place, solution.weights),
                **self.fitting.passed_on,
            )  # fmt: skip

    def _task(self, k):
        if self.tasks[k] is None:
            self.tasks[k] = self.context.subcontext(task_name="output", max_subtasks=None)
            self.tasks[k].call_on_fit_task_begin(estimator=self.estimator, **self.fitting.passed_on)
        return self.tasks[k]

    def _print(self, place, n_iter, certify):
        k, cell = place
        now = perf_counter()
        if len(self.parts) * self.cells > 1 and now - self._printed < SECONDS_A_LINE:
            return
        self._printed = now
        certificate = certify()
        self._take(place, certificate.weights)
        live = sum(bool(tile.any()) for tile in self.coupling.tiles(self.weights[k]))
        where = f"output {k + 1}/{len(self.parts)}" + ("" if cell is None else f", tile {cell + 1}/{self.cells}")
        print(
            f"[{type(self.estimator).__name__}] {where}, iteration {n_iter}: objective {certificate.primal:.6g}, "
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
        now = [Solution(Certificate(w, np.nan, np.nan), np.empty(0), 0, np.nan, "") for w in self.weights]
        model = copy.copy(self.estimator)
        model._keep(self.classes, self.fitting.gate, self.coupling, now, self.bias, self.fitting.feature_map)
        before = vars(self.estimator)
        return {name: value for name, value in vars(model).items() if before.get(name) is not value} | {
            "calibration_": None
        }
