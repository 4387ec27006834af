"""The page on learnt gates: its numbers are those of the stored run."""

import json

import pytest
from pages import ROOT, script


@pytest.fixture(scope="module")
def page():
    return script("learned_page")


def test_numbers_are_those_of_the_stored_run(page):
    report = json.loads((ROOT / "benchmarks" / "results" / "learned.json").read_text())
    text = page.PAGE.read_text()
    assert page.with_tables(text, report) == text
    for part in page.curves_of(report):
        assert (page.IMAGES / page.picture(part.removesuffix(" curve"))).exists()


def test_targets_are_judged_by_the_mean(page):
    record = {"model": "learnt", "tiles": 32, "train_rows": 1, "fit_seconds": 1, "row_microseconds": 1}
    records = [record | {"accuracy": accuracy} for accuracy in (98.5, 98.9)]
    first, second, *_ = page.targets({"ijcnn1": {"records": records}})
    assert first.endswith("learnt 98.70 (reached)")
    assert second.endswith("no run stored")
    records[1]["accuracy"] = 98.6
    assert next(iter(page.targets({"ijcnn1": {"records": records}}))).endswith("learnt 98.55 (not reached)")
