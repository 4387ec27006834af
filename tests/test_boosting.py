"""Boosted trees of the core against the plain version of `reference.py`, their rules, their bits and their losses."""

import numpy as np
import pytest
import reference
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import expit, log_softmax
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss, mean_squared_error

from svmosaic import _core
from svmosaic.gates.boosting import Bins, boost

LOSSES = ("squared_error", "log_loss", "softmax")


def problem(loss, n_rows=300, seed=0):
    """Rows with numbers, few values and a category as four one-hot columns, a target per output, and weights."""
    rng = np.random.default_rng(seed)
    category = rng.integers(5, size=n_rows)
    numbers = rng.standard_normal((n_rows, 3)).round(1)
    X = np.column_stack([numbers, rng.integers(3, size=n_rows), np.eye(5)[category][:, :4]])
    value = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 3] + (category == 2) + 0.3 * rng.standard_normal(n_rows)
    if loss == "squared_error":
        target = value[:, None]
    elif loss == "log_loss":
        target = (value > 0.5)[:, None].astype(float)
    else:
        target = np.eye(3)[np.digitize(value, [0.0, 1.0])]
    return X, target, rng.choice([0.5, 1.0, 2.0], n_rows)


def scores(trees, X):
    """Scores of rows by the rules themselves."""
    tiles = trees.gate.code(X)[0]
    return trees.start + trees.value[tiles].sum(axis=1)


def loss_of(loss, scores, target, weight):
    if loss == "squared_error":
        each = ((scores - target) ** 2).sum(axis=1)
    elif loss == "log_loss":
        p = expit(scores)
        each = -(target * np.log(p) + (1 - target) * np.log1p(-p))[:, 0]
    else:
        each = -(target * log_softmax(scores, axis=1)).sum(axis=1)
    return np.average(each, weights=weight)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(3))
