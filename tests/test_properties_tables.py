"""Random tables: columns of every type, missing values anywhere, odd names. What is fitted, saved, loaded, exported and
given row by row agrees."""

import json
import tempfile
import warnings
from pathlib import Path

import numpy as np
import onnxruntime
import pandas as pd
import polars as pl
import pytest
import strategies as some
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import Pipeline

import svmosaic
from svmosaic import LinearSVC, MosaicClassifier
from svmosaic.export.files import save
from svmosaic.export.onnx import to_onnx
from svmosaic.table.formats import TableError
from svmosaic.table.table_preparation import TablePreparation

WORDS = ["a", "b", " b", "B", "(missing)", "?", "NA", "1", "1.0", "é", "日本", "a\nb", '"', "\\d", "<p>", "x" * 300]
NAMES = [
    "age",
    "a b",
    "a_b",
    "a-b",
    "label",
    "probabilities",
    "é",
    "日本",
    "1",
    "__proto__",
    '"',
    "a\nb",
    " ",
    "X",
    "%s",
]


def numbers(rng, n):
    return rng.standard_normal(n) * 10.0 ** rng.integers(-6, 7)


def dates(rng, n):
    return np.datetime64("1995-01-01T00:00", "m") + rng.integers(0, 20_000_000, n).astype("timedelta64[m]")


