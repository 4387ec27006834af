"""Groups of rows in words: the few conditions on columns that tell a group best from the rest."""

import itertools
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from svmosaic.explain.subject import READER
from svmosaic.export.description import take_apart
from svmosaic.gates.trees import Condition

# Bins of a column of numbers: conditions begin and end at their edges.
N_BINS = 16
# Texts of a column that conditions may name, the most frequent ones, and texts that one condition may name.
MOST_TEXTS, MOST_NAMED = 64, 3
# A further condition must add this much to the score; fewer are easier to read.
LEAST_GAIN = 0.02


@dataclass(frozen=True)
class OneOf:
    """The column holds one of some texts, or none of them.

    Attributes
    ----------
    feature : int
    texts : tuple of str
    negated : bool
    """

    feature: int
    texts: tuple
    negated: bool = False

    def text(self, names) -> str:
        """The condition in words."""
        listed = " or ".join(self.texts) if len(self.texts) < 3 else f"{', '.join(self.texts[:-1])} or {self.texts[-1]}"
        return f"{names[self.feature]} is {'not ' if self.negated else ''}{listed}"

    def holds(self, values):
        """Whether each value fulfills it."""
        return np.isin(values, self.texts) != self.negated


@dataclass(frozen=True)
class Missing:
    """The column holds nothing, or (negated) something."""

    feature: int
    negated: bool = False

    def text(self, names) -> str:
        """The condition in words."""
        return f"{names[self.feature]} is {'not ' if self.negated else ''}missing"

    def holds(self, values):
        """Whether each value fulfills it."""
        return np.array([value is None or value != value for value in values], dtype=bool) != self.negated


@dataclass(frozen=True)
class PartOf:
    """An interval of what is made of a column, such as the month of a date.

    Attributes
    ----------
    what : str
        Stands before the name of the column.
    interval : Condition
    """

    what: str
    interval: Condition

    @property
    def feature(self) -> int:
        return self.interval.feature

    def text(self, names) -> str:
        """The condition in words."""
        return self.interval.text({self.feature: f"{self.what} {names[self.feature]}"})


@dataclass(frozen=True)
class Rule:
    """Conditions that describe a group of rows.

    Attributes
    ----------
    conditions : tuple of Condition, OneOf, Missing or PartOf
        All of them hold.
    covers : float
        Share of the group's rows that fulfill the rule.
    pure : float
        Share of the rows that fulfill the rule that are the group's.
    """

    conditions: tuple
    covers: float
    pure: float

    def text(self, names, dates=None, between=", ") -> str:
        """The conditions in words.

        Parameters
        ----------
        names : list of str
            Of the columns.
        dates : list of bool, optional
            Which columns hold dates, as days.
        between : str, default=", "
            What joins them.
        """
        parts = []
        for condition in self.conditions:
            is_date = dates is not None and dates[condition.feature] and isinstance(condition, Condition)
            parts.append(_date_text(condition, names) if is_date else condition.text(names))
        return between.join(parts) or "all rows"

    def account(self) -> str:
        """How well it describes the group."""
        return f"covers {self.covers:.0%}, {self.pure:.0%} pure"


def _date_text(condition, names) -> str:
    """A condition on a date."""
    name = names[condition.feature]
    low, high = (
        None
        if np.isinf(end)
        else str(np.datetime64(0, "s") + np.timedelta64(round(end * 86_400), "s")).removesuffix("T00:00:00")
        for end in (condition.lower, condition.upper)
    )
    if low is None:
        return f"{name} until {high}"
    return f"{name} after {low}" if high is None else f"{name} after {low} until {high}"


def holds(condition, values):
    """Whether each value of its column fulfills a condition; a missing number fulfills none.

    Parameters
    ----------
    condition : Condition, OneOf or Missing
    values : ndarray of shape (n_rows,)
        Of the column that the condition is about.
    """
    if not isinstance(condition, Condition):
        return condition.holds(values)
    return (values > condition.lower) & (values <= condition.upper)


