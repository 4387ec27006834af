"""Gates made of trees: the leaves of scikit-learn, dense and sparse, and rules that say which rows a leaf holds."""

from typing import get_args

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from svmosaic import _core
from svmosaic.gates import tree_growth
from svmosaic.gates.tree_growth import Growth, grow_trees
from svmosaic.gates.trees import Condition, TreeGate, describe_rule


def rows_of(seed, dtype=np.float64):
    X, y = make_classification(400, 7, n_informative=5, random_state=seed)
    X[np.random.default_rng(seed).random(X.shape) < 0.3] = 0.0
    return X.astype(dtype), y


def forest_of(X, y, n_trees, max_leaves, **options):
    options = {"sample_weight": None, "rng": np.random.RandomState(0)} | options
    return grow_trees(X, y, n_trees=n_trees, max_leaves=max_leaves, min_rows_per_leaf=3, **options)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n_trees", "max_leaves"), [(1, 2), (1, 30), (9, 17)])
def test_leaves_are_those_of_scikit_learn(dtype, n_trees, max_leaves):
    X, y = rows_of(0, np.float32)
    trees = forest_of(X, y, n_trees, max_leaves)
    gate = TreeGate.from_trees(trees, X.shape[1])
    tile, weight = gate.code(X.astype(dtype))
    assert weight is None
    assert tile.shape == (len(X), n_trees) == (len(X), gate.width)
    assert_array_equal(np.unique(tile), np.arange(gate.n_tiles))
    for t, tree in enumerate(trees):
        leaf = tree.apply(X)
        pairs = np.unique(np.column_stack([leaf, tile[:, t]]), axis=0)
        assert len(pairs) == len(np.unique(leaf)) == len(np.unique(tile[:, t]))
        assert_array_equal(np.unique(gate.tree_of_tile[tile[:, t]]), [t])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_and_threads_change_nothing(dtype):
    X, y = rows_of(1, dtype)
    gate = TreeGate.from_trees(forest_of(X, y, 5, 12), X.shape[1])
    expected = gate.code(X)[0]
    assert_array_equal(gate.code(sparse.csr_array(X))[0], expected)
    assert_array_equal(gate.code(X, n_jobs=2)[0], expected)
    for row in (0, 17):
        assert_array_equal(gate.code(X[row : row + 1])[0], expected[row : row + 1])


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("regression", [False, True])
@pytest.mark.parametrize("growth", get_args(Growth))
def test_decimals_are_in_the_same_leaves_in_either_precision(growth, regression, storage):
    """Thresholds between decimals are close to values of the column."""
    rng = np.random.RandomState(0)
    X = (rng.randint(0, 400, (1000, 4)) / 10) * (rng.random_sample((1000, 4)) < 0.9)
    y = np.sin(X[:, 0]) + X[:, 1] * (X[:, 2] > 20)
    y = y if regression else (y > np.median(y)).astype(int)
    trees = forest_of(storage(X), y, 10, 60, growth=growth, regression=regression)
    gate = TreeGate.from_trees(trees, 4)
    assert_array_equal(gate.code(X)[0], gate.code(X.astype(np.float32))[0])
    assert_array_equal(gate.code(X)[0], gate.code(X * (1 - 1e-7))[0])  # rounded once more, by a scaling


def test_values_at_a_threshold_go_left_in_either_precision():
    cut = 0.1  # not a float32 number
    gate = TreeGate(
        np.array([0, -1, -1], dtype=np.int32), np.array([cut, 0, 0]), np.array([1, 0, 1], dtype=np.int32),
        np.zeros(1, dtype=np.int32), 1,
    )  # fmt: skip
    for dtype in (np.float32, np.float64):
        near = np.nextafter(dtype(cut), dtype(1))
        X = np.array([[dtype(cut)], [near], [np.nextafter(dtype(cut), dtype(0))]], dtype=dtype)
        assert_array_equal(gate.code(X)[0][:, 0], (X[:, 0].astype(np.float64) > cut).astype(int))


def test_rules_hold_for_the_rows_of_their_leaf_alone():
    X, y = rows_of(2)
    gate = TreeGate.from_trees(forest_of(X, y, 3, 14), X.shape[1])
    tile, _ = gate.code(X)
    for k, conditions in enumerate(gate.rules()):
        holds = np.ones(len(X), dtype=bool)
        for c in conditions:
            holds &= (X[:, c.feature] > c.lower) & (X[:, c.feature] <= c.upper)
        assert_array_equal(holds, (tile == k).any(axis=1))
        assert len({c.feature for c in conditions}) == len(conditions)


def test_rules_in_words():
    names = ["age", "gain"]
    rule = [Condition(1, 7055.5), Condition(0, 20.0, 45.5)]
    assert describe_rule(rule, names) == "gain > 7,055.5 and 20 < age <= 45.5"
    assert describe_rule([Condition(0, upper=0.5)], names) == "age <= 0.5"
    assert describe_rule([], names) == "all rows"


