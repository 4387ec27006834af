"""Models as JavaScript in Chromium: the same numbers as in Python, to 1e-9 on 1,000 rows of each kind of model."""

import numpy as np
import pytest
from browser import opened, running_browser  # noqa: F401
from exported import densities, estimators, training_set
from numpy.testing import assert_allclose, assert_array_equal
from test_export_javascript import rows_near

from svmosaic.export.javascript import to_javascript

MODELS = estimators() | densities()
PAGE = """<!DOCTYPE html><meta charset="utf-8"><title>model</title><script type="module">
@MODEL@
window.explained = (rows) => rows.map((row) => {
  const { label, scores, contributions, intercept } = explain(row);
  return { label, scores, contributions: contributions && contributions.map(Object.values), intercept };
});
</script>"""


# One of each kind of gate, link and calibration; Node runs all of them in test_export_javascript.
QUICK = {
    "linear-temperature", "kmeans-sigmoid", "clustered-isotonic", "local-llc", "rules-linear-temperature",
    "learned-pieces", "mixture-sigmoid", "tree-posterior", "gaussian-temperature", "spherical", "fused-sigmoid",
}  # fmt: skip


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in MODELS]
)
def test_a_browser_agrees_with_python(name, opened):  # noqa: F811
    X, y = training_set(3)
    model = MODELS[name].fit(X, y)
    rows = rows_near(X)
    page = opened(PAGE.replace("@MODEL@", to_javascript(model)))
    page.wait_for_function("() => 'explained' in window")
    found = page.evaluate("(rows) => explained(rows)", rows.tolist())
    expected = model.decision_function(rows)
    scores = np.array([one["scores"] for one in found])
    assert_allclose(scores, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    assert_array_equal([one["label"] for one in found], model.predict(rows))
    if found[0]["contributions"] is not None:
        parts = np.array([one["contributions"] for one in found])
        assert_allclose(parts.sum(axis=2) + [one["intercept"] for one in found], scores, rtol=1e-9, atol=1e-9)
