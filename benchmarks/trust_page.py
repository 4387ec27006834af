"""Put the stored results of bench_shared.py and of tools/fuzz into docs/trust.md.

python benchmarks/trust_page.py
"""

from measured import Page, table

INPUTS = {
    "models": "model files",
    "tables": "tables",
    "exports": "exports",
    "frames": "Polars, pandas and PyArrow tables",
    "rows": "rows in JavaScript and Python",
}


def threads(report, _):
    part = report["predictions"]
    machine = part["machine"]
    yield (
        f"{machine['processor']}, {machine['cores']} cores, {machine['date']}. **Predictions** by threads that share "
        "one model: thousands of rows per second in total and, in brackets, relative to one thread."
    )
    found = {}
    for r in part["records"]:
        found.setdefault((r["model"], r["way"]), {})[r["threads"]] = r
    counts = sorted({r["threads"] for r in part["records"]})
    yield table(
        ["model", "interface", *(f"{n} thread{'s' if n > 1 else ''}" for n in counts)],
        [[f"`{model}`", way, *(speed(by_count.get(n)) for n in counts)] for (model, way), by_count in found.items()],
    )
    yield (
        "**Parallel fits** with joblib: seconds for all of them, processor seconds per wall-clock second (which should "
        "not exceed the number of cores), and the largest number of additional threads in a process."
    )
    yield table(
        ["joblib", "workers", "fits", "`n_jobs` of a fit", "seconds", "processors", "additional threads"],
        [
            [r["backend"], r["workers"], r["fits"], r["n_jobs_of_a_fit"], f"{r['seconds']:.2f}",
             f"{r['processor_by_wall']:.2f}", r["threads_more"]]
            for r in report["fits"]["records"]
        ],
    )  # fmt: skip


def speed(record):
    if record is None:
        return ""
    times = f" ({record['speedup']:.2f})" if record["threads"] > 1 else ""
    return f"{record['rows_a_second'] / 1e3:,.0f}{times}"


def fuzz(_, counts):
    kinds = {name: count for name, count in counts.items() if name != "total"}
    inputs = ", ".join(f"{count['inputs']:,} {INPUTS.get(name, name)}" for name, count in kinds.items())
    accepted = sum(count["accepted"] for count in kinds.values())
    yield (
        f"**Mutated inputs** tested by `tools/fuzz` without a failure: {counts['total']:,} ({inputs}). Of these, "
        f"{accepted:,} were accepted and {counts['total'] - accepted:,} were refused with the documented errors."
    )


PAGE = Page("trust.md", ("shared", "fuzz"), {"threads": threads, "fuzz": fuzz})

if __name__ == "__main__":
    PAGE.write()
