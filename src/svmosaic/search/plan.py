"""What a search tries, in which order, on how many rows: it follows from the table, never from the clock."""

import warnings
from dataclasses import dataclass, replace

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from svmosaic.estimators import (
    BoostedTreesClassifier,
    BoostedTreesRegressor,
    ClusteredSVC,
    ClusteredSVR,
    KernelSVC,
    KernelSVR,
    LearnedGateSVC,
    LearnedGateSVR,
    LinearSVC,
    LinearSVR,
    LocallyLinearSVC,
    LocallyLinearSVR,
    TreeSVC,
    TreeSVR,
)
from svmosaic.maps.ranks import KNOTS

CLASSIFIERS = {
    "linear": LinearSVC, "clustered": ClusteredSVC, "local": LocallyLinearSVC, "kernel": KernelSVC,
    "learned": LearnedGateSVC, "trees": TreeSVC, "boosted": BoostedTreesClassifier,
}  # fmt: skip
REGRESSORS = {
    "linear": LinearSVR, "clustered": ClusteredSVR, "local": LocallyLinearSVR, "kernel": KernelSVR,
    "learned": LearnedGateSVR, "trees": TreeSVR, "boosted": BoostedTreesRegressor,
}  # fmt: skip
# Candidates of the portfolio, and variations of the leaders, that an effort pays for; and the multiplications of a fit
# at most.
EFFORTS = {"quick": (8, 0, 3e10), "good": (24, 12, 3e11), "best": (64, 48, 3e12)}
# Those with one more tile, of all rows.
OF_ALL_ROWS = ("trees", "kernel", "boosted")
# A tile needs some rows, a leaf that is only a number fewer, and a gate more of them to be learned.
ROWS_PER_TILE, ROWS_PER_LEAF, ROWS_TO_LEARN = 10, 2, 100
# Weights of all tiles together, so that wide rows do not fill the memory.
MOST_WEIGHTS = 20_000_000
# Wide sparse rows are left to models without curves and trees.
MOST_SPARSE_COLUMNS = 1000
# Passes of learned gates: so many that this many rows are seen, within the range. Tiles with pieces need half of them.
ROWS_SEEN, EPOCHS = 600_000, (12, 40)
# Rows per step of a learned gate, and of one with pieces at least: each step touches all weights.
STEPS, SMALLEST_BATCH, LARGEST_BATCH, PIECES_BATCH = 400, 64, 1024, 128
COMPONENTS = 16
# Rounds of boosted trees at most, and about how many held-out rows leave of them.
ROUNDS, USUAL_ROUNDS = 300, 100
LEAST_C, MOST_C = 1e-4, 1e3
# Rows up to which other settings come first: few teach little to gates.
SEVERAL_ROWS = 4000
# Errors that cost nothing, of regressors that minimize absolute ones: in standard deviations of y.
EPSILON = 0.03
# With more rows than this, accuracy has settled long before a tight gap is certified.
LOOSE_ROWS = 3000
# Rows that a leaf must hold; fewer overfit, where leaves refine a tile of all rows.
SMALLEST_LEAF = 5
# So strong a penalty that the tile of all rows stays zero, whatever the units of the columns.
NO_GLOBAL_TILE = 1e24

# Up to so many rows, all parts are held out in turn, and up to so many for two divisions into parts; of two classes up
# to more rows if fewer than RARE are of the rarer one, of which a single part would hold too few.
CROSS_VALIDATED, TWICE, RARE_CROSS_VALIDATED, RARE = 10_000, 1000, 20_000, 500
MOST_HELD_OUT = 20_000
# Rows of the first rung, so that a search of a second has tried something, and how many times as many the next one has.
FIRST_RUNG, GROWTH = 2000, 4


