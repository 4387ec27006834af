"""Put the stored results of bench_predict.py into docs/prediction.md.

python benchmarks/predict_page.py
"""

from measured import Page


def tables(report):
    machine, rates = report["machine"], report["rates"]
    yield " ".join(
        [
            f"{machine['processor']}, one thread, Python {machine['python']}, processor time, best of five.",
            f"The bound is arithmetic: multiply-adds at {rates['macs'] / 1e9:.0f} G/s or bytes at",
            f"{rates['bytes'] / 1e9:.0f} GB/s, as measured in the same run. Our rows go through the predictor, the",
            "peers' through their `predict`; all models were trained on the same rows.",
        ]
    )
    for name, records in report["cost"].items():
        lines = [
            f"**{name}**{trained_on(report, name)}: cost in microseconds, size in kB "
            "(ours: saved file / ONNX / C; peers: pickle).",
            "",
            "| model | accuracy | one row | batch, a row | bound | ONNX one row / batch | size |",
            "|---|---|---|---|---|---|---|",
        ]
        lines += [cost_line(record) for record in records]
        yield "\n".join(lines)
    yield "\n".join(musts(report["must"]))
    for name, records in report["probabilities"].items():
        lines = [
            f"**Probabilities, {name}**",
            "",
            "| model, calibration | accuracy | log-loss | ECE | fit, s | fit without calibration, s |",
            "|---|---|---|---|---|---|",
        ]
        for r in records:
            without = f"{r['fit_without_s']:.2f}" if "fit_without_s" in r else ""
            quality = f"{r['accuracy']:.2%} | {r['log_loss']:.4f} | {r['ece']:.4f}"
            lines.append(f"| {r['model']} | {quality} | {r['fit_s']:.2f} | {without} |")
        yield "\n".join(lines)


def trained_on(report, name):
    rows = report.get("train_rows", {}).get(name)
    return f", {rows} rows to train" if rows else ""


def cost_line(r):
    if "saved_bytes" not in r:
        size = f"{r['pickle_bytes'] / 1e3:.0f}"
        return f"| {r['model']} | {r['accuracy']:.2%} | {r['row_us']:.1f} | {r['batch_us']:.3g} | | | {size} |"
    onnx = f"{r['onnx_row_us']:.1f} / {r['onnx_batch_us']:.2f}" if "onnx_row_us" in r else ""
    kinds = ("saved_bytes", "onnx_bytes", "c_bytes")
    sizes = " / ".join(f"{r[key] / 1e3:.0f}" if r.get(key) else "-" for key in kinds)
    bound = f"{r['bound_us']:.3f}" if "bound_us" in r else ""
    return (
        f"| **{r['model']}** | {r['accuracy']:.2%} | {r['row_us']:.2f} | {r['batch_us']:.3f} | {bound} "
        f"| {onnx} | {sizes} |"
    )


def musts(must):
    for name, values in must.items():
        for key, value in values.items():
            shown = ", ".join(f"{k} {v:.3g}" for k, v in value.items()) if isinstance(value, dict) else f"{value:.3g}"
            yield f"- {name}: {key.replace('_', ' ')}: {shown}"


PAGE = Page("prediction.md", ("predict",), tables)

if __name__ == "__main__":
    PAGE.write()
