"""Couplings: blocks, coefficients and tiles say the same thing."""

import numpy as np
import pytest
import reference
from numpy.testing import assert_allclose, assert_array_equal

from svmosaic.couplings import Coupling


@pytest.mark.parametrize("n_shared", [0, 1, 3])
@pytest.mark.parametrize("own", [1.0, 0.5])
@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_score_as_the_tiles_do(weighted, own, n_shared):
    """sum_a coef <V[block], x> over blocks equals sum_a weight <W[tile], x> over tiles."""
    rng = np.random.RandomState(n_shared)
    coupling = Coupling(own, rng.standard_normal((4, n_shared)))
    V, x = rng.standard_normal((coupling.n_blocks, 6)), rng.standard_normal((10, 6))
    tile = np.array([rng.choice(4, 2, replace=False) for _ in x], dtype=np.int32)
    weight = rng.uniform(size=tile.shape) if weighted else None
    block, coef = coupling.blocks(tile, weight)
    coef = np.ones(block.shape) if coef is None else coef
    assert block.dtype == np.int32
    by_blocks = np.einsum("ra,raf,rf->r", coef, V[block], x)
    by_tiles = np.einsum("ra,raf,rf->r", np.ones(tile.shape) if weight is None else weight, coupling.tiles(V)[tile], x)
    assert_allclose(by_blocks, by_tiles)
    Z = reference.expand(x, 0.0, tile, weight, own, coupling.shared)
    V_with_bias = np.hstack([V, np.zeros((len(V), 1))])
    assert_allclose(by_blocks, Z @ V_with_bias.ravel())


def test_tiles_are_the_linear_map_of_the_reference():
    rng = np.random.RandomState(0)
    coupling = Coupling(0.3, rng.standard_normal((3, 2)))
    V = rng.standard_normal((5, 4))
    assert_allclose(coupling.tiles(V).ravel(), reference.tile_matrix(0.3, coupling.shared, 4) @ V.ravel())


def test_independent_tiles_pass_codes_through():
    tile = np.array([[0], [2]], dtype=np.int32)
    coupling = Coupling.independent(3)
    block, coef = coupling.blocks(tile, None)
    assert_array_equal(block, tile)
    assert coef is None
    assert (coupling.n_tiles, coupling.n_shared, coupling.n_blocks) == (3, 0, 3)


@pytest.mark.parametrize("global_reg", [0.1, 1.0, 30.0])
def test_global_coupling_is_the_clustered_svm(global_reg):
    """|V|^2 equals lambda |w|^2 + sum |w_l - w|^2, and G = I + 11^T / lambda."""
    rng = np.random.RandomState(1)
    coupling = Coupling.to_global(4, global_reg)
    V = rng.standard_normal((5, 3))
    w, tiles = V[-1] / np.sqrt(global_reg), coupling.tiles(V)
    assert_allclose(np.sum(V**2), global_reg * w @ w + np.sum((tiles - w) ** 2))
    B = reference.tile_matrix(coupling.own, coupling.shared, 1)
    assert_allclose(B @ B.T, np.eye(4) + 1.0 / global_reg)
