"""Boosted trees: rules that are grown one after the other by the core, and the numbers of their leaves."""

from dataclasses import dataclass

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse

from svmosaic import _core
from svmosaic.gates.trees import TreeGate
from svmosaic.rows import evenly

LOSSES = {"squared_error": 0, "log_loss": 1, "softmax": 2}
# A bin is a byte.
MOST_BINS = 256
# Edges of bins hardly move with more rows.
EDGE_ROWS = 200_000
# Columns further from zero than so many times their spread are centered before they are rounded to single precision, in
# which C and ONNX take them.
FAR = 1e5


@dataclass(frozen=True, eq=False)
class BoostedTrees:
    """Boosted trees and what their leaves add.

    Attributes
    ----------
    gate : TreeGate or None
        None if nothing could be split.
    value : ndarray of shape (n_tiles, n_outputs)
        What each leaf adds to the scores: a tree has values for one output.
    start : ndarray of shape (n_outputs,)
        The scores without any tree.
    losses : ndarray of shape (n_rounds,)
        The mean loss of the held-out rows (of all rows, if none was held out) after each round.
    """

    gate: TreeGate | None
    value: np.ndarray
    start: np.ndarray
    losses: np.ndarray


class Bins:
    """Columns cut into at most 256 bins, between values that differ in single precision.

    Columns of two values of which no row has two, such as one-hot columns, share a column of bins.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    n_jobs : int, optional
    """

    def __init__(self, X, n_jobs=None):
        X = X.toarray() if sparse.issparse(X) else np.ascontiguousarray(X)
        some = X[evenly(len(X), EDGE_ROWS)] if len(X) > EDGE_ROWS else X
        mean, spread = some.mean(axis=0, dtype=np.float64), some.std(axis=0, dtype=np.float64)
        center = np.where((np.abs(mean) > FAR * spread) & (spread > 0), mean, 0.0)
        edges = [_edges(some[:, f] - center[f] if center[f] else some[:, f]) + center[f] for f in range(X.shape[1])]
        self.edge = np.concatenate(edges)
        self.start = np.cumsum([0, *map(len, edges)], dtype=np.int32)
        each = self._each(X, n_jobs)
        self.members: list[list[int]] = []  # of each column of bins
        taken = np.zeros(0, dtype=bool)
        for f, n_edges in enumerate(map(len, edges)):
            filled = each[:, f] > 0 if n_edges == 1 else None
            room = len(taken) and len(self.members[-1]) < MOST_BINS - 1
            if filled is not None and room and not (taken & filled).any():
                self.members[-1].append(f)
                taken |= filled
            else:
                self.members.append([f])
                taken = np.zeros(0, dtype=bool) if filled is None else filled
        self.n_bins = np.array(
            [-len(some) - 1 if len(some) > 1 else len(edges[some[0]]) + 1 for some in self.members], dtype=np.int32
        )
        self.rows = self._shared(each)

    def of(self, X, n_jobs=None) -> np.ndarray:
        """The bins of rows, of shape (n_samples, n_columns of bins)."""
        return self._shared(self._each(X.toarray() if sparse.issparse(X) else np.ascontiguousarray(X), n_jobs))

    def _each(self, X, n_jobs):
        found = np.empty(X.shape, dtype=np.uint8)
        _core.bin_rows(X, self.edge, self.start, found, effective_n_jobs(n_jobs))
        return found

    def _shared(self, each):
        if len(self.members) == each.shape[1]:
            return each
        found = np.empty((len(each), len(self.members)), dtype=np.uint8)
        for k, some in enumerate(self.members):
            found[:, k] = each[:, some[0]]
            for b, f in enumerate(some[1:], start=2):
                found[each[:, f] > 0, k] = b
        return found

    def rule(self, column, bin_of) -> tuple[np.ndarray, np.ndarray]:
        """Features and thresholds of splits of columns of bins; a row goes left if its feature is at most that."""
        is_shared = self.n_bins[column] < 0
        first = np.array([some[0] for some in self.members])
        offset = np.cumsum([0, *map(len, self.members)])
        member = np.concatenate([np.asarray(some) for some in self.members])
        feature = np.where(is_shared, member[offset[column] + np.where(is_shared, bin_of - 1, 0)], first[column])
        return feature, self.edge[self.start[feature] + np.where(is_shared, 0, bin_of)]


