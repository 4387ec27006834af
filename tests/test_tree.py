"""TreeSVC: certified on the block problem, equal to simpler models where it should be, and rules that can be read."""

import re

import numpy as np
import pandas as pd
import pytest
import reference
import sklearn.svm
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import svmosaic
from svmosaic import LinearSVC, TreeSVC
from svmosaic.explain.subject import Subject
from svmosaic.explain.words import PartOf, holds, in_columns
from svmosaic.table.table_preparation import TablePreparation

TIGHT = {"tol": 1e-9, "max_iter": 50_000, "random_state": 0}


def rows_of(n_classes=2, seed=0, dtype=np.float64):
    X, y = make_classification(300, 6, n_informative=4, n_classes=n_classes, random_state=seed)
    X[np.random.default_rng(seed).random(X.shape) < 0.2] = 0.0
    return X.astype(dtype), np.array(["no", "yes", "maybe"])[y]


def expanded(model, X):
    """The block problem as one dense matrix: what the global tile sees, then what each leaf sees."""
    mosaic = model.mosaic_
    gate_rows, _ = mosaic.features.rows(X)
    whole = reference.dense(X) if mosaic.feature_map is None else mosaic.feature_map.expand(X).toarray()
    straight = whole[:, : X.shape[1]] if model.tiles == "linear" else whole[:, :0]
    tile, weight = mosaic.gate.code(gate_rows)
    blocks = [weight[:, :1] * reference.augment(whole, 1.0)]
    for k in range(1, mosaic.n_tiles):
        here = np.where(tile[:, 1:] == k, weight[:, 1:], 0.0).sum(axis=1)
        blocks.append(here[:, None] * reference.augment(straight, 1.0))
    return np.hstack(blocks)


def flat_weights(model, output=0):
    """The weights of the blocks in the columns of `expanded`."""
    mosaic = model.mosaic_
    coef, intercept = mosaic.over_tiles(mosaic.coef)[:, output], mosaic.intercept[:, output]
    n_seen = model.n_features_in_ if model.tiles == "linear" else 0
    assert not coef[1:, n_seen:].any()
    leaves = [np.append(w[:n_seen], b) for w, b in zip(coef[1:], intercept[1:], strict=True)]
    return np.concatenate([coef[0], intercept[:1], *leaves])


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("pieces", [None, 6])
@pytest.mark.parametrize("tiles", ["constant", "linear"])
@pytest.mark.parametrize("storage", [np.ascontiguousarray, sparse.csr_array])
def test_the_objective_is_that_of_the_block_problem_and_its_gap_is_small(loss, pieces, tiles, storage):
    X, y = rows_of()
    model = TreeSVC(
        4, max_leaves=5, tiles=tiles, pieces=pieces, loss=loss, C=0.5, global_reg=2.0, min_rows_per_leaf=5, **TIGHT
    ).fit(storage(X), y)
    Z, power = expanded(model, storage(X)), 2 if loss == "squared_hinge" else 1
    v = flat_weights(model)
    assert_allclose(Z @ v, model.decision_function(storage(X)), atol=1e-8)
    sign, cost = np.where(y == "yes", 1, -1), np.full(len(y), 0.5)
    primal = reference.primal(Z, sign, cost, v, power)
    assert_allclose(primal, model.objective_[0], rtol=1e-8)
    assert 0 <= model.dual_gap_[0] <= 1e-9 * cost.sum()
    outside = sklearn.svm.LinearSVC(C=0.5, loss=loss, fit_intercept=False, tol=1e-9, max_iter=1_000_000)
    theirs = outside.fit(Z, sign).coef_[0]
    assert_allclose(primal, reference.primal(Z, sign, cost, theirs, power), rtol=1e-6)


def test_without_leaves_it_is_the_linear_model():
    X, y = rows_of(3)
    alone = TreeSVC(1, max_leaves=1, pieces=5, C=0.3, **TIGHT).fit(X, y)
    linear = LinearSVC(C=0.3, loss="squared_hinge", pieces=5, **TIGHT).fit(X, y)
    assert_allclose(alone.decision_function(X), linear.decision_function(X), atol=1e-4)
    assert alone.mosaic_.n_tiles == 1
    assert len(alone.rules_) == 0


