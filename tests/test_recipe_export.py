"""CONTRIBUTING's recipe "Add an export target", followed literally."""

import sqlite3
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from recipes import followed
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from test_export_onnx import run

import svmosaic
from svmosaic import KMeansSVC, LinearSVC
from svmosaic.export.files import save
from svmosaic.export.onnx import to_onnx
from svmosaic.maps import Scaling


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    return followed("Add an export target", "recipe_export", tmp_path, monkeypatch)


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((300, 4)) * [1, 10, 0.1, 3] + 5, columns=["a", "b", "c d", "e"])
    label = np.where(frame["a"] + frame["b"] / 10 - 6 > rng.standard_normal(300) / 4, "yes", "no")
    return frame.mask(rng.random(frame.shape) < 0.05), label


def queried(query, frame):
    with sqlite3.connect(":memory:") as database:
        frame.to_sql("t", database, index=False)
        database.create_function("exp", 1, lambda v: float(np.exp(v)))
        return pd.read_sql(query, database)


def test_fit_predict_save_load_and_export(recipe, table, tmp_path):
    frame, label = table
    model = LinearSVC(calibration="temperature", random_state=0)
    pipeline = make_pipeline(SimpleImputer(strategy="median"), StandardScaler(), model).fit(frame, label)
    save(pipeline, tmp_path / "model")
    query = recipe.to_sql(svmosaic.load(tmp_path / "model"), "t")
    found = queried(query, frame)
    assert query == recipe.to_sql(pipeline, "t")
    assert_array_equal(found["label"], pipeline.predict(frame))
    assert_allclose(found["probability"], pipeline.predict_proba(frame)[:, 1], rtol=1e-9)
    out = run(to_onnx(pipeline, dtype=np.float64), frame.to_numpy())
    assert_allclose(out["probabilities"][:, 1], found["probability"], rtol=1e-9, atol=1e-12)


def test_the_scaling_of_a_model_is_written(recipe, table):
    frame, label = table
    X = frame.fillna(0)
    model = LinearSVC(random_state=0).fit(X, label)
    factor = np.array([2.0, 1.0, 0.5, 4.0])
    for center in (None, np.ones(4)):
        coef = model.mosaic_.coef / factor
        intercept = model.mosaic_.intercept + (0 if center is None else model.mosaic_.coef.sum(axis=2))
        model.mosaic_ = replace(model.mosaic_, coef=coef, intercept=intercept, feature_map=Scaling(center, factor))
        assert_array_equal(queried(recipe.to_sql(model, "t"), X)["label"], model.predict(X))


def test_what_the_target_does_not_know_is_named(recipe, table):
    frame, label = table
    X = frame.fillna(0)
    with pytest.raises(recipe.SqlExportError, match="gate DistanceGate cannot be written as SQL; known are SingleCell"):
        recipe.to_sql(KMeansSVC(3, random_state=0).fit(X, label), "t")
    sigmoid = LinearSVC(calibration="sigmoid", random_state=0).fit(X, label)
    with pytest.raises(recipe.SqlExportError, match="calibration Sigmoid cannot be written as SQL; known are Temper"):
        recipe.to_sql(sigmoid, "t")
    curves = LinearSVC(pieces=3, random_state=0).fit(X, label)
    with pytest.raises(recipe.SqlExportError, match="piecewise-linear tiles cannot be written as SQL"):
        recipe.to_sql(curves, "t")
