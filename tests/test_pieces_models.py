"""Models with pieces: scoring against plain NumPy, predictors, explanations, curves, files and exports."""

import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import reference
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from test_pieces import columns

from svmosaic import (
    ClusteredSVC,
    HierarchicalMixtureSVC,
    KMeansSVC,
    LearnedGateSVC,
    LinearSVC,
    LocallyLinearSVC,
    MixtureSVC,
    MultiTaskMixtureSVC,
    load,
    outofcore,
)
from svmosaic.estimators._regularization_path import fit_path
from svmosaic.maps import Composed, Scaling

SMALL = {"random_state": 0, "pieces": 6}
LOCAL = SMALL | {"n_anchors": 12, "n_neighbors": 3}
MODELS = {
    "linear": LinearSVC(**SMALL),
    "cells": KMeansSVC(3, **SMALL),
    "many cells": KMeansSVC(40, **SMALL),
    "clustered": ClusteredSVC(3, **SMALL),
    "local": LocallyLinearSVC(**LOCAL),
    "all anchors": LocallyLinearSVC(**SMALL, n_anchors=5, n_neighbors=5),
    "crammer-singer": LocallyLinearSVC(**LOCAL, multi_class="crammer_singer", loss="hinge", tol=1e-2),
}
MIXTURES = {
    "mixture": MixtureSVC(4, **SMALL),
    "posterior": MixtureSVC(4, **SMALL, calibration="posterior"),
    "hierarchy": HierarchicalMixtureSVC((2, 2), **SMALL),
    "tasks": MultiTaskMixtureSVC(3, **SMALL, covariance_floor=0.1),
}
LEARNED = {
    "learned": LearnedGateSVC(8, n_neighbors=3, max_iter=5, n_components=3, **SMALL),
    "two gates": LearnedGateSVC(6, n_gates=2, n_neighbors=2, max_iter=5, n_components=3, **SMALL),
    "no projection": LearnedGateSVC(8, n_neighbors=3, max_iter=5, n_components=None, dropout=0.1, **SMALL),
    "polished": LearnedGateSVC(4, n_neighbors=2, max_iter=5, n_components=2, polish=True, **SMALL),
}
EVERYTHING = MODELS | MIXTURES | LEARNED


def data(seed=0, n_classes=2, n=400):
    X = columns(seed, n)
    score = np.sin(2 * X[:, 0]) + np.where(X[:, 1] > 0, np.log1p(X[:, 1]), -1) + 0.4 * X[:, 3] * X[:, 6]
    return X, np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))


def plain_scores(mosaic, X):
    """Scores by the formulas, from the features of the map as a dense matrix."""
    pieces = mosaic.features.pieces
    Z = reference.expand_pieces(X, pieces.knots, pieces.center, pieces.scale, pieces.reach, pieces.implicit_zeros)
    tile, weight = mosaic.gate.code(X)
    weight = np.ones(tile.shape) if weight is None else weight
    return reference.scores(Z, tile, weight, mosaic.coef, mosaic.intercept, mosaic.link)


@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("name", EVERYTHING)
def test_scores_are_those_of_the_formulas(name, n_classes):
    X, y = data(0, n_classes)
    model = EVERYTHING[name].fit(X, y)
    far = np.vstack([X[:50], 10 * X[50:80], -10 * X[80:100]])
    for rows in (X, far):
        expected = plain_scores(model.mosaic_, rows)
        found = model.mosaic_.decision_function(rows)
        assert_allclose(found, expected, atol=1e-10 * np.abs(expected).max())
        single = rows.astype(np.float32)
        expected = plain_scores(model.mosaic_, single.astype(np.float64))
        agree = np.isclose(model.mosaic_.decision_function(single), expected, atol=2e-4 * np.abs(expected).max())
        assert agree.mean() > 0.98  # a row between two cells may change sides
        # Sparse rows of a model that was fitted to dense ones: zeros that are not stored have values too.
        if name == "tasks":  # dense rows only
            continue
        stored = sparse.csr_array(rows)
        assert_allclose(model.mosaic_.decision_function(stored), found, atol=1e-9 * np.abs(expected).max())
    assert_array_equal(model.mosaic_.decision_function(X, n_jobs=2), model.mosaic_.decision_function(X))


@pytest.mark.parametrize("name", ["linear", "many cells", "local", "mixture", "learned"])
def test_sparse_fits(name):
    X, y = data(1)
    stored = sparse.csr_array(X)
    model = EVERYTHING[name].fit(stored, y)
    assert model.mosaic_.feature_map.implicit_zeros
    expected = plain_scores(model.mosaic_, X)
    assert_allclose(model.mosaic_.decision_function(stored), expected, atol=1e-10 * np.abs(expected).max())
    assert_allclose(model.mosaic_.decision_function(X), expected, atol=1e-10 * np.abs(expected).max())
    parts = [model.explain(rows).tile_contributions for rows in (stored[:9], X[:9])]
    assert_allclose(*parts, atol=1e-12)


