"""Processes that measure cells side by side.

Each is a fresh interpreter that reads work from its standard input and writes records to its standard output, both
pickled. The standard library's pools would import the caller's main module again in every process, and so run a
script without a guard a second time. A worker whose parent is gone reads the end of its input, and ends.
"""

import os
import pickle
import subprocess
import sys
from queue import SimpleQueue
from threading import Thread

# BLAS reads these when NumPy is first imported: no threads that then compete for our cores.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class WorkerDiedError(RuntimeError):
    """A worker process died during a run.

    See Also
    --------
    svmosaic.experiments.run : Raises it.
    """


class Workers:
    """So many processes; work is put in with `submit`, and (work, record or exception) taken out with `take`."""

    def __init__(self, n_workers):
        self._todo: SimpleQueue = SimpleQueue()
        self._done: SimpleQueue = SimpleQueue()
        self._closed = False
        self._processes = [_start() for _ in range(n_workers)]
        for process in self._processes:
            # Daemons: they may hang in a read when the program ends.
            Thread(target=self._serve, args=(process,), daemon=True).start()

    def submit(self, work, *setting):
        self._todo.put((work, setting))

    def take(self):
        """The next result, whichever work it is of."""
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
                process = _start()
                self._processes.append(process)
            self._done.put((work, result))


def _start():
    environment = {**os.environ, **{name: "1" for name in THREADS}}
    # In a session of its own: Ctrl-C goes to the parent alone, which then ends its workers.
    command = [sys.executable, "-c", "from svmosaic.experiments.workers import main; main()"]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
    )


def main():
    """Serve until the input ends."""
    from svmosaic.experiments.runner import attempt

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
