"""The page on prediction: its numbers are those of the stored run."""

import json

from pages import ROOT, script


def test_numbers_are_those_of_the_stored_run():
    page = script("predict_page")
    report = json.loads((ROOT / "benchmarks" / "results" / "predict.json").read_text())
    text = page.PAGE.read_text()
    assert page.with_tables(text, report) == text
