"""Runs what is not in the store yet, cheap cells first, and stores each result as soon as it is computed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from svmosaic import __version__
from svmosaic.experiments.describe import Cell, Tuning
from svmosaic.experiments.measure import measure
from svmosaic.experiments.methods import is_available
from svmosaic.experiments.pictures import PICTURES
from svmosaic.experiments.workers import Workers


@dataclass
class Outcome:
    """What a run did."""

    done: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)


def plan(experiments, store, repeats=None) -> tuple[list, list[tuple[str, str]]]:
    """Work that is not in the store yet, in the order in which to do it, and what cannot be done."""
    wanted: dict[tuple[str, int], Cell | Tuning] = {}
    skipped = {}
    for experiment in experiments:
        for cell in experiment.cells(repeats):
            if cell.method.model not in PICTURES and not is_available(cell.method):
                skipped[cell.method.name] = f"this version of the package has no {cell.method.model}"
                continue
            if cell.key in store:
                continue
            tuning = cell.tuning
            if tuning is not None and tuning.key not in store:
                wanted.setdefault(tuning.key, tuning)
            wanted.setdefault(cell.key, cell)
    # Cheap first, and first repeats before later ones: an early stop leaves the most informative part.
    return sorted(wanted.values(), key=_urgency), sorted(skipped.items())


def _urgency(work):
    # The papers' own methods before those they are compared with.
    delay = work.task.cost * work.method.cost * (1 + work.repeat) * (0.25 if work.method.own else 1.0)
    if isinstance(work, Tuning):
        return delay, 0
    # Never before the choice of its settings, which may be another method's.
    tuning = work.tuning
    return max(delay, 0.0 if tuning is None else _urgency(tuning)[0]), 1


def run(experiments, store, *, repeats=None, jobs=1, report: Callable | None = None) -> Outcome:
    """Run all cells that are not in the store yet.

    Parameters
    ----------
    experiments : iterable of Experiment
    store : Store
        Opened with `with`.
    repeats : int, optional
        Maximum number of repeats per cell.
    jobs : int
        Processes, of one thread each.
    report : callable, optional
        Called with (work, record or exception, cost done, cost left) after each piece of work.

    Returns
    -------
    Outcome

    See Also
    --------
    Experiment : What is run.
    Store : Where results are kept.
    """
    todo, skipped = plan(experiments, store, repeats)
    outcome = Outcome(skipped=skipped)
    left = sum(work.cost for work in todo)
    past = 0.0
    for work, record in _results(todo, store, jobs):
        past, left = past + work.cost, left - work.cost
        if isinstance(record, Exception):
            outcome.failed.append((f"{work.task.name}, {work.method.name}", f"{type(record).__name__}: {record}"))
        else:
            store.add({**record, "version": __version__, "date": datetime.now(UTC).strftime("%Y-%m-%d")})
            outcome.done += 1
        if report is not None:
            report(work, record, past, left)
    return outcome


def _results(todo, store, jobs):
    """Yield (work, record or exception) as runs finish; a cell begins when its tuning is in the store."""
    if jobs == 1:
        for work in todo:
            yield work, attempt(work, *_setting(work, store))
        return
    waiting, flying = list(todo), set()
    with Workers(jobs) as workers:
        while waiting or flying:
            while len(flying) < jobs:
                work = next((w for w in waiting if _ready(w, store, waiting, flying)), None)
                if work is None:
                    break
                waiting.remove(work)
                flying.add(work.key)
                workers.submit(work, *_setting(work, store))
            work, result = workers.take()
            flying.remove(work.key)
            yield work, result


def _ready(work, store, waiting, flying) -> bool:
    """Whether nothing that the work needs is still to come."""
    tuning = work.tuning if isinstance(work, Cell) else None
    if tuning is None or tuning.key in store:
        return True
    return tuning.key not in flying and all(w.key != tuning.key for w in waiting)


def _setting(work, store):
    """(setting,) for a cell whose settings were chosen, () for work without, (None,) where choosing failed."""
    tuning = work.tuning if isinstance(work, Cell) else None
    if tuning is None:
        return ()
    record = store.get(tuning.key)
    return (None if record is None else record["setting"],)


def attempt(work, *setting):
    """The record, or the exception: one bad cell must not end the run."""
    try:
        if setting == (None,):
            raise RuntimeError("the settings could not be chosen, see above")
        return measure(work, *setting)
    except Exception as error:
        return error
