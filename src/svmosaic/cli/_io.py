"""What the commands share: options, output that is whole or not there, JSON, a bar."""

import argparse
import json
import os
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np

from svmosaic.atomic import check_output
from svmosaic.table.formats import FORMATS, STDIN


def add_table_options(parser):
    """How a table is read."""
    parser.add_argument("--format", choices=FORMATS, help="file format, if the file name does not show it")
    parser.add_argument(
        "--no-header", action="store_true", help="the first line of a CSV file is data; columns are named x0, x1, ..."
    )
    parser.add_argument(
        "--na", action="append", metavar="TEXT",
        help="text that counts as missing, in features and labels (repeatable; '': only empty text); "
        "default: ?, -, NA, N/A, null and the like in features, none in labels",
    )  # fmt: skip
    parser.add_argument("--decimal", metavar="MARK", help="decimal separator in CSV files (default: .)")
    parser.add_argument("--thousands", metavar="MARK", help="thousands separator in CSV files (default: none)")


def add_output_options(parser):
    """How a command speaks."""
    parser.add_argument("--json", action="store_true", help="print one JSON object to stdout instead of text")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")


def read_options(options, dialect=None) -> dict:
    """Arguments for `read_table` and `read_chunks`; what is not given is as in `dialect`, that of a model."""
    from svmosaic.table.formats import Dialect

    given = {"decimal": options.decimal, "thousands": options.thousands}
    if options.na is not None:
        given["na"] = tuple(text for text in options.na if text)
    dialect = replace(dialect or Dialect(), **{name: value for name, value in given.items() if value is not None})
    return {"format": options.format, "header": not options.no_header, "dialect": dialect}


# Training in memory takes the table, its numbers, the part that is trained on, and prepared rows of both.
COPIES = 6


def memory_limit(options) -> int:
    """Bytes that a command may take: --memory, or half of what is free."""
    asked = getattr(options, "memory", None)
    if asked:
        return asked
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 4 << 30
    return free // 2


def is_large(options) -> bool:
    """Whether the table of a command is to be read in chunks."""
    from svmosaic.table.formats import format_of, size_in_memory

    if is_stdin(options.data) or not Path(options.data).exists():
        return False
    size = size_in_memory(options.data, format_of(options.data, options.format))
    return size is not None and size * COPIES > memory_limit(options)


def size_text(number) -> str:
    """Bytes for people."""
    for unit in ("bytes", "kB", "MB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} GB"


def duration(text) -> float:
    """Seconds of 90, 90s, 1.5m or 2h."""
    seconds = _in_units(text, {"s": 1, "m": 60, "h": 3600})
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a time: write 90s, 1.5m or 2h")
    return seconds


def memory_size(text) -> int:
    """Bytes of 500MB, 2GB, 1.5G or plain bytes."""
    number = text.strip().lower().removesuffix("b").removesuffix("i")
    size = _in_units(number, {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12})
    if not 1 <= size < 2**60:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size: write 500MB or 2GB")
    return int(size)


def _in_units(text, units) -> float:
    """A number with the letter of a unit behind it, or none; -1 if it is not one."""
    number, unit = (text[:-1], units[text[-1]]) if text[-1:] in units else (text, 1)
    try:
        return float(number) * unit
    except ValueError:
        return -1.0


def check_file(path, inputs=()):
    """Refuse at once an output that could not be written at the end, would replace an input, or is no file."""
    if is_stdin(path):
        raise ValueError("this is written to a file only, not to the standard output: name one instead of -")
    check_output(path, inputs)


def say(options, values, lines):
    """The outcome: one JSON object, or lines of text."""
    if options.json:
        print(json.dumps(plain(values), ensure_ascii=False, allow_nan=False))
    elif not options.quiet:
        for line in lines:
            print(line)


def plain(value):
    """Numpy's types as JSON has them; what is no number as null."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


class Bar:
    """Steps of work with the time that is left, on stderr, if that is a terminal."""

    def __init__(self, quiet=False):
        self.shown = not quiet and sys.stderr.isatty()
        self._bar = None

    def __enter__(self):
        if self.shown:
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                Progress,
                TaskProgressColumn,
                TextColumn,
                TimeElapsedColumn,
                TimeRemainingColumn,
            )

            self._bar = Progress(
                TextColumn("{task.description}"), BarColumn(bar_width=20), TaskProgressColumn(),
                TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(),
                console=Console(stderr=True), transient=True,
            )  # fmt: skip
            self._bar.start()
        return self

    def __exit__(self, *reason):
        if self._bar is not None:
            self._bar.stop()

    @contextmanager
    def step(self, text, seconds=None):
        """A piece of work; if it is to take a known time, the bar follows the clock.

        Yields `update(done, total, more="")`, where `total` is None if it is unknown and `more` is a text next to the
        one of the step; None if no bar is shown.
        """
        if self._bar is None:
            yield None
            return
        bar, task = self._bar, self._bar.add_task(text, total=seconds)
        over = threading.Event()
        if seconds is not None:
            started = perf_counter()

            def follow():
                while not over.wait(0.2):
                    bar.update(task, completed=min(perf_counter() - started, seconds))

            threading.Thread(target=follow, daemon=True).start()

        def update(done, total, more=""):
            known = {} if total is None else {"completed": done, "total": total}
            bar.update(task, description=f"{text}{more}", **known)

        try:
            yield update
        finally:
            over.set()
            bar.remove_task(task)


class Listener:
    """Shows how far a fit is, by scikit-learn's callbacks: EM iterations, epochs, or outputs that are solved.

    `update` is that of `Bar.step`.
    """

    def __init__(self, update):
        self.update, self.done, self.fit = update, 0, None

    def setup(self, estimator, context):
        # Above it there may be tasks of a pipeline.
        self.done, self.fit = 0, context

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, metadata=None):
        parent, most = context.parent, self.fit.max_subtasks
        if context is self.fit:
            return
        if parent is self.fit:
            self.done += 1
            best = (metadata or {}).get("best_score")
            told = "" if best is None else f", best score {best:.4f}"
            self.update(self.done, most, _task_text(context, self.done, most) + told)
        else:  # an iteration within one of the outputs, of which there may be one only
            text = _task_text(parent, parent.task_id + 1, most)
            self.update(self.done, most, f"{text}, {context.task_name} {context.task_id + 1}")

    def teardown(self, estimator, context):
        pass


def _task_text(context, number, most):
    if most is None:
        return f": {context.task_name} {number}"
    # How many outputs there are is known; iterations and epochs may end sooner.
    up_to = "of" if context.task_name == "output" else "of at most"
    return f": {context.task_name} {number} {up_to} {most}"


@contextmanager
def listening(estimator, update):
    """Attach a `Listener` to the estimator while the block runs, if there is a bar and the estimator has callbacks."""
    if update is None or not hasattr(estimator, "set_callbacks"):
        yield
        return
    estimator.set_callbacks(Listener(update))
    try:
        yield
    finally:
        estimator.set_callbacks()


def is_stdin(path) -> bool:
    return str(path) == STDIN
