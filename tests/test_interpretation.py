"""Regions in words, importances and effects: what they say holds of the rows."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from svmosaic import (
    ClusteredSVC,
    KernelSVC,
    KMeansSVC,
    LinearSVC,
    LocallyLinearSVC,
    MixtureSVC,
    MosaicClassifier,
    TreeSVC,
)
from svmosaic.explain import describe_regions, effects, importances
from svmosaic.explain.regions import find_regions
from svmosaic.explain.subject import Subject
from svmosaic.explain.words import Describer, OneOf, holds
from svmosaic.gates.trees import Condition


def people(n=600, seed=0):
    """A table whose label depends on text, on numbers in large units, and on nothing else; some fields are missing."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "income": rng.lognormal(10, 0.5, n),
            "town": rng.choice(["Oslo", "Bern", "Rome", "Lima"], n, p=[0.4, 0.3, 0.2, 0.1]),
            "age": rng.integers(18, 80, n).astype(float),
            "noise": rng.standard_normal(n),
        }
    )
    y = np.where((frame["income"] / 2e4 + (frame["town"] == "Bern") + frame["age"] / 50) > 2.6, "yes", "no")
    frame.loc[rng.random(n) < 0.1, "age"] = np.nan
    return frame, y


def pipeline(estimator):
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    steps = make_column_transformer((numbers, ["income", "age", "noise"]), (OneHotEncoder(), ["town"]))
    return make_pipeline(steps, estimator)


MODELS = {
    "linear": LinearSVC(random_state=0),
    "cells": KMeansSVC(5, random_state=0),
    "clustered-pieces": ClusteredSVC(4, pieces=6, random_state=0),
    "local": LocallyLinearSVC(12, n_neighbors=4, tol=1e-2, random_state=0),
    "tree": TreeSVC(1, max_leaves=5, random_state=0),
    "forest": TreeSVC(5, max_leaves=5, tol=1e-2, random_state=0),
}


def test_a_box_is_found():
    rng = np.random.default_rng(0)
    a, b, c = rng.uniform(0, 100, 4000), rng.uniform(-1, 1, 4000), rng.choice(np.array(["x", "y", "z"], object), 4000)
    member = (a > 30) & (a <= 60) & np.isin(c, ["x", "z"])
    rule = Describer([a, b, c]).rule(member)
    interval, texts = rule.conditions
    assert (interval.feature, texts) in ((0, OneOf(2, ("x", "z"))), (0, OneOf(2, ("y",), True)))
    assert interval.lower == pytest.approx(30, abs=7)
    assert interval.upper == pytest.approx(60, abs=7)
    assert rule.covers > 0.85
    assert rule.pure > 0.85


@pytest.mark.parametrize("seed", range(5))
def test_shares_are_those_of_the_rows(seed):
    rng = np.random.default_rng(seed)
    numbers = rng.choice(np.arange(90), 300).astype(str).astype(object)
    columns = [
        np.where(rng.random(300) < 0.2, np.nan, rng.standard_normal(300)), rng.integers(0, 4, 300).astype(float),
        rng.choice(np.array(["a", "b", "(missing)"], object), 300), numbers,
    ]  # fmt: skip
    member = rng.random(300) < 0.3
    rule = Describer(columns).rule(member)
    inside = np.logical_and.reduce([holds(one, columns[one.feature]) for one in rule.conditions])
    assert 1 <= len(rule.conditions) <= 4
    assert rule.covers == pytest.approx((inside & member).sum() / member.sum())
    assert rule.pure == pytest.approx((inside & member).sum() / inside.sum())
    assert Describer(columns).rule(np.ones(300, dtype=bool)).text(list("abcd")) == "all rows"


def test_conditions_in_words():
    names = ["age", "town"]
    assert Condition(0, 35, 55).text(names) == "35 < age <= 55"
    assert OneOf(1, ("Bern",)).text(names) == "town is Bern"
    assert OneOf(1, ("Bern", "Oslo", "Rome"), True).text(names) == "town is not Bern, Oslo or Rome"


