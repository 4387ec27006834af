"""Tiles that are only a number are stored as one, and everything that a mosaic gives works as if they had weights."""

import pickle
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from exported import Fitted
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from test_export_c import Compiled
from test_export_onnx import run

import svmosaic
from svmosaic import BoostedTreesClassifier, ClusteredSVC, KMeansSVC, LinearSVC, LocalCodingSVC, TreeSVC, TreeSVR
from svmosaic.explain import effects, importances
from svmosaic.explain.contributions import explain
from svmosaic.explain.curves import curves_of
from svmosaic.export.c import to_c
from svmosaic.export.javascript import to_javascript
from svmosaic.export.onnx import to_onnx
from svmosaic.gates import ScaledGate, SeveralGates, SingleCell, TreeGate
from svmosaic.maps import Pieces
from svmosaic.model.blending import blend
from svmosaic.model.heads import Classify
from svmosaic.model.mosaic import LINKS, Mosaic


def rows_of(n_classes=3, n_features=12, dtype=np.float64):
    X, y = make_classification(
        600, n_features, n_informative=6, n_classes=n_classes, n_clusters_per_class=1, random_state=0
    )  # fmt: skip
    return X.astype(dtype), y


def forest(**options):
    settings = {"n_trees": 8, "max_leaves": 16, "min_rows_per_leaf": 3, "pieces": None, "tol": 1e-2, "random_state": 0}
    return TreeSVC(tiles="constant", **settings | options)


def mixed(pieces=None):
    """A blend of models with and without weights in their tiles, over shared or different feature maps."""
    X, y = rows_of()
    parts = [
        forest(pieces=pieces).fit(X, y).mosaic_, ClusteredSVC(4, random_state=0).fit(X, y).mosaic_,
        LinearSVC(random_state=0).fit(X, y).mosaic_, LocalCodingSVC(10, random_state=0).fit(X, y).mosaic_,
    ]  # fmt: skip
    return X, y, parts, blend(parts, [0.5, 0.25, 2.0, 1.0])


def with_zeros(mosaic):
    """The same with weights of zero in place of none, as files of earlier versions hold it."""
    return replace(mosaic, coef=mosaic.over_tiles(mosaic.coef), sloped=None)


def moves_of(gate, value, tile, n_features):
    """Mean absolute moves of rows down the trees, one row and split after another."""
    parent = np.full(len(gate.feature), -1)
    for node in np.flatnonzero(gate.feature >= 0):
        parent[gate.left[node] : gate.left[node] + 2] = node
    leaf_of_tile = {int(gate.left[node]): node for node in np.flatnonzero(gate.feature < 0)}
    paths = [[leaf_of_tile[k]] for k in tile.ravel()]
    for path in paths:
        while parent[path[-1]] >= 0:
            path.append(parent[path[-1]])
    inside = {}
    for path, k in zip(paths, tile.ravel(), strict=True):
        for node in path:
            inside.setdefault(node, []).append(value[k])
    mean, found = {node: np.mean(values, axis=0) for node, values in inside.items()}, np.zeros(n_features)
    for path in paths:
        for child, node in pairwise(path):
            found[gate.feature[node]] += np.abs(mean[child] - mean[node]).mean()
    return found / len(tile)


@pytest.mark.parametrize("model", [forest(global_reg=1e24), BoostedTreesClassifier(8, random_state=0)])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_splits_of_trees_of_numbers_have_importances(n_classes, model):
    """Without a global tile, columns count by the splits alone."""
    X, y = rows_of(n_classes)
    model = clone(model).fit(X, y)
    one, trees = model.mosaic_.gate.gates
    assert isinstance(one, SingleCell)
    tile, value = trees.code(X)[0], model.mosaic_.intercept[one.n_tiles :]
    expected = model.mosaic_.gate.factors[1] * moves_of(trees, value, tile, X.shape[1])
    assert_allclose(model.feature_importances_, expected, rtol=1e-6, atol=1e-9)
    assert model.feature_importances_.max() > 0.01


