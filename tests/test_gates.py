"""Gates and the placement of their centers."""

import pickle

import numpy as np
import pytest
import reference
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans, MiniBatchKMeans

from svmosaic.datasets import make_xor
from svmosaic.gates import DistanceGate, SingleCell, place_centers
from svmosaic.gates.placement import sampled_kmeans
from svmosaic.model.mosaic import LINKS, Mosaic


def place(X, n_centers, **options):
    return place_centers(X, n_centers, rng=np.random.RandomState(0), **options)


def test_single_cell():
    tile, weight = SingleCell().code(np.zeros((5, 2)))
    assert_array_equal(tile, np.zeros((5, 1)))
    assert weight is None
    assert SingleCell().n_tiles == 1


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 3, 5000])
def test_nearest_cell_by_the_plain_distance(n, dtype, storage):
    rng = np.random.RandomState(n)
    X, centers = rng.standard_normal((n, 5)).astype(dtype), rng.standard_normal((7, 5)).astype(dtype)
    tile, weight = DistanceGate(centers).code(storage(X))
    assert weight is None
    assert tile.dtype == np.int32
    assert_array_equal(tile[:, 0], reference.nearest(X, centers.astype(float)))


def test_nearest_cell_far_from_the_origin():
    """float32 rows whose norm dwarfs the distances between the centers."""
    rng = np.random.RandomState(0)
    X = (rng.standard_normal((2000, 4)) + 3000.0).astype(np.float32)
    centers = X[:6]
    tile = DistanceGate(centers).code(X)[0][:, 0]
    distance = ((X[:, None].astype(float) - centers.astype(float)) ** 2).sum(axis=2)
    # A row may go to another center only where the two are as good as equally far.
    excess = distance[np.arange(len(X)), tile] - distance.min(axis=1)
    assert excess.max() < 0.02


def test_default_placement_is_kmeans_on_a_sample():
    X, _ = make_xor(3000, random_state=0)
    centers = place(X, 4)
    true = np.array([[-1, 0], [0, -1], [0, 1], [1, 0]])
    assert centers.shape == (4, 2)
    assert_allclose(centers[reference.nearest(true, centers)], true, atol=0.1)
    everything = place(X, 4, rows_per_center=None, max_iter=300)
    assert_allclose(everything[reference.nearest(true, everything)], true, atol=0.05)
    assert not np.array_equal(centers, everything)


def test_placement_keeps_the_type_and_takes_sparse_rows():
    X, _ = make_xor(500, random_state=0)
    assert place(X.astype(np.float32), 4).dtype == np.float32
    assert_allclose(place(sparse.csr_array(X), 4), place(X, 4), atol=1e-9)


def test_weights_move_the_centres():
    X = np.array([[0.0], [1.0], [10.0], [11.0]])
    heavy = np.array([1.0, 3.0, 1.0, 1.0])
    assert_allclose(place(X, 2, sample_weight=heavy, max_iter=100), [[0.75], [10.5]])


def test_no_more_centres_than_distinct_rows():
    X = np.repeat([[0.0, 1.0], [2.0, 3.0], [5.0, 5.0]], 10, axis=0)
    assert_allclose(place(X, 8), np.unique(X, axis=0))
    assert len(place(X[:2], 8)) == 1


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_centres_of_a_clusterer(storage):
    X, _ = make_xor(400, spread=0.1, random_state=0)
    true = np.array([[-1, 0], [0, -1], [0, 1], [1, 0]])
    for clusterer in (KMeans(4, n_init=3), MiniBatchKMeans(4, n_init=3), DBSCAN(eps=0.3)):
        centers = place(storage(X), 99, source=clusterer)
        assert_allclose(centers[reference.nearest(true, centers)], true, atol=0.05)
        assert not hasattr(clusterer, "labels_"), "the user's object must stay unfitted"
    centers = place(X, 99, source=AgglomerativeClustering(4))
    assert_allclose(centers[reference.nearest(true, centers)], true, atol=0.05)


