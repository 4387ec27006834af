"""Put what bench_learned.py, bench_gates.py, bench_gpu.py and study_learned.py stored into its page; draw curves.

python benchmarks/learned_page.py
"""

from statistics import mean

from measured import HERE, Page, machine_of, stored
from measured import table as markdown

IMAGES = HERE.parent / "docs" / "images"
# Models and sets whose name on the page is not the stored one.
NAMES = {
    "learned, polished": "learned, with `polish=True`",
    "learned, curves": "learned, `pieces=12`, 12 epochs",
}
SECOND_EDITION = "2026-11-16"  # since then early stopping is the default
SETS = {"covtype": "covtype, class 2 against the rest"}
PROPORTION = "in proportion to the rows"
BIG = "LightGBM, 500 trees, 127 leaves"
# Colors that readers who are blind to some can tell apart.
STYLE = {"learned": ("#0072B2", "o"), "fixed": ("#E69F00", "^")}


def parts(report, *_):
    sets = [name for name in ("ijcnn1", "letter", "satimage", "mnist", "covtype") if name in report]
    yield from edition(report)
    for name in sets:
        yield table(name, report[name])
    yield from polishing(report)
    yield from ratio(report)
    curves = list(curves_of(report))
    if curves:
        yield "Learned regions compared with fixed regions, by the number of tiles and by cost:"
    for part in curves:
        name = part.removesuffix(" curve")
        rows = report[part]["records"][0]["train_rows"]
        title = f"{SETS.get(name, name)}: accuracy against tiles and against microseconds per row"
        yield f"![{title}](images/{picture(name)})"
        yield curve_table(name, rows, report[part]["records"])


def edition(report):
    """Which runs were made with earlier defaults."""
    old = [part for part, found in report.items() if any(is_old(r) for r in found["records"])]
    if old:
        yield (
            f"Some learned gates in these parts were run before {SECOND_EDITION} with the default of that time, all 40 "
            f"epochs without early stopping: {', '.join(old)}."
        )


def is_old(record):
    return record["model"].startswith("learned") and record["date"] < SECOND_EDITION


def curves_of(report):
    return [f"{name} curve" for name in ("ijcnn1", "letter", "satimage", "covtype") if f"{name} curve" in report]


def groups(records):
    """Records of one model and number of tiles, over their seeds."""
    found = {}
    for record in records:
        found.setdefault((record["model"], record["tiles"]), []).append(record)
    return found


def table(name, part):
    machine, days = part["machine"], sorted({r["date"] for r in part["records"]})
    lines = [
        f"**{SETS.get(name, name)}** ({' and '.join(days)}, {machine['processor']}, load {machine['load']} at the end)",
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
            f"| {mean(r['row_microseconds'] for r in records):.2f} | {records[0]['train_rows']:,} | {memory} |"
        )
    return "\n".join(lines)


def polishing(report):
    """How often polished tiles were kept."""
    kept = [r["kept_polished"] for part in report.values() for r in part["records"] if "kept_polished" in r]
    if kept:
        yield (
            "`polish=True` holds out a part of the rows and keeps the polished tiles only if they are better on it: "
            f"they were kept in {sum(kept)} of {len(kept)} runs. In the other runs, such a row differs from the one "
            "above it only in the rows that were held out."
        )


def ratio(report):
    """Fit time on covertype as a multiple of LightGBM's."""
    found = groups(report["covtype"]["records"]) if "covtype" in report else {}
    if (BIG, None) in found:
        base = found[BIG, None][0]["fit_seconds"]
        shown = [
            f"{NAMES.get(model, model)}, {tiles} tiles: {mean(r['fit_seconds'] for r in records) / base:.2f}"
            for (model, tiles), records in found.items()
            if model.startswith("learned")
        ]
        yield f"Fit time on covertype relative to {BIG}: {'; '.join(shown)}."


def curve_table(name, rows, records):
    found = groups(records)
    models = list(dict.fromkeys(model for model, _ in found))
    columns = [f"{model}, {measure}" for model in models for measure in ("accuracy %", "µs per row")]
    lines = [
        f"{SETS.get(name, name)}, {rows:,} training rows:",
        "",
        f"| tiles | {' | '.join(columns)} |",
        "| ---: |" + " ---: |" * len(columns),
    ]
    for tiles in sorted({tiles for _, tiles in found}):
        cells = [
            f"{mean(r[key] for r in found[model, tiles]):.2f}"
            for model in models
            for key in ("accuracy", "row_microseconds")
        ]
        lines.append(f"| {tiles} | {' | '.join(cells)} |")
    return "\n".join(lines)


def picture(name):
    return f"learned_{name}.svg"


