"""Put the stored results of bench_kernel.py into docs/kernels.md.

python benchmarks/kernel_page.py
"""

from measured import Page, machine_of, table

COLUMNS = ("data set", "model", "test accuracy, %", "fit, s", "prediction, µs per row", "size of what predicts, kB")


def tables(report):
    part = report["sets"]
    yield f"{machine_of(part)}, one thread:"
    lines, seen = [], set()
    for record in part["records"]:
        first = f"{record['set']}, {record['rows']:,} rows"
        name, comma, anchors = record["model"].partition(",")
        lines.append(["" if first in seen else first, f"`{name}`{comma}{anchors}", *cells(record)])
        seen.add(first)
    yield table(COLUMNS, lines)


def cells(record):
    microseconds = float(f"{record['microseconds']:.2g}")
    return (
        f"{100 * record['accuracy']:.2f}",
        f"{record['seconds']:.2f}",
        f"{microseconds:g}",
        f"{record['bytes'] / 1e3:,.0f}",
    )


PAGE = Page("kernels.md", ("kernel",), tables)

if __name__ == "__main__":
    PAGE.write()
