"""Explanations add up."""

import builtins
import sys

import numpy as np
import pandas as pd
import pytest
from exported import estimators, synthetic, training_set
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.kernel_approximation import RBFSampler

from svmosaic import ClusteredSVC, LinearSVC, LocallyLinearSVC, MixtureSVC
from svmosaic.explain.contributions import explain
from svmosaic.model.heads import Classify

SYNTHETIC = synthetic()
ESTIMATORS = estimators()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_contributions_and_intercept_sum_to_the_score(name, n_classes):
    X, y = training_set(n_classes)
    X = X.astype(np.float64)
    model = ESTIMATORS[name].fit(X, y)
    account = model.explain(X[:20])
    scores = model.decision_function(X[:20]).reshape(20, -1)
    assert_array_equal(account.decision, scores)
    assert_allclose(account.votes.sum(axis=1), scores, atol=1e-10)
    # With several gates or trees a row counts once for each.
    n_parts = len(np.unique(model.regions_.columns.get("gate", [0])))
    assert model.regions_["rows"].sum() == 300 * n_parts
    if account.link != "identity":
        return
    assert_allclose(account.contributions.sum(axis=2) + account.intercept, scores, atol=1e-10)
    frame = account.to_frame(top=2)
    sums = frame.groupby(["row", "output"], sort=False)["contribution"].sum().to_numpy()
    assert_allclose(sums, scores.ravel(), atol=1e-10)
    assert len(frame) == scores.size * 4  # two features, the others, the intercept


@pytest.mark.parametrize("name", [name for name in SYNTHETIC if "vote" in name])
def test_votes_sum_to_the_score_and_contributions_to_margins(name):
    mosaic, classes = SYNTHETIC[name].mosaic_, SYNTHETIC[name].classes_
    X = np.random.default_rng(0).standard_normal((15, 4))
    account = explain(mosaic, X, Classify(classes))
    assert_allclose(account.votes.sum(axis=1), mosaic.decision_function(X), atol=1e-12)
    tiles = account.tiles().to_frame()
    sums = tiles.groupby(["row", "output"], sort=False)["vote"].sum()
    for (row, output), total in sums.items():
        assert total == pytest.approx(account.decision[row, account.output_names.index(output)])
    lines = account.features(top=1).to_frame()
    margins = lines.groupby(["row", "output", "tile"])["contribution"].sum()
    for (row, output, tile), margin in margins.items():
        line = tiles[(tiles["row"] == row) & (tiles["output"] == output) & (tiles["tile"] == tile)]
        assert margin == pytest.approx(line["margin"].item())
    with pytest.raises(AttributeError, match="not sums over features: use votes instead of contributions"):
        _ = account.contributions


def test_names_sparse_rows_and_feature_maps():
    X, y = training_set(2)
    frame = pd.DataFrame(X, columns=[f"height {i}" for i in range(X.shape[1])])
    model = ClusteredSVC(3, tol=1e-2, random_state=0).fit(frame, y)
    table = model.explain(frame[:2]).features(top=1)
    assert set(table["feature"]) <= {*frame.columns, "(others)", "(intercept)"}
    assert "height" in model.regions_["strongest features"][0]
    model.fit(X, y)
    dense, csr = model.explain(X[:5]), model.explain(sparse.csr_array(X[:5]))
    assert_allclose(dense.contributions, csr.contributions)
    mapped = LocallyLinearSVC(5, feature_map=RBFSampler(n_components=9, random_state=0), tol=1e-2, random_state=0)
    account = mapped.fit(X, y).explain(X[:5])
    assert_allclose(account.contributions.sum(axis=2) + account.intercept, account.decision, atol=1e-5)
    assert account.feature_names[0] == "rbfsampler0"


@pytest.mark.parametrize("calibration", [None, "sigmoid"])
def test_regions_count_every_row_once(calibration):
    X, y = training_set(3)
    model = ClusteredSVC(4, tol=1e-2, calibration=calibration, random_state=0).fit(X, y)
    regions = model.regions_.to_frame()
    assert regions["rows"].sum() == len(X)
    home = model.mosaic_.gate.code(X)[0][:, 0]
    right = model.predict(X) == y
    for k in range(4):
        assert regions["rows"][k] == (home == k).sum()
        assert regions["accuracy"][k] == pytest.approx(right[home == k].mean())
        for c in model.classes_:
            assert regions[f"share of {c}"][k] == pytest.approx((y[home == k] == c).mean())
        # Ranked by how much contributions vary among the rows of the region, not by the weights.
        parts = model.mosaic_.coef[k] * X[home == k][:, None].astype(float)
        importance = np.abs(parts - parts.mean(axis=0)).mean(axis=(0, 1))
        assert regions["strongest features"][k].startswith(f"x{importance.argmax()} ({importance.max():.3g})")
    again = model.summarize_regions(X, y)
    for name, column in model.regions_.columns.items():
        assert_array_equal(again[name], column)
    half = model.summarize_regions(X[:100], y[:100])
    assert half["rows"].sum() == 100
    with pytest.raises(ValueError, match=r"does not know: .*'dog'"):
        model.summarize_regions(X[:1], ["dog"])


def test_soft_codes_count_for_the_largest_weight():
    X, y = training_set(2)
    model = LocallyLinearSVC(6, n_neighbors=6, tol=1e-2, random_state=0).fit(X, y)
    distance = ((X[:, None] - model.anchors_) ** 2).sum(axis=2)
    assert_array_equal(model.regions_["rows"], np.bincount(distance.argmin(axis=1), minlength=len(model.anchors_)))


def test_without_pandas_a_dict_of_columns(monkeypatch):
    X, y = training_set(2)
    regions = LinearSVC(random_state=0).fit(X, y).regions_
    real = builtins.__import__

    def no_pandas(name, *arguments):
        if name == "pandas":
            raise ImportError(name)
        return real(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", no_pandas)
    columns = regions.to_frame()
    assert columns["rows"].tolist() == [len(X)]
    assert repr(regions).startswith("Table of 1 rows: tile, rows, majority")
    with pytest.raises(AttributeError, match="fit it first"):
        _ = LinearSVC().regions_


@pytest.mark.parametrize("n_classes", [2, 3])
def test_plots_of_shap_take_the_contributions(n_classes, monkeypatch):
    shap = pytest.importorskip("shap")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    X, y = training_set(n_classes)
    X = X.astype(np.float64)
    model = ClusteredSVC(3, tol=1e-2, random_state=0).fit(X, y)
    account = model.explain(X[:30])
    found = account.to_shap()
    assert isinstance(found, shap.Explanation)
    scores = model.decision_function(X[:30])
    assert_allclose(found.values.sum(axis=1) + found.base_values, scores, atol=1e-9)
    assert_array_equal(found.data, X[:30])
    assert list(found.feature_names) == account.feature_names
    one = found if n_classes == 2 else found[:, :, 1]
    monkeypatch.setattr(pyplot, "show", lambda: None)
    shap.plots.waterfall(one[0], show=False)
    shap.plots.bar(one, show=False)
    shap.plots.beeswarm(one, show=False)
    pyplot.close("all")
    with pytest.raises(AttributeError, match="not sums over features"):
        MixtureSVC(3, max_iter=2, random_state=0).fit(X, y).explain(X[:2]).to_shap()


def test_without_shap_the_package_is_named(monkeypatch):
    X, y = training_set(2)
    account = LinearSVC(random_state=0).fit(X, y).explain(X[:2])
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(ImportError, match="needs the package shap: pip install shap"):
        account.to_shap()
