"""The region report: what its data say, what it escapes, and what a browser shows of it."""

import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pandas
import pytest
from playwright.sync_api import sync_playwright
from scipy import sparse
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
    NeighborsSVC,
)
from svmosaic.datasets import make_xor
from svmosaic.display import region_report

EVIL = "</script><script>document.title='pwned'</script>"


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])


@pytest.fixture(scope="module")
def xor():
    X, y = make_xor(random_state=0)
    return ClusteredSVC(n_clusters=4, random_state=0).fit(X, y), X, y


MODELS = {
    "linear": LinearSVC(random_state=0),
    "clustered": ClusteredSVC(n_clusters=5, random_state=0),
    "local": LocallyLinearSVC(n_anchors=9, n_neighbors=3, random_state=0),
    "learned": LearnedGateSVC(n_tiles=6, n_neighbors=2, max_iter=5, random_state=0),
    "auto": MosaicClassifier(None, max_tiles=4, random_state=0),
    "mixture": MixtureSVC(n_experts=3, max_iter=5, random_state=0),
    "multitask": MultiTaskMixtureSVC(n_experts=3, max_iter=5, random_state=0),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", MODELS)
def test_numbers_are_the_models(name):
    X, y = load_iris(return_X_y=True)
    model = MODELS[name].fit(X, y)
    data = data_of(region_report(model, X, y))
    table = model.summarise_regions(X, y)
    assert [r["rows"] for r in data["regions"]] == table["rows"].tolist()
    for region, accuracy in zip(data["regions"], table["accuracy"], strict=True):
        assert region["accuracy"] == (None if np.isnan(accuracy) else pytest.approx(accuracy))
    assert data["accuracy"] == model.score(X, y)
    decision = model.decision_function(X)
    assert len(data["rows"]) == len(X)
    for row in data["rows"]:
        assert row["decision"] == pytest.approx(decision[row["row"] - 1], rel=1e-3, abs=1e-4)
        for account in row["scores"]:
            made = sum(account["parts"]) + account["rest"] + account["intercept"]
            assert made == pytest.approx(account["total"], rel=2e-3, abs=2e-3)
            votes = sum(account["votes"]) + account["others"]
            assert votes == pytest.approx(row["decision"][account["output"]], rel=2e-3, abs=2e-3)


def test_names_of_all_kinds_are_harmless(xor):
    model, X, y = xor
    page = region_report(model, X, y, feature_names=[EVIL, 'a"b&'], class_names=[EVIL, "<b>"], title=EVIL)
    assert page.count("<script") == 2  # the data and the code
    assert page.count("</script>") == 2
    assert "<b>" not in page
    assert "document.title='pwned'</script>" not in page
    assert data_of(page)["classes"] == [EVIL, "<b>"]
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")  # a name, not an address
    assert "https://" not in page


def test_marks_in_names_are_not_filled_in(xor):
    model, X, y = xor
    page = region_report(model, X, y, title="<!--DATA-->", class_names=["<!--TITLE-->", "b"])
    assert "<title>&lt;!--DATA--&gt;</title>" in page
    assert data_of(page)["classes"][0] == "<!--TITLE-->"


def test_pipeline_takes_what_enters_it():
    X, y = load_iris(return_X_y=True)
    scaler, model = StandardScaler(), ClusteredSVC(n_clusters=3, random_state=0)
    pipeline = make_pipeline(scaler, model).fit(X, y)
    of_pipeline, of_step = region_report(pipeline, X, y), region_report(model, scaler.transform(X), y)
    assert data_of(of_pipeline) == data_of(of_step)


def test_names_come_from_the_frame():
    X, y = load_iris(return_X_y=True)
    frame = pandas.DataFrame(X, columns=["sepal", "width", "petal", "thin"])
    data = data_of(region_report(ClusteredSVC(n_clusters=3, random_state=0).fit(frame, y), frame))
    assert set(data["features"]) == {"sepal", "width", "petal", "thin"}
    assert not data["truth"]
    assert all(r["accuracy"] is None for r in data["regions"])
    piped = make_pipeline(StandardScaler(), ClusteredSVC(n_clusters=3, random_state=0)).fit(frame, y)
    assert set(data_of(region_report(piped, frame))["features"]) == {"sepal", "width", "petal", "thin"}


def test_own_scaling_shows_measured_values():
    X, y = make_xor(random_state=0)
    X = X * [100, 1] + [5000, 0]
    data = data_of(region_report(MosaicClassifier(None, max_tiles=4, random_state=0).fit(X, y), X, y))
    row = data["rows"][0]
    shown = dict(
        zip([data["features"][f] for f in row["scores"][0]["features"]], row["scores"][0]["values"], strict=True)
    )
    assert shown["x0"] == pytest.approx(X[0, 0], rel=1e-3)
    assert data["map"]["x"][0] == pytest.approx(X[0, 0], rel=1e-3)


def test_sparse_rows_and_one_feature():
    X, y = load_iris(return_X_y=True)
    model = ClusteredSVC(n_clusters=3, random_state=0).fit(X, y)
    dense, from_csr = (data_of(region_report(model, rows, y)) for rows in (X, sparse.csr_array(X)))
    assert dense["regions"] == from_csr["regions"]
    np.testing.assert_allclose(dense["map"]["x"], from_csr["map"]["x"], atol=1e-3)
    one = ClusteredSVC(n_clusters=3, random_state=0).fit(X[:, 2:3], y)
    assert data_of(region_report(one, X[:, 2:3], y))["map"]["names"] == ["x0", "score of 1"]


def test_a_hundred_tiles_of_784_features_stay_small():
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((1500, 784)).astype(np.float32), rng.randint(10, size=1500)
    model = LocallyLinearSVC(n_anchors=100, anchors="random", random_state=0, tol=0.9).fit(X, y)
    page = region_report(model, X, y)
    assert len(page.encode()) < 3_000_000
    assert len(data_of(page)["rows"]) == 1000


def test_what_cannot_be_shown_is_refused_with_a_reason(xor):
    model, X, y = xor
    with pytest.raises(TypeError, match="NeighborsSVC has no tiles"):
        region_report(NeighborsSVC(n_neighbors=5).fit(X, y), X, y)
    with pytest.raises(TypeError, match="ClusteredSVC is not fitted"):
        region_report(ClusteredSVC(), X, y)
    with pytest.raises(ValueError, match="X has 400 rows, but y has 3"):
        region_report(model, X, y[:3])
    with pytest.raises(ValueError, match="classes that the model does not know"):
        region_report(model, X, y + 7)
    with pytest.raises(ValueError, match="feature_names must have one name for each of the 2 features"):
        region_report(model, X, y, feature_names=["a"])
    with pytest.raises(ValueError, match="class_names must have 2 names, got 1"):
        region_report(model, X, y, class_names=["a"])


def test_no_matplotlib_is_needed():
    code = "import sys; from svmosaic.display import region_report; print('matplotlib' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


# ---- in a browser ----------------------------------------------------------------------------------------------------

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("no Chromium on the path")
    with sync_playwright() as engine:
        running = engine.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def opened(browser, tmp_path):
    """Opens a report from its file, without a network; any fault of its code fails the test."""
    faults, context = [], browser.new_context(offline=True, viewport={"width": 1280, "height": 900})

    def show(page_source):
        path = tmp_path / "report.html"
        path.write_text(page_source, encoding="utf-8")
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: None if request.url.startswith("file:") else faults.append(request.url))
        page.goto(path.as_uri())
        return page

    yield show
    context.close()
    assert faults == []


