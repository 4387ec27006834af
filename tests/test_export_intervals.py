"""Intervals outside of the estimator: predictors, ONNX, C, JavaScript and the command line give those of Python."""

import ctypes
import json
import pickle
import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import needs
import numpy as np
import onnxruntime
import pandas as pd
import pytest
from exported import rows_in_c
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from test_export_javascript import run_javascript, table
from test_export_tables import feed_of, hard_rows
from test_table_input import mixed_table

import svmosaic
from papers.data import data_folder
from svmosaic import MosaicRegressor
from svmosaic.cli import main
from svmosaic.export.c import to_c
from svmosaic.export.description import Target, describe
from svmosaic.export.javascript import to_javascript
from svmosaic.export.onnx import to_onnx
from svmosaic.model.heads import Regress

pytestmark = pytest.mark.usefixtures("short_search")
FAMILIES = ("linear", "clustered", "local", "learned", "trees")
QUICK = {"time_budget": None, "max_tiles": 8, "blend": False, "quantiles": (0.1, 0.9), "random_state": 0}


def noisy(n=300):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(n, 3)).astype(np.float32).astype(np.float64)
    return 10.0 * X, 500.0 + 40.0 * np.sin(2 * X[:, 0]) * X[:, 1] + 5.0 * rng.standard_t(4, n) * (1 + (X[:, 2] > 0))


@pytest.fixture(scope="module", params=FAMILIES)
def fitted(request):
    X, y = noisy()
    return MosaicRegressor(**QUICK, families=(request.param,)).fit(X, y), X


@pytest.fixture(scope="module")
def of_table():
    frame, _ = mixed_table()
    frame = frame.drop(columns=["same", "nothing"])
    noise = np.random.default_rng(0).normal(0, 4, len(frame))
    target = frame["age"].fillna(40).to_numpy() + 10 * (frame["color"] == "red") + frame["when"].dt.month + noise
    model = MosaicRegressor(**QUICK, families=("linear", "local")).fit(frame, target)
    return model, hard_rows(frame)


def in_onnx(model, feed, **options):
    proto = to_onnx(model, **options)
    values, low, high = onnxruntime.InferenceSession(proto.SerializeToString()).run(["variable", "low", "high"], feed)
    return values, np.concatenate([low, high], axis=1)


def in_c(model, rows_of, folder):
    """Intervals by the C file of a model; `rows_of` makes rows with the compiled library."""
    folder = Path(tempfile.mkdtemp(dir=folder))  # a library of the same path is not loaded again
    source, header = to_c(model, folder / "m.c")
    assert "void m_predict_interval(const float *x, float *ends);" in header.read_text()
    strict = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-overlength-strings"]
    library = source.with_suffix(".so")
    subprocess.run([shutil.which("cc"), *strict, "-fPIC", "-shared", source, "-o", library, "-lm"], check=True)
    compiled, pointer = ctypes.CDLL(str(library)), ctypes.c_void_p
    rows = rows_of(compiled)
    ends = np.empty((len(rows), 2), dtype=np.float32)
    for x, out in zip(rows, ends, strict=True):
        compiled.m_predict_interval(x.ctypes.data_as(pointer), out.ctypes.data_as(pointer))
    return ends


def test_a_predictor_has_them(fitted, tmp_path):
    model, X = fitted
    expected, predictor = model.predict_interval(X), model.predictor()
    assert_allclose(predictor.predict_interval(X), expected, rtol=1e-12)
    assert_allclose(predictor.predict_interval(X[5]), expected[5], rtol=1e-12)
    assert_allclose(pickle.loads(pickle.dumps(predictor)).predict_interval(X), expected, rtol=1e-12)
    model.save_predictor(tmp_path / "p")
    assert_array_equal(svmosaic.load(tmp_path / "p").predict_interval(X), predictor.predict_interval(X))
    assert_array_equal(svmosaic.load(tmp_path / "p").predict(X), predictor.predict(X))


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-4), (np.float64, 1e-9)])
def test_onnx(fitted, dtype, tolerance):
    model, X = fitted
    values, ends = in_onnx(model, {"X": X.astype(dtype)}, dtype=dtype)
    assert_allclose(ends, model.predict_interval(X), rtol=tolerance)
    assert_allclose(values[:, 0], model.predict(X), rtol=tolerance)


