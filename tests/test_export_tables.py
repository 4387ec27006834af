"""Models that were fitted to a table, outside of Python: columns of every kind go in as they stand in the table."""

import json

import needs
import numpy as np
import onnxruntime
import pandas as pd
import pytest
from exported import run_c
from numpy.testing import assert_allclose, assert_array_equal
from test_export_javascript import run_javascript, table
from test_table_input import QUICK, mixed_table

import svmosaic
from svmosaic import MosaicClassifier, MosaicRegressor

pytestmark = pytest.mark.usefixtures("short_search")
SEVERAL = {"ordered": {"rank": ["low", "middle", "high"]}}


def hard_rows(frame):
    """The rows, some of them with a value missing or not seen in training."""
    rows = pd.concat([frame, frame[:20], frame[:20]], ignore_index=True).astype(object)
    for at, name in enumerate(frame.columns):
        rows.loc[len(frame) + at, name] = None
        if name in ("color", "city", "rank"):
            rows.loc[len(frame) + 20 + at, name] = "never seen"
    rows.loc[len(frame) + 39, :] = None
    return rows


@pytest.fixture(scope="module")
def fitted():
    frame, y = mixed_table()
    rng = np.random.default_rng(1)
    # Every three hours, which a single-precision number of days can tell exactly.
    frame["when"] = frame["when"] + pd.to_timedelta(3 * rng.integers(0, 8, len(y)), unit="h")
    frame["rank"] = pd.Series(rng.choice(["low", "middle", "high"], len(y))).where(rng.random(len(y)) > 0.1)
    frame = frame.drop(columns=["size", "same", "nothing"])
    frame.loc[7, "when"] = pd.NaT
    return MosaicClassifier(**QUICK, **SEVERAL).fit(frame, y), hard_rows(frame)


def feed_of(model, frame, proto, dtype):
    columns = json.loads(next(p.value for p in proto.metadata_props if p.key == "columns"))
    kinds = {column.name: column.kind for column in model.preparation_.columns_}
    feed = {}
    for name, column in columns.items():
        values = frame[[column]]
        if kinds[column] == "text":
            feed[name] = values.where(values.notna(), "").to_numpy(dtype=object)
        elif kinds[column] == "date":
            feed[name] = ((pd.to_datetime(values[column]) - pd.Timestamp(0)) / pd.Timedelta(days=1)).to_numpy()[:, None]
        else:
            feed[name] = values.astype("Float64").to_numpy(dtype, na_value=np.nan)
    return feed


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-3), (np.float64, 1e-9)])
def test_onnx(fitted, dtype, tolerance):
    model, frame = fitted
    proto = model.to_onnx(dtype=dtype, explain=True)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    label, probability, scores, parts, rest = session.run(None, feed_of(model, frame, proto, dtype))
    expected = model.decision_function(frame)
    assert_allclose(scores[:, 0], expected, atol=tolerance)
    assert_allclose(probability, model.predict_proba(frame), atol=max(tolerance, 1e-6))
    clear = np.abs(model.predict_proba(frame)[:, 0] - 0.5) > 1e-3
    assert_array_equal(label[clear], model.predict(frame)[clear])
    assert_allclose(parts[:, 0], model.explain(frame).contributions[:, 0], atol=tolerance)
    assert_allclose(parts[:, 0].sum(axis=1) + rest[:, 0], expected, atol=tolerance)


