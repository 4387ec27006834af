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

from svmosaic import (
    ClusteredSVC,
    LearnedGateSVC,
    LinearSVC,
    LocallyLinearSVC,
    MixtureSVC,
    MosaicClassifier,
    MultiTaskMixtureSVC,
)
from svmosaic.datasets import make_xor
from svmosaic.explain.displays import ConvergenceDisplay, PixelMapDisplay, RegionDisplay, pixel_map
from svmosaic.explain.displays._pyplot import class_colors

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


def test_parts_can_be_left_out_and_axes_given(xor):
    model, X, _ = xor
    _, ax = plt.subplots()
    display = RegionDisplay.from_estimator(model, X, resolution=20, ax=ax, show_points=False, show_anchors=False)
    assert display.ax_ is ax
    assert display.scatters_ == []
    assert display.anchors_ is None
    assert ax.get_legend() is None
    again = display.plot(show_cells=False)
    assert again.ax_ is not ax
    assert again.cells_ == []


def test_frames_keep_their_names():
    X, y = make_xor(random_state=0)
    frame = pandas.DataFrame(X, columns=["east", "north"])
    model = ClusteredSVC(n_clusters=4, random_state=0).fit(frame, y)
    display = RegionDisplay.from_estimator(model, frame, y, resolution=20)
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


def test_convergence_without_history_is_refused(xor):
    with pytest.raises(TypeError, match="ClusteredSVC has no history of its fit"):
        ConvergenceDisplay.from_estimator(xor[0])


def test_pixel_map_beside_the_truth():
    rng = np.random.RandomState(0)
    truth = np.repeat(np.repeat([[1, 2], [3, 0]], 5, axis=0), 6, axis=1)
    bands = rng.standard_normal((truth.size, 3)) * 0.2 + np.eye(4)[truth.ravel()][:, 1:]
    labelled = truth.ravel() > 0
    model = LinearSVC(random_state=0).fit(bands[labelled], truth.ravel()[labelled])
    assert pixel_map(model, bands, truth.shape).shape == (10, 12)
    display = PixelMapDisplay.from_estimator(model, bands, truth.ravel(), shape=truth.shape, class_names=list("abc"))
    predicted, true = display.images_
    assert_array_equal(predicted.get_array() + 1, pixel_map(model, bands, truth.shape))
    assert_array_equal(true.get_array().mask, truth == 0)
    assert_array_equal(true.get_array().compressed() + 1, truth[truth > 0])
    share = model.score(bands[labelled], truth.ravel()[labelled])
    assert display.ax_[0].get_title() == f"predicted, accuracy {100 * share:.1f} %"
    assert display.ax_[1].get_title() == "truth"
    assert [t.get_text() for t in display.legend_.get_texts()] == ["a", "b", "c", "unlabeled"]
    display.plot(hide_unlabelled=True)
    assert_array_equal(display.images_[0].get_array().mask, truth == 0)


def test_pixel_map_alone_and_wrong_shapes(xor):
    model, X, _ = xor
    display = PixelMapDisplay.from_predictions(pixel_map(model, X, (20, 20)))
    assert len(display.ax_) == 1
    with pytest.raises(ValueError, match=r"X has 400 pixels, which do not fill an image of shape \(20, 21\)"):
        pixel_map(model, X, (20, 21))
    with pytest.raises(ValueError, match="images of the same shape"):
        PixelMapDisplay.from_predictions(np.zeros((2, 2)), np.zeros((2, 3)))
    with pytest.raises(ValueError, match="ax must hold 1 axes"):
        PixelMapDisplay.from_predictions(np.zeros((2, 2)), ax=plt.subplots(1, 2)[1])


def test_colors_are_many_and_all_different():
    assert len(set(class_colors(24))) == 24


def test_missing_matplotlib_names_the_extra():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from svmosaic.explain import region_report\n"
        "from svmosaic.explain.displays import PixelMapDisplay\n"
        "try: PixelMapDisplay.from_predictions([[0, 1]])\n"
        "except ImportError as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install matplotlib" in run.stdout