def test_a_click_on_a_region_shows_it(xor, opened):
    model, X, y = xor
    page = opened(region_report(model, X, y, class_names=["side", "pole"], title="four cells"))
    data = data_of(region_report(model, X, y))
    assert page.title() == "four cells"
    assert page.locator("#regions tbody tr").count() == 4
    assert "No region is chosen" in page.locator("#region").inner_text()
    page.locator('#regions tr[data-region="2"]').click()
    assert page.locator("#region-title").inner_text() == "Region 2"
    shown = page.locator("#region").inner_text()
    region = data["regions"][2]
    assert str(region["rows"]) in shown
    assert f"{100 * region['accuracy']:.1f} %" in shown
    assert page.locator("#region svg .bar").count() == 3  # two features and the intercept
    label = page.locator("#region svg").get_attribute("aria-label")
    assert label.startswith("Weights of region 2 for pole: ")
    home = sum(row["region"] == 2 for row in data["rows"])
    assert page.locator(".point.home").count() == home
    assert page.locator(".point.away").count() == len(X) - home
    assert page.locator('#regions tr[data-region="2"]').get_attribute("class") == "chosen"
    page.locator("#clear").click()
    assert page.locator(".point.away").count() == 0


def test_a_chosen_row_is_explained(xor, opened):
    model, X, y = xor
    page = opened(region_report(model, X, y))
    page.locator("#number").fill("17")
    page.keyboard.press("Enter")
    assert page.locator("#row-title").inner_text() == "Row 17"
    told = model.explain(X[16:17])  # rows are numbered from 1, as by `svmosaic inspect`
    score = float(page.locator("#score").inner_text().replace("−", "-"))
    assert score == pytest.approx(told.decision[0, 0], rel=1e-3)
    assert page.locator("#tiles tbody tr").count() == 1
    assert page.locator("#tiles tbody button").inner_text() == str(told.tile[0, 0])
    texts = [t.replace("−", "-") for t in page.locator("#row svg text").all_text_contents()]
    numbers = [float(t) for t in texts if re.fullmatch(r"[+-]?[\d.]+(e-?\d+)?", t)]
    assert sum(numbers) == pytest.approx(told.decision[0, 0], abs=2e-3)
    assert page.locator("#region-title").inner_text() == f"Region {told.tile[0, 0]}"
    page.locator('.point[data-row="33"]').dispatch_event("click")
    assert page.locator("#row-title").inner_text() == "Row 33"
    assert page.locator(".point.chosen").get_attribute("data-row") == "33"
    page.locator("#number").fill("4000")
    page.keyboard.press("Enter")
    assert page.locator("#message").inner_text() == "There is no such row: choose a number from 1 to 400."
    assert page.locator("#row-title").inner_text() == "Row 33"


