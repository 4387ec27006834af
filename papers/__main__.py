"""`python -m papers`: the tables and figures of the papers, next to our numbers."""

import argparse
import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

INTERRUPTED = 130


def main(arguments=None) -> int:
    """Entry point; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m papers", description=__doc__.split(": ")[1].strip())
    commands = parser.add_subparsers(dest="command", required=True)
    helps = {
        "reproduce": "run the experiments that are not stored yet, and write the reports",
        "report": "write the reports from the stored results without running anything",
        "data": "list the data sets and their locations or sources",
    }
    epilog = "Results are stored as they are computed: stop the command at any time, and run it again to resume."
    for name, text in helps.items():
        one = commands.add_parser(name, help=text, description=text, epilog=epilog if name == "reproduce" else None)
        one.add_argument("--data", type=Path, metavar="FOLDER", help="folder of .npz files (default: $SVMOSAIC_DATA)")
        if name == "data":
            one.add_argument("--json", action="store_true", help="print JSON instead of a table")
            one.add_argument("--verify", action="store_true", help="compare the files with the data of the experiments")
            one.add_argument("--get", nargs="+", metavar="NAME", default=[], help="download these into the cache first")
            continue
        one.add_argument("--quick", action="store_true", help="small versions on bundled and generated data")
        one.add_argument("--only", action="append", metavar="GLOB", help="experiments, such as 'csvm-*'")
        one.add_argument("--images", metavar="PATH", help="for llsvm-table3: a folder of images, or features as .npz")
        one.add_argument("--output", type=Path, metavar="FOLDER", help="folder of results (default: reproduction)")
        one.add_argument("--store", type=Path, metavar="FILE", help="file of results (default: results.jsonl there)")
        one.add_argument("--page", type=Path, metavar="FILE", help="Markdown report (default: results.md there)")
        one.add_argument("--list", action="store_true", help="list the experiments and how much of each has been run")
        if name == "reproduce":
            one.add_argument("--repeats", type=_positive, metavar="N", help="maximum number of repeats of each run")
            one.add_argument("--jobs", type=_positive, default=1, metavar="N", help="number of processes (default: 1)")
    options = parser.parse_args(None if arguments is None else [str(word) for word in arguments])
    # A termination ends a run as Ctrl-C does, and so its workers with it.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return data(options) if options.command == "data" else reproduce(options)
    except KeyboardInterrupt:
        print("papers: interrupted", file=sys.stderr)
        return INTERRUPTED
    except (ValueError, OSError, ImportError) as error:
        print(f"papers: error: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    finally:
        signal.signal(signal.SIGTERM, before)


def reproduce(options) -> int:
    """Run what is missing (`report`: nothing), and write the reports."""
    if options.data is not None:
        if not options.data.is_dir():
            return _fail(f"--data {options.data} is not a folder")
        os.environ["SVMOSAIC_DATA"] = str(options.data)
    if options.images is not None and not Path(options.images).exists():
        return _fail(f"--images {options.images} does not exist")
    # Only now: `--help` does not wait for scikit-learn.
    from papers import EXPERIMENTS, Store, report
    from papers.describe import select
    from papers.quick import shrink

    def adapted(experiment):
        if options.images is not None and any(task.source == "images" for task in experiment.tasks):
            path = Path(options.images)  # table 3 of the LL-SVM paper on the user's images
            tasks = [replace(task, name=path.stem, source=f"images {path.resolve()}") for task in experiment.tasks]
            experiment = replace(experiment, tasks=tuple(tasks))
        return shrink(experiment) if options.quick else experiment

    output = options.output or Path("reproduction-quick" if options.quick else "reproduction")
    try:
        experiments = [adapted(experiment) for experiment in select(options.only, EXPERIMENTS)]
        store = Store(options.store or output / "results.jsonl")
    except ValueError as error:
        return _fail(str(error))
    if options.list:
        for experiment in experiments:
            done, total = report.coverage([experiment], store)
            print(f"{experiment.id:<24}{done:>5} of {total:<5}{experiment.title}")
        return 0
    code = _run(experiments, store, options) if options.command == "reproduce" else 0
    if code in (INTERRUPTED, 2):
        return code
    title = "Quick run on stand-ins" if options.quick else report.TITLE
    path, whole = options.page or output / "results.md", output / "report.html"
    for place in (path, whole):
        place.parent.mkdir(parents=True, exist_ok=True)
    command = "python -m papers report" + (" --quick" if options.quick else "")
    path.write_text(report.page(experiments, store, title=title, command=command), encoding="utf-8")
    if report.has_pictures():
        report.write_images(experiments, store, path.parent / "images")
    else:
        print("no figures: they need matplotlib (pip install matplotlib)", file=sys.stderr)
    whole.write_text(report.html_report(experiments, store, title=title), encoding="utf-8")
    print(f"written: {path} and {whole}")
    return code


def _run(experiments, store, options):
    """Run what is missing, with a bar and the time left on a terminal, else a line per run."""
    from papers.runner import cost_of, plan, run

    todo, _ = plan(experiments, store, options.repeats)
    total = sum(map(cost_of, todo))
    console = Console(stderr=True)
    if todo:
        console.print(f"{len(todo)} runs to do, {len(store.records)} in {store.path}")
    columns = (
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[done]}"), TimeElapsedColumn(),
        TextColumn("left"), TimeRemainingColumn(),
    )  # fmt: skip
    done = 0

    def tell(work, record, past):
        nonlocal done
        done += 1
        text = f"{work.task.name}, {work.method.name}, {work.repeat + 1}"
        if isinstance(record, Exception):
            text += f": {type(record).__name__}: {record}"
        elif record["kind"] == "tuning":
            text += ": chose " + ", ".join(f"{name} = {value:g}" for name, value in record["setting"].items())
        elif record["kind"] == "run":
            text += f": {record['accuracy']:.2f} %"
        if console.is_terminal:  # runs are counted, but the time left goes by their rough cost
            bar.update(line, completed=past, description=text[:60], done=f"{done}/{len(todo)}")
        else:
            print(f"[{done}/{len(todo)}, {past / total:.0%}] {text}", file=sys.stderr, flush=True)

    try:
        with store, Progress(*columns, console=console, disable=not console.is_terminal) as bar:
            line = bar.add_task("", total=max(total, 1e-9), done=f"0/{len(todo)}")
            outcome = run(experiments, store, repeats=options.repeats, jobs=options.jobs, report=tell)
    except KeyboardInterrupt:
        left = len(plan(experiments, store, options.repeats)[0])
        console.print(f"stopped with {left} runs left; all others are in {store.path}. Run the same command to resume.")
        return INTERRUPTED
    except RuntimeError as error:
        return _fail(str(error))
    for kind, found in (("skipped", outcome.skipped), ("failed", outcome.failed)):
        for what, why in found:
            console.print(f"{kind}: {what}: {why}", markup=False)
    return 1 if outcome.failed else 0


def data(options) -> int:
    """Print the list of data sets."""
    from papers.data import cache_folder, catalogue, data_folder, load

    folder = data_folder(options.data)
    if options.data is not None and folder is None:
        return _fail(f"the folder {str(options.data)!r} does not exist")
    for name in options.get:
        load(name, data=options.data)
    records = catalogue(options.data, verify=options.verify)
    if options.json:
        print(json.dumps(records, indent=1))
        return 0
    print(f"folder: {folder or 'none (SVMOSAIC_DATA or --data names one)'}\ncache:  {cache_folder()}\n")
    print(f"{'name':<23}{'rows':>8}{'test':>8}{'features':>9}{'classes':>8}  where")
    for record in records:
        if record["base"] is not None:
            where = f"{record['base']}: {record['title']}"
        else:
            where = {
                "network": f"downloads from {record['source']}", "generated": record["source"],
            }.get(record["place"], f"in the {record['place']}")  # fmt: skip
            if record["title"].startswith("unreadable"):
                where += f", {record['title']}"
            if record.get("same") is not None:
                where += ", as in the experiments" if record["same"] else ", other values than in the experiments"
        test = record["test_rows"] or "-"
        numbers = f"{record['rows']:>8}{test:>8}{record['features']:>9}{record['classes']:>8}"
        print(f"{record['name']:<23}{numbers}  {where}")
    return 0


def _positive(text):
    if int(text) < 1:
        raise ValueError(text)
    return int(text)


def _fail(message):
    print(f"papers: {message}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