@dataclass(frozen=True)
class Candidate:
    """A model that may be tried.

    Attributes
    ----------
    family : str
        One of `FAMILIES`.
    scaling : str
        A key of `scalings_of`. "none" for families that need none, because their pieces or trees see to it.
    tiles : int
        Cells, anchors (of each gate), or leaves (of each tree).
    gates : int
        Learned gates, trees, or rounds of boosted trees at most.
    pieces : int or None
        Knots per column of the curves of the tiles.
    C : float or None
        Weight of the losses; None for learned gates and boosted trees.
    neighbors : int
        Anchors that share a row.
    sharpness : float
        Kernels: factor of the usual scale of distances.
    decay, dropout : float
        Of learned gates.
    smooth : bool
        The smooth loss (log-loss of learned gates, squared error) instead of the one with margins.
    linear_leaves : bool
        Trees: leaves add a linear function instead of a number.
    only_leaves : bool
        Trees: nothing but leaves, which may hold single rows; without the tile of all rows, which small leaves refine.
    growth : {"forest", "extra"}
        How trees are grown; see `TreeSVC`.
    """

    family: str
    scaling: str = "standard"
    tiles: int = 1
    gates: int = 1
    pieces: int | None = None
    C: float | None = None
    neighbors: int = 8
    sharpness: float = 1.0
    decay: float = 0.01
    dropout: float = 0.0
    smooth: bool = False
    linear_leaves: bool = False
    only_leaves: bool = False
    growth: str = "forest"

    @property
    def n_tiles(self) -> int:
        """Tiles of the fitted model at most."""
        return 1 if self.family == "linear" else self.tiles * self.gates + (self.family in OF_ALL_ROWS)

    @property
    def knots(self) -> int:
        """Knots per column of the tiles, once they take rows as they are measured; 0 if they are straight."""
        return self.pieces or (KNOTS if self.scaling == "rank" else 0)

    @property
    def kind(self) -> tuple:
        """What candidates that are fitted by the same methods have in common."""
        return self.family, self.pieces is None, self.linear_leaves, self.only_leaves, self.growth

    def n_weights(self, n_features, n_outputs) -> int:
        """Numbers that the tiles of the fitted model hold, at most; leaves are straight."""
        width = n_features * (self.knots + 2 if self.knots else 1)
        if self.family == "kernel":
            return self.n_tiles * (n_features + n_outputs)
        if self.family not in ("trees", "boosted"):
            return self.n_tiles * width * n_outputs
        leaves = self.tiles * self.gates * n_features if self.linear_leaves else 0
        return ((0 if self.only_leaves or self.family == "boosted" else width) + leaves + self.n_tiles) * n_outputs

    def describe(self) -> dict:
        """Columns of a leaderboard that identify it."""
        details = []
        if self.family in ("local", "learned"):
            details.append(f"{self.neighbors} neighbors")
        if self.family == "kernel":
            details.append(f"sharpness {self.sharpness:g}")
        if self.family == "learned":
            details.append(f"decay {self.decay:g}")
            details += [f"dropout {self.dropout:g}"] if self.dropout else []
            details += ["smooth loss"] if self.smooth else []
        if self.family == "trees":
            leaves = "linear leaves" if self.linear_leaves else "only leaves" if self.only_leaves else "constant leaves"
            details += [leaves] if self.growth == "forest" else [leaves, self.growth]
        return {
            "tiles": self.n_tiles, "gates": self.gates, "pieces": self.pieces, "C": self.C, "scaling": self.scaling,
            "details": ", ".join(details),
        }  # fmt: skip

    def epochs(self, n_rows) -> int:
        """Passes over the rows, of a learned gate."""
        usual = float(np.clip(ROWS_SEEN // n_rows, *EPOCHS))
        return round(usual if self.pieces is None else max(usual / 2, EPOCHS[0]))

    def batch_size(self, n_rows) -> int:
        """Rows per step, of a learned gate."""
        smallest = SMALLEST_BATCH if self.pieces is None else PIECES_BATCH
        return int(min(n_rows, np.clip(n_rows // STEPS, smallest, LARGEST_BATCH)))

    def work(self, n_rows, n_features, n_outputs) -> float:
        """About how many multiplications a fit takes, overheads included.

        Parameters
        ----------
        n_rows : int
        n_features : float
            Features per row that are not zero.
        n_outputs : int
        """
        seen = n_features * (1 if self.pieces is None else 3)
        if self.family == "learned":
            components = min(COMPONENTS, n_features)
            per_row = self.gates * ((seen + self.tiles) * components + 2 * self.neighbors * n_outputs * seen)
            weights = self.gates * self.tiles * n_outputs * n_features * (1 if self.pieces is None else self.pieces)
            per_row += weights / self.batch_size(n_rows)
            return 5e7 + (2.0 if self.smooth else 1.0) * self.epochs(n_rows) * n_rows * (per_row + 1e4)
        if self.family == "boosted":
            times = 6 if n_rows <= 5000 else 2  # parts of few rows are held out in turn
            return 1e7 + times * USUAL_ROUNDS * n_outputs * n_rows * (n_features + 10.0)
        if self.family == "trees":
            tried = {"forest": n_features**0.5 + 4, "extra": 0.2 * n_features + 4}
            grown = 20.0 * self.gates * np.log2(n_rows + 2.0) * tried[self.growth]
            leaves = self.gates * (n_features if self.linear_leaves else 2.0)
            return 3e7 + n_rows * (grown + 30.0 * n_outputs * (seen + leaves))
        if self.family == "kernel":
            return 2e7 + n_rows * self.tiles * (10.0 * n_features + self.tiles + 60.0 * n_outputs)
        if self.family == "local":
            placed = 10.0 * self.tiles * n_features * min(1.0, 256.0 * self.tiles / n_rows)
            solved = n_outputs * (10.0 * self.neighbors * seen + 1e4)
            return 2e7 + n_rows * (placed + self.tiles * n_features + solved)
        return 1e7 + 30.0 * n_rows * n_outputs * seen * (1 if self.family == "linear" else 2)

    def neighborhood(self):
        """Small changes, the likeliest to help first."""
        if self.C is not None:
            yield from (replace(self, C=C) for C in (self.C * 4, self.C / 4) if LEAST_C < C < MOST_C)
        if self.family == "kernel":
            yield from (replace(self, sharpness=self.sharpness * factor) for factor in (3.0, 1.0 / 3.0))
        if self.family in ("local", "kernel", "clustered", "boosted"):
            yield replace(self, tiles=2 * self.tiles)
        if self.family == "learned":
            yield replace(self, decay=self.decay * 4)
            yield replace(self, tiles=2 * self.tiles)
            yield replace(self, gates=2 * self.gates)
            yield replace(self, decay=self.decay / 4)
            yield replace(self, smooth=not self.smooth)
            yield replace(self, dropout=0.0 if self.dropout else 0.2)
        if self.family == "trees":
            yield replace(self, tiles=2 * self.tiles)
            yield replace(self, gates=2 * self.gates)
            if not self.only_leaves:
                C = self.C / 8 if self.linear_leaves else self.C
                yield replace(self, linear_leaves=not self.linear_leaves, C=C)
        if self.family in ("local", "clustered", "learned", "boosted") and self.tiles > 4:
            yield replace(self, tiles=self.tiles // 2)
        if self.family == "local":
            yield replace(self, neighbors=24 - self.neighbors)  # 8 and 16
        if self.pieces is not None:
            yield replace(self, pieces=48 - self.pieces if self.pieces in (16, 32) else 16)

    def estimator(self, task, n_rows, *, seed, n_jobs=None, max_time=None, pieces=None, n_components=16, variance=1.0):
        """The estimator for a fit of `n_rows` rows.

        Parameters
        ----------
        task : {"classification", "regression"}
            Values are standardized.
        n_rows : int
        seed : int
        n_jobs : int or None
        max_time : float or None
        pieces : list of ndarray or None
            Knots of each column.
        n_components : int
            Of learned gates.
        variance : float
            Of all columns together, by which kernels are scaled.
        """
        settings = {"random_state": seed, "n_jobs": n_jobs, "max_time": max_time}
        if task == "regression":
            settings["normalize_y"] = False
        if self.family == "boosted":
            kind = (CLASSIFIERS if task == "classification" else REGRESSORS)["boosted"]
            return kind(self.gates, max_leaves=self.tiles, **settings)
        if task == "classification":
            if self.family == "learned":
                settings["loss"] = "log_loss" if self.smooth else "squared_hinge"
            elif self.family != "local":
                settings["loss"] = "squared_hinge"
        else:
            squared = "squared_error" if self.family == "learned" else "squared_epsilon_insensitive"
            settings |= {"loss": squared, "epsilon": 0.0} if self.smooth else {
                "loss": "epsilon_insensitive", "epsilon": EPSILON
            }  # fmt: skip
        if self.family == "learned":
            settings |= {
                "n_tiles": self.tiles, "n_gates": self.gates, "n_neighbors": self.neighbors,
                "n_components": n_components, "weight_decay": self.decay, "dropout": self.dropout,
                "max_iter": self.epochs(n_rows), "batch_size": self.batch_size(n_rows), "early_stopping": False,
                "pieces": pieces,
            }  # fmt: skip
        elif self.family == "kernel":
            settings |= {"n_anchors": self.tiles, "gamma": self.sharpness / variance, "C": self.C, "tol": 1e-2}
        else:
            loose = self.family == "local" and n_rows > LOOSE_ROWS
            settings |= {"C": self.C, "tol": 1e-2 if loose else 1e-3, "pieces": pieces}
        if self.family == "clustered":
            settings["n_clusters"] = self.tiles
        elif self.family == "local":
            settings |= {"n_anchors": self.tiles, "n_neighbors": self.neighbors}
        elif self.family == "trees":
            settings |= {
                "n_trees": self.gates, "max_leaves": self.tiles, "growth": self.growth,
                "min_rows_per_leaf": 1 if self.only_leaves else SMALLEST_LEAF,
                "tiles": "linear" if self.linear_leaves else "constant",
                "global_reg": NO_GLOBAL_TILE if self.only_leaves else 1.0,
            }  # fmt: skip
        return (CLASSIFIERS if task == "classification" else REGRESSORS)[self.family](**settings)


def power_of_two(value, least, most) -> int:
    """The power of two nearest to a value, within bounds that are powers of two."""
    return int(np.clip(2.0 ** np.round(np.log2(max(value, 1e-9))), least, most))


# The order in which settings are tried, with few rows and with more: the first three are the best per second, and each
# other one helps most where those before it fail (benchmarks/study_search.py --order).
ORDER_OF_FEW = (
    "additive", "boosted, few leaves", "linear leaves", "kernel", "extra", "kernel, small C", "local", "linear",
    "gates", "forest", "clustered", "curved gate, few tiles", "boosted", "linear, small C", "one tree",
    "forest, few leaves",
    "kernel, common scale", "local, robust scale", "gate, few tiles", "curved local", "trees", "smooth gates",
    "linear leaves, small C", "kernel, sharp", "local, common scale", "gate", "additive, large C", "gate, ranks",
    "curved gate", "trees, many", "gate, robust scale", "local, ranks", "curved gates", "local, many",
    "boosted, many leaves", "linear, large C", "curved gate, more decay", "clustered, large C", "gate, common scale",
)  # fmt: skip
ORDER_OF_MANY = (
    "additive", "boosted", "extra", "gates", "gate", "linear leaves", "boosted, many leaves", "kernel, sharp", "forest",
    "curved gate, few tiles", "kernel", "smooth gates", "linear", "curved gates", "local", "gate, few tiles", "trees",
    "boosted, few leaves", "gate, common scale", "kernel, common scale", "curved gate", "gate, ranks", "local, many",
    "kernel, small C", "linear leaves, small C", "local, common scale", "clustered", "trees, many",
    "forest, few leaves",
    "curved local", "gate, robust scale", "local, robust scale", "curved gate, more decay", "local, ranks",
    "linear, small C", "additive, large C", "one tree", "linear, large C", "clustered, large C",
)  # fmt: skip


def settings(scalings, n_rows) -> dict[str, Candidate]:
    """Candidates by name; tiles grow with the root of the rows.

    Parameters
    ----------
    scalings : collection of str
        Worth trying, the first the usual one.
    n_rows : int
    """
    usual, root = next(iter(scalings)), n_rows**0.5
    anchors, leaves = power_of_two(root / 2.2, 8, 512), power_of_two(root / 4, 8, 128)
    linear, additive = Candidate("linear", usual, C=0.1), Candidate("linear", "none", pieces=16, C=0.01)
    clustered = Candidate("clustered", usual, 8, C=0.1)
    gate = Candidate("learned", usual, anchors)
    bent = replace(gate, scaling="none", pieces=16, decay=0.1)
    local = Candidate("local", usual, power_of_two(root / 5, 8, 256), C=1.0)
    kernel = Candidate("kernel", usual, power_of_two(12 * root, 32, 512), C=10.0, sharpness=0.3)
    leafy = Candidate("trees", "none", leaves, 16, 16, C=0.03, linear_leaves=True)
    trees = Candidate("trees", "none", 2 * leaves, 8, 16, C=0.1)
    forest = Candidate("trees", "none", 1000, 32, C=0.3, only_leaves=True)
    boosted = Candidate("boosted", "none", 32 if n_rows > SEVERAL_ROWS else 8, ROUNDS)
    found = {
        "linear": linear, "linear, small C": replace(linear, C=0.01), "linear, large C": replace(linear, C=1.0),
        "additive": additive, "additive, large C": replace(additive, C=0.1),
        "clustered": clustered, "clustered, large C": replace(clustered, C=1.0),
        "gate": gate, "gate, few tiles": replace(gate, tiles=max(8, anchors // 2), decay=0.1),
        "gates": replace(gate, gates=4, tiles=max(4, anchors // 2), neighbors=4, decay=0.3),
        "smooth gates": replace(gate, tiles=max(8, anchors // 8), gates=8, neighbors=2, decay=1.0, smooth=True),
        "curved gate": bent, "curved gate, few tiles": replace(bent, tiles=max(8, anchors // 4)),
        "curved gate, more decay": replace(bent, decay=1.0),
        "curved gates": replace(bent, gates=4, tiles=max(8, anchors // 4), neighbors=2, smooth=True, dropout=0.2),
        "local": local, "local, many": replace(local, tiles=max(48, 2 * local.tiles), C=10.0),
        "curved local": replace(local, tiles=16, pieces=16, C=0.03),
        "kernel": kernel, "kernel, small C": replace(kernel, C=1.0), "kernel, sharp": replace(kernel, sharpness=1.0),
        "linear leaves": leafy, "linear leaves, small C": replace(leafy, C=0.003), "one tree": replace(leafy, gates=1),
        "trees": trees, "trees, many": replace(trees, gates=32, C=0.03),
        "forest": forest, "forest, few leaves": replace(forest, gates=64, tiles=100),
        "extra": replace(forest, growth="extra"),
        "boosted": boosted, "boosted, few leaves": replace(boosted, tiles=boosted.tiles // 2),
        "boosted, many leaves": replace(boosted, tiles=2 * boosted.tiles),
    }  # fmt: skip
    for way, name in {"common": "common scale", "robust": "robust scale", "rank": "ranks"}.items():
        if way in scalings and way != usual:
            more = {"gate": gate, "local": local} | ({"kernel": kernel} if way == "common" else {})
            found |= {f"{kind}, {name}": replace(candidate, scaling=way) for kind, candidate in more.items()}
    return found


def portfolio(scalings, n_rows) -> list[Candidate]:
    """All settings in the order in which they are tried: see `settings`."""
    known = settings(scalings, n_rows)
    order = ORDER_OF_FEW if n_rows <= SEVERAL_ROWS else ORDER_OF_MANY
    return [known[name] for name in order if name in known]


def fitting(candidate, *, n_rows, most_tiles, n_features, n_outputs, is_sparse=False) -> Candidate | None:
    """The candidate, with fewer tiles if there are not rows or room enough for all; None if that makes no sense.

    Parameters
    ----------
    candidate : Candidate
    n_rows : int
        Of the smallest fit.
    most_tiles : int
        Of the whole model.
    n_features : int
        All, zero or not.
    n_outputs : int
    is_sparse : bool
    """
    if is_sparse and n_features > MOST_SPARSE_COLUMNS and (
        candidate.pieces is not None or candidate.family in ("trees", "boosted", "kernel")
    ):  # fmt: skip
        return None
    if candidate.family == "linear":
        return candidate
    room = min(1.0, MOST_WEIGHTS / candidate.n_weights(n_features, n_outputs))
    most = min(most_tiles - (candidate.family in OF_ALL_ROWS), max(1, int(room * candidate.tiles * candidate.gates)))
    few = candidate.only_leaves or candidate.family in ("kernel", "boosted")
    tiles = min(candidate.tiles, most, n_rows // (ROWS_PER_LEAF if few else ROWS_PER_TILE))
    gates = min(candidate.gates, most // max(tiles * (n_outputs if candidate.family == "boosted" else 1), 1))
    if tiles < 2 or gates < 1 or (candidate.family == "learned" and n_rows < ROWS_TO_LEARN):
        return None
    return replace(candidate, tiles=int(tiles), gates=int(gates), neighbors=int(min(candidate.neighbors, tiles)))


@dataclass(frozen=True)
class Rung:
    """So many rows of each training part, and so many parts held out in turn."""

    n_rows: int
    n_parts: int


def rungs_of(folds) -> list[Rung]:
    """Rungs of growing effort: rows first, then parts.

    Parameters
    ----------
    folds : list of (training rows, held-out rows)
    """
    most, n_parts = min(len(train) for train, _ in folds), len(folds)
    n_rows, rungs = FIRST_RUNG, []
    while n_rows * GROWTH <= most:
        rungs.append(Rung(n_rows, 1))
        n_rows *= GROWTH
    if n_parts == 1:
        return [*rungs, Rung(most, 1)]
    division = n_parts // 2 if most <= TWICE and n_parts > 5 else n_parts
    return [
        *rungs,
        Rung(most, 1 if rungs else 2),
        *([Rung(most, division)] if division < n_parts else []),
        Rung(most, n_parts),
    ]


def folds_of(target, fraction, rng):
    """(training rows, held-out rows): one pair for many rows, else all parts in turn; none if it cannot be done.

    Parameters
    ----------
    target : Target
    fraction : float
        Share of the rows in a part.
    rng : RandomState
    """
    label, n_rows = target.label, len(target.weight)
    counts = np.zeros(0, dtype=int) if label is None else np.bincount(label)
    n_parts = min(max(2, round(1 / fraction)), n_rows // 2 if label is None else int(counts.max()))
    if n_parts < 2:
        return []
    kind, parts = KFold if label is None else StratifiedKFold, []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class with fewer rows than parts
        for _ in range(2 if n_rows <= TWICE else 1):
            splitter = kind(n_parts, shuffle=True, random_state=rng.randint(2**31 - 1))
            division = list(splitter.split(np.zeros(n_rows), label))
            # The first rung has the first few parts: those with rows of all classes, which some metrics need.
            parts += division if label is None else sorted(division, key=lambda part: -len(np.unique(label[part[1]])))
    is_rare = len(counts) == 2 and counts.min() < RARE
    if n_rows > (RARE_CROSS_VALIDATED if is_rare else CROSS_VALIDATED):
        parts = parts[:1]
    folds = []
    for train, held in parts:
        if len(held) > MOST_HELD_OUT:
            order = spread(label, held, rng)
            train = np.concatenate([train, held[order[MOST_HELD_OUT:]]])
            held = held[order[:MOST_HELD_OUT]]
        if label is None or len(np.unique(label[train])) > 1:
            folds.append((train[spread(label, train, rng)], np.sort(held)))
    return folds


def spread(label, rows, rng):
    """An order of the rows whose every beginning has about the shares of the classes, and a row of each."""
    if label is None:
        return rng.permutation(len(rows))
    label = label[rows]
    order = rng.permutation(len(label))
    order = order[np.argsort(label[order], kind="stable")]
    counts = np.bincount(label)
    within = np.arange(len(label)) - np.repeat(np.cumsum(counts) - counts, counts)
    return order[np.lexsort((rng.permutation(len(label)), within / np.repeat(counts, counts)))]
