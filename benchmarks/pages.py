"""Tables and sentences of the documentation that show stored results: python benchmarks/pages.py [page ...]

A place in a page is what stands between `<!-- measured NAME: begin -->` and `<!-- measured NAME: end -->`. `@place`
declares what fills it: a function of the stored results that yields paragraphs and tables.
"""
# ruff: noqa: E501  (lines of Markdown, with the numbers in them)

import json
import string
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import numpy as np
from auto_data import BUDGETS, PARTS, means_of
from common import grouped
from scipy.stats import rankdata

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs"
PLACES: dict = {}


@dataclass(frozen=True)
class Place:
    """A place in a page, the stored results it shows, and the function that makes its parts of them."""

    page: str
    mark: str
    results: tuple[str, ...]
    parts: object

    def filled(self, text) -> str:
        """The text of the page with this place filled."""
        begin, end = (f"<!-- {self.mark}: {edge} -->\n" for edge in ("begin", "end"))
        before, rest = text.split(begin)
        _, after = rest.split(end)
        parts = "\n\n".join(self.parts(*map(stored, self.results)))
        return f"{before}{begin}\n{parts}\n\n{end}{after}"


def place(page, results, name=None):
    """Declare that the decorated function fills a place of a page."""

    def declare(parts):
        mark = f"measured {name}" if name else "measured"
        PLACES.setdefault(page, []).append(Place(f"{page}.md", mark, tuple(results.split()), parts))
        return parts

    return declare


def made(page) -> str:
    """The page as the stored results make it."""
    text = (DOCS / f"{page}.md").read_text()
    for one in PLACES[page]:
        text = one.filled(text)
    return text


def write(*pages):
    """Put the stored results into these pages, or into all."""
    for page in pages or PLACES:
        (DOCS / f"{page}.md").write_text(made(page))


def stored(name):
    """Content of a file of benchmarks/results; a list if it has one record per line."""
    text = (HERE / "results" / f"{name}.json").read_text()
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines()]


# Tables -----------------------------------------------------------------------------------------------------------


class Template(string.Formatter):
    """`str.format` with more formats: percent without its sign (.2p), thousands (,.0k), significant digits (3r).

    A field that is None or absent is empty, or "–" if its format ends in "?".
    """

    def get_value(self, key, args, fields):
        return fields.get(key)

    def format_field(self, value, spec):
        if value is None:
            return "–" if spec.endswith("?") else ""
        digits, kind = spec.removesuffix("?")[:-1], spec.removesuffix("?")[-1:]
        if kind == "r":
            return f"{float(format(value, f'.{digits}g')):,g}"
        scale = {"p": 100, "k": 1e-3}.get(kind)
        return format(value, digits + kind) if scale is None else format(scale * value, digits + "f")


def shown(cell, record) -> str:
    """A cell: a template of the fields of a record, or a function of the record."""
    return Template().vformat(cell, (), record) if isinstance(cell, str) else str(cell(record))


