"""Reports from the store alone: a page in Markdown, and one HTML file with the pictures inside."""

import base64
import html
import re
from dataclasses import dataclass
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

import numpy as np

from papers import PAPERS
from papers.describe import MEASURES

TITLE = "The papers' results and ours"
INTRODUCTION = (
    "Every table and figure of the five papers, run again. Each number is our mean over repeats, ± the standard "
    "deviation if there are several; in brackets, the number printed in the paper and the difference, with ▼ if ours "
    "is worse. “–” was not run. Times are processor seconds with one thread."
)
DPI = 130  # of pictures of points and pixels; curves are drawn as SVG
# How far a linear SVM, which leaves nothing to chance, may be from the printed figure.
SAME_PROTOCOL = 0.3
LINEAR_BASELINES, KERNEL_BASELINES = ("Linear SVM", "LSVM", "Linear SVM, one-vs-one"), ("Kernel SVM", "SVM")


@dataclass(frozen=True)
class Entry:
    """One figure of a table: ours over the repeats that were run, and the printed one."""

    values: tuple[float, ...]
    published: float | None
    published_deviation: float | None
    sign: int

    @property
    def mean(self) -> float | None:
        return float(np.mean(self.values)) if self.values else None

    @property
    def deviation(self) -> float | None:
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else None

    @property
    def difference(self) -> float | None:
        return None if self.mean is None or self.published is None else self.mean - self.published

    @property
    def is_below(self) -> bool:
        """Ours is worse than printed."""
        return self.difference is not None and self.sign * round(self.difference, 6) < 0


def entries(experiment, store) -> dict[tuple[str, str], Entry]:
    """(method, task) -> entry, for every pair of an experiment."""
    found: dict[tuple[str, str], list[float]] = {}
    for cell in experiment.cells():
        values = found.setdefault((cell.method.name, cell.task.name), [])
        record = store.get(cell.key) or {}
        error = experiment.measure == "error"
        value = record.get("accuracy" if error else experiment.measure)
        if value is not None:
            values.append(100.0 - value if error else value)
    out = {}
    for pair, values in found.items():
        printed = experiment.published.get(pair)
        mean, deviation = printed if isinstance(printed, tuple) else (printed, None)
        out[pair] = Entry(tuple(values), mean, deviation, MEASURES[experiment.measure][0])
    return out


def coverage(experiments, store) -> tuple[int, int]:
    """Cells in the store, and cells in all."""
    keys = {cell.key for experiment in experiments for cell in experiment.cells()}
    return sum(key in store for key in keys), len(keys)


def shortfalls(experiment, found) -> list[tuple[str, str, Entry, str | None]]:
    """Entries of the paper's own method that are worse than printed: method, task, entry, and the note, if any."""
    if experiment.measure not in ("accuracy", "error"):
        return []
    own = {method.name for method in experiment.methods if method.own}
    return [
        (method, task, entry, experiment.notes.get((method, task), experiment.notes.get((method, None))))
        for (method, task), entry in found.items()
        if method in own and entry.is_below
    ]


def kernel_leads(experiment, found) -> dict[str, dict[str, float]]:
    """Points by which the kernel SVM is better than each of the paper's own methods, by task."""
    out = {}
    if experiment.measure in ("accuracy", "error"):
        sign = MEASURES[experiment.measure][0]
        kernel = {task: entry for (method, task), entry in found.items() if method in KERNEL_BASELINES}
        for own in (method.name for method in experiment.methods if method.own):
            pairs = {task: (entry.mean, found[own, task].mean) for task, entry in kernel.items()}
            leads = {task: sign * (a - b) for task, (a, b) in pairs.items() if a is not None and b is not None}
            if leads:
                out[own] = leads
    return out


