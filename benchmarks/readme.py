"""Write the tables of README.md from the stored results.

python benchmarks/readme.py
"""

import json
from pathlib import Path

HERE = Path(__file__).parent
README = HERE.parent / "README.md"
BEGIN, END = "<!-- results: python benchmarks/readme.py -->", "<!-- end of results -->"


def stored(name):
    return json.loads((HERE / "results" / f"{name}.json").read_text())


def tables() -> str:
    """The tables in Markdown."""
    local = stored("local")["runs"]["records"]
    lines = [
        "| data set | linear SVM | `LocallyLinearSVC` | published for LL-SVM |",
        "|---|---|---|---|",
    ]
    for run in local:
        anchors = run["settings"].get("n_anchors", 100)
        published = "–" if run["published_error"] is None else f"{run['published_error']:.2f} %"
        lines.append(
            f"| {run['set']}, {anchors} anchors | {run['linear_error']:.2f} % | {run['error']:.2f} % | {published} |"
        )
    mnist = next(run for run in local if run["set"] == "mnist")
    kernel = mnist["kernel"]
    lines += [
        "",
        f"On MNIST the fit takes {mnist['fit_seconds']:.1f} s and a row in a batch {mnist['row_microseconds']:.1f} µs; "
        f"{kernel['peer']} (RBF, C = 10, gamma = 5, not tuned: {kernel['error']:.2f} % error) takes "
        f"{kernel['fit_seconds']:.0f} s and {kernel['row_microseconds']:.0f} µs in the same run. "
        "Test errors of one seed; C is chosen on a held-out part of the training rows; two cores "
        "(`benchmarks/bench_local.py`).",
        "",
        "| compiled predictor, ijcnn1 | one row | accuracy |",
        "|---|---|---|",
    ]
    for model in stored("predict")["cost"]["ijcnn1"]:
        if "estimator_row_us" in model and model["model"].endswith("SVC"):
            lines.append(f"| `{model['model']}` | {model['row_us']:.1f} µs | {100 * model['accuracy']:.2f} % |")
    lines += [
        "",
        "Settings and training rows of `benchmarks/bench_predict.py`, chosen for speed of the benchmark, not tuned.",
    ]
    return "\n".join(lines)


def current() -> str:
    """What stands between the marks in README.md now."""
    return README.read_text().split(BEGIN)[1].split(END)[0].strip()


if __name__ == "__main__":
    text = README.read_text()
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    README.write_text(f"{before}{BEGIN}\n\n{tables()}\n\n{END}{after}")
    print(f"written: {README.name}")
