"""Put the stored results of bench_predict.py into docs/prediction.md.

python benchmarks/predict_page.py
"""

from measured import Page, machine_of, table

# Peers that are called without the checks of scikit-learn, as our predictors are.
COMPILED = ("LightGBM native", "LightGBM by lleaves")
COST = (
    "model", "accuracy", "`predict`, one row", "compiled, one row", "batch, per row", "bound", "ONNX, one row",
    "ONNX, batch",
)  # fmt: skip
PROBABILITIES = (
    "model, calibration", "accuracy", "log-loss", "ECE", "fit, s", "without calibration, s", "label", "probabilities",
)  # fmt: skip
SIZE = ("model", "saved file or pickle", "ONNX", "C")


def tables(report):
    machine, rates = report["machine"], report["rates"]
    yield (
        f"{machine['processor']}, load {machine['load']}, one thread, Python {machine['python']}, processor time, best "
        "of five. The settings are those of `benchmarks/bench_predict.py`; they are not tuned but chosen for a short "
        "run, and `FusedSVC` has a fixed weight. All models were trained on the same rows. `predict` validates its "
        "rows as scikit-learn requires. “Compiled” is our `predictor()`, or LightGBM's booster. Batches are scored by "
        "the compiled form if there is one. The bound is a lower limit from the arithmetic: multiply-adds at "
        f"{rates['macs'] / 1e9:.0f} G/s, or bytes at {rates['bytes'] / 1e9:.0f} GB/s, as measured in the same run."
    )
    for name, records in report["cost"].items():
        yield f"**{name}**{trained_on(report, name)}. Microseconds; our models are in bold:"
        yield table(COST, [cost_line(record) for record in records])
        yield from like_with_like(name, records)
        yield f"Sizes on {name}, in kB: the saved file of our models, or the pickle of the others, and the exports:"
        yield table(SIZE, [size_line(record) for record in records])
    for name, records in report["probabilities"].items():
        machine = machine_of({"machine": report["probabilities_machine"]})
        yield (
            f"**Probabilities, {name}** ({machine}; one thread). ECE is the expected calibration error. The last two "
            "columns are the microseconds that `predictor()` takes for the label, or the probabilities, of one row."
        )
        yield table(PROBABILITIES, [quality_line(record) for record in records])


def quality_line(r):
    return (
        r["model"],
        f"{r['accuracy']:.2%}",
        f"{r['log_loss']:.4f}",
        f"{r['ece']:.4f}",
        f"{r['fit_s']:.2f}",
        f"{r['fit_without_s']:.2f}" if "fit_without_s" in r else "–",
        *(f"{us:.1f}" for us in r.get("row_us", [])),
        *["–"] * (2 - len(r.get("row_us", []))),
    )


def trained_on(report, name):
    rows = report.get("train_rows", {}).get(name)
    return f", {rows:,} training rows" if rows else ""


def cost_line(r):
    checked = r.get("estimator_row_us", None if r["model"] in COMPILED else r["row_us"])
    compiled = r["row_us"] if "estimator_row_us" in r or r["model"] in COMPILED else None
    return (
        model_of(r),
        f"{r['accuracy']:.2%}" + (" (on 200 rows)" if r["model"] == "NeighborsSVC" else ""),
        "–" if checked is None else f"{checked:,.0f}",
        "–" if compiled is None else f"{compiled:.2f}",
        f"{float(format(r['batch_us'], '.3g')):,g}",
        f"{r['bound_us']:.3f}" if "bound_us" in r else "–",
        f"{r['onnx_row_us']:.1f}" if "onnx_row_us" in r else "–",
        f"{r['onnx_batch_us']:.2f}" if "onnx_batch_us" in r else "–",
    )


def size_line(r):
    kinds = ("saved_bytes" if "saved_bytes" in r else "pickle_bytes", "onnx_bytes", "c_bytes")
    return (model_of(r), *(f"{r[kind] / 1e3:,.0f}" if r.get(kind) else "–" for kind in kinds))


def model_of(r):
    return f"**{r['model']}**" if "saved_bytes" in r else r["model"]


def like_with_like(name, records):
    """Compiled against compiled, validated against validated."""
    tiled = [r for r in records if "bound_us" in r]
    by = {r["model"]: r for r in records}
    compiled = ", ".join(f"{by[peer]['row_us']:.1f} for {peer}" for peer in COMPILED if peer in by)
    yield (
        f"One row of {name}, in microseconds. Compiled: {_range(tiled, 'row_us', 1)} for our models made of tiles, "
        f"{compiled}. `predict`: {_range(tiled, 'estimator_row_us', 0)} for ours, "
        f"{by['scikit-learn LinearSVC']['row_us']:.0f} for scikit-learn's `LinearSVC`, "
        f"{by['scikit-learn SVC']['row_us']:.0f} for its `SVC`."
    )


def _range(records, key, digits):
    values = [r[key] for r in records]
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}"


PAGE = Page("prediction.md", ("predict",), tables)

if __name__ == "__main__":
    PAGE.write()
