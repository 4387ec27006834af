"""Pictures: what was drawn, not only that something was."""

import subprocess
import sys

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from test_pieces_models import data

from svmosaic import (
    ClusteredSVC,
    ClusteredSVR,
    KMeansSVC,
    LearnedGateSVC,
    LinearSVC,
    LinearSVR,
    LocallyLinearSVC,
    LocallyLinearSVR,
    MixtureSVC,
    MosaicClassifier,
    MultiTaskMixtureSVC,
)
from svmosaic.datasets import make_xor
from svmosaic.explain.displays import (
    ConvergenceDisplay,
    CurveDisplay,
    PredictionDisplay,
    RegionDisplay,
)
from svmosaic.explain.displays._pyplot import class_colors
from svmosaic.search.intervals import fit_intervals

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def xor():
    X, y = make_xor(random_state=0)
    return ClusteredSVC(n_clusters=4, random_state=0).fit(X, y), X, y


def offsets(collection):
    return np.asarray(collection.get_offsets())


def test_regions_of_two_features(xor):
    model, X, y = xor
    display = RegionDisplay.from_estimator(model, X, y, resolution=60, class_names=["side", "pole"])
    assert display.figure_ is display.ax_.figure
    assert [display.ax_.get_xlabel(), display.ax_.get_ylabel()] == ["x0", "x1"]
    grid = np.column_stack([display.xx0.ravel(), display.xx1.ravel()])
    assert_array_equal(display.response.ravel(), model.predict(grid))
    assert_array_equal(display.region.ravel(), model.mosaic_.gate.code(grid)[0][:, 0])
    assert_array_equal(np.asarray(display.surface_.get_array()).ravel(), display.response.ravel())
    for c, scatter in enumerate(display.scatters_):
        assert_allclose(offsets(scatter), X[y == c])
    assert_allclose(offsets(display.anchors_), model.cluster_centers_)
    assert len(display.cells_) == 3
    assert all(len(cell.allsegs[0]) for cell in display.cells_)
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts == ["side", "pole", "anchors"]


def test_boundary_lies_where_the_class_changes(xor):
    model, X, y = xor
    display = RegionDisplay.from_estimator(model, X, y, resolution=200)
    (boundary,) = display.boundaries_
    line = np.concatenate(boundary.allsegs[0])
    step = max(np.ptp(display.xx0), np.ptp(display.xx1)) / 199
    for direction in ([step, 0], [0, step]):
        first, second = model.predict(line - direction), model.predict(line + direction)
        assert np.mean(first != second) > 0.3
    around = [model.predict(line + step * np.array(d)) for d in [(1, 0), (-1, 0), (0, 1), (0, -1)]]
    assert np.mean(np.ptp(around, axis=0) > 0) > 0.98


def test_regions_of_more_features_are_a_cut_through_the_mean():
    X, y = load_iris(return_X_y=True)
    model = LocallyLinearSVC(n_anchors=6, n_neighbors=3, random_state=0).fit(X, y)
    display = RegionDisplay.from_estimator(model, X, y, resolution=30)
    assert display.ax_.get_xlabel() == "first principal component"
    assert len(display.scatters_) == 3
    assert_allclose(display.points.mean(axis=0), 0, atol=1e-6)
    assert np.var(display.points[:, 0]) > np.var(display.points[:, 1])
    assert display.anchors.shape == (6, 2)


def test_regions_along_two_features_hold_the_others_at_their_means():
    X, y = load_iris(return_X_y=True)
    model = LinearSVC(random_state=0).fit(X, y)
    names = ["a", "b", "c", "d"]
    display = RegionDisplay.from_estimator(model, X, y, features=("d", 1), feature_names=names, resolution=20)
    rows = np.tile(X.mean(axis=0), (400, 1))
    rows[:, 3], rows[:, 1] = display.xx0.ravel(), display.xx1.ravel()
    assert_array_equal(display.response.ravel(), model.predict(rows))
    assert [display.ax_.get_xlabel(), display.ax_.get_ylabel()] == ["d", "b"]
    assert display.anchors_ is None  # a linear model has none
    assert display.cells_ == []
    with pytest.raises(ValueError, match="names or indices of features, got 'z'"):
        RegionDisplay.from_estimator(model, X, y, features=("z", 1))


def test_anchors_are_taken_back_through_the_scaling():
    X, y = make_xor(120, random_state=0)
    X = X * [100, 1] + [7, 5000]
    centers = []
    pipeline = make_pipeline(StandardScaler(), ClusteredSVC(n_clusters=4, random_state=0)).fit(X, y)
    auto = MosaicClassifier(None, max_tiles=8, families=("local",), blend=False, random_state=0).fit(X, y)
    for model in (pipeline, auto):
        display = RegionDisplay.from_estimator(model, X, y, resolution=20)
        centers.append(display.anchors)
        inside = (display.anchors > X.min(axis=0)) & (display.anchors < X.max(axis=0))
        assert inside.all()
        grid = np.column_stack([display.xx0.ravel(), display.xx1.ravel()])
        assert_array_equal(display.response.ravel(), model.predict(grid))
    assert_allclose(pipeline[0].transform(centers[0]), pipeline[1].cluster_centers_)


