"""The report: what its data say, what it escapes, and what a browser shows of it."""

import json
import re
import subprocess
import sys

import needs
import numpy as np
import pandas as pd
import pytest
from browser import opened, running_browser  # noqa: F401
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.metrics import confusion_matrix, log_loss, mean_absolute_error, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from test_interpretation import people, pipeline

from svmosaic import (
    ClusteredSVC,
    KMeansSVC,
    KMeansSVR,
    LearnedGateSVC,
    LinearSVC,
    LinearSVR,
    LocallyLinearSVC,
    MixtureSVC,
    MosaicClassifier,
    MultiTaskMixtureSVC,
    NeighborsSVC,
    TreeSVC,
    TreeSVR,
    load,
)
from svmosaic.cli import main
from svmosaic.datasets import data_folder, make_xor
from svmosaic.explain import importances, region_report, write_report
from svmosaic.explain.subject import Subject
from svmosaic.explain.words import Rule
from svmosaic.gates.trees import Condition

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
    "auto": MosaicClassifier(None, max_tiles=4, families=("local", "linear"), random_state=0),
    "mixture": MixtureSVC(n_experts=3, max_iter=5, random_state=0),
    "multitask": MultiTaskMixtureSVC(n_experts=3, max_iter=5, random_state=0),
    "rules": TreeSVC(1, max_leaves=4, random_state=0),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", MODELS)
def test_numbers_are_the_models(name):
    X, y = load_iris(return_X_y=True)
    model = MODELS[name].fit(X, y)
    data = data_of(region_report(model, X, y))
    assert data["quality"]["model"]["accuracy"] == pytest.approx(model.score(X, y))
    assert data["quality"]["model"]["confusion"] == confusion_matrix(y, model.predict(X)).tolist()
    subject = Subject(model, X)
    table = model.summarize_regions(X, y)
    tiles = {tile: region for tile, region in data["region_of_tile"].items()}
    for tile, region in tiles.items():
        one, k = data["regions"][region], int(tile)
        assert one["rows"] == (subject.home == k).sum()
        assert one["accuracy"] == pytest.approx((model.predict(X) == y)[subject.home == k].mean())
        assert one["rule"] == table["rule"][k]
    ranked = importances(model, X)
    assert sorted(data["importance"], reverse=True) == pytest.approx(ranked["importance"].tolist(), rel=1e-3)
    assert data["rows"]["numbers"] == list(range(1, 151))
    np.testing.assert_allclose(np.array(data["rows"]["values"]).T, X)
    assert data["rows"]["predicted"] == np.searchsorted(model.classes_, model.predict(X)).tolist()


def test_quality_is_that_of_scikit_learn():
    frame, y = people()
    model = pipeline(LinearSVC(calibration="sigmoid", random_state=0)).fit(frame[:400], y[:400])
    simple = pipeline(LinearSVC(C=1e-4, calibration="sigmoid", random_state=0)).fit(frame[:400], y[:400])
    data = data_of(region_report(model, frame[400:], y[400:], baseline=simple, seen=False))
    assert data["quality_note"] == "Measured on 200 rows that the model was not trained on."
    for name, one in (("model", model), ("baseline", simple)):
        found, share = data["quality"][name], one.predict_proba(frame[400:])
        assert found["auc"] == pytest.approx(roc_auc_score(y[400:], one.decision_function(frame[400:])))
        assert found["log_loss"] == pytest.approx(log_loss(y[400:], share))
        assert sum(n for _, _, n in found["calibration"]) == 200
        here = (share[:, 1] >= 0.4) & (share[:, 1] < 0.5)
        assert found["calibration"][4][:2] == pytest.approx([share[here, 1].mean(), (y[400:] == "yes")[here].mean()])
    assert "was trained on" in data_of(region_report(model, frame, y, seen=True))["quality_note"]
    assert "is not known" in data_of(region_report(model, frame, y))["quality_note"]
    assert data_of(region_report(model, frame))["quality"] is None