@pytest.mark.parametrize("name", EVERYTHING)
def test_threads_do_not_change_the_fit(name):
    X, y = data(2, 3)
    one, two = (clone(EVERYTHING[name]).set_params(n_jobs=n).fit(X, y).mosaic_ for n in (1, 2))
    assert_array_equal(one.coef, two.coef)
    assert_array_equal(one.intercept, two.intercept)
    assert_array_equal(one.feature_map.knot, two.feature_map.knot)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_classes", [2, 7])
@pytest.mark.parametrize("name", ["linear", "cells", "local", "learned", "two gates"])
def test_the_predictor_does_what_the_model_does(name, n_classes, dtype):
    X, y = data(3, n_classes)
    X = X.astype(dtype)
    model = EVERYTHING[name].fit(X, y)
    predictor = model.predictor()
    assert predictor.n_features == X.shape[1]
    assert_array_equal(predictor(X), model.predict(X))
    assert_array_equal(predictor.decision_function(X), model.decision_function(X))
    for i in range(20):
        # Alone, a row's tiles are added up in another order.
        assert_allclose(predictor.decision_function(X[i]), predictor.decision_function(X[i : i + 1])[0], rtol=1e-5)
        assert predictor(X[i]) == model.predict(X[i : i + 1])[0]
    assert_array_equal(predictor.decision_function(np.asfortranarray(X)[5]), predictor.decision_function(X[5]))
    with pytest.raises(ValueError, match="features"):
        predictor(X[0, :3])


def test_a_pickled_predictor_needs_no_scipy():
    X, y = data(4)
    model = KMeansSVC(3, **SMALL).fit(X, y)
    scaled = replace(
        model.mosaic_, feature_map=Composed(Scaling(np.ones(7), np.full(7, 0.5)), model.mosaic_.feature_map)
    )
    predictor = scaled.compile(model.classes_)
    code = (
        "import pickle, sys, numpy as np\n"
        "predictor, X = pickle.load(sys.stdin.buffer)\n"
        "assert not {'sklearn', 'scipy', 'joblib'} & set(sys.modules)\n"
        "print(*predictor(X))"
    )
    sent = pickle.dumps((predictor, X[:20]))
    answer = subprocess.run([sys.executable, "-c", code], input=sent, capture_output=True, check=True).stdout
    assert_array_equal([int(word) for word in answer.split()], predictor(X[:20]))


def test_a_scaling_in_front():
    X, y = data(5)
    center, factor = X.mean(axis=0), 1 / np.maximum(X.std(axis=0), 1)
    scaling = Scaling(center, factor)
    for model in (LinearSVC(**SMALL), KMeansSVC(3, **SMALL), LocallyLinearSVC(**LOCAL)):
        model.fit(scaling.scale(X), y)
        whole = replace(model.mosaic_, feature_map=Composed(scaling, model.mosaic_.feature_map))
        expected = model.mosaic_.decision_function(scaling.scale(X))
        assert_allclose(whole.decision_function(X), expected)
        assert_array_equal(whole.compile(model.classes_).decision_function(X), expected.ravel())
        model.mosaic_ = whole
        explanation = model.explain(X[:10])
        assert_array_equal(explanation.value, X[:10])
        total = explanation.contributions.sum(axis=2) + explanation.intercept
        assert_allclose(total, expected[:10], atol=1e-10)
        curve = model.curves_[0]
        assert curve.knots.min() >= X[:, 0].min() - 10 * X[:, 0].std()
        assert_allclose(curve(X[:10, 0], tile=0), whole.features.contributions(whole.coef[[0] * 10], X[:10])[:, :, 0].T)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("name", MODELS | LEARNED)
