"""One row of a table, given by column, to a prediction: ours in all languages, LightGBM's and scikit-learn's pipelines.

All models are trained on the same rows of adult. Everything between the row (a dict in Python, an object in JavaScript,
strings and numbers in C) and the predicted class is measured, preparation included, in processor time on one thread:
the best of several passes over the same rows, divided by their number. Peers get what their users write: a frame
of one row; LightGBM's booster also an array that was encoded by hand. Labels of our exports must be those of our
`predict`.

    python benchmarks/bench_latency.py            adult, from SVMOSAIC_DATA; writes benchmarks/results/latency.json
    python benchmarks/bench_latency.py --quick    a small made-up table
"""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

from common import arguments, fastest, gradient_boosting, print_records, write_results  # isort: skip

import numpy as np
import pandas as pd
from setting import data_folder
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from svmosaic import MosaicClassifier

NODE_DRIVER = """
import { predict } from "./model.mjs";
import { readFileSync } from "node:fs";
const { rows, passes } = JSON.parse(readFileSync("rows.json"));
let best = Infinity, labels = [];
for (let pass = 0; pass < passes; ++pass) {
  const start = process.cpuUsage();
  labels = rows.map((row) => predict(row));
  const { user, system } = process.cpuUsage(start);
  best = Math.min(best, (user + system) / rows.length);
}
console.log(JSON.stringify({ best, labels }));
"""
C_DRIVER = """
#include <math.h>
#include <stdio.h>
#include <time.h>
#include "model.h"
static const char *const texts[@ROWS@][@COLUMNS@] = {
@TEXTS@
};
static const double numbers[@ROWS@][@COLUMNS@] = {
@NUMBERS@
};
static int label[@ROWS@];
int main(void) {
  double best = 1e300;
  for (int pass = 0; pass < @PASSES@; ++pass) {
    const clock_t start = clock();
    for (int repeat = 0; repeat < @REPEATS@; ++repeat)
      for (int i = 0; i < @ROWS@; ++i) {
        float x[@COLUMNS@];
        for (int f = 0; f < @COLUMNS@; ++f) x[f] = @VALUE@;
        label[i] = model_predict(x);
      }
    const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC / (@ROWS@ * @REPEATS@);
    if (seconds < best) best = seconds;
  }
  printf("%.17g", 1e6 * best);
  for (int i = 0; i < @ROWS@; ++i) printf(" %s", model_classes[label[i]]);
  return 0;
}
"""


def table(quick):
    """(training frame, labels, test frame, labels)."""
    if quick:
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"age": rng.integers(18, 80, 1500), "hours": rng.normal(40, 10, 1500)})
        frame["town"] = rng.choice(["Oslo", "Bern", "Rome"], 1500)
        y = np.where(frame["age"] + 30 * (frame["town"] == "Bern") + frame["hours"] > 95, "yes", "no")
        return frame[:1000], y[:1000], frame[1000:].reset_index(drop=True), y[1000:]
    parts = []
    for name in ("train", "test"):
        frame = pd.read_csv(data_folder() / "tables" / f"adult_{name}.csv")
        y = frame.pop("income").to_numpy(dtype=str)
        parts += [frame, y]
    return tuple(parts)


def timed(answer, rows, passes):
    """Microseconds per row, and the answers."""
    answers = [answer(row) for row in rows]
    return 1e6 * fastest(lambda: [answer(row) for row in rows], repeats=passes) / len(rows), answers


def peers(frame):
    """Pipelines as their users write them."""
    text = [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]
    numbers = [name for name in frame if name not in text]
    fill = SimpleImputer(strategy="constant", fill_value="(missing)")
    codes = make_pipeline(fill, OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1))
    words = make_pipeline(fill, OneHotEncoder(handle_unknown="ignore"))
    scaled = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    boosted = make_pipeline(
        make_column_transformer(("passthrough", numbers), (codes, text)), gradient_boosting(random_state=0)
    )
    linear = make_pipeline(make_column_transformer((scaled, numbers), (words, text)), LogisticRegression(max_iter=2000))
    return {f"{type(boosted[-1]).__name__} pipeline": boosted, "LogisticRegression pipeline": linear}


def by_hand(pipeline):
    """A function from a row to LightGBM's answer without the pipeline: codes from dicts, one array, the booster."""
    numbers, text = (columns for _, _, columns in pipeline[0].transformers_[:2])
    codes = [
        {value: float(code) for code, value in enumerate(values)}
        for values in pipeline[0].transformers_[1][1][-1].categories_
    ]
    booster, classes = pipeline[-1].booster_, pipeline[-1].classes_

    def answer(row):
        x = [np.nan if row[name] is None else row[name] for name in numbers]
        for name, known in zip(text, codes, strict=True):
            x.append(known.get("(missing)" if row[name] is None else row[name], -1.0))
        return classes[int(booster.predict(np.array([x]), num_threads=1)[0] > 0.5)]

    return answer


