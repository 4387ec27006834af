"""Write the results of README.md from the stored runs, and draw its picture.

python benchmarks/readme.py
"""

from auto_data import BUDGETS, PARTS, means_of
from measured import HERE, machine_of, stored, table

README = HERE.parent / "README.md"
PICTURE = HERE.parent / "docs" / "images" / "tradeoff.svg"
BEGIN, END = "<!-- results: python benchmarks/readme.py -->", "<!-- end of results -->"
OURS = "MosaicClassifier"
SYSTEMS = ("LinearSVC", "SVC, tuned", "LightGBM", "CatBoost")
# Our models of the picture: NeighborsSVC is judged on 200 rows only, and others would crowd it.
DRAWN = ("LinearSVC", "ClusteredSVC", "LocallyLinearSVC", "LearnedGateSVC", "MixtureSVC")


def tables() -> str:
    """One table, whatever parts of the benchmark are stored, and what was measured where."""
    parts = stored("auto")
    found = [parts[name] for name in PARTS if name in parts]
    runs = {}
    for part in found:
        runs |= _by_set(part["records"])
    systems = [name for name in SYSTEMS if any(name in here for here in runs.values())]
    rows = []
    for name, here in runs.items():
        best = max(round(run["score"], 2) for run in here.values())
        cells = [_cell(here.get(system), best) for system in (OURS, *systems)]
        rows.append([_title(name, here[OURS]), f"{here[OURS]['train_rows']:,}", _chosen(here[OURS]), *cells])
    machines = "; ".join(dict.fromkeys(machine_of(part) for part in found))
    return "\n\n".join(
        [
            table(["data set", "rows", "best of ours", "accuracy %", *systems], rows),
            f"Test scores in %, the best in bold; in brackets: {_fields(runs)}. {machines}. {_settings(parts)} "
            "[All systems and settings](docs/choosing.md#how-it-was-measured).",
        ]
    )


def _by_set(records) -> dict:
    """Means over splits by set and system; of several budgets of ours, the one that the benchmark has by default."""
    records = [{"score": r.get("accuracy"), **r} for r in records]
    found: dict = {}
    for (name, system), run in means_of(records).items():
        system = OURS if system.startswith(OURS) else system
        if system not in found.setdefault(name, {}) or run.get("budget") == BUDGETS.get(name):
            found[name][system] = run
    return {name: here for name, here in found.items() if OURS in here}


def _title(name, run):
    return name if run.get("metric", "accuracy") == "accuracy" else f"{name} ({run['metric'].replace('_', ' ')})"


def _chosen(run):
    """The model that the search chose, or the largest part of its blend, with its tiles."""
    model = run["chosen"].split(",")[0].split(" of ")[0].split()[-1]
    blended = "% " in run["chosen"] and "," in run["chosen"]
    return f"a blend, mostly `{model}`" if blended else f"`{model}`"


FIELDS = {
    "fit_seconds": ("seconds to fit", lambda value: f"{value:.1f} s"),
    "predict_microseconds": ("microseconds per row of `predict`", lambda value: f"{float(f'{value:.3g}'):g} µs"),
    "n_bytes": ("size", lambda value: f"{value / 1e3:.0f} kB"),
}


def _fields(runs):
    present = [key for key in FIELDS if any(key in run for here in runs.values() for run in here.values())]
    return ", ".join(FIELDS[key][0] for key in present)


def _cell(run, best):
    if run is None:
        return "–"
    score = f"**{run['score']:.2f}**" if round(run["score"], 2) == best else f"{run['score']:.2f}"
    return f"{score} ({', '.join(show(run[key]) for key, (_, show) in FIELDS.items() if key in run)})"


def _settings(parts):
    if any(name in parts for name in PARTS):
        return (
            "“–” was not run. All systems of a row have the same training rows and the same number of threads. "
            "`MosaicClassifier` chooses its model on training rows. The RBF SVC is tuned on at most 5,000 training "
            "rows and fitted to at most 50,000. LightGBM, CatBoost and scikit-learn's `LinearSVC` have their default "
            "settings."
        )
    return (
        "One thread for every system. The SVC was tuned on at most 3,000 rows with one scaling and fitted to at most "
        "10,000, LightGBM was not tuned: `MosaicClassifier`, which had all rows and a search, is favored."
    )


def current() -> str:
    """What stands between the marks in README.md now."""
    return README.read_text().split(BEGIN)[1].split(END)[0].strip()


def panels() -> dict:
    """Accuracy and cost of the picture's models, by set."""
    report = stored("predict")
    return {
        f"{name}, {report['train_rows'][name]:,} rows to train": [
            r for r in records if r["model"] in DRAWN or not (r.get("ours") or r["model"].startswith("SVC by"))
        ]
        for name, records in report["cost"].items()
    }


def draw():
    import matplotlib as mpl

    from svmosaic.display.tradeoff import draw_panels

    mpl.rcParams.update({"svg.hashsalt": "tradeoff", "svg.fonttype": "none"})  # the same bytes again; text as text
    cost = "microseconds per row, in a batch, one thread"
    draw_panels(panels(), cost="batch_us", cost_name=cost).savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    text = README.read_text()
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    README.write_text(f"{before}{BEGIN}\n\n{tables()}\n\n{END}{after}")
    draw()
    print(f"written: {README.name}, {PICTURE.name}")