class Describer:
    """Finds rules for groups of the same rows.

    Parameters
    ----------
    columns : list of ndarray of shape (n_rows,)
        Numbers, with NaN for missing ones, or texts (of objects).
    """

    def __init__(self, columns):
        self.n_rows = len(columns[0]) if columns else 0
        self._binned = [_binned(values) for values in columns]
        width = max((b.n_bins for b in self._binned), default=1)
        self._width = width
        self._codes = np.stack([b.codes for b in self._binned], axis=1) + width * np.arange(len(columns))
        self._numbers = np.array([k for k, b in enumerate(self._binned) if isinstance(b, _Numbers)], dtype=np.intp)
        self._texts = [k for k, b in enumerate(self._binned) if isinstance(b, _Texts)]
        n_intervals = np.array([len(self._binned[k].edges) + 1 for k in self._numbers], dtype=np.intp)
        # Bins of numbers that intervals may hold: not the one of missing numbers.
        self._named = np.arange(n_intervals.max(initial=0)) < n_intervals[:, None]

    def rule(self, member, max_conditions=4) -> Rule:
        """The rule of a group, found greedily: the condition that raises the F-score of the rule most, again and again.

        Parameters
        ----------
        member : ndarray of bool, shape (n_rows,)
            Which rows are in the group.
        max_conditions : int, default=4
        """
        total = int(member.sum())
        if total in (0, self.n_rows):
            return Rule((), 1.0, total / self.n_rows)
        inside, score = np.ones(self.n_rows, dtype=bool), _f_score(total, self.n_rows, total)
        chosen: dict[int, np.ndarray] = {}
        while True:
            best, column, bins = self._best(inside, member, total, chosen)
            is_new = column not in chosen
            # Two conditions are wanted if they help at all, more if they help enough.
            gain = 1e-9 if len(chosen) < 2 else LEAST_GAIN
            if best <= score + gain or (is_new and len(chosen) == max_conditions):
                break
            score = best
            chosen[column] = chosen.get(column, np.ones(self._width, dtype=bool)) & bins
            inside &= bins[self._codes[:, column] - self._width * column]
        found = self._pruned(chosen, member, total)
        inside = self._inside(found)
        conditions = tuple(self._binned[column].condition(column, bins) for column, bins in found.items())
        hits = int((inside & member).sum())
        return Rule(conditions, hits / total, hits / max(int(inside.sum()), 1))

    def _inside(self, chosen):
        inside = np.ones(self.n_rows, dtype=bool)
        for column, bins in chosen.items():
            inside &= bins[self._codes[:, column] - self._width * column]
        return inside

    def _pruned(self, chosen, member, total):
        """Without conditions that later ones have made superfluous."""

        def score_of(some):
            inside = self._inside(some)
            return _f_score(int((inside & member).sum()), int(inside.sum()), total)

        for column in list(chosen):
            fewer = {c: bins for c, bins in chosen.items() if c != column}
            if fewer and score_of(fewer) >= score_of(chosen):
                chosen = fewer
        return chosen

    def _best(self, inside, member, total, chosen):
        """The best score of one more condition, its column, and its bins as an array of bool."""
        n = len(self._binned) * self._width
        codes = self._codes[inside]
        everyone = np.bincount(codes.ravel(), minlength=n).reshape(-1, self._width)
        hits = np.bincount(codes[member[inside]].ravel(), minlength=n).reshape(-1, self._width)
        scores, bins = np.full(len(self._binned), -1.0), {}
        if len(self._numbers):
            parts = [np.where(self._named, part[self._numbers, : self._named.shape[1]], 0) for part in (hits, everyone)]
            scores[self._numbers], low, high = _best_intervals(*parts, total)
            bins = {k: slice(*ends) for k, *ends in zip(self._numbers.tolist(), low, high, strict=True)}
        for column in self._texts:
            if column not in chosen:  # an interval may become narrower, a list of texts would become longer
                scores[column], there = self._binned[column].best(hits[column], everyone[column], total)
                bins[column] = np.flatnonzero(there)
        best = int(scores.argmax())
        found = np.zeros(self._width, dtype=bool)
        if scores[best] >= 0:
            found[bins[best]] = True
        return scores[best], best, found


