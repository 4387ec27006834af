"""Put the stored results of bench_auto.py and study_mixing.py into docs/choosing.md.

python benchmarks/auto_page.py
"""

import numpy as np
from auto_data import BUDGETS, PARTS, means_of
from measured import Page, machine_of, stored, table
from scipy.stats import rankdata
from study_mixing import means

from svmosaic.search.mixing import PRIOR

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


def tables(report, _):
    """Paragraphs and tables: scores, then what they cost."""
    parts = {name: report[name] for name in PARTS if name in report}
    runs = runs_of(parts.values())
    systems = systems_of(runs)
    yield "### Scores on test rows, in %"
    yield (
        "Accuracy, or average precision of the rare class if the name says so. The best score of each row is in bold; "
        "“–” was not run. “Chosen” is the model that the search of `MosaicClassifier` chose, or the largest part of "
        "its blend; if there are several splits, that of the first."
    )
    yield table(
        ["data set", "rows", "chosen", *systems],
        [[title(name, here), rows(here), chosen(here[OURS]), *scores(here, systems)] for name, here in runs.items()],
    )
    yield from _ranks(parts, runs)
    yield from _budgets(parts)
    yield from _short(report.get("short"), runs)
    yield f"{boosting()} ([learned gates](learned_gates.md#how-it-was-measured))."
    for key, (heading, show) in MEASURES.items():
        yield f"### {heading}"
        yield table(
            ["data set", "rows", *systems],
            [
                [name, rows(here), *(show(here[s][key]) if key in here.get(s, {}) else "–" for s in systems)]
                for name, here in runs.items()
            ],
        )
        if key == "fit_seconds":
            yield from _longest(parts)
    yield from _machines(parts)


def title(name, here):
    metric = here[OURS].get("metric", "accuracy")
    return name if metric == "accuracy" else f"{name} ({metric.replace('_', ' ')})"


def rows(here):
    return f"{here[OURS]['train_rows']:,}"


def chosen(run):
    """The model that the search chose, or the largest part of its blend."""
    model = run["chosen"].split(",")[0].split(" of ")[0].split()[-1]
    blended = "% " in run["chosen"] and "," in run["chosen"]
    return f"blend, mostly `{model}`" if blended else f"`{model}`"


def scores(here, systems):
    """A cell for each system, the best of them in bold."""
    best = max(round(here[system]["score"], 2) for system in systems if system in here)
    shown = {system: f"{here[system]['score']:.2f}" for system in systems if system in here}
    bold = {system: f"**{text}**" if float(text) == best else text for system, text in shown.items()}
    return [bold.get(system, "–") for system in systems]


def mean_ranks(runs, names, systems) -> dict:
    """Mean over the sets of the rank of each system, 1 the best; scores that are shown as equal share their ranks."""
    ranks = [rankdata([-round(runs[name][system]["score"], 2) for system in systems]) for name in names]
    return {system: sum(column) / len(names) for system, column in zip(systems, zip(*ranks, strict=True), strict=True)}


def names_with(runs, part, systems) -> list:
    """The sets of a part that all of these systems were run on."""
    return [name for name in PARTS[part] if name in runs and all(system in runs[name] for system in systems)]


def lowest(ranks) -> list:
    """A cell for each rank, the lowest in bold."""
    best = min(ranks.values())
    return [f"**{rank:.2f}**" if rank == best else f"{rank:.2f}" for rank in ranks.values()]


def _ranks(parts, runs):
    """Mean ranks over the groups that have several sets."""
    lines = []
    for part in parts:
        for systems in (SYSTEMS[:-1], SYSTEMS):
            names = names_with(runs, part, systems)
            if len(names) > 1:
                cells = lowest(mean_ranks(runs, names, systems)) + ["–"] * (len(SYSTEMS) - len(systems))
                lines.append([f"{len(names)} {GROUPS[part]}", *cells])
    if lines:
        yield "Mean ranks (1 is best) over the data sets that all of these were run on:"
        yield table(["", *SYSTEMS], lines)


def boosting() -> str:
    """What larger LightGBM models reach on covertype, in the runs for learned gates."""
    records = {r["model"]: r for r in stored("learned")["covtype"]["records"]}
    large = next(name for name in records if name.startswith("LightGBM, "))
    return (
        "Boosted trees gain from larger settings on large data: on covertype, class 2 against the rest, "
        f"{large.removeprefix('LightGBM, ').replace(', ', ' of ')} bring LightGBM from "
        f"{records['LightGBM']['accuracy']:.2f} to {records[large]['accuracy']:.2f} %"
    )