def test_names_of_all_kinds_are_harmless(xor):
    model, X, y = xor
    page = region_report(model, X, y, feature_names=[EVIL, 'a"b&'], class_names=[EVIL, "<b>"], title=EVIL)
    assert page.count("<script") == 3  # the data, the model and the code
    assert page.count("</script>") == 3
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


def test_columns_are_those_of_the_table(tmp_path):
    frame, y = people()
    model = pipeline(KMeansSVC(4, random_state=0)).fit(frame, y)
    write_report(model, frame, y, tmp_path / "r.html")
    data = data_of((tmp_path / "r.html").read_text())
    assert [column["name"] for column in data["columns"]] == list(frame.columns)
    values = dict(zip(frame.columns, data["rows"]["values"], strict=True))
    assert values["town"] == frame["town"].tolist()
    assert values["age"] == [None if v != v else v for v in frame["age"]]
    assert values["income"] == pytest.approx(frame["income"])
    assert data["columns"][1]["texts"] == ["Oslo", "Bern", "Rome", "Lima"]
    scaled = make_pipeline(StandardScaler(), ClusteredSVC(n_clusters=3, random_state=0))
    X, y = load_iris(return_X_y=True)
    flowers = pd.DataFrame(X, columns=["sepal", "width", "petal", "thin"])
    data = data_of(region_report(scaled.fit(flowers, y), flowers, y))
    assert data["columns"][0]["low"] == X[:, 0].min()  # not in standard deviations


def test_a_column_that_was_left_out_has_a_flat_effect(tmp_path):
    # There are so few columns that all are drawn.
    X, y = make_xor(random_state=0)
    pd.DataFrame({"constant": 3, "a": X[:, 0], "b": X[:, 1], "y": y}).to_csv(tmp_path / "table.csv", index=False)
    train = ["train", str(tmp_path / "table.csv"), "--label", "y", "-o", str(tmp_path / "a.model"), "--quiet"]
    assert main([*train, "--model", "kernel", "--set", "n_anchors=16"]) == 0
    model = load(tmp_path / "a.model")
    data = data_of(region_report(model, *model.sample_rows()))
    assert sorted(one["column"] for one in data["effects"]) == [0, 1, 2]
    for one in data["effects"]:
        is_constant = data["columns"][one["column"]]["name"] == "constant"
        assert is_constant == (np.ptp(one["mean"]) == 0)
        assert np.isfinite(one["mean"]).all()
    assert data["importance"][0] == 0 < min(data["importance"][1:])


def test_sparse_rows_and_one_feature():
    X, y = load_iris(return_X_y=True)
    model = ClusteredSVC(n_clusters=3, random_state=0).fit(X, y)
    dense, from_csr = (data_of(region_report(model, rows, y)) for rows in (X, sparse.csr_array(X)))
    assert dense == from_csr
    one = ClusteredSVC(n_clusters=3, random_state=0).fit(X[:, 2:3], y)
    assert len(data_of(region_report(one, X[:, 2:3], y))["columns"]) == 1


def test_a_hundred_tiles_of_784_features_stay_small():
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((500, 784)).astype(np.float32), rng.randint(10, size=500)
    model = LocallyLinearSVC(n_anchors=100, anchors="random", random_state=0, tol=0.9).fit(X, y)
    page = region_report(model, X, y)
    assert len(page.encode()) < 5_000_000
    data = data_of(page)
    assert "the model is too large" in data["no_model"]
    decision = model.decision_function(X)
    for account in data["rows"]["accounts"]:
        parts = [sum(value for _, value in lines) for lines in account["contributions"]]
        expected = decision[account["row"] - 1]
        np.testing.assert_allclose(np.add(parts, account["intercept"]), expected, atol=1e-4)
        np.testing.assert_allclose(account["scores"], expected, rtol=1e-4)


