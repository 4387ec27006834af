"""Put the stored results of study_local.py and bench_local.py into docs/local_coding.md.

python benchmarks/local_page.py
"""

from statistics import mean

from measured import Page, table

CODINGS, LOSSES, COSTS = ("softmax", "inverse"), ("squared_hinge", "hinge"), (1.0, 10.0, 100.0)


def study(report, _):
    records = report["grid"]["records"]
    sets = sorted({r["set"] for r in records})
    best = {name: min(r["error"] for r in records if r["set"] == name) for name in sets}

    def lost(**setting):
        """Mean points lost to the best setting of each set, over the settings that agree with this one."""
        found = [r for r in records if all(r[key] == value for key, value in setting.items())]
        return f"{mean(r['error'] - best[r['set']] for r in found):.2f}"

    settings = len(records) // len(sets)
    yield (
        f"Percentage points behind the best of the {settings} settings of each data set, mean over {len(sets)} data "
        "sets. In this table, also the mean over anchors and neighbors:"
    )
    yield table(
        ["", *(f"C = {C:g}" for C in COSTS)],
        [
            [f"{coding} codes, {loss.replace('_', ' ')}", *(lost(coding=coding, loss=loss, C=C) for C in COSTS)]
            for coding in CODINGS
            for loss in LOSSES
        ],
    )
    robust = {"coding": "softmax", "loss": "squared_hinge", "C": 10.0}
    neighbors = sorted({r["n_neighbors"] for r in records})
    yield "Softmax codes, squared hinge, C = 10:"
    yield table(
        ["", *(f"{k} neighbors" for k in neighbors)],
        [
            [f'`anchors="{anchors}"`', *(lost(**robust, anchors=anchors, n_neighbors=k) for k in neighbors)]
            for anchors in ("class", "kmeans")
        ],
    )
    behind = sum(min(r["error"] for r in records if (r["set"], r["C"]) == (name, 1.0)) > best[name] for name in sets)
    yield f"On {behind} of the {len(sets)} data sets, no setting with C = 1 is as good as the best with a larger C."


def runs(_, report):
    part = report["runs"]
    machine, records = part["machine"], part["records"]
    seeds = sorted({r["repeats"] for r in records})
    yield (
        f"{machine['processor']}, {machine['cores']} cores, {machine['date']}; `n_jobs=2`. Test errors in %, "
        f"{' or '.join(map(str, seeds))} seed{'s' if seeds != [1] else ''}; wall-clock seconds. The linear SVM "
        "has its default C. The published figures are for 8 neighbors and 100 anchors; the one for ijcnn1 is from "
        "another paper that ran the method again."
    )
    yield table(
        ["set", "anchors", "neighbors", "C", "linear SVM", "`LocallyLinearSVC`", "published", "fit, s", "µs per row"],
        [
            [
                r["set"],
                r["settings"].get("n_anchors", 100),
                r["settings"]["n_neighbors"],
                f"{r['settings']['C']:g}",
                f"{r['linear_error']:.2f}",
                f"{r['error']:.2f}" + (f" ± {r['deviation']:.2f}" if r["repeats"] > 1 else ""),
                f"{r['published_error']:.2f}",
                f"{r['fit_seconds']:.2f}",
                f"{r['row_microseconds']:.2f}",
            ]
            for r in records
        ],
    )
    yield from (beside_kernel(r) for r in records if "kernel" in r)


def beside_kernel(run):
    kernel, stages = run["kernel"], run["stages"]
    took = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in stages.items())
    return (
        f"On {run['set']}, {kernel['peer']} (RBF, C = 10, gamma = 5, not tuned, number of threads not set) was run "
        f"too: its error is {kernel['error']:.2f} %, it fits in {kernel['fit_seconds']:.1f} s and takes "
        f"{kernel['row_microseconds']:.0f} µs per row. A fit of `LocallyLinearSVC` there spends its time on: {took}."
    )


PAGE = Page("local_coding.md", ("local_study", "local"), {"study": study, "runs": runs})

if __name__ == "__main__":
    PAGE.write()