def test_contributions_of_next_to_nothing_are_not_what_importances_and_effects_are_made_of():
    """A global tile that may not learn has weights of 1e-24, whose order says nothing."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((600, 4))
    model = forest(n_trees=20, global_reg=1e24).fit(X, X[:, 0] * X[:, 1] > 0)
    table = importances(model, X)
    assert set(table["feature"][:2]) == {"x0", "x1"}
    assert table["importance"][0] > 0.1
    assert set(np.argsort(-model.feature_importances_)[:2]) == {0, 1}
    assert np.ptp(effects(model, X)[0].regions, axis=-1).max() > 0.1


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("pieces", [None, 5])
@pytest.mark.parametrize("n_outputs", [1, 3, 7])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_are_those_of_weights_of_zero(link, pieces, n_outputs, dtype):
    X, y = rows_of(dtype=dtype)
    rng = np.random.default_rng(0)
    gate = forest().fit(X, y).mosaic_.gate
    features = None if pieces is None else Pieces.fit(X, pieces)
    sloped = np.sort(rng.choice(gate.n_tiles, 20, replace=False)).astype(np.int32)
    coef = rng.standard_normal((20, n_outputs, X.shape[1] if features is None else features.n_features))
    mosaic = Mosaic(gate, coef, rng.standard_normal((gate.n_tiles, n_outputs)), link, features, sloped)
    whole = with_zeros(mosaic)
    assert_array_equal(mosaic.decision_function(X), whole.decision_function(X))
    assert_array_equal(mosaic.compile().decision_function(X), np.squeeze(whole.decision_function(X)))
    assert_array_equal(
        [mosaic.compile().decision_function(x) for x in X[:20]], np.squeeze(whole.decision_function(X[:20]))
    )
    if pieces is None:
        assert_array_equal(mosaic.decision_function(sparse.csr_array(X)), whole.decision_function(sparse.csr_array(X)))
    assert_array_equal(mosaic.score_codes(X, *gate.code(X)), whole.score_codes(X, *gate.code(X)))


@pytest.mark.parametrize("sloped", [[1, 0], [0, 0], [-1, 2], [0, 500]])
def test_the_core_refuses_tiles_that_are_not_there(sloped):
    X, y = rows_of()
    mosaic = forest().fit(X, y).mosaic_
    broken = replace(mosaic, coef=np.ones((2, 3, X.shape[1])), sloped=np.array(sloped, dtype=np.int32))
    with pytest.raises(ValueError, match="sloped must hold increasing tiles"):
        broken.decision_function(X)
    with pytest.raises(ValueError, match="coef must have the weights of every tile"):
        replace(broken, sloped=None).decision_function(X)


def test_a_forest_of_numbers_takes_a_number_per_leaf_and_class(tmp_path):
    X, y = rows_of(n_classes=5, n_features=60)
    model = forest(n_trees=40, min_rows_per_leaf=1).fit(X, y)
    mosaic = model.mosaic_
    assert mosaic.n_tiles > 500
    assert_array_equal(mosaic.sloped, [0])
    assert mosaic.coef.shape == (1, 5, 60)
    assert model.global_coef_.shape == (5, 60)
    # Intercepts and nodes, of which there are two per leaf.
    leaf = 8 * 5 + 2 * (4 + 8 + 4)
    assert mosaic.n_bytes < mosaic.n_tiles * leaf + 10_000
    assert with_zeros(mosaic).n_bytes > 20 * mosaic.n_bytes
    assert model.region_counts_["spread"].shape == (1, 60)
    model.save(tmp_path / "model.svmosaic")
    counts = 8 * (5 + 1)
    assert (tmp_path / "model.svmosaic").stat().st_size < mosaic.n_tiles * (leaf + counts) + 60_000
    assert len(pickle.dumps(model.predictor())) < mosaic.n_tiles * leaf + 20_000
    source, _ = to_c(model, tmp_path / "model.c")
    sizes = [source.stat().st_size, len(to_javascript(model)), len(to_onnx(model).SerializeToString())]
    assert max(sizes) < 200 * mosaic.n_tiles + 60_000  # with their weights, more than 60 * 5 * 4 per tile


@pytest.mark.parametrize("pieces", [None, 5])
@pytest.mark.parametrize("estimator", [TreeSVC, TreeSVR])
def test_everything_works_as_if_leaves_had_weights(pieces, estimator, tmp_path):
    X, y = rows_of()
    model = estimator(
        6, max_leaves=8, tiles="constant", min_rows_per_leaf=3, pieces=pieces, tol=1e-2, random_state=0
    ).fit(X, y)  # fmt: skip
    mosaic = model.mosaic_
    old = pickle.loads(pickle.dumps(model))
    old.mosaic_ = with_zeros(mosaic)
    del vars(old.mosaic_)["sloped"]  # what files of earlier versions do not have
    old.region_counts_ = model.region_counts_ | {"spread": mosaic.over_tiles(model.region_counts_["spread"])}
    old.save(tmp_path / "old.svmosaic")
    old = svmosaic.load(tmp_path / "old.svmosaic")
    model.save(tmp_path / "new.svmosaic")
    new = svmosaic.load(tmp_path / "new.svmosaic")
    assert_array_equal(new.mosaic_.sloped, mosaic.sloped)
    for other in (old, new):
        assert_array_equal(other.predict(X), model.predict(X))
        assert_array_equal(other.explain(X[:5]).tile_contributions, model.explain(X[:5]).tile_contributions)
        assert_array_equal(other.feature_importances_, model.feature_importances_)
        assert_array_equal(other.global_coef_, model.global_coef_)
        assert_array_equal(other.regions_["strongest features"][:1], model.regions_["strongest features"][:1])
        assert other.export_text() == model.export_text()
        for one, theirs in zip(effects(model, X), effects(other, X), strict=True):
            assert_allclose(one.regions, theirs.regions, atol=1e-12)
        if pieces is not None:
            assert_array_equal(other.curves_[0].values, model.curves_[0].values)
            assert_array_equal(other.curves_.table()["value"], model.curves_.table()["value"])
    assert set(model.regions_["strongest features"][1:]) == {""}


@pytest.mark.parametrize("pieces", [None, 5])
def test_a_blend_keeps_numbers_as_numbers(pieces, tmp_path):
    X, _, parts, both = mixed(pieces)
    expected = sum(w * part.decision_function(X) for w, part in zip([0.5, 0.25, 2.0, 1.0], parts, strict=True))
    assert_allclose(both.decision_function(X), expected, atol=1e-10)
    assert len(both.sloped) == 1 + 4  # of linear models, which are added up, and cells
    assert both.coef.shape[0] == 5
    assert both.n_tiles == sum(part.n_tiles for part in parts) - 1
    assert_allclose(with_zeros(both).decision_function(X), both.decision_function(X), atol=0)
    again = blend([both, parts[1]], [1.0, -0.25])
    assert_allclose(again.decision_function(X), expected - 0.25 * parts[1].decision_function(X), atol=1e-10)
    told = explain(both, X[:6], Classify(np.arange(3)))
    assert_allclose(told.contributions.sum(axis=2) + told.intercept, both.decision_function(X[:6]), atol=1e-10)
    if pieces is not None:
        ours, theirs = (curves_of(one, None, ["a", "b", "c"]) for one in (both, with_zeros(both)))
        assert_allclose([c.mean[0, 0] for c in ours], [c.mean[0, 0] for c in theirs], atol=1e-12)
        assert_array_equal(ours[3](X[:4, 3], tile=int(both.sloped[1])), theirs[3](X[:4, 3], tile=int(both.sloped[1])))
        assert not ours[3](X[:4, 3], tile=2).any()
    model = Fitted(both, np.arange(3))
    out = run(to_onnx(model, dtype=np.float64, explain=True), X)
    assert_allclose(out["scores"], both.decision_function(X), atol=1e-9)
    assert_allclose(out["contributions"][:6], told.contributions, atol=1e-9)
    rows = X.astype(np.float32)
    compiled = Compiled(to_c(model, tmp_path / "model.c")[0], 3)
    error = np.abs(compiled.scores(rows) - both.decision_function(rows)).max(axis=1)
    assert (error < 1e-4).mean() > 0.99  # but for rows at the edge of a cell
    contributions, intercept = compiled.explain(rows)
    assert_allclose(contributions.sum(axis=2) + intercept, compiled.scores(rows), rtol=1e-9, atol=1e-9)


def test_deep_trees_are_walked_in_onnx():
    X, y = rows_of()
    model = forest(n_trees=3, max_leaves=200, min_rows_per_leaf=1).fit(X, y)
    gate = model.mosaic_.gate.gates[1]
    assert isinstance(gate, TreeGate)
    exported = to_onnx(model, dtype=np.float64)
    assert_allclose(run(exported, X)["scores"], model.decision_function(X), atol=1e-10)
    assert len(exported.SerializeToString()) < 100 * len(gate.feature)


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_are_added_up_as_their_codes_say(n_outputs, dtype):
    # Trees that are asked by vectors and one that is too large for it, in a gate of its own, behind a scaling, and next
    # to cells whose tiles have weights, or are numbers too.
    X, y = rows_of(n_classes=2, dtype=dtype)
    rng = np.random.default_rng(1)
    trees = [
        forest(n_trees=3, max_leaves=leaves, min_rows_per_leaf=1).fit(X, y).mosaic_.gate.gates[1] for leaves in (9, 120)
    ]
    cells = KMeansSVC(3, random_state=0).fit(X, y).mosaic_.gate
    factor = rng.uniform(0.5, 2.0, X.shape[1])
    gates = (trees[0], cells, SingleCell(), ScaledGate(None, factor, trees[1]), cells)
    gate = SeveralGates(gates, rng.standard_normal(len(gates)))
    first = np.cumsum([0, *(part.n_tiles for part in gates)])
    sloped = np.arange(first[1], first[3], dtype=np.int32)
    shape = (gate.n_tiles, n_outputs)
    mosaic = Mosaic(gate, rng.standard_normal((4, n_outputs, X.shape[1])), rng.standard_normal(shape), sloped=sloped)
    for rows in (X, sparse.csr_array(X)):
        expected = with_zeros(mosaic).score_codes(rows, *gate.code(rows))
        assert_allclose(mosaic.decision_function(rows), expected, rtol=1e-12, atol=1e-12)
    whole = mosaic.decision_function(X)
    predictor = mosaic.compile()
    assert_array_equal([predictor.decision_function(x) for x in X], np.squeeze(whole))
    for n in (2, 31, 33, 97, 161):
        assert_array_equal(mosaic.decision_function(X[:n]), whole[:n])
    assert_array_equal(mosaic.decision_function(X, 2), whole)
    alone = Mosaic(trees[0], np.zeros((0, n_outputs, X.shape[1])), rng.standard_normal((trees[0].n_tiles, n_outputs)),
                   sloped=np.zeros(0, dtype=np.int32))  # fmt: skip
    tile, _ = trees[0].code(X)
    assert_allclose(alone.decision_function(X), alone.intercept[tile].sum(axis=1), rtol=1e-12)
    assert_array_equal(
        [alone.compile().decision_function(x) for x in X[:50]], np.squeeze(alone.decision_function(X[:50]))
    )
