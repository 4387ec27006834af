"""Exports of pipelines around our estimators: what the pipeline says, for rows as they are."""

import needs
import numpy as np
import onnxruntime
import pytest
from exported import run_c
from numpy.testing import assert_allclose
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from test_export_javascript import run_javascript
from test_interpretation import people

from svmosaic import KMeansSVC
from svmosaic.export.c import to_c
from svmosaic.export.javascript import JavaScriptExportError, to_javascript
from svmosaic.export.onnx import to_onnx
from svmosaic.export.preparation import read_preparation

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


@needs.node
@pytest.mark.parametrize("encoder", ENCODERS)
def test_pipelines_as_javascript_c_and_onnx(encoder, tmp_path):
    pipeline = make_pipeline(columns_of(ENCODERS[encoder]), MODEL).fit(FRAME, Y)
    rows = FRAME.astype(object).where(FRAME.notna(), None)
    rows.loc[0, "town"] = "Cairo"
    expected = pipeline.decision_function(FRAME.assign(town=FRAME["town"].where(FRAME.index > 0, "Cairo")))
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
    probability = pipeline[-1].calibration_.probabilities(expected[:, None])[:, 1]
    assert_allclose(session.run(["probabilities"], feed)[0][:, 1], probability, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "scaler",
    [
        StandardScaler(with_mean=False), StandardScaler(with_std=False), RobustScaler(with_centering=False),
        RobustScaler(with_scaling=False), MaxAbsScaler(), MinMaxScaler((1, 3)),
    ],
    ids=repr,
)  # fmt: skip
def test_scalers_are_read_with_their_options(scaler):
    X = np.random.default_rng(0).normal(3.0, 2.0, (50, 2))
    (step,) = read_preparation(scaler.fit(X), ["a", "b"]).steps
    assert_allclose((X - step.center) * step.factor, scaler.transform(X), rtol=1e-12)


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