def sentences(experiment, found) -> list[str]:
    """Remarks that follow from the numbers of a table, its shortfalls, and its notes."""
    out = []
    # The printed numbers of a curve are those of a table, which has the remarks.
    if experiment.kind != "curve" and experiment.measure in ("accuracy", "error"):
        linear = {
            task: entry.difference
            for (method, task), entry in found.items()
            if method in LINEAR_BASELINES and entry.difference is not None
        }
        same = [task for task, by in linear.items() if abs(by) <= SAME_PROTOCOL]
        other = [f"{task} ({by:+.2f})" for task, by in linear.items() if abs(by) > SAME_PROTOCOL]
        if linear:
            out.append(
                f"The linear SVM is within {SAME_PROTOCOL} points of the printed figure on "
                f"{', '.join(same) or 'no task'}" + (f", and farther from it on {', '.join(other)}." if other else ".")
            )
        for own, leads in kernel_leads(experiment, found).items():
            ahead = [f"{task} (by {lead:.2f})" for task, lead in leads.items() if lead > 0]
            out.append(
                f"The kernel SVM, tuned in the same way, is ahead of {own} on {', '.join(ahead)}."
                if ahead
                else f"The kernel SVM is ahead of {own} on no task that both were run on."
            )
    for method, task, entry, note in shortfalls(experiment, found):
        by, deviation = abs(entry.difference or 0.0), entry.published_deviation
        printed = number(entry.published, experiment.measure)
        close = f", within its deviation of {number(deviation, experiment.measure)}" if by <= (deviation or 0.0) else ""
        reason = note or "No reason is known."
        out.append(f"▼ {method}, {task}: {by:.2f} points short of the printed {printed}{close}. {reason}")
    own = {method.name for method in experiment.methods if method.own}
    for (method, task), note in experiment.notes.items():
        # Notes on the paper's own method are the reasons above.
        tasks = [t.name for t in experiment.tasks] if task is None else [task]
        if method not in own and any(found[method, name].values for name in tasks):
            out.append(f"{method}{'' if task is None else ', ' + task}: {note}")
    return list(dict.fromkeys(out))


def picture_lines(experiment, store) -> list[str]:
    """Sentences about what a picture shows."""
    lines = []
    for cell in experiment.cells():
        record = store.get(cell.key) or {}
        panels = [f"{p['title']} {p['accuracy']:.1f} %" for p in record.get("panels", []) if "accuracy" in p]
        if panels:
            lines.append("Accuracy on the points shown: " + "; ".join(panels) + ".")
        if "test_accuracy" in record:
            tested = (f"{name} {value:.1f} %" for name, value in record["test_accuracy"].items())
            lines.append("On 2,000 other points: " + ", ".join(tested) + ".")
        if isinstance(record.get("size"), dict):
            sizes = (f"{name} {value}" for name, value in record["size"].items())
            lines.append("Tiles, support vectors or boosted SVMs: " + ", ".join(sizes) + ".")
        if "groups" in record:
            lines.append("Groups of the experts: " + ", ".join(map(str, record["groups"])) + ".")
    return lines


def number(value, measure) -> str:
    """A value of a measure as text."""
    digits = 0 if measure.endswith("seconds") and value >= 100 else MEASURES[measure][2]
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


def curve_grid(experiment, found) -> tuple[list[str], list[list[str]]]:
    """Head and rows for a curve: one row per line and task, one column per point on the axis."""
    places = sorted({x for _, x in experiment.lines.values()})
    rows = []
    for task in (task.name for task in experiment.tasks):
        for line in dict.fromkeys(name for name, _ in experiment.lines.values()):
            points = {x: found[method, task] for method, (name, x) in experiment.lines.items() if name == line}
            texts = []
            for entry in map(points.get, places):
                if entry is None or entry.mean is None:
                    texts.append("–")
                else:
                    printed = entry.published
                    bracket = "" if printed is None else f" ({number(printed, experiment.measure)})"
                    texts.append(number(entry.mean, experiment.measure) + bracket)
            rows.append([f"{task}, {line}", *texts])
    return [experiment.axis, *(f"{x:g}" if x else "any" for x in places)], rows


def is_drawn(experiment, store) -> bool:
    """Whether there is a picture to draw of an experiment."""
    return experiment.kind != "table" and any(cell.key in store for cell in experiment.cells())


def image_name(experiment) -> str:
    return f"papers-{experiment.id}.{'svg' if experiment.kind == 'curve' else 'png'}"


def has_pictures() -> bool:
    """Whether matplotlib is there to draw."""
    return find_spec("matplotlib") is not None


