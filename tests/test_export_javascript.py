"""Models as JavaScript: run by Node, and compared with Python to 1e-9."""

import json
import re
import shutil
import subprocess

import needs
import numpy as np
import pandas as pd
import pytest
from exported import densities, estimators, synthetic, training_set
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, RobustScaler, StandardScaler
from test_export_gates import MODELS as GATES

from svmosaic import LinearSVC, LocallyLinearSVC, MixtureSVC, MosaicClassifier, NeighborsSVC
from svmosaic.export.javascript import JavaScriptExportError, to_javascript
from svmosaic.table.formats._dialect import MISSING_TEXTS

pytestmark = needs.node
SYNTHETIC = synthetic()
ESTIMATORS = estimators()
DENSITIES = densities()
EXACT = dict(rtol=1e-9, atol=1e-9)

DRIVER = """
import * as model from "./model.mjs";
import { readFileSync, writeFileSync } from "node:fs";
const rows = JSON.parse(readFileSync("rows.json"));
const tried = (f) => { try { return f(); } catch (error) { return { error: error.message }; } };
writeFileSync("out.json", JSON.stringify({
  classes: model.classes, outputs: model.outputs, columns: model.columns,
  rows: rows.map((row) => ({
    label: tried(() => model.predict(row)), scores: tried(() => model.scores(row)),
    probabilities: tried(() => model.predictProba(row)), explanation: tried(() => model.explain(row)),
    interval: tried(() => model.predictInterval(row)),
  })),
}));
"""


def run_javascript(text, rows, folder):
    """What the functions of a module give for each row."""
    (folder / "model.mjs").write_text(text)
    (folder / "driver.mjs").write_text(DRIVER)
    (folder / "rows.json").write_text(json.dumps(rows))
    done = subprocess.run([shutil.which("node"), "driver.mjs"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "out.json").read_text())


def rows_near(X, n=1000, seed=0):
    """Rows like the training rows, in float64."""
    rng = np.random.default_rng(seed)
    return X[rng.integers(0, len(X), n)].astype(np.float64) + 0.3 * rng.standard_normal((n, X.shape[1]))


def table(out, name):
    return np.array([row[name] for row in out["rows"]])


def check(model, X, folder):
    """Scores, labels, probabilities and explanations of all rows."""
    out = run_javascript(to_javascript(model), X.tolist(), folder)
    if hasattr(model, "decision_function"):
        expected, labels = model.decision_function(X).reshape(len(X), -1), model.predict(X)
    else:
        expected = model.mosaic_.decision_function(X)
        labels = model.mosaic_.compile(model.classes_, model.calibration_).predict(X)
    scale = np.abs(expected).max()
    assert_allclose(table(out, "scores"), expected, rtol=1e-9, atol=1e-9 * scale)
    assert_array_equal(table(out, "label"), labels)
    if hasattr(model, "predict_proba"):
        assert_allclose(table(out, "probabilities"), model.predict_proba(X), **EXACT)
    else:
        assert all("fit it with calibration" in row["probabilities"]["error"] for row in out["rows"])
    check_explanations(model, X, out)


