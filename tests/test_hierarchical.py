"""Hierarchical mixture: the tree, its flat case, and pruning level by level."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from svmosaic import HierarchicalMixtureSVC, MixtureSVC
from svmosaic.datasets import make_two_spirals, make_xor


def test_one_level_is_the_flat_mixture():
    X, y = make_two_spirals(400, random_state=0)
    flat = MixtureSVC(8, C=10.0, max_iter=6, random_state=0).fit(X, y)
    tree = HierarchicalMixtureSVC((8,), C=10.0, max_iter=6, random_state=0).fit(X, y)
    assert_allclose(tree.objective_, flat.objective_)
    assert_allclose(tree.decision_function(X), flat.decision_function(X), atol=1e-9)


@pytest.mark.parametrize("branching", [(3, 4), (2, 2, 3)])
def test_tree_has_its_levels(branching):
    X, y = make_two_spirals(600, random_state=0)
    model = HierarchicalMixtureSVC(branching, nu=0.0, C=10.0, max_iter=5, random_state=0).fit(X, y)
    gate = model.mosaic_.gate
    assert model.n_experts_ == np.prod(branching)
    depth = np.zeros(len(gate.parent), dtype=int)
    for a, top in enumerate(gate.parent):
        depth[a] = 1 if top < 0 else depth[top] + 1
    assert_array_equal(np.bincount(depth)[1:], np.cumprod(branching))
    assert_array_equal(depth[gate.leaf], len(branching))
    totals = np.bincount(gate.parent + 1, gate.prior)
    assert_allclose(totals[np.unique(gate.parent + 1)], 1.0)
    assert_allclose(gate.code(X)[1].sum(axis=1), 1.0, atol=1e-5)


def test_prediction_is_the_vote_of_the_leaves():
    X, y = make_xor(300, random_state=0)
    model = HierarchicalMixtureSVC((2, 3), random_state=0).fit(X, y)
    score = X @ model.tile_coef_[:, 0].T + model.intercept_[:, 0]
    vote = np.exp(-np.maximum(0, 1 - score)) - np.exp(-np.maximum(0, 1 + score))
    weight = np.exp(model.mosaic_.gate.log_weights(X))
    assert_allclose(model.decision_function(X), np.sum(weight * vote, axis=1), atol=1e-5)


def test_pruning_acts_at_each_level():
    X, y = make_two_spirals(600, random_state=0)
    counts = []
    for nu in (0.0, 30.0, 10_000.0):
        model = HierarchicalMixtureSVC((3, 4), nu=nu, max_iter=6, random_state=0).fit(X, y)
        gate = model.mosaic_.gate
        counts.append(model.n_experts_)
        inner = np.setdiff1d(np.arange(len(gate.parent)), gate.leaf)
        assert set(inner) == set(gate.parent[gate.parent >= 0])  # no node without children, no child without a node
        assert len(model.tile_coef_) == gate.n_tiles == model.experts_per_iter_[-1]
    assert counts[0] == 12
    assert 1 < counts[1] < 12
    assert counts[2] == 1


def test_learns_the_spirals():
    X, y = make_two_spirals(1000, random_state=0)
    model = HierarchicalMixtureSVC((4, 5), C=10.0, nu=0.0, max_iter=50, random_state=0).fit(X, y)
    assert model.score(X, y) >= 0.95
    assert np.diff(model.objective_).min() >= 0


@pytest.mark.parametrize("branching", [(), "ab", 4, (2, 0), (2, 1.5)])
def test_bad_branching_is_named(branching):
    X, y = make_xor(40, random_state=0)
    with pytest.raises(ValueError, match="branching"):
        HierarchicalMixtureSVC(branching).fit(X, y)
