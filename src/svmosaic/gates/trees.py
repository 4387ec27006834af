"""Regions that are rules: the leaves of axis-aligned decision trees."""

from dataclasses import dataclass

import numpy as np

from svmosaic.gates.protocol import PackedGate


@dataclass(frozen=True)
class Condition:
    """lower < feature <= upper; an infinite end is no condition.

    Attributes
    ----------
    feature : int
    lower, upper : float
    """

    feature: int
    lower: float = -np.inf
    upper: float = np.inf

    def text(self, names) -> str:
        """The condition in words, with the name of its column."""
        name = names[self.feature]
        if np.isinf(self.lower):
            return f"{name} <= {_number(self.upper)}"
        if np.isinf(self.upper):
            return f"{name} > {_number(self.lower)}"
        return f"{_number(self.lower)} < {name} <= {_number(self.upper)}"


def _number(value) -> str:
    is_year_like = abs(value) < 10_000 and float(value).is_integer()
    return f"{value:.6g}" if is_year_like else f"{value:,.6g}"


@dataclass(frozen=True, eq=False)
class TreeGate(PackedGate):
    """One leaf per tree and row, each a tile of weight one.

    A row goes to the left child of a node if its feature is at most the threshold, else to the right child, which
    stands after the left one. Children come after their parent, inside their tree. A leaf has the feature -1, and names
    its tile where other nodes name their left child.

    Attributes
    ----------
    feature, left : ndarray of int32, shape (n_nodes,)
    threshold : ndarray of float64, shape (n_nodes,)
    roots : ndarray of int32, shape (n_trees,)
        Where each tree begins; the first one at node 0.
    n_features : int

    See Also
    --------
    Gate : The interface of a gate.
    """

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    roots: np.ndarray
    n_features: int

    @classmethod
    def from_trees(cls, trees, n_features) -> "TreeGate":
        """The gate of fitted trees of scikit-learn.

        Parameters
        ----------
        trees : sequence of fitted decision trees (anything with scikit-learn's `tree_`)
        n_features : int
        """
        trees = [tree.tree_ for tree in trees]
        first = np.cumsum([0, *(len(tree.feature) for tree in trees)])
        feature, threshold, left, right = (
            np.concatenate([getattr(tree, name) for tree in trees])
            for name in ("feature", "threshold", "children_left", "children_right")
        )
        is_leaf = left < 0
        children = np.where(is_leaf, -1, np.stack([left, right]) + np.repeat(first[:-1], np.diff(first)))
        levels = _levels(first[:-1], children)
        # Tree after tree, level after level, so that siblings stand side by side.
        nodes = np.concatenate(levels)
        nodes = nodes[np.argsort(np.searchsorted(first, nodes, side="right"), kind="stable")]
        place = np.empty_like(nodes)
        place[nodes] = np.arange(len(nodes))
        left = np.where(is_leaf, _tiles_from_left(levels, children), place[children[0]])
        feature, threshold = np.where(is_leaf, -1, feature), np.where(is_leaf, 0.0, threshold)
        return cls(
            feature[nodes].astype(np.int32), threshold[nodes].astype(np.float64), left[nodes].astype(np.int32),
            first[:-1].astype(np.int32), int(n_features),
        )  # fmt: skip

    @property
    def n_trees(self) -> int:
        return len(self.roots)

    @property
    def n_tiles(self) -> int:
        return int((self.feature < 0).sum())

    @property
    def width(self) -> int:
        return self.n_trees

    @property
    def n_choices(self) -> int:
        """The number of groups of tiles (trees), of each of which a row belongs to exactly one tile."""
        return self.n_trees

    @property
    def tree_of_tile(self):
        """The tree of each tile."""
        leaves = np.flatnonzero(self.feature < 0)
        trees = np.searchsorted(self.roots, leaves, side="right") - 1
        return trees[np.argsort(self.left[leaves], kind="stable")]

    def code(self, X, n_jobs=None):
        """Tiles of each row, of shape (n_samples, n_trees), and None for weights of one."""
        return super().code(X, n_jobs)[0], None

    def moves(self, value, rows):
        """How far the rows of each split are from its mean value once they are on its sides, summed over them.

        Parameters
        ----------
        value : ndarray of shape (n_tiles, n_outputs)
        rows : ndarray of shape (n_tiles,)
            How many each tile has.

        Returns
        -------
        ndarray of shape (n_splits,)
            The mean over the outputs, in the order of the nodes.
        """
        is_leaf, levels = self.feature < 0, [self.roots]
        while len(levels[-1]):
            splits = levels[-1][~is_leaf[levels[-1]]]
            levels.append(np.concatenate([self.left[splits], self.left[splits] + 1]))
        count = np.where(is_leaf, rows[np.where(is_leaf, self.left, 0)], 0).astype(np.float64)
        total = count[:, None] * value[np.where(is_leaf, self.left, 0)]
        for level in reversed(levels):
            splits = level[~is_leaf[level]]
            for child in (self.left[splits], self.left[splits] + 1):
                count[splits] += count[child]
                total[splits] += total[child]
        mean, splits = total / np.maximum(count, 1e-300)[:, None], np.flatnonzero(~is_leaf)
        children = (self.left[splits], self.left[splits] + 1)
        return sum(count[child] * np.abs(mean[child] - mean[splits]).mean(axis=1) for child in children)

    def core_arguments(self):
        """The name of the gate's class in the core, and the arguments of its constructor."""
        return "RuleGate", self.feature, self.threshold, self.left, self.roots, self.n_tiles, self.n_features

    def rules(self) -> list[list[Condition]]:
        """The conditions of each tile, in the order of the features' first use on the way down; exact."""
        found: list[list[Condition]] = [[] for _ in range(self.n_tiles)]
        for root in self.roots:
            stack: list[tuple[int, dict[int, Condition]]] = [(int(root), {})]
            while stack:
                node, known = stack.pop()
                f = int(self.feature[node])
                if f < 0:
                    found[self.left[node]] = list(known.values())
                    continue
                before, cut = known.get(f, Condition(f)), float(self.threshold[node])
                child = int(self.left[node])
                stack.append((child, known | {f: Condition(f, before.lower, min(before.upper, cut))}))
                stack.append((child + 1, known | {f: Condition(f, max(before.lower, cut), before.upper)}))
        return found


