"""A weighted sum of mosaics is a mosaic."""

from dataclasses import replace

import numpy as np
import pytest
from fused_gates import random_gate
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from svmosaic import ClusteredSVC, LearnedGateSVC, LinearSVC, LocallyLinearSVC, TreeSVC
from svmosaic.explain.contributions import explain
from svmosaic.gates import ScaledGate, SeveralGates, SingleCell
from svmosaic.maps import Scaling, TransformerMap, scaled_first
from svmosaic.model.blending import blend
from svmosaic.model.heads import Classify
from svmosaic.model.mosaic import Mosaic


def mosaic_of(rng, kind, *, n_outputs=2, n_features=5, link="identity", feature_map=None):
    gate = SingleCell() if kind == "single" else random_gate(rng, kind, 4, n_features)
    coef = rng.standard_normal((gate.n_tiles, n_outputs, n_features))
    return Mosaic(gate, coef, rng.standard_normal((gate.n_tiles, n_outputs)), link, feature_map)


def scaling(rng, center=True, n_features=5):
    return Scaling(rng.standard_normal(n_features) if center else None, rng.uniform(0.5, 2.0, n_features))


def parts_of(rng, maps):
    kinds = ("projected", "softmax", "single", "several", "full", "single")
    return [mosaic_of(rng, kind, feature_map=maps()) for kind in kinds]


WEIGHTS = np.array([0.5, 1.0, -0.25, 2.0, 0.0, 0.125])


