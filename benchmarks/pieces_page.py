"""Put what bench_pieces.py, bench_devices.py and bench_gates.py stored into docs/pieces.md; nothing without a run.

python benchmarks/pieces_page.py
"""

from statistics import mean

from measured import Page, machine_of, table

MODELS = (
    "LinearSVC", "KMeansSVC", "ClusteredSVC", "LocallyLinearSVC", "MixtureSVC", "MultiTaskMixtureSVC",
    "LearnedGateSVC", "TreeSVC",
)  # fmt: skip
EBM = "explainable boosting machine"
NOTICED = 0.005  # differences of accuracy from which a set counts as better or worse


def percent(value):
    return f"{100 * value:.2f}"


def adult(pieces, _, gates):
    if "adult" not in pieces:
        return
    part = pieces["adult"]
    records = part["records"]
    alone = next(r for r in records if r["model"] == "LinearSVC alone")
    yield (
        f"**adult** (text columns one-hot, test part; {machine_of(part)}). `LinearSVC(pieces={alone['pieces']})` on "
        f"unscaled columns has an accuracy of {percent(alone['score'])} % and is fitted in {alone['seconds']:.2f} s of "
        "processor time. With standardized columns and settings chosen by three-fold cross-validation on training "
        "rows, without and with `pieces`:"
    )
    yield table(
        ["model", "without, %", "with, %", "fit without, s", "fit with, s"],
        [
            [f"`{m}`", *(percent(r["score"]) for r in pair), *(f"{r['seconds']:.2f}" for r in pair)]
            for m in MODELS
            for pair in [sorted((r for r in records if r["model"] == m), key=lambda r: r["pieces"] is not None)]
            if len(pair) == 2
        ],
    )
    if "adult" in gates:
        yield from more_settings(gates["adult"])
    boosted = {r["model"]: r for r in records if r["model"].startswith(EBM)}
    if boosted:
        plain, pairs = (boosted[name] for name in (EBM, f"{EBM} with pairs"))
        yield (
            f"For comparison, an {EBM} reaches {percent(plain['score'])} % and is fitted in {plain['seconds']:.0f} s; "
            f"with pairs of columns, {percent(pairs['score'])} % in {pairs['seconds']:.0f} s."
        )


def more_settings(part):
    """What LearnedGateSVC reaches on adult with the longer list of settings of bench_gates.py."""
    summary, scores = part["summary"], [r["accuracy"] for r in part["records"]]
    return [
        f"With {len(summary['held_out'])} settings to choose from, again by three folds of training rows, "
        f"`LearnedGateSVC` reaches {summary['accuracy']:.2f} % with “{summary['setting']}” (the mean of {len(scores)} "
        f"seeds, which reach {min(scores):.2f} to {max(scores):.2f} %; `benchmarks/bench_gates.py`, "
        "[all data sets](learned_gates.md#how-it-was-measured)). This list was extended after test scores of adult had "
        "been seen ([appendix](appendix.md#learned-gates))."
    ]


def splines(pieces, *_):
    if "splines" not in pieces:
        return
    part = pieces["splines"]
    yield (
        "**Compared with an expanded matrix**: the same objective, minimized from our encoded rows and from a matrix "
        "expanded by `SplineTransformer(degree=1)` for scikit-learn's `LinearSVC`, until it is within a thousandth of "
        f"the optimum ({machine_of(part)}; one thread; times include finding the knots; memory beyond the rows "
        "themselves; the expanded matrix is sparse; scikit-learn's default, `dual='auto'`, is the primal solver here):"
    )
    yield table(
        ["set", "method", "seconds", "MB"],
        [
            [r["set"], r["way"], f"{r['seconds']:.3g}" + ("" if r["reached"] else " (not reached)"), r["megabytes"]]
            for r in part["records"]
        ],
    )
    for name in dict.fromkeys(r["set"] for r in part["records"]):
        ours, *others = (r for r in part["records"] if r["set"] == name)
        faster = min(others, key=lambda r: r["seconds"])
        longer, larger = (faster[key] / ours[key] for key in ("seconds", "megabytes"))
        yield f"On {name}, the faster of the two takes {longer:.1f} times as long and {larger:.1f} times the memory."


def tables(pieces, *_):
    if "tables" not in pieces:
        return
    part = pieces["tables"]
    records = part["records"]
    titles = {"mammography": "mammography, average precision", "wine_white": "wine_white, seven classes, accuracy"}
    yield (
        f"**Skewed columns**, scores in % without and with `pieces` ({machine_of(part)}; means of five folds, settings "
        "chosen by cross-validation on training rows):"
    )

    def score(name, model, with_pieces):
        found = [
            r["score"]
            for r in records
            if (r["set"], r["model"]) == (name, model) and (r["pieces"] is not None) == with_pieces
        ]
        return percent(mean(found)) if found else "–"

    models = [m for m in MODELS if any(r["model"] == m for r in records)]
    yield table(
        ["model", *(f"{title}, {how}" for title in titles.values() for how in ("without", "with"))],
        [[f"`{m}`", *(score(name, m, how) for name in titles for how in (False, True))] for m in models],
    )
    better = {
        name: [m for m in models if float(score(name, m, True)) > float(score(name, m, False))] for name in titles
    }
    counts = ", and ".join(f"on {name}, {words(better[name], models)} better with pieces" for name in titles)
    yield f"{counts[0].upper()}{counts[1:]}."
    plain, pairs = (score("mammography", name, False) for name in (EBM, f"{EBM} with pairs"))
    yield f"For comparison, an {EBM} reaches {plain} on mammography, and {pairs} with pairs of columns."