@needs.data
def test_a_report_of_adult_is_below_two_megabytes():
    folder = data_folder() / "tables"
    frame, test = (pd.read_csv(folder / f"adult_{part}.csv") for part in ("train", "test"))
    y, y_test = frame.pop("income"), test.pop("income")
    text = [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]
    words = make_pipeline(SimpleImputer(strategy="constant", fill_value="(missing)"), OneHotEncoder())
    steps = make_column_transformer((words, text), remainder=StandardScaler(), sparse_threshold=0)
    model = make_pipeline(steps, TreeSVC(32, tiles="constant", tol=1e-2, random_state=0)).fit(frame, y)
    page = region_report(model, test, y_test, seen=False)
    assert len(page.encode()) < 2_000_000
    data = data_of(page)
    assert data["no_model"] is None
    assert [column["name"] for column in data["columns"]] == list(frame.columns)
    assert data["quality"]["model"]["accuracy"] == pytest.approx(model.score(test, y_test))


def test_very_many_columns_are_shown_by_those_that_matter(opened):  # noqa: F811
    X = sparse.random(300, 3000, 0.05, format="csr", random_state=0)
    y = np.asarray(X[:, :20].sum(axis=1)).ravel() > 0.3
    model = LinearSVC(random_state=0).fit(X, y)
    source = region_report(model, X, y)
    data, ranked = data_of(source), importances(model, X)
    assert len(source) < 1_000_000
    assert {column["name"] for column in data["columns"]} == set(ranked["feature"][:200])
    assert "too many columns (3,000)" in data["no_model"]
    page = opened(source)
    assert "3,000 columns" in page.locator("#summary").inner_text()
    assert waterfall(page)[-1][1] == pytest.approx(model.decision_function(X[:1])[0], rel=1e-3)
    assert page.locator("#importance svg text[text-anchor=end] title").first.text_content() == ranked["feature"][0]


def test_many_regions_are_merged_and_the_page_says_so():
    X, y = load_iris(return_X_y=True)
    data = data_of(region_report(KMeansSVC(20, random_state=0).fit(X, y), X, y))
    assert len(data["regions"]) == 12
    assert re.search(r"Of \d+ regions, the most similar ones are merged, which leaves 12", data["regions_note"])
    assert sum(region["rows"] for region in data["regions"]) == 150
    assert len(data_of(region_report(KMeansSVC(20, random_state=0).fit(X, y), X, y, max_regions=5))["regions"]) == 5


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
    with pytest.raises(ValueError, match="feature_names must have one name for each of the 2 columns"):
        region_report(model, X, y, feature_names=["a"])
    with pytest.raises(ValueError, match="class_names must have 2 names, got 1"):
        region_report(model, X, y, class_names=["a"])
    with pytest.raises(ValueError, match="X has no rows"):
        region_report(model, X[:0])


def test_no_matplotlib_is_needed():
    code = "import sys; from svmosaic.explain import region_report; print('matplotlib' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


# ---- in a browser ----------------------------------------------------------------------------------------------------


def number(text):
    return float(text.replace("−", "-").replace(",", "").removesuffix(" %"))


def texts(page, selector):
    return page.locator(selector).all_inner_texts()


def waterfall(page):
    """Lines of the account of a row: names and values as shown."""
    names = page.locator("#row svg text[text-anchor=end] title").all_text_contents()
    return list(zip(names, map(number, page.locator("#row svg text.value").all_text_contents()), strict=True))


@pytest.fixture(scope="module")
def table():
    frame, y = people()
    model = pipeline(KMeansSVC(4, pieces=5, calibration="sigmoid", random_state=0)).fit(frame[:400], y[:400])
    simple = pipeline(LinearSVC(calibration="sigmoid", random_state=0)).fit(frame[:400], y[:400])
    frame, y = frame[400:].reset_index(drop=True), y[400:]
    return model, simple, frame, y, region_report(model, frame, y, baseline=simple, seen=False, title="people")


