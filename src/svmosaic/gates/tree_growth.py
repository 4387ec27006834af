"""Growing the trees of a gate, by scikit-learn."""

from dataclasses import dataclass
from time import perf_counter
from typing import Literal

import numpy as np
from scipy import sparse

Growth = Literal["forest", "extra"]
# Share of the columns that a split may choose from, where the usual root of them is too few: of trees with random
# thresholds, and of forests for regression, which would ask the same questions first.
SHARE_OF_COLUMNS = {"extra": 0.5, "forest": 1 / 3}
# Trees before the first check of the time limit.
STEP = 8
# scikit-learn grows trees on float32. Columns further from zero than so many times their spread are centered first.
FAR = 1e5
# Share of the largest value of a column that rows in single precision, scaled perhaps, are off by at most.
ROUNDING = 1e-6


def grow_trees(
    X, y, *, n_trees, max_leaves, min_rows_per_leaf, sample_weight, rng, growth="forest", regression=False, n_jobs=None,
    max_time=None,
):  # fmt: skip
    """Trees for a gate.

    Parameters
    ----------
    X : ndarray or CSR matrix
    y : ndarray of shape (n_samples,) or (n_samples, n_targets)
        Labels, or numbers for regression.
    n_trees, max_leaves, min_rows_per_leaf : int
    sample_weight : ndarray of shape (n_samples,) or None
    rng : RandomState
    growth : {"forest", "extra"}
        One tree on all rows, or several on bootstrap samples, as a random forest grows them; or trees on all rows with
        random thresholds.
    regression : bool
    n_jobs : int, optional
        Threads over trees; the trees do not depend on it.
    max_time : float, optional
        Seconds after which no more trees are grown.

    Returns
    -------
    list of trees with scikit-learn's `tree_`
        Without those that found nothing to split: a region of all rows adds nothing to the global tile.
    """
    options = {
        "max_leaf_nodes": max_leaves, "min_samples_leaf": min_rows_per_leaf, "random_state": rng.randint(2**31 - 1)
    }  # fmt: skip
    if max_leaves < 2:
        return []
    deadline = None if max_time is None else perf_counter() + max_time
    center = _far_center(X)
    if center is not None:
        X = X - center
    trees = _independent(X, y, n_trees, sample_weight, growth, regression, options, n_jobs, deadline)
    trees = [tree for tree in trees if tree.tree_.node_count > 1]
    _move_off_values(trees, X)
    if center is None:
        return trees
    # Trees for the rows themselves.
    nodes = [tree.tree_ for tree in trees]
    return [
        _Tree(_Nodes(
            n.children_left, n.children_right, n.feature,
            np.where(n.children_left < 0, n.threshold, n.threshold + center[n.feature]),
        ))
        for n in nodes
    ]  # fmt: skip


def _far_center(X):
    """The means of the columns that are too far from zero for float32, and 0 for the others; None if none is."""
    if sparse.issparse(X) or X.dtype != np.float64:
        return None
    mean, spread = X.mean(axis=0), X.std(axis=0)
    far = np.abs(mean) > FAR * spread
    return np.where(far, mean, 0.0) if (far & (spread > 0)).any() else None


def _move_off_values(trees, X):
    """Move thresholds that all but meet a value of their column halfway to the next one.

    If a column holds decimals, thresholds often are one of its values, or differ from one by rounding alone. Such rows
    would be on another side in single precision, in which C and ONNX take them, than in double precision.
    """
    if not trees:
        return
    nodes = [tree.tree_ for tree in trees]
    feature = np.concatenate([np.where(tree.children_left < 0, -1, tree.feature) for tree in nodes])
    threshold = np.concatenate([tree.threshold for tree in nodes])
    order = np.argsort(feature, kind="stable")
    columns, starts = np.unique(feature[order], return_index=True)
    X = X.tocsc() if sparse.issparse(X) else X
    for f, at in zip(columns, np.split(order, starts[1:]), strict=True):
        if f < 0:  # leaves
            continue
        values = np.append(X[:, [f]].data, 0.0) if sparse.issparse(X) else X[:, f]
        values = np.sort(values.astype(np.float32)).astype(np.float64)
        above = np.searchsorted(values, threshold[at], side="right").clip(1, len(values) - 1)
        lower, upper, cut = values[above - 1], values[above], threshold[at]
        meets = np.minimum(cut - lower, upper - cut) < ROUNDING * np.abs(values[[0, -1]]).max()
        threshold[at] = np.where(meets, (lower + upper) / 2, cut)
    for tree, cuts in zip(nodes, np.split(threshold, np.cumsum([len(tree.threshold) for tree in nodes])), strict=False):
        tree.threshold[:] = cuts  # a view of scikit-learn's own nodes


def _independent(X, y, n_trees, sample_weight, growth, regression, options, n_jobs, deadline):
    from sklearn import ensemble, tree  # here: they take a while to import

    if n_trees == 1 and growth == "forest":
        single = (tree.DecisionTreeRegressor if regression else tree.DecisionTreeClassifier)(**options)
        return [single.fit(X, y, sample_weight=sample_weight)]
    if growth == "extra":
        kind = ensemble.ExtraTreesRegressor if regression else ensemble.ExtraTreesClassifier
    else:
        kind = ensemble.RandomForestRegressor if regression else ensemble.RandomForestClassifier
    forest = kind(n_trees, n_jobs=n_jobs, **options)
    if regression or growth == "extra":
        forest.set_params(max_features=SHARE_OF_COLUMNS[growth])
    return _grown(forest, n_trees, deadline, X, y, sample_weight).estimators_


def _grown(forest, whole, deadline, X, y, sample_weight):
    """The fitted forest; if there is a deadline, some trees first, and the others if there is time for them.

    Each call prepares the rows anew, so there are few calls: two, unless time is short.
    """
    if deadline is None:
        return forest.fit(X, y, sample_weight=sample_weight)
    forest.set_params(warm_start=True)
    began, reached = perf_counter(), min(STEP, whole)
    while True:
        forest.set_params(n_estimators=reached).fit(X, y, sample_weight=sample_weight)
        now = perf_counter()
        more = int(reached * (deadline - now) / max(now - began, 1e-9))  # as many as there is time for
        if reached == whole or more < 1:
            return forest
        reached = whole if more >= whole - reached else reached + min(reached, more)


@dataclass(frozen=True, eq=False)
class _Nodes:
    """The nodes of a tree under scikit-learn's names for them."""

    children_left: np.ndarray
    children_right: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray

    @property
    def node_count(self) -> int:
        return len(self.feature)


@dataclass(frozen=True, eq=False)
class _Tree:
    tree_: _Nodes