def _edges(values) -> np.ndarray:
    """Numbers between the values of a column: all of them if they are few, else of bins of about equally many rows."""
    different, count = np.unique(values.astype(np.float32), return_counts=True)
    different = different.astype(np.float64)
    between = (different[:-1] + different[1:]) / 2
    if len(between) < MOST_BINS:
        return between
    wanted = np.arange(1, MOST_BINS) * (len(values) / MOST_BINS)
    return between[np.unique(np.searchsorted(np.cumsum(count)[:-1], wanted).clip(0, len(between) - 1))]


def boost(
    bins, target, sample_weight, *, loss, seed, n_rounds=100, rate=0.1, max_leaves=31, min_rows=20, l2=1.0,
    min_curvature=1e-3, column_share=1.0, row_share=1.0, held_out=None, patience=None, n_jobs=None, stop=lambda: False,
):  # fmt: skip
    """Grow boosted trees.

    Parameters
    ----------
    bins : Bins
    target : ndarray of shape (n_samples, n_outputs)
        Values, labels of 0 and 1, or probabilities.
    sample_weight : ndarray of shape (n_samples,)
    loss : {"squared_error", "log_loss", "softmax"}
        The log-loss of a single output, whose score is the logarithm of the odds, or of several that compete.
    seed : int
    n_rounds : int
        Each adds one tree per output.
    rate : float
        Factor of the steps.
    max_leaves, min_rows : int
        Per tree; per leaf.
    l2, min_curvature : float
        Penalty on the numbers of leaves, and the least sum of second derivatives in a leaf.
    column_share, row_share : float
        Of the columns (at least ten) and rows that each tree is grown on.
    held_out : tuple of (rows, target, sample_weight), optional
        Other rows, as `Bins.of` gives them: the trees end with the round of their lowest loss.
    patience : int, optional
        Rounds without a lower loss after which no more follow.
    n_jobs : int, optional
        Threads; the trees do not depend on it.
    stop : callable
        Asked after each round; True: no more trees.

    Returns
    -------
    BoostedTrees
    """
    rows, n_fitted, weight = bins.rows, len(bins.rows), sample_weight
    if held_out is not None:
        rows, target = np.concatenate([rows, held_out[0]]), np.concatenate([target, held_out[1]])
        weight = np.concatenate([weight, held_out[2]])
    words = np.random.SeedSequence(seed).generate_state(4, np.uint64)
    booster = _core.Booster(
        rows, bins.n_bins, n_fitted, np.ascontiguousarray(target, dtype=np.float64),
        np.ascontiguousarray(weight, dtype=np.float64),
        LOSSES[loss], rate, l2, max_leaves, min_rows, min_curvature, column_share, row_share, words,
    )  # fmt: skip
    n_threads, losses = effective_n_jobs(n_jobs), []
    while len(losses) < n_rounds and not stop():
        losses.append(booster.round(n_threads))
        if patience is not None and len(losses) - 1 - int(np.argmin(losses)) >= patience:
            break
    feature, bin_of, left, roots, output, value, start = booster.trees()
    losses = np.array(losses)
    n_trees = (int(np.argmin(losses)) + 1 if held_out is not None else len(losses)) * target.shape[1]
    end = roots[n_trees] if n_trees < len(roots) else len(feature)
    feature, bin_of, left, roots, output = feature[:end], bin_of[:end], left[:end], roots[:n_trees], output[:n_trees]
    threshold, splits = np.zeros(len(feature)), feature >= 0
    feature[splits], threshold[splits] = bins.rule(feature[splits], bin_of[splits])
    gate = TreeGate(feature, threshold, left, roots, len(bins.start) - 1)
    added = np.zeros((gate.n_tiles, target.shape[1]))
    added[np.arange(gate.n_tiles), output[gate.tree_of_tile]] = value[: gate.n_tiles]
    return BoostedTrees(gate if (feature >= 0).any() else None, added, start, losses)