def table(columns, rows) -> str:
    """A table in Markdown; cells are shown as `str` shows them."""
    head = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return "\n".join(head + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def listing(records, columns) -> str:
    """A table with a line per record; `columns` has a cell for each heading."""
    return table(columns, [[shown(cell, r) for cell in columns.values()] for r in records])


def by_threads(records, lead, cell, more=None) -> str:
    """A table with a line per group and a column per number of threads.

    `lead` has the first columns, cells of the first record, which tell groups apart; `cell(record, alone)` is that of
    one number of threads, with the record of one thread; `more` has further columns, functions of the group.
    """
    counts, groups, more = sorted({r["threads"] for r in records}), {}, more or {}
    for r in records:
        groups.setdefault(tuple(shown(part, r) for part in lead.values()), {})[r["threads"]] = r
    rows = []
    for first, found in groups.items():
        cells = [cell(found[n], found.get(1)) if n in found else "" for n in counts]
        rows.append([*first, *cells, *(column(list(found.values())) for column in more.values())])
    return table([*lead, *(threads(n) for n in counts), *more], rows)


def threads(n) -> str:
    return f"{n} thread{'s' if n > 1 else ''}"


def machine_of(part) -> str:
    """Processor, cores and date of a part of the results."""
    return "{processor}, {cores} cores, {date}".format(**part["machine"])


def listed(names) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


# The front door ---------------------------------------------------------------------------------------------------

OURS = "MosaicClassifier"
SYSTEMS = (OURS, "LinearSVC", "SVC, tuned", "LightGBM", "CatBoost", "RandomForest")
GROUPS = {"tables": "tables", "papers": "data sets of the papers", "adult": "adult", "covertype7": "covertype7"}
MEASURES = {
    "fit_seconds": ("Seconds to fit", lambda value: f"{value:,.1f}" if value >= 0.05 else f"{value:.2f}"),
    "predict_microseconds": ("Microseconds per row to predict", lambda value: f"{float(f'{value:.2g}'):,g}"),
    "n_bytes": ("Size in kB", lambda value: f"{value / 1e3:,.0f}"),
}


def runs_of(parts) -> dict:
    """Means over splits by set and system; of several budgets of ours, the one that the benchmark has by default."""
    found: dict = {}
    for part in parts:
        records = [{"score": r.get("accuracy"), **r} for r in part["records"]]
        for (name, system), run in means_of(records).items():
            system = OURS if system.startswith(OURS) else system
            if system not in found.setdefault(name, {}) or run.get("budget") == BUDGETS.get(name):
                found[name][system] = run
    return {name: here for name, here in found.items() if OURS in here}


def systems_of(runs, systems=SYSTEMS) -> list:
    """The systems that were run on any of these sets."""
    return [system for system in systems if any(system in here for here in runs.values())]


def title(name, here) -> str:
    metric = here[OURS].get("metric", "accuracy")
    return name if metric == "accuracy" else f"{name} ({metric.replace('_', ' ')})"


def rows(here) -> str:
    return f"{here[OURS]['train_rows']:,}"


def scores(here, systems) -> list:
    """A cell for each system, the best of them in bold."""
    found = {system: round(here[system]["score"], 2) for system in systems if system in here}
    bold = {system: f"**{v:.2f}**" if v == max(found.values()) else f"{v:.2f}" for system, v in found.items()}
    return [bold.get(system, "–") for system in systems]


def mean_ranks(runs, names, systems) -> dict:
    """Mean over the sets of the rank of each system, 1 the best; scores that are shown as equal share their ranks."""
    ranks = [rankdata([-round(runs[name][system]["score"], 2) for system in systems]) for name in names]
    return dict(zip(systems, np.sum(ranks, axis=0) / len(names), strict=True))


def names_with(runs, part, systems) -> list:
    """The sets of a part that all of these systems were run on."""
    return [name for name in PARTS[part] if name in runs and all(system in runs[name] for system in systems)]


def lowest(ranks) -> list:
    """A cell for each rank, the lowest in bold."""
    best = min(ranks.values())
    return [f"**{rank:.2f}**" if rank == best else f"{rank:.2f}" for rank in ranks.values()]


def boosting() -> str:
    """Accuracy of larger LightGBM models on covertype, in the runs for learned gates."""
    records = {r["model"]: r["accuracy"] for r in stored("learned")["covtype"]["records"]}
    large = next(name for name in records if name.startswith("LightGBM, "))
    return (
        "Boosted trees gain from larger settings on large data: on covertype, class 2 against the rest, "
        f"{large.removeprefix('LightGBM, ').replace(', ', ' of ')} bring LightGBM from "
        f"{records['LightGBM']:.2f} to {records[large]:.2f} %"
    )


@place("choosing", "auto", "comparison")
def comparison(report):
    parts = {name: report[name] for name in PARTS if name in report}
    runs = runs_of(parts.values())
    systems = systems_of(runs)

    def chosen(run):
        """The model that the search chose, or the largest part of its blend."""
        model = run["chosen"].split(",")[0].split(" of ")[0].split()[-1]
        return f"blend, mostly `{model}`" if "% " in run["chosen"] and "," in run["chosen"] else f"`{model}`"

    yield "### Scores on test rows, in %"
    yield (
        "Accuracy, or average precision of the rare class if the name says so. The best score of each row is in bold; "
        "“–” was not run. “Chosen” is the model that the search of `MosaicClassifier` chose, or the largest part of "
        "its blend; if there are several splits, that of the first."
    )
    lines = [[title(name, here), rows(here), chosen(here[OURS]), *scores(here, systems)] for name, here in runs.items()]
    yield table(["data set", "rows", "chosen", *systems], lines)
    lines = []
    for part in parts:
        for some in (SYSTEMS[:-1], SYSTEMS):
            if len(names := names_with(runs, part, some)) > 1:
                cells = lowest(mean_ranks(runs, names, some)) + ["–"] * (len(SYSTEMS) - len(some))
                lines.append([f"{len(names)} {GROUPS[part]}", *cells])
    yield "Mean ranks (1 is best) over the data sets that all of these were run on:"
    yield table(["", *SYSTEMS], lines)
    for part in parts.values():
        for (name, _), run in means_of(part["records"]).items():
            if run.get("budget", 0) != BUDGETS.get(name) and "budget" in run and name in BUDGETS:
                yield (
                    f"With `time_budget={run['budget']:g}`, `MosaicClassifier` reaches {run['score']:.2f} on {name} "
                    f"in {run['fit_seconds']:.1f} s; a prediction takes {run['predict_microseconds']:g} µs per row, "
                    f"and the predictor has {run['n_bytes'] / 1e3:,.0f} kB."
                )
    short = report["short"]
    budget = short["records"][0]["budget"]
    yield (f"With a budget of {budget:g} seconds ({machine_of(short)}), on the data sets of the papers:")
    yield listing(
        short["records"],
        {
            "data set": "{set}",
            f"{budget:g} s": "{score:.2f}",
            "30 s": lambda r: f"{runs[r['set']][OURS]['score']:.2f}",
        },
    )
    yield f"{boosting()} ([learned gates](learned_gates.md#how-it-was-measured))."
    for key, (heading, show) in MEASURES.items():
        yield f"### {heading}"
        lines = [
            [name, rows(here), *(show(here[s][key]) if key in here.get(s, {}) else "–" for s in systems)]
            for name, here in runs.items()
        ]
        yield table(["data set", "rows", *systems], lines)
        if key == "fit_seconds":
            shares = [r["fit_seconds"] / r["budget"] for p in parts.values() for r in p["records"] if "budget" in r]
            yield f"The longest fit of `MosaicClassifier` took {max(shares):.0%} of its budget."
    machines: dict = {}
    for name, part in parts.items():
        counts = sorted({record["threads"] for record in part["records"]})
        used = "one thread" if counts == [1] else f"{' or '.join(map(str, counts))} threads"
        machines.setdefault(f"{machine_of(part)}; {used}", []).append(GROUPS[name])
    yield " ".join(f"{listed(names).capitalize()}: {on} for every system." for on, names in machines.items())
    for part in parts.values():
        other: dict = {}
        for r in part["records"]:
            if r.get("processor", part["machine"]["processor"]) != part["machine"]["processor"]:
                where = r["processor"] + (", one of 16 cores" if "cores" in r else "")
                other.setdefault((r["model"], where), {})[r["set"]] = None
        if other:
            texts = (f"{model} on {', '.join(sets)} ({where})" for (model, where), sets in other.items())
            yield f"Run on other machines, so times are not comparable: {'; '.join(texts)}."


@place("choosing", "anytime", "anytime")
def anytime(stored):
    """Held-out loss of the search after so many seconds, relative to LightGBM's."""
    run = stored["training rows"]
    n_sets = run["summary"][0]["sets"]
    yield (
        f"The held-out loss (log-loss, or squared error) divided by that of LightGBM as it comes, on {n_sets} sets: seven tenths of at most 30,000 "
        "training rows are fitted, and the others judge; no test row is read. These are rows on which the portfolio was chosen. Two threads each, on "
        f"{run['machine']['cores']} cores ({run['machine']['processor']}, {run['machine']['date']})."
    )
    yield listing(
        run["summary"],
        {
            "system": "{model}", "geometric mean": "{mean:.3f}", "median": "{median:.3f}", "worst": "{worst:.2f}", "lower loss": "{lower}",
            "at most 3 % higher": "{near}", "mean rank": "{rank:.2f}", "longest fit, s": "{seconds:.1f}",
        },
    )  # fmt: skip


@place("choosing", "mixing_study", "mixing")
def mixing(records):
    """Accuracy and log-loss before and after mixing, by kind of model."""
    prior = 5.0  # that of svmosaic.search.mixing
    found = {
        key: np.mean([(r["score"], r["loss"]) for r in some], axis=0)
        for key, some in grouped(records, "set", "model", "prior").items()
    }
    sets = {more: list(grouped((r for r in records if (r["classes"] > 2) == more), "set")) for more in (True, False)}
    yield (
        "**Mixing.** On training rows (`benchmarks/study_mixing.py`), judged by rows that were neither fitted nor held "
        "out in the folds: means over the data sets of the accuracy, before → after mixing, and of the change of the "
        f"log-loss. More than two classes: {', '.join(sets[True])}. Two classes: {', '.join(sets[False])}."
    )
    lines = []
    for kind in grouped(records, "model"):
        cells = []
        for names in sets.values():
            before, after = (np.array([found[name, kind, p] for name in names]) for p in (None, prior))
            change = np.mean(after[:, 1] / before[:, 1] - 1)
            cells += [f"{100 * before[:, 0].mean():.2f} → {100 * after[:, 0].mean():.2f}", f"{100 * change:+.1f} %"]
        lines.append([kind, *cells])
    heads = [f"{what}, {which}" for which in ("several classes", "two classes") for what in ("accuracy, %", "log-loss")]
    yield table(["model", *heads], lines)


# Data on a cluster, from disk and in streams ----------------------------------------------------------------------


@place("dask", "dask")
def dask(report):
    def about(part, text):
        return f"{text} ({machine_of(report[part])}.)"

    def points(r):
        return 100 * abs(r["accuracy"] - r["local_accuracy"])

    yield about(
        "cluster",
        "**Clusters versus the local model.** The largest differences over 1, 2 and 4 worker processes and three "
        "partitionings (even, very uneven, and with a single class per partition): the relative difference of the "
        "objective from the local one, and the difference of the test accuracy in percentage points.",
    )
    records = report["cluster"]["records"]
    lines = []
    for (data, n, model), fits in grouped(records, "data", "rows", "model").items():
        rounds = [fit["rounds"] for fit in fits]
        largest = max(fit["difference"] for fit in fits), max(map(points, fits))
        lines.append([data, f"{n:,}", model, len(fits), f"{largest[0]:.1e}", f"{largest[1]:.2f}",
                      f"{min(rounds)} to {max(rounds)}"])  # fmt: skip
    yield table(("set", "rows", "model", "fits", "objective", "accuracy", "rounds"), lines)
    outside = sum(r["difference"] > 1e-3 or points(r) > 0.2 for r in records)
    yield (
        f"{len(records)} fits; {outside} of them differ by more than 0.001 from the local objective or by more than "
        "0.2 points from its accuracy. All workers shared the cores of one machine, so their times are stored but not "
        "shown."
    )
    yield about(
        "traffic",
        "**Network traffic** per round of the optimizer for the squared hinge with four partitions: bytes to and from "
        "one of them.",
    )
    columns = {
        "rows": "{rows:,}", "tiles": "{tiles}", "features": "{features}", "sent": "{largest_sent:,}",
        "returned": "{largest_returned:,}", "sample for k-means, once": "{sample_for_kmeans:,}",
    }  # fmt: skip
    yield listing(report["traffic"]["records"], columns)
    yield about(
        "disk",
        "**From disk**: Parquet files of float32, `ClusteredSVC(16, loss='squared_hinge')` on one thread, in a "
        "separate process.",
    )
    columns = {
        "rows": lambda r: f"{r['rows'] // 10**6} million", "on disk": "{megabytes_on_disk:,} MB", "passes": "{passes}",
        "fit": "{fit_seconds:.0f} s", "rows/s per pass": "{rows_read_per_second:,}",
        "predict": "{predict_seconds:.0f} s", "rows/s": "{predict_rows_per_second:,}",
        "peak memory": "{peak_megabytes:,} MB", "accuracy": "{accuracy:.2p} %",
    }  # fmt: skip
    yield listing(report["disk"]["records"], columns)
    yield about(
        "learned",
        "**Learned gates**, covertype, class 2 against the rest, 200,000 training rows: in memory, from a Parquet file "
        "in chunks, and averaged over two worker processes (`benchmarks/bench_learned_large.py`).",
    )
    lines = []
    for (way, steps), fits in grouped(report["learned"]["records"], "way", "steps_between_averages").items():
        accuracy = [fit["accuracy"] for fit in fits]
        averaged = ["", fits[0]["averages"], f"{fits[0]['sent_kilobytes']:,}"] if steps is not None else None
        lines.append([
            way if steps is None else f"{way}, {steps} steps between averages",
            f"{mean(accuracy):.2f} ({', '.join(f'{a:.2f}' for a in accuracy)})",
            *(averaged or [max(fit["peak_megabytes"] for fit in fits), "", ""]),
        ])  # fmt: skip
    yield table(("rows", "test accuracy %, each seed", "peak memory, MB", "averages", "KB to a worker, each"), lines)
    yield about(
        "learned_memory",
        "**Learned gates from disk**: peak memory of a process by the number of rows in Parquet files.",
    )
    columns = {
        "rows": "{rows:,}", "as float32, MB": "{row_megabytes:,}", "peak memory, MB": "{peak_megabytes:,}",
        "accuracy %": "{accuracy:,}",
    }  # fmt: skip
    yield listing(report["learned_memory"]["records"], columns)


@place("streaming", "stream")
def streaming(report):
    records = report["records"]
    yield f"{records[-1]['rows']:,} rows of {report['features']} features in batches of {report['batch']:,}:"
    cells = ("{rows:,}", "{rows_per_second:,}", "{accuracy:.4f}", "{peak_megabytes}", "{linear_rows_per_second:,}",
             "{linear_accuracy:.4f}")  # fmt: skip
    heads = ("rows", "rows/s", "accuracy", "peak memory, MB", "linear `SGDClassifier`: rows/s", "accuracy")
    yield table(heads, [[shown(cell, r) for cell in cells] for r in records])


# Single families --------------------------------------------------------------------------------------------------


@place("kernels", "kernel")
def kernels(report):
    yield f"{machine_of(report['sets'])}, one thread:"
    seen = set()

    def first(r):
        name = f"{r['set']}, {r['rows']:,} rows"
        return "" if name in seen or seen.add(name) else name

    def model(r):
        name, comma, anchors = r["model"].partition(",")
        return f"`{name}`{comma}{anchors}"

    columns = {
        "data set": first, "model": model, "test accuracy, %": "{accuracy:.2p}", "fit, s": "{seconds:.2f}",
        "prediction, µs per row": "{microseconds:2r}", "size of what predicts, kB": "{bytes:,.0k}",
    }  # fmt: skip
    yield listing(report["sets"]["records"], columns)


@place("tables", "latency")
def latency_of_tables(report):
    part = report["adult"]
    summary = part["summary"]
    yield (
        f"Time to classify one row of adult, starting from the columns of the table ({machine_of(part)}; processor "
        f"time, one thread, the best pass over {summary['rows']} rows; `benchmarks/bench_latency.py`). Ours is "
        f"a `MosaicClassifier`, which chose `{summary['model']}` with {summary['tiles']} "
        f"tile{'s' if summary['tiles'] > 1 else ''}:"
    )
    columns = {"interface": "{what}", "test accuracy, %": "{accuracy:.2p}", "microseconds": "{microseconds:.1f}"}
    yield listing(part["records"], columns)


@place("local_coding", "local_study", "study")
def local_study(report):
    records = report["grid"]["records"]
    sets = sorted(grouped(records, "set"))
    best = {name: min(r["error"] for r in records if r["set"] == name) for name in sets}

    def lost(**setting):
        """Mean points lost to the best setting of each set, over the settings that agree with this one."""
        found = [r for r in records if all(r[key] == value for key, value in setting.items())]
        return f"{mean(r['error'] - best[r['set']] for r in found):.2f}"

    yield (
        f"Percentage points behind the best of the {len(records) // len(sets)} settings of each data set, mean over "
        f"{len(sets)} data sets. In this table, also the mean over anchors and neighbors:"
    )
    costs, neighbors = (1.0, 10.0, 100.0), sorted(grouped(records, "n_neighbors"))
    lines = [
        [f"{coding} codes, {loss.replace('_', ' ')}", *(lost(coding=coding, loss=loss, C=C) for C in costs)]
        for coding in ("softmax", "inverse")
        for loss in ("squared_hinge", "hinge")
    ]
    yield table(["", *(f"C = {C:g}" for C in costs)], lines)
    robust = {"coding": "softmax", "loss": "squared_hinge", "C": 10.0}
    yield "Softmax codes, squared hinge, C = 10:"
    lines = [
        [f'`anchors="{anchors}"`', *(lost(**robust, anchors=anchors, n_neighbors=k) for k in neighbors)]
        for anchors in ("class", "kmeans")
    ]
    yield table(["", *(f"{k} neighbors" for k in neighbors)], lines)
    behind = sum(min(r["error"] for r in records if (r["set"], r["C"]) == (name, 1.0)) > best[name] for name in sets)
    yield f"On {behind} of the {len(sets)} data sets, no setting with C = 1 is as good as the best with a larger C."


@place("local_coding", "local", "runs")
def local_runs(report):
    part = report["runs"]
    records = part["records"]
    seeds = sorted(grouped(records, "repeats"))
    yield (
        f"{machine_of(part)}; `n_jobs=2`. Test errors in %, {' or '.join(map(str, seeds))} "
        f"seed{'s' if seeds != [1] else ''}; wall-clock seconds. The linear SVM has its default C. The published "
        "figures are for 8 neighbors and 100 anchors; the one for ijcnn1 is from another paper that ran the method "
        "again."
    )
    columns = {
        "set": "{set}", "anchors": lambda r: r["settings"].get("n_anchors", 100),
        "neighbors": "{settings[n_neighbors]}", "C": "{settings[C]:g}", "linear SVM": "{linear_error:.2f}",
        "`LocallyLinearSVC`": lambda r: f"{r['error']:.2f}" + f" ± {r['deviation']:.2f}" * (r["repeats"] > 1),
        "published": "{published_error:.2f}", "fit, s": "{fit_seconds:.2f}", "µs per row": "{row_microseconds:.2f}",
    }  # fmt: skip
    yield listing(records, columns)
    for r in records:
        if kernel := r.get("kernel"):
            took = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in r["stages"].items())
            yield (
                f"On {r['set']}, {kernel['peer']} (RBF, C = 10, gamma = 5, not tuned, number of threads not set) was "
                f"run too: its error is {kernel['error']:.2f} %, it fits in {kernel['fit_seconds']:.1f} s and takes "
                f"{kernel['row_microseconds']:.0f} µs per row. A fit of `LocallyLinearSVC` there spends its time on: "
                f"{took}."
            )