def words(some, models):
    """Which models these are, with a verb."""
    if len(some) == len(models):
        return "all models are"
    if not some:
        return "no model is"
    return f"{' and '.join(f'`{m}`' for m in some)} {'is' if len(some) == 1 else 'are'}"


def sets(pieces, *_):
    if "sets" not in pieces:
        return
    part, large, coupled = pieces["sets"], pieces.get("large", {"records": []}), pieces.get("coupled", {"records": []})
    records = part["records"] + large["records"] + coupled["records"]
    names = list(dict.fromkeys(r["set"] for r in records))
    first = len({r["set"] for r in coupled["records"] if r["model"] == "MultiTaskMixtureSVC"})
    models = [m for m in MODELS if any(r["model"] == m for r in records)]

    def scores(name, model):
        found = {r["pieces"] is not None: r["score"] for r in records if (r["set"], r["model"]) == (name, model)}
        return (found[False], found[True]) if len(found) == 2 else None

    def pair(name, model):
        found = scores(name, model)
        return "–" if found is None else " → ".join(map(percent, found))

    def count(model, sign):
        found = [scores(name, model) for name in names]
        return sum(sign * (after - before) >= NOTICED for before, after in filter(None, found))

    yield (
        f"**The papers' data sets**, test accuracy in % without → with 16 knots ({machine_of(part)}; standardized, "
        "settings chosen by three-fold cross-validation on the training part"
        + (
            f"; covtype with 50,000 and mnist with 10,000 of its rows on {machine_of(large)}, and no mixture on mnist, "
            "whose full covariances of 784 columns take hours to choose among"
            if large["records"]
            else ""
        )
        + (
            f"; `ClusteredSVC`, and `MultiTaskMixtureSVC` on the first {first} sets only, on {machine_of(coupled)}"
            if coupled["records"]
            else ""
        )
        + "). The last lines count the sets on which accuracy is higher or lower by at least half a point:"
    )
    counts = [[word, *(count(m, sign) for m in models)] for word, sign in (("higher on", 1), ("lower on", -1))]
    yield table(
        ["set", *(f"`{m}`" for m in models)], [[name, *(pair(name, m) for m in models)] for name in names] + counts
    )


def covertype(_, devices, __):
    machine = devices["machine"]
    yield (
        f"**covertype**, 522,911 training rows, `LearnedGateSVC` with 1000 tiles and 40 epochs on "
        f"{machine['cores']} cores ({machine['processor']}, {machine['date']}; `benchmarks/bench_devices.py`):"
    )
    yield table(
        ["task", "pieces", "accuracy, %", "fit, s", "processor time, s"],
        [
            [r["task"], r["pieces"] or "none", r["accuracy"], r["fit_seconds"], r["processor_seconds"]]
            for r in devices["records"]
            if r["device"] == "cpu"
        ],
    )


def prediction(pieces, *_):
    if "predict" not in pieces:
        return
    part = pieces["predict"]
    yield (
        f"**Prediction**, ijcnn1 through `predictor()` ({machine_of(part)}; one thread): microseconds for one row, and "
        "nanoseconds per row of a batch, without and with 16 knots:"
    )
    yield table(
        ["model", "type", "one row", "ratio", "batch", "ratio"],
        [
            [
                r["model"], r["dtype"],
                "{} → {}".format(*r["row_microseconds"]), f"{r['row_microseconds'][1] / r['row_microseconds'][0]:.2f}",
                "{} → {}".format(*r["batch_nanoseconds"]),
                f"{r['batch_nanoseconds'][1] / r['batch_nanoseconds'][0]:.2f}",
            ]
            for r in part["records"]
        ],
    )  # fmt: skip
    row, batch = (
        max(r[key][1] / r[key][0] for r in part["records"]) for key in ("row_microseconds", "batch_nanoseconds")
    )
    yield f"Curves thus cost at most {row:.2f} times as much for one row, and {batch:.2f} times for a batch."


PARTS = {
    "adult": adult,
    "tables": tables,
    "covertype": covertype,
    "sets": sets,
    "splines": splines,
    "prediction": prediction,
}
PAGE = Page("pieces.md", ("pieces", "devices", "gates"), PARTS)

if __name__ == "__main__":
    PAGE.write()