@pytest.mark.parametrize(
    "model",
    [
        LearnedGateSVC(n_tiles=5, n_neighbors=2, max_iter=5, random_state=0),
        MixtureSVC(n_experts=3, max_iter=3, random_state=0),
        MultiTaskMixtureSVC(n_experts=3, max_iter=3, random_state=0),
    ],
    ids=lambda m: type(m).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_regions_of_other_gates(model):
    X, y = make_xor(random_state=0)
    display = RegionDisplay.from_estimator(model.fit(X, y), X, y, resolution=30)
    assert len(offsets(display.anchors_)) >= 2
    label = display.anchors_.get_label()
    assert label == ("means of the regions' rows" if isinstance(model, LearnedGateSVC) else "anchors")


def test_parts_can_be_left_out_and_axes_and_names_given(xor):
    model, X, y = xor
    _, ax = plt.subplots()
    display = RegionDisplay.from_estimator(model, X, resolution=20, ax=ax, show_points=False, show_anchors=False)
    assert display.ax_ is ax
    assert display.scatters_ == []
    assert display.anchors_ is None
    assert ax.get_legend() is None
    again = display.plot(show_cells=False)
    assert again.ax_ is not ax
    assert again.cells_ == []
    frame = pandas.DataFrame(X, columns=["east", "north"])
    display = RegionDisplay.from_estimator(
        ClusteredSVC(n_clusters=4, random_state=0).fit(frame, y), frame, resolution=20
    )
    assert display.ax_.get_xlabel() == "east"


def test_convergence_of_em():
    X, y = make_xor(random_state=0)
    model = MixtureSVC(n_experts=6, random_state=0).fit(X, y)
    display = ConvergenceDisplay.from_estimator(model)
    objective, live = display.lines_
    assert_array_equal(objective.get_ydata(), model.objective_)
    assert_array_equal(live.get_ydata(), model.experts_per_iter_)
    assert_array_equal(objective.get_xdata(), np.arange(len(model.objective_)))
    assert display.ax_.get_xlabel() == "iteration"
    assert display.right_ax_.get_ylabel() == "live tiles"
    assert [t.get_text() for t in display.ax_.get_legend().get_texts()] == ["objective", "live tiles"]


def test_convergence_of_learning():
    X, y = make_xor(random_state=0)
    model = LearnedGateSVC(n_tiles=5, max_iter=6, early_stopping=True, random_state=0)
    display = ConvergenceDisplay.from_estimator(make_pipeline(StandardScaler(), model).fit(X, y))
    assert_array_equal(display.lines_[0].get_ydata(), model.loss_curve_)
    assert_array_equal(display.lines_[0].get_xdata(), np.arange(1, len(model.loss_curve_) + 1))
    assert_array_equal(display.lines_[1].get_ydata(), model.validation_scores_)
    assert display.ax_.get_xlabel() == "epoch"
    plain = LearnedGateSVC(n_tiles=5, max_iter=3, early_stopping=False, random_state=0).fit(X, y)
    alone = ConvergenceDisplay.from_estimator(plain, ax=display.ax_)
    assert alone.right_ax_ is None
    assert alone.ax_ is display.ax_
    with pytest.raises(TypeError, match="LinearSVC has no history of its fit"):
        ConvergenceDisplay.from_estimator(LinearSVC().fit(X, y))


def test_colors_are_many_and_all_different():
    assert len(set(class_colors(24))) == 24


def test_missing_matplotlib_names_the_extra():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from svmosaic.explain import region_report\n"
        "from svmosaic import LinearSVC\n"
        "from svmosaic.explain.displays import RegionDisplay\n"
        "X, y = [[0.0, 1.0], [1.0, 0.0]], [0, 1]\n"
        "try: RegionDisplay.from_estimator(LinearSVC().fit(X, y), X, y)\n"
        "except ImportError as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install matplotlib" in run.stdout


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


@pytest.mark.parametrize("estimator", [LinearSVC(pieces=6), LinearSVR(pieces=6)])
def test_pipelines_are_drawn_in_what_the_model_sees(estimator):
    X, y = data(2)
    pipeline = make_pipeline(StandardScaler(), estimator).fit(X, y)
    display = CurveDisplay.from_estimator(pipeline, X, features=[0], feature_names=list("abcdefg"))
    assert_allclose(display.values[0], StandardScaler().fit_transform(X)[:, 0])
    assert display.names == ["a"]
    with pytest.raises(ValueError, match="one name for each of the 7 features"):
        CurveDisplay.from_estimator(pipeline, X, feature_names=["a"])


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
    with pytest.raises(AttributeError, match="pieces=16"):
        CurveDisplay.from_estimator(LinearSVC().fit(X, y), X)


def test_models_of_tables_are_drawn_in_the_features_of_their_columns():
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"age": rng.normal(size=200), "job": rng.choice(["cook", "clerk"], 200)})
    y = np.abs(frame["age"]) > 0.7
    search = {"time_budget": None, "families": ("linear",), "random_state": 0}
    model = MosaicClassifier(**search).fit(frame, y)
    display = CurveDisplay.from_estimator(model, frame)
    assert display.all_names[0] == "age"
    assert set(display.all_names) == {"age", "job_clerk", "job_cook"}
    with pytest.raises(ValueError, match=r"RegionDisplay plots numeric features, .* was fitted to a table .* regions_"):
        RegionDisplay.from_estimator(model, frame, y)


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