def test_several_trees_are_grown_on_bootstrap_samples_and_one_on_all_rows():
    X, y = rows_of(3)
    one = forest_of(X, y, 1, 8)[0]
    alone = DecisionTreeClassifier(max_leaf_nodes=8, min_samples_leaf=3, random_state=0).fit(X, y)
    assert one.tree_.node_count == alone.tree_.node_count
    assert one.tree_.n_node_samples[0] == len(X)
    several = forest_of(X, y, 4, 8)
    assert all(tree.tree_.n_node_samples[0] < len(X) for tree in several)
    assert isinstance(several[0], type(RandomForestClassifier().estimator))


def test_trees_that_split_nothing_are_left_out():
    X = np.ones((20, 2))
    y = np.arange(20) % 2
    assert forest_of(X, y, 3, 8) == []
    assert forest_of(*rows_of(0), 1, 1) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"feature": [2, -1, -1]}, "a feature of the rows"),
        ({"left": [0, 0, 1]}, "children must come after"),
        ({"left": [2, 0, 1]}, "children must come after"),
        ({"left": [1, 0, 5]}, "a leaf must name a tile"),
        ({"threshold": [np.nan, 0, 0]}, "must be a number"),
        ({"roots": [1]}, "begin at node 0"),
        ({"roots": []}, "at least one tree"),
    ],
)
def test_the_core_refuses_arrays_that_are_no_trees(change, message):
    arrays = {"feature": [0, -1, -1], "threshold": [0.5, 0, 0], "left": [1, 0, 1], "roots": [0]} | change
    types = {"feature": np.int32, "threshold": np.float64, "left": np.int32, "roots": np.int32}
    with pytest.raises(ValueError, match=message):
        _core.RuleGateF64(*(np.array(arrays[name], dtype=types[name]) for name in types), 2, 2)


@pytest.mark.parametrize("growth", get_args(Growth))
@pytest.mark.parametrize("regression", [False, True])
def test_trees_grow_as_asked_whatever_the_threads(growth, regression):
    X, y = rows_of(2)
    if regression:
        y = X @ np.arange(X.shape[1]) + y
    gates = [
        TreeGate.from_trees(
            forest_of(X, y, 6, 9, growth=growth, regression=regression, n_jobs=n_jobs), X.shape[1]
        )
        for n_jobs in (1, 2)
    ]  # fmt: skip
    tile = gates[0].code(X)[0]
    assert_array_equal(gates[1].code(X)[0], tile)
    assert gates[0].n_trees == 6
    rows_per_leaf = np.bincount(tile.ravel(), minlength=gates[0].n_tiles)
    leaves = np.bincount(gates[0].tree_of_tile)
    assert leaves.min() >= 2
    assert leaves.max() <= 9
    if growth != "forest":  # a forest counts the rows of its bootstrap samples
        assert rows_per_leaf.min() >= 3


@pytest.mark.parametrize("growth", get_args(Growth))
def test_a_time_limit_changes_the_number_of_trees_alone(growth):
    X, y = rows_of(5)
    whole, within, short = (
        TreeGate.from_trees(forest_of(X, y, 20, 6, growth=growth, max_time=max_time), X.shape[1])
        for max_time in (None, 1e3, 0.0)
    )
    assert_array_equal(within.threshold, whole.threshold)
    assert short.n_trees == 8  # those grown before the first look at the clock
    assert_array_equal(short.threshold, whole.threshold[: len(short.threshold)])


class Growing:
    """Stands in for an ensemble of scikit-learn: notes the sizes that it is fitted with, on a clock of its own."""

    def __init__(self, seconds_per_tree):
        self.seconds_per_tree, self.now, self.size, self.sizes = seconds_per_tree, 0.0, 0, []

    def set_params(self, warm_start=True, n_estimators=0):
        self.size = n_estimators
        return self

    def fit(self, X, y, sample_weight=None):
        before = self.sizes[-1] if self.sizes else 0
        self.now += self.seconds_per_tree * (self.size - before)
        self.sizes.append(self.size)
        return self


@pytest.mark.parametrize(
    ("seconds_per_tree", "sizes"), [(0.01, [8, 200]), (0.0625, [8, 16, 32, 64, 128, 160]), (2.0, [8])]
)
def test_trees_with_a_time_limit_are_grown_in_few_calls(monkeypatch, seconds_per_tree, sizes):
    model = Growing(seconds_per_tree)
    monkeypatch.setattr(tree_growth, "perf_counter", lambda: model.now)
    tree_growth._grown(model, 200, 10.0, None, None, None)
    assert model.sizes == sizes