def test_onnx_with_explanations(fitted):
    model, X = fitted
    proto = model.to_onnx(dtype=np.float64, explain=True)
    assert [out.name for out in proto.graph.output] == ["variable", "low", "high", "contributions", "intercept"]
    found = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"X": X})
    assert_allclose(found[3][:, 0].sum(axis=1) + found[4][:, 0], model.predict(X), rtol=1e-9)
    assert_allclose(np.concatenate(found[1:3], axis=1), model.predict_interval(X), rtol=1e-9)


def test_c(fitted, tmp_path):
    model, X = fitted
    rows = np.ascontiguousarray(X, dtype=np.float32)
    # Single precision, as all of the C file: relative to the values, which are around 500.
    assert_allclose(in_c(model, lambda _: rows, tmp_path), model.predict_interval(X), rtol=1e-5)


@needs.node
def test_javascript(fitted, tmp_path):
    model, X = fitted
    out = run_javascript(to_javascript(model), X.tolist(), tmp_path)
    assert_allclose(table(out, "interval"), model.predict_interval(X), rtol=1e-9)
    assert_allclose(table(out, "label"), model.predict(X), rtol=1e-9)


def test_a_table_goes_in_as_it_stands(of_table, tmp_path):
    model, rows = of_table
    expected, predictor = model.predict_interval(rows), model.predictor()
    records = rows.to_dict("records")
    assert_allclose(predictor.predict_interval(records), expected, rtol=1e-9)
    assert_allclose(predictor.predict_interval(records[3]), expected[3], rtol=1e-9)
    model.save_predictor(tmp_path / "p")
    assert_allclose(svmosaic.load(tmp_path / "p").predict_interval(rows), expected, rtol=1e-9)
    for dtype, tolerance in ((np.float32, 1e-4), (np.float64, 1e-9)):
        feed = feed_of(model, rows, model.to_onnx(dtype=dtype), dtype)
        assert_allclose(in_onnx(model, feed, dtype=dtype)[1], expected, rtol=tolerance)
    columns = model.preparation_.columns_
    shown, kinds = rows[[column.name for column in columns]], [column.kind for column in columns]
    assert_allclose(in_c(model, lambda compiled: rows_in_c(compiled, shown, kinds, "m"), tmp_path), expected, rtol=1e-5)


@needs.node
def test_a_table_in_javascript(of_table, tmp_path):
    model, rows = of_table
    records = [
        {k: None if pd.isna(v) else v.isoformat() if k == "when" else v for k, v in row.items()}
        for row in rows.to_dict("records")
    ]
    out = run_javascript(to_javascript(model), records, tmp_path)
    assert_allclose(table(out, "interval"), model.predict_interval(rows), rtol=1e-9)


@needs.data
@needs.node
def test_a_real_table(tmp_path):
    """Cars: text, and numbers of which some are missing."""
    frame = pd.read_csv(data_folder() / "tables" / "auto_imports.csv", na_values="?").dropna(subset="price")
    y, frame = frame["price"].to_numpy(float), frame.drop(columns="price")
    model = MosaicRegressor(**{**QUICK, "blend": True}).fit(frame, y)
    expected, columns = model.predict_interval(frame), model.preparation_.columns_
    assert_allclose(model.predictor().predict_interval(frame.to_dict("records")), expected, rtol=1e-9)
    feed = feed_of(model, frame, model.to_onnx(), np.float32)
    assert_allclose(in_onnx(model, feed)[1], expected, rtol=1e-4)
    shown, kinds = frame[[column.name for column in columns]], [column.kind for column in columns]
    in_file = in_c(model, lambda compiled: rows_in_c(compiled, shown, kinds, "m"), tmp_path)
    assert_allclose(in_file, expected, rtol=1e-4)
    records = [{k: None if pd.isna(v) else v for k, v in row.items()} for row in frame.to_dict("records")]
    out = run_javascript(to_javascript(model), records, tmp_path)
    assert_allclose(table(out, "interval"), expected, rtol=1e-9)