# Mixtures ---------------------------------------------------------------------------------------------------------

# Accuracy in the papers, in %.
PUBLISHED = {
    ("MixtureSVC", "svmguide1"): 83.27, ("MixtureSVC", "ijcnn1"): 93.41, ("MixtureSVC", "usps"): 95.71,
    ("MixtureSVC", "mnist38"): 98.46, ("MultiTaskMixtureSVC", "ijcnn1"): 96.32,
    ("MultiTaskMixtureSVC", "svmguide1"): 87.88, ("MultiTaskMixtureSVC", "pendigits"): 98.28,
    ("MultiTaskMixtureSVC", "satimage"): 89.70, ("MultiTaskMixtureSVC", "skin"): 98.70,
}  # fmt: skip


@place("mixtures", "mixtures_accuracy mixtures_satimage", "satimage")
def satimage(accuracies, study):
    changes, blocks, near = study["changes"], study["blocks"], study["nearest"]
    lines = [{"name": name, **r} for name, r in (changes | study["references"]).items()]
    columns = {
        "": "{name}", "accuracy": "{accuracy:.2f}", "moved": "{moved_by_labels:.1f}",
        "recall of class 4": "{recall[4]:.1f}",
    }  # fmt: skip
    yield listing([r | {"recall": {4: r["recall"]["4"]}} for r in lines], columns)
    reached = {name: r["accuracy"] for name, r in changes.items()}
    best, kernel = reached["14 experts"], study["references"]["RBF SVM, C = 10"]["accuracy"]
    moved = {name: r["moved_by_labels"] for name, r in changes.items()}
    below = study["eigenvalues"]["below"]
    (tried,) = (r for r in accuracies if (r["model"], r["set"]) == ("MultiTaskMixtureSVC", "satimage"))

    def by_experts(weight):
        """Accuracy of 7, 14 and 28 experts with this label weight by cross-validation."""
        found = {
            setting["n_experts"]: cv
            for setting, cv in tried["runners_up"]
            if (setting["label_weight"], setting["covariance_floor"]) == (weight, 0.1)
        }
        return listed([f"{found[n]:.2f}" for n in (7, 14, 28)])

    yield f"""\
- *The covariance floor matters.* The 36 features are nine neighboring pixels in four bands, that is, nearly the same four
  numbers nine times. Without a floor, {100 * below["0.1"]:.0f} % of the eigenvalues of the covariances lie below a tenth of the
  features' variance, and {100 * below["0.01"]:.0f} % below a hundredth: the Gaussians are thin sheets, and a new row is assigned to
  whichever happens to pass close to it. A floor of 0.1 gains {best - reached["covariance floor 0.01"]:.1f} points over 0.01 and
  {best - reached["covariance floor 0.001"]:.1f} over 0.001.
- *The label weight matters.* With 5, the default, {moved["label weight 5"]:.1f} % of the rows are assigned to another expert than the
  gate would choose; with 1, {moved["14 experts"]:.1f} %. Test rows have no labels. The default costs
  {best - reached["label weight 5"]:.1f} points with 14 experts, although it helps on other data sets.
- *The imbalance does not matter.* Every model has trouble with the rare class 4, including the RBF SVM. Equal class weights
  find more of it ({changes["classes weighted equally"]["recall"]["4"]:.1f} %) and cost
  {best - reached["classes weighted equally"]:.1f} points over all.
- *The test part is not unusual.* Its pixels lie among the training pixels: the median distance to the nearest training row is
  {near["test rows"]:.2f} for a test row, {near["shuffled folds"]:.2f} for a row of a shuffled fold, and {near["blocks"]:.2f} for a
  row of a contiguous third of the scene. Shuffled folds are therefore the right ones to use. Contiguous thirds are far harder
  ({blocks["14 experts"]["accuracy"]:.2f}) and also favor a label weight of 1
  ({blocks["label weight 5"]["accuracy"]:.2f} with 5).
- *What is left to gain.* An RBF SVM reaches {kernel:.2f} in these folds, {kernel - best:.1f} points more than the mixture of 14.
- *The number of experts matters.* In the six splits of the search, 7, 14 and 28 experts reach {by_experts(1.0)} with a label weight of 1, and
  {by_experts(5.0)} with 5: with enough experts, the label weight matters less, and the published 14 are few.
- *The search matters.* One round of three folds and ten iterations chose a label weight of 5 with 14 experts, which was not
  good enough. Six splits with all iterations detect the difference."""


@place("mixtures", "mixtures mixtures_accuracy", "runs")
def mixture_runs(costs, accuracies):
    machine, found = costs["machine"], costs["speed"]
    yield (
        f"**Speed** ({machine['processor']}, {machine['date']}, load {machine['load']} at the end), ijcnn1, "
        f"{found['rows']:,} rows, {found['experts']} experts, C = 100:"
    )
    lines = [
        (
            "one EM iteration versus one fit of `KMeansSVC` with {experts} cells",
            "{iteration_seconds:.2f} versus {kmeans_svc_seconds:.2f}",
            *("{iteration_over_kmeans_svc:.2f}", "{iteration_over_kmeans_svc_processor:.2f}", ""),
        ),
        (
            "scikit-learn's `SVC` (RBF, C = 100, gamma = 16) versus a whole fit of {fit_iterations} iterations",
            "{svc_seconds:.1f} versus {fit_seconds:.1f}",
            *("{svc_over_fit:.1f}", "{svc_over_fit_processor:.1f}", "{svc_accuracy:.2p} versus {fit_accuracy:.2p}"),
        ),
    ]
    heads = ("", "seconds", "ratio", "ratio of processor time", "accuracy")
    yield table(heads, [[shown(cell, found) for cell in line] for line in lines])
    yield "Ten iterations on increasing numbers of rows:"
    columns = {
        "rows": "{rows:,}", "processor seconds": "{processor_seconds:.2f}",
        "µs per row and iteration": lambda r: f"{1e5 * r['processor_seconds'] / r['rows']:.1f}",
    }  # fmt: skip
    yield listing(costs["rows"]["table"], columns)
    prune, growth = costs["prune"], costs["growth"]
    tried = ", ".join(shown("{share:.0%} leaves {experts} ({accuracy:.1p} %)", r) for r in prune["table"])
    yield (
        f"**Size**, MNIST odd versus even, {growth[0]['experts_at_start']} experts at the start, `nu` "
        f"{prune['share']:.0%} of the rows. This is the largest share within one standard error of the best on rows "
        f"held out of {prune['rows']:,}: {tried}. The RBF SVM has C = 10 and scikit-learn's default gamma."
    )
    run = "{support_vectors:,}"
    columns = {
        "rows": "{rows:,}", "live experts": "{experts}", "accuracy": "{accuracy:.2p}",
        "support vectors of an RBF SVM": lambda r: "not run" if r["support_vectors"] is None else shown(run, r),
        "its accuracy": "{svc_accuracy:.2p}",
    }  # fmt: skip
    yield listing(growth, columns)
    yield "**Accuracy** in % on the test parts, with the standard deviation over seeds."
    columns = {
        "model": "{model}", "set": lambda r: r["set"] + " *" * ("runners_up" not in r),  # those of an earlier search
        "setting": lambda r: ", ".join(f"{name}={value}" for name, value in r["setting"].items()),
        "cross-validation": "{cv:.2f}",
        "test": lambda r: f"{r['test_mean']:.2f}" + f" ± {r['test_std']:.2f}" * (r["seeds"] > 1), "seeds": "{seeds}",
        "published": lambda r: f"{PUBLISHED[r['model'], r['set']]:.2f}",
    }  # fmt: skip
    yield listing(sorted(accuracies, key=lambda r: (r["model"], r["set"])), columns)


