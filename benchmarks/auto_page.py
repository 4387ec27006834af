"""Put the stored results of bench_auto.py into docs/choosing.md.

python benchmarks/auto_page.py
"""

from measured import Page


def tables(report):
    part = report["accuracy"]
    machine, summary = part["machine"], part["summary"]
    models = list(summary["mean_rank"])
    yield (
        f"{machine['processor']}, {machine['cores']} cores, {machine['date']}. Test accuracy in %, in brackets seconds "
        "to fit (for the SVC the search included); the best in bold."
    )
    lines = ["| set | rows | " + " | ".join(models) + " | chosen |", "|---|---|" + "---|" * len(models) + "---|"]
    found = {}
    for record in part["records"]:
        found.setdefault(record["set"], {})[record["model"]] = record
    for name, by_model in found.items():
        best = max(record["accuracy"] for record in by_model.values())
        cells = []
        for record in (by_model[model] for model in models):
            accuracy = f"{record['accuracy']:.2f}"
            cells.append(
                (f"**{accuracy}**" if record["accuracy"] == best else accuracy) + f" ({record['fit_seconds']:.1f} s)"
            )
        first = by_model[models[0]]
        lines.append(f"| {name} | {first['train_rows']} | " + " | ".join(cells) + f" | {first['chosen']} |")
    yield "\n".join(lines)
    ranks = ", ".join(f"{model} {rank:.2f}" for model, rank in summary["mean_rank"].items())
    yield (
        f"Mean rank over the {summary['sets']} sets, 1 the best: {ranks}. `MosaicClassifier` is better than LightGBM "
        f"on {summary['better_than_lightgbm']} of them."
    )


PAGE = Page("choosing.md", ("auto",), tables)

if __name__ == "__main__":
    PAGE.write()
