"""Put the stored results of bench_pieces.py and bench_devices.py into docs/pieces.md; nothing of a part without a run.

python benchmarks/pieces_page.py
"""

from statistics import mean

from measured import Page, machine_of, table

MODELS = ("LinearSVC", "KMeansSVC", "LocallyLinearSVC", "MixtureSVC", "LearnedGateSVC", "TreeSVC")


def percent(value):
    return f"{100 * value:.2f}"


def adult(pieces, _):
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
    for r in records:
        if "boosting" in r["model"]:
            score, seconds = percent(r["score"]), r["seconds"]
            yield f"For comparison, an {r['model']} reaches {score} % and is fitted in {seconds:.0f} s."


def splines(pieces, _):
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


def tables(pieces, _):
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

    yield table(
        ["model", *(f"{title}, {how}" for title in titles.values() for how in ("without", "with"))],
        [[f"`{m}`", *(score(name, m, how) for name in titles for how in (False, True))] for m in MODELS],
    )
    for model in dict.fromkeys(r["model"] for r in records if "boosting" in r["model"]):
        yield f"For comparison, an {model} reaches {score('mammography', model, False)} on mammography."


def sets(pieces, _):
    if "sets" not in pieces:
        return
    part, large = pieces["sets"], pieces.get("large", {"records": []})
    records = part["records"] + large["records"]
    names = list(dict.fromkeys(r["set"] for r in records))
    models = [m for m in MODELS if any(r["model"] == m for r in records)]

    def pair(name, model):
        found = {r["pieces"] is not None: r["score"] for r in records if (r["set"], r["model"]) == (name, model)}
        return f"{percent(found[False])} → {percent(found[True])}" if len(found) == 2 else "–"

    yield (
        f"**The papers' data sets**, test accuracy in % without → with 16 knots ({machine_of(part)}; standardized, "
        "settings chosen by three-fold cross-validation on the training part"
        + (
            f"; covtype with 50,000 and mnist with 10,000 of its rows on {machine_of(large)}, and no mixture on mnist, "
            "whose full covariances of 784 columns take hours to choose among"
            if large["records"]
            else ""
        )
        + "):"
    )
    yield table(["set", *(f"`{m}`" for m in models)], [[name, *(pair(name, m) for m in models)] for name in names])


def covertype(_, devices):
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


def prediction(pieces, _):
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


PARTS = {
    "adult": adult,
    "tables": tables,
    "covertype": covertype,
    "sets": sets,
    "splines": splines,
    "prediction": prediction,
}
PAGE = Page("pieces.md", ("pieces", "devices"), PARTS)

if __name__ == "__main__":
    PAGE.write()
