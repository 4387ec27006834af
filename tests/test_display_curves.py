"""Pictures of curves: what was drawn."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from test_pieces_models import data

from svmosaic import KMeansSVC, LinearSVC, MosaicClassifier
from svmosaic.explain.displays import CurveDisplay, RegionDisplay

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def test_curves_and_distributions():
    X, y = data(0)
    model = LinearSVC(pieces=6, random_state=0).fit(X, y)
    display = CurveDisplay.from_estimator(model, X, features=3)
    effects = model.explain(X).contributions[:, 0]
    order = np.argsort(-effects.std(axis=0), kind="stable")
    assert display.names == [f"x{f}" for f in order[:3]]
    assert_allclose(display.all_spread, effects.std(axis=0)[order])
    assert len(display.axes_) == len(display.histograms_) == len(display.lines_) == 3
    for f, line, below in zip(order, display.lines_, display.histograms_, strict=False):
        x, effect = line.get_data()
        assert_allclose([x[0], x[-1]], [X[:, f].min(), X[:, f].max()])
        curve = model.curves_[int(f)]
        inside = curve.knots[(curve.knots > x[0]) & (curve.knots < x[-1])]
        assert set(inside) <= set(x)  # bends are drawn where they are
        assert_allclose(effect, curve(x)[0] - effects[:, f].mean(), atol=1e-12)
        assert sum(bar.get_height() for bar in below.patches) == len(X)
    widths = [bar.get_width() for bar in display.ranking_][::-1]
    assert_array_equal(widths, display.all_spread)
    assert display.axes_[0].get_ylabel() == "effect on the score of 1"


def test_regions_in_one_panel():
    X, y = data(1, 3)
    model = KMeansSVC(4, pieces=6, random_state=0).fit(X, y)
    share = model.curves_.share
    display = CurveDisplay.from_estimator(model, X, features=["x0", 6], regions=2, output=2, show_ranking=False)
    assert display.ranking_ is None
    assert display.names == ["x0", "x6"]
    assert display.output_name == "2"
    largest = np.argsort(-share, kind="stable")[:2]
    lines = display.axes_[0].get_lines()
    for k, line in zip(largest, lines, strict=False):
        x, effect = line.get_data()
        curve = model.curves_[0]
        assert_allclose(effect, curve(x, tile=k)[2] - curve(X[:, 0], tile=k)[2].mean(), atol=1e-12)
        assert line.get_label().startswith(f"region {k} (")
    given = CurveDisplay.from_estimator(model, X, features=1, regions=[3])
    assert len(given.regions[0]) == 1


def test_pipelines_are_drawn_in_what_the_model_sees():
    X, y = data(2)
    pipeline = make_pipeline(StandardScaler(), LinearSVC(pieces=6)).fit(X, y)
    display = CurveDisplay.from_estimator(pipeline, X, features=[0])
    assert_allclose(display.values[0], StandardScaler().fit_transform(X)[:, 0])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"features": 0}, "features must be at least 1"),
        ({"features": ["nobody"]}, "names or indices"),
        ({"features": [7]}, "names or indices"),
        ({"regions": [1]}, "regions must be below 1"),
        ({"output": 1}, "output must be below 1"),
    ],
)
def test_what_is_not_there_is_refused(options, words):
    X, y = data(3)
    with pytest.raises(ValueError, match=words):
        CurveDisplay.from_estimator(LinearSVC(pieces=4).fit(X, y), X, **options)


def test_models_without_curves_say_so():
    X, y = data(4)
    with pytest.raises(AttributeError, match="pieces=16"):
        CurveDisplay.from_estimator(LinearSVC().fit(X, y), X)


def test_models_of_tables_are_drawn_in_the_features_of_their_columns():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(size=200), "job": rng.choice(["cook", "clerk"], 200)})
    y = np.abs(frame["age"]) > 0.7
    search = {"time_budget": None, "families": ("linear",), "random_state": 0}
    model = MosaicClassifier(**search).fit(frame, y)
    display = CurveDisplay.from_estimator(model, frame)
    assert display.all_names[0] == "age"
    assert set(display.all_names) == {"age", "job_clerk", "job_cook"}
    with pytest.raises(ValueError, match=r"RegionDisplay plots numeric features, .* was fitted to a table .* regions_"):
        RegionDisplay.from_estimator(model, frame, y)
    plt.close("all")