# A column of each type: what pandas may hold.
COLUMNS = {
    "float": lambda rng, n: pd.Series(numbers(rng, n)),
    "few numbers": lambda rng, n: pd.Series(rng.integers(0, 3, n)),
    "float32": lambda rng, n: pd.Series(numbers(rng, n).astype(np.float32)),
    "nullable": lambda rng, n: pd.Series(pd.array(rng.integers(-9, 9, n), dtype="Int64")),
    "bool": lambda rng, n: pd.Series(rng.random(n) < 0.5),
    "nullable bool": lambda rng, n: pd.Series(pd.array(rng.random(n) < 0.5, dtype="boolean")),
    "text": lambda rng, n: pd.Series(rng.choice(WORDS, n)),
    "many texts": lambda rng, n: pd.Series([f"text {k}" for k in rng.integers(0, 2 * n // 3, n)]),
    "category": lambda rng, n: pd.Series(pd.Categorical(rng.choice(WORDS[:4], n))),
    "codes": lambda rng, n: pd.Series(pd.Categorical(rng.integers(0, 4, n))),
    "ordered": lambda rng, n: pd.Series(pd.Categorical(rng.choice(["l", "m", "h"], n), ["l", "m", "h"], ordered=True)),
    "date": lambda rng, n: pd.Series(dates(rng, n).astype("datetime64[s]")),
    "day as text": lambda rng, n: pd.Series(dates(rng, n).astype("datetime64[D]").astype(str)),
    "duration": lambda rng, n: pd.Series(rng.integers(0, 10**6, n).astype("timedelta64[s]")),
    "objects": lambda rng, n: pd.Series([rng.choice([1, 2.5, "a", True]) for _ in range(n)], dtype=object),
    "constant": lambda rng, n: pd.Series(["same"] * n),
    "nothing": lambda rng, n: pd.Series([None] * n, dtype=object),
}


@st.composite
def tables(draw, min_rows=12, max_rows=60):
    """A frame and labels of two or three classes."""
    n = draw(st.integers(min_rows, max_rows))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kinds = draw(st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=6))
    names = draw(st.permutations(NAMES))[: len(kinds)]
    frame = pd.DataFrame({name: COLUMNS[kind](rng, n) for name, kind in zip(names, kinds, strict=True)})
    gone = draw(st.sampled_from([0.0, 0.1, 0.9]))
    for name in names:
        if gone and not (frame[name].dtype.kind in "iub" and isinstance(frame[name].dtype, np.dtype)):
            frame.loc[rng.random(n) < gone, name] = None
    return frame, rng.permutation(np.arange(n) % draw(st.sampled_from([2, 3])))


def quietly(fit, *arguments):
    """The fitted model, or None if no column could be learned from."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # identifiers, convergence
        try:
            return fit(*arguments)
        except TableError as refusal:
            if "no column to learn from" not in str(refusal):
                raise
            return None


def changed(frame, seed):
    """The same columns in another order, with values that training did not see, and one more."""
    rng = np.random.default_rng(seed)
    rows = frame.astype(object)
    for name in frame.columns:
        is_date = frame[name].astype(str).str.match(r"\d{4}-").any()
        if isinstance(frame[name].dtype, (pd.StringDtype, pd.CategoricalDtype)) and not is_date:
            rows.loc[rng.random(len(rows)) < 0.2, name] = "never seen"
        rows.loc[rng.random(len(rows)) < 0.2, name] = None
    return rows[list(rng.permutation(frame.columns))].assign(more=1)


def feed_of(table, rows, proto):
    """What an ONNX graph takes of a frame."""
    columns = json.loads(next(p.value for p in proto.metadata_props if p.key == "columns"))
    shown = pd.DataFrame(table.shown(rows), columns=table.groups[0])
    if list(columns) == ["X"] and isinstance(columns["X"], list):
        return {"X": shown[columns["X"]].to_numpy(np.float64)}
    kinds = {column.name: column.kind for column in table.columns_}
    feed = {}
    for name, column in columns.items():
        values = shown[column]
        if kinds[column] == "text":
            feed[name] = values.where(values.notna(), "").to_numpy(dtype=object)[:, None]
        elif kinds[column] == "date":
            days = (pd.to_datetime(values, format="ISO8601") - pd.Timestamp(0)) / pd.Timedelta(days=1)
            feed[name] = days.to_numpy(np.float64)[:, None]
        else:
            feed[name] = values.to_numpy(np.float64)[:, None]
    return feed


def onnx_scores(model, table, rows):
    """The scores of an ONNX graph, in the shape of `decision_function`."""
    proto = to_onnx(model, dtype=np.float64, explain=True)
    scores = onnxruntime.InferenceSession(proto.SerializeToString()).run(["scores"], feed_of(table, rows, proto))[0]
    return scores[:, 0] if scores.shape[1] == 1 else scores


@some.tries(60)
@given(tables(), st.integers(0, 99))
def test_one_preparation_everywhere(table, seed):
    frame, y = table
    steps = [("prepare", TablePreparation(max_categories=8, scale=True, random_state=0)), ("classify", LinearSVC())]
    model = quietly(Pipeline(steps).fit, frame, y)
    if model is None:
        return
    prepared = model[0]
    for rows in (frame, changed(frame, seed)):
        features = prepared.transform(rows)
        assert np.isfinite(features).all()
        assert features.shape == (len(frame), len(prepared.get_feature_names_out()))
        one = prepared.row_function()
        assert_allclose([one(row) for row in rows.to_dict("records")], features, rtol=1e-12, atol=1e-12)
        expected = model.decision_function(rows)
        assert_allclose(onnx_scores(model, prepared, rows), expected, rtol=1e-7, atol=1e-7)
    with tempfile.TemporaryDirectory() as folder:
        save(model, Path(folder) / "m")
        assert_array_equal(svmosaic.load(Path(folder) / "m").decision_function(rows), expected)


@pytest.mark.usefixtures("short_search")
@some.tries(6)
@given(tables(min_rows=30), st.integers(0, 99))
def test_a_model_fitted_to_a_table(table, seed):
    frame, y = table
    search = MosaicClassifier(None, families=("linear", "local"), max_tiles=8, random_state=0)
    model = quietly(search.fit, frame, y)
    if model is None or model.preparation_ is None:
        return
    rows = changed(frame, seed)
    expected, predictor = model.decision_function(rows), model.predictor()
    assert_allclose(onnx_scores(model, model.preparation_, rows), expected, rtol=1e-6, atol=1e-6)
    assert_allclose(predictor.decision_function(rows.to_dict("records")), expected, rtol=1e-9, atol=1e-9)
    account = model.explain(rows)
    total = account.contributions.sum(axis=2) + account.intercept
    assert_allclose(total[:, 0] if total.shape[1] == 1 else total, expected, rtol=1e-6, atol=1e-6)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "m")
        assert_array_equal(svmosaic.load(Path(folder) / "m").decision_function(rows), expected)


@some.tries(30)
@given(tables())
def test_polars_holds_the_same(table):
    frame, y = table
    # Columns of mixed objects have no type in Polars.
    frame = frame[[n for n in frame.columns if frame[n].dtype != object or frame[n].isna().all()]]
    if frame.shape[1] == 0:
        return
    prepared = quietly(TablePreparation(max_categories=8, random_state=0).fit, frame, y)
    if prepared is not None:
        other = pl.from_pandas(frame)
        assert_allclose(prepared.transform(other), prepared.transform(frame), rtol=1e-12, atol=1e-9)
        assert_allclose(prepared.transform(other.to_arrow()), prepared.transform(frame), rtol=1e-12, atol=1e-9)
