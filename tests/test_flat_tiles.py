"""Straight tiles in a mosaic with curves: packed apart, with one number per column, and scored as the formula says."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import make_classification

from svmosaic import ClusteredSVC, LearnedGateSVC, LinearSVC, TreeSVC, _core
from svmosaic.model.blending import blend


def rows_and_labels(n_classes=3):
    X, y = make_classification(
        300, 6, n_informative=4, n_classes=n_classes, n_clusters_per_class=1, shift=2.0, random_state=0
    )
    X[np.abs(X) < 0.3] = 0.0
    return X, y


def leaves():
    X, y = rows_and_labels()
    return TreeSVC(4, max_leaves=6, pieces=5, random_state=0).fit(X, y).mosaic_


def blended():
    X, y = rows_and_labels()
    parts = [ClusteredSVC(5, random_state=0), LearnedGateSVC(6, max_iter=3, random_state=0)]
    straight = [part.fit(X, y).mosaic_ for part in parts]
    return blend([*straight, LinearSVC(pieces=5, random_state=0).fit(X, y).mosaic_], [0.5, 0.2, 0.3])


def nothing_bends():
    """A mosaic with curves none of whose tiles has one."""
    mosaic = leaves()
    n_inputs = mosaic.features.n_inputs
    return replace(mosaic, coef=np.where(np.arange(mosaic.coef.shape[2]) < n_inputs, mosaic.coef, 0.0))


def by_formula(mosaic, X):
    """Scores by the expanded matrix."""
    tile, weight = mosaic.gate.code(np.ascontiguousarray(X))
    margins = np.einsum("if,kcf->ikc", mosaic.features.expand(X).toarray(), mosaic.over_tiles(mosaic.coef))
    margins += mosaic.intercept
    return np.einsum("ia,iac->ic", weight, margins[np.arange(len(X))[:, None], tile])


@pytest.mark.parametrize("make", [leaves, blended, nothing_bends])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_scores_are_those_of_the_formula(make, dtype):
    mosaic = make()
    X, _ = rows_and_labels()
    X = X.astype(dtype)
    X[0] = 1e3  # beyond the reach of the straight terms
    _, flat = mosaic.split_flat()
    assert len(flat.tiles) >= 10
    tolerance = 1e-9 if dtype == np.float64 else 2e-4
    expected = by_formula(mosaic, X.astype(np.float64))
    scale = np.abs(expected).max()
    scores = mosaic.decision_function(X)
    assert_allclose(scores, expected, atol=tolerance * scale)
    assert_allclose(mosaic.decision_function(sparse.csr_array(X)), expected, atol=tolerance * scale)
    assert_array_equal(mosaic.decision_function(X, n_jobs=2), scores)
    # A row has the same bits alone and in a batch.
    predictor = mosaic.compile()
    assert_array_equal(np.array([predictor.decision_function(row) for row in X[:40]]), scores[:40])
    # The same with codes given.
    assert_allclose(mosaic.score_codes(X, *mosaic.gate.code(X)), scores, atol=tolerance * scale)


def test_both_parts_together_have_all_weights():
    mosaic = leaves()
    bent, flat = mosaic.split_flat()
    assert_array_equal(np.sort(np.concatenate([bent.sloped_tiles, flat.tiles])), mosaic.sloped_tiles)
    assert_array_equal(flat.coef, mosaic.weights_of(flat.tiles)[..., : mosaic.features.n_inputs])
    assert_array_equal(bent.coef, mosaic.weights_of(bent.sloped_tiles))


def test_a_leaf_costs_a_number_per_column():
    mosaic = leaves()
    n_numbers = 8 * (mosaic.n_tiles + mosaic.features.n_features) * 3 * (mosaic.features.n_inputs + 1)
    assert mosaic.n_bytes < n_numbers + mosaic.gate.gates[1].n_tiles * 200
    assert mosaic.coef.nbytes > 4 * mosaic.split_flat()[1].coef.nbytes


@pytest.mark.parametrize("model", [LinearSVC(pieces=5), ClusteredSVC(4, pieces=5)], ids=lambda m: type(m).__name__)
def test_models_without_straight_tiles_stay_as_they_are(model):
    X, y = rows_and_labels()
    mosaic = model.set_params(random_state=0).fit(X, y).mosaic_
    assert mosaic.split_flat() == (mosaic, None)


def test_a_tile_has_weights_in_one_place_only():
    mosaic = leaves()
    (coef, intercept, link, sloped, flat), (arguments, zero_is_zero) = mosaic.packed_tiles()
    with pytest.raises(ValueError, match="a tile has weights of its curves already"):
        _core.ScorerF64(
            mosaic.gate.core(np.float64), coef, intercept, link, 1, _core.PiecesF64(*arguments), zero_is_zero, sloped,
            np.ones((1, *flat[0].shape[1:])), sloped[:1], flat[2],
        )  # fmt: skip
    with pytest.raises(ValueError, match="straight tiles and curves do not belong together"):
        _core.ScorerF64(
            mosaic.gate.core(np.float64), coef, intercept, link, 1, _core.PiecesF64(*arguments), zero_is_zero, sloped,
            flat[0][..., :2].copy(), flat[1], flat[2],
        )  # fmt: skip
