"""Reports from the store alone: a page in Markdown, and one HTML file with the pictures inside."""

import base64
import html
import re
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

from svmosaic.atomic import written
from svmosaic.experiments.catalogue import PAPERS
from svmosaic.experiments.describe import MEASURES
from svmosaic.experiments.summary import coverage, entries, overview, remarks, shortfalls

TITLE = "The papers' results and ours"
INTRODUCTION = (
    "Every table and figure of the five papers, run again. Each number is our mean over repeats, ± the standard "
    "deviation if there are several; in brackets, the number printed in the paper and the difference, with ▼ if ours "
    "is worse. “–” was not run. Times are processor seconds with one thread."
)
DPI = 130  # of pictures of points and pixels; curves are drawn as SVG


def has_pictures() -> bool:
    """Whether matplotlib is there to draw."""
    return find_spec("matplotlib") is not None


def number(value, measure) -> str:
    """A value of a measure as text."""
    digits = MEASURES[measure][2]
    if measure.endswith("seconds") and value >= 100:
        digits = 0
    return f"{value:,.{digits}f}"


def cell_text(entry, measure) -> str:
    """An entry of a table: ours, and in brackets the printed figure."""
    ours = "–" if entry.mean is None else number(entry.mean, measure)
    if entry.deviation is not None and measure in ("accuracy", "error"):
        ours += f" ± {number(entry.deviation, measure)}"
    if entry.published is None:
        return ours
    printed = number(entry.published, measure)
    if entry.difference is None or measure not in ("accuracy", "error"):
        return f"{ours} ({printed})"
    return f"{ours} ({printed}, {entry.difference:+.2f}{' ▼' if entry.is_below else ''})"


def grid(experiment, found) -> tuple[list[str], list[list[str]]]:
    """Head and rows of a table: tasks as columns, or as rows if there are more tasks than methods."""
    methods = [method.name for method in experiment.methods]
    tasks = [task.name for task in experiment.tasks]

    def text(method, task):
        return cell_text(found[method, task], experiment.measure)

    if len(tasks) > len(methods):
        return ["", *methods], [[task, *(text(method, task) for method in methods)] for task in tasks]
    return ["", *tasks], [[method, *(text(method, task) for task in tasks)] for method in methods]


def curve_grid(experiment, found) -> tuple[list[str], list[list[str]]]:
    """Head and rows for a curve: one row per line and task, one column per point on the axis."""
    places = sorted({x for _, x in experiment.lines.values()})
    rows = []
    for task in (task.name for task in experiment.tasks):
        for line in dict.fromkeys(name for name, _ in experiment.lines.values()):
            points = {x: found[method, task] for method, (name, x) in experiment.lines.items() if name == line}
            texts = (_point_text(points.get(x), experiment.measure) for x in places)
            rows.append([f"{task}, {line}", *texts])
    return [experiment.axis, *(f"{x:g}" if x else "any" for x in places)], rows


def _point_text(entry, measure) -> str:
    if entry is None or entry.mean is None:
        return "–"
    printed = "" if entry.published is None else f" ({number(entry.published, measure)})"
    return number(entry.mean, measure) + printed


def picture_lines(experiment, store) -> list[str]:
    """What a picture shows, in words."""
    lines = []
    for cell in experiment.cells():
        record = store.get(cell.key)
        if record is None:
            continue
        panels = [f"{p['title']} {p['accuracy']:.1f} %" for p in record.get("panels", []) if "accuracy" in p]
        if panels:
            lines.append("Accuracy on the points shown: " + "; ".join(panels) + ".")
        if "test_accuracy" in record:
            tested = (f"{name} {value:.1f} %" for name, value in record["test_accuracy"].items())
            lines.append("On 2,000 other points: " + ", ".join(tested) + ".")
        if "size" in record and isinstance(record["size"], dict):
            sizes = (f"{name} {value}" for name, value in record["size"].items())
            lines.append("Tiles, support vectors or boosted SVMs: " + ", ".join(sizes) + ".")
        if "groups" in record:
            lines.append("Groups of the experts: " + ", ".join(map(str, record["groups"])) + ".")
    return lines


