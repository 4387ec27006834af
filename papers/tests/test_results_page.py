"""docs/results.md is what the stored results say, and says where we fall short."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from papers import EXPERIMENTS, Experiment, Method, Store, Task
from papers.draw import draw
from papers.report import entries, html_report, page, shortfalls

ROOT = Path(__file__).parents[2]
STORE = ROOT / "benchmarks" / "results" / "papers.jsonl"
PAGE = ROOT / "docs" / "results.md"

TASK = Task("digits", "digits")
OURS, LINEAR, KERNEL = (
    Method("ours", "KMeansSVC", own=True),
    Method("Linear SVM", "LinearSVC"),
    Method("SVM", "kernel SVM"),
)
TABLE = Experiment(
    "a-table", "CSVM", "A table", "table", (TASK,), (OURS, LINEAR, KERNEL), repeats=2,
    published={("ours", "digits"): (90.0, 1.0), ("Linear SVM", "digits"): 80.1},
    notes={("ours", "digits"): "The printed figure is of another planet."},
)  # fmt: skip


@pytest.fixture
def store(tmp_path):
    values = {"ours": (88.0, 89.0), "Linear SVM": (80.0, 80.4), "SVM": (95.0, 95.0)}
    with Store(tmp_path / "store.jsonl") as store:
        for cell in TABLE.cells():
            key, repeat = cell.key
            accuracy = values[cell.method.name][repeat]
            store.add(
                {"key": key, "repeat": repeat, "kind": "run", "accuracy": accuracy, "fit_seconds": 0.5, "size": 3}
            )
    return store


def test_the_page_and_its_pictures_are_those_of_the_stored_results():
    text = PAGE.read_text()
    assert text == page(EXPERIMENTS, Store(STORE)), "run `python -m papers report` as docs/reproduce.md says"
    for image in re.findall(r"!\[.*?\]\((.*?)\)", text):
        assert (PAGE.parent / image).exists(), f"{image} is missing: draw it with `python -m papers report`"


def test_every_shortfall_has_a_reason():
    stored = Store(STORE)
    silent = [
        (experiment.id, method, task)
        for experiment in EXPERIMENTS
        if experiment.kind == "table"
        for method, task, _, note in shortfalls(experiment, entries(experiment, stored))
        if not note
    ]
    assert not silent


def test_numbers_beside_the_printed_ones(store):
    found = entries(TABLE, store)
    assert found["ours", "digits"].mean == 88.5
    assert found["ours", "digits"].deviation == pytest.approx(0.7071, abs=1e-4)
    text = page([TABLE], store)
    assert "88.50 ± 0.71 (90.00, -1.50 ▼)" in text
    assert "80.20 ± 0.28 (80.10, +0.10)" in text
    assert "The linear SVM is within 0.3 points of the printed figure on digits." in text
    assert "is ahead of ours on digits (by 6.50)" in text
    assert "In 1 of the 1 comparisons below, a kernel SVM" in text
    assert "by 6.50 points in the median" in text
    assert "1.50 points short of the printed 90.00. The printed figure is of another planet." in text
    assert 'class="below"' in html_report([TABLE], store)


def test_errors_are_better_when_lower(store):
    table = replace(TABLE, measure="error", published={("ours", "digits"): 12.0})
    assert not entries(table, store)["ours", "digits"].is_below
    assert "11.50 ± 0.71 (12.00, -0.50)" in page([table], store)
    times = replace(TABLE, measure="fit_seconds", published={("ours", "digits"): 12.0}, notes={})
    assert "0.50 (12.00)" in page([times], store)


def test_what_was_not_run_is_a_dash(tmp_path):
    text = page([TABLE], Store(tmp_path / "none.jsonl"))
    assert "– (90.00)" in text
    assert "holds 0 of 6 runs" in text


def test_printed_points_stand_beside_a_curve(store):
    """Stars and a dotted line in the figure, brackets in the table, and no sentences, which the tables have."""
    curve = replace(
        TABLE, kind="curve", axis="clusters", lines={"ours": ("ours", 8.0), "Linear SVM": ("Linear SVM", 0.0)}
    )
    text = page([curve], store)
    assert "| digits, ours | – | 88.50 (90.00) |" in text
    assert "| digits, Linear SVM | 80.20 (80.10) | – |" in text
    assert "within 0.3 points" not in text
    figure = draw(curve, store)
    (legend,) = figure.legends
    assert {line.get_text() for line in legend.get_texts()} == {
        "ours", "ours, published", "Linear SVM", "Linear SVM, published",
    }  # fmt: skip
    heights = {float(np.ravel(line.get_ydata())[0]) for line in figure.axes[0].get_lines()}
    assert {88.5, 90.0, 80.2, 80.1} <= {round(height, 6) for height in heights}
