"""Put what bench_threads.py, bench_before.py, study_tol.py and bench_start.py stored into docs/performance.md.

python benchmarks/performance_page.py
"""

from measured import Page, machine_of, table


def fits(threads, *_):
    part = threads["fits"]
    summary = part["summary"]
    yield (
        f"Fits to covertype ({summary['features']} features, {summary['classes']} classes, float32; "
        f"{machine_of(part)}; `benchmarks/bench_threads.py`): wall-clock seconds and, in brackets, the speedup over "
        "one thread. Memory is the peak growth of the process, without the rows themselves."
    )
    counts = sorted({r["threads"] for r in part["records"]})
    found = {}
    for r in part["records"]:
        found.setdefault((r["model"], r["rows"]), {})[r["threads"]] = r
    rows, different = [], []
    for (model, n_rows), by_count in found.items():
        ours = not model.startswith("LightGBM")
        if ours and len({r["digest"] for r in by_count.values() if r["digest"] is not None}) > 1:
            different.append(model.split(",")[0])
        done = [r for r in by_count.values() if r["seconds"] is not None]
        accuracy = f"{done[0]['accuracy']:.2f}" if done else ""
        memory = max((r["peak_mb"] for r in done if r["peak_mb"] is not None), default=None)
        cells = [seconds(by_count.get(n), by_count.get(1), summary) for n in counts]
        rows.append([f"`{model.split(',')[0]}`{model[len(model.split(',')[0]):]}", f"{n_rows:,}", *cells, accuracy,
                     "" if memory is None else f"{memory:,}"])  # fmt: skip
    yield table(
        ["fit", "rows", *(f"{n} thread{'s' if n > 1 else ''}" for n in counts), "test accuracy, %", "memory, MB"], rows
    )
    if different:
        yield (
            "In this run, the scores of "
            + ", ".join(f"`{name}`" for name in different)
            + " were not bit-for-bit the same for all numbers of threads, as they should be; all others were."
        )
    else:
        yield "The scores of each line are bit-for-bit the same for every number of threads."


def seconds(record, alone, summary):
    if record is None:
        return ""
    if record["seconds"] is None:
        return f"over {summary['limit_seconds']:.0f}"
    times = ""
    if record["threads"] > 1 and alone is not None and alone["seconds"] is not None:
        times = f" ({alone['seconds'] / record['seconds']:.1f}x)"
    return f"{record['seconds']:.1f}{times}"


def before(threads, *_):
    part = threads["before"]
    rows = {model: n for model, (_, n) in part["summary"]["covertype"].items()}
    yield (
        f"Fits with default settings on one thread, in an early version → now ({machine_of(part)}; "
        "`benchmarks/bench_before.py`): processor seconds, the best of two to ten runs, and test accuracy in %. "
        "Covertype has seven classes and "
        + ", ".join(f"{n:,} rows for `{model}`" for model, n in rows.items())
        + ". The default number of neighbors of `LocallyLinearSVC` was 8 and is now 16."
    )  # fmt: skip
    yield table(
        ["set", "fit", "seconds", "speedup", "test accuracy, %"],
        [
            [r["set"], f"`{r['model']}`", " → ".join(f"{s:.3g}" for s in r["seconds"]),
             f"{r['seconds'][0] / r['seconds'][1]:.1f}", " → ".join(f"{a:.2f}" for a in r["accuracy"])]
            for r in part["records"]
        ],
    )  # fmt: skip


def predictions(threads, *_):
    part = threads["predictions"]
    yield (
        f"Batches scored by a compiled predictor ({machine_of(part)}): millions of rows per second and, in brackets, "
        "the speedup over one thread. A call starts only as many threads as it has work for."
    )
    counts = sorted({r["threads"] for r in part["records"]})
    found = {}
    for r in part["records"]:
        found.setdefault((r["model"], r["batch"]), {})[r["threads"]] = r["rows_a_second"]
    yield table(
        ["model", "batch size", *(f"{n} thread{'s' if n > 1 else ''}" for n in counts)],
        [[model, f"{batch:,}", *(speed(speeds, n) for n in counts)] for (model, batch), speeds in found.items()],
    )