def test_explanations_are_exact_and_are_curves(name, n_classes):
    X, y = data(6, n_classes)
    model = EVERYTHING[name].fit(X, y)
    rows = X[:15]
    explanation = model.explain(rows)
    assert explanation.contributions.shape == (15, model.mosaic_.coef.shape[1], X.shape[1])
    total = explanation.contributions.sum(axis=2) + explanation.intercept
    assert_allclose(total, model.mosaic_.decision_function(rows), atol=1e-10, rtol=0)
    curves = model.curves_
    assert len(curves) == X.shape[1]
    for f in range(X.shape[1]):
        at = np.array([[curves[f](rows[i, f : f + 1], tile=k)[:, 0] for k in explanation.tile[i]] for i in range(15)])
        assert_allclose(at, explanation.tile_contributions[..., f], atol=1e-10)
    assert_allclose(curves.share.sum(), 2**0.5 if name == "two gates" else 1.0)
    assert_allclose(curves[0].mean, np.einsum("k,kcm->cm", curves.share, curves[0].values))
    assert_array_equal(np.sort(curves.ranking()["spread"])[::-1], curves.ranking()["spread"])
    table = curves.table()
    assert len(table) == sum(curve.mean.size + curve.values.size for curve in curves)
    assert "x4" not in model.regions_["strongest features"][0]  # the constant column


def test_curves_by_name_and_without_pieces():
    pandas = pytest.importorskip("pandas")
    X, y = data(7)
    frame = pandas.DataFrame(X, columns=list("abcdefg"))
    model = LinearSVC(**SMALL).fit(frame, y)
    assert model.curves_["b"].name == "b"
    assert not model.curves_["b"].straight
    assert model.curves_["d"].straight
    with pytest.raises(KeyError, match="no feature 'z'"):
        model.curves_["z"]
    with pytest.raises(AttributeError, match="pieces=16"):
        _ = LinearSVC().fit(X, y).curves_
    with pytest.raises(AttributeError, match="fit it first"):
        _ = LinearSVC().curves_


def test_a_column_that_bends():
    """What a slope cannot say: the class depends on whether a value is in the middle."""
    rng = np.random.RandomState(0)
    X = rng.uniform(-2, 2, (600, 2))
    y = np.abs(X[:, 0]) < 1
    assert LinearSVC().fit(X, y).score(X, y) < 0.7
    model = LinearSVC(C=10, pieces=8).fit(X, y)
    assert model.score(X, y) > 0.95
    curve = model.curves_[0]
    middle, ends = curve([0.0])[0, 0], curve([-1.9, 1.9])[0]
    assert middle > ends.max() + 1
    assert model.curves_.ranking()["feature"][0] == "x0"


def test_constant_columns_have_no_effect_and_no_warning():
    X, y = data(8)
    X = np.column_stack([X, np.full(len(X), 1e6)])
    model = LinearSVC(**SMALL).fit(X, y)
    moved = X.copy()
    moved[:, -1] = 2e6
    assert_array_equal(model.decision_function(moved), model.decision_function(X))


def test_one_tile_is_the_linear_model():
    X, y = data(9)
    settings = SMALL | {"loss": "squared_hinge", "C": 1.0, "tol": 1e-10, "max_iter": 10_000}
    linear = LinearSVC(**settings).fit(X, y)
    cells = KMeansSVC(1, **settings).fit(X, y)
    local = LocallyLinearSVC(1, n_neighbors=1, **settings).fit(X, y)
    assert_allclose(cells.decision_function(X), linear.decision_function(X), atol=1e-5)
    assert_allclose(local.decision_function(X), linear.decision_function(X), atol=1e-5)


def test_the_gate_is_that_of_the_model_without_pieces():
    X, y = data(10)
    with_pieces = KMeansSVC(4, **SMALL).fit(X, y)
    without = KMeansSVC(4, random_state=0).fit(X, y)
    assert_array_equal(with_pieces.cluster_centers_, without.cluster_centers_)


def test_pieces_and_a_feature_map_are_refused_together():
    from sklearn.preprocessing import StandardScaler

    X, y = data(0)
    with pytest.raises(ValueError, match="pass only one"):
        LocallyLinearSVC(pieces=4, feature_map=StandardScaler()).fit(X, y)


def test_streams_keep_the_knots_of_the_first_batch():
    X, y = data(11, n=600)
    model = LocallyLinearSVC(**LOCAL)
    model.partial_fit(X[:200], y[:200], classes=[0, 1])
    knots = model.mosaic_.feature_map.knot.copy()
    for first in (200, 400):
        model.partial_fit(X[first : first + 200], y[first : first + 200])
    assert_array_equal(model.mosaic_.feature_map.knot, knots)
    assert_allclose(model.decision_function(X), plain_scores(model.mosaic_, X).ravel(), atol=1e-8)
    given = LocallyLinearSVC(**LOCAL | {"pieces": model.mosaic_.feature_map.knots})
    given.partial_fit(X[200:400], y[200:400], classes=[0, 1])
    assert_array_equal(given.mosaic_.feature_map.knot, knots)