def check_explanations(model, X, out):
    """Contributions and votes add up to the scores; contributions are those of Python."""
    told, scores = [row["explanation"] for row in out["rows"]], table(out, "scores")
    assert_array_equal([one["scores"] for one in told], scores)
    assert_array_equal([one["label"] for one in told], table(out, "label"))
    if hasattr(model, "mosaic_"):
        votes = [np.sum([tile["votes"] for tile in one["tiles"]], axis=0) for one in told]
        assert_allclose(votes, scores, **EXACT)
    if told[0]["contributions"] is None:
        assert all(one["reason"] for one in told)
        return
    contributions = np.array([[list(part.values()) for part in one["contributions"]] for one in told])
    assert_allclose(contributions.sum(axis=2) + [one["intercept"] for one in told], scores, **EXACT)
    if hasattr(model, "explain"):
        expected = model.explain(X).contributions
        assert_allclose(contributions, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_agrees_with_python(name, n_classes, tmp_path):
    X, y = training_set(n_classes)
    check(ESTIMATORS[name].fit(X, y), rows_near(X), tmp_path)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", DENSITIES)
def test_every_model_of_densities_agrees_with_python(name, n_classes, tmp_path):
    X, y = training_set(n_classes)
    check(DENSITIES[name].fit(X, y), rows_near(X), tmp_path)


@pytest.mark.parametrize("name", SYNTHETIC)
def test_every_coding_and_link_agrees_with_the_engine(name, tmp_path):
    rows = np.random.default_rng(0).integers(-4, 5, size=(1000, 4)) / 4.0  # on a grid, where distances tie
    check(SYNTHETIC[name], rows, tmp_path)


@pytest.mark.parametrize("name", GATES)
def test_every_gate_agrees_with_the_engine(name, tmp_path):
    rows = np.random.default_rng(5).standard_normal((1000, 5)) + 1.0
    check(GATES[name], rows, tmp_path)


def test_a_pipeline_takes_columns_as_they_are(tmp_path):
    import pandas as pd

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a b": rng.standard_normal(300), "town": rng.choice(["Oslo", "Bern", "l'Aquila"], 300)})
    frame["c"] = rng.exponential(size=300)
    y = (frame["a b"] + (frame["town"] == "Bern") > 0.3).to_numpy()
    frame.loc[rng.random(300) < 0.1, "a b"] = np.nan
    steps = make_column_transformer(
        (make_pipeline(SimpleImputer(), RobustScaler()), ["a b"]), (OneHotEncoder(handle_unknown="ignore"), ["town"]),
        ("passthrough", ["c"]),
    )  # fmt: skip
    model = make_pipeline(steps, MaxAbsScaler(), LinearSVC(calibration="sigmoid", random_state=0)).fit(frame, y)
    frame.loc[:5, "town"] = "nowhere"
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    out = run_javascript(to_javascript(model), rows, tmp_path)
    assert_allclose(table(out, "scores")[:, 0], model.decision_function(frame), **EXACT)
    assert_allclose(table(out, "probabilities"), model.predict_proba(frame), **EXACT)
    assert table(out, "label").tolist() == model.predict(frame).tolist()
    assert out["classes"] == [False, True]
    assert set(out["rows"][0]["explanation"]["contributions"][0]) == {"a b", "town", "c"}
    check_explanations(None, frame, out)


def test_what_is_no_row_is_refused(tmp_path):
    X, y = training_set(2)
    model = LinearSVC(random_state=0).fit(X, y)
    rows = [[1, 2], {"x0": 1}, None, [1, 2, 3, 4, 5, 6, "seven"], [None] * 7, 5]
    out = run_javascript(to_javascript(model), rows, tmp_path)
    errors = [row["label"]["error"] for row in out["rows"]]
    assert errors == [
        "a row has 7 values, got 2",
        "the row lacks x1, x2, x3, x4, x5, x6; pass null for a missing value",
        "a row must be an object keyed by the columns, or an array, got null",
        'column "x6" must be a finite number or null, got "seven"',
        'column "x0" is missing, and the model has nothing to put in its place',
        "a row must be an object keyed by the columns, or an array, got number",
    ]


def test_hostile_names_stay_names(tmp_path):
    import pandas as pd

    X, _ = training_set(2)
    names = ["</script><script>", '"]; process.exit(3); //', "__proto__", "`${x}`", "\u2028", "'", "*/"]
    frame = pd.DataFrame(X.astype(np.float64), columns=names)
    y = np.where(X[:, 0] > 0, "</script>", '"; process.exit(4); "')
    model = LinearSVC(random_state=0).fit(frame, y)
    text = model.to_javascript(tmp_path / "m.mjs")
    assert (tmp_path / "m.mjs").read_text() == text
    assert "</script" not in text
    rows = [dict(zip(names, row, strict=True)) for row in frame.to_numpy()[:50].tolist()]
    out = run_javascript(text, rows, tmp_path)
    assert table(out, "label").tolist() == model.predict(frame[:50]).tolist()
    assert [column["name"] for column in out["columns"]] == names


def test_what_cannot_be_written_is_named():
    X, y = training_set(2)
    mapped = LocallyLinearSVC(5, feature_map=Nystroem(n_components=5), tol=1e-1, random_state=0).fit(X, y)
    with pytest.raises(JavaScriptExportError, match="feature map Nystroem cannot be written as JavaScript"):
        mapped.to_javascript()
    with pytest.raises(JavaScriptExportError, match=r"NeighborsSVC cannot be written as JavaScript: .* each query"):
        NeighborsSVC(5).fit(X, y).to_javascript()
    pipeline = make_pipeline(StandardScaler(), PCA(2), LinearSVC(random_state=0)).fit(X, y)
    with pytest.raises(JavaScriptExportError, match="preparation PCA cannot be exported; known are Column"):
        to_javascript(pipeline)


def test_classes_that_are_no_numbers_of_javascript_are_of_type_bigint(tmp_path):
    X, y = training_set(3)
    large = np.array([-(2**53) - 1, 2**53 + 1, 2**62 + 3])
    model = LinearSVC(random_state=0).fit(X, large[np.unique(y, return_inverse=True)[1]])
    text = "BigInt.prototype.toJSON = function () { return `${this}n`; };\n" + to_javascript(model)
    found = run_javascript(text, X[:20].tolist(), tmp_path)
    assert found["classes"] == [f"{label}n" for label in large]
    assert [row["label"] for row in found["rows"]] == [f"{label}n" for label in model.predict(X[:20])]


def test_votes_are_explained_by_tiles(tmp_path):
    X, y = training_set(2)
    model = MixtureSVC(3, max_iter=2, random_state=0).fit(X, y)
    out = run_javascript(model.to_javascript(), X[:20].astype(float).tolist(), tmp_path)
    for row in out["rows"]:
        assert row["explanation"]["contributions"] is None
        assert "scores are sums of votes of the tiles" in row["explanation"]["reason"]


def test_fewer_digits_of_the_weights_make_a_smaller_file(tmp_path):
    X, y = training_set(2)
    model = ESTIMATORS["rules-linear-temperature"].fit(X, y)
    rows = rows_near(X, 100)
    exact, short = to_javascript(model), to_javascript(model, weight_digits=6)
    assert len(short) < len(exact)
    found = table(run_javascript(short, rows.tolist(), tmp_path), "scores")[:, 0]
    assert_allclose(found, model.decision_function(rows), atol=1e-4)
    assert np.abs(found - model.decision_function(rows)).max() > 0


def test_text_is_read_as_python_reads_it(tmp_path):
    """Numbers and dates in text, marks for missing ones, and categories that were numbers: the same answer, or none."""
    codes = [1e-05, 0.5, 3.0, 1e-07, 123456.75]
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "number": rng.standard_normal(80),
            "code": rng.choice(codes, 80),
            "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 300_000, 80), unit="s"),
        }
    )
    frame.loc[::9, "number"] = np.nan
    y = (frame["number"].fillna(1) + (frame["code"] < 1e-4) + frame["day"].dt.hour / 12 > 1).astype(int)
    model = MosaicClassifier(
        None, families=["linear"], categorical=["code"], blend=False, n_jobs=1, random_state=0
    ).fit(frame, y)  # fmt: skip
    row = {"number": 0.25, "code": 0.5, "day": "2026-01-02 03:04:05"}
    values = {
        "number": ["1e1", " 2 ", "", " ", "NA", "?", "0x10", "1_0", "inf", "oops", True, None],
        "code": [*codes, "0.5", "1e-05", "other", None, True],
        "day": ["2026-01-03", " 2026-01-03T23:00 ", "2026-02-30", "2026-01-02T24:00", "2026-01-02 23:59:59.123456", ""],
    }
    rows = [{**row, name: value} for name, several in values.items() for value in several]
    predictor = model.predictor()
    answers = [row["scores"] for row in run_javascript(to_javascript(model), rows, tmp_path)["rows"]]
    refused = 0
    for given, found in zip(rows, answers, strict=True):
        try:
            expected = predictor.decision_function(given)
        except ValueError:
            refused += 1
            assert "error" in found, given
        else:
            assert_allclose(found[0], expected, **EXACT, err_msg=str(given))
    assert refused == 6
    assert len({float(a[0]) for a in answers[12:17]}) > 2  # categories that were numbers are told apart


def test_the_marks_of_missing_numbers_are_those_of_python():
    source = to_javascript(LinearSVC().fit([[0.0], [1.0]], [0, 1]))
    listed = re.search(r"MISSING_NUMBERS = \[(.*?)\];", source, re.DOTALL).group(1)
    assert set(json.loads(f"[{listed.rstrip().rstrip(',')}]")) == set(MISSING_TEXTS)
