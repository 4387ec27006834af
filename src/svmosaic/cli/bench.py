"""`svmosaic bench`: our models compared with others, in one run."""

import json
import sys
from pathlib import Path

from svmosaic.atomic import write_text, written
from svmosaic.cli._io import add_table_options, check_file, duration, read_options
from svmosaic.cli._tasks import add_task_argument, decide_task

COSTS = {
    "batch": ("batch_microseconds", "microseconds per row, all rows at once"),
    "row": ("row_microseconds", "microseconds per row, given alone"),
    "fit": ("fit_seconds", "seconds to fit"),
    "bytes": ("n_bytes", "bytes of the model"),
}
HEADINGS = ("model", "accuracy", "fit s", "us/row", "us alone", "compiled", "model kB")


def add_arguments(parser):
    parser.add_argument("sets", nargs="*", metavar="SET|FILE", help="data sets by name, or one table (default: digits)")
    parser.add_argument("--label", help="label column of the table, by name or index (-1: last)")
    add_task_argument(parser)
    parser.add_argument("--data", metavar="DIR", help="folder of .npz files (default: $SVMOSAIC_DATA)")
    parser.add_argument("--models", metavar="A,B,...", help="only these models; any unknown name prints the list")
    parser.add_argument("--json", metavar="OUT", help="write the results as JSON; - for standard output")
    parser.add_argument("--chart", metavar="OUT", help="plot accuracy against cost, as .png, .svg or .pdf")
    parser.add_argument(
        "--cost", choices=COSTS, default="batch", help="cost on the chart and for the Pareto front (default: batch)"
    )
    parser.add_argument("--max-rows", type=int, metavar="N", help="use at most N rows for training and N for testing")
    parser.add_argument(
        "--budget",
        type=duration,
        metavar="TIME",
        help="time per fit (default: 60s); uses fewer rows if all would take longer",
    )
    parser.add_argument(
        "--test-size", type=float, default=0.25, help="fraction of a table's rows for testing (default: 0.25)"
    )
    parser.add_argument(
        "--tune",
        action="store_true",
        help="tune C or a similar parameter of each model on a fifth of the training rows",
    )
    parser.add_argument("--jobs", type=int, default=1, help="threads for every model (default: 1)")
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
    parser.add_argument("--quick", action="store_true", help="use 1000 rows and small models; takes less than a minute")
    add_table_options(parser)


def run(options):
    """Measure every model on every set; print, write, draw."""
    from svmosaic.bench.peers import Setting, choose
    from svmosaic.bench.trials import business, machine

    if options.jobs < 1:
        raise ValueError(f"--jobs must be at least 1, got {options.jobs}")
    if options.max_rows is not None and options.max_rows < 10:
        raise ValueError(f"--max-rows must be at least 10, got {options.max_rows}")
    for path in (options.json, options.chart):
        if path is not None and (path != "-" or path is options.chart):
            check_file(path, options.sets)
    if options.chart is not None:
        _check_chart(options.chart)
    peers = choose([key for key in (options.models or "").split(",") if key])
    budget = options.budget or (2.0 if options.quick else 60.0)
    setting = Setting(options.jobs, options.seed, budget, options.quick)
    results = {
        "machine": machine(),
        "settings": {"jobs": options.jobs, "seed": options.seed, "budget": budget, "tune": options.tune,
                     "quick": options.quick, "max_rows": _max_rows(options)},
        "sets": [],
    }  # fmt: skip
    if business() is not None:
        print(f"svmosaic bench: {business()}", file=sys.stderr)
    for name in options.sets or ["digits"]:
        results["sets"].append(_run_set(name, peers, setting, options))
        # After each set: an interrupted run keeps what it has.
        if options.json not in (None, "-"):
            write_text(options.json, json.dumps(results, indent=1) + "\n")
    if options.json == "-":
        print(json.dumps(results, indent=1))
    if options.chart is not None:
        _draw(results, options)
    return 0


def _max_rows(options):
    return options.max_rows or (1000 if options.quick else None)


