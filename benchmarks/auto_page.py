"""Put the stored results of bench_auto.py into docs/choosing.md.

python benchmarks/auto_page.py
"""

from auto_data import PARTS, means_of
from measured import Page, table

TITLES = {
    "tables": "Everyday tables: accuracy, or average precision of the rare class, in %, over test splits",
    "papers": "The papers' sets: test accuracy in %",
    "adult": "adult: test accuracy in %",
    "covertype7": "Covertype, seven classes, 80 % of all rows to train: test accuracy in %",
}


def tables(report):
    """Paragraphs and tables of each part."""
    for part in PARTS:
        if part in report:
            yield from one_part(TITLES[part], report[part])


def one_part(title, part):
    machine, summary = part["machine"], part["summary"]
    threads = sorted({record["threads"] for record in part["records"]})
    yield (
        f"**{title}.** {machine['processor']}, {machine['date']}; {_threads(threads)} for every system. In brackets: "
        "seconds to fit and microseconds per row to predict. The best score of a row is in bold; an empty cell was not "
        "run."
    )
    yield from _elsewhere(part)
    means = means_of(part["records"])
    systems = list(dict.fromkeys(system for _, system in means))
    rows = []
    for name in dict.fromkeys(name for name, _ in means):
        here = {system: means[name, system] for system in systems if (name, system) in means}
        best = max(round(record["score"], 2) for record in here.values())
        rows.append([name, next(iter(here.values()))["train_rows"], *(_cell(here.get(s), best) for s in systems)])
    yield table(["set", "rows", *systems], rows)
    if summary.get("sets", 0) > 1:
        ranks = ", ".join(f"{model} {rank:.2f}" for model, rank in summary["mean_rank"].items())
        yield f"Mean rank over the {summary['sets']} sets that all of these were run on (1 is best): {ranks}."
        forest = summary.get("with_random_forest", {})
        if "RandomForest" in forest.get("mean_rank", {}):
            ranks = ", ".join(f"{model} {rank:.2f}" for model, rank in forest["mean_rank"].items())
            yield f"With the random forest, over {forest['sets']} sets: {ranks}."
    worst = max((r["fit_seconds"] / r["budget"] for r in part["records"] if "budget" in r), default=None)
    if worst is not None:
        yield f"The longest fit of `MosaicClassifier` took {worst:.0%} of its budget."


def _threads(counts):
    return "1 thread" if counts == [1] else f"{' or '.join(map(str, counts))} threads"


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


def _cell(record, best):
    if record is None:
        return ""
    score = f"**{record['score']:.2f}**" if round(record["score"], 2) == best else f"{record['score']:.2f}"
    return f"{score} ({record['fit_seconds']:.1f} s, {record['predict_microseconds']:.0f} µs)"


PAGE = Page("choosing.md", ("auto",), tables)

if __name__ == "__main__":
    PAGE.write()
