"""Columns of text: the same labels from the command line, from frames, and from exported models."""

import json

import needs
import numpy as np
import onnxruntime
import pandas as pd
import pytest
from exported import run_c
from numpy.testing import assert_allclose, assert_array_equal
from test_export_javascript import run_javascript, table

from papers.data import data_folder
from svmosaic.cli import main
from svmosaic.export.c import to_c
from svmosaic.export.javascript import to_javascript
from svmosaic.export.onnx import to_onnx
from svmosaic.export.onnx.preparation import input_names
from svmosaic.table.trained_model import open_model

NAMES = ["education-num", "a-b", "a_b", "label", "2nd", "native country"]


def mixed(n=400, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({name: rng.standard_normal(n) for name in NAMES[:3]})
    frame["label"] = rng.choice(["Private", "Self-emp (inc)", "Ärzte", "a+b|c", "?"], n)
    frame["2nd"] = rng.choice(["x y", "\\d", "-", "NA"], n)
    frame["native country"] = rng.choice(["Peru", "Laos "], n)
    text = (frame["label"] == "Ärzte") - 1.0 * (frame["2nd"] == "-") + 0.5 * (frame["native country"] == "Peru")
    score = frame["a_b"] + text
    frame["kind"] = np.where(score > 0.3, "yes", "no")
    return frame


def write_csv(frame, path):
    """With a blank after each comma, as the UCI repository has it."""
    lines = [", ".join(map(str, row)) for row in [frame.columns, *frame.itertuples(index=False)]]
    path.write_text("\n".join(lines) + "\n")


def feed_of(frame, columns):
    """Columns as pandas read them, under the names of the graph."""
    return {
        name: frame[[column]].to_numpy(np.float32)
        if pd.api.types.is_numeric_dtype(frame[column])
        else frame[[column]].to_numpy(dtype=object)
        for name, column in columns.items()
    }


def columns_of(proto):
    return {prop.key: json.loads(prop.value) for prop in proto.metadata_props}["columns"]


def outputs_of(proto, feed):
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return dict(zip([out.name for out in session.get_outputs()], session.run(None, feed), strict=True))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A model of a table with blanks after its commas, and what the command line says of it."""
    folder = tmp_path_factory.mktemp("text")
    write_csv(mixed(), folder / "train.csv")
    write_csv(mixed(1000, seed=1).drop(columns="kind"), folder / "new.csv")
    model, answers = folder / "m.model", folder / "answers.csv"
    options = ["--label", "kind", "--model", "clustered", "--calibration", "sigmoid", "-o", model, "--quiet"]
    assert main(["train", folder / "train.csv", *options]) == 0
    assert main(["predict", model, folder / "new.csv", "-o", answers, "--proba"]) == 0
    raw = pd.read_csv(folder / "new.csv", keep_default_na=False)  # blanks stay where they are
    raw.columns = [name.strip() for name in raw.columns]
    assert raw["label"].str.startswith(" ").all()
    return open_model(model), raw, pd.read_csv(answers)


def test_a_frame_as_pandas_reads_it(trained):
    model, raw, answers = trained
    assert_array_equal(model.predict(raw), answers.iloc[:, 0])


def test_onnx_as_pandas_reads_it(trained):
    model, raw, answers = trained
    proto = to_onnx(model)
    columns = columns_of(proto)
    assert list(columns.values()) == NAMES
    assert [value.name for value in proto.graph.input] == list(columns)
    out = outputs_of(proto, feed_of(raw, columns))
    assert list(out) == ["label", "probabilities"]
    assert_array_equal(out["label"], answers.iloc[:, 0])
    assert_allclose(out["probabilities"], model.predict_proba(raw), atol=1e-5)


@needs.node
def test_javascript_as_pandas_reads_it(trained, tmp_path):
    model, raw, answers = trained
    rows = raw.to_dict("records")
    missing = pd.DataFrame(raw.loc[:9].astype(object))
    for at, name in enumerate(NAMES):
        missing.loc[at, name] = None
    rows += missing.to_dict("records")
    out = run_javascript(to_javascript(model), rows, tmp_path)
    everything = pd.concat([raw, missing])
    assert_array_equal(table(out, "label")[: len(raw)], answers.iloc[:, 0])
    assert_allclose(table(out, "probabilities"), model.predict_proba(everything), rtol=1e-9, atol=1e-9)
    for one, score in zip(out["rows"], model.pipeline.decision_function(model.rows(everything)), strict=True):
        parts = one["explanation"]["contributions"][0]
        assert list(parts) == NAMES
        assert sum(parts.values()) + one["explanation"]["intercept"][0] == pytest.approx(score, abs=1e-9)


def test_explanations_of_columns_of_text(trained):
    model, raw, _ = trained
    proto = to_onnx(model, explain=True)
    out = outputs_of(proto, feed_of(raw, columns_of(proto)))
    assert list(out) == ["label", "probabilities", "scores", "contributions", "intercept"]
    assert out["contributions"].shape == (len(raw), 1, len(NAMES))
    assert_allclose(out["contributions"].sum(axis=2) + out["intercept"], out["scores"], atol=1e-4)
    exact = model.explain(raw)
    assert exact.feature_names == NAMES
    assert_allclose(out["contributions"], exact.contributions, atol=1e-4)


def test_missing_text_is_missing_everywhere(trained):
    model, raw, _ = trained
    blank = raw.assign(label=["", "  ", " ? ", "NA", "\t-"] * 200)
    absent = raw.assign(label=None)
    proto = to_onnx(model)
    assert_array_equal(model.predict_proba(blank), model.predict_proba(absent))
    out = outputs_of(proto, feed_of(blank, columns_of(proto)))
    assert_allclose(out["probabilities"], model.predict_proba(absent), atol=1e-5)


def test_a_model_without_the_rule_takes_text_as_it_is(trained):
    """As do models of earlier versions, and of formats that mark missing values themselves."""
    model, raw, _ = trained
    clean = raw.assign(**{name: raw[name].str.strip() for name in NAMES[3:]})
    rule, model.missing_texts = model.missing_texts, None
    try:
        proto = to_onnx(model)
        for frame in (raw, clean):
            out = outputs_of(proto, feed_of(frame, columns_of(proto)))
            assert_allclose(out["probabilities"], model.predict_proba(frame), atol=1e-5)
        assert (model.predict_proba(raw) != model.predict_proba(clean)).any()
    finally:
        model.missing_texts = rule


def test_c_takes_text_by_its_number(trained, tmp_path):
    model, raw, _ = trained
    blank = raw[:200].assign(label=["", "  ", " ? ", "NA", "\t-"] * 40)
    frame = pd.concat([raw, blank, raw[:50].assign(label="never seen")])
    expected = model.pipeline.decision_function(model.rows(frame))
    assert_allclose(run_c(to_c(model, tmp_path / "m.c")[0], frame, model.kinds), expected, atol=1e-4)


def test_names_of_inputs():
    assert input_names(["education-num", "a-b", "a_b", "label", "2nd", "é", ""]) == [
        "education_num", "a_b_", "a_b", "label_", "_2nd", "_", "__",
    ]  # fmt: skip
    assert input_names(["a-b", "a b", "a_b_", "_", "-", "scores"]) == ["a_b", "a_b__", "a_b_", "_", "__", "scores_"]


def test_the_command_line_says_which_names_changed(tmp_path, capsys):
    write_csv(mixed(), tmp_path / "train.csv")
    model = tmp_path / "m.model"
    assert main(["train", tmp_path / "train.csv", "--label", "kind", "--model", "linear", "-o", model, "--quiet"]) == 0
    capsys.readouterr()
    assert main(["export", model, "--format", "onnx", "-o", tmp_path / "m.onnx"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "'education-num' is education_num, 'a-b' is a_b_, 'label' is label_, '2nd' is _2nd" in said
    assert main(["export", model, "--format", "javascript", "-o", tmp_path / "m.mjs", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["exports"] == ["predict", "predictProba", "scores", "explain"]
    assert (tmp_path / "m.mjs").read_text() == to_javascript(open_model(model))


@needs.data
@needs.node
def test_adult_with_blanks(tmp_path):
    """The command line, ONNX and JavaScript on files with a blank after each comma."""
    tables = data_folder() / "tables"
    if not (tables / "adult_test.csv").exists():
        pytest.skip("there is no tables/adult_test.csv")
    train, test = (pd.read_csv(tables / f"adult_{part}.csv", keep_default_na=False) for part in ("train", "test"))
    write_csv(train.iloc[:5000].replace("", "?"), tmp_path / "train.csv")
    write_csv(test.drop(columns="income").replace("", "?"), tmp_path / "new.csv")
    model, answers = tmp_path / "m.model", tmp_path / "answers.csv"
    options = ["--label", "income", "--model", "linear", "--test-size", "0", "-o", model, "--quiet"]
    assert main(["train", tmp_path / "train.csv", *options]) == 0
    assert main(["predict", model, tmp_path / "new.csv", "-o", answers]) == 0
    expected = pd.read_csv(answers).iloc[:, 0]
    raw = pd.read_csv(tmp_path / "new.csv")
    raw.columns = [name.strip() for name in raw.columns]
    assert len(raw) == 16281
    assert (raw["workclass"] == " ?").any()
    proto = to_onnx(open_model(model))
    out = outputs_of(proto, feed_of(raw, columns_of(proto)))
    scores = open_model(model).pipeline.decision_function(open_model(model).rows(raw))
    clear = np.abs(scores) > 1e-4  # beyond the rounding of float32
    assert clear.mean() > 0.999
    assert_array_equal(out["label"][clear], expected[clear])
    found = run_javascript(to_javascript(open_model(model)), json.loads(raw.to_json(orient="records")), tmp_path)
    assert_array_equal(table(found, "label"), expected)


def test_a_column_of_many_texts_is_looked_up_past_a_blank(tmp_path):
    """More texts than categories: their means of the target, in ONNX as on the command line."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.standard_normal(600), "city": [f"city {k}" for k in rng.integers(0, 120, 600)]})
    frame["kind"] = np.where(frame["city"].str.len() + frame["a"] > 6.5, "yes", "no")
    write_csv(frame, tmp_path / "train.csv")
    main(
        [
            "train",
            str(tmp_path / "train.csv"),
            "--label",
            "kind",
            "--model",
            "linear",
            "-o",
            str(tmp_path / "m"),
            "--quiet",
        ]
    )
    model = open_model(tmp_path / "m")
    raw = pd.read_csv(tmp_path / "train.csv", keep_default_na=False)
    raw.columns = [name.strip() for name in raw.columns]
    assert raw["city"].str.startswith(" ").all()
    proto = to_onnx(model)
    for city in (raw["city"], raw["city"].str.strip(), raw["city"] + "\t"):
        out = outputs_of(proto, feed_of(raw.assign(city=city), columns_of(proto)))
        assert_array_equal(out["label"].ravel(), model.predict(raw.drop(columns="kind")))
