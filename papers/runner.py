"""Running what is not in the store yet: cheap cells first, each result on disk before the next run begins."""

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

import svmosaic
from papers.describe import Cell, Tuning
from papers.measure import MODELS, measure
from papers.pictures import PICTURES

try:
    import fcntl
except ImportError:  # Windows has other locks; there two runs at a time are the user's care
    fcntl = None  # type: ignore[assignment]


class Store:
    """An append-only file of records by key, one JSON line each.

    A run may be killed at any moment. A record is either complete, ended by a newline, or absent: a last line that
    lacks its newline, or is not JSON, is removed when the store is opened for writing (`with store:`), and ignored when
    it is read. A later record replaces an earlier one with the same key.
    """

    def __init__(self, path):
        self.path = Path(path)
        self.records: dict[tuple[str, int], dict] = {}
        self._file = None
        self._read()

    def _read(self) -> int:
        """Read all whole records; returns how many bytes they are."""
        whole = 0
        lines = self.path.read_bytes().splitlines(keepends=True) if self.path.exists() else []
        for number, line in enumerate(lines, 1):
            try:
                if not line.endswith(b"\n"):
                    raise ValueError("no newline at its end")
                record = json.loads(line)
                key = record["key"], record["repeat"]
            except (ValueError, KeyError, TypeError) as error:
                if number == len(lines):
                    break
                raise ValueError(f"{self.path}, line {number} is not a record ({error}); remove it") from error
            self.records[key] = record
            whole += len(line)
        return whole

    def __contains__(self, key) -> bool:
        return key in self.records

    def get(self, key):
        return self.records.get(key)

    def __enter__(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(self.path, "ab", buffering=0)
        if fcntl is not None:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                self._file.close()
                raise RuntimeError(
                    f"another run is writing to {self.path}; wait for it or give another file"
                ) from error
        # Again, now that nobody else writes: another run may have added to it since.
        self._file.truncate(self._read())
        return self

    def __exit__(self, *exception):
        self._file.close()
        self._file = None

    def add(self, record):
        """Write a record to disk; once this returns, the record survives a crash of the process or the machine."""
        if self._file is None:
            raise RuntimeError("the store is open for reading only: use `with store:`")
        self._file.write((json.dumps(record, sort_keys=True, allow_nan=False) + "\n").encode())
        os.fsync(self._file.fileno())
        self.records[record["key"], record["repeat"]] = record


@dataclass
class Outcome:
    """Numbers of a run: results stored, and what failed or was skipped, with the reasons."""

    done: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)


def cost_of(work) -> float:
    """Roughly the seconds of a cell or a tuning."""
    return work.task.cost * work.method.cost * (2 if isinstance(work, Tuning) else 1)


def plan(experiments, store, repeats=None) -> tuple[list, list[tuple[str, str]]]:
    """Work that is not in the store yet, in the order in which to do it, and what cannot be done."""
    wanted: dict[tuple[str, int], Cell | Tuning] = {}
    skipped = {}
    for experiment in experiments:
        for cell in experiment.cells(repeats):
            model = cell.method.model
            if not (model in PICTURES or model in MODELS or model in svmosaic.__all__):
                skipped[cell.method.name] = f"this version of the package has no {model}"
            elif cell.key not in store:
                tuning = cell.tuning
                if tuning is not None and tuning.key not in store:
                    wanted.setdefault(tuning.key, tuning)
                wanted.setdefault(cell.key, cell)

    def urgency(work):
        # Cheap first, and first repeats before later ones: an early stop leaves the most informative part. The papers'
        # own methods before those they are compared with.
        delay = work.task.cost * work.method.cost * (1 + work.repeat) * (0.25 if work.method.own else 1.0)
        if isinstance(work, Tuning):
            return delay, 0
        # Never before the choice of its settings, which may be another method's.
        return max(delay, 0.0 if work.tuning is None else urgency(work.tuning)[0]), 1

    return sorted(wanted.values(), key=urgency), sorted(skipped.items())


