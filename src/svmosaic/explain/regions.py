"""Regions in words, those that predict alike merged."""

from dataclasses import dataclass, replace

import numpy as np

from svmosaic.explain.contributions import Table
from svmosaic.explain.subject import Subject, sampled
from svmosaic.explain.words import Rule, find_rules, in_columns
from svmosaic.gates import SeveralGates, TreeGate
from svmosaic.gates.trees import Condition
from svmosaic.model.mosaic import linked
from svmosaic.rows import evenly

# Rows on which tiles are compared, and columns that conditions are looked for in: those that matter most.
COMPARED_ROWS, MOST_COLUMNS = 200, 60
# Rows by which they are chosen: contributions to wide tiles take long.
WEIGHED_ROWS = 64
# Rows that rules are found on.
DESCRIBED_ROWS = 10_000


@dataclass(frozen=True, eq=False)
class Regions:
    """Regions of a model, as some rows show them."""

    tiles: list  # of each region: one, unless regions that predict alike were merged; only tiles with rows are here
    region_of_row: np.ndarray
    rules: list
    exact: bool  # the rules are those of the model's only tree, rather than found from the rows
    n_tiles: int  # with rows, before regions were merged
    n_gates: int  # gates or trees with several tiles; of several, these regions are those of the one that counts most

    def __len__(self):
        return len(self.tiles)

    def columns(self, subject) -> dict:
        """The rules, and the three columns that matter most in each region, as columns of a table."""
        strongest = []
        for line in subject.importances_in(self.region_of_row, len(self)):
            order = np.argsort(-line, kind="stable")[:3]
            strongest.append(", ".join(f"{subject.names[j]} ({line[j]:.3g})" for j in order if line[j] > 0))
        return {
            "rule": np.array([subject.text_of(rule) for rule in self.rules], dtype=object),
            "covers": np.array([rule.covers for rule in self.rules]),
            "pure": np.array([rule.pure for rule in self.rules]),
            "strongest features": np.array(strongest, dtype=object),
        }


def find_regions(subject: Subject, max_regions=None) -> Regions:
    """The regions of a model, largest first; the most similar ones are merged until `max_regions` are left."""
    tiles, tile_of_row = np.unique(subject.home, return_inverse=True)
    groups = merge_alike(subject, tiles, np.bincount(tile_of_row), max_regions)
    group_of = np.empty(len(tiles), dtype=np.intp)
    for g, members in enumerate(groups):
        group_of[members] = g
    order = np.argsort(-np.bincount(group_of[tile_of_row]), kind="stable")
    region_of_row = np.argsort(order)[group_of[tile_of_row]]
    merged = [tiles[groups[g]] for g in order]
    rules, exact = _rules(subject, merged, region_of_row)
    return Regions(merged, region_of_row, rules, exact, len(tiles), subject.n_gates)


def describe_regions(model, X, max_regions=12) -> Table:
    """Describe the regions of a model in words.

    Each region is described by up to four conditions on the columns of the table that best separate its rows from all
    others, with the share of its rows that satisfy them and their purity: among all rows that satisfy them, the share
    that belongs to the region. The regions of a `TreeSVC` with one tree are its rules, which are exact.

    Parameters
    ----------
    model : fitted estimator with tiles, pipeline that ends in one, or TrainedModel
    X : table, array or sparse matrix
        Rows in the form that the model takes, for instance the training rows. At most 20,000 evenly spaced rows are
        used.
    max_regions : int or None, default=12
        If there are more regions, those with the most similar predictions are merged. None: one line per tile with
        rows.

    Returns
    -------
    Table
        One line per region, largest first: tiles, rows, rule, covers, pure, and the columns whose contributions vary
        most within the region; or those that matter most if shuffled, for models whose gates decide.

    See Also
    --------
    effects : The effect of each column.
    importances : Ranks the columns.
    svmosaic.explain.write_report : Writes an HTML report.

    Examples
    --------
    >>> from svmosaic import ClusteredSVC
    >>> from svmosaic.datasets import make_xor
    >>> from svmosaic.explain import describe_regions
    >>> X, y = make_xor(random_state=0)
    >>> table = describe_regions(ClusteredSVC(n_clusters=4, random_state=0).fit(X, y), X)
    >>> bool((table["pure"] > 0.9).all())
    True
    """
    subject = sampled(model, X)
    regions = find_regions(subject, max_regions)
    return Table(
        {
            "region": np.arange(1, len(regions) + 1),
            "tiles": np.array([", ".join(map(str, tiles)) for tiles in regions.tiles], dtype=object),
            "rows": np.bincount(regions.region_of_row, minlength=len(regions)),
            **regions.columns(subject),
        }
    )


def words_of_tiles(model, X, n_tiles) -> dict:
    """Columns for a table of all tiles: the rule of each that has rows, how much it covers, and how pure it is."""
    subject = sampled(model, X)
    regions = find_regions(subject)
    rules = {int(tile): rule for (tile,), rule in zip(regions.tiles, regions.rules, strict=True)}
    return _table_of_tiles(rules, subject.text_of, n_tiles)


