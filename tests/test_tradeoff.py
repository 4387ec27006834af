"""The chart of accuracy against cost: names that can be read, and the right front."""

import subprocess
import sys
from itertools import combinations

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from numpy.testing import assert_array_equal

from svmosaic import MosaicClassifier
from svmosaic.datasets import make_xor
from svmosaic.explain.displays import TradeoffDisplay
from svmosaic.explain.displays.tradeoff import draw_panels, pareto_front

NAMES = ["svmosaic LinearSVC", "svmosaic ClusteredSVC", "svmosaic LocallyLinearSVC", "svmosaic LearnedGateSVC",
         "svmosaic MixtureSVC", "svmosaic MosaicClassifier", "LinearSVC", "SVC (RBF)", "SVC (RBF), intelex",
         "Nystroem + LinearSVC", "HistGradientBoosting", "LightGBM", "k nearest neighbors",
         "MLP, 64 units"]  # fmt: skip


@pytest.fixture(autouse=True)
def agg():
    with mpl.rc_context({"backend": "agg"}):
        yield


def records(seed, spread=1.0):
    rng = np.random.RandomState(seed)
    return [
        {"model": name, "ours": name.startswith("svmosaic"), "batch_microseconds": 10 ** (spread * rng.uniform(0, 3)),
         "accuracy": 0.9 + 0.08 * spread * rng.uniform()}
        for name in NAMES
    ]  # fmt: skip


def boxes(display):
    display.figure_.draw_without_rendering()
    texts = [Text.get_window_extent(text) for text in display.texts_]
    legend = display.ax_.get_legend()
    return texts, legend.get_window_extent()


def shared(a, b):
    return max(0, min(a.x1, b.x1) - max(a.x0, b.x0)) * max(0, min(a.y1, b.y1) - max(a.y0, b.y0))


@pytest.mark.parametrize("seed", range(2))
def test_names_cover_neither_each_other_nor_points_nor_the_key(seed):
    display = TradeoffDisplay.from_records(
        records(seed), ax=Figure(figsize=(7.5, 5.2), layout="constrained").subplots()
    )
    texts, key = boxes(display)
    assert len(texts) == len(NAMES)
    for a, b in combinations([*texts, key], 2):
        assert shared(a, b) < 0.02 * min(a.width * a.height, b.width * b.height)
    points = display.ax_.transData.transform(np.column_stack([display.cost, display.score]))
    assert not any(box.contains(*point) for box in texts for point in points)
    inside = display.figure_.bbox
    assert all(inside.x0 <= b.x0 and b.x1 <= inside.x1 and inside.y0 <= b.y0 and b.y1 <= inside.y1 for b in texts)


def test_a_name_is_nearest_to_its_own_point_or_a_line_leads_to_it():
    """Of crowded points too: a name between two points could belong to either."""
    crowd = {
        "LinearSVC": (0.025, 0.9075), "ClusteredSVC": (0.14, 0.9731), "LocallyLinearSVC": (1.76, 0.9679),
        "LearnedGateSVC": (0.62, 0.9774), "MixtureSVC": (0.66, 0.9649), "Nystroem + LinearSVC": (3.8, 0.9567),
        "LightGBM native": (3.5, 0.9731), "LightGBM by lleaves": (0.54, 0.9731), "SVC": (55, 0.978),
    }  # fmt: skip
    cost, score = zip(*crowd.values(), strict=True)
    figure = Figure(figsize=(5.2, 4.3), layout="constrained")
    display = TradeoffDisplay(list(crowd), cost, score).plot(ax=figure.subplots())
    texts, _ = boxes(display)
    points = display.ax_.transData.transform(np.column_stack([cost, score]))
    for text, box in zip(display.texts_, texts, strict=True):
        beyond = np.maximum([box.x0, box.y0] - points, points - [box.x1, box.y1])
        nearest = int(np.hypot(*np.maximum(beyond, 0).T).argmin())
        assert display.names[nearest] == text.get_text() or text.arrow_patch.get_visible()