def _levels(roots, children) -> list[np.ndarray]:
    """The nodes of each level of all trees together, from left to right."""
    levels = [roots]
    while len(levels[-1]):
        inner = levels[-1][children[0, levels[-1]] >= 0]
        levels.append(children[:, inner].T.ravel())
    return levels[:-1]


def _tiles_from_left(levels, children) -> np.ndarray:
    """Numbers of the leaves as one reads drawn trees; those of other nodes are their first leaf's."""
    leaves = np.ones(children.shape[1], dtype=np.int64)
    inner = [level[children[0, level] >= 0] for level in levels]
    for nodes in reversed(inner):
        leaves[nodes] = leaves[children[0, nodes]] + leaves[children[1, nodes]]
    tile = np.empty_like(leaves)
    tile[levels[0]] = np.cumsum(leaves[levels[0]]) - leaves[levels[0]]
    for nodes in inner:
        left, right = children[:, nodes]
        tile[left], tile[right] = tile[nodes], tile[nodes] + leaves[left]
    return tile


def rounded_down(threshold, dtype):
    """Thresholds as rows of this precision meet them: no number of that kind is on another side of them."""
    rounded = threshold.astype(dtype)
    below = np.nextafter(rounded, np.array(-np.inf, dtype=dtype))
    return np.where(rounded > threshold, below, rounded)


def describe_rule(conditions, names) -> str:
    """A rule in words: its conditions joined by "and"; "all rows" if there is none."""
    return " and ".join(condition.text(names) for condition in conditions) or "all rows"