def in_onnx(model, rows, passes, folder):
    """Microseconds and labels by onnxruntime."""
    import onnxruntime

    proto = model.to_onnx(folder / "model.onnx")
    columns = {prop.key: json.loads(prop.value) for prop in proto.metadata_props}["columns"]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(folder / "model.onnx", options, providers=["CPUExecutionProvider"])
    inputs = [(value.name, columns[value.name], value.type == "tensor(string)") for value in session.get_inputs()]

    def answer(row):
        feed = {}
        for name, column, is_text in inputs:
            value = row[column]
            if is_text:
                feed[name] = np.array([["" if value is None else value]], dtype=object)
            else:
                feed[name] = np.array([[np.nan if value is None else value]], dtype=np.float32)
        return session.run(["label"], feed)[0][0]

    return timed(answer, rows, passes)


def in_javascript(model, rows, passes, folder):
    """Microseconds and labels by Node."""
    model.to_javascript(folder / "model.mjs")
    (folder / "driver.mjs").write_text(NODE_DRIVER)
    (folder / "rows.json").write_text(json.dumps({"rows": rows, "passes": 20 * passes}))
    done = subprocess.run(["node", "driver.mjs"], cwd=folder, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    return found["best"], found["labels"]


def in_c(model, rows, passes, folder):
    """Microseconds and labels by a C program."""
    from svmosaic.export.c.tables import c_string

    model.to_c(folder / "model.c", name="model")
    text = [any(isinstance(row[name], str) for row in rows) for name in rows[0]]

    def listed(write):
        return ",\n".join("  {" + ", ".join(write(value) for value in row.values()) + "}" for row in rows)

    number = "(float)numbers[i][f]"
    values = {
        "ROWS": len(rows), "COLUMNS": len(text), "PASSES": passes, "REPEATS": 20,
        "TEXTS": listed(lambda value: c_string(value) if isinstance(value, str) else "0"),
        "NUMBERS": listed(lambda value: "NAN" if value is None else "0" if isinstance(value, str) else repr(value)),
        "VALUE": f"is_text[f] ? model_text(f, texts[i][f]) : {number}" if any(text) else number,
    }  # fmt: skip
    source = C_DRIVER
    for mark, value in values.items():
        source = source.replace(f"@{mark}@", str(value))
    flags = ", ".join(str(int(one)) for one in text)
    source = source.replace(
        "static int label", f"static const int is_text[{len(text)}] = {{{flags}}};\nstatic int label"
    )
    (folder / "driver.c").write_text(source)
    command = [shutil.which("cc"), "-O2", "-std=c99", "driver.c", "model.c", "-o", "driver", "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    microseconds, *labels = subprocess.run(
        ["./driver"], cwd=folder, capture_output=True, text=True, check=True
    ).stdout.split()
    return float(microseconds), labels


def main():
    options = arguments(__doc__)
    quick = options.quick
    frame, y, test, y_test = table(quick)
    n_rows, passes = (50, 2) if quick else (300, 10)
    some = test[:n_rows]
    rows = some.astype(object).where(some.notna(), None).to_dict("records")
    model = MosaicClassifier(2.0 if quick else 60.0, random_state=0).fit(frame, y)
    expected, records = model.predict(some).tolist(), []

    def keep(name, accuracy, microseconds, labels=None):
        assert labels is None or [str(label) for label in labels] == expected, f"{name} has other labels"
        records.append({"what": name, "accuracy": accuracy, "microseconds": round(microseconds, 3)})

    accuracy = float(model.score(test, y_test))
    keep("predictor()", accuracy, *timed(model.predictor().predict, rows, passes))
    with tempfile.TemporaryDirectory() as folder:
        for name, measure in (("ONNX, onnxruntime", in_onnx), ("JavaScript, Node", in_javascript), ("C", in_c)):
            keep(name, accuracy, *measure(model, rows, passes, Path(folder)))
    keep("predict of a frame", accuracy, timed(lambda row: model.predict(pd.DataFrame([row])), rows, passes)[0])
    for name, peer in peers(frame).items():
        peer.fit(frame, y)
        found = timed(lambda row, peer=peer: peer.predict(pd.DataFrame([row], columns=frame.columns)), rows, passes)[0]
        accuracy = float(np.mean(peer.predict(test) == y_test))
        keep(name, accuracy, found)
        if hasattr(peer[-1], "booster_"):
            microseconds, labels = timed(by_hand(peer), rows, passes)
            assert labels == peer.predict(some).tolist()
            keep("LightGBM's booster, encoded by hand", accuracy, microseconds)
    kind = type(model.best_estimator_).__name__ if hasattr(model, "best_estimator_") else type(model).__name__
    summary = {"model": kind, "tiles": int(model.mosaic_.n_tiles), "rows": n_rows, "train_rows": len(frame)}
    write_results("latency", "adult", records, summary, options)
    print_records("One row, from its columns to its class", records)


if __name__ == "__main__":
    main()
