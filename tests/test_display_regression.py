"""Pictures of regressors."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from svmosaic import ClusteredSVR, LinearSVR, LocallyLinearSVR
from svmosaic.explain.displays import CurveDisplay, PredictionDisplay, RegionDisplay
from svmosaic.search.intervals import fit_intervals

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def rows(n=200):
    X = np.random.default_rng(0).uniform(-2, 2, size=(n, 2))
    return X, 30.0 + np.sin(2 * X[:, 0]) * X[:, 1]


def test_values_in_a_plane():
    X, y = rows()
    model = ClusteredSVR(4, random_state=0).fit(X, y)
    display = RegionDisplay.from_estimator(model, X, y, resolution=40)
    grid = np.column_stack([display.xx0.ravel(), display.xx1.ravel()])
    assert_allclose(display.response.ravel(), model.predict(grid))
    assert_array_equal(np.asarray(display.surface_.get_array()).ravel(), display.response.ravel())
    assert_allclose(display.scatters_[0].get_offsets(), X)
    assert_allclose(display.scatters_[0].get_array(), y)
    assert display.colorbar_ is not None
    assert display.boundaries_ == []
    assert len(display.cells_) == 3
    RegionDisplay.from_estimator(make_pipeline(StandardScaler(), model).fit(X, y), X, resolution=20)
    with pytest.raises(ValueError, match="the model predicts 2: fit a model to one target"):
        RegionDisplay.from_estimator(LinearSVR().fit(X, np.stack([y, y], axis=1)), X)


def test_predicted_against_actual():
    X, y = rows()
    model = LocallyLinearSVR(12, random_state=0).fit(X, y)
    display = PredictionDisplay.from_estimator(model, X, y, name="price")
    assert_allclose(display.points_.get_offsets(), np.column_stack([y, model.predict(X)]))
    assert_allclose(display.residuals_.get_offsets(), np.column_stack([model.predict(X), y - model.predict(X)]))
    assert display.axes_[0].get_xlabel() == "actual price"
    assert display.bars_ == []
    intervals = fit_intervals(model, X, y, random_state=0)
    display = PredictionDisplay.from_estimator(model, X, y, intervals=intervals.predict)
    ends = intervals.predict(X)
    inside = (ends[:, 0] <= y) & (y <= ends[:, 1])
    assert [len(bar.get_segments()) for bar in display.bars_] == [inside.sum(), (~inside).sum()]
    both = LinearSVR().fit(X, np.stack([y, -y], axis=1))
    display = PredictionDisplay.from_estimator(both, X, np.stack([y, -y], axis=1), target=1)
    assert_allclose(display.y, -y)
    with pytest.raises(ValueError, match="must be of the same length"):
        PredictionDisplay.from_predictions(y, y[:5])


def test_curves_of_a_regressor():
    X, y = rows()
    model = LinearSVR(pieces=8, random_state=0).fit(X, y)
    assert CurveDisplay.from_estimator(model, X).figure_ is not None