def test_every_number_on_the_page_is_that_of_python(table, opened):  # noqa: F811
    model, simple, frame, y, source = table
    page = opened(source)
    assert page.title() == "people"
    for column, one in enumerate((model, simple)):
        share = one.predict_proba(frame)
        expected = {"accuracy": 100 * one.score(frame, y), "log_loss": log_loss(y, share),
                    "auc": roc_auc_score(y, one.decision_function(frame))}  # fmt: skip
        for name, value in expected.items():
            shown = texts(page, f'#measures-table tr[data-measure="{name}"] td')[column]
            assert number(shown) == pytest.approx(value, rel=1e-3, abs=0.05 if name == "accuracy" else 0)
    assert [int(number(t)) for t in texts(page, "#confusion td")] == confusion_matrix(
        y, model.predict(frame)
    ).ravel().tolist()
    ranked = importances(model, frame)
    assert page.locator("#importance svg text[text-anchor=end] title").all_text_contents() == ranked["feature"].tolist()
    shown = [number(t) for t in page.locator("#importance svg text.value").all_text_contents()]
    assert shown == pytest.approx(ranked["importance"].tolist(), rel=1e-3)
    subject = Subject(model, frame)
    for line, region in zip(page.locator("#regions tbody tr").all(), data_of(source)["regions"], strict=True):
        cells = line.locator("td").all_inner_texts()
        assert cells[1].startswith(region["rule"])
        assert int(number(cells[2].split()[0])) == region["rows"]
    account = model[-1].explain(model[:-1].transform(frame))
    for row in (1, 17, 200):
        page.locator("#number").fill(str(row))
        page.keyboard.press("Enter")
        assert page.locator("#row-title").inner_text() == f"Row {row}"
        assert page.locator("#predicted").inner_text() == model.predict(frame)[row - 1]
        assert page.locator("#truth").inner_text() == y[row - 1]
        share = model.predict_proba(frame)[row - 1]
        assert f"yes {100 * share[1]:.1f} %" in page.locator("#probability").inner_text()
        lines = waterfall(page)
        assert lines[0] == ("start", pytest.approx(account.intercept[row - 1, 0], rel=1e-3))
        assert lines[-1] == ("score of yes", pytest.approx(account.decision[row - 1, 0], rel=1e-3))
        for name, value in lines[1:-1]:
            j = list(frame.columns).index(name.split(" = ")[0])
            assert value == pytest.approx(subject.contributions[row - 1, 0, j], rel=1e-3, abs=1e-9)


def test_sliders_and_menus_change_the_prediction_to_what_python_says(table, opened):  # noqa: F811
    model, _, frame, _, source = table
    page = opened(source)
    page.locator("#number").fill("5")
    page.keyboard.press("Enter")
    changed = frame.iloc[[4]].copy()

    def agrees():
        share = model.predict_proba(changed)[0]
        assert page.locator("#predicted").inner_text() == model.predict(changed)[0]
        assert f"yes {100 * share[1]:.1f} %" in page.locator("#probability").inner_text()
        score = model.decision_function(changed)[0]
        assert waterfall(page)[-1][1] == pytest.approx(score, rel=1e-3)
        home = Subject(model, changed).home[0]
        region = data_of(source)["region_of_tile"].get(str(home))
        if region is not None:
            assert page.locator("#home").inner_text() == f"region {region + 1}"

    column = list(frame.columns).index
    agrees()
    for town in ("Lima", "Bern", "Rome"):
        page.locator(f"#column-{column('town')}").select_option(label=town)
        changed["town"] = town
        agrees()
    for age in (20, 79, 44):
        page.locator(f"#column-{column('age')}").fill(str(age))  # a slider
        changed["age"] = float(age)
        agrees()
    page.locator(f"#column-{column('income')} + input").fill("90000.5")  # the number next to it
    changed["income"] = 90000.5
    agrees()
    assert page.locator("#row-title").inner_text() == "Row 5, changed"
    assert page.locator(".star").count() == 1
    page.locator(f"#column-{column('age')} + input").fill("")
    changed["age"] = np.nan
    agrees()
    page.locator("#reset").click()
    changed = frame.iloc[[4]].copy()
    agrees()
    assert page.locator("#row-title").inner_text() == "Row 5"


