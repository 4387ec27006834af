"""Settings that cross-validation chose, as benchmarks/search_mixtures.py stored them."""

import json
from pathlib import Path

STORED = Path(__file__).parents[1] / "benchmarks" / "results" / "mixtures_accuracy.json"


def chosen_setting(model, name):
    """The stored setting of a model for a data set."""
    lines = map(json.loads, STORED.read_text().splitlines())
    return next(line["setting"] for line in lines if (line["model"], line["set"]) == (model, name))
