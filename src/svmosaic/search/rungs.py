"""Which rows are fitted and which are held out, how rungs grow, and what the time allows."""

import warnings
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

# Up to so many rows, all parts are held out in turn.
CROSS_VALIDATED = 4000
# Of two classes, so many rows if fewer than this number are of the rarer one: a single part would hold too few of them.
RARE_CROSS_VALIDATED, RARE = 20_000, 500
# Up to so many, this is done for two divisions into parts.
TWICE = 1000
FIRST_PARTS = 2
MOST_HELD_OUT = 20_000
# If this share of the rows or less is held out, the last fit would hardly learn from it.
HARDLY_HELD_OUT = 0.05
# Rows of the first rung at least, if there are so many; two rungs are no closer than GROWTH, and one lies between the
# first and the last if there is room.
FIRST_RUNG, GROWTH = 4000, 4
# Multiplications per second and thread, before any is measured.
USUAL_SPEED = {"linear": 1e9, "clustered": 5e8, "local": 3e9, "kernel": 8e9, "learned": 5e9, "trees": 7e8}
# Share of the budget for the candidates of the first rung, by which its rows are planned.
FIRST_SHARE = 0.15


@dataclass(frozen=True)
class Rung:
    """So many rows of each training part, so many parts held out in turn, and the share of the time by its end."""

    n_rows: int
    n_parts: int
    until: float


def plan_rungs(folds, seconds_of, budget) -> list[Rung]:
    """The rungs of a search.

    Parameters
    ----------
    folds : list of (training rows, held-out rows)
    seconds_of : callable
        From a number of rows to the seconds that all first candidates together take on a usual machine.
    budget : float or None
        Seconds of the search.
    """
    most = min(len(train) for train, _ in folds)
    if len(folds) > 1:
        n_parts = round(1 / (1 - len(folds[0][0]) / (len(folds[0][0]) + len(folds[0][1]))))
        if FIRST_PARTS < n_parts < len(folds):
            return [Rung(most, FIRST_PARTS, 0.4), Rung(most, n_parts, 0.6), Rung(most, len(folds), 0.8)]
        return [Rung(most, min(FIRST_PARTS, len(folds)), 0.5), Rung(most, len(folds), 0.8)]
    first = min(most, FIRST_RUNG)
    seconds = (60.0 if budget is None else budget) * FIRST_SHARE
    while first * GROWTH < most and seconds_of(2 * first) < seconds:
        first *= 2
    if 1.5 * first >= most:
        return [Rung(most, 1, 0.8)]
    if first * GROWTH**2 > most:
        return [Rung(first, 1, 0.35), Rung(most, 1, 0.8)]
    return [Rung(first, 1, 0.18), Rung(int(np.sqrt(first * most)), 1, 0.36), Rung(most, 1, 0.95)]


def folds_of(target, fraction, rng):
    """(training rows, held-out rows): one pair for many rows, else all parts in turn; none if it cannot be done.

    Parameters
    ----------
    target : Target
    fraction : float
        Share of the rows in a part.
    rng : RandomState
    """
    label = target.label if hasattr(target, "label") else None
    n_rows = len(target.weight)
    n_parts = min(max(2, round(1 / fraction)), n_rows // 2 if label is None else int(np.bincount(label).max()))
    if n_parts < 2:
        return []
    kind = KFold if label is None else StratifiedKFold
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class with fewer rows than parts
        parts = []
        for _ in range(2 if n_rows <= TWICE else 1):
            splitter = kind(n_parts, shuffle=True, random_state=rng.randint(2**31 - 1))
            division = list(splitter.split(np.zeros(n_rows), label))
            # The first rung has the first few parts: those with rows of all classes, which some metrics need.
            parts += division if label is None else sorted(division, key=lambda part: -len(np.unique(label[part[1]])))
    counts = np.zeros(0) if label is None else np.bincount(label)
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


class Clock:
    """The time of a search, and what fits are expected to take, by those that were measured.

    Parameters
    ----------
    budget : float or None
        Seconds from now; None for no limit.
    n_features : float
        Features per row that are not zero.
    n_outputs : int
    """

    def __init__(self, budget, n_features, n_outputs):
        self.budget, self.started = budget, perf_counter()
        self.n_features, self.n_outputs = n_features, n_outputs
        self.measured: dict[tuple, list] = {}

    @property
    def elapsed(self) -> float:
        return perf_counter() - self.started

    def left(self, share=1.0) -> float:
        """Seconds until this share of the budget is spent."""
        return np.inf if self.budget is None else share * self.budget - self.elapsed

    def work(self, candidate, n_rows) -> float:
        return candidate.work(n_rows, self.n_features, self.n_outputs)

    def measure(self, candidate, n_rows, seconds):
        """Remember what a fit took."""
        known = self.measured.setdefault(kind_of(candidate), [])
        known.append((self.work(candidate, n_rows), seconds))

    def expected(self, candidate, n_rows) -> float:
        """Seconds that a fit will take: by the measured fits of its kind that are nearest in work."""
        work = self.work(candidate, n_rows)
        known = self.measured.get(kind_of(candidate))
        if not known:
            return work / USUAL_SPEED[candidate.family]
        near = sorted(known, key=lambda pair: abs(np.log(pair[0] / work)))[:3]
        return work * float(np.median([seconds / done for done, seconds in near]))


def kind_of(candidate) -> tuple:
    """What candidates that are fitted by the same methods have in common."""
    return candidate.family, candidate.pieces is None, candidate.linear_leaves, candidate.only_leaves, candidate.growth