def test_regions_curves_and_map_go_together(table, opened):  # noqa: F811
    page = opened(table[-1])
    data = data_of(table[-1])
    page.locator("#map-x").select_option(label="income")  # which is known of all rows
    page.locator("#map-y").select_option(label="noise")
    page.locator('#regions tr[data-region="1"] button').focus()
    page.keyboard.press("Enter")
    assert page.locator('#regions tr[data-region="1"]').get_attribute("class") == "chosen"
    assert page.locator("#importance-region").input_value() == "1"
    shown = [number(t) for t in page.locator("#importance svg text.value").all_text_contents()]
    assert shown == pytest.approx([value for _, value in data["regions"][1]["importance"]])
    away = sum(region != 1 for region in data["rows"]["region"])
    assert page.locator(".point.away").count() == away
    page.locator('#regions tr[data-region="1"] button').click()
    assert page.locator(".point.away").count() == 0
    for effect in data["effects"]:
        page.locator("#effect-column").select_option(str(effect["column"]))
        if data["columns"][effect["column"]]["text"]:
            values = [number(t) for t in page.locator("#effect svg text.value").all_text_contents()]
            assert values == pytest.approx(effect["mean"][0])
        else:
            assert page.locator(".effect-curve").count() == 1
            assert page.locator(".region-curve").count() == len(data["regions"])
    page.locator("#map-y").select_option(label="town")
    page.locator("#color").select_option("truth")
    assert texts(page, "#legend li") == ["no", "yes"]
    page.locator('.point[data-row="33"]').dispatch_event("click")
    assert page.locator("#row-title").inner_text() == "Row 33"
    assert page.locator(".point.chosen").get_attribute("data-row") == "33"