def test_keyboard_is_enough(xor, opened):
    model, X, y = xor
    page = opened(region_report(model, X, y))
    page.locator('#regions tr[data-region="1"] button').focus()
    page.keyboard.press("Enter")
    assert page.locator("#region-title").inner_text() == "Region 1"
    assert page.locator('#regions tr[data-region="1"] button').get_attribute("aria-pressed") == "true"
    page.locator('th[data-key="accuracy"] button').focus()
    page.keyboard.press("Enter")
    assert page.locator('th[data-key="accuracy"]').get_attribute("aria-sort") == "descending"
    accuracies = [float(t[:-2]) for t in page.locator("#regions td:nth-child(4)").all_inner_texts()]
    assert accuracies == sorted(accuracies, reverse=True)
    page.locator("#after").focus()
    page.keyboard.press("Enter")
    assert page.locator("#row-title").inner_text() == "Row 1"


def test_evil_names_are_shown_and_not_run(xor, opened):
    model, X, y = xor
    page = opened(
        region_report(model, X, y, feature_names=[EVIL, "b"], class_names=[EVIL, "<img src=x>"], title="safe")
    )
    page.locator('#regions tr[data-region="0"]').click()
    page.locator("#number").fill("1")
    page.keyboard.press("Enter")
    assert page.title() == "safe"
    assert page.locator("img").count() == 0
    assert EVIL in page.locator("#classes").inner_text()


def test_many_classes_and_a_vote(opened):
    X, y = load_iris(return_X_y=True)
    model = MixtureSVC(n_experts=3, random_state=0).fit(X, y)
    page = opened(region_report(model, X, y))
    wrong = next((r["row"] for r in data_of(region_report(model, X, y))["rows"] if r["label"] != r["predicted"]), None)
    assert wrong is not None
    page.locator("#number").fill(str(wrong))
    page.keyboard.press("Enter")
    assert "wrongly predicted" in page.locator("#row").inner_text()
    assert "what tile" in page.locator("#sum").inner_text()
    choice = page.get_by_label("Class whose score is explained")
    assert choice.locator("option").count() == 2  # the predicted and the true class
    choice.select_option(index=1)
    assert f"Score of {y[wrong - 1]}" in page.locator("#row").inner_text()
    page.locator("#colour").select_option("truth")
    assert page.locator("#legend li").all_inner_texts() == ["0", "1", "2", "✕ wrong prediction"]
