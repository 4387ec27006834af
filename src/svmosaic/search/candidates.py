"""The space of the search as data: what may be tried, in which order, and about how much work it is."""

from dataclasses import dataclass, fields, replace

import numpy as np

from svmosaic.estimators.boosted_trees import FEW_ROWS

FAMILIES = ("linear", "clustered", "local", "kernel", "learned", "trees")
# Those with one more tile, of all rows.
OF_ALL_ROWS = ("trees", "kernel")
# A tile needs some rows, a leaf that is only a number fewer, and a gate more of them to be learned.
ROWS_PER_TILE, ROWS_PER_LEAF, ROWS_TO_LEARN = 10, 2, 100
# Weights of all tiles together, so that wide rows do not fill the memory.
MOST_WEIGHTS = 20_000_000
# Passes of learned gates: so many that this many rows are seen, within the range. Tiles with pieces need half of them.
ROWS_SEEN, EPOCHS = 600_000, (12, 40)
# Rows per step of a learned gate, and of one with pieces at least: each step touches all weights.
STEPS, SMALLEST_BATCH, LARGEST_BATCH, PIECES_BATCH = 400, 64, 1024, 128
COMPONENTS = 16
# Trees that are nothing but leaves, and their leaves.
DEEP_TREES, DEEP_LEAVES = 32, 1000
# Rounds of boosted trees at most, about how many held-out rows leave of them, and their leaves: fewer of few rows.
ROUNDS, USUAL_ROUNDS, BOOSTED_LEAVES, BOOSTED_OF_FEW = 300, 100, 32, 8
LEAST_C, MOST_C = 1e-4, 1e3
MOST_EFFORT = 3.0
MANY_ROWS = 50_000
# Above so many, a learned gate with little decay is among the first, and kernel machines come after others.
SEVERAL_ROWS = 4000