def test_columns_called_like_outputs_and_nodes():
    rng = np.random.default_rng(0)
    names = ["variable", "low", "high", "label", "X", "LabelEncoder0_0_0", "constant_0_0", "Concat0_3_3"]
    frame = pd.DataFrame(rng.normal(size=(120, len(names))).astype(np.float32), columns=names)
    y = frame.to_numpy().sum(axis=1) + rng.normal(size=120)
    frame["LabelEncoder0_0_0"] = np.where(frame["LabelEncoder0_0_0"] > 0, "up", "down")
    settings = {"time_budget": None, "max_tiles": 2, "families": ("linear",), "random_state": 0}
    model = MosaicRegressor(**settings, quantiles=(0.1, 0.9)).fit(frame, y)
    proto = model.to_onnx()
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    value, low, high = session.run(["variable", "low", "high"], feed_of(model, frame, proto, np.float32))
    assert_allclose(value[:, 0], model.predict(frame), rtol=1e-4, atol=1e-4)
    assert_allclose(np.hstack([low, high]), model.predict_interval(frame), rtol=1e-4, atol=1e-4)
    classifier = MosaicClassifier(**settings).fit(frame, y > 0)
    session = onnxruntime.InferenceSession(classifier.to_onnx(explain=True).SerializeToString())
    assert {"variable", "low", "high", "label_"} <= {given.name for given in session.get_inputs()}


def test_onnx_of_numbers_alone_takes_one_input():
    frame, y = mixed_table()
    model = MosaicClassifier(**QUICK).fit(frame[["age", "flag", "count"]], y)
    proto = model.to_onnx(dtype=np.float64)
    assert [value.name for value in proto.graph.input] == ["X"]
    X = frame[["age", "flag", "count"]].astype("Float64").to_numpy(np.float64, na_value=np.nan)
    scores = onnxruntime.InferenceSession(proto.SerializeToString()).run(["scores"], {"X": X})[0]
    assert_allclose(scores[:, 0], model.decision_function(frame), atol=1e-9)


def test_c(fitted, tmp_path):
    model, frame = fitted
    source, header = model.to_c(tmp_path / "m.c")
    columns = model.preparation_.columns_
    assert "extern const char *const m_columns[7];" in header.read_text()
    scores = run_c(source, frame[[column.name for column in columns]], [column.kind for column in columns])
    assert_allclose(scores, model.decision_function(frame), atol=1e-3)


@needs.node
def test_javascript(fitted, tmp_path):
    model, frame = fitted
    rows = [
        {k: None if pd.isna(v) else v.isoformat() if k == "when" else v for k, v in row.items()}
        for row in frame.to_dict("records")
    ]
    out = run_javascript(model.to_javascript(), rows, tmp_path)
    assert_allclose(table(out, "probabilities"), model.predict_proba(frame), atol=1e-9)
    assert_array_equal(table(out, "label"), model.predict(frame))
    parts = [list(row["explanation"]["contributions"][0].values()) for row in out["rows"]]
    assert_allclose(parts, model.explain(frame).contributions[:, 0], atol=1e-9)


def test_values_of_a_table(tmp_path):
    """A regressor: the same preparation, with means of the target where there are many texts."""
    frame, _ = mixed_table()
    frame = frame.drop(columns=["same", "nothing"])
    target = frame["age"].fillna(40).to_numpy() + 10 * (frame["color"] == "red") + frame["when"].dt.month
    model = MosaicRegressor(None, families=("linear", "local"), max_tiles=8, random_state=0).fit(frame, target)
    assert model.score(frame, target) > 0.8
    rows, expected = hard_rows(frame), model.predict(hard_rows(frame))
    model.save(tmp_path / "m")
    assert_array_equal(svmosaic.load(tmp_path / "m").predict(rows), expected)
    model.save_predictor(tmp_path / "p")
    assert_allclose(svmosaic.load(tmp_path / "p")(rows.to_dict("records")), expected, rtol=1e-9)
    proto = model.to_onnx(dtype=np.float64)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    values = session.run(None, feed_of(model, rows, proto, np.float64))[0]
    assert_allclose(np.ravel(values), expected, rtol=1e-6)
    account = model.explain(rows[:5])
    assert account.feature_names == list(frame.columns)
    assert len(model.feature_importances_) == frame.shape[1]
    assert len(model.regions_) == model.mosaic_.n_tiles