def sentences(experiment, found) -> list[str]:
    """Remarks, shortfalls and notes below a table."""
    out = remarks(experiment, found)
    below = shortfalls(experiment, found)
    for method, task, entry, note in below:
        close = entry.published_deviation and abs(entry.difference or 0.0) <= entry.published_deviation
        out.append(
            f"▼ {method}, {task}: {abs(entry.difference or 0.0):.2f} points short of the printed "
            f"{number(entry.published, experiment.measure)}"
            + (
                f", within its deviation of {number(entry.published_deviation, experiment.measure)}. "
                if close
                else ". "
            )
            + (note or "No reason is known.")
        )
    own = {method.name for method in experiment.methods if method.own}
    for (method, task), note in experiment.notes.items():
        # Notes on the paper's own method are the reasons above.
        tasks = [t.name for t in experiment.tasks] if task is None else [task]
        if method not in own and any(found[method, name].values for name in tasks):
            out.append(f"{method}{'' if task is None else ', ' + task}: {note}")
    return list(dict.fromkeys(out))


def is_drawn(experiment, store) -> bool:
    """Whether there is a picture to draw of an experiment."""
    if experiment.kind == "table":
        return False
    return any(cell.key in store for cell in experiment.cells())


def image_name(experiment) -> str:
    return f"papers-{experiment.id}.{'svg' if experiment.kind == 'curve' else 'png'}"


def markdown_table(head, rows) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def page(experiments, store, *, title=TITLE, command="svmosaic reproduce", images="images") -> str:
    """The Markdown page. It depends on the store and on nothing else."""
    present, total = coverage(experiments, store)
    lines = [
        f"# {title}",
        "",
        f"*Written by `{command}` from the stored results: do not edit by hand.*",
        "",
        INTRODUCTION,
        f"The store holds {present:,} of {total:,} runs.",
        overview(experiments, store),
        "",
    ]
    for paper, reference in PAPERS.items():
        chosen = [experiment for experiment in experiments if experiment.paper == paper]
        if chosen:
            lines += [f"## {paper}", "", reference + ".", ""]
        for experiment in chosen:
            lines += _markdown_of(experiment, store, images)
    return "\n".join(lines).rstrip() + "\n"


def _markdown_of(experiment, store, images):
    lines = [f"### {experiment.title}", "", f"`{experiment.id}`. {experiment.protocol}".rstrip(), ""]
    found = {} if experiment.kind == "picture" else entries(experiment, store)
    if experiment.kind == "table":
        label = MEASURES[experiment.measure][1]
        head, rows = grid(experiment, found)
        lines += [*markdown_table([label, *head[1:]], rows), ""]
    elif experiment.kind == "curve":
        lines += [*markdown_table(*curve_grid(experiment, found)), ""]
    if is_drawn(experiment, store):
        lines += [f"![{experiment.title}]({images}/{image_name(experiment)})", ""]
    elif experiment.kind != "table":
        lines += ["Not run.", ""]
    said = picture_lines(experiment, store) if experiment.kind == "picture" else sentences(experiment, found)
    return lines + [f"- {text}" for text in said] + ([""] if said else [])


def write_images(experiments, store, folder) -> list[Path]:
    """Draw every figure into a folder; needs matplotlib."""
    from svmosaic.experiments.draw import draw

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for experiment in experiments:
        if is_drawn(experiment, store):
            path = folder / image_name(experiment)
            with written(path) as temporary:
                undated = {"Date": None} if path.suffix == ".svg" else None
                draw(experiment, store).savefig(temporary, format=path.suffix[1:], dpi=DPI, metadata=undated)
            drawn.append(path)
    return drawn


STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 74rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
table { display: block; overflow-x: auto; }
th, td { border: 1px solid #ccc; padding: .25rem .6rem; text-align: right; vertical-align: top; }
th:first-child, td:first-child { text-align: left; }
td.below { background: #fdebd8; } td.reached { background: #e6f4e6; }
p.protocol { color: #555; max-width: 60rem; } img { max-width: 100%; } code { background: #f3f3f3; }
small { color: #666; white-space: nowrap; display: block; } details { margin: .5rem 0; }
"""


def html_report(experiments, store, *, title=TITLE) -> str:
    """One HTML file: tables, and pictures inside it where matplotlib is installed."""
    present, total = coverage(experiments, store)
    body = [f"<h1>{_escaped(title)}</h1>", f"<p>{INTRODUCTION} The store holds {present:,} of {total:,} runs.</p>"]
    if not has_pictures():
        body.append("<p>The pictures need matplotlib: <code>pip install matplotlib</code>.</p>")
    links = (f'<a href="#{e.id}">{e.id}</a>' for e in experiments)
    body.append(f"<p>{' · '.join(links)}</p>")
    for paper, reference in PAPERS.items():
        chosen = [experiment for experiment in experiments if experiment.paper == paper]
        if chosen:
            body.append(f"<h2>{paper}</h2><p>{_escaped(reference)}.</p>")
        for experiment in chosen:
            body += _html_of(experiment, store)
    text = "\n".join(body)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{_escaped(title)}</title>'
        f"<style>{STYLE}</style></head>\n<body>\n{text}\n</body></html>\n"
    )


def _html_of(experiment, store):
    out = [f'<h3 id="{experiment.id}">{_escaped(experiment.title)}</h3>']
    out.append(f'<p class="protocol">{_escaped(experiment.protocol)}</p>')
    found = {} if experiment.kind == "picture" else entries(experiment, store)
    if experiment.kind == "table":
        out.append(_html_table(experiment, found))
    elif experiment.kind == "curve":
        head, rows = curve_grid(experiment, found)
        out.append(_plain_table(head, rows))
    if is_drawn(experiment, store) and has_pictures():
        from svmosaic.experiments.draw import draw

        stream = BytesIO()
        draw(experiment, store).savefig(stream, format="png", dpi=DPI)
        picture = base64.b64encode(stream.getvalue()).decode()
        out.append(f'<img alt="{_escaped(experiment.title)}" src="data:image/png;base64,{picture}">')
    said = picture_lines(experiment, store) if experiment.kind == "picture" else sentences(experiment, found)
    out += [f"<ul>{''.join(f'<li>{_escaped(text)}</li>' for text in said)}</ul>"] if said else []
    return [*out, *_settings(experiment, store)]


def _html_table(experiment, found):
    measure = experiment.measure
    head = "".join(f"<th>{_escaped(task.name)}</th>" for task in experiment.tasks)
    lines = [f"<tr><th>{MEASURES[measure][1]}</th>{head}</tr>"]
    for method in experiment.methods:
        cells = []
        for task in experiment.tasks:
            entry = found[method.name, task.name]
            text, _, bracket = cell_text(entry, measure).partition(" (")
            judged = entry.difference is not None and measure in ("accuracy", "error")
            mark = f' class="{"below" if entry.is_below else "reached"}"' if judged else ""
            small = f"<small>({_escaped(bracket)}</small>" if bracket else ""
            cells.append(f"<td{mark}>{_escaped(text)}{small}</td>")
        name = f"<b>{_escaped(method.name)}</b>" if method.own else _escaped(method.name)
        lines.append(f"<tr><td>{name}</td>{''.join(cells)}</tr>")
    return f"<table>{''.join(lines)}</table>"


def _plain_table(head, rows):
    lines = ["<tr>" + "".join(f"<th>{_escaped(text)}</th>" for text in head) + "</tr>"]
    lines += ["<tr>" + "".join(f"<td>{_escaped(text)}</td>" for text in row) + "</tr>" for row in rows]
    return f"<table>{''.join(lines)}</table>"


def _settings(experiment, store):
    """The settings that cross-validation chose, folded away."""
    rows = {}
    for cell in experiment.cells():
        record = store.get(cell.tuning.key) if cell.tuning is not None and cell.repeat == 0 else None
        if record is not None:
            chosen = ", ".join(f"{name} = {value:g}" for name, value in record["setting"].items())
            rows[cell.method.name, cell.task.name] = [
                cell.method.name, cell.task.name, chosen, f"{record['accuracy']:.2f}", f"{record['tune_rows']:,}"
            ]  # fmt: skip
    if not rows:
        return []
    head = ["method", "task", "chosen", "accuracy over the folds", "rows"]
    return ["<details><summary>settings chosen</summary>", _plain_table(head, rows.values()), "</details>"]


def _escaped(text):
    """HTML of a sentence with Markdown's *emphasis* and `code`."""
    text = html.escape(text)
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    return re.sub(r"(?<!\w)\*([^*]+)\*(?!\w)", r"<em>\1</em>", text)