@pytest.mark.parametrize("name", MODELS)
def test_rules_hold_of_the_rows_of_the_table(name):
    frame, y = people()
    model = pipeline(MODELS[name]).fit(frame, y)
    subject = Subject(model, frame)
    regions = find_regions(subject)
    assert subject.names == list(frame.columns)
    values = [subject.values(j) for j in range(4)]
    assert_array_equal(values[2], frame["age"])
    for g, rule in enumerate(regions.rules):
        member = regions.region_of_row == g
        inside = np.logical_and.reduce(
            [np.ones(len(frame), dtype=bool), *(holds(one, values[one.feature]) for one in rule.conditions)]
        )
        if regions.exact:  # a missing age fulfills no condition here, but goes to one side of the tree
            there = frame["age"].notna().to_numpy() | ~np.isin(2, [one.feature for one in rule.conditions])
            assert_array_equal(inside[there], member[there])
        assert (
            rule.covers == 1 if regions.exact else rule.covers == pytest.approx((inside & member).sum() / member.sum())
        )
        assert rule.pure == 1 if regions.exact else rule.pure == pytest.approx((inside & member).sum() / inside.sum())
    assert regions.exact == (name == "tree")
    table = describe_regions(model, frame)
    assert table["rows"].sum() == len(frame)
    assert (np.diff(table["rows"]) <= 0).all()


def test_regions_that_predict_alike_are_merged():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (800, 2))
    y = X[:, 1] * np.where(X[:, 0] > 0, 1, -1) > 0  # the cells to the right agree, and those to the left
    centers = np.array([[a, 0.0] for a in (-0.9, -0.6, -0.4, -0.1, 0.1, 0.4, 0.6, 0.9)])
    model = KMeansSVC(8, clusterer=centers, C=10, random_state=0).fit(X, y)
    subject = Subject(model, X)
    regions = find_regions(subject, 2)
    assert [len(tiles) for tiles in regions.tiles] == [4, 4]
    assert regions.n_tiles == 8
    assert_array_equal(np.sort([set(centers[tiles][:, 0] > 0) == {True} for tiles in regions.tiles]), [False, True])
    assert all(rule.pure > 0.95 and rule.conditions[0].feature == 0 for rule in regions.rules)
    assert len(describe_regions(model, X, max_regions=None)) == 8
    assert len(describe_regions(model, X, max_regions=3)) == 3


@pytest.mark.parametrize("name", MODELS)
def test_importance_is_the_spread_of_contributions(name):
    frame, y = people()
    model = pipeline(MODELS[name]).fit(frame, y)
    account = model[-1].explain(model[:-1].transform(frame))
    by_column = {"income": [0], "town": [3, 4, 5, 6], "age": [1], "noise": [2]}
    table = importances(model, frame)
    assert (np.diff(table["importance"]) <= 0).all()
    for column, features in by_column.items():
        part = account.contributions[:, 0, features].sum(axis=1)
        found = table["importance"][list(table["feature"]).index(column)]
        assert found == pytest.approx(np.abs(part - part.mean()).mean())
    assert table["feature"][-1] == "noise" or name in ("local", "forest")


def test_a_rare_column_with_a_large_weight_is_not_important():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal(2000), rng.random(2000) < 0.01])
    y = X[:, 0] + 5 * X[:, 1] + 1.0 * rng.standard_normal(2000) > 0
    model = LinearSVC(C=10, random_state=0).fit(X, y)
    assert abs(model.coef_[0, 1]) > abs(model.coef_[0, 0])
    assert model.regions_["strongest features"][0].startswith("x0 (+")
    assert importances(model, X)["feature"].tolist() == ["x0", "x1"]