def test_rows_that_are_not_there_are_named(xor, opened):  # noqa: F811
    model, X, y = xor
    page = opened(region_report(model, X, y))
    page.locator("#number").fill("4000")
    page.keyboard.press("Enter")
    assert page.locator("#message").inner_text() == "There is no such row: choose a number from 1 to 400."
    assert page.locator("#row-title").inner_text() == "Row 1"
    page.locator("#after").focus()
    page.keyboard.press("Enter")
    assert page.locator("#row-title").inner_text() == "Row 2"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_is_wide_enough(table, opened, scheme):  # noqa: F811
    page = opened(table[-1], width=380, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
    ground, ink = (page.evaluate(f"getComputedStyle(document.body).{name}") for name in ("backgroundColor", "color"))
    light = [sum(map(int, re.findall(r"\d+", value)[:3])) for value in (ground, ink)]
    assert (light[0] > light[1]) == (scheme == "light")
    page.emulate_media(media="print")
    assert not page.locator("#what-if").is_visible()


def test_evil_names_are_shown_and_not_run(xor, opened):  # noqa: F811
    model, X, y = xor
    page = opened(
        region_report(model, X, y, feature_names=[EVIL, "b"], class_names=[EVIL, "<img src=x>"], title="safe")
    )
    page.locator('#regions tr[data-region="0"]').click()
    assert page.title() == "safe"
    assert page.locator("img").count() == 0
    assert EVIL in page.locator("#classes").inner_text()


def test_many_classes_and_a_vote(opened):  # noqa: F811
    X, y = load_iris(return_X_y=True)
    page = opened(region_report(KMeansSVC(3, random_state=0).fit(X, y), X, y))
    model = KMeansSVC(3, random_state=0).fit(X, y)
    page.locator("#output").select_option(label="2")
    assert waterfall(page)[-1] == ("score of 2", pytest.approx(model.decision_function(X)[0, 2], rel=1e-3))
    model = MixtureSVC(n_experts=3, random_state=0).fit(X, y)
    page = opened(region_report(model, X, y))
    assert "scores are sums of votes of the tiles" in page.locator("#reason").inner_text()
    assert page.locator("#predicted").inner_text() == str(model.predict(X)[0])


def test_a_model_that_has_no_javascript_is_shown_without_what_if(opened):  # noqa: F811
    X, y = make_xor(random_state=0)
    mapped = LocallyLinearSVC(5, feature_map=RBFSampler(n_components=9, random_state=0), tol=1e-2, random_state=0)
    page = opened(region_report(mapped.fit(X, y), X, y))
    assert "feature map RBFSampler cannot be written as JavaScript" in page.locator("#what-if-note").inner_text()
    assert waterfall(page)[-1][1] == pytest.approx(mapped.decision_function(X)[0], rel=1e-3)
    assert not page.locator("#reset").is_visible()


# ---- numbers instead of classes --------------------------------------------------------------------------------------


def prices(n=500):
    frame, _ = people(n)
    rng = np.random.default_rng(1)
    y = frame["income"] / 100 + 50 * (frame["town"] == "Bern") + 20 * np.sin(frame["noise"]) + rng.normal(0, 5, n)
    return frame, y.rename("price")


@pytest.mark.parametrize(
    "estimator", [KMeansSVR(4, pieces=6, random_state=0), TreeSVR(1, max_leaves=5, random_state=0)]
)
def test_a_regressor_is_shown_in_the_units_of_its_target(estimator, opened):  # noqa: F811
    frame, y = prices()
    model = pipeline(estimator).fit(frame[:400], y[:400])
    simple = pipeline(LinearSVR(random_state=0)).fit(frame[:400], y[:400])
    frame, y = frame[400:].reset_index(drop=True), y[400:]
    source = region_report(model, frame, y, baseline=simple, seen=False)
    data, predicted = data_of(source), model.predict(frame)
    page = opened(source)
    for column, one in enumerate((model, simple)):
        expected = {"r2": one.score(frame, y), "mae": mean_absolute_error(y, one.predict(frame))}
        expected["rmse"] = np.sqrt(np.mean((y - one.predict(frame)) ** 2))
        for name, value in expected.items():
            shown = texts(page, f'#measures-table tr[data-measure="{name}"] td')[column]
            assert number(shown) == pytest.approx(value, rel=1e-3)
    assert page.locator("#residuals circle").count() == 100
    subject = Subject(model, frame)
    for tile, region in data["region_of_tile"].items():
        here = subject.home == int(tile)
        assert data["regions"][region]["mean"] == pytest.approx(y[here.nonzero()[0] + 400].mean())
        assert data["regions"][region]["error"] == pytest.approx(np.abs(y.to_numpy() - predicted)[here].mean())
    total = subject.contributions[:, 0].sum(axis=1)
    for row in (1, 60):
        page.locator("#number").fill(str(row))
        page.keyboard.press("Enter")
        assert number(page.locator("#predicted").inner_text()) == pytest.approx(predicted[row - 1], rel=1e-3)
        assert number(page.locator("#truth").inner_text()) == pytest.approx(y.iloc[row - 1], rel=1e-3)
        lines = waterfall(page)
        assert lines[0][1] == pytest.approx(predicted[row - 1] - total[row - 1], rel=1e-3)
        assert lines[-1] == ("price", pytest.approx(predicted[row - 1], rel=1e-3))
    changed = frame.iloc[[59]].copy()
    page.locator("#column-1").select_option(label="Bern")
    changed["town"] = "Bern"
    page.locator("#column-0 + input").fill("31000")
    changed["income"] = 31000.0
    assert number(page.locator("#predicted").inner_text()) == pytest.approx(model.predict(changed)[0], rel=1e-3)
    page.locator("#color").select_option("truth")
    assert page.locator("#legend li").count() == 3


def test_quantiles_are_an_interval(opened):  # noqa: F811
    frame, y = prices()
    estimator = KMeansSVR(3, loss="quantile", quantile=[0.1, 0.5, 0.9], tol=1e-2, random_state=0)
    model = pipeline(estimator).fit(frame, y)
    source = region_report(model, frame, y)
    predicted = model.predict(frame)
    found = data_of(source)["quality"]["model"]
    assert found["mae"] == pytest.approx(np.abs(y - predicted[:, 1]).mean())
    inside = (y >= predicted.min(axis=1)) & (y <= predicted.max(axis=1))
    assert found["coverage"] == pytest.approx(inside.mean())
    page = opened(source)
    assert number(page.locator("#predicted").inner_text()) == pytest.approx(predicted[0, 1], rel=1e-3)
    low, high = page.locator("#interval").inner_text().split(" to ")
    assert [number(low), number(high)] == pytest.approx(predicted[0, [0, 2]], rel=1e-3)
    page.locator("#output").select_option(label="quantile 0.9")
    assert waterfall(page)[-1][1] == pytest.approx(predicted[0, 2], rel=1e-3)


def test_intervals_of_the_model_are_shown(opened):  # noqa: F811
    frame, y = prices()

    class WithIntervals(KMeansSVR):
        def predict_interval(self, X):
            return self.predict(X)[:, None] + [-10.0, 12.0]

    X = frame[["income", "noise"]].to_numpy()
    model = WithIntervals(3, random_state=0).fit(X, y)
    source = region_report(model, X, y)
    found, ends = data_of(source)["quality"]["model"], model.predict_interval(X)
    assert found["coverage"] == pytest.approx(np.mean((y >= ends[:, 0]) & (y <= ends[:, 1])))
    assert found["width"] == pytest.approx(22.0)
    page = opened(source)
    low, high = page.locator("#interval").inner_text().split(" to ")
    assert [number(low), number(high)] == pytest.approx(ends[0], rel=1e-3)
    page.locator("#column-0 + input").fill("31000")
    assert page.locator("#interval").count() == 0  # it is not computed in the page


@pytest.mark.usefixtures("one_short_search")
def test_dates_are_dates_and_rare_texts_are_there(opened):  # noqa: F811
    frame, _ = people()
    rng = np.random.default_rng(0)
    frame["when"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 600, len(frame)), "D")
    frame["code"] = rng.integers(0, 150, len(frame)).astype(str) + "-x"
    frame.loc[3, "when"] = pd.NaT
    y = np.where((frame["when"] > "2024-10-01") == (frame["income"] > 22_000), "up", "down")
    model = MosaicClassifier(None, max_tiles=4, random_state=0).fit(frame, y)
    source = region_report(model, frame, y)
    page, scores = opened(source), model.decision_function(frame)
    for row in (1, 4, 77):
        page.locator("#number").fill(str(row))
        page.keyboard.press("Enter")
        assert waterfall(page)[-1][1] == pytest.approx(scores[row - 1], rel=1e-3)
        at = list(frame.columns).index("code")
        if page.locator(f"#column-{at}").count():
            assert page.locator(f"#column-{at} option:checked").inner_text() == frame["code"][row - 1]
    assert "2024" in " ".join(name for name, _ in waterfall(page)) or "2025" in " ".join(n for n, _ in waterfall(page))
    changed, at = frame.iloc[[76]].copy(), list(frame.columns).index("when")
    page.locator(f"#column-{at} + input").fill("2024-02-29")
    changed["when"] = pd.Timestamp("2024-02-29")
    assert waterfall(page)[-1][1] == pytest.approx(model.decision_function(changed)[0], rel=1e-3)
    subject = Subject(model, frame)
    assert np.isnan(subject.values(at)[3])
    rule = Rule((Condition(at, 19_723.0, 19_753.5),), 1.0, 1.0)
    assert subject.text_of(rule) == "when after 2024-01-01 until 2024-01-31T12:00:00"
