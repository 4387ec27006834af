"""`svmosaic reproduce`: the tables and figures of the papers, next to our numbers."""

import os
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from svmosaic.atomic import write_text

INTERRUPTED = 130
EPILOG = """Results are stored as they are computed: stop the command at any time, and run it again to resume."""


def add_arguments(parser):
    """Options of the command."""
    parser.epilog = EPILOG
    parser.add_argument("--quick", action="store_true", help="small versions on bundled and generated data")
    parser.add_argument("--only", action="append", metavar="GLOB", help="experiments to run, such as 'csvm-*'")
    parser.add_argument("--repeats", type=_positive, metavar="N", help="maximum number of repeats of each run")
    parser.add_argument("--jobs", type=_positive, default=1, metavar="N", help="number of processes (default: 1)")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="folder of the data sets (default: $SVMOSAIC_DATA)")
    parser.add_argument("--images", metavar="PATH", help="for llsvm-table3: a folder of images, or features as .npz")
    parser.add_argument(
        "--output", type=Path, metavar="FOLDER", help="folder for results and reports (default: reproduction)"
    )
    parser.add_argument(
        "--store", type=Path, metavar="FILE", help="file of results (default: results.jsonl in the folder)"
    )
    parser.add_argument("--page", type=Path, metavar="FILE", help="Markdown report (default: results.md in the folder)")
    parser.add_argument(
        "--report", action="store_true", help="write the reports from the stored results without running anything"
    )
    parser.add_argument("--list", action="store_true", help="list the experiments and how much of each has been run")


def run(options):
    """Run what is missing, and write the reports."""
    if options.data is not None:
        if not options.data.is_dir():
            return _fail(f"--data {options.data} is not a folder")
        os.environ["SVMOSAIC_DATA"] = str(options.data)
    if options.images is not None and not Path(options.images).exists():
        return _fail(f"--images {options.images} does not exist")
    # After --data, and only now: `svmosaic --help` does not wait for scikit-learn.
    from svmosaic.experiments.catalogue import EXPERIMENTS, select
    from svmosaic.experiments.quick import shrink
    from svmosaic.experiments.store import Store

    try:
        experiments = [_with_images(experiment, options.images) for experiment in select(options.only)]
        everything = [_with_images(experiment, options.images) for experiment in EXPERIMENTS]
        if options.quick:
            experiments, everything = [shrink(e) for e in experiments], [shrink(e) for e in everything]
        output = options.output or Path("reproduction-quick" if options.quick else "reproduction")
        store = Store(options.store or output / "results.jsonl")
    except ValueError as error:
        return _fail(str(error))
    if options.list:
        return _list(experiments, store)
    code = 0 if options.report else _run(experiments, store, options)
    if code in (INTERRUPTED, 2):
        return code
    shown = experiments if options.only else everything
    _write(shown, store, output, options)
    return code


def _positive(text):
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def _fail(message):
    print(f"svmosaic reproduce: {message}", file=sys.stderr)
    return 2


def _with_images(experiment, images):
    """Table 3 of the LL-SVM paper on the user's images."""
    if images is None or all(task.source != "images" for task in experiment.tasks):
        return experiment
    tasks = tuple(
        replace(task, name=Path(images).stem, source=f"images {Path(images).resolve()}") for task in experiment.tasks
    )
    return replace(experiment, tasks=tasks)


def _list(experiments, store):
    from svmosaic.experiments.summary import coverage

    for experiment in experiments:
        done, total = coverage([experiment], store)
        print(f"{experiment.id:<24}{done:>5} of {total:<5}{experiment.title}")


def _run(experiments, store, options):
    from svmosaic.experiments.runner import plan, run

    todo, _ = plan(experiments, store, options.repeats)
    total = sum(work.cost for work in todo)
    console = Console(stderr=True)
    if todo:
        console.print(f"{len(todo)} runs to do, {len(store.records)} in {store.path}")
    try:
        with store, _display(console, len(todo), total) as report:
            outcome = run(experiments, store, repeats=options.repeats, jobs=options.jobs, report=report)
    except KeyboardInterrupt:
        left = len(plan(experiments, store, options.repeats)[0])
        console.print(f"stopped with {left} runs left; all others are in {store.path}. Run the same command to resume.")
        return INTERRUPTED
    except RuntimeError as error:
        return _fail(str(error))
    for what, why in outcome.skipped:
        console.print(f"skipped: {what}: {why}", markup=False)
    for what, why in outcome.failed:
        console.print(f"failed: {what}: {why}", markup=False)
    return 1 if outcome.failed else 0


@contextmanager
def _display(console, n_works, total):
    """A bar with the time left on a terminal, else a line a run; yields what the runner calls."""
    if not console.is_terminal:
        done = 0

        def line(work, record, past, left):
            nonlocal done
            done += 1
            share = past / total if total else 1.0
            print(f"[{done}/{n_works}, {share:.0%}] {_told(work, record)}", file=sys.stderr, flush=True)

        yield line
        return
    columns = (
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[done]}"), TimeElapsedColumn(),
        TextColumn("left"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console) as progress:
        # Runs are counted, but the time left goes by their rough cost.
        task = progress.add_task("", total=max(total, 1e-9), done=f"0/{n_works}")
        done = 0

        def advance(work, record, past, left):
            nonlocal done
            done += 1
            told = _told(work, record)[:60]
            progress.update(task, completed=past, description=told, done=f"{done}/{n_works}")

        yield advance


def _told(work, record):
    what = f"{work.task.name}, {work.method.name}, {work.repeat + 1}"
    if isinstance(record, Exception):
        return f"{what}: {type(record).__name__}: {record}"
    if record["kind"] == "tuning":
        chosen = ", ".join(f"{name} = {value:g}" for name, value in record["setting"].items())
        return f"{what}: chose {chosen}"
    return f"{what}: {record['accuracy']:.2f} %" if record["kind"] == "run" else what


def _write(experiments, store, output, options):
    from svmosaic.experiments.report import has_pictures, html_report, page, write_images

    title = "Quick run on stand-ins" if options.quick else "Results"
    command = "svmosaic reproduce" + (" --quick" if options.quick else "")
    path = options.page or output / "results.md"
    report = output / "report.html"
    for place in (path, report):
        place.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, page(experiments, store, title=title, command=command))
    if has_pictures():
        write_images(experiments, store, path.parent / "images")
    else:
        print("no figures: they need matplotlib (pip install matplotlib)", file=sys.stderr)
    write_text(report, html_report(experiments, store, title=title))
    print(f"written: {path} and {report}")