@pytest.mark.parametrize("name", ["linear", "cells", "clustered-pieces", "tree"])
def test_effects_are_exact(name):
    frame, y = people()
    model = pipeline(MODELS[name]).fit(frame, y)
    subject = Subject(model, frame)
    found = {effect.name: effect for effect in effects(model, frame)}
    home = np.unique(subject.home, return_inverse=True)[1]
    parts = subject.contributions[:, 0]
    for j, column in enumerate(frame.columns):
        effect, values = found[column], subject.values(j)
        for region in range(home.max() + 1):
            here = (home == region) & (
                np.ones(len(values), bool) if effect.is_text else ~np.isnan(values.astype(float))
            )
            curve = effect.regions[region, 0]
            if effect.is_text:
                at = curve[[effect.points.index(value) for value in values[here]]]
            else:
                at = np.interp(values[here], effect.points, curve)
            # Of the tiles that hard gates choose, the curve is the contribution, but for a constant.
            assert_allclose(np.ptp(parts[here, j] - at), 0, atol=1e-9)
    with pytest.raises(ValueError, match="columns has 'height', which is not a column of X"):
        effects(model, frame, ["height"])


def test_what_cannot_be_read_is_shown_as_features():
    frame, y = people()
    X = frame[["income", "noise"]].to_numpy()
    with_pca = make_pipeline(StandardScaler(), PCA(2), ClusteredSVC(3, random_state=0)).fit(X, y)
    assert "pca" in describe_regions(with_pca, X)["rule"][0]
    mapped = LocallyLinearSVC(4, feature_map=RBFSampler(n_components=9, random_state=0), tol=1e-1, random_state=0)
    assert importances(mapped.fit(X, y), X)["feature"][0].startswith("rbfsampler")
    votes = MixtureSVC(3, max_iter=3, random_state=0).fit(StandardScaler().fit_transform(X), y)
    assert len(importances(votes, X)) == 2


def test_sparse_rows_are_described_as_dense_ones():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 6)) * (rng.random((400, 6)) < 0.5)
    model = KMeansSVC(3, random_state=0).fit(X, X[:, 0] > X[:, 1])
    dense, csr = describe_regions(model, X), describe_regions(model, sparse.csr_array(X))
    for name, column in dense.columns.items():
        assert_array_equal(column, csr[name])


def test_a_summary_has_the_words():
    frame, y = people()
    X = frame[["income", "noise"]].to_numpy()
    model = KMeansSVC(4, random_state=0).fit(X, y)
    table = model.summarize_regions(X, y)
    words = describe_regions(model, X, None)
    assert sorted(table["rule"]) == sorted(words["rule"])
    assert all(rule.count("x0") == 1 for rule in table["rule"])  # the other column hardly matters to distances


@pytest.mark.usefixtures("counted_time")
def test_the_front_door_says_its_regions_in_words():
    rng = np.random.RandomState(0)
    frame = pd.DataFrame({"age": rng.uniform(20, 70, 600).round(), "town": rng.choice(["north", "south"], 600)})
    y = np.where((frame["age"] > 45) == (frame["town"] == "north"), "yes", "no")
    model = MosaicClassifier(None, families=["clustered"], blend=False, random_state=0, n_jobs=1).fit(frame, y)
    table = model.regions_
    assert any("age" in rule or "town" in rule for rule in table["rule"])
    expected = model.summarize_regions(frame, y)
    assert table["rule"].tolist() == expected["rule"].tolist()
    assert np.array_equal(table["covers"], expected["covers"], equal_nan=True)


def test_columns_matter_through_the_gate_if_tiles_are_only_numbers():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 3))
    y = X[:, 0] ** 2 > 0.5  # a bump, of which no slope tells
    for rows in (X, sparse.csr_array(X)):
        model = KernelSVC(n_anchors=64, random_state=0).fit(rows, y)
        table = importances(model, rows)
        assert table["feature"][0] == "x0"
        assert table["importance"][0] > 2 * table["importance"][1]
        effect, *_ = effects(model, rows[:200])
        middle, ends = effect.mean[0, np.abs(effect.points).argmin()], effect.mean[0, [0, -1]]
        assert (ends > middle + 1).all()
        # A mean of scores with the column at a point, relative to the mean over the rows.
        changed = X[:200].copy()
        changed[:, 0] = effect.points[0]
        first = model.decision_function(changed).mean()
        changed[:, 0] = effect.points[-1]
        last = model.decision_function(changed).mean()
        assert effect.mean[0, 0] - effect.mean[0, -1] == pytest.approx(first - last)
        assert np.isfinite(effect.regions).all()
        assert effect.regions.shape[1:] == effect.mean.shape