# Fusion -----------------------------------------------------------------------------------------------------------

# Error rates printed in the paper's tables 2 and 3, and its share of support vectors.
PAPER = {
    "diabetes": {"svm": 29.9, "support": 50.0, "gmd1": 28.6, "gmd2": 30.5, "gmd32": 24.7, "fused1": 30.5, "fused32": 27.3},
    "german": {"svm": 24.5, "support": 54.4, "gmd1": 24.0, "gmd2": 26.5, "gmd32": 30.0, "fused1": 22.5, "fused32": 33.0},
    "heart": {"svm": 25.9, "support": 56.0, "gmd1": 22.2, "gmd2": 22.2, "gmd32": 27.8, "fused1": 22.2, "fused32": 18.5},
    "vehicle": {"svm": 60.2, "support": 50.7, "gmd1": 53.8, "gmd2": 49.1, "gmd32": 35.1, "fused1": 55.0, "fused32": 35.7},
}  # fmt: skip


def spread(entry, digits=1) -> str:
    return f"{entry['mean']:.{digits}f} ± {entry['std']:.{digits}f}"


def paper_tables(results):
    found = results["tables"]
    names = ("svm", "gmd1", "gmd2", "gmd32", "fused1", "fused32")
    head = ["error %", "SVM", "GMD 1", "GMD 2", "GMD 32", "fused 1", "fused 32"]
    rows = [[name, *(f"{spread(t['errors'][key])} ({PAPER[name][key]})" for key in names)] for name, t in found.items()]
    beyond = [
        [name, f"{t['errors']['support']['mean']:.0f} ({PAPER[name]['support']})", spread(t["errors"]["raw32"]),
         spread(t["errors"]["gmd_full"]),
         spread(t["errors"]["no_bias"]) if "no_bias" in t["errors"] else "–"]
        for name, t in found.items()
    ]  # fmt: skip
    worst = max(t["errors"]["conversion"]["mean"] for t in found.values())
    decades = [t["errors"]["scale_decades"]["mean"] for t in found.values()]
    return f"""### Tables 2 and 3

Test errors in percent, mean ± standard deviation over {results["splits"]["tables"]} random 80/20 splits; in brackets, the
paper's figures, from one split each. The fused models have w = 0.5, with one and with 32 densities per class. C and gamma are chosen from
25 pairs by three-fold cross-validation on the training part; covariances are diagonal and pooled.

{table(head, rows)}

The paper's figures are single draws from distributions of this width, so most differences are not meaningful. The printed SVM
error of {PAPER["vehicle"]["svm"]} on vehicle is implausible. No fused model improves on its SVM by more than a fraction of the standard
deviation, and a fixed weight can hurt: with one Gaussian per class, the mixture for vehicle is so poor that blending it in at
w = 0.5 raises the error from {found["vehicle"]["errors"]["svm"]["mean"]:.1f} to {found["vehicle"]["errors"]["fused1"]["mean"]:.1f}.

Further variants: the share of support vectors (in brackets, the paper's figures), w = 0.5 with 32 densities on the raw
scale (where the result follows the mixture or the SVM, whichever is larger), one full pooled covariance, and the SVM with its bias as printed.

{table(["", "SV %", "fused 32, raw", "GMD 1, full", "SVM, printed bias"], beyond)}

The mixture form reproduces the SVMs' decision values to {worst:.0e} (mean over splits of the largest difference, on the
worst data set). The two raw scales are {min(decades):.0f} to {max(decades):.0f} orders of magnitude apart."""


def insurance(results):
    rows, kept, better = [], 0, set()
    for name, cases in results["insurance"].items():
        for case, r in cases.items():
            best = min(r["svm"]["mean"], r["gmd"]["mean"])
            fine = r["auto"]["mean"] <= best + 0.5
            kept += fine
            if fine and r["svm"]["mean"] - r["auto"]["mean"] > r["auto"]["std"]:
                better.add(name)
            rows.append([name, case, spread(r["svm"]), spread(r["gmd"]), spread(r["auto"]), f"{r['weight']['mean']:.2f}",
                         "yes" if fine else "no"])  # fmt: skip
    head = ["", "SVM", "its error", "mixture", "fused, auto", "weight", "within 0.5 of the better"]
    return f"""### Where fusion helps

SVMs with a kernel that is too narrow, and SVMs trained with 20 % of the labels flipped (d features). The mixture is the
one that `weight="auto"` chose (1, 2, 4 or 8 densities per class); {results["splits"]["insurance"]} splits; test labels are not flipped.

{table(head, rows)}

In {kept} of {len(rows)} cases, the fusion is no more than 0.5 points behind the better of its parts. In some of these cases, on
{", ".join(sorted(better)) or "no set"}, it is also better than a poor SVM by more than a standard deviation. The main reason is that
cross-validation gives the weight to the better part; a true blend (a weight well between 0 and 1) is rarely the best.

How the rule of `weight="auto"` was chosen is described in the [appendix](appendix.md#fusion)."""


def semi_supervised(results):
    rows, gains = [], {"semi": [], "semi_tenth": []}
    for name, kinds in results["semi"].items():
        for kind, r in kinds.items():
            for key, found in gains.items():
                if r[key]["mean"] < r["labelled"]["mean"]:
                    found.append((r["labelled"]["mean"] - r[key]["mean"], f"{name} ({kind})"))
            rows.append([name, kind, *(spread(r[key]) for key in ("labelled", "semi", "semi_tenth", "all_labels"))])
    full, tenth = (", ".join(name for _, name in sorted(found, reverse=True)) or "none" for found in gains.values())
    head = ["", "covariance", "labeled rows only", "all rows", "all rows, unlabeled weigh 0.1", "every label known"]
    return f"""### Five percent of the labels

Errors with one density per class and 5 % of the training labels known (at least two per class), {results["splits"]["semi"]} splits
(satimage has one official split; only the choice of the labeled rows varies).

{table(head, rows)}

With full weight, unlabeled rows lower the mean error in {len(gains["semi"])} of {len(rows)} cases ({full}); with a weight of 0.1 in
{len(gains["semi_tenth"])} ({tenth}). Some of these gains are far below the standard deviation, and in all other cases
unlabeled rows do not help, or hurt, because EM then finds groups other than the classes. The weight and the covariance were not
chosen by cross-validation: each row of the table is a separate setting, and picking the best of them would be a choice in hindsight."""


def reduction(results):
    found = results["tables"]
    shares = sorted((key for key in next(iter(found.values()))["curve"]), key=int)
    head = ["error %", *("all" if s == "1" else f"1/{s}" for s in shares)]
    errors = [[name, *(spread(t["curve"][s]) for s in shares)] for name, t in found.items()]
    seconds = []
    for name, t in results["speed"].items():
        line = [f"{1e3 * t[key]['mean']:.1f}" for key in ("SVC", "one-vs-rest SVC")]
        line += [f"{1e3 * t[key]['mean']:.1f} ({t['SVC']['mean'] / t[key]['mean']:.0f}x)" for key in shares]
        seconds.append([name, f"{t['n_support']['mean']:.0f}", *line])
    good = [
        name for name, t in found.items()
        if results["speed"][name]["SVC"]["mean"] >= 5 * results["speed"][name]["10"]["mean"]
        and t["curve"]["10"]["mean"] <= t["curve"]["1"]["mean"] + 1
    ]  # fmt: skip
    return f"""### Fewer densities: `max_densities`

The support vectors are clustered, the centers are moved, and the weights are solved for, so that the decision values on the training
rows stay close to the original ones. Test errors with all support vectors and with a fraction of them, {results["splits"]["tables"]} splits:

{table(head, errors)}

Milliseconds of processor time to predict 5,000 rows, one thread, best of three, mean over {results["splits"]["speed"]} splits, and
the speedup over scikit-learn's `SVC` (one-vs-one for vehicle):

{table(["", "support vectors", "SVC", "one-vs-rest SVC", *("all" if s == "1" else f"1/{s}" for s in shares)], seconds)}

With one tenth of the densities, prediction is at least five times as fast as `SVC`, and the error is at most one point higher, on
{", ".join(good) or "no set"}."""


@place("fusion", "fusion")
def fusion(report):
    return [part(report) for part in (paper_tables, insurance, semi_supervised, reduction)]


# Learned gates ----------------------------------------------------------------------------------------------------

# Models and sets whose name on the page is not the stored one.
NAMES = {
    "learned, polished": "learned, with `polish=True`",
    "learned, curves": "learned, `pieces=12`, 12 epochs",
    "covtype": "covtype, class 2 against the rest",
}
STOPPED_EARLY = "2026-11-16"  # since then early stopping is the default
BIG = "LightGBM, 500 trees, 127 leaves"


def named(name) -> str:
    return NAMES.get(name, name)