def _budgets(parts):
    """Runs with other budgets than those in the tables."""
    for name, part in parts.items():
        for (set_, _), run in means_of(part["records"]).items():
            if name in BUDGETS and run.get("budget", BUDGETS[name]) != BUDGETS[name]:
                yield (
                    f"With `time_budget={run['budget']:g}`, `MosaicClassifier` reaches {run['score']:.2f} on {set_} "
                    f"in {run['fit_seconds']:.1f} s; a prediction takes {run['predict_microseconds']:g} µs per row, "
                    f"and the predictor has {run['n_bytes'] / 1e3:,.0f} kB."
                )


def _short(part, runs):
    """Runs with a short budget, next to those of an early version."""
    if part is None:
        return
    budget = part["records"][0]["budget"]
    yield (
        f"With a budget of {budget:g} seconds ({machine_of(part)}), on the data sets of the papers; the early version "
        "had 60 seconds, and stopped earlier on small data sets:"
    )
    lines = [
        [r["set"], *(f"{score:.2f}" for score in (r["before"], r["score"], runs[r["set"]][OURS]["score"]))]
        for r in part["records"]
    ]
    yield table(["data set", "early version, 60 s", f"now, {budget:g} s", "now, 30 s"], lines)


def _longest(parts):
    """How far fits went over their budget, or stayed below it."""
    shares = [r["fit_seconds"] / r["budget"] for part in parts.values() for r in part["records"] if "budget" in r]
    if shares:
        yield f"The longest fit of `MosaicClassifier` took {max(shares):.0%} of its budget."


def _machines(parts):
    """What the runs were made on."""
    by_machine: dict = {}
    for name, part in parts.items():
        threads = sorted({record["threads"] for record in part["records"]})
        by_machine.setdefault((machine_of(part), _threads(threads)), []).append(GROUPS[name])
    yield " ".join(
        f"{_listed(groups).capitalize()}: {machine}; {threads} for every system."
        for (machine, threads), groups in by_machine.items()
    )
    for part in parts.values():
        yield from _elsewhere(part)


def _listed(names):
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _threads(counts):
    return "one thread" if counts == [1] else f"{' or '.join(map(str, counts))} threads"


def _elsewhere(part):
    """A paragraph about the runs that were on other machines than the last ones."""
    here = part["machine"]["processor"]
    other: dict = {}
    for record in part["records"]:
        if record.get("processor", here) != here:
            processor = record["processor"] + (", one of 16 cores" if "cores" in record else "")
            other.setdefault((record["model"], processor), {})[record["set"]] = None
    if other:
        runs = (f"{model} on {', '.join(sets)} ({processor})" for (model, processor), sets in other.items())
        yield f"Run on other machines, so times are not comparable: {'; '.join(runs)}."


def mixing(_, records):
    """What classes gain from the scores of each other, or from an offset, by kind of model."""
    found, kinds = means(records), list(dict.fromkeys(r["model"] for r in records))
    names = {
        more: list(dict.fromkeys(r["set"] for r in records if (r["classes"] > 2) == more)) for more in (True, False)
    }
    yield (
        "**Mixing.** On training rows (`benchmarks/study_mixing.py`), judged by rows that were neither fitted nor held "
        "out in the folds: means over the data sets of the accuracy, before → after mixing, and of the change of the "
        f"log-loss. More than two classes: {', '.join(names[True])}. Two classes: {', '.join(names[False])}."
    )
    lines = []
    for kind in kinds:
        cells = []
        for sets in names.values():
            before, after = (np.array([found[name, kind, prior] for name in sets]) for prior in (None, PRIOR))
            change = np.mean(after[:, 1] / before[:, 1] - 1)
            cells += [f"{100 * before[:, 0].mean():.2f} → {100 * after[:, 0].mean():.2f}", f"{100 * change:+.1f} %"]
        lines.append([kind, *cells])
    heads = [f"{what}, {which}" for which in ("several classes", "two classes") for what in ("accuracy, %", "log-loss")]
    yield table(["model", *heads], lines)


PAGE = Page("choosing.md", ("auto", "mixing_study"), {"comparison": tables, "mixing": mixing})

if __name__ == "__main__":
    PAGE.write()