@pytest.mark.parametrize("storage", [np.ascontiguousarray, sparse.csr_array])
def test_learned_gates_measure_in_a_projection_of_the_features(storage):
    X, y = data(17)
    model = LEARNED["learned"].fit(storage(X), y)
    learner, pieces = model._learner, model.mosaic_.feature_map
    projection = learner.projection[0, :, :-1].astype(np.float64)
    Z = reference.expand_pieces(X, pieces.knots, pieces.center, pieces.scale, pieces.reach, pieces.implicit_zeros)
    expected = model.mosaic_.gate.inner.code(Z @ projection.T)
    for rows in (X, sparse.csr_array(X)):
        tile, weight = model.mosaic_.gate.code(rows)
        assert_array_equal(tile, expected[0])
        assert_allclose(weight, expected[1], atol=1e-9)
    assert (projection[:, X.shape[1] :] != 0).any()  # the gate has learned to bend


def test_learned_gates_go_on():
    X, y = data(18, n=600)
    model = LearnedGateSVC(8, n_neighbors=3, n_components=3, **SMALL)
    model.partial_fit(X[:300], y[:300], classes=[0, 1])
    knots = model.mosaic_.feature_map.knot.copy()
    model.partial_fit(X[300:], y[300:])
    assert_array_equal(model.mosaic_.feature_map.knot, knots)
    warm = LearnedGateSVC(8, n_neighbors=3, max_iter=3, warm_start=True, early_stopping=False, **SMALL).fit(X, y)
    first = warm.loss_curve_[0]
    assert warm.fit(X, y).loss_curve_[0] < first
    with pytest.raises((ValueError, ImportError, RuntimeError), match=r"device='cpu'|JAX"):
        LearnedGateSVC(8, device="gpu", **SMALL).fit(X, y)


@pytest.mark.parametrize("name", ["linear", "cells", "clustered", "local"])
def test_partitions_give_the_fit_in_memory(name):
    X, y = data(19, 3)
    weight = np.random.RandomState(0).uniform(0.5, 2.0, len(X))
    model = clone(EVERYTHING[name]).set_params(class_weight={0: 2.0}, tol=1e-8, max_iter=10_000)
    alone = clone(model).fit(X, y, sample_weight=weight)
    together = outofcore.fit(model, X, y, sample_weight=weight, chunk_rows=150)
    assert_array_equal(together.mosaic_.feature_map.knot, alone.mosaic_.feature_map.knot)
    assert_allclose(together.mosaic_.feature_map.scale, alone.mosaic_.feature_map.scale)
    expected = alone.mosaic_.decision_function(X)
    assert_allclose(together.mosaic_.decision_function(X), expected, atol=2e-3 * np.abs(expected).max())


def test_calibration_and_path():
    X, y = data(13)
    model = KMeansSVC(2, calibration="sigmoid", **SMALL).fit(X, y)
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    along = list(fit_path(LinearSVC(**SMALL, tol=1e-7, max_iter=10_000), X, y, [{"C": 0.1}, {"C": 1.0}]))
    alone = LinearSVC(**SMALL, tol=1e-7, max_iter=10_000).fit(X, y)
    assert_allclose(along[1].decision_function(X), alone.decision_function(X), atol=0.01)


def test_mixtures_are_explained_margin_by_margin():
    X, y = data(6)
    for name in MIXTURES:
        model = MIXTURES[name].fit(X, y)
        explanation = model.explain(X[:15])
        assert_allclose(explanation.votes.sum(axis=1), model.mosaic_.decision_function(X[:15]), atol=1e-10)


@pytest.mark.parametrize("name", ["mixture", "hierarchy", "tasks"])
def test_the_objective_of_em_does_not_fall(name):
    X, y = data(15, 3)
    model = MIXTURES[name].fit(X, y)
    rises = np.diff(model.objective_)
    same = np.diff(model.experts_per_iter_) == 0
    assert (rises[same] >= -1e-9 * np.abs(model.objective_[0])).all()


def test_one_expert_is_the_linear_model():
    X, y = data(16)
    settings = SMALL | {"intercept_scaling": 1.0}
    mixture = MixtureSVC(1, C=0.5, inner_tol=1e-9, inner_max_iter=100_000, **settings).fit(X, y)
    linear = LinearSVC(C=0.5, tol=1e-9, max_iter=100_000, **settings).fit(X, y)
    assert_allclose(mixture.tile_coef_[0], linear.coef_, atol=1e-4)


@pytest.mark.parametrize("name", EVERYTHING)
def test_files_bring_it_back(name, tmp_path):
    X, y = data(14, 3)
    model = EVERYTHING[name].fit(X, y)
    model.save(tmp_path / "model.skops")
    again = load(tmp_path / "model.skops")
    assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert_array_equal(again.curves_[1].mean, model.curves_[1].mean)
    assert again.get_params()["pieces"] == 6
