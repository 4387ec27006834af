"""Tables as they are: what models make of the columns of frames, at training and at prediction."""

import datetime
import pickle
import subprocess
import sys
import timeit
from datetime import date, time
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.inspection import permutation_importance
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.preprocessing import TargetEncoder

import svmosaic
from svmosaic import LinearSVC, MosaicClassifier, MosaicRegressor, load
from svmosaic.estimators._table_input import is_matrix, prepare_training
from svmosaic.export.preparation import part_of_date
from svmosaic.table.formats import TableError
from svmosaic.table.table_preparation import TablePreparation

pytestmark = pytest.mark.usefixtures("short_search")
QUICK = {
    "time_budget": None, "max_tiles": 4, "families": ("linear", "local", "trees"), "random_state": 0,
    "calibration": "sigmoid",
}  # fmt: skip


def mixed_table(n=400, seed=0):
    """A frame with a column of every kind, and labels that depend on most of them."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, n).astype(float)
    color = rng.choice(["red", "green", "blue"], n)
    when = np.datetime64("2020-01-01") + rng.integers(0, 900, n).astype("timedelta64[D]")
    city = np.array([f"city {k}" for k in rng.integers(0, 90, n)])
    y = np.where((age > 45) ^ (color == "red") ^ (rng.random(n) < 0.05), "yes", "no")
    age[rng.random(n) < 0.1] = np.nan
    frame = pd.DataFrame(
        {
            "age": age,
            "color": pd.Series(color).where(rng.random(n) > 0.1),
            "flag": rng.random(n) < 0.3,
            "when": when,
            "size": pd.Categorical(rng.choice(["S", "M", "L"], n), categories=["S", "M", "L"], ordered=True),
            "city": city,
            "count": pd.array(rng.integers(0, 5, n), dtype="Int64"),
            "same": 1,
            "nothing": None,
        }
    )
    frame.loc[3, "count"] = pd.NA
    return frame, y


@pytest.fixture(scope="module")
def fitted():
    frame, y = mixed_table()
    return MosaicClassifier(**QUICK).fit(frame, y), frame, y


def test_what_becomes_of_each_kind():
    frame, y = mixed_table()
    prepared = TablePreparation(random_state=0).fit(frame, y)
    names = list(prepared.get_feature_names_out())
    assert names[:2] == ["age", "age is missing"]
    assert [n for n in names if n.startswith("color")] == [f"color_{c}" for c in ("(missing)", "blue", "green", "red")]
    assert [n for n in names if n.startswith("when")] == ["when: days", "when: month", "when: day", "when: weekday"]
    assert names.count("size") == names.count("city") == names.count("flag") == 1
    assert {"count", "count is missing"} <= set(names)
    assert prepared.dropped_ == {"same": "constant", "nothing": "constant"}
    rows = prepared.transform(frame)
    assert np.isfinite(rows).all()
    known = frame["age"].dropna()
    assert_allclose(rows[frame["age"].isna(), 0], known.median())
    assert_array_equal(rows[:, 1], frame["age"].isna())
    assert_array_equal(rows[:, names.index("size")], frame["size"].cat.codes)
    assert_array_equal(rows[:, names.index("when: month")], frame["when"].dt.month)
    assert_array_equal(rows[:, names.index("flag")], frame["flag"])
    assert prepared.columns["age"] == [0, 1]
    assert sorted(place for places in prepared.columns.values() for place in places) == list(range(len(names)))


def test_calendar_is_that_of_the_standard_library():
    days = np.arange(-200_000, 200_000, 37)
    dates = [datetime.date.fromordinal(int(d) + 719_163) for d in days]
    assert_array_equal(part_of_date("month", days.astype(float), np.floor), [d.month for d in dates])
    assert_array_equal(part_of_date("day", days + 0.75, np.floor), [d.day for d in dates])
    assert_array_equal(part_of_date("weekday", days.astype(float), np.floor), [d.weekday() for d in dates])
    assert_allclose(part_of_date("hour", days + 0.75, np.floor), 18.0)


def test_means_of_the_target_are_out_of_fold_in_training():
    frame, y = mixed_table()
    prepared, rows = prepare_training(frame[["city"]], y, "classification", random_state=0)
    encoder = TargetEncoder(target_type="binary", cv=StratifiedKFold(5, shuffle=True, random_state=0))
    expected = encoder.fit_transform(frame[["city"]].to_numpy(dtype=object), (y == "yes").astype(int))
    assert_allclose(rows, expected)
    assert_allclose(prepared.transform(frame), encoder.transform(frame[["city"]].to_numpy(dtype=object)))
    assert_allclose(prepared.transform(pd.DataFrame({"city": ["elsewhere", None]})), (y == "yes").mean())
    numbers = (frame["flag"] + np.arange(len(y)) / 100).to_numpy()
    prepared, rows = prepare_training(frame[["city"]], numbers, "regression", random_state=0)
    assert_allclose(
        prepared.transform(frame),
        TargetEncoder(target_type="continuous").fit(frame[["city"]], numbers).transform(frame[["city"]]),
    )
    classes = np.arange(len(y)) % 3
    prepared, rows = prepare_training(frame[["city"]], classes, "classification", random_state=0)
    assert list(prepared.get_feature_names_out()) == ["city_0", "city_1", "city_2"]
    expected = TargetEncoder(target_type="multiclass").fit(frame[["city"]], classes).transform(frame[["city"]])
    assert_allclose(prepared.transform(frame), expected)


def test_all_kinds_of_frames_give_the_same_rows(fitted):
    model, frame, _ = fitted
    plain = frame.drop(columns=["nothing"])
    polars = pl.from_pandas(plain)
    arrow = pa.Table.from_pandas(plain, preserve_index=False)
    objects = plain.astype(object)
    expected = model.decision_function(frame)
    for other in (polars, arrow, objects, frame.iloc[:, ::-1], frame.assign(more="x")):
        assert_array_equal(model.decision_function(other), expected)
    refit = MosaicClassifier(**QUICK).fit(polars, fitted[2])
    assert_array_equal(refit.predict(arrow), refit.predict(frame))


def test_columns_of_an_array_of_objects_go_by_place():
    frame, y = mixed_table()
    array = frame[["age", "color", "flag"]].to_numpy(dtype=object)
    model = MosaicClassifier(**QUICK).fit(array, y)
    assert model.n_features_in_ == 3
    expected = MosaicClassifier(**QUICK).fit(frame[["age", "color", "flag"]], y).decision_function(frame)
    assert_array_equal(model.decision_function(array), expected)
    assert_array_equal(MosaicClassifier(**QUICK).fit(array.tolist(), y).predict(array), model.predict(array))
    with pytest.raises(TableError, match="X has 2 columns, but the model was trained on 3"):
        model.predict(array[:, :2])


def test_missing_columns_are_named(fitted):
    model, frame, _ = fitted
    with pytest.raises(ValueError, match=r"X lacks the columns 'age', 'when'; the model was trained on the columns"):
        model.predict(frame.drop(columns=["age", "when"]))
    # What training left out is not asked for.
    assert_array_equal(model.predict(frame.drop(columns=["same", "nothing"])), model.predict(frame))


def test_new_categories_and_values_that_are_not_what_they_should_be(fitted):
    model, frame, _ = fitted
    row = frame.iloc[:1]
    rows = model.preparation_.transform(row.assign(color="mauve"))
    places = model.preparation_.columns["color"]
    assert_array_equal(rows[0, places], 0.0)
    rows = model.preparation_.transform(row.assign(color=None, age=None, when=None))
    names = list(model.preparation_.get_feature_names_out())
    assert rows[0, names.index("color_(missing)")] == rows[0, names.index("age is missing")] == 1
    assert np.isfinite(rows).all()
    for wrong, text in (
        ({"age": "old"}, "column 'age' holds 'old', which is not a number"),
        ({"age": np.inf}, "'age' holds an infinite number in row 1: replace it by a finite number or a missing value"),
        ({"when": "soon"}, "column 'when' holds 'soon', which is not a date"),
        ({"when": 3}, "column 'when' held dates in training, and now holds numbers"),
    ):
        with pytest.raises(ValueError, match=text):
            model.predict(row.assign(**wrong))
    assert_array_equal(model.predict(row.assign(age="40")), model.predict(row.assign(age=40)))
    assert_array_equal(
        model.predict(row.assign(when="2021-03-04")), model.predict(row.assign(when=pd.Timestamp(2021, 3, 4)))
    )


def test_identifiers_are_left_out_with_a_warning():
    frame, y = mixed_table()
    frame = frame[["age", "color"]].assign(name=[f"person {k}" for k in range(len(y))])
    with pytest.warns(UserWarning, match="column 'name' is left out: it has 400 distinct values in 400 rows") as told:
        model = MosaicClassifier(**QUICK).fit(frame, y)
    assert "number written as text" not in str(told[0].message)
    numbers = pd.DataFrame({"age": frame["age"], "price": [f"{k}.5" for k in range(len(y))]})
    with pytest.warns(UserWarning, match="'price' is left out: .*; convert it if it is a number written as text, pass"):
        TablePreparation().fit(numbers, y)
    assert model.preparation_.dropped_ == {"name": "identifier"}
    kept = TablePreparation(categorical=["name"], random_state=0).fit(frame, y)
    assert "name" in kept.columns
    assert "name" not in TablePreparation(drop=["name"]).fit(frame, y).columns


def test_options_by_column():
    frame, y = mixed_table()
    frame = frame[["age", "color", "count", "size"]].assign(size=frame["size"].astype(str))
    prepared = TablePreparation(categorical=["count"], ordered={"size": ["S", "M", "L"]}, drop=["age"]).fit(frame, y)
    names = list(prepared.get_feature_names_out())
    assert [n for n in names if n.startswith("count")] == ["count_(missing)", *(f"count_{k}" for k in range(5))]
    rank = prepared.transform(frame)[:, names.index("size")]
    assert_array_equal(rank, frame["size"].map({"S": 0, "M": 1, "L": 2}))
    assert "age" not in prepared.columns
    with pytest.raises(TableError, match="ordered does not list 'L', a value of the column 'size'"):
        TablePreparation(ordered={"size": ["S", "M"]}).fit(frame, y)
    with pytest.raises(TableError, match="drop names the column 'weight', but X has the columns 'age', 'color'"):
        TablePreparation(drop=["weight"]).fit(frame, y)
    with pytest.raises(TableError, match=r"X has no column to learn from: 'same' \(constant\)"):
        TablePreparation().fit(pd.DataFrame({"same": [1, 1]}), [0, 1])


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (2**60 + np.arange(4), [str(2**60 + k) for k in range(4)]),
        (pd.array([2**60, 2**60 + 1, None], dtype="Int64"), [str(2**60), str(2**60 + 1), None]),
        (pd.date_range("2021-01-01 12:00", periods=4), [f"2021-01-0{k}T12:00:00" for k in range(1, 5)]),
        ([date(2021, 1, k) for k in range(1, 5)], [f"2021-01-0{k}" for k in range(1, 5)]),
        (pd.period_range("2021-01", periods=4, freq="M"), [f"2021-0{k}-01" for k in range(1, 5)]),
        (pd.to_timedelta([0, 12, 24, 36], unit="h"), ["0", "0.5", "1", "1.5"]),
        ([time(k, 30) for k in range(4)], ["0.5", "1.5", "2.5", "3.5"]),
        ([Decimal("1.10"), Decimal("2"), Decimal("3.0"), Decimal("2.50")], ["1.1", "2", "3", "2.5"]),
        (np.array([0.5, 1, 2, 3], dtype=np.float32), ["0.5", "1", "2", "3"]),
        ([True, False, True, False], ["True", "False", "True", "False"]),
        (pd.cut([0, 2, 5, 6], [-1, 1, 3, 6]), ["(-1, 1]", "(1, 3]", "(3, 6]", "(3, 6]"]),
    ],
)
def test_a_value_has_one_text_in_frames_and_dicts(values, texts):
    frame = pd.DataFrame({"c": values})
    prepared = TablePreparation(categorical=["c"]).fit(frame)
    known = {f"c_{'(missing)' if text is None else text}" for text in texts}
    assert set(prepared.get_feature_names_out()) == known
    rows = prepared.transform(frame)
    assert_array_equal(rows.sum(axis=1), 1)
    one = prepared.row_function()
    assert_array_equal([one({"c": value}) for value in frame["c"]], rows)
    assert_array_equal([one({"c": text}) for text in texts], rows)


def test_text_that_is_dates_and_objects_that_are_numbers():
    frame = pd.DataFrame(
        {
            "day": ["2020-01-31", "2020-02-01", None, "2021-07-04"],
            "time": ["2020-01-31 06:00", "2020-02-01T12:30:15", "2020-02-02 18:00", None],
            "odd": pd.Series([1, 2.5, None, True], dtype=object),
            "not": ["2020-02-31", "2020-02-01", "2020-02-01", "2020-02-01"],
        }
    )
    names = list(TablePreparation().fit(frame).get_feature_names_out())
    assert {"day: days", "day: month", "day is missing", "time: hour", "odd", "not_2020-02-31"} <= set(names)
    months = pd.DataFrame({"month": pd.period_range("2020-01", periods=4, freq="M")})
    prepared = TablePreparation().fit(months)
    assert list(prepared.get_feature_names_out()) == ["month: days", "month: month", "month: weekday"]
    start = prepared.row_function()({"month": months["month"][1]})
    assert_array_equal(start, prepared.transform(months)[1])
    assert_array_equal(start, prepared.transform(pd.DataFrame({"month": ["2020-02-01"]}))[0])
    with pytest.raises(TableError, match="column 'bad' holds a list, which is not a number, text or date: drop it"):
        TablePreparation().fit(pd.DataFrame({"bad": [[1], [2]]}))


def test_numbers_with_marks_for_missing_ones_stay_numbers():
    frame = pd.DataFrame({"price": ["1.5", "?", "-3", "NA", " 1e3 "], "zip": ["01", "02", "02", "01", "03"]})
    prepared = TablePreparation().fit(frame)
    assert list(prepared.get_feature_names_out()) == ["price", "price is missing", "zip_01", "zip_02", "zip_03"]
    assert_array_equal(prepared.transform(frame)[:, 0], [1.5, 1.5, -3, 1.5, 1000])
    assert_array_equal(prepared.transform(frame)[:, 1], [0, 1, 0, 1, 0])
    with pytest.raises(TableError, match="column 'price' holds 'cheap', which is not a number"):
        prepared.transform(frame.assign(price="cheap"))


def test_matrices_of_numbers_are_left_alone():
    X = np.arange(12.0).reshape(4, 3)
    for matrix in (
        X,
        X.tolist(),
        sparse.csr_array(X),
        sparse.dok_array(X),
        pd.DataFrame(X),
        pl.DataFrame(X),
        X.astype(object),
    ):
        assert is_matrix(matrix)
        prepared, same = prepare_training(matrix, [0, 1, 0, 1], "classification")
        assert prepared is None
        assert same is matrix
    for table in (
        pd.DataFrame(X).replace(0.0, np.nan),
        pd.DataFrame(X).replace(0.0, np.inf),
        pd.DataFrame(X, columns=["a", 1, 2]),
        pd.DataFrame({"a": ["x", "y"]}),
        pa.table({"a": [1.0, 2.0]}),
        np.array([["a", 1]], dtype=object),
        [["a", 1.0]],
        [[None, 1.0]],
    ):
        assert not is_matrix(table)
    y = [0, 1, 0, 1]
    model = MosaicClassifier(**(QUICK | {"calibration": None})).fit(pd.DataFrame(X, columns=list("abc")), y)
    assert model.preparation_ is None
    with pytest.raises(ValueError, match="drop is for tables with named columns, and X is a sparse matrix"):
        MosaicClassifier(drop=["a"]).fit(sparse.csr_array(X), y)


def test_explanations_and_regions_are_in_the_columns_of_the_table(fitted):
    model, frame, _ = fitted
    account = model.explain(frame[:5])
    assert account.feature_names == [n for n in frame.columns if n not in ("same", "nothing")]
    assert_allclose((account.contributions.sum(axis=2) + account.intercept)[:, 0], model.decision_function(frame[:5]))
    table = account.features(top=3)
    assert set(table["feature"]) <= {*frame.columns, "(others)", "(intercept)"}
    shown = {
        name: value for row, name, value in zip(table["row"], table["feature"], table["value"], strict=True) if row == 0
    }
    assert all(shown[n] == frame[n][0] for n in shown if n in ("color", "age"))
    assert "_" not in "".join(model.regions_["strongest features"])
    assert len(model.feature_importances_) == len(model.feature_names_in_) == frame.shape[1]
    assert dict(zip(frame.columns, model.feature_importances_, strict=True))["same"] == 0
    rows = model.summarize_regions(frame, fitted[2])["rows"].sum()
    assert rows > 0
    assert rows % len(frame) == 0  # once for each gate


def test_save_load_pickle_and_clone(fitted, tmp_path):
    model, frame, y = fitted
    model.save(tmp_path / "model.svmosaic")
    expected = model.decision_function(frame)
    assert_array_equal(svmosaic.load(tmp_path / "model.svmosaic").decision_function(frame), expected)
    assert_array_equal(pickle.loads(pickle.dumps(model)).decision_function(frame), expected)
    assert_array_equal(clone(model).fit(frame, y).decision_function(frame), expected)


def test_rows_as_dicts(fitted):
    model, frame, _ = fitted
    predictor = pickle.loads(pickle.dumps(model.predictor()))
    rows = frame.to_dict("records")
    assert_array_equal([predictor(row) for row in rows], model.predict(frame))
    assert_array_equal(predictor(rows), model.predict(frame))
    assert_allclose(predictor.predict_proba(frame), model.predict_proba(frame), atol=1e-12)
    assert_allclose([predictor.decision_function(row) for row in rows], model.decision_function(frame), atol=1e-9)
    assert set(predictor.columns) == set(frame.columns) - {"same", "nothing"}
    row = rows[0] | {"age": "41", "color": "", "when": "2021-05-06", "count": None, "more": 1}
    expected = model.predict_proba(pd.DataFrame([row]).assign(color=None))[0]
    assert_allclose(predictor.predict_proba(row), expected, atol=1e-12)
    with pytest.raises(ValueError, match="the row lacks 'age'; pass None for a missing value"):
        predictor({name: value for name, value in row.items() if name != "age"})
    with pytest.raises(ValueError, match="column 'age' must be a number, or None for a missing value, got 'old'"):
        predictor(row | {"age": "old"})
    with pytest.raises(ValueError, match="column 'when' must be a date, text such as 2026-01-31"):
        predictor(row | {"when": "soon"})
    with pytest.raises(TypeError, match="a list must hold rows as dicts, got 41: for one row pass a dict, or an array"):
        predictor([41, "red"])


def test_a_dict_costs_microseconds(fitted):
    """A few tens of them on an idle machine; the bound leaves room for a busy one."""
    model, frame, _ = fitted
    predictor, row = model.predictor(), frame.to_dict("records")[0]
    assert min(timeit.repeat(lambda: predictor(row), number=100, repeat=20)) / 100 < 500e-6


def test_means_of_the_target_need_few_rows_of_a_class():
    frame = pd.DataFrame({"a": [f"text {k % 9}" for k in range(12)]})
    prepared = TablePreparation(max_categories=4, random_state=0).fit(frame, np.arange(12) % 3)
    assert prepared.transform(frame).shape == (12, 3)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "array"])
def test_rows_without_weight_are_not_learned_from(kind):
    rng = np.random.default_rng(0)
    n, junk = 300, 600
    X = pd.DataFrame({"c": [f"u{i}" for i in rng.integers(0, 70, n)], "z": rng.normal(size=n)})
    X.loc[5, "z"] = np.nan
    more = pd.DataFrame({"c": [f"v{i}" for i in rng.integers(0, 200, junk)], "z": 1e6})
    both, y = pd.concat([more, X], ignore_index=True), (X.z > 0).to_numpy().astype(int)
    as_kind = {
        "pandas": lambda frame: frame, "array": lambda frame: frame.to_numpy(object),
        "polars": lambda frame: pl.from_pandas(frame),
        "pyarrow": lambda frame: pa.Table.from_pandas(frame),
    }[kind]  # fmt: skip
    weight = np.r_[np.zeros(junk), np.ones(n)]
    options = {"effort": "quick", "families": ("linear",), "random_state": 0}
    alone = MosaicClassifier(**options).fit(as_kind(X), y)
    weighted = MosaicClassifier(**options).fit(as_kind(both), np.r_[1 - np.resize(y, junk), y], sample_weight=weight)
    by_class = MosaicClassifier(**options, class_weight={2: 0}).fit(as_kind(both), np.r_[np.full(junk, 2), y])
    values = MosaicRegressor(**options).fit(as_kind(both), np.r_[np.full(junk, 1e6), y], sample_weight=weight)
    assert_array_equal(by_class.classes_, [0, 1])
    for model in (weighted, by_class, values):
        fills = [column.fill for column in model.preparation_.columns_]
        assert_array_equal(np.concatenate(fills), np.concatenate([c.fill for c in alone.preparation_.columns_]))
        assert "v1" not in model.preparation_.columns_[0].features[0][1][0]
    for model in (weighted, values):
        assert model.preparation_.columns_[0].features == alone.preparation_.columns_[0].features
    assert_array_equal(weighted.predict_proba(as_kind(X)), alone.predict_proba(as_kind(X)))
    with pytest.raises(ValueError, match="zero for every row"):
        MosaicClassifier(**options).fit(as_kind(X), y, sample_weight=np.zeros(n))


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "uint64", "bool", "float16", "float32", "longdouble", ">f8", ">i4", "object", "Int64"]
)
def test_means_of_targets_of_all_types(dtype):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"c": [f"u{i}" for i in rng.integers(0, 70, 300)], "z": rng.normal(size=300)})
    y = rng.integers(0, 2, 300)
    typed = pd.array(y, dtype="Int64") if dtype == "Int64" else y.astype(dtype)
    table, expected = (TablePreparation(task="regression", random_state=0).fit_transform(X, t) for t in (typed, y))
    assert_array_equal(table, expected)
    options = {"effort": "quick", "families": ("linear",), "random_state": 0}
    assert_array_equal(
        MosaicRegressor(**options).fit(X, typed).predict(X), MosaicRegressor(**options).fit(X, y).predict(X)
    )


def test_means_of_several_targets(tmp_path):
    rng = np.random.default_rng(0)
    category = rng.integers(0, 70, 600)
    X = pd.DataFrame({"c": [f"u{i}" for i in category], "z": rng.normal(size=600)})
    y = np.stack([np.sin(category), np.cos(category)], axis=1)
    model = MosaicRegressor(effort="quick", families=("linear",), random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.preparation_.get_feature_names_out()[:2].tolist() == ["c_y0", "c_y1"]
    alone = TablePreparation(task="regression", random_state=0).fit(X, y[:, :1])
    (_, (means, *_)), *_ = alone.columns_[0].features
    (_, (first, *_)), *_ = model.preparation_.columns_[0].features
    assert_allclose([first[text] for text in means], list(means.values()))
    model.save(tmp_path / "model.skops")
    assert_array_equal(load(tmp_path / "model.skops").predict(X), model.predict(X))
    one = dict(X.iloc[0])
    assert_allclose(model.predictor()(one), model.predict(X[:1])[0], rtol=1e-5)
    with pytest.raises(ValueError, match="y must hold numbers for regression, got 'u"):
        TablePreparation(task="regression").fit(X, X.c)


@pytest.mark.parametrize("table", ["many categories", "few", "numbers"])
def test_objects_that_are_no_labels(table):
    rng = np.random.default_rng(0)
    b = np.arange(300) % 2 == 0
    X = pd.DataFrame({"z": rng.normal(size=300), "c": rng.integers(0, 70 if table == "many categories" else 3, 300)})
    X = X if table == "numbers" else X.assign(c="u" + X.c.astype(str))
    one, two = Decimal("sNaN"), Decimal(1)
    for y, message in (
        ([("a",) if i else ("b", "c") for i in b], "one label per row"), ([{} for _ in b], "of type dict"),
        (pd.Series([("a",) if i else ("b",) for i in b]), "of type tuple; for classes, pass y.astype"),
        (pd.Series(["a" if i else 1 for i in b], dtype=object), "of type int and str; for classes"),
        (pd.Series([one if i else two for i in b]), "of type Decimal; for classes"),
        (pd.Series([10**400 if i else 1 for i in b], dtype=object), r"of type int; for classes, pass y.astype\(str"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            MosaicClassifier(**QUICK).fit(X, y)
    for value in (10**400, one):
        y = pd.Series([value if i == 0 else float(i) for i in range(300)], dtype=object)
        with pytest.raises(ValueError, match="y must hold numbers"):
            MosaicRegressor(effort="quick", families=("linear",)).fit(X, y)
    with pytest.raises(ValueError, match="X must hold numbers that float64 can hold"):
        LinearSVC().fit(np.array([[10**400, 1.0], [1.0, 2.0]], dtype=object), [0, 1])


def test_numbers_that_no_float_holds():
    z = np.random.default_rng(0).normal(size=300)
    huge = pd.Series([10**400 if i % 2 else 1 for i in range(300)], dtype=object)
    with pytest.raises(TableError, match="column 'c' holds an infinite number in row 2"):
        MosaicClassifier(**QUICK).fit(pd.DataFrame({"z": z, "c": huge}), z > 0)
    model = MosaicClassifier(**QUICK, categorical=["c"]).fit(pd.DataFrame({"z": z, "c": huge}), huge > 1)
    assert model.predictor()({"z": 0.0, "c": 10**400}) == model.predict(pd.DataFrame({"z": [0.0], "c": [10**400]}))[0]
    signal = pd.Series([Decimal("sNaN") if i == 0 else Decimal(i) for i in range(300)], dtype=object)
    model = MosaicClassifier(**QUICK).fit(pd.DataFrame({"z": z, "c": signal}), z > 0)
    one = {"z": 1.0, "c": Decimal("sNaN")}
    assert model.predictor()(one) == model.predict(pd.DataFrame([one]))[0]
    numbers = LinearSVC().fit(pd.DataFrame({"z": z, "c": z**2}), z > 0).predictor()
    assert numbers({"z": Decimal("1.5"), "c": np.True_}) == numbers({"z": 1.5, "c": 1.0})
    for value in (10**400, Decimal("sNaN"), 1j):
        with pytest.raises(ValueError, match="column 'z' must be a number"):
            numbers({"z": value, "c": 1.0})


@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_a_category_in_each_row_and_a_class_in_each_row():
    X = pd.DataFrame({"c": [f"u{i % 70}" for i in range(140)], "z": np.arange(140.0)})
    assert MosaicClassifier(effort="quick", families=("linear",)).fit(X, np.arange(140)).classes_.size == 140


def test_batches_of_pyarrow_and_names_that_occur_twice():
    z, c = np.random.default_rng(0).normal(size=300), ["a" if i % 3 else "b" for i in range(300)]
    batch = pa.RecordBatch.from_pydict({"z": z, "c": c})
    model, same = (MosaicClassifier(**QUICK).fit(X, z > 0) for X in (batch, pa.Table.from_batches([batch])))
    assert_array_equal(model.predict_proba(batch), same.predict_proba(batch))
    weight = (np.arange(300) > 5).astype(float)
    assert MosaicClassifier(**QUICK).fit(batch, z > 0, sample_weight=weight).score(batch, z > 0) > 0.9
    for kind in (pa.Table, pa.RecordBatch):
        for values in (pa.array(z), pa.array(c)):
            twice = kind.from_arrays([pa.array(z), values, values], names=["z", "a", "a"])
            with pytest.raises(TableError, match="X has several columns called 'a'"):
                MosaicClassifier(**QUICK).fit(twice, z > 0)


def test_dicts_with_keys_that_are_numbers():
    z, c = np.random.default_rng(0).normal(size=300), ["a" if i % 3 else "b" for i in range(300)]
    predictor = MosaicClassifier(**QUICK).fit(pd.DataFrame({0: z, 1: c}), z > 0).predictor()
    assert predictor({0: 3.0, 1: "a"}) == predictor({"0": 3.0, "1": "a"})
    with pytest.raises(ValueError, match="the row lacks '1'"):
        predictor({0: 3.0})


def test_half_of_a_character_is_refused_by_name(tmp_path):
    z = np.random.default_rng(0).normal(size=300)
    frame = pd.DataFrame({"c": pd.Series(["a\udcff" if v > 0 else "b" for v in z], dtype=object), "z": z})
    for model in (MosaicClassifier(**QUICK).fit(frame, z > 0), LinearSVC().fit(z[:, None], frame.c.to_numpy())):
        model.save(tmp_path / "model.skops")
        for write in (model.to_c, model.to_onnx):
            with pytest.raises(ValueError, match=r"'a\\udcff' holds half of a character.*: rename it"):
                write(tmp_path / "model.c")


def test_tables_that_cannot_be_read(fitted):
    model, frame, y = fitted
    with pytest.raises(TableError, match="X has several columns called 'age', so none of them can be named"):
        MosaicClassifier(**QUICK).fit(pd.concat([frame, frame[["age"]]], axis=1), y)
    with pytest.raises(TypeError, match="X is a lazy frame: pass"):
        model.predict(pl.from_pandas(frame.drop(columns="nothing")).lazy())
    with pytest.raises(TypeError, match="drop must be a list of columns, got 'age'"):
        MosaicClassifier(drop="age", **QUICK).fit(frame, y)
    with pytest.raises(TableError, match="X has no rows"):
        model.predict(frame[:0])
    for empty, what in ((frame[:0], "rows"), (frame[[]], "columns")):
        with pytest.raises(TableError, match=f"X has no {what}"):
            MosaicClassifier(**QUICK).fit(empty, y[: len(empty)])
    with pytest.raises(TableError, match="column 'b' holds an infinite number in row 2"):
        MosaicClassifier(**QUICK).fit(pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, np.inf]}), [0, 1])
    rows = frame[:2].to_dict("records")
    for wrong, remedy in (
        (rows[0], r"dict: .* pandas.DataFrame\(\[X\]\)"),
        (rows, r"dicts: pass pandas.DataFrame\(X\)"),
    ):
        for ask in (model.predict, lambda X: MosaicClassifier(**QUICK).fit(X, y[:2])):
            with pytest.raises(TypeError, match=f"X is a (list of )?{remedy}"):
                ask(wrong)
    with pytest.raises(TableError, match=r"X must have two dimensions, .* for one row, pass frame\[:1\], or a dict"):
        model.predict(frame.iloc[0])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        MosaicClassifier(**QUICK).fit(frame, y[1:])


def test_scikit_learn_cuts_tables_as_it_does_arrays():
    frame, y = mixed_table()
    frame = frame[["age", "color", "when"]].rename(columns={"age": 0})
    search = MosaicClassifier(**(QUICK | {"families": ("linear",)}))
    assert len(cross_val_score(search, frame, y, cv=3, error_score="raise")) == 3
    model = search.fit(frame, y)
    assert permutation_importance(model, frame, y, n_repeats=1).importances_mean.shape == (3,)


@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_frames_asked_for_by_scikit_learn_change_nothing(fitted, output):
    model, frame, y = fitted
    with config_context(transform_output=output):
        assert_array_equal(model.predict(frame), model.predict(frame))
        same = MosaicClassifier(**QUICK).fit(frame, y)
        assert isinstance(same.preparation_.transform(frame[:2]), {"pandas": pd, "polars": pl}[output].DataFrame)
        found = same.predict_proba(frame)
    assert_array_equal(found, model.predict_proba(frame))
    framed = pickle.loads(pickle.dumps(model))
    framed.preparation_.set_output(transform=output)
    assert_array_equal(framed.predict(frame), model.predict(frame))


def test_regions_of_a_pyarrow_table_are_described():
    """The rows that words are found by are taken from the table as it was given."""
    frame = pd.DataFrame(np.random.default_rng(0).standard_normal((200, 2)), columns=["a", "b"]).assign(c="x")
    y, single = frame["a"] * frame["b"] > 0, QUICK | {"families": ("kernel",), "max_tiles": 200, "blend": False}
    models = [MosaicClassifier(**single).fit(X, y) for X in (frame, pa.Table.from_pandas(frame))]
    assert models[0].mosaic_.n_tiles > 1
    assert_array_equal(models[1].regions_["rule"], models[0].regions_["rule"])


def test_a_pickled_predictor_needs_no_pandas(fitted, tmp_path):
    model = fitted[0]
    row = {"age": 30, "color": "red", "flag": True, "when": "2021-01-01", "size": "M", "city": "city 3", "count": 2}
    (tmp_path / "p.pickle").write_bytes(pickle.dumps(model.predictor()))
    code = (
        "import pickle, sys\n"
        f"predictor = pickle.load(open({str(tmp_path / 'p.pickle')!r}, 'rb'))\n"
        f"print(predictor({row!r}))\n"
        "assert not {'sklearn', 'scipy', 'joblib', 'pandas', 'narwhals'} & set(sys.modules)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == str(model.predictor()(row))