def speed(speeds, n_threads):
    if n_threads not in speeds:
        return ""
    times = f" ({speeds[n_threads] / speeds[1]:.1f}x)" if n_threads > 1 and 1 in speeds else ""
    return f"{speeds[n_threads] / 1e6:.2f}{times}"


def roofline(threads, *_):
    part = threads["roofline"]
    counts = sorted({r["threads"] for r in part["records"]})
    shown = dict.fromkeys((counts[0], counts[-1]))
    yield (
        "The scorer compared with the limits of the machine: billions of floating-point operations and of bytes per "
        "second. The limits are measured with float32 matrix products (one BLAS call per thread) and a triad over "
        "arrays larger than the caches. The numbers of the scorer count the gate, the chosen tiles, the row and its "
        "scores once each, in the largest batch above."
    )
    found = {}
    for r in part["records"]:
        found.setdefault(r["what"], {})[r["threads"]] = r
    yield table(
        ["what", *(f"{unit}, {n} thread{'s' if n > 1 else ''}" for n in shown for unit in ("GFLOP/s", "GB/s"))],
        [
            [what, *(f"{by_count[n][key]:,.1f}" for n in shown for key in ("gflops", "gigabytes_a_second"))]
            for what, by_count in found.items()
        ],
    )


def tolerances(_, tol, __):
    part = next(iter(tol.values()))
    yield (
        f"**`tol`.** Three folds of at most 12,000 training rows of {len(tol)} data sets, compared with `tol=1e-4` "
        f"({machine_of(part)}; `benchmarks/study_tol.py`): the percentage points of accuracy that a larger `tol` loses "
        "on the data set where it loses most, the number of data sets on which it loses 0.05 points or more (on small "
        "data sets, one row is more than that), and the processor seconds of all fits."
    )
    found = {}
    for name, one in tol.items():
        for r in one["records"]:
            found.setdefault((r["model"], r["tol"]), {})[name] = r
    rows = []
    for (model, value), by_set in found.items():
        lost = {name: r["points_lost"] for name, r in by_set.items()}
        worst = max(lost, key=lost.get)
        behind = sum(points >= 0.05 for points in lost.values())
        seconds = sum(r["processor_seconds"] for r in by_set.values())
        rows.append([f"`{model}`", f"{value:g}", f"{lost[worst]:.2f} ({worst})" if lost[worst] > 0 else "0.00",
                     str(behind), f"{seconds:.0f}"])  # fmt: skip
    yield table(["fit", "`tol`", "largest loss, points", "data sets that lose 0.05", "processor seconds"], rows)


STARTS = {
    "import svmosaic": "`import svmosaic`",
    "svmosaic.load of a predictor, and one row": "`load` a predictor and predict one row",
    "svmosaic.load of a model, and one row": "`load` a model and predict one row",
    "from svmosaic import LinearSVC": "`from svmosaic import LinearSVC`",
    "from svmosaic import MosaicClassifier": "`from svmosaic import MosaicClassifier`",
    "import sklearn.svm": "for comparison, `import sklearn.svm`",
    "svmosaic --help": "`svmosaic --help`",
}


def start(_, __, found):
    part = found["start"]
    seconds = {r["command"]: r["processor_seconds"] for r in part["records"]}
    yield (
        f"**Start**, processor seconds of a new process, Python itself included (the fastest of 15 runs; "
        f"{machine_of(part)}; `benchmarks/bench_start.py`):"
    )
    yield table(["what", "seconds"], [[words, f"{seconds[name]:.2f}"] for name, words in STARTS.items()])


PAGE = Page(
    "performance.md", ("threads", "tol", "start"),
    {
        "fits": fits, "before": before, "predictions": predictions, "roofline": roofline, "tolerances": tolerances,
        "start": start,
    },
)  # fmt: skip

if __name__ == "__main__":
    PAGE.write()