def _load(name, options):
    from svmosaic.bench.trials import table_data
    from svmosaic.datasets import load

    if (Path(name).suffix or options.format) and Path(name).exists():
        from svmosaic.table.formats import format_of, read_table

        if options.label is None and format_of(name, options.format) not in ("libsvm", "npz"):
            raise ValueError(f"{name} is a table: name its label column with --label")
        table = read_table(name, label=options.label, **read_options(options))
        task, _ = decide_task(table.y, options.task)
        data = table_data(
            table.X, table.y, name=Path(name).name, test_size=options.test_size, seed=options.seed, task=task
        )
        return data, task
    return load(name, data=options.data, random_state=options.seed), "classification"


def _run_set(name, peers, setting, options):
    from svmosaic.bench.trials import Skipped, measure, subset
    from svmosaic.explain.displays.tradeoff import pareto_front

    data, task = _load(name, options)
    data = subset(data, _max_rows(options), options.seed)
    if task == "regression":
        peers = [other for other in (peer.for_values() for peer in peers) if other is not None]
        classes, asked, headings = 0, "values", (HEADINGS[0], "R2", *HEADINGS[2:])
    else:
        data = _with_whole_labels(data)
        classes, asked, headings = data.classes, f"{data.classes} classes", HEADINGS
    n_train, n_features = data.X_train.shape
    say = (lambda *_: None) if options.json == "-" else print
    say(f"{data.name}: {n_train} rows, {n_features} features, {asked}; {len(data.y_test)} rows to test")
    say("  " + _line(headings))
    trials, skipped = [], []
    for peer in peers:
        outcome = measure(peer, data, setting, tune=options.tune)
        if isinstance(outcome, Skipped):
            skipped.append(outcome)
            say(f"  {outcome.model:<27}skipped: {outcome.reason}")
            continue
        trials.append(outcome)
        say("  " + _line(_cells(outcome, task)) + (f"  {outcome.note}" if outcome.note else ""))
        sys.stdout.flush()
    cost = COSTS[options.cost][0]
    front = pareto_front([getattr(t, cost) for t in trials], [t.accuracy for t in trials])
    say(f"  Nothing else is both better and cheaper ({COSTS[options.cost][1]}) than")
    for place in front:
        say(f"    {trials[place].model}")
    say("")
    return {
        "name": data.name, "n_train": n_train, "n_test": len(data.y_test), "n_features": n_features,
        "task": task, "n_classes": classes, "trials": [t.record() for t in trials],
        "skipped": [s.record() for s in skipped], "front": [trials[place].key for place in front],
    }  # fmt: skip


def _with_whole_labels(data):
    """Labels 0, 1, ...: some peers take no text."""
    from types import SimpleNamespace

    import numpy as np

    classes, label = np.unique(np.concatenate([data.y_train, data.y_test]), return_inverse=True)
    n = len(data.y_train)
    return SimpleNamespace(
        X_train=data.X_train, y_train=label[:n], X_test=data.X_test, y_test=label[n:], name=data.name,
        classes=len(classes),
    )  # fmt: skip


def _cells(trial, task):
    compiled = "-" if trial.compiled_microseconds is None else f"{trial.compiled_microseconds:.1f}"
    score = f"{trial.accuracy:.4f}" if task == "regression" else f"{trial.accuracy:.2%}"
    return (
        trial.model, score, f"{trial.fit_seconds:.3f}", f"{trial.batch_microseconds:.2f}",
        f"{trial.row_microseconds:.0f}", compiled, f"{trial.n_bytes / 1e3:.1f}",
    )  # fmt: skip


def _line(cells):
    return f"{cells[0]:<27}" + "".join(f"{cell:>10}" for cell in cells[1:])


def _check_chart(path):
    """Refuse at once what could not be drawn at the end."""
    if Path(path).suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ValueError(f"--chart must end in .png, .svg or .pdf, got {path!r}")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ImportError("--chart needs matplotlib: pip install matplotlib") from None


def _draw(results, options):
    from svmosaic.explain.displays.tradeoff import draw_panels

    field, label = COSTS[options.cost]
    panels = {result["name"]: result["trials"] for result in results["sets"] if result["trials"]}
    if not panels:
        raise ValueError("there is nothing to draw: no model was measured")
    figure = draw_panels(panels, cost=field, cost_name=label)
    with written(options.chart) as path:
        figure.savefig(path, dpi=160, format=Path(options.chart).suffix[1:].lower())