def page(experiments, store, *, title=TITLE, command="python -m papers report", images="images") -> str:
    """The Markdown page. It depends on the store and on nothing else."""

    def markdown(head, rows):
        return ["| " + " | ".join(row) + " |" for row in (head, *rows)]

    present, total = coverage(experiments, store)
    leads = [
        lead
        for experiment in experiments
        if experiment.kind == "table"
        for tasks in kernel_leads(experiment, entries(experiment, store)).values()
        for lead in tasks.values()
    ]
    ahead = [lead for lead in leads if lead > 0]
    comparison = (
        f"In {len(ahead)} of the {len(leads)} comparisons below, a kernel SVM tuned in the same way is ahead of the "
        f"paper's own method, by {np.median(ahead) if ahead else 0:.2f} points in the median of these comparisons."
    )
    lines = [
        f"# {title}", "", f"*Written by `{command}` from the stored results: do not edit by hand.*", "", INTRODUCTION,
        f"The store holds {present:,} of {total:,} runs.", comparison if leads else "", "",
    ]  # fmt: skip
    for paper, reference in PAPERS.items():
        chosen = [experiment for experiment in experiments if experiment.paper == paper]
        if chosen:
            lines += [f"## {paper}", "", reference + ".", ""]
        for experiment in chosen:
            lines += [f"### {experiment.title}", "", f"`{experiment.id}`. {experiment.protocol}".rstrip(), ""]
            found = {} if experiment.kind == "picture" else entries(experiment, store)
            if experiment.kind in ("table", "curve"):
                if experiment.kind == "curve":
                    head, rows = curve_grid(experiment, found)
                else:  # tasks as columns, or as rows if there are more tasks than methods
                    methods, tasks = [m.name for m in experiment.methods], [t.name for t in experiment.tasks]
                    texts = {pair: cell_text(entry, experiment.measure) for pair, entry in found.items()}
                    label = MEASURES[experiment.measure][1]
                    if len(tasks) > len(methods):
                        head, rows = [label, *methods], [[task, *(texts[m, task] for m in methods)] for task in tasks]
                    else:
                        head, rows = [label, *tasks], [[m, *(texts[m, task] for task in tasks)] for m in methods]
                first, *rest = markdown(head, rows)
                lines += [first, "|" + "---|" * len(head), *rest, ""]
            if is_drawn(experiment, store):
                lines += [f"![{experiment.title}]({images}/{image_name(experiment)})", ""]
            elif experiment.kind != "table":
                lines += ["Not run.", ""]
            said = picture_lines(experiment, store) if experiment.kind == "picture" else sentences(experiment, found)
            lines += [f"- {text}" for text in said] + ([""] if said else [])
    return "\n".join(lines).rstrip() + "\n"


def write_images(experiments, store, folder):
    """Draw every figure into a folder; needs matplotlib."""
    import matplotlib as mpl

    from papers.draw import draw

    folder.mkdir(parents=True, exist_ok=True)
    for experiment in experiments:
        if is_drawn(experiment, store):
            path = Path(folder, image_name(experiment))
            undated = {"Date": None} if path.suffix == ".svg" else None
            with mpl.rc_context({"svg.hashsalt": "papers"}):  # the same bytes again
                draw(experiment, store).savefig(path, dpi=DPI, metadata=undated)


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
        out.append(f"<table>{''.join(lines)}</table>")
    elif experiment.kind == "curve":
        out.append(_plain_table(*curve_grid(experiment, found)))
    if is_drawn(experiment, store) and has_pictures():
        from papers.draw import draw

        stream = BytesIO()
        draw(experiment, store).savefig(stream, format="png", dpi=DPI)
        picture = base64.b64encode(stream.getvalue()).decode()
        out.append(f'<img alt="{_escaped(experiment.title)}" src="data:image/png;base64,{picture}">')
    said = picture_lines(experiment, store) if experiment.kind == "picture" else sentences(experiment, found)
    out += [f"<ul>{''.join(f'<li>{_escaped(text)}</li>' for text in said)}</ul>"] if said else []
    # The settings that cross-validation chose, folded away.
    rows = {}
    for cell in experiment.cells():
        record = store.get(cell.tuning.key) if cell.tuning is not None and cell.repeat == 0 else None
        if record is not None:
            names = cell.method.name, cell.task.name
            chosen = ", ".join(f"{name} = {value:g}" for name, value in record["setting"].items())
            rows[names] = [*names, chosen, f"{record['accuracy']:.2f}", f"{record['tune_rows']:,}"]
    if rows:
        head = ["method", "task", "chosen", "accuracy over the folds", "rows"]
        out += ["<details><summary>settings chosen</summary>", _plain_table(head, rows.values()), "</details>"]
    return out


def _plain_table(head, rows):
    lines = ["<tr>" + "".join(f"<th>{_escaped(text)}</th>" for text in head) + "</tr>"]
    lines += ["<tr>" + "".join(f"<td>{_escaped(text)}</td>" for text in row) + "</tr>" for row in rows]
    return f"<table>{''.join(lines)}</table>"


def _escaped(text):
    """HTML of a sentence with Markdown's *emphasis* and `code`."""
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))
    return re.sub(r"(?<!\w)\*([^*]+)\*(?!\w)", r"<em>\1</em>", text)
