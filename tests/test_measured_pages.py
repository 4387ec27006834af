"""Pages with measured numbers: they are those of the stored runs."""

import json

import pytest
from pages import ROOT, script


@pytest.mark.parametrize(("maker", "results"), [("predict_page", "predict"), ("auto_page", "auto")])
def test_numbers_are_those_of_the_stored_run(maker, results):
    page = script(maker)
    report = json.loads((ROOT / "benchmarks" / "results" / f"{results}.json").read_text())
    text = page.PAGE.read_text()
    assert page.with_tables(text, report) == text


def test_numbers_of_the_mixtures():
    page = script("mixtures_page")
    text = page.PAGE.read_text()
    assert page.with_tables(text, *page.stored()) == text