def test_centres_given_outright():
    X, _ = make_xor(100, random_state=0)
    assert_array_equal(place(X, 8, source=[[1, 1], [0, 0], [1, 1]]), [[0.0, 0.0], [1.0, 1.0]])
    with pytest.raises(ValueError, match="clusterer has centers of 3 features, but X has 2"):
        place(X, 8, source=np.ones((2, 3)))
    with pytest.raises(ValueError, match="clusterer"):
        place(X, 8, source=[[np.nan, 1.0]])


def test_clusterers_that_find_nothing():
    X, _ = make_xor(100, random_state=0)
    with pytest.raises(ValueError, match="found no cluster"):
        place(X, 8, source=DBSCAN(eps=1e-9, min_samples=5))

    class Nothing(KMeans):
        def fit(self, X, y=None):
            return self

    with pytest.raises(ValueError, match="neither cluster_centers_ nor labels_"):
        place(X, 8, source=Nothing())


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("storage", [np.ascontiguousarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_mosaic_scores_as_the_reference(dtype, storage, link):
    rng = np.random.RandomState(0)
    X = storage(rng.standard_normal((60, 5)).astype(dtype))

    class SoftGate:
        def code(self, X, n_jobs=None):
            rng = np.random.RandomState(1)
            tile = np.array([rng.choice(4, 2, replace=False) for _ in range(X.shape[0])], dtype=np.int32)
            weight = rng.uniform(size=tile.shape)
            weight[::7] = 0.0
            return tile, weight

    for gate in (DistanceGate(rng.standard_normal((4, 5))), SoftGate()):
        mosaic = Mosaic(gate, rng.standard_normal((4, 3, 5)), rng.standard_normal((4, 3)), link)
        tile, weight = gate.code(X)
        expected = reference.scores(X, tile, weight, mosaic.coef, mosaic.intercept, link)
        assert_allclose(mosaic.decision_function(X), expected, atol=1e-12 if dtype == np.float64 else 1e-5)
        assert_array_equal(mosaic.decision_function(X, n_jobs=2), mosaic.decision_function(X))
    assert mosaic.n_tiles == 4
    assert mosaic.n_bytes == 8 * (60 + 12)


def test_saved_mosaic_holds_each_weight_once():
    rng = np.random.RandomState(0)
    mosaic = Mosaic(DistanceGate(rng.standard_normal((4, 50))), rng.standard_normal((4, 3, 50)), np.zeros((4, 3)))
    X = rng.standard_normal((9, 50))
    before = mosaic.decision_function(X)
    saved = pickle.dumps(mosaic)
    assert len(saved) < mosaic.n_bytes + 1000
    again = pickle.loads(saved)
    assert_array_equal(again.decision_function(X), before)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_kmeans_of_few_rows_is_that_of_scikit_learn(storage, weighted, dtype):
    """Its draws and its Lloyd steps; the first centers are drawn by the core."""
    rng = np.random.RandomState(0)
    X = storage(
        (rng.standard_normal((700, 5)) + 3 * rng.standard_normal((12, 5))[rng.randint(12, size=700)]).astype(dtype)
    )
    weight = rng.uniform(0.5, 2.0, 700) if weighted else None
    ours = sampled_kmeans(X, 12, weight, 256, 10, np.random.RandomState(3))
    theirs = KMeans(12, n_init=1, max_iter=10, random_state=np.random.RandomState(3)).fit(X, sample_weight=weight)
    assert_allclose(ours, theirs.cluster_centers_, rtol=1e-5, atol=1e-5)


def test_kmeans_of_fewer_distinct_rows_than_centers():
    X = np.repeat(np.eye(3), 5, axis=0)
    for n_rows in (1, 15):
        found = place_centers(X[:n_rows], 8, rng=np.random.RandomState(0))
        assert_allclose(found, np.unique(X[:n_rows], axis=0), atol=1e-15)