def aligned(columns, rows, n_text) -> str:
    """A table whose first columns are text and whose others are numbers on the right."""
    first, line, *rest = table(columns, rows).splitlines()
    line = "| " + " | ".join(["---"] * n_text + ["---:"] * (len(columns) - n_text)) + " |"
    return "\n".join([first, line, *rest])


def curves_of(report) -> list:
    """The sets whose accuracy is stored for several numbers of tiles."""
    return [name for name in ("ijcnn1", "letter", "satimage", "covtype") if f"{name} curve" in report]


def picture(name) -> str:
    return f"learned_{name}.svg"


@place("learned_gates", "learned", "runs")
def learned(report):
    def is_old(r):
        return r["model"].startswith("learned") and r["date"] < STOPPED_EARLY

    old = [part for part, found in report.items() if any(is_old(r) for r in found["records"])]
    if old:
        yield (
            f"Some learned gates in these parts were run before {STOPPED_EARLY} with the default of that time, all 40 "
            f"epochs without early stopping: {', '.join(old)}."
        )
    heads = ("model", "tiles", "accuracy %", "fit, s", "prediction, µs per row", "trained on", "memory beyond X, MB")
    for name in ("ijcnn1", "letter", "satimage", "mnist", "covtype"):
        part = report[name]
        days, machine = sorted(grouped(part["records"], "date")), part["machine"]
        lines = []
        for (model, tiles), found in grouped(part["records"], "model", "tiles").items():
            accuracy = f"{mean(r['accuracy'] for r in found):.2f}"
            if len(found) > 1:
                accuracy += " (" + ", ".join(f"{r['accuracy']:.2f}" for r in found) + ")"
            memory = max((r["peak_megabytes"] for r in found if r["peak_megabytes"] is not None), default="")
            seconds, cost = (f"{mean(r[key] for r in found):.2f}" for key in ("fit_seconds", "row_microseconds"))
            lines.append([named(model), tiles or "", accuracy, seconds, cost, f"{found[0]['train_rows']:,}", memory])
        yield f"**{named(name)}** ({' and '.join(days)}, {machine['processor']}, load {machine['load']} at the end)"
        yield aligned(heads, lines, 1)
    kept = [r["kept_polished"] for part in report.values() for r in part["records"] if "kept_polished" in r]
    yield (
        "`polish=True` holds out a part of the rows and keeps the polished tiles only if they are better on it: they "
        f"were kept in {sum(kept)} of {len(kept)} runs. In the other runs, such a row differs from the one above it "
        "only in the rows that were held out."
    )
    found = grouped(report["covtype"]["records"], "model", "tiles")
    base = found[BIG, None][0]["fit_seconds"]
    ratios = [
        f"{named(model)}, {tiles} tiles: {mean(r['fit_seconds'] for r in group) / base:.2f}"
        for (model, tiles), group in found.items()
        if model.startswith("learned")
    ]
    yield f"Fit time on covertype relative to {BIG}: {'; '.join(ratios)}."
    yield "Learned regions compared with fixed regions, by the number of tiles and by cost:"
    for name in curves_of(report):
        records = report[f"{name} curve"]["records"]
        about = f"{named(name)}: accuracy against tiles and against microseconds per row"
        yield f"![{about}](images/{picture(name)})"
        yield f"{named(name)}, {records[0]['train_rows']:,} training rows:"
        measures = {"accuracy": "accuracy %", "row_microseconds": "µs per row"}
        found, models = grouped(records, "model", "tiles"), grouped(records, "model")
        lines = [
            [tiles, *(f"{mean(r[key] for r in found[model, tiles]):.2f}" for model in models for key in measures)]
            for tiles in sorted(grouped(records, "tiles"))
        ]
        heads_here = [f"{model}, {words}" for model in models for words in measures.values()]
        yield aligned(["tiles", *heads_here], lines, 0)


@place("learned_gates", "gpu devices", "gpu")
def on_a_gpu(report, devices):
    machine = devices["machine"]
    yield (
        f"`LearnedGateSVC` with 1000 tiles and 40 epochs on covertype, on the {machine['accelerator']} and on the "
        f"{machine['cores']} cores of the same machine ({machine['processor']}, {machine['date']}; "
        "`benchmarks/bench_devices.py`). A fit begins with k-means on one core, which takes most of the time of a fit "
        "on the accelerator:"
    )
    columns = {
        "task": "{task}", "device": "{device}", "pieces": lambda r: r["pieces"] or "none",
        "batch": lambda r: r.get("batch_size", "default"), "test accuracy %": "{accuracy}",
        "epochs s": "{epochs_seconds}", "whole fit s": "{fit_seconds}",
        "compiling s": lambda r: r.get("compile_seconds", "–"),
    }  # fmt: skip
    yield listing(devices["records"], columns)
    machine = next(iter(report.values()))["machine"]
    yield (
        f"The learner itself, without the estimator ({machine['device']}, JAX {machine['jax']}; "
        "`benchmarks/bench_gpu.py`), with settings fixed beforehand, one run each:"
    )
    columns = {
        "task": "{name}", "rows": "{rows:,}", "features": "{features}", "tiles": "{tiles}", "epochs": "{epochs}",
        "test accuracy %": "{accuracy}", "training s": "{train_seconds}", "compiling s": "{compile_seconds}",
        "transfer s": "{transfer_seconds}",
    }  # fmt: skip
    runs = [part["records"][0] | {"name": name} for name, part in report.items() if name != "scaling"]
    yield listing(runs, columns)
    large = report["ten million rows"]["records"][0]
    yield (
        f"Predicting {large['rows']:,} rows takes {large['predict_from_host_seconds']} s from host memory and "
        f"{large['predict_from_device_seconds']} s if the rows are on the device. Time of one epoch with 256 tiles and "
        "50 features, for 100,000 to 50 million rows on the device:"
    )
    yield f"![Seconds per epoch against rows on an accelerator](images/{picture('gpu')})"
    yield listing(report["scaling"]["records"], {"rows": "{rows:,}", "seconds per epoch": "{epoch_seconds}"})


@place("learned_gates", "gates", "seeds")
def seeds(report):
    tried = {name: len(part["summary"]["held_out"]) for name, part in report.items()}
    most = max(tried.values())
    earlier = [f"{name} {number}" for name, number in tried.items() if number < most]
    yield (
        f"**Tuned.** Settings chosen among the same {most} for all data sets by three-fold cross-validation on "
        "training rows, then fitted with five seeds (one thread per fit; `benchmarks/bench_gates.py`). Fits without a "
        "time were made on a busy machine."
        + (f" Chosen from an earlier, shorter list: {', '.join(earlier)} settings." if earlier else "")
    )
    lines = []
    for name, part in report.items():
        one = part["summary"]
        each = ", ".join(f"{r['accuracy']:.2f}" for r in part["records"])
        timed = [r["fit_seconds"] for r in part["records"] if "fit_seconds" in r]
        lines.append([name, one["setting"], f"{one['held_out'][one['setting']]:.2f}", one["accuracy"], each,
                      f"{mean(timed):.1f}" if timed else "–", machine_of(part)])  # fmt: skip
    heads = ("set", "best setting", "held out %", "test accuracy %", "each seed", "fit s", "machine")
    yield table(heads, lines)


@place("learned_gates", "learned_study", "defaults")
def learned_defaults(report):
    part = report["defaults"]
    yield (
        f"**Defaults.** Percentage points of accuracy behind the best of {len(part['summary'])} settings of each data "
        f"set, mean over {len(grouped(part['records'], 'set'))} data sets, on a quarter held out of at most 4000 "
        "training rows, two seeds (`benchmarks/study_defaults.py`). Differences below half a point are within chance. "
        'The default is "one gate, early stopping", with 100 tiles.'
    )
    lines = [{"name": name, **one} for name, one in part["summary"].items()]
    columns = {"setting": "{name}", "points behind": "{points_behind}", "processor seconds, all sets": "{seconds}"}
    yield listing(sorted(lines, key=lambda one: one["points_behind"]), columns)


# Curves -----------------------------------------------------------------------------------------------------------

MODELS = (
    "LinearSVC", "KMeansSVC", "ClusteredSVC", "LocallyLinearSVC", "MixtureSVC", "MultiTaskMixtureSVC",
    "LearnedGateSVC", "TreeSVC",
)  # fmt: skip
EBM = "explainable boosting machine"
NOTICED = 0.005  # differences of accuracy from which a set counts as better or worse


def percent(value) -> str:
    return "–" if value is None else f"{100 * value:.2f}"


def without_and_with(records, *keys) -> dict:
    """Means of the scores, without and with pieces, of the models that have both."""
    found = {}
    for key, some in grouped(records, *keys).items():
        pair = [[r["score"] for r in some if (r["pieces"] is not None) == with_pieces] for with_pieces in (False, True)]
        if all(pair):
            found[key] = tuple(map(mean, pair))
    return found


@place("pieces", "pieces gates", "adult")
def pieces_of_adult(pieces, gates):
    part, more = pieces["adult"], gates["adult"]
    records = part["records"]
    alone = next(r for r in records if r["model"] == "LinearSVC alone")
    yield (
        f"**adult** (text columns one-hot, test part; {machine_of(part)}). `LinearSVC(pieces={alone['pieces']})` on "
        f"unscaled columns has an accuracy of {percent(alone['score'])} % and is fitted in {alone['seconds']:.2f} s of "
        "processor time. With standardized columns and settings chosen by three-fold cross-validation on training "
        "rows, without and with `pieces`:"
    )
    lines = []
    for model in MODELS:
        pair = sorted((r for r in records if r["model"] == model), key=lambda r: r["pieces"] is not None)
        if len(pair) == 2:
            seconds = [f"{r['seconds']:.2f}" for r in pair]
            lines.append([f"`{model}`", *(percent(r["score"]) for r in pair), *seconds])
    yield table(["model", "without, %", "with, %", "fit without, s", "fit with, s"], lines)
    summary, accuracies = more["summary"], [r["accuracy"] for r in more["records"]]
    yield (
        f"With {len(summary['held_out'])} settings to choose from, again by three folds of training rows, "
        f"`LearnedGateSVC` reaches {summary['accuracy']:.2f} % with “{summary['setting']}” (the mean of "
        f"{len(accuracies)} seeds, which reach {min(accuracies):.2f} to {max(accuracies):.2f} %; "
        "`benchmarks/bench_gates.py`, [all data sets](learned_gates.md#how-it-was-measured)). This list was extended "
        "after test scores of adult had been seen ([appendix](appendix.md#learned-gates))."
    )
    plain, pairs = (next(r for r in records if r["model"] == name) for name in (EBM, f"{EBM} with pairs"))
    yield (
        f"For comparison, an {EBM} reaches {percent(plain['score'])} % and is fitted in {plain['seconds']:.0f} s; "
        f"with pairs of columns, {percent(pairs['score'])} % in {pairs['seconds']:.0f} s."
    )