def words_of_homes(values, names, homes, n_tiles) -> dict:
    """The same from rows whose tiles are known: for each gate, the tile that each row belongs to."""
    tiles = [(int(tile), home == tile) for home in homes for tile in np.unique(home)]
    rules = dict(zip((k for k, _ in tiles), find_rules(list(values.T), (member for _, member in tiles)), strict=True))
    return _table_of_tiles(rules, lambda rule: rule.text(names), n_tiles)


def _table_of_tiles(rules, text_of, n_tiles) -> dict:
    """Columns of a table of all tiles from the rules of some."""
    text, covers, pure = [""] * n_tiles, np.full(n_tiles, np.nan), np.full(n_tiles, np.nan)
    for tile, rule in rules.items():
        text[tile], covers[tile], pure[tile] = text_of(rule), rule.covers, rule.pure
    return {"rule": np.array(text), "covers": covers, "pure": pure}


def merge_alike(subject, tiles, n_rows, max_regions) -> list:
    """Groups of tiles, at most `max_regions`, whose tiles give the most similar scores, by their indices.

    Merging goes by Ward's rule: each step joins the two groups that raise the sum of squared differences between the
    scores of tiles and of their groups least. Tiles weigh by their rows; scores are those of some of all rows.
    """
    groups = [[k] for k in range(len(tiles))]
    if max_regions is None or len(tiles) <= max_regions:
        return groups
    # The scores of each tile on the same rows.
    rows = evenly(subject.n_rows, COMPARED_ROWS)
    _, seen = subject.mosaic.features.scored_rows(subject.X[rows])
    codes = [np.full((len(rows), 1), tile, dtype=np.int32) for tile in tiles]
    margins = [subject.mosaic.score_codes(seen, code, np.ones((len(rows), 1))).ravel() for code in codes]
    answers, weight = linked(np.stack(margins), subject.mosaic.link), n_rows.astype(np.float64)
    there = np.ones(len(groups), dtype=bool)

    def cost_of(a):
        """Cost of merging a group with each of the others."""
        apart = ((answers - answers[a]) ** 2).sum(axis=1) * weight * weight[a] / (weight + weight[a])
        return np.where(there & (np.arange(len(apart)) != a), apart, np.inf)

    cost = np.stack([cost_of(a) for a in range(len(groups))])
    for _ in range(len(groups) - max_regions):
        a, b = sorted(np.unravel_index(cost.argmin(), cost.shape))
        answers[a] = (weight[a] * answers[a] + weight[b] * answers[b]) / (weight[a] + weight[b])
        weight[a] += weight[b]
        groups[a] += groups[b]
        there[b] = False
        cost[b] = cost[:, b] = np.inf
        cost[a] = cost[:, a] = cost_of(a)
    return [group for group, alive in zip(groups, there, strict=True) if alive]


def _rules(subject, groups, region_of_row) -> tuple[list, bool]:
    """A rule for each region, and whether they are exact: those of the model's only tree, if regions are its leaves."""
    gate = subject.mosaic.gate
    parts, first = (gate.gates if isinstance(gate, SeveralGates) else (gate,)), 0
    for part in parts:
        if isinstance(part, TreeGate) and part.n_trees == 1 and subject.n_gates == 1:
            if any(len(tiles) > 1 for tiles in groups):
                break
            leaves = [in_columns(rule, subject) for rule in part.rules()]
            return [_exact_rule(leaves[int(tile) - first], subject) for (tile,) in groups], True
        first += part.n_tiles
    some, chosen = evenly(subject.n_rows, DESCRIBED_ROWS), np.arange(len(subject.columns))
    if len(chosen) > MOST_COLUMNS:  # the most important ones, by some rows
        few = evenly(subject.n_rows, WEIGHED_ROWS)
        importance = np.abs(subject.contributions_of(few)).mean(axis=(0, 1))
        chosen = np.sort(np.argsort(-importance, kind="stable")[:MOST_COLUMNS])
    members = (region_of_row[some] == g for g in range(len(groups)))
    found = find_rules([subject.values(j)[some] for j in chosen], members)
    own = [tuple(replace(one, feature=int(chosen[one.feature])) for one in rule.conditions) for rule in found]
    return [replace(rule, conditions=conditions) for rule, conditions in zip(found, own, strict=True)], False


def _exact_rule(conditions, subject) -> Rule:
    """The rule of a leaf, with x <= 12.5 as x <= 12 for a column of whole numbers."""
    shown = []
    for one in conditions:
        if isinstance(one, Condition):
            values = subject.values(one.feature)
            if (np.isnan(values) | (values == np.floor(values))).all():
                one = replace(one, lower=float(np.floor(one.lower)), upper=float(np.floor(one.upper)))
        shown.append(one)
    return Rule(tuple(shown), 1.0, 1.0)