def test_quantiles_that_cross_are_sorted_and_meet_in_the_middle(tmp_path):
    """A model whose quantiles are swapped gives the same intervals; a margin below zero crosses the ends."""
    X, y = noisy()
    model = MosaicRegressor(**{**QUICK, "quantiles": (0.4, 0.6)}, families=("local",)).fit(X, y)
    before, quantiles = model.predict_interval(X), model.intervals_.model
    mosaic, head = quantiles.mosaic_, quantiles.head_
    swapped = {name: getattr(mosaic, name)[:, ::-1].copy() for name in ("coef", "intercept")}
    quantiles.mosaic_, quantiles.head_ = replace(mosaic, **swapped), Regress(head.center[::-1], head.scale[::-1])
    assert_allclose(model.predict_interval(X), before, rtol=1e-12)
    for margin in (model.intervals_.margin, -50.0):
        model.intervals_ = replace(model.intervals_, margin=margin)
        expected = model.predict_interval(X)
        assert (expected[:, 0] == expected[:, 1]).any() == (margin == -50.0)
        assert_allclose(in_onnx(model, {"X": X}, dtype=np.float64)[1], expected, rtol=1e-9)
        assert_allclose(in_c(model, lambda _: X.astype(np.float32), tmp_path), expected, rtol=1e-5)
        assert_allclose(model.predictor().predict_interval(X), expected, rtol=1e-12)
        if shutil.which("node"):
            out = run_javascript(to_javascript(model), X.tolist(), tmp_path)
            assert_allclose(table(out, "interval"), expected, rtol=1e-9)


def test_a_pipeline(tmp_path):
    X, y = noisy()
    pipeline = make_pipeline(StandardScaler(), MosaicRegressor(**QUICK, families=("local",))).fit(X, y)
    expected = pipeline[-1].predict_interval(pipeline[:-1].transform(X))
    assert_allclose(in_onnx(pipeline, {"X": X}, dtype=np.float64)[1], expected, rtol=1e-9)
    assert_allclose(in_c(pipeline, lambda _: X.astype(np.float32), tmp_path), expected, rtol=1e-5)


def test_the_command_line(tmp_path, capsys):
    X, y = noisy()
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(
        kind=np.where(X[:, 2] > 0, "up", "down"), y=y + 30 * (X[:, 2] > 0)
    )
    frame.loc[::7, "a"] = np.nan
    frame.to_csv(tmp_path / "t.csv", index=False)
    train = ["train", tmp_path / "t.csv", "--label", "y", "-o", tmp_path / "m", "--budget", "4s", "--test-size", "0"]
    train += ["--set", "quantiles=(0.1, 0.9)", "--set", "families=('linear', 'local')", "--seed", "0"]
    assert main(train) == 0
    assert main(["predict", tmp_path / "m", tmp_path / "t.csv", "-o", tmp_path / "out.csv"]) == 0
    ends = pd.read_csv(tmp_path / "out.csv")[["low", "high"]].to_numpy()
    assert main(["export", tmp_path / "m", "--format", "onnx", "-o", tmp_path / "m.onnx"]) == 0
    feed = {name: frame[[name]].to_numpy(np.float32) for name in "abc"} | {"kind": frame[["kind"]].to_numpy(object)}
    low, high = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(["low", "high"], feed)
    assert_allclose(np.concatenate([low, high], axis=1), ends, rtol=1e-4)
    capsys.readouterr()
    assert main(["export", tmp_path / "m", "--format", "javascript", "-o", tmp_path / "m.mjs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["exports"][2] == "predictInterval"
    assert main(["export", tmp_path / "m", "--format", "c", "-o", tmp_path / "m.c"]) == 0
    assert "m_predict_interval" in (tmp_path / "m.h").read_text()


def test_models_without_intervals_say_so(tmp_path):
    X, y = noisy()
    model = MosaicRegressor(**{**QUICK, "quantiles": None}, families=("linear",)).fit(X, y)
    with pytest.raises(AttributeError, match=r"fit MosaicRegressor with quantiles=\(0.05, 0.95\)"):
        model.predictor().predict_interval(X)
    assert [out.name for out in model.to_onnx().graph.output] == ["variable"]
    _, header = model.to_c(tmp_path / "m.c")
    assert "interval" not in header.read_text()
    if shutil.which("node"):
        out = run_javascript(to_javascript(model), X[:2].tolist(), tmp_path)
        assert "fit MosaicRegressor with quantiles" in out["rows"][0]["interval"]["error"]


def test_a_target_that_cannot_write_them_says_so():
    X, y = noisy()
    model = MosaicRegressor(**QUICK, families=("linear",)).fit(X, y)
    other = Target("Other", ValueError, {"SingleCell"}, heads=("Regress",), curves=True)
    with pytest.raises(ValueError, match="intervals cannot be written as Other: fit the model without quantiles"):
        describe(model, other)