@place("pieces", "pieces", "splines")
def splines(pieces):
    part = pieces["splines"]
    yield (
        "**Compared with an expanded matrix**: the same objective, minimized from our encoded rows and from a matrix "
        "expanded by `SplineTransformer(degree=1)` for scikit-learn's `LinearSVC`, until it is within a thousandth of "
        f"the optimum ({machine_of(part)}; one thread; times include finding the knots; memory beyond the rows "
        "themselves; the expanded matrix is sparse; scikit-learn's default, `dual='auto'`, is the primal solver here):"
    )
    columns = {
        "set": "{set}", "method": "{way}",
        "seconds": lambda r: f"{r['seconds']:.3g}" + " (not reached)" * (not r["reached"]), "MB": "{megabytes}",
    }  # fmt: skip
    yield listing(part["records"], columns)
    for name, (ours, *others) in grouped(part["records"], "set").items():
        faster = min(others, key=lambda r: r["seconds"])
        longer, larger = (faster[key] / ours[key] for key in ("seconds", "megabytes"))
        yield f"On {name}, the faster of the two takes {longer:.1f} times as long and {larger:.1f} times the memory."


@place("pieces", "pieces", "tables")
def pieces_of_tables(pieces):
    part = pieces["tables"]
    titles = {"mammography": "mammography, average precision", "wine_white": "wine_white, seven classes, accuracy"}
    yield (
        f"**Skewed columns**, scores in % without and with `pieces` ({machine_of(part)}; means of five folds, settings "
        "chosen by cross-validation on training rows):"
    )
    found = without_and_with(part["records"], "set", "model")
    models = [m for m in MODELS if all((name, m) in found for name in titles)]
    heads = [f"{title}, {how}" for title in titles.values() for how in ("without", "with")]
    yield table(["model", *heads], [[f"`{m}`", *(percent(v) for s in titles for v in found[s, m])] for m in models])

    def better(name):
        """Which models are better with pieces, with a verb."""
        some = [m for m in models if round(found[name, m][1], 4) > round(found[name, m][0], 4)]
        if len(some) == len(models):
            return "all models are"
        return f"{' and '.join(f'`{m}`' for m in some)} {'is' if len(some) == 1 else 'are'}" if some else "no model is"

    counts = ", and ".join(f"on {name}, {better(name)} better with pieces" for name in titles)
    yield f"{counts[0].upper()}{counts[1:]}."
    by_model = grouped((r for r in part["records"] if r["set"] == "mammography"), "model")
    plain, pairs = (percent(mean(r["score"] for r in by_model[name])) for name in (EBM, f"{EBM} with pairs"))
    yield f"For comparison, an {EBM} reaches {plain} on mammography, and {pairs} with pairs of columns."


@place("pieces", "pieces", "sets")
def pieces_of_sets(pieces):
    part, large, coupled = (pieces[name] for name in ("sets", "large", "coupled"))
    records = part["records"] + large["records"] + coupled["records"]
    first = len({r["set"] for r in coupled["records"] if r["model"] == "MultiTaskMixtureSVC"})
    names, models = grouped(records, "set"), [m for m in MODELS if any(r["model"] == m for r in records)]
    found = without_and_with(records, "set", "model")
    yield (
        f"**The papers' data sets**, test accuracy in % without → with 16 knots ({machine_of(part)}; standardized, "
        "settings chosen by three-fold cross-validation on the training part; covtype with 50,000 and mnist with "
        f"10,000 of its rows on {machine_of(large)}, and no mixture on mnist, whose full covariances of 784 columns "
        f"take hours to choose among; `ClusteredSVC`, and `MultiTaskMixtureSVC` on the first {first} sets only, on "
        f"{machine_of(coupled)}). The last lines count the sets on which accuracy is higher or lower by at least half "
        "a point:"
    )

    def pair(name, model):
        return " → ".join(map(percent, found[name, model])) if (name, model) in found else "–"

    def count(model, sign):
        return sum(sign * (after - before) >= NOTICED for (_, m), (before, after) in found.items() if m == model)

    counts = [[word, *(count(m, sign) for m in models)] for word, sign in (("higher on", 1), ("lower on", -1))]
    lines = [[name, *(pair(name, m) for m in models)] for name in names]
    yield table(["set", *(f"`{m}`" for m in models)], lines + counts)


@place("pieces", "devices", "covertype")
def pieces_of_covertype(devices):
    yield shown(
        "**covertype**, 522,911 training rows, `LearnedGateSVC` with 1000 tiles and 40 epochs on "
        "{cores} cores ({processor}, {date}; `benchmarks/bench_devices.py`):",
        devices["machine"],
    )
    columns = {
        "task": "{task}", "pieces": lambda r: r["pieces"] or "none", "accuracy, %": "{accuracy}",
        "fit, s": "{fit_seconds}", "processor time, s": "{processor_seconds}",
    }  # fmt: skip
    yield listing([r for r in devices["records"] if r["device"] == "cpu"], columns)


@place("pieces", "pieces", "prediction")
def pieces_predict(pieces):
    part = pieces["predict"]
    yield (
        f"**Prediction**, ijcnn1 through `predictor()` ({machine_of(part)}; one thread): microseconds for one row, and "
        "nanoseconds per row of a batch, without and with 16 knots:"
    )

    def ratio(key):
        return lambda r: r[key][1] / r[key][0]

    row, batch = ratio("row_microseconds"), ratio("batch_nanoseconds")
    lines = [
        [r["model"], r["dtype"], "{} → {}".format(*r["row_microseconds"]), f"{row(r):.2f}",
         "{} → {}".format(*r["batch_nanoseconds"]), f"{batch(r):.2f}"]
        for r in part["records"]
    ]  # fmt: skip
    yield table(["model", "type", "one row", "ratio", "batch", "ratio"], lines)
    most = [max(map(of, part["records"])) for of in (row, batch)]
    yield "Curves thus cost at most {:.2f} times as much for one row, and {:.2f} times for a batch.".format(*most)


# Threads, tolerances and starts -----------------------------------------------------------------------------------


@place("performance", "threads", "fits")
def fits(report):
    part = report["fits"]
    summary = part["summary"]
    yield (
        f"Fits to covertype ({summary['features']} features, {summary['classes']} classes, float32; "
        f"{machine_of(part)}; `benchmarks/bench_threads.py`): wall-clock seconds and, in brackets, the speedup over "
        "one thread. Memory is the peak growth of the process, without the rows themselves."
    )

    def seconds(r, alone):
        if r["seconds"] is None:
            return f"over {summary['limit_seconds']:.0f}"
        compared = r["threads"] > 1 and alone is not None and alone["seconds"] is not None
        return f"{r['seconds']:.1f}" + (f" ({alone['seconds'] / r['seconds']:.1f}x)" if compared else "")

    def fit(r):
        name, comma, setting = r["model"].partition(",")
        return f"`{name}`{comma}{setting}"

    def memory(group):
        most = max((r["peak_mb"] for r in group if r["seconds"] and r["peak_mb"] is not None), default=None)
        return "" if most is None else f"{most:,}"

    def accuracy(group):
        return next((f"{r['accuracy']:.2f}" for r in group if r["seconds"] is not None), "")

    more = {"test accuracy, %": accuracy, "memory, MB": memory}
    yield by_threads(part["records"], {"fit": fit, "rows": "{rows:,}"}, seconds, more)
    different = [
        f"`{model.split(',')[0]}`"
        for (model, _), group in grouped(part["records"], "model", "rows").items()
        if not model.startswith("LightGBM") and len({r["digest"] for r in group} - {None}) > 1
    ]
    if different:
        yield (
            f"In this run, the scores of {', '.join(different)} were not bit-for-bit the same for all numbers of "
            "threads, as they should be; all others were."
        )
    else:
        yield "The scores of each line are bit-for-bit the same for every number of threads."


@place("performance", "threads", "predictions")
def predictions(report):
    part = report["predictions"]
    yield (
        f"Batches scored by a compiled predictor ({machine_of(part)}): millions of rows per second and, in brackets, "
        "the speedup over one thread. A call starts only as many threads as it has work for."
    )

    def speed(r, alone):
        compared = f" ({r['rows_a_second'] / alone['rows_a_second']:.1f}x)" if r is not alone and alone else ""
        return f"{r['rows_a_second'] / 1e6:.2f}{compared}"

    yield by_threads(part["records"], {"model": "{model}", "batch size": "{batch:,}"}, speed)


@place("performance", "threads", "roofline")
def roofline(report):
    records = report["roofline"]["records"]
    counts = sorted(grouped(records, "threads"))
    yield (
        "The scorer compared with the limits of the machine: billions of floating-point operations and of bytes per "
        "second. The limits are measured with float32 matrix products (one BLAS call per thread) and a triad over "
        "arrays larger than the caches. The numbers of the scorer count the gate, the chosen tiles, the row and its "
        "scores once each, in the largest batch above."
    )
    some = dict.fromkeys((counts[0], counts[-1]))
    lines = []
    for what, group in grouped(records, "what").items():
        found = {r["threads"]: r for r in group}
        lines.append([what, *(f"{found[n][key]:,.1f}" for n in some for key in ("gflops", "gigabytes_a_second"))])
    yield table(["what", *(f"{unit}, {threads(n)}" for n in some for unit in ("GFLOP/s", "GB/s"))], lines)


