"""Put the stored results of study_trees.py and bench_trees.py into docs/rules.md; nothing of a part without a run.

python benchmarks/trees_page.py
"""

from statistics import mean

from measured import Page, machine_of, table


def percent(value):
    return "–" if value is None else f"{100 * value:.2f}"


def study(report, _):
    if "defaults" not in report:
        return
    summary = report["defaults"]["summary"]
    n_sets = len({r["set"] for r in report["defaults"]["records"]})
    yield (
        f"**Defaults.** Percentage points of accuracy behind the best of {len(summary)} settings, mean over {n_sets} "
        "data sets, on rows held out from the training parts (`benchmarks/study_trees.py`). The table shows the best "
        "settings, and those that differ from 32 linear trees of 32 leaves in one parameter:"
    )
    base = "32 trees of 32, linear, C = 0.1"
    shown = [*list(summary)[:6], *(name for name in summary if name.startswith(base) or "bootstrap" in name)]
    yield table(
        ["setting", "points behind", "processor seconds, all sets"],
        [[name, summary[name]["points_behind"], summary[name]["seconds"]] for name in dict.fromkeys(shown)],
    )


def adult(_, report):
    if "adult" not in report:
        return
    part = report["adult"]
    yield f"**adult**, test part ({machine_of(part)}; processor seconds, one thread):"
    yield table(
        ["model", "settings", "accuracy, %", "ROC AUC", "fit, s"],
        [
            [
                r["model"], ", ".join(f"{k}={v}" for k, v in r.get("settings", {}).items()) or "defaults",
                percent(r["accuracy"]), "–" if r.get("auc") is None else f"{r['auc']:.4f}",
                f"{'not finished after ' * (r['accuracy'] is None)}{r['seconds']:.1f}",
            ]
            for r in part["records"]
        ],
    )  # fmt: skip
    yield "The rules of the single tree, as `export_text` prints them (one-hot columns end in `_value`):"
    yield "```text\n" + "\n".join(part["summary"]["rules"]) + "\n```"


def tables(_, report):
    if "tables" not in report:
        return
    part = report["tables"]
    records = part["records"]
    models = list(dict.fromkeys(r["model"] for r in records))
    yield (
        f"**Eight more data sets**, accuracy in % ({machine_of(part)}; tables: mean of three folds; the others: their "
        "test parts; 100,000 training rows of covertype). The settings of TreeSVC are chosen by cross-validation on "
        "training rows; the other models have their default settings. “–” was not finished when the run was stopped "
        "after 500 seconds (which include the choice of settings of TreeSVC), and is ranked last:"
    )

    def score(name, model):
        found = [r["accuracy"] for r in records if (r["set"], r["model"]) == (name, model)]
        return percent(None if None in found else mean(found))

    rows = [[name, *(score(name, m) for m in models)] for name in dict.fromkeys(r["set"] for r in records)]
    ranks = part["summary"]["mean_rank"]
    yield table(["set", *models], [*rows, ["mean rank", *(ranks[m] for m in models)]])


def speed(_, report):
    if "speed" not in report:
        return
    part = report["speed"]
    yield f"**Speed on adult**, constant leaves, 32 leaves per tree ({machine_of(part)}; one thread):"
    yield table(
        ["trees", "fit, s", "one row, µs", "per row of 100,000, ns", "LightGBM with as many trees and leaves, ns"],
        [
            [r["trees"], r["fit_seconds"], r["row_microseconds"], r["batch_nanoseconds"], r["peer_batch_nanoseconds"]]
            for r in part["records"]
        ],
    )


PAGE = Page("rules.md", ("trees_study", "trees"), {"study": study, "adult": adult, "tables": tables, "speed": speed})

if __name__ == "__main__":
    PAGE.write()
