"""Predictors of pipelines: what the pipeline says, for rows as dicts, arrays, frames and documents."""

import needs
import numpy as np
import onnxruntime
import pandas as pd
import pytest
from exported import run_c
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder, RobustScaler, StandardScaler
from test_export_javascript import run_javascript
from test_interpretation import people

import svmosaic
from svmosaic import KMeansSVC, KMeansSVR, LinearSVC, MosaicClassifier
from svmosaic.export.c import to_c
from svmosaic.export.files import save, save_predictor
from svmosaic.export.javascript import JavaScriptExportError, to_javascript
from svmosaic.export.onnx import to_onnx
from svmosaic.table.pipelines import PipelinePredictor, make_predictor
from svmosaic.table.table_predictor import TablePredictor

FRAME, Y = people()
FRAME.loc[::17, "town"] = np.nan
MODEL = KMeansSVC(3, calibration="sigmoid", random_state=0)
ENCODERS = {
    "one-hot": OneHotEncoder(handle_unknown="ignore"),
    "ordinal": OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
}


def columns_of(encoder):
    numbers = make_pipeline(StandardScaler(), SimpleImputer(strategy="median"), MinMaxScaler((-1, 1)))
    texts = make_pipeline(SimpleImputer(strategy="most_frequent"), encoder)
    return make_column_transformer((texts, ["town"]), (numbers, ["age", "income"]), (RobustScaler(), ["noise"]))


@pytest.mark.parametrize("encoder", ENCODERS)
def test_rows_of_a_table(encoder, tmp_path):
    pipeline = make_pipeline(columns_of(ENCODERS[encoder]), MODEL).fit(FRAME, Y)
    predictor = make_predictor(pipeline)
    assert isinstance(predictor, TablePredictor)
    expected = pipeline.decision_function(FRAME)
    rows = FRAME.astype(object).where(FRAME.notna(), None).to_dict("records")
    assert any(row["age"] is None for row in rows)
    assert any(row["town"] is None for row in rows)
    assert_allclose(predictor.decision_function(rows), expected, rtol=1e-9, atol=1e-9)
    assert_allclose(predictor.decision_function(FRAME), expected, rtol=1e-9, atol=1e-9)
    assert_array_equal(predictor.predict(rows), pipeline.predict(FRAME))
    assert_allclose(predictor.predict_proba(rows[0]), pipeline.predict_proba(FRAME[:1])[0], rtol=1e-9)
    assert predictor.predict(rows[0]) == pipeline.predict(FRAME[:1])[0]
    unknown = {**rows[1], "town": "Cairo"}
    seen = pipeline.decision_function(pd.DataFrame([unknown]))
    assert_allclose(predictor.decision_function(unknown), seen[0], rtol=1e-9)
    save_predictor(predictor, tmp_path / "predictor")
    assert_array_equal(svmosaic.load(tmp_path / "predictor").decision_function(rows), predictor.decision_function(rows))


def model_probability(pipeline, scores):
    return pipeline[-1].calibration_.probabilities(scores[:, None])[:, 1]


@needs.node
@pytest.mark.parametrize("encoder", ENCODERS)
def test_pipelines_as_javascript_c_and_onnx(encoder, tmp_path):
    pipeline = make_pipeline(columns_of(ENCODERS[encoder]), MODEL).fit(FRAME, Y)
    rows = FRAME.astype(object).where(FRAME.notna(), None)
    rows.loc[0, "town"] = "Cairo"
    expected = pipeline.decision_function(FRAME.assign(town=FRAME["town"].where(FRAME.index > 0, "Cairo")))
    assert_allclose(make_predictor(pipeline).decision_function(rows.to_dict("records")), expected, rtol=1e-9, atol=1e-9)
    found = run_javascript(to_javascript(pipeline), rows.to_dict("records"), tmp_path)
    assert_allclose([row["scores"][0] for row in found["rows"]], expected, rtol=1e-9, atol=1e-9)
    kinds = ["number", "text", "number", "number"]
    source, _ = to_c(pipeline, tmp_path / "m.c")
    assert_allclose(run_c(source, rows, kinds), expected, atol=1e-3)
    session = onnxruntime.InferenceSession(to_onnx(pipeline, dtype=np.float64).SerializeToString())
    feed = {
        name: rows[[name]].fillna("").to_numpy(dtype=object) if kind == "text" else FRAME[[name]].to_numpy(np.float64)
        for name, kind in zip(FRAME, kinds, strict=True)
    }
    probability = model_probability(pipeline, expected)
    assert_allclose(session.run(["probabilities"], feed)[0][:, 1], probability, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (OrdinalEncoder(), 'OrdinalEncoder needs handle_unknown="use_encoded_value"'),
        (
            make_column_transformer(
                (OneHotEncoder(), ["town"]), ("passthrough", ["noise"]), (OneHotEncoder(), ["town"])
            ),
            "'town' is encoded by two steps with others in between",
        ),
        (make_column_transformer((MinMaxScaler(clip=True), ["noise"])), r"MinMaxScaler\(clip=True\)"),
    ],
    ids=["ordinal", "twice", "clip"],
)
def test_what_no_export_can_write_is_named(step, reason):
    frame = FRAME[["town", "noise"]].dropna() if "Ordinal" not in repr(step) else FRAME[["town"]].dropna()
    pipeline = make_pipeline(step, KMeansSVC(2, random_state=0)).fit(frame, Y[frame.index])
    with pytest.raises(JavaScriptExportError, match=reason):
        to_javascript(pipeline)
    # A predictor calls such steps as they are.
    row = frame.iloc[3].to_dict()
    assert make_predictor(pipeline).predict(row) == pipeline.predict(frame.iloc[3:4])[0]