def run(experiments, store, *, repeats=None, jobs=1, report: Callable | None = None) -> Outcome:
    """Run all cells that are not in the store yet.

    Parameters
    ----------
    experiments : iterable of Experiment
    store : Store, opened with `with`
    repeats : maximum number of repeats per cell
    jobs : processes, of one thread each
    report : called with (work, record or exception, cost done) after each piece of work
    """
    todo, skipped = plan(experiments, store, repeats)
    outcome = Outcome(skipped=skipped)
    past = 0.0
    for work, record in _results(todo, store, jobs):
        past += cost_of(work)
        if isinstance(record, Exception):
            outcome.failed.append((f"{work.task.name}, {work.method.name}", f"{type(record).__name__}: {record}"))
        else:
            store.add({**record, "version": svmosaic.__version__, "date": datetime.now(UTC).strftime("%Y-%m-%d")})
            outcome.done += 1
        if report is not None:
            report(work, record, past)
    return outcome


def _results(todo, store, jobs):
    """Yield (work, record or exception) as runs finish; a cell begins when its tuning is in the store."""

    def tuning_of(work):
        return work.tuning if isinstance(work, Cell) else None

    def setting(work):
        # () for work without settings to choose, (None,) where choosing failed.
        tuning = tuning_of(work)
        if tuning is None:
            return ()
        record = store.get(tuning.key)
        return (None if record is None else record["setting"],)

    if jobs == 1:
        for work in todo:
            yield work, attempt(work, *setting(work))
        return
    waiting, coming = list(todo), {work.key for work in todo}  # coming: waiting or running
    running = 0
    with Workers(jobs) as workers:
        while waiting or running:
            while running < jobs:
                free = (w for w in waiting if tuning_of(w) is None or tuning_of(w).key not in coming)
                if (work := next(free, None)) is None:
                    break
                waiting.remove(work)
                running += 1
                workers.submit(work, *setting(work))
            work, result = workers.take()
            running -= 1
            yield work, result  # stored before its key leaves, or what waits for it would start without it
            coming.discard(work.key)


def attempt(work, *setting):
    """The record, or the exception: one bad cell must not end the run."""
    try:
        if setting == (None,):
            raise RuntimeError("the settings could not be chosen, see above")
        return measure(work, *setting)
    except Exception as error:
        return error


class WorkerDiedError(RuntimeError):
    """A worker process died during a run."""


class Workers:
    """Processes that measure cells side by side; work goes in by `submit`, (work, record or exception) out by `take`.

    Each is a fresh interpreter that reads work from its standard input and writes records to its standard output, both
    pickled. The standard library's pools would import the caller's main module again in every process, and so run a
    script without a guard a second time. A worker whose parent is gone reads the end of its input, and ends; a worker
    that dies is replaced.
    """

    def __init__(self, n_workers):
        self._todo: SimpleQueue = SimpleQueue()
        self._done: SimpleQueue = SimpleQueue()
        self._closed = False
        self._processes = [self._start() for _ in range(n_workers)]
        for process in self._processes:
            # Daemons: they may hang in a read when the program ends.
            Thread(target=self._serve, args=(process,), daemon=True).start()

    def submit(self, work, *setting):
        self._todo.put((work, setting))

    def take(self):
        return self._done.get()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        """Wait for no one: what is unfinished is lost, and not in the store."""
        self._closed = True  # first, or a worker that is killed here would be replaced
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()

    @staticmethod
    def _start():
        # BLAS reads the numbers of threads when NumPy is first imported: no threads that then compete for our cores.
        threads = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
        path = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
        # In a session of its own: Ctrl-C goes to the parent alone, which then ends its workers.
        return subprocess.Popen(
            [sys.executable, "-c", "from papers.runner import serve; serve()"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, env={**os.environ, **threads, "PYTHONPATH": path}, start_new_session=True,
        )  # fmt: skip

    def _serve(self, process):
        while True:
            work, setting = self._todo.get()
            try:
                pickle.dump((work, setting), process.stdin)
                process.stdin.flush()
                result = pickle.load(process.stdout)
            except (EOFError, OSError, pickle.UnpicklingError):
                code = process.wait()
                if self._closed:
                    return
                result = WorkerDiedError(f"its process ended with code {code}; out of memory?")
                self._processes.remove(process)
                process = self._start()
                self._processes.append(process)
            self._done.put((work, result))


def serve():
    """Serve as a worker until the input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not get among the answers
    while True:
        try:
            work, setting = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        result = attempt(work, *setting)
        try:
            answer = pickle.dumps(result)
        except Exception:  # an exception with something in it that cannot travel
            answer = pickle.dumps(RuntimeError(f"{type(result).__name__}: {result}"))
        answers.write(answer)
        answers.flush()