@pytest.mark.parametrize("seed", range(5))
def test_nothing_beats_the_front(seed):
    rng = np.random.RandomState(seed)
    cost, score = rng.randint(1, 8, 20).astype(float), rng.randint(1, 8, 20) / 8
    front = pareto_front(cost, score)

    def beaten(i):
        return any(
            cost[j] <= cost[i] and score[j] >= score[i] and (cost[j] < cost[i] or score[j] > score[i])
            for j in range(20)
        )  # fmt: skip

    assert not any(beaten(i) for i in front)
    assert {(cost[i], score[i]) for i in range(20) if not beaten(i)} == {(cost[i], score[i]) for i in front}


def test_front_is_drawn_in_stairs_and_its_names_are_bold():
    display = TradeoffDisplay(["a", "b", "c"], [1.0, 10.0, 5.0], [0.8, 0.9, 0.7], ours=[True, False, False]).plot()
    assert display.front_.tolist() == [0, 1]
    line = display.ax_.lines[0].get_xydata()
    np.testing.assert_allclose(line[:3], [[1, 0.8], [10, 0.8], [10, 0.9]])
    bold = {text.get_text() for text in display.texts_ if text.get_fontweight() == "bold"}
    assert bold == {"a", "b"}
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["Pareto front", "svmosaic", "others"]
    assert display.ax_.get_xlabel() == "cost"
    mpl.pyplot.close(display.figure_)


def test_a_model_fitted_to_fewer_rows_says_so():
    some = [record | {"n_train": 5000 - 4000 * (record["model"] == "SVC (RBF)")} for record in records(0)[5:9]]
    display = TradeoffDisplay.from_records(some, ax=Figure().subplots())
    assert [name for name in display.names if "rows" in name] == ["SVC (RBF) (1,000 rows)"]


def test_one_point_and_equal_points():
    TradeoffDisplay(["only"], [3.0], [0.5]).plot(ax=Figure().subplots(), legend=False)
    display = TradeoffDisplay(["one", "two"], [3.0, 3.0], [0.5, 0.5]).plot(ax=Figure().subplots())
    assert len(display.front_) == 1
    (a, b), _ = boxes(display)
    assert shared(a, b) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((["a"], [1.0, 2.0], [0.1]), "of equal length, got 1, 2, 1"), ((["a"], [0.0], [0.1]), "above 0")],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        TradeoffDisplay(*arguments)


def test_panels_side_by_side(tmp_path):
    panels = {f"set {k}": records(k)[:5] for k in range(3)}
    figure = draw_panels(panels, cost="batch_microseconds", cost_name="microseconds per row")
    assert [ax.get_title() for ax in figure.axes[:3]] == list(panels)
    figure.savefig(tmp_path / "chart.svg", dpi=60)
    assert (tmp_path / "chart.svg").stat().st_size > 1000


def test_matplotlib_is_imported_when_something_is_drawn():
    code = "import sys; from svmosaic.explain.displays import TradeoffDisplay; print('matplotlib' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_a_leaderboard_is_drawn_with_the_chosen_models_standing_out():
    X, y = make_xor(150, random_state=0)
    model = MosaicClassifier(None, max_tiles=8, families=("linear", "local"), random_state=0).fit(X, y)
    display = TradeoffDisplay.from_leaderboard(model)
    last = [line for line in model.leaderboard_ if line["parts"] == 10]
    assert display.names == [line["model"] for line in last]
    assert_array_equal(display.cost, [line["tiles"] for line in last])
    assert_array_equal(display.ours, [line["chosen"] for line in last])
    assert display.ax_.get_ylabel() == "held-out accuracy"
    assert "in the model" in [text.get_text() for text in display.ax_.get_legend().get_texts()]
    with pytest.raises(ValueError, match="cost must be 'tiles' or 'seconds', got 'money'"):
        TradeoffDisplay.from_leaderboard(model, cost="money")
    with pytest.raises(ValueError, match="MosaicClassifier has no leaderboard_: pass a"):
        TradeoffDisplay.from_leaderboard(MosaicClassifier())