@place("performance", "tol", "tolerances")
def tolerances(report):
    yield (
        f"**`tol`.** Three folds of at most 12,000 training rows of {len(report)} data sets, compared with `tol=1e-4` "
        f"({machine_of(next(iter(report.values())))}; `benchmarks/study_tol.py`): the percentage points of accuracy "
        "that a larger `tol` loses on the data set where it loses most, the number of data sets on which it loses 0.05 "
        "points or more (on small data sets, one row is more than that), and the processor seconds of all fits."
    )
    records = [r | {"name": name} for name, part in report.items() for r in part["records"]]
    lines = []
    for (model, tol), group in grouped(records, "model", "tol").items():
        worst = max(group, key=lambda r: r["points_lost"])
        largest = shown("{points_lost:.2f} ({name})", worst) if worst["points_lost"] > 0 else "0.00"
        behind = sum(r["points_lost"] >= 0.05 for r in group)
        lines.append([f"`{model}`", f"{tol:g}", largest, behind, f"{sum(r['processor_seconds'] for r in group):.0f}"])
    yield table(["fit", "`tol`", "largest loss, points", "data sets that lose 0.05", "processor seconds"], lines)


@place("performance", "start", "start")
def start(report):
    part = report["start"]
    seconds = {r["command"]: r["processor_seconds"] for r in part["records"]}
    yield (
        f"**Start**, processor seconds of a new process, Python itself included (the fastest of 15 runs; "
        f"{machine_of(part)}; `benchmarks/bench_start.py`):"
    )
    names = {
        "import svmosaic": "`import svmosaic`",
        "svmosaic.load of a predictor, and one row": "`load` a predictor and predict one row",
        "svmosaic.load of a model, and one row": "`load` a model and predict one row",
        "from svmosaic import LinearSVC": "`from svmosaic import LinearSVC`",
        "from svmosaic import MosaicClassifier": "`from svmosaic import MosaicClassifier`",
        "import sklearn.svm": "for comparison, `import sklearn.svm`",
        "svmosaic --help": "`svmosaic --help`",
    }
    yield table(["what", "seconds"], [[words, f"{seconds[name]:.2f}"] for name, words in names.items()])


@place("trust", "shared", "threads")
def shared(report):
    part = report["predictions"]
    yield (
        f"{machine_of(part)}. **Predictions** by threads that share one model: thousands of rows per second in total "
        "and, in brackets, relative to one thread."
    )

    def speed(r, _):
        return f"{r['rows_a_second'] / 1e3:,.0f}" + f" ({r['speedup']:.2f})" * (r["threads"] > 1)

    yield by_threads(part["records"], {"model": "`{model}`", "interface": "{way}"}, speed)
    yield (
        "**Parallel fits** with joblib: seconds for all of them, processor seconds per wall-clock second (which should "
        "not exceed the number of cores), and the largest number of additional threads in a process."
    )
    columns = {
        "joblib": "{backend}", "workers": "{workers}", "fits": "{fits}", "`n_jobs` of a fit": lambda r: r["n_jobs_of_a_fit"],
        "seconds": "{seconds:.2f}", "processors": "{processor_by_wall:.2f}", "additional threads": "{threads_more}",
    }  # fmt: skip
    yield listing(report["fits"]["records"], columns)


@place("trust", "fuzz", "fuzz")
def fuzz(counts):
    names = {
        "models": "model files", "tables": "tables", "exports": "exports",
        "frames": "Polars, pandas and PyArrow tables", "rows": "rows in JavaScript and Python",
    }  # fmt: skip
    kinds = {name: count for name, count in counts.items() if name != "total"}
    inputs = ", ".join(f"{count['inputs']:,} {names.get(name, name)}" for name, count in kinds.items())
    accepted = sum(count["accepted"] for count in kinds.values())
    yield (
        f"**Mutated inputs** tested by `tools/fuzz` without a failure: {counts['total']:,} ({inputs}). Of these, "
        f"{accepted:,} were accepted and {counts['total'] - accepted:,} were refused with the documented errors."
    )


# Prediction -------------------------------------------------------------------------------------------------------

# Peers that are called without the checks of scikit-learn, as our predictors are.
COMPILED = ("LightGBM native", "LightGBM by lleaves")


@place("prediction", "predict")
def prediction(report):
    def model(r):
        return f"**{r['model']}**" if "saved_bytes" in r else r["model"]

    def checked(r):
        return shown("{us:,.0f?}", {"us": r.get("estimator_row_us", None if r["model"] in COMPILED else r["row_us"])})

    def compiled(r):
        return f"{r['row_us']:.2f}" if "estimator_row_us" in r or r["model"] in COMPILED else "–"

    def size(*keys):
        return lambda r: next((f"{r[key] / 1e3:,.0f}" for key in keys if r.get(key)), "–")

    def between(records, key, digits):
        values = [r[key] for r in records]
        return f"{min(values):.{digits}f} to {max(values):.{digits}f}"

    machine, rates = report["machine"], report["rates"]
    yield (
        f"{machine['processor']}, load {machine['load']}, one thread, Python {machine['python']}, processor time, best "
        "of five. The settings are those of `benchmarks/bench_predict.py`; they are not tuned but chosen for a short "
        "run, and `FusedSVC` has a fixed weight. All models were trained on the same rows. `predict` validates its "
        "rows as scikit-learn requires. “Compiled” is our `predictor()`, or LightGBM's booster. Batches are scored by "
        "the compiled form if there is one. The bound is a lower limit from the arithmetic: multiply-adds at "
        f"{rates['macs'] / 1e9:.0f} G/s, or bytes at {rates['bytes'] / 1e9:.0f} GB/s, as measured in the same run."
    )
    cost = {
        "model": model,
        "accuracy": lambda r: f"{r['accuracy']:.2%}" + " (on 200 rows)" * (r["model"] == "NeighborsSVC"),
        "`predict`, one row": checked, "compiled, one row": compiled, "batch, per row": "{batch_us:3r}",
        "bound": "{bound_us:.3f?}", "ONNX, one row": "{onnx_row_us:.1f?}", "ONNX, batch": "{onnx_batch_us:.2f?}",
    }  # fmt: skip
    sizes = {
        "model": model, "saved file or pickle": size("saved_bytes", "pickle_bytes"), "ONNX": size("onnx_bytes"),
        "C": size("c_bytes"),
    }  # fmt: skip
    for name, records in report["cost"].items():
        n_rows = report.get("train_rows", {}).get(name)
        trained = f", {n_rows:,} training rows" if n_rows else ""
        yield f"**{name}**{trained}. Microseconds; our models are in bold:"
        yield listing(records, cost)
        tiled, by = [r for r in records if "bound_us" in r], {r["model"]: r for r in records}
        peers = ", ".join(f"{by[peer]['row_us']:.1f} for {peer}" for peer in COMPILED if peer in by)
        yield (
            f"One row of {name}, in microseconds. Compiled: {between(tiled, 'row_us', 1)} for our models made of "
            f"tiles, {peers}. `predict`: {between(tiled, 'estimator_row_us', 0)} for ours, "
            f"{by['scikit-learn LinearSVC']['row_us']:.0f} for scikit-learn's `LinearSVC`, "
            f"{by['scikit-learn SVC']['row_us']:.0f} for its `SVC`."
        )
        yield f"Sizes on {name}, in kB: the saved file of our models, or the pickle of the others, and the exports:"
        yield listing(records, sizes)
    columns = {
        "model, calibration": "{model}", "accuracy": "{accuracy:.2%}", "log-loss": "{log_loss:.4f}",
        "ECE": "{ece:.4f}", "fit, s": "{fit_s:.2f}", "without calibration, s": "{fit_without_s:.2f?}",
        "label": lambda r: f"{r['row_us'][0]:.1f}" if r.get("row_us") else "–",
        "probabilities": lambda r: f"{r['row_us'][1]:.1f}" if len(r.get("row_us", [])) > 1 else "–",
    }  # fmt: skip
    for name, records in report["probabilities"].items():
        machine = machine_of({"machine": report["probabilities_machine"]})
        yield (
            f"**Probabilities, {name}** ({machine}; one thread). ECE is the expected calibration error. The last two "
            "columns are the microseconds that `predictor()` takes for the label, or the probabilities, of one row."
        )
        yield listing(records, columns)


# Regression -------------------------------------------------------------------------------------------------------


def where(run) -> str:
    return shown("{date}, {processor}, one thread.", run["machine"])


def rounded(value, digits=3) -> str:
    return "" if value is None else f"{value:.{digits}g}"


@place("regression", "regression", "solver")
def solver_of_values(report):
    run = report["solver"]
    yield f"Processor seconds until the objective is within 1e-6 of the optimum, C = 1. {where(run)}"

    def taken(r):
        return f"stopped after {r.get('limit', 600):.0f} s" if r["seconds"] is None else rounded(r["seconds"])

    lines = []
    for (name, n, loss, epsilon), group in grouped(run["records"], "set", "rows", "loss", "epsilon").items():
        times = {r["solver"]: taken(r) for r in group}
        lines.append([name, f"{n:,}", loss, epsilon, times["LinearSVR"], times["liblinear"]])
    yield table(("set", "rows", "loss", "epsilon", "`svmosaic.LinearSVR`", "liblinear"), lines)
    speedup = run["summary"]["speedup"]
    yield (
        f"On the {speedup['problems']} problems that both solved, the geometric mean of liblinear's time divided "
        f"by ours is {speedup['geometric_mean']}. Problems on which liblinear was stopped (by wall-clock time) are "
        "not included."
    )


