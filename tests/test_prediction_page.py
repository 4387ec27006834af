"""The page on prediction: its examples run, and its numbers are those of the stored run."""

import doctest
import importlib.util
import json
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_examples_run():
    failed, tried = doctest.testfile(str(ROOT / "docs" / "prediction.md"), module_relative=False)
    assert failed == 0
    assert tried > 10


def test_numbers_are_those_of_the_stored_run():
    spec = importlib.util.spec_from_file_location("predict_page", ROOT / "benchmarks" / "predict_page.py")
    page = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(page)
    report = json.loads((ROOT / "benchmarks" / "results" / "predict.json").read_text())
    text = page.PAGE.read_text()
    assert page.with_tables(text, report) == text