def test_trees_are_those_of_the_plain_version(loss, seed):
    X, target, weight = problem(loss, seed=seed)
    options = {"n_rounds": 4, "rate": 0.3, "max_leaves": 6, "min_rows": 5, "l2": 1.0, "min_curvature": 1e-3}
    trees = boost(Bins(X), target, weight, loss=loss, seed=0, **options)
    assert_allclose(
        scores(trees, X), reference.boosted_scores(X, target, weight, loss, **options), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_are_those_of_the_rules_and_fall(loss):
    X, target, weight = problem(loss)
    trees = boost(Bins(X), target, weight, loss=loss, seed=0, n_rounds=30)
    assert (np.diff(trees.losses) < 0).all()
    assert_allclose(trees.losses[-1], loss_of(loss, scores(trees, X), target, weight))


@pytest.mark.parametrize("loss", LOSSES)
def test_held_out_rows_end_the_trees_where_their_loss_is_lowest(loss):
    X, target, weight = problem(loss, 400)
    bins = Bins(X[:200])
    held_out = (bins.of(X[200:]), target[200:], weight[200:])
    trees = boost(bins, target[:200], weight[:200], loss=loss, seed=0, n_rounds=300, held_out=held_out, patience=20)
    best = int(np.argmin(trees.losses))
    assert len(trees.losses) == best + 21 < 300
    assert trees.gate.n_trees == (best + 1) * target.shape[1]
    assert_allclose(trees.losses[best], loss_of(loss, scores(trees, X[200:]), target[200:], weight[200:]))


@pytest.mark.parametrize("n_rows", [300, 30_000])
def test_bits_do_not_depend_on_the_number_of_threads(n_rows):
    X, target, weight = problem("softmax", n_rows)
    options = {"loss": "softmax", "seed": 1, "n_rounds": 3, "column_share": 0.5, "row_share": 0.7}
    one, *others = (boost(Bins(X, n), target, weight, n_jobs=n, **options) for n in (1, 2, 3))
    for other in others:
        assert_array_equal(one.value, other.value)
        assert_array_equal(one.gate.threshold, other.gate.threshold)
        assert_array_equal(one.losses, other.losses)
    assert not np.array_equal(one.value, boost(Bins(X), target, weight, **{**options, "seed": 2}).value)


def test_rows_of_weight_zero_and_copies():
    X, target, weight = problem("squared_error")
    kept, options = weight > 0.6, {"loss": "squared_error", "seed": 0, "n_rounds": 5, "min_rows": 1, "min_curvature": 5}
    gone = boost(Bins(X), target, np.where(kept, 1.0, 0.0), **options)
    assert_allclose(gone.start, target[kept].mean(axis=0))
    some = boost(Bins(X), target, np.full(len(X), 2.0), **options)
    doubled = boost(Bins(np.concatenate([X, X])), np.concatenate([target, target]), np.ones(2 * len(X)), **options)
    assert_allclose(scores(some, X), scores(doubled, X), rtol=1e-4)


def test_probabilities_can_be_targets():
    X, target, weight = problem("softmax")
    soft = 0.8 * target + 0.2 / 3
    trees = boost(Bins(X), soft, weight, loss="softmax", seed=0, n_rounds=200, min_rows=1, min_curvature=0.0, l2=0.0)
    floor = -np.average((soft * np.log(soft)).sum(axis=1), weights=weight)
    assert floor < trees.losses[-1] < 1.02 * floor


def test_columns_share_bins_only_if_no_row_has_two_of_them():
    X, _, _ = problem("squared_error")
    bins = Bins(X)
    assert bins.members == [[0], [1], [2], [3], [4, 5, 6, 7]]
    assert bins.n_bins[-1] == -5
    X[0, 4:6] = 1.0
    assert Bins(X).members == [[0], [1], [2], [3], [4], [5, 6, 7]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rules_hold_for_rows_of_both_precisions_sparse_rows_and_columns_far_from_zero(dtype):
    X, target, weight = problem("log_loss")
    X[:, 1] += 1e7
    X = X.astype(dtype)
    trees = boost(Bins(X), target, weight, loss="log_loss", seed=0, n_rounds=20)
    if dtype == np.float64:
        assert_allclose(trees.losses[-1], loss_of("log_loss", scores(trees, X), target, weight))
    plain = boost(Bins(sparse.csr_array(X)), target, weight, loss="log_loss", seed=0, n_rounds=20)
    assert_array_equal(plain.value, trees.value)
    assert_array_equal(trees.gate.code(X)[0], trees.gate.code(sparse.csr_array(X))[0])


def test_nothing_to_split():
    trees = boost(
        Bins(np.ones((30, 2))), np.arange(30.0)[:, None], np.ones(30), loss="squared_error", seed=0, n_rounds=2
    )
    assert trees.gate is None
    assert_allclose(trees.start, 14.5)


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_of_new_rows_are_about_those_of_scikit_learn(loss):
    X, target, weight = problem(loss, 4000)
    train, test = slice(None, 2000), slice(2000, None)
    trees = boost(Bins(X[train]), target[train], weight[train], loss=loss, seed=0, n_rounds=60, l2=0.0)
    options = {"max_iter": 60, "early_stopping": False}
    found = scores(trees, X[test])
    if loss == "squared_error":
        peer = HistGradientBoostingRegressor(**options).fit(X[train], target[train, 0], sample_weight=weight[train])
        ours, theirs = (mean_squared_error(target[test, 0], y) for y in (found[:, 0], peer.predict(X[test])))
    else:
        label = target.argmax(axis=1) if loss == "softmax" else target[:, 0]
        peer = HistGradientBoostingClassifier(**options).fit(X[train], label[train], sample_weight=weight[train])
        ours = loss_of(loss, found, target[test], np.ones(2000))
        theirs = log_loss(label[test], peer.predict_proba(X[test]))
    assert ours < 1.05 * theirs


def test_bad_arguments_are_refused():
    X, target, weight = problem("squared_error")
    bins = Bins(X)
    words = np.zeros(4, dtype=np.uint64)
    rest = (target, weight, 0, 0.1, 1.0, 31, 20, 1e-3, 1.0, 1.0, words)
    with pytest.raises(ValueError, match="n_fitted must be between 1 and the rows"):
        _core.Booster(bins.rows, bins.n_bins, 301, *rest)
    with pytest.raises(ValueError, match="a bin is out of range"):
        _core.Booster(bins.rows, np.full_like(bins.n_bins, 2), 300, *rest)
    with pytest.raises(ValueError, match="need a weight"):
        _core.Booster(bins.rows, bins.n_bins, 300, target, 0 * weight, *rest[2:])
    with pytest.raises(ValueError, match="out must have the shape of X"):
        _core.bin_rows(X, bins.edge, bins.start, np.empty((300, 2), np.uint8))