@place("regression", "regression", "quantile")
def quantile(report):
    run = report["quantile"]
    yield (
        "`QuantileRegressor` without a penalty, compared with our model at a large C: seconds, and by how much our "
        f"pinball loss exceeds the optimum. {where(run)}"
    )
    lines, program = [], None
    for r in run["records"]:  # the linear program comes before the models that are compared with it
        if r["solver"] == "QuantileRegressor":
            program = rounded(r["seconds"])
        else:
            lines.append(r | {"program": program, "ours": rounded(r["seconds"])})
    columns = {
        "set": "{set}", "rows": "{rows:,}", "quantile": "{quantile}", "`LinearSVR`, s": "{ours}",
        "`QuantileRegressor`, s": "{program}", "C": "{C:g}", "excess of the pinball loss": "{excess:.1e}",
    }  # fmt: skip
    yield listing(lines, columns)


@place("regression", "regression", "ranks")
def ranks(report):
    run = report["ranks"]
    records, models = [r for r in run["records"] if "mae" in r], grouped(run["records"], "model")
    found = grouped(records, "set", "model")
    yield f"Means over test splits (ten random splits; three folds for beijing_pm25). {where(run)}"
    measures = {
        "mae": ("MAE", 4), "rmse": ("RMSE", 4), "fit_seconds": ("fit, s", 3),
        "row_microseconds": ("prediction, µs per row", 3),
    }  # fmt: skip
    for by, (title_, digits) in measures.items():
        lines = [
            [
                name,
                *(rounded(mean(r[by] for r in found[name, m]), digits) if (name, m) in found else "" for m in models),
            ]
            for name in grouped(records, "set")
        ]
        if by in run["summary"]:
            lines.append(["mean rank", *(run["summary"][by][m] for m in models)])
        yield table((title_, *models), lines)


@place("regression", "regression", "intervals")
def intervals(report):
    run = report["intervals"]
    records = [r for r in run["records"] if "coverage" in r]
    found, models = grouped(records, "set", "model"), grouped(records, "model")
    yield f"90 % intervals on test rows, both with the same conformal correction; means over splits. {where(run)}"
    formats = {"coverage": ".1%", "width": ".4g"}
    lines = [
        [name, *(format(mean(r[key] for r in found[name, m]), spec) for m in models for key, spec in formats.items())]
        for name in grouped(records, "set")
    ]
    yield table(("set", *(f"{m}, {what}" for m in models for what in formats)), lines)


@place("regression", "regression", "latency")
def latency_of_values(report):
    yield f"Microseconds to predict one row of abalone. {where(report['latency'])}"
    columns = {"model": "{model}", "interface": "`{by}`", "µs": "{microseconds}"}
    yield listing(report["latency"]["records"], columns)


# The solver -------------------------------------------------------------------------------------------------------

# The sets as the page names them, with their numbers of features.
SETS = {
    "usps odd/even": ("USPS odd/even", 256),
    "ijcnn1": ("ijcnn1", 22),
    "mnist odd/even": ("MNIST odd/even", 784),
    "covtype 2 v rest": ("covertype (2 v rest)", 54),
}


def spelled(loss) -> str:
    return loss.replace("_", " ")


def in_code(name) -> str:
    """A model's name with classes as code; `svmosaic LinearSVC` is ours, so its name alone will do."""
    words = name.removeprefix("svmosaic ").replace("(defaults)", "(its defaults)").split(" ")
    return " ".join(f"`{word.rstrip(',')}`" + "," * word.endswith(",") if "SVC" in word else word for word in words)


@place("solver", "solver", "large cost")
def large_cost(report):
    records = report["large_cost"]["records"]
    solvers = {"auto": "`auto` (Newton)", "dual": "`dual`, 100 epochs"}
    columns = {
        f"C = {records[0]['C']:g}, tol = 1e-6": lambda r: f"{spelled(r['loss'])}, {solvers[r['solver']]}",
        "seconds": "{seconds:.1f}", "relative gap at the end": "{gap:.2g}",
    }  # fmt: skip
    yield listing(records, columns)


@place("solver", "solver", "speed")
def solver_speed(report):
    def seconds(r):
        """Three digits, but no more than three decimals."""
        value = r["seconds"]
        return ("" if r["reached"] else "> ") + f"{value:.{3 if value < 1 else 2 if value < 10 else 1}f}"

    solvers, lines, stopped, last = ("svmosaic", "liblinear", "rehline"), [], [], None
    for task, (name, _) in SETS.items():
        race = report[f"race: {task}"]
        for loss, group in grouped(race["records"], "loss").items():
            ends = {r["solver"]: r for r in group}
            lines.append(["" if task == last else name, spelled(loss), *(seconds(ends[s]) for s in solvers)])
            last = task
            if not ends["liblinear"]["reached"]:
                stopped.append(f"on {name} after {race['summary']['limit_seconds']:.0f} s of wall-clock time")
    yield table(["data", "loss", *solvers], lines)
    lower = f". Where liblinear was stopped ({' and '.join(dict.fromkeys(stopped))}), its ratio is a lower bound."
    yield shown(
        '(">": the time limit was reached first.) Compared with liblinear, svmosaic is {geometric_mean:.1f} times as '
        "fast in the geometric mean, and at least {smallest:.1f} times as fast on every problem",
        report["race"]["summary"]["liblinear"],
    ) + (lower if stopped else ".")
    yield "The clustered SVM compared with the linear SVM on MNIST odd/even; fit times include k-means:"
    columns = {
        "model": lambda r: in_code(r["model"]), "test accuracy": "{accuracy:.2p} %", "fit seconds": "{fit_seconds:.2f}",
    }  # fmt: skip
    yield listing(report["clustered"]["records"], columns)


@place("solver", "solver", "cost")
def solver_cost(report):
    yield "Fit time in seconds against the number of rows, at the default `tol`:"
    times = {
        name: {r["rows"]: f"{r['fit_seconds']:.2f}" for r in some}
        for name, some in grouped(report["growth"]["records"], "model").items()
    }
    sizes = sorted(next(iter(times.values())))
    lines = [[in_code(name), *(found[size] for size in sizes)] for name, found in times.items()]
    yield table(["covertype, rows", *(f"{size:,}" for size in sizes)], lines)
    yield "Memory beyond X, as a multiple of the size of X in float32 (our own limit is 1.5):"
    lines = []
    for r in sorted(report["memory"]["records"], key=lambda r: -SETS[r["task"]][1]):
        name, features = SETS[r["task"]]
        shares = [r["memory_beyond_X"][peer] for peer in ("svmosaic", "scikit-learn")]
        cells = ["not known" if share is None else f"{share:.2f}" for share in shares]
        lines.append([f"{name}, {spelled(r['loss'])} ({features} features)", *cells])
    yield table(["data", "`LinearSVC`", "scikit-learn's"], lines)


# Trees ------------------------------------------------------------------------------------------------------------


@place("rules", "trees_study", "study")
def tree_defaults(report):
    summary = report["defaults"]["summary"]
    n_sets = len(grouped(report["defaults"]["records"], "set"))
    yield (
        f"**Defaults.** Percentage points of accuracy behind the best of {len(summary)} settings, mean over {n_sets} "
        "data sets, on rows held out from the training parts (`benchmarks/study_defaults.py`). The table shows the best "
        "settings, and those that differ from 32 linear trees of 32 leaves in one parameter:"
    )
    base = "32 trees of 32, linear, C = 0.1"
    some = dict.fromkeys([*list(summary)[:6], *(n for n in summary if n.startswith(base) or "bootstrap" in n)])
    lines = [[name, summary[name]["points_behind"], summary[name]["seconds"]] for name in some]
    yield table(["setting", "points behind", "processor seconds, all sets"], lines)


@place("rules", "trees", "adult")
def tree_of_adult(report):
    part = report["adult"]
    yield f"**adult**, test part ({machine_of(part)}; processor seconds, one thread):"
    columns = {
        "model": "{model}",
        "settings": lambda r: ", ".join(f"{k}={v}" for k, v in r.get("settings", {}).items()) or "defaults",
        "accuracy, %": "{accuracy:.2p?}", "ROC AUC": "{auc:.4f?}",
        "fit, s": lambda r: "not finished after " * (r["accuracy"] is None) + f"{r['seconds']:.1f}",
    }  # fmt: skip
    yield listing(part["records"], columns)
    yield "The rules of the single tree, as `export_text` prints them (one-hot columns end in `_value`):"
    yield "```text\n" + "\n".join(part["summary"]["rules"]) + "\n```"


@place("rules", "trees", "tables")
def trees_of_tables(report):
    part = report["tables"]
    found, models = grouped(part["records"], "set", "model"), grouped(part["records"], "model")
    yield (
        f"**Eight more data sets**, accuracy in % ({machine_of(part)}; tables: mean of three folds; the others: their "
        "test parts; 100,000 training rows of covertype). The settings of TreeSVC are chosen by cross-validation on "
        "training rows; the other models have their default settings. “–” was not finished when the run was stopped "
        "after 500 seconds (which include the choice of settings of TreeSVC), and is ranked last:"
    )

    def score(name, model):
        values = [r["accuracy"] for r in found[name, model]]
        return percent(None if None in values else mean(values))

    lines = [[name, *(score(name, m) for m in models)] for name in grouped(part["records"], "set")]
    lines.append(["mean rank", *(part["summary"]["mean_rank"][m] for m in models)])
    yield table(["set", *models], lines)


@place("rules", "trees", "speed")
def speed_of_trees(report):
    part = report["speed"]
    yield f"**Speed on adult**, constant leaves, 32 leaves per tree ({machine_of(part)}; one thread):"
    columns = {
        "trees": "{trees}", "fit, s": "{fit_seconds}", "one row, µs": "{row_microseconds}",
        "per row of 100,000, ns": "{batch_nanoseconds}",
        "LightGBM with as many trees and leaves, ns": "{peer_batch_nanoseconds}",
    }  # fmt: skip
    yield listing(part["records"], columns)


if __name__ == "__main__":
    write(*sys.argv[1:])