def _best_intervals(hits, everyone, total):
    """The interval of bins with the best score in each column: scores, first bins, and bins before which it ends.

    Parameters
    ----------
    hits, everyone : ndarray of shape (n_columns, n_bins)
        Rows of the group, and all rows.
    total : int
        Rows of the group altogether.
    """
    n = hits.shape[1]
    sums = [np.pad(np.cumsum(part, axis=1), ((0, 0), (1, 0))) for part in (hits, everyone)]
    # Of the bins from one index to before another.
    within = [np.maximum(part[:, None, :] - part[:, :, None], 0) for part in sums]
    score = np.where(np.triu(np.ones((n + 1, n + 1), dtype=bool), 1), _f_score(*within, total), -1.0)
    score = score.reshape(len(hits), -1)
    best = score.argmax(axis=1)
    return score[np.arange(len(hits)), best], *np.divmod(best, n + 1)


def _f_score(hits, n_rows, total):
    """Harmonic mean of the share of the group that a rule covers and of its purity."""
    return 2.0 * hits / (n_rows + total)


@dataclass(frozen=True)
class _Numbers:
    """A column of numbers in bins; the last bin holds missing ones, which no condition names."""

    codes: np.ndarray
    edges: np.ndarray

    @property
    def n_bins(self) -> int:
        return len(self.edges) + 2

    def condition(self, column, bins):
        """The bins as an interval."""
        there = np.flatnonzero(bins[: len(self.edges) + 1])
        ends = np.concatenate([[-np.inf], self.edges, [np.inf]])
        return Condition(column, float(ends[there[0]]), float(ends[there[-1] + 1]))


@dataclass(frozen=True)
class _Texts:
    """A column of text: a bin per frequent text, and a last one for all others."""

    codes: np.ndarray
    texts: np.ndarray

    @property
    def n_bins(self) -> int:
        return len(self.texts) + 1

    def best(self, hits, everyone, total):
        """The few texts, or all but a few, with the best score, as (score, which bins)."""
        n = self.n_bins
        # Of all sets of texts, the best one takes them by the share of the group in them.
        order = np.argsort(-hits[:n] / np.maximum(everyone[:n], 1), kind="stable")
        order = order[everyone[order] > 0]
        best: Any = (-1.0, np.ones(n, dtype=bool))
        if not len(order):
            return best
        score = _f_score(np.cumsum(hits[order]), np.cumsum(everyone[order]), total)
        named = np.arange(1, len(order) + 1)
        # Named or left out are few texts that have a name.
        whole = np.maximum.accumulate(order == len(self.texts))
        allowed = ((named <= MOST_NAMED) & ~whole) | ((len(order) - named <= MOST_NAMED) & whole)
        allowed |= (len(order) - named <= MOST_NAMED) & (order != len(self.texts)).all()
        if not allowed.any():
            return best
        at = int(np.where(allowed, score, -1.0).argmax())
        bins = np.zeros(n, dtype=bool)
        bins[order[: at + 1]] = True
        if whole[at] or at + 1 > MOST_NAMED:  # said by what it leaves out, so texts that are not here now are in
            bins[everyone[:n] == 0] = True
        return float(score[at]), bins

    def condition(self, column, bins):
        """The bins as texts."""
        there = bins[: self.n_bins]
        if there[-1] or there.sum() > MOST_NAMED:
            left_out = tuple(str(text) for text in self.texts[~there[:-1]])
            if len(left_out) <= MOST_NAMED or there[-1]:
                return OneOf(column, left_out, True)
        return OneOf(column, tuple(str(text) for text in self.texts[there[:-1]]))


def _binned(values):
    """A column in bins whose edges are round numbers, or by its texts."""
    if values.dtype.kind == "O":
        texts, counts = np.unique(values.astype(str), return_counts=True)
        kept = np.sort(np.argsort(-counts, kind="stable")[:MOST_TEXTS])
        texts = texts[kept]
        at = np.minimum(np.searchsorted(texts, values.astype(str)), len(texts) - 1)
        return _Texts(np.where(texts[at] == values, at, len(texts)), texts)
    there = values[~np.isnan(values)]
    edges = _edges(there)
    codes = np.searchsorted(edges, values, side="left")  # edges[c - 1] < value <= edges[c]
    return _Numbers(np.where(np.isnan(values), len(edges) + 1, codes), edges)