def pyplot(name):
    """Matplotlib, set to write the same bytes again, and text as text."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": name, "svg.fonttype": "none"})
    import matplotlib.pyplot as plt

    return plt


def save(figure, name):
    IMAGES.mkdir(exist_ok=True)
    figure.savefig(IMAGES / picture(name), metadata={"Date": None})


def draw(name, records):
    """Accuracy of learned and fixed regions, by tiles and by cost."""
    plt = pyplot(name)
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
    found = groups(records)
    for model, (colour, marker) in STYLE.items():
        tiles = sorted(t for m, t in found if m == model)
        accuracy = [mean(r["accuracy"] for r in found[model, t]) for t in tiles]
        cost = [mean(r["row_microseconds"] for r in found[model, t]) for t in tiles]
        for axis, x in zip(axes, (tiles, cost), strict=True):
            axis.plot(x, accuracy, color=colour, marker=marker, label=model)
    for axis, label in zip(axes, ("tiles", "microseconds per row"), strict=True):
        axis.set(xscale="log", xlabel=label)
        axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("accuracy, %")
    axes[0].legend()
    figure.suptitle(SETS.get(name, name))
    save(figure, name)
    plt.close(figure)


def draw_scaling(part):
    """Seconds per epoch on an accelerator against rows, and what the largest run makes of a time in proportion."""
    plt = pyplot("gpu")
    rows, seconds = ([r[key] for r in part["records"]] for key in ("rows", "epoch_seconds"))
    figure, axis = plt.subplots(figsize=(6, 3.6), layout="constrained")
    axis.plot(rows, [seconds[-1] * n / rows[-1] for n in rows], color="#777777", linestyle="--", label=PROPORTION)
    axis.plot(rows, seconds, color="#0072B2", marker="o", label=part["machine"]["device"])
    for n, value in zip(rows, seconds, strict=True):
        axis.annotate(f"{value:g} s", (n, value), xytext=(-4, 6), textcoords="offset points", ha="right")
    axis.set(xscale="log", yscale="log", xlabel="rows", ylabel="seconds per epoch")
    axis.set(xlim=(3e4, 1e8), ylim=(1e-3, 3))
    axis.set_xticks([10**k for k in range(5, 9)], ["100,000", "1 million", "10 million", "100 million"])
    axis.set_yticks([0.001, 0.01, 0.1, 1], ["0.001", "0.01", "0.1", "1"])
    axis.set_title("One epoch of a learned gate: 256 tiles, 50 features")
    axis.grid(alpha=0.3)
    axis.legend(loc="lower right")
    save(figure, "gpu")
    plt.close(figure)


def on_a_gpu(_, report, devices, *__):
    """Seconds on an accelerator, by task; the time to compile apart."""
    machine = devices["machine"]
    yield (
        f"`LearnedGateSVC` with 1000 tiles and 40 epochs on covertype, on the {machine['accelerator']} and on the "
        f"{machine['cores']} cores of the same machine ({machine['processor']}, {machine['date']}; "
        "`benchmarks/bench_devices.py`). A fit begins with k-means on one core, which takes most of the time of a fit "
        "on the accelerator:"
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
        "`benchmarks/bench_gpu.py`), with settings fixed beforehand, one run each:"
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
        f"Predicting {large['rows']:,} rows takes {large['predict_from_host_seconds']} s from host memory and "
        f"{large['predict_from_device_seconds']} s if the rows are on the device. Time of one epoch with 256 tiles and "
        "50 features, for 100,000 to 50 million rows on the device:"
    )
    scaling = report["scaling"]["records"]
    yield f"![Seconds per epoch against rows on an accelerator](images/{picture('gpu')})"
    yield markdown(("rows", "seconds per epoch"), [(f"{r['rows']:,}", r["epoch_seconds"]) for r in scaling])


def seeds(*reports):
    """Test accuracy over five seeds, with the setting that was chosen."""
    report = reports[-2]
    tried = {name: len(part["summary"]["held_out"]) for name, part in report.items()}
    most = max(tried.values())
    earlier = [f"{name} {number}" for name, number in tried.items() if number < most]
    yield (
        f"**Tuned.** Settings chosen among the same {most} for all data sets by three-fold cross-validation on "
        "training rows, then fitted with five seeds (one thread per fit; `benchmarks/bench_gates.py`). Fits without a "
        "time were made on a busy machine."
        + (f" Chosen from an earlier, shorter list: {', '.join(earlier)} settings." if earlier else "")
    )
    rows = []
    for name, part in report.items():
        one = part["summary"]
        scores = ", ".join(f"{r['accuracy']:.2f}" for r in part["records"])
        timed = [r["fit_seconds"] for r in part["records"] if "fit_seconds" in r]
        seconds = f"{mean(timed):.1f}" if timed else "–"
        shown = (f"{one['held_out'][one['setting']]:.2f}", one["accuracy"])
        rows.append((name, one["setting"], *shown, scores, seconds, machine_of(part)))
    columns = "set, best setting, held out %, test accuracy %, each seed, fit s, machine"
    yield markdown(columns.split(", "), rows)


def defaults(*reports):
    part = reports[-1]["defaults"]
    n_sets = len({r["set"] for r in part["records"]})
    yield (
        f"**Defaults.** Percentage points of accuracy behind the best of {len(part['summary'])} settings of each data "
        f"set, mean over {n_sets} data sets, on a quarter held out of at most 4000 training rows, two seeds "
        '(`benchmarks/study_learned.py`). Differences below half a point are within chance. The default is "one gate, '
        'early stopping", with 100 tiles.'
    )
    ordered = sorted(part["summary"].items(), key=lambda item: item[1]["points_behind"])
    yield markdown(
        ["setting", "points behind", "processor seconds, all sets"],
        [[name, one["points_behind"], one["seconds"]] for name, one in ordered],
    )


PAGE = Page(
    "learned_gates.md",
    ("learned", "gpu", "devices", "gates", "learned_study"),
    {"runs": parts, "gpu": on_a_gpu, "seeds": seeds, "defaults": defaults},
)

if __name__ == "__main__":
    PAGE.write()
    report = stored("learned")
    for part in curves_of(report):
        draw(part.removesuffix(" curve"), report[part]["records"])
    draw_scaling(stored("gpu")["scaling"])