@dataclass(frozen=True)
class Candidate:
    """A model that may be tried.

    Attributes
    ----------
    family : {"linear", "clustered", "local", "kernel", "learned", "trees"}
    scaling : str
        A key of `scalings_of`. "none" for families that need none, because their pieces or trees see to it.
    tiles : int
        Cells, anchors (of each gate), or leaves (of each tree).
    gates : int
        Learned gates, or trees.
    pieces : int or None
        Knots per column of the curves of the tiles.
    C : float or None
        Weight of the losses; None for learned gates.
    neighbors : int
        Anchors that share a row.
    sharpness : float
        Kernels: factor of the usual scale of distances.
    decay, dropout : float
        Of learned gates.
    smooth : bool
        Learned gates: the smooth loss (log-loss, squared error) instead of the one with margins.
    linear_leaves : bool
        Trees: leaves add a linear function instead of a number.
    only_leaves : bool
        Trees: nothing but leaves, which may hold single rows; without the tile of all rows, which small leaves refine.
    growth : {"forest", "extra", "boosted"}
        How trees are grown: see `TreeSVC` and, for the last, `BoostedTreesClassifier`.
    effort : float
        Learned gates: factor of the number of epochs.
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
    effort: float = 1.0

    @property
    def n_tiles(self) -> int:
        """Tiles of the fitted model at most."""
        return 1 if self.family == "linear" else self.tiles * self.gates + (self.family in OF_ALL_ROWS)

    @property
    def knots(self) -> int:
        """Knots per column of the tiles, once they take rows as they are measured; 0 if they are straight."""
        from svmosaic.maps.ranks import KNOTS  # here, since it takes a while to import

        return self.pieces or (KNOTS if self.scaling == "rank" else 0)

    def n_weights(self, n_features, n_outputs) -> int:
        """Numbers that the tiles of the fitted model hold, at most; leaves are straight."""
        width = n_features * (self.knots + 2 if self.knots else 1)
        if self.family == "kernel":
            return self.n_tiles * (n_features + n_outputs)
        if self.family != "trees":
            return self.n_tiles * width * n_outputs
        leaves = self.tiles * self.gates * n_features if self.linear_leaves else 0
        return ((0 if self.only_leaves else width) + leaves + self.n_tiles) * n_outputs

    def describe(self) -> dict:
        """What identifies it in a leaderboard."""
        shown = {"tiles": self.n_tiles, "gates": self.gates, "pieces": self.pieces, "C": self.C}
        return shown | {"scaling": self.scaling, "details": ", ".join(self._details())}

    def _details(self):
        if self.family in ("local", "learned"):
            yield f"{self.neighbors} neighbors"
        if self.family == "kernel":
            yield f"sharpness {self.sharpness:g}"
        if self.family == "learned":
            yield f"decay {self.decay:g}"
            if self.dropout:
                yield f"dropout {self.dropout:g}"
            if self.smooth:
                yield "smooth loss"
            if self.effort != 1:
                yield f"{self.effort:g} times the epochs"
        if self.family == "trees":
            yield "linear leaves" if self.linear_leaves else "only leaves" if self.only_leaves else "constant leaves"
            if self.growth != "forest":
                yield self.growth

    def epochs(self, n_rows) -> int:
        """Passes over the rows, of a learned gate."""
        usual = float(np.clip(ROWS_SEEN // n_rows, *EPOCHS))
        return max(1, round(self.effort * (usual if self.pieces is None else max(usual / 2, EPOCHS[0]))))

    def batch_size(self, n_rows) -> int:
        """Rows per step, of a learned gate."""
        smallest = SMALLEST_BATCH if self.pieces is None else PIECES_BATCH
        return int(min(n_rows, np.clip(n_rows // STEPS, smallest, LARGEST_BATCH)))

    def work(self, n_rows, n_features, n_outputs) -> float:
        """About how many multiplications a fit takes, overheads included: one fit tells the seconds of its kind.

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
        if self.family == "trees":
            if self.growth == "boosted":
                times = 6 if n_rows <= FEW_ROWS else 2  # parts of few rows are held out in turn
                return 1e7 + times * USUAL_ROUNDS * n_outputs * n_rows * (n_features + 10.0)
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
        if self.family in ("local", "kernel", "clustered"):
            yield replace(self, tiles=2 * self.tiles)
        if self.family == "learned":
            yield replace(self, decay=self.decay * 4)
            yield replace(self, tiles=2 * self.tiles)
            if self.effort < MOST_EFFORT:
                yield replace(self, effort=2 * self.effort)
            yield replace(self, gates=2 * self.gates)
            yield replace(self, decay=self.decay / 4)
            yield replace(self, smooth=not self.smooth)
            yield replace(self, dropout=0.0 if self.dropout else 0.2)
        if self.growth == "boosted":
            yield replace(self, tiles=2 * self.tiles)
            if self.tiles > 4:
                yield replace(self, tiles=self.tiles // 2)
        elif self.family == "trees":
            yield replace(self, tiles=2 * self.tiles)
            yield replace(self, gates=2 * self.gates)
            if not self.only_leaves:
                yield replace(
                    self, linear_leaves=not self.linear_leaves, C=self.C / 8 if self.linear_leaves else self.C
                )
        if self.family in ("local", "clustered", "learned") and self.tiles > 4:
            yield replace(self, tiles=self.tiles // 2)
        if self.family == "local":
            yield replace(self, neighbors=24 - self.neighbors)  # 8 and 16
        if self.pieces is not None:
            yield replace(self, pieces=48 - self.pieces if self.pieces in (16, 32) else 16)


def power_of_two(value, least, most) -> int:
    """The power of two nearest to a value, within bounds that are powers of two."""
    return int(np.clip(2.0 ** np.round(np.log2(max(value, 1e-9))), least, most))


def seeds(scalings, n_rows, kernels=True) -> list[Candidate]:
    """The first candidates, in the order in which they are tried.

    The order is that of a greedy portfolio over many sets (benchmarks/study_search.py); tiles grow with the root of the
    rows.

    Parameters
    ----------
    scalings : list of str
        Worth trying, the first the usual one.
    n_rows : int
        Of the last fit.
    kernels : bool
        Whether kernel machines are among them.
    """
    usual, root = scalings[0], n_rows**0.5
    affine = [way for way in scalings if way != "rank"]  # ranks come late: they are seldom the best
    anchors, leaves, cells = power_of_two(root / 2.2, 8, 512), power_of_two(root / 4, 8, 128), 8
    gate = Candidate("learned", usual, anchors)
    few = replace(gate, tiles=max(8, anchors // 2), decay=0.1)
    bent = replace(gate, scaling="none", pieces=16, decay=0.1)
    local = Candidate("local", usual, power_of_two(root / 5, 8, 256), C=1.0)
    kernel = Candidate("kernel", usual, power_of_two(12 * root, 32, 512), C=10.0)
    additive = Candidate("linear", "none", pieces=16, C=0.01)
    leafy = Candidate("trees", "none", leaves, 16, 16, C=0.03, linear_leaves=True)
    trees = Candidate("trees", "none", 2 * leaves, 8, 16, C=0.1)
    deep = Candidate("trees", "none", DEEP_LEAVES, DEEP_TREES, C=0.3, only_leaves=True)
    extra = replace(deep, growth="extra")
    leaves_of_boosted = BOOSTED_LEAVES if n_rows > SEVERAL_ROWS else BOOSTED_OF_FEW
    boosted = replace(deep, gates=ROUNDS, tiles=leaves_of_boosted, C=None, growth="boosted")
    if n_rows > MANY_ROWS:  # learned gates live on many rows
        first = [gate, trees, bent, local, leafy, deep, replace(gate, gates=2), additive, few, boosted, extra]
    else:
        first = [leafy, additive, deep, boosted, few, extra, *(replace(local, scaling=way) for way in affine), trees]
        if n_rows > SEVERAL_ROWS:
            first.insert(1, gate)
    pool = [
        Candidate("linear", usual, C=0.1),
        *first,
        Candidate("clustered", usual, cells, C=0.1),
        replace(bent, tiles=max(8, anchors // 2)),
        replace(gate, tiles=max(8, anchors // 8), gates=8, neighbors=2, decay=1.0, smooth=True),
        gate,
    ]
    if kernels:
        even = "common" if "common" in affine else usual
        best = [replace(kernel, sharpness=0.3), replace(kernel, scaling=even), replace(kernel, sharpness=0.3, C=1.0)]
        if n_rows <= SEVERAL_ROWS:  # they take no time
            pool[1:1] = best
            pool += [
                replace(kernel, C=100.0), replace(kernel, scaling=even, C=1.0), replace(kernel, sharpness=0.1, C=0.1),
            ]  # fmt: skip
        else:
            pool[1 + len(first) : 1 + len(first)] = best[:2]
    for way in scalings[1:]:
        pool += [replace(gate, scaling=way), replace(local, scaling=way)]
    return [
        *pool,
        replace(trees, gates=32, C=0.03),
        replace(deep, gates=2 * DEEP_TREES, tiles=DEEP_LEAVES // 10),
        replace(leafy, C=0.003),
        replace(local, tiles=16, pieces=16, C=0.03),
        replace(local, tiles=max(48, 2 * local.tiles), C=10.0),
        replace(gate, gates=4, tiles=max(4, anchors // 2), neighbors=4),
        replace(additive, C=0.1),
        Candidate("linear", usual, C=0.01),
        replace(trees, gates=32, tiles=leaves, C=0.3),
        replace(bent, gates=4, tiles=max(8, anchors // 4), neighbors=2, smooth=True, dropout=0.2),
        replace(local, tiles=2 * local.tiles, neighbors=16),
        replace(bent, decay=1.0),
        replace(leafy, gates=1),
        replace(gate, gates=4, tiles=max(4, anchors // 2), neighbors=4, decay=0.3),
        Candidate("linear", usual, C=1.0),
        replace(trees, gates=32, tiles=4 * leaves, C=0.03),
        replace(additive, C=1.0),
        Candidate("clustered", usual, cells, C=1.0),
        replace(local, tiles=48, pieces=16, C=0.3),
        Candidate("clustered", usual, cells, pieces=16, C=0.1),
    ]


def fitting(candidate, *, n_rows, most_tiles, n_features, n_outputs) -> Candidate | None:
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
    """
    if candidate.family == "linear":
        return candidate
    room = min(1.0, MOST_WEIGHTS / candidate.n_weights(n_features, n_outputs))
    most = min(most_tiles - (candidate.family in OF_ALL_ROWS), max(1, int(room * candidate.tiles * candidate.gates)))
    few = candidate.only_leaves or candidate.family == "kernel"
    tiles = min(candidate.tiles, most, n_rows // (ROWS_PER_LEAF if few else ROWS_PER_TILE))
    trees_per_gate = n_outputs if candidate.growth == "boosted" else 1
    gates = min(candidate.gates, most // max(tiles * trees_per_gate, 1))
    if tiles < 2 or gates < 1 or (candidate.family == "learned" and n_rows < ROWS_TO_LEARN):
        return None
    return replace(candidate, tiles=int(tiles), gates=int(gates), neighbors=int(min(candidate.neighbors, tiles)))


def same_but_effort(candidate) -> tuple:
    """What makes two candidates alike, whatever their epochs."""
    return tuple(getattr(candidate, field.name) for field in fields(candidate) if field.name != "effort")