def test_a_very_large_global_reg_leaves_independent_leaves():
    X, y = rows_of()
    model = TreeSVC(1, max_leaves=3, tiles="linear", pieces=None, global_reg=1e14, C=0.2, **TIGHT).fit(X, y)
    home = model.mosaic_.gate.code(X)[0][:, 1]
    for k in range(1, model.mosaic_.n_tiles):
        here = home == k
        if len(np.unique(y[here])) == 2:
            own = LinearSVC(C=0.2, loss="squared_hinge", **TIGHT).fit(X[here], y[here])
            assert_allclose(model.decision_function(X[here]), own.decision_function(X[here]), atol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_threads_storage_and_the_predictor_change_nothing(n_classes):
    X, y = rows_of(n_classes)
    settings = {"max_leaves": 6, "pieces": None, "min_rows_per_leaf": 5, "random_state": 0}
    model = TreeSVC(5, **settings).fit(X, y)
    assert_array_equal(model.decision_function(X), TreeSVC(5, n_jobs=2, **settings).fit(X, y).decision_function(X))
    sparsely = TreeSVC(5, **settings).fit(sparse.csr_array(X), y)
    assert_allclose(model.decision_function(X), sparsely.decision_function(sparse.csr_array(X)), atol=2e-2)
    assert_array_equal(model.predictor().predict(X), model.predict(X))
    assert model.predictor().predict(X[0]) == model.predict(X[:1])[0]


def test_rules_cover_the_rows_of_their_tree_and_are_read_out():
    X, y = rows_of()
    model = TreeSVC(2, max_leaves=4, min_rows_per_leaf=5, random_state=0).fit(X, y)
    rules = model.rules_
    for tree in (0, 1):
        assert rules["rows"][rules["tree"] == tree].sum() == len(X)
    tile, _ = model.mosaic_.gate.code(X)
    for k, rows in zip(rules["tile"], rules["rows"], strict=True):
        assert (tile == k).sum() == rows
    text = model.export_text()
    assert len(text.splitlines()) == len(rules)
    assert all(rule in text for rule in rules["rule"])
    adds = model.explain(X[:3])
    assert_allclose(adds.contributions.sum(axis=2) + adds.intercept, adds.decision, atol=1e-10)


def test_trees_can_be_handed_over():
    X, y = rows_of()
    tree = DecisionTreeClassifier(max_leaf_nodes=4, random_state=0).fit(X, y)
    forest = RandomForestClassifier(3, max_leaf_nodes=4, random_state=0).fit(X, y)
    assert TreeSVC(trees=tree, random_state=0).fit(X, y).mosaic_.n_tiles == 1 + tree.get_n_leaves()
    expected = 1 + sum(t.get_n_leaves() for t in forest.estimators_)
    assert TreeSVC(trees=forest, random_state=0).fit(X, y).mosaic_.n_tiles == expected
    with pytest.raises(ValueError, match="6 features, but X has 5"):
        TreeSVC(trees=tree).fit(X[:, :5], y)
    with pytest.raises(ValueError, match="trees must be a fitted tree"):
        TreeSVC(trees=[DecisionTreeClassifier()]).fit(X, y)


@pytest.mark.parametrize("tiles", ["constant", "linear"])
def test_files(tmp_path, tiles):
    X, y = rows_of(3)
    model = TreeSVC(3, max_leaves=4, tiles=tiles, calibration="temperature", random_state=0).fit(X, y)
    model.save(tmp_path / "model")
    again = svmosaic.load(tmp_path / "model")
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.export_text() == model.export_text()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_trees": 0}, "n_trees must be an integer, at least 1"),
        ({"max_leaves": 0}, "max_leaves must be an integer, at least 1"),
        ({"tiles": "curved"}, "tiles must be one of 'constant', 'linear'"),
        ({"global_reg": 0}, "global_reg must be a finite number, above 0"),
        ({"min_rows_per_leaf": 0}, "min_rows_per_leaf must be an integer, at least 1"),
        ({"solver": "newton"}, "solver must be one of 'auto', 'dual'"),
    ],
)
def test_bad_parameters(parameters, message):
    X, y = rows_of()
    with pytest.raises(ValueError, match=message):
        TreeSVC(**parameters).fit(X, y)


def table_with_everything(n=600):
    """Rows whose label depends on texts, on a number, on whether one is missing, and on the month of a date."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"married": rng.choice(["yes", "no", "once"], n), "age": rng.integers(18, 90, n).astype(float)}
    )
    frame["day"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 700, n), "D")
    frame["gain"] = np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n).round(2))
    label = np.select(
        [frame["married"] == "yes", frame["gain"].isna()], [frame["age"] > 40, frame["day"].dt.month > 6], False
    )
    return frame, np.where(label.astype(bool), "rich", "poor")


def test_rules_in_the_columns_of_a_table():
    frame, y = table_with_everything()
    pipeline = make_pipeline(TablePreparation(), TreeSVC(1, max_leaves=12, random_state=0)).fit(frame, y)
    prepare, model = pipeline[:-1], pipeline[-1]
    found = model.rules(prepare)
    words = " ".join(found["rule"])
    for condition in (
        "married is yes",
        "married is not yes",
        "gain is missing",
        "gain is not missing",
        "month of day > 6",
    ):
        assert condition in words
    assert re.search(r"age > 4\d", words)  # in years, not in standard deviations
    assert_array_equal(found["rows"], model.rules_["rows"])
    assert "married is yes" in model.export_text(prepare)
    assert "married" not in model.export_text()
    # The conditions are those of the leaves, row by row.
    home = model.mosaic_.gate.code(prepare.transform(frame))[0][:, 1]
    subject = Subject(pipeline, frame)
    for k, rule in enumerate(model.mosaic_.gate.gates[1].rules(), start=1):
        fulfills = np.ones(len(y), dtype=bool)
        for condition in in_columns(rule, subject):
            name = frame.columns[condition.feature]
            values = frame[name].dt.month.to_numpy() if name == "day" else frame[name].to_numpy()
            if isinstance(condition, PartOf):
                assert condition.what == "month of"
                condition = condition.interval
            fulfills &= holds(condition, values)
        there = frame["gain"].notna().to_numpy()  # a condition on a number says nothing of missing ones
        assert_array_equal(fulfills[there], (home == k)[there])