def test_a_missing_number_that_nothing_replaces_is_an_error():
    pipeline = make_pipeline(columns_of(ENCODERS["one-hot"]), MODEL).fit(FRAME, Y)
    row = {**FRAME.iloc[1].to_dict(), "noise": None}
    with pytest.raises(ValueError, match="column 'noise' is missing, and the model has nothing to put in its place"):
        make_predictor(pipeline).predict(row)
    with pytest.raises(ValueError, match="column 'noise' is missing, and the model has nothing to put in its place"):
        make_predictor(pipeline).predict(pd.DataFrame([row]).astype({"noise": float}))


@pytest.mark.parametrize(
    "steps", [make_pipeline(SimpleImputer(), StandardScaler()), make_column_transformer((MinMaxScaler(), [2, 0]))]
)
def test_rows_of_arrays(steps):
    """Also where a transformer changes the order of the columns, or leaves some out."""
    X, value = np.random.default_rng(0).standard_normal((200, 3)), FRAME["income"][:200]
    pipeline = make_pipeline(steps, KMeansSVR(3, random_state=0)).fit(X, value)
    predictor = make_predictor(pipeline)
    assert predictor.columns == ["x0", "x1", "x2"]
    expected = pipeline.predict(X)
    assert_allclose(predictor.predict(X), expected, rtol=1e-9)
    assert_allclose([predictor.predict(row) for row in X], expected, rtol=1e-9)
    with pytest.raises(ValueError, match=r"a row has 3 values \(x0, x1, x2\), got 2"):
        predictor.predict(X[0, :2])


def test_documents(tmp_path):
    documents = ["the cat sat", "a dog ran", "the cat ran", "a dog sat", "cat cat", "dog dog"]
    labels = ["cat", "dog", "cat", "dog", "cat", "dog"]
    pipeline = make_pipeline(TfidfVectorizer(), LinearSVC(random_state=0)).fit(documents, labels)
    save(pipeline, tmp_path / "pipeline")
    for fitted in (pipeline, svmosaic.load(tmp_path / "pipeline")):
        predictor = make_predictor(fitted)
        assert isinstance(predictor, PipelinePredictor)
        assert predictor.predict("my cat") == "cat"
        assert predictor("my dog") == "dog"
        assert_array_equal(predictor.decision_function(documents), pipeline.decision_function(documents))


def test_steps_that_are_called_as_they_are():
    X = np.random.default_rng(0).standard_normal((100, 4))
    pipeline = make_pipeline(StandardScaler(), PCA(2), MODEL).fit(X, X[:, 0] > 0)
    predictor = make_predictor(pipeline)
    assert isinstance(predictor, PipelinePredictor)
    assert_allclose(predictor.predict_proba(X[0]), pipeline.predict_proba(X[:1])[0])
    with pytest.raises(ValueError, match="PipelinePredictor cannot be written"):
        save_predictor(predictor, "nowhere")


def test_what_has_no_predictor_is_named():
    with pytest.raises(TypeError, match="got LogisticRegression"):
        make_predictor(make_pipeline(StandardScaler(), LogisticRegression()))
    model = MODEL.fit(FRAME[["income"]], Y)
    assert make_predictor(model).predict(np.array([3.0])) == model.predictor().predict(np.array([3.0]))
    assert MosaicClassifier.predictor  # its own takes tables already
