"""What all benchmarks share: runs in child processes, peak memory, tables, results as JSON.

Import it before NumPy: it gives every library one thread, so that solvers are compared and not their threading.
"""

# ruff: noqa: E402

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

import argparse
import ctypes
import json
import multiprocessing
import resource
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from setting import machine

from svmosaic.atomic import write_text

RESULTS = Path(__file__).parent / "results"


def gradient_boosting(**settings):
    """LightGBM's classifier, on one thread by default; with --quick scikit-learn's stands in if it is missing."""
    try:
        from lightgbm import LGBMClassifier
    except ImportError:
        if "--quick" not in sys.argv:
            raise
        from sklearn.ensemble import HistGradientBoostingClassifier

        print("LightGBM is not installed (extra `bench`): HistGradientBoostingClassifier stands in", flush=True)
        return HistGradientBoostingClassifier(random_state=settings.get("random_state"))
    return LGBMClassifier(**{"n_jobs": 1, "verbose": -1} | settings)


@dataclass(frozen=True)
class Run:
    """What a child process measured, in processor seconds; `value` is None where it ran out of time."""

    value: Any
    seconds: float
    peak_bytes: int | None


def run_child(work, *, warm_up=None, limit=None, repeats=1) -> Run:
    """Call `work()` in a forked child process, and time it there.

    The child inherits the data of the parent without a copy. `warm_up()` is called before the clock starts. The clock
    counts processor time, which with one thread is the time on an idle machine and does not count other load. The run
    is ended after `limit` seconds on the wall. Work that takes less than a second is done `repeats` times, and the
    fastest counts. Peak memory is what the child's resident memory grew by, at most, over the first call.
    """
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(there, work, warm_up, repeats))
    before = _children_seconds()
    child.start()
    there.close()
    answer = None
    try:
        if here.poll(limit):
            answer = here.recv()
    except EOFError:
        raise RuntimeError("the child process died; see its output above") from None
    finally:
        child.kill()
        child.join()
    return answer or Run(None, _children_seconds() - before, None)


def _children_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _child(pipe, work, warm_up, repeats):
    warnings.simplefilter("ignore")
    if warm_up is not None:
        warm_up()
    before = _reset_peak()
    start = process_time()
    value = work()
    seconds = process_time() - start
    peak = None if before is None else max(0, _memory("VmHWM") - before)
    for _ in range(repeats - 1):
        if seconds > 1.0:
            break
        start = process_time()
        work()
        seconds = min(seconds, process_time() - start)
    pipe.send(Run(value, seconds, peak))


def _reset_peak():
    """Set the peak of resident memory back to now, and return now; None where the system has no such thing."""
    try:
        ctypes.CDLL(None).malloc_trim(0)  # what the parent has freed would be used again without being seen
        Path("/proc/self/clear_refs").write_text("5")
        return _memory("VmRSS")
    except (OSError, AttributeError):
        return None


def _memory(field):
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return 1024 * int(line.split()[1])
    raise OSError(f"no {field} in /proc/self/status")


def write_results(name, part, records, summary=None, options=None, on=None):
    """Put the records and the summary of one part into results/<name>.json, in place of what an earlier run put there.

    One record a line; each part says on what machine it was run: this one, unless `on` names another. With `--quick`
    nothing is written, unless `--out` names another file to put them into.
    """
    out = getattr(options, "out", None)
    if getattr(options, "quick", False) and not out:
        return
    path = Path(out or RESULTS / f"{name}.json")
    path.parent.mkdir(exist_ok=True)
    parts = json.loads(path.read_text()) if path.exists() else {}
    parts[part] = {"machine": on or machine(), "summary": summary or {}, "records": records}
    pieces = []
    for key in sorted(parts):
        lines = ",\n".join("    " + json.dumps(record) for record in parts[key]["records"])
        head = ",\n".join(f"   {json.dumps(k)}: {json.dumps(parts[key][k])}" for k in ("machine", "summary"))
        pieces.append(f' {json.dumps(key)}: {{\n{head},\n   "records": [\n{lines}\n   ]\n }}')
    write_text(path, "{\n" + ",\n".join(pieces) + "\n}\n")


def write_document(name, document, options):
    """Write results/<name>.json as a whole, unless the run is a quick one."""
    if not options.quick:
        write_text(RESULTS / f"{name}.json", json.dumps(document, indent=1) + "\n")


def read_results(name) -> dict:
    """The parts that were written, {} where there are none."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def grouped(records, *keys) -> dict:
    """Records by the values of some fields (a tuple if there are several), in the order in which they come."""
    groups: dict = {}
    for r in records:
        key = tuple(r.get(name) for name in keys)
        groups.setdefault(key if len(keys) > 1 else key[0], []).append(r)
    return groups


def arguments(doc, *, sets=None, parts=None, out=False, **more):
    """The options of a script: --quick, those that are asked for, and `more` by the keywords of `add_argument`."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small or made-up data; nothing is written")
    if sets:
        parser.add_argument("--sets", nargs="+", choices=sets, default=list(sets), help="only these data sets")
    if parts:
        parser.add_argument("--parts", nargs="+", choices=parts, default=list(parts), help="only these measurements")
    if out:
        parser.add_argument("--out", help="file to write to instead")
    for name, keywords in more.items():
        parser.add_argument(f"--{name.replace('_', '-')}", **keywords)
    return parser.parse_args()


def fastest(work, n_calls=1, repeats=9, clock=process_time) -> float:
    """Seconds of one call: the fastest of several rounds, so that other load does not count."""
    work()
    found = []
    for _ in range(repeats):
        start = clock()
        for _ in range(n_calls):
            work()
        found.append((clock() - start) / n_calls)
    return min(found)


def mean_ranks(records, by, sign=1) -> dict:
    """Mean over the sets of the rank by the mean of `sign` times a field; 1 is best, absent is last, equals share."""
    from scipy.stats import rankdata

    models = list(grouped(records, "model"))
    ranks = []
    for some in grouped(records, "set").values():
        found = grouped(some, "model")
        means = [np.mean([np.inf if r.get(by) is None else sign * r[by] for r in found[m]]) for m in models]
        ranks.append(rankdata(np.round(means, 5)))
    return {model: round(float(rank), 2) for model, rank in zip(models, np.mean(ranks, axis=0), strict=True)}


def show(record):
    """Print a record as a line."""
    texts = (f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in record.items())
    print("  " + "  ".join(texts), flush=True)


def print_records(title, records, columns=None):
    """A plain table of some fields of records."""
    columns = list(columns or records[0])
    cell = lambda value: f"{value:.4g}" if isinstance(value, float) else str(value)  # noqa: E731
    print_table(title, columns, [[cell(r.get(name, "")) for name in columns] for r in records])


def print_table(title, columns, rows):
    """A plain table; every cell is text."""
    print(f"\n{title}")
    widths = [max(len(str(row[c])) for row in [columns, *rows]) for c in range(len(columns))]
    for row in [columns, *rows]:
        cells = [str(row[0]).ljust(widths[0])]
        cells += [str(cell).rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        print("  " + "  ".join(cells), flush=True)
