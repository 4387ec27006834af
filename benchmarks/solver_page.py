"""Put the stored results of bench_solver.py into docs/solver.md.

python benchmarks/solver_page.py
"""

from measured import Page, table

# The sets as the page names them, with their numbers of features.
SETS = {
    "usps odd/even": ("USPS odd/even", 256),
    "ijcnn1": ("ijcnn1", 22),
    "mnist odd/even": ("MNIST odd/even", 784),
    "covtype 2 v rest": ("covertype (2 v rest)", 54),
}
SOLVERS = ("svmosaic", "liblinear", "rehline")


def spelt(loss):
    return loss.replace("_", " ")


def seconds(value):
    """Three digits, but no more than three decimals."""
    return f"{value:.{3 if value < 1 else 2 if value < 10 else 1}f}"


def large_cost(report):
    records = report["large_cost"]["records"]
    solvers = {"auto": "`auto` (Newton)", "dual": "`dual`, 100 epochs"}
    yield table(
        [f"C = {records[0]['C']:g}, tol = 1e-6", "seconds", "relative gap at the end"],
        [[f"{spelt(r['loss'])}, {solvers[r['solver']]}", f"{r['seconds']:.1f}", f"{r['gap']:.2g}"] for r in records],
    )


def speed(report):
    last = {(r["task"], r["loss"], r["solver"]): r for task in SETS for r in report[f"race: {task}"]["records"]}
    rows, shown = [], None
    for task, loss in dict.fromkeys((task, loss) for task, loss, _ in last):
        ends = [last[task, loss, solver] for solver in SOLVERS]
        cells = [("" if end["reached"] else "> ") + seconds(end["seconds"]) for end in ends]
        rows.append(["" if task == shown else SETS[task][0], spelt(loss), *cells])
        shown = task
    yield table(["data", "loss", *SOLVERS], rows)
    yield '(">": the time limit was reached first.) ' + ratios(report, last)
    yield "The clustered SVM compared with the linear SVM on MNIST odd/even; fit times include k-means:"
    yield table(
        ["model", "test accuracy", "fit seconds"],
        [
            [model(r["model"]), f"{r['accuracy']:.2%}".replace("%", " %"), f"{r['fit_seconds']:.2f}"]
            for r in report["clustered"]["records"]
        ],
    )


def ratios(report, last):
    found = report["race"]["summary"]["liblinear"]
    text = (
        f"Compared with liblinear, svmosaic is {found['geometric_mean']:.1f} times as fast in the geometric mean, and "
        f"at least {found['smallest']:.1f} times as fast on every problem"
    )
    limits = {
        SETS[task][0]: report[f"race: {task}"]["summary"]["limit_seconds"]
        for (task, _, solver), end in last.items()
        if solver == "liblinear" and not end["reached"]
    }
    stopped = " and ".join(f"on {name} after {limit:.0f} s of wall-clock time" for name, limit in limits.items())
    return text + (f". Where liblinear was stopped ({stopped}), its ratio is a lower bound." if stopped else ".")


def model(name):
    """`svmosaic LinearSVC` is ours, so its name alone will do; classes are set as code."""
    words = name.removeprefix("svmosaic ").replace("(defaults)", "(its defaults)").split(" ")
    return " ".join(f"`{word.rstrip(',')}`" + "," * word.endswith(",") if "SVC" in word else word for word in words)


def cost(report):
    yield "Fit time in seconds against the number of rows, at the default `tol`:"
    times = {}
    for r in report["growth"]["records"]:
        times.setdefault(r["model"], {})[r["rows"]] = r["fit_seconds"]
    sizes = sorted(next(iter(times.values())))
    yield table(
        ["covertype, rows", *(f"{size:,}" for size in sizes)],
        [[model(name), *(f"{found[size]:.2f}" for size in sizes)] for name, found in times.items()],
    )
    yield "Memory beyond X, as a multiple of the size of X in float32 (our own limit is 1.5):"
    rows = []
    for r in sorted(report["memory"]["records"], key=lambda r: -SETS[r["task"]][1]):
        name, features = SETS[r["task"]]
        shares = [r["memory_beyond_X"][peer] for peer in ("svmosaic", "scikit-learn")]
        cells = ["not known" if share is None else f"{share:.2f}" for share in shares]
        rows.append([f"{name}, {spelt(r['loss'])} ({features} features)", *cells])
    yield table(["data", "`LinearSVC`", "scikit-learn's"], rows)


PAGE = Page("solver.md", ("solver",), {"large cost": large_cost, "speed": speed, "cost": cost})

if __name__ == "__main__":
    PAGE.write()
