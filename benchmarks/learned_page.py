"""Put the stored results of bench_learned.py, bench_gates.py and bench_gpu.py into docs/learned_gates.md; draw curves.

python benchmarks/learned_page.py
"""

from statistics import mean

from measured import HERE, Page, stored
from measured import table as markdown

IMAGES = HERE.parent / "docs" / "images"
# Stored names of models and sets, and those of the page. Of the runs with polish=True none kept the polished tiles.
NAMES = {
    "learnt": "learned",
    "learnt, polished": "learned, with `polish=True`",
    "learnt, tree": "learned, tree gate of 0.1",
    "fixed": "fixed",
}
SETS = {"covtype": "covtype, class 2 against the rest"}
BIG = "LightGBM, 500 trees, 127 leaves"
# Colors that readers who are blind to some can tell apart.
STYLE = {"learnt": ("#0072B2", "o"), "learnt, tree": ("#000000", "s"), "fixed": ("#E69F00", "^")}


def parts(report, *_):
    sets = [name for name in ("ijcnn1", "letter", "satimage", "mnist", "covtype") if name in report]
    for name in sets:
        yield table(name, report[name])
    yield from polishing(report)
    yield from ratio(report)
    curves = list(curves_of(report))
    if curves:
        yield "Learned regions compared with fixed ones, by tiles and by cost:"
    for part in curves:
        name = part.removesuffix(" curve")
        rows = report[part]["records"][0]["train_rows"]
        title = f"{SETS.get(name, name)}: accuracy against tiles and against microseconds per row"
        yield f"![{title}](images/{picture(name)})"
        yield curve_table(name, rows, report[part]["records"])


def curves_of(report):
    return [f"{name} curve" for name in ("ijcnn1", "letter", "satimage", "covtype") if f"{name} curve" in report]


def groups(records):
    """Records of one model and number of tiles, over their seeds."""
    found = {}
    for record in records:
        found.setdefault((record["model"], record["tiles"]), []).append(record)
    return found


