"""Put the stored results of bench_kernel.py into docs/kernels.md.

python benchmarks/kernel_page.py
"""

from measured import Page, machine_of, table


def tables(report):
    part = report["sets"]
    records = part["records"]
    models = list(dict.fromkeys(r["model"] for r in records))
    found = {(r["set"], r["model"]): r for r in records}
    yield (
        "Test accuracy in %; in brackets seconds to fit, microseconds per row to predict and size of what predicts "
        f"({machine_of(part)}, one thread):"
    )
    rows = {r["set"]: r["rows"] for r in records}
    yield table(
        ["set", "rows", *(f"`{m}`" if "," not in m else "`{}`,{}".format(*m.split(",")) for m in models)],
        [[name, f"{n:,}", *(cell(found[name, m]) for m in models)] for name, n in rows.items()],
    )


def cell(record):
    megabytes, microseconds = record["bytes"] / 1e6, float(f"{record['microseconds']:.2g}")
    size = f"{megabytes:.1f} MB" if megabytes >= 1 else f"{1000 * megabytes:.0f} KB"
    return f"{100 * record['accuracy']:.2f} ({record['seconds']:.1f} s, {microseconds:g} µs, {size})"


PAGE = Page("kernels.md", ("kernel",), tables)

if __name__ == "__main__":
    PAGE.write()
