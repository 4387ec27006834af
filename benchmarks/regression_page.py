"""Put the stored results of bench_regression.py into docs/regression.md.

python benchmarks/regression_page.py
"""

from statistics import mean

from measured import Page, table


def run_of(report, part):
    """The records of a part, with its machine and summary; None if no run is stored."""
    return report.get(part)


def missing(part):
    return f"No run is stored yet: `python benchmarks/bench_regression.py --part {part}`."


def where(run):
    machine = run["machine"]
    return f"{machine['date']}, {machine['processor']}, one thread."


def shown(value, digits=3):
    return "" if value is None else f"{value:.{digits}g}"


def solver(report):
    """Seconds to an objective within 1e-6 of the least."""
    run = run_of(report, "solver")
    if run is None:
        yield missing("solver")
        return
    yield f"Processor seconds until the objective is within 1e-6 of the optimum, C = 1. {where(run)}"
    found = {}
    for r in run["records"]:
        stopped = f"stopped after {r.get('limit', 600):.0f} s"
        taken = stopped if r["seconds"] is None else shown(r["seconds"])
        found.setdefault((r["set"], r["rows"], r["loss"], r["epsilon"]), {})[r["solver"]] = taken
    rows = [
        (name, f"{n:,}", loss, epsilon, *(times[s] for s in ("LinearSVR", "liblinear")))
        for (name, n, loss, epsilon), times in found.items()
    ]
    yield table(("set", "rows", "loss", "epsilon", "`svmosaic.LinearSVR`", "liblinear"), rows)
    speedup = run["summary"]["speedup"]
    if speedup["geometric_mean"] is not None:
        yield (
            f"On the {speedup['problems']} problems that both solved, the geometric mean of liblinear's time divided "
            f"by ours is {speedup['geometric_mean']}. Problems on which liblinear was stopped (by wall-clock time) are "
            "not included."
        )


def quantile(report):
    """Agreement with the linear program, and seconds."""
    run = run_of(report, "quantile")
    if run is None:
        yield missing("quantile")
        return
    yield (
        "`QuantileRegressor` without a penalty, compared with our model at a large C: seconds, and by how much our "
        f"pinball loss exceeds the optimum. {where(run)}"
    )
    rows, program = [], None
    for r in run["records"]:
        if r["solver"] == "QuantileRegressor":
            program = r
            continue
        excess = "" if r["excess"] is None else f"{r['excess']:.1e}"
        rows.append(
            (r["set"], f"{r['rows']:,}", r["quantile"], shown(r["seconds"]), shown(program["seconds"]),
             f"{r['C']:g}", excess)
        )  # fmt: skip
    columns = ("set", "rows", "quantile", "`LinearSVR`, s", "`QuantileRegressor`, s", "C", "excess of the pinball loss")
    yield table(columns, rows)


def ranks(report):
    """Mean errors by set, and mean ranks."""
    run = run_of(report, "ranks")
    if run is None:
        yield missing("ranks")
        return
    records = [r for r in run["records"] if "mae" in r]
    models = list(dict.fromkeys(r["model"] for r in run["records"]))
    yield f"Means over test splits (ten random splits; three folds for beijing_pm25). {where(run)}"
    for by, digits in (("mae", 4), ("rmse", 4), ("fit_seconds", 3), ("row_microseconds", 3)):
        title = {"mae": "MAE", "rmse": "RMSE", "fit_seconds": "fit, s", "row_microseconds": "prediction, µs per row"}[
            by
        ]
        rows = []
        for name in dict.fromkeys(r["set"] for r in records):
            cells = [[r[by] for r in records if (r["set"], r["model"]) == (name, m)] for m in models]
            rows.append((name, *(shown(mean(cell), digits) if cell else "" for cell in cells)))
        if by in ("mae", "rmse"):
            rows.append(("mean rank", *(run["summary"][by][m] for m in models)))
        yield table((title, *models), rows)


def intervals(report):
    """Coverage and width."""
    run = run_of(report, "intervals")
    if run is None:
        yield missing("intervals")
        return
    records = [r for r in run["records"] if "coverage" in r]
    models = list(dict.fromkeys(r["model"] for r in records))
    yield f"90 % intervals on test rows, both with the same conformal correction; means over splits. {where(run)}"
    rows = []
    for name in dict.fromkeys(r["set"] for r in records):
        cells = []
        for model in models:
            here = [r for r in records if (r["set"], r["model"]) == (name, model)]
            cells += [f"{mean(r['coverage'] for r in here):.1%}", f"{mean(r['width'] for r in here):.4g}"]
        rows.append((name, *cells))
    yield table(("set", *(f"{m}, {what}" for m in models for what in ("coverage", "width"))), rows)


def latency(report):
    """One row."""
    run = run_of(report, "latency")
    if run is None:
        yield missing("latency")
        return
    yield f"Microseconds to predict one row of abalone. {where(run)}"
    yield table(("model", "interface", "µs"), [(r["model"], f"`{r['by']}`", r["microseconds"]) for r in run["records"]])


PARTS = {"solver": solver, "quantile": quantile, "ranks": ranks, "intervals": intervals, "latency": latency}
PAGE = Page("regression.md", ("regression",), PARTS)

if __name__ == "__main__":
    PAGE.write()