@pytest.mark.parametrize("maps", ["none", "one", "each"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_scores_are_the_weighted_sum(maps, dtype):
    rng = np.random.default_rng(0)
    shared = scaling(rng)
    make = {"none": lambda: None, "one": lambda: Scaling(shared.center, shared.factor), "each": lambda: scaling(rng)}
    parts = parts_of(rng, make[maps])
    both = blend(parts, WEIGHTS)
    X = rng.standard_normal((40, 5)).astype(dtype)
    expected = sum(w * part.decision_function(X) for w, part in zip(WEIGHTS, parts, strict=True))
    assert_allclose(both.decision_function(X), expected, atol=1e-10 if dtype == np.float64 else 1e-4)
    assert (both.feature_map is None) == (maps != "one")
    assert sum(isinstance(gate, SingleCell) for gate in both.gate.gates) == 1  # three linear ones, added up
    assert not any(isinstance(gate, SeveralGates) for gate in both.gate.gates)
    assert any(isinstance(gate, ScaledGate) and gate.center is not None for gate in both.gate.gates) == (maps == "each")
    assert_array_equal(both.compile().decision_function(X), both.decision_function(X))
    told = explain(both, X[:3], Classify(np.array(["a", "b"])))
    assert_allclose(told.contributions.sum(axis=2) + told.intercept, both.decision_function(X[:3]), atol=1e-4)


def test_sparse_rows_are_scaled_without_a_center():
    rng = np.random.default_rng(1)
    parts = [mosaic_of(rng, kind, feature_map=scaling(rng, center=False)) for kind in ("projected", "softmax")]
    X = sparse.random_array((30, 5), density=0.4, format="csr", rng=rng)
    expected = 0.5 * sum(part.decision_function(X) for part in parts)
    assert_allclose(blend(parts).decision_function(X), expected, atol=1e-10)
    centered = blend([mosaic_of(rng, "softmax", feature_map=scaling(rng)), *parts])
    with pytest.raises(ValueError, match=r"fitted to dense rows and centers them: pass X.toarray\(\)"):
        centered.decision_function(X)


def test_linear_models_add_up_to_one():
    rng = np.random.default_rng(2)
    parts = [mosaic_of(rng, "single", feature_map=scaling(rng)) for _ in range(3)]
    both = blend(parts, [1.0, 2.0, 3.0])
    assert isinstance(both.gate, SingleCell)
    X = rng.standard_normal((20, 5))
    expected = sum(w * part.decision_function(X) for w, part in zip((1, 2, 3), parts, strict=True))
    assert_allclose(both.decision_function(X), expected, atol=1e-10)


def test_votes_are_weighted_after_the_link():
    rng = np.random.default_rng(3)
    parts = [mosaic_of(rng, kind, link="vote") for kind in ("softmax", "single", "single")]
    X = rng.standard_normal((20, 5))
    expected = sum(w * part.decision_function(X) for w, part in zip((1, 2, 3), parts, strict=True))
    assert_allclose(blend(parts, [1, 2, 3]).decision_function(X), expected, atol=1e-10)


def test_what_cannot_be_blended():
    rng = np.random.default_rng(4)
    one = mosaic_of(rng, "softmax")
    with pytest.raises(ValueError, match="at least one mosaic"):
        blend([])
    with pytest.raises(ValueError, match="2 finite numbers"):
        blend([one, one], [1.0])
    with pytest.raises(ValueError, match="same outputs"):
        blend([one, mosaic_of(rng, "softmax", n_outputs=3)])
    with pytest.raises(ValueError, match="same link"):
        blend([one, mosaic_of(rng, "softmax", link="vote")])
    with pytest.raises(ValueError, match="only scalings and pieces can be"):
        blend([one, mosaic_of(rng, "softmax", feature_map=TransformerMap(None, "features"))])
    with pytest.raises(ValueError, match="cannot be blended"):
        blend([mosaic_of(rng, "single", link="vote")] * 2)


def test_regions_are_counted_once_per_gate():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((200, 4))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    models = [ClusteredSVC(n, random_state=0).fit(X, y) for n in (3, 4)] + [LinearSVC(random_state=0).fit(X, y)]
    whole = models[0]
    whole.mosaic_ = blend([model.mosaic_ for model in models])
    regions = whole.summarize_regions(X, y)
    assert_array_equal(regions["gate"], [0, 0, 0, 1, 1, 1, 1, 2])
    assert_array_equal(np.bincount(regions["gate"], regions["rows"]), [200, 200, 200])
    assert_array_equal(regions["rows"][3:7], models[1].regions_["rows"])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_models_with_and_without_curves_add_up(storage):
    rng = np.random.default_rng(6)
    X = rng.standard_normal((300, 5)) * [1, 5, 0.1, 3, 1] + [3, 0, 0, 0, 0]
    X[:, 4] = rng.integers(0, 2, 300)
    if storage is sparse.csr_array:
        X[rng.uniform(size=X.shape) < 0.5] = 0
    y, X = (X[:, 0] * X[:, 1] > X[:, 2]).astype(int) + (X[:, 3] > 2), storage(X)

    def fit(model, center, factor):
        scaling = Scaling(None if sparse.issparse(X) else np.full(5, center), np.full(5, factor))
        model.fit(scaling.scale(X), y)
        return replace(model.mosaic_, feature_map=scaled_first(scaling, model.mosaic_.feature_map))

    common = {"random_state": 0}
    models = [
        LinearSVC(**common), LinearSVC(pieces=8, **common), LocallyLinearSVC(8, pieces=6, **common),
        LearnedGateSVC(6, n_gates=2, n_components=3, max_iter=2, pieces=8, **common),
        LearnedGateSVC(6, n_components=2, max_iter=2, **common), ClusteredSVC(3, **common),
        TreeSVC(3, max_leaves=5, tiles="linear", **common), TreeSVC(3, max_leaves=5, pieces=None, **common),
    ]  # fmt: skip
    parts = [fit(model, 0.3 * k, 1.0 + k) for k, model in enumerate(models)]
    weights = rng.uniform(0.1, 1.0, len(parts))
    both = blend(parts, weights)
    expected = sum(w * part.decision_function(X) for w, part in zip(weights, parts, strict=True))
    assert_allclose(both.decision_function(X), expected, atol=1e-6)
    assert sum(isinstance(gate, SingleCell) for gate in both.gate.gates) == 1
    far = X * 10.0  # straight tiles go on beyond the outermost knot
    expected = sum(w * part.decision_function(far) for w, part in zip(weights, parts, strict=True))
    assert_allclose(both.decision_function(far), expected, rtol=1e-6, atol=1e-5)


def test_curves_of_one_model_have_the_same_knots_whatever_the_scaling():
    rng = np.random.default_rng(7)
    X = rng.standard_normal((200, 3)) * [1, 1e3, 1e-3] + [0, 1e5, 0]
    y = (X[:, 0] > 0).astype(int)
    plain = LinearSVC(pieces=8, random_state=0).fit(X, y).mosaic_
    scaling = Scaling(X.mean(axis=0), 1 / X.std(axis=0))
    scaled = LinearSVC(pieces=8, random_state=0).fit(scaling.scale(X), y).mosaic_
    both = blend([plain, replace(scaled, feature_map=scaled_first(scaling, scaled.feature_map))])
    assert [len(u) for u in both.features.pieces.knots] == [len(u) for u in plain.features.pieces.folded.knots]