def _edges(values):
    """Edges between bins of about as many rows, as round as the bins allow."""
    distinct = np.unique(values)
    if len(distinct) < 2:
        return np.zeros(0)
    if len(distinct) <= N_BINS:
        return np.unique([_round_between(a, b) for a, b in itertools.pairwise(distinct)])
    quantiles = np.quantile(values, np.arange(1, N_BINS) / N_BINS)
    at = np.unique(np.clip(np.searchsorted(distinct, quantiles, side="right"), 1, len(distinct) - 1))
    return np.unique([_round_between(distinct[i - 1], distinct[i]) for i in at])


def _round_between(low, high):
    """The number with the fewest digits that is at least `low` and less than `high`."""
    if float(low).is_integer():
        return float(low)
    for digits in range(1, 17):
        found = float(f"{(low + high) / 2:.{digits}g}")
        if low <= found < high:
            return found
    return float(low)


def in_columns(conditions, subject) -> tuple:
    """Conditions on the features of an estimator as conditions on the columns of the table; exact.

    Parameters
    ----------
    conditions : list of Condition
    subject : Subject
    """
    prepared = subject.preparation
    found: dict = {}
    made: dict = {}  # conditions on what is made of a column
    affine = subject.mosaic.features.affine
    for one in conditions:
        bounds = np.array([one.lower, one.upper])
        f = one.feature
        if affine is not None:
            center, factor = affine
            bounds = bounds / factor[f] + (0.0 if center is None else center[f])
        for step in reversed(prepared.steps):
            bounds = bounds / step.factor[f] + step.center[f]
        j, category = int(prepared.source[f]), prepared.category[f]
        part = _meaning(prepared.tables[f][0]) if f in prepared.tables else prepared.part_of(f)
        if part == "missing":
            made[j, part] = Missing(j, negated=bounds[1] < 1)
        elif part not in (None, "days"):
            what = part if f in prepared.tables else f"{part} of"
            before = made[j, part].interval if (j, part) in made else None
            made[j, part] = PartOf(what, _met(before, Condition(j, *map(float, bounds))))
        elif category is None:
            found[j, None] = _met(found.get((j, None)), Condition(j, *map(float, bounds)))
        else:
            found[j, category] = OneOf(j, (category,), negated=bounds[1] < 1)
    return (*_joined(found), *made.values())


def _meaning(table) -> str:
    """What is looked up for a text: its rank among all, or a mean."""
    return "rank of" if sorted(table.values()) == list(range(len(table))) else "mean of the label by"


def wording(estimator, before):
    """A function from conditions on the features of an estimator to words in the columns of a table.

    Parameters
    ----------
    estimator : fitted estimator with tiles
    before : fitted transformer, or pipeline of some, whose features they are
    """
    steps = getattr(before, "steps", [("prepare", before)])
    prepared = take_apart(Pipeline([*steps, ("model", estimator)]), READER).preparation
    parts = SimpleNamespace(preparation=prepared, mosaic=estimator.mosaic_)
    dates = [kind == "date" for kind in prepared.kinds]
    return lambda conditions: Rule(in_columns(conditions, parts), 1.0, 1.0).text(prepared.names, dates, " and ")


def _met(before, now):
    """Both of two intervals."""
    if before is None:
        return now
    return replace(now, lower=max(before.lower, now.lower), upper=min(before.upper, now.upper))


def _joined(found) -> tuple:
    """With the texts that a column does not hold in one condition, which a text that it does hold makes superfluous."""
    joined: dict = {}
    for (j, category), condition in found.items():
        if category is None or not condition.negated:
            joined[j, "is"] = condition
        elif (j, "is not") in joined:
            joined[j, "is not"] = OneOf(j, (*joined[j, "is not"].texts, category), True)
        else:
            joined[j, "is not"] = condition
    return tuple(c for (j, how), c in joined.items() if how == "is" or not isinstance(joined.get((j, "is")), OneOf))