def table(name, part):
    machine = part["machine"]
    lines = [
        f"**{SETS.get(name, name)}** ({machine['date']}, {machine['processor']}, load {machine['load']} at the end)",
        "",
        "| model | tiles | accuracy % | fit, s | prediction, µs per row | trained on | memory beyond X, MB |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for (model, tiles), records in groups(part["records"]).items():
        accuracy = f"{mean(r['accuracy'] for r in records):.2f}"
        if len(records) > 1:
            accuracy += " (" + ", ".join(f"{r['accuracy']:.2f}" for r in records) + ")"
        memory = max((r["peak_megabytes"] for r in records if r["peak_megabytes"] is not None), default="")
        lines.append(
            f"| {NAMES.get(model, model)} | {tiles or ''} | {accuracy} | {mean(r['fit_seconds'] for r in records):.2f} "
            f"| {mean(r['row_microseconds'] for r in records):.2f} | {records[0]['train_rows']} | {memory} |"
        )
    return "\n".join(lines)


def polishing(report):
    """How often polished tiles were kept."""
    kept = [r["kept_polished"] for part in report.values() for r in part["records"] if "kept_polished" in r]
    if kept:
        yield (
            "`polish=True` holds a part of the rows out and keeps the polished tiles only if they are better on it: "
            f"they were kept in {sum(kept)} of {len(kept)} runs. Such a row differs from the one above it by the part "
            "held out."
        )


def ratio(report):
    """Fit time on covertype as a multiple of LightGBM's."""
    found = groups(report["covtype"]["records"]) if "covtype" in report else {}
    if (BIG, None) in found:
        base = found[BIG, None][0]["fit_seconds"]
        shown = [
            f"{tiles} tiles {mean(r['fit_seconds'] for r in records) / base:.2f}"
            for (model, tiles), records in found.items()
            if model == "learnt"
        ]
        yield f"Fit time on covertype as a multiple of that of {BIG}: {', '.join(shown)}."


def curve_table(name, rows, records):
    found = groups(records)
    models = list(dict.fromkeys(model for model, _ in found))
    lines = [
        f"{SETS.get(name, name)}, {rows} rows to train: accuracy in %, and microseconds per row",
        "",
        "| tiles | " + " | ".join(NAMES[model] for model in models) + " |",
        "| ---: |" + " ---: |" * len(models),
    ]
    for tiles in sorted({tiles for _, tiles in found}):
        cells = [
            ", ".join(f"{mean(r[key] for r in found[m, tiles]):.2f}" for key in ("accuracy", "row_microseconds"))
            for m in models
        ]
        lines.append(f"| {tiles} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def picture(name):
    return f"learned_{name}.svg"


def draw(name, records):
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": name, "svg.fonttype": "none"})  # the same bytes again; text as text
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
    found = groups(records)
    for model, (colour, marker) in STYLE.items():
        tiles = sorted(t for m, t in found if m == model)
        accuracy = [mean(r["accuracy"] for r in found[model, t]) for t in tiles]
        cost = [mean(r["row_microseconds"] for r in found[model, t]) for t in tiles]
        for axis, x in zip(axes, (tiles, cost), strict=True):
            axis.plot(x, accuracy, color=colour, marker=marker, label=NAMES[model])
    for axis, label in zip(axes, ("tiles", "microseconds per row"), strict=True):
        axis.set(xscale="log", xlabel=label)
        axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("accuracy, %")
    axes[0].legend()
    figure.suptitle(SETS.get(name, name))
    IMAGES.mkdir(exist_ok=True)
    figure.savefig(IMAGES / picture(name), metadata={"Date": None})
    plt.close(figure)


def on_a_gpu(_, report, devices, *__):
    """Seconds on an accelerator, by task; the time to compile apart."""
    machine = devices["machine"]
    yield (
        f"covertype, `LearnedGateSVC` with 1000 tiles and 40 epochs on one machine, by its {machine['accelerator']} "
        f"and by its {machine['cores']} cores ({machine['processor']}, {machine['date']}; "
        "`benchmarks/bench_devices.py`). A fit begins with k-means on one core, most of it on the accelerator:"
    )
    columns = "task, device, pieces, batch, test accuracy %, epochs s, whole fit s, compiling s"
    yield markdown(
        columns.split(", "),
        [
            (r["task"], r["device"], r["pieces"] or "none", r.get("batch_size", "default"), r["accuracy"],
             r["epochs_seconds"], r["fit_seconds"], r.get("compile_seconds", "–"))
            for r in devices["records"]
        ],
    )  # fmt: skip
    machine = next(iter(report.values()))["machine"]
    yield (
        f"The learner itself, without the estimator ({machine['device']}, JAX {machine['jax']}; "
        "`benchmarks/bench_gpu.py`), settings fixed beforehand, one run:"
    )
    rows = []
    for name, part in report.items():
        if name == "scaling":
            continue
        (run,) = part["records"]
        rows.append(
            (name, f"{run['rows']:,}", run["features"], run["tiles"], run["epochs"], run["accuracy"],
             run["train_seconds"], run["compile_seconds"], run["transfer_seconds"])
        )  # fmt: skip
    columns = "task, rows, features, tiles, epochs, test accuracy %, training s, compiling s, transfer s"
    yield markdown(columns.split(", "), rows)
    large = report["ten million rows"]["records"][0]
    yield (
        f"Predicting {large['rows']:,} rows takes {large['predict_from_host_seconds']} s from the host's memory and "
        f"{large['predict_from_device_seconds']} s if the rows are on the device. One epoch of 256 tiles over 50 "
        "features:"
    )
    scaling = report["scaling"]["records"]
    yield markdown(("rows", "seconds per epoch"), [(f"{r['rows']:,}", r["epoch_seconds"]) for r in scaling])


def seeds(*reports):
    """Test accuracy over five seeds, with the setting that was chosen, and the next best by cross-validation."""
    part = reports[-1]["seeds"]
    machine = part["machine"]
    yield (
        "Settings chosen among the same thirteen by three folds of training rows, then five seeds "
        f"({machine['processor']}, {machine['date']}, one thread per fit; `benchmarks/bench_gates.py`):"
    )
    rows = []
    for name, one in part["summary"].items():
        records = [r for r in part["records"] if r["set"] == name]
        scores = ", ".join(f"{r['accuracy']:.2f}" for r in records)
        seconds = f"{mean(r['fit_seconds'] for r in records):.1f}"
        rows.append((name, one["setting"], f"{one['held_out'][one['setting']]:.2f}", one["accuracy"], scores, seconds))
    columns = "set, setting, held out %, test accuracy %, each seed, fit s"
    yield markdown(columns.split(", "), rows)


PAGE = Page(
    "learned_gates.md", ("learned", "gpu", "devices", "gates"), {"runs": parts, "gpu": on_a_gpu, "seeds": seeds}
)

if __name__ == "__main__":
    PAGE.write()
    report = stored("learned")
    for part in curves_of(report):
        draw(part.removesuffix(" curve"), report[part]["records"])
