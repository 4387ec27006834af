"""Rules: groups of rows in words, by the few conditions on columns that tell a group best from the rest."""

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from svmosaic.explain.subject import READER
from svmosaic.export.description import take_apart
from svmosaic.export.preparation import CATEGORY, GONE, TABLE, VALUE
from svmosaic.gates.trees import Condition
from svmosaic.rows import evenly

# Conditions of a rule, texts that one of them may name, and texts of a column that any may: the most frequent ones.
MOST_CONDITIONS, MOST_NAMED, MOST_TEXTS = 4, 3, 64
# The trees that rules are found by: how deep, and rows of a leaf; rows of no group that they see, per row of the group.
DEPTH, LEAST_ROWS, FEWEST_OTHERS, OTHERS = 6, 5, 300, 4


@dataclass(frozen=True)
class OneOf:
    """The column holds one of some texts, or (negated) none of them."""

    feature: int
    texts: tuple
    negated: bool = False

    def text(self, names) -> str:
        """The condition in words."""
        listed = " or ".join(self.texts) if len(self.texts) < 3 else f"{', '.join(self.texts[:-1])} or {self.texts[-1]}"
        return f"{names[self.feature]} is {'not ' if self.negated else ''}{listed}"


@dataclass(frozen=True)
class Missing:
    """The column holds nothing, or (negated) something."""

    feature: int
    negated: bool = False

    def text(self, names) -> str:
        """The condition in words."""
        return f"{names[self.feature]} is {'not ' if self.negated else ''}missing"


@dataclass(frozen=True)
class PartOf:
    """An interval of what is made of a column, such as "month of" a date; `what` stands before its name."""

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
    """Conditions that describe a group of rows: all of them hold."""

    conditions: tuple
    covers: float  # share of the group's rows that fulfill the rule
    pure: float  # share of the rows that fulfill the rule that are the group's

    def text(self, names, dates=None, between=", ") -> str:
        """The conditions in words; dates says which columns hold dates, as days."""
        parts = []
        for condition in self.conditions:
            is_date = dates is not None and dates[condition.feature] and isinstance(condition, Condition)
            parts.append(_date_text(condition, names) if is_date else condition.text(names))
        return between.join(parts) or "all rows"


def _date_text(condition, names) -> str:
    """A condition on a date."""
    name, low, high = names[condition.feature], condition.lower, condition.upper
    days = (str(np.datetime64(0, "s") + np.timedelta64(round(v * 86_400), "s")) for v in (low, high) if np.isfinite(v))
    shown = [day.removesuffix("T00:00:00") for day in days]
    if np.isinf(low):
        return f"{name} until {shown[0]}"
    return f"{name} after {shown[0]}" if np.isinf(high) else f"{name} after {shown[0]} until {shown[1]}"


def holds(condition, values):
    """The values of its column that fulfill a condition, as an array of bool; a missing number fulfills no interval."""
    if isinstance(condition, OneOf):
        return np.isin(values, condition.texts) != condition.negated
    if isinstance(condition, Missing):
        return np.array([value is None or value != value for value in values], dtype=bool) != condition.negated
    return (values > condition.lower) & (values <= condition.upper)


def find_rules(columns, members) -> list[Rule]:
    """Rules that describe groups of the same rows, each by a decision tree that tells the group from all other rows.

    Columns are numbers, with NaN for missing ones, or texts; members are the rows of each group, as bool. A rule is the
    path to one node of the tree, with up to four conditions: the node with the best F-score, which is the harmonic mean
    of the share of the group that the rule covers and of its purity. Numbers in it have as few digits as possible.
    """
    features: list = []  # ranks of numbers, and texts one-hot
    meaning: list[tuple] = []  # the column of each, and its distinct numbers or the text
    for j, values in enumerate(columns):
        if values.dtype.kind == "O":
            texts, counts = np.unique(values.astype(str), return_counts=True)
            for text in texts[np.argsort(-counts, kind="stable")[:MOST_TEXTS]]:
                features.append(values == text)
                meaning.append((j, str(text)))
        elif not np.isnan(values).all():
            distinct = np.unique(values[~np.isnan(values)])
            features.append(np.where(np.isnan(values), np.nan, np.searchsorted(distinct, values)))
            meaning.append((j, distinct))
    X = np.array(features, dtype=np.float32).T
    return [_rule(X, meaning, columns, member) for member in members]


def _rule(X, meaning, columns, member) -> Rule:
    from sklearn.tree import DecisionTreeClassifier  # here, since it takes a while to import

    total = int(member.sum())
    if total in (0, len(member)) or not meaning:
        return Rule((), 1.0, total / len(member))
    # Few rows tell a small group from the others.
    others = np.flatnonzero(~member)
    seen = np.concatenate([np.flatnonzero(member), others[evenly(len(others), max(FEWEST_OTHERS, OTHERS * total))]])
    fewest = min(LEAST_ROWS, total)
    tree = DecisionTreeClassifier(criterion="entropy", max_depth=DEPTH, min_samples_leaf=fewest, random_state=0)
    tree = tree.fit(X[seen], member[seen]).tree_
    everyone = np.ones(len(member), dtype=bool)

    def score(inside):
        return 2.0 * (inside & member).sum() / (inside.sum() + total)

    best: float = 0.0
    chosen: dict = {}
    nodes: list[tuple[int, dict, np.ndarray]] = [(0, {}, everyone)]
    while nodes:
        node, conditions, inside = nodes.pop()
        if conditions and (found := score(inside)) > best:
            best, chosen = found, conditions
        if tree.children_left[node] < 0:
            continue
        (j, known), cut = meaning[tree.feature[node]], tree.threshold[node]
        for is_right, child in enumerate((tree.children_left[node], tree.children_right[node])):
            before = conditions.get((j, "value"))
            condition: Any
            if np.isinf(cut):  # between the numbers and what is missing
                key, condition = (j, "missing"), Missing(j, negated=not is_right)
            elif isinstance(known, str):
                named = before.texts if before is not None and before.negated else ()
                condition = OneOf(j, (known,)) if is_right else OneOf(j, (*named, known), True)
                key, condition = (j, "value"), before if before is not None and not before.negated else condition
            else:
                edge = _round_between(*known[int(cut) : int(cut) + 2])
                now = Condition(j, edge, np.inf) if is_right else Condition(j, -np.inf, edge)
                key, condition = (j, "value"), _met(before, now)
            longer = conditions | {key: condition}
            if len(longer) <= MOST_CONDITIONS and len(getattr(condition, "texts", ())) <= MOST_NAMED:
                nodes.append((child, longer, inside & holds(condition, columns[j])))
    masks = {key: holds(condition, columns[key[0]]) for key, condition in chosen.items()}
    for key in list(chosen):  # without those that later ones have made superfluous
        fewer = [masks[other] for other in masks if other != key]
        if fewer and score(np.logical_and.reduce(fewer)) >= best:
            del masks[key]
            best = score(np.logical_and.reduce(fewer))
    inside = np.logical_and.reduce([everyone, *masks.values()])
    hits = int((inside & member).sum())
    return Rule(tuple(chosen[key] for key in masks), hits / total, hits / int(inside.sum()))


def _round_between(low, high) -> float:
    """The number with the fewest digits that is at least `low` and less than `high`."""
    if float(low).is_integer():
        return float(low)
    for digits in range(1, 17):
        found = float(f"{(low + high) / 2:.{digits}g}")
        if low <= found < high:
            return found
    return float(low)


def in_columns(conditions, subject) -> tuple:
    """Conditions on the features of an estimator as conditions on the columns of the table; exact."""
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
        j, (form, detail) = int(prepared.source[f]), prepared.features[f]
        if form == GONE:
            made[j, form] = Missing(j, negated=bounds[1] < 1)
        elif form == CATEGORY:
            found[j, detail] = OneOf(j, (detail,), negated=bounds[1] < 1)
        elif form in (VALUE, "days"):
            found[j, None] = _met(found.get((j, None)), Condition(j, *map(float, bounds)))
        else:
            what = f"{form} of"
            if form == TABLE:
                looked_up = sorted(detail[0].values())
                what = "rank of" if looked_up == list(range(len(looked_up))) else "mean of the label by"
            before = made[j, what].interval if (j, what) in made else None
            made[j, what] = PartOf(what, _met(before, Condition(j, *map(float, bounds))))
    # The texts that a column does not hold in one condition, which a text that it does hold makes superfluous.
    joined: dict = {}
    for (j, category), condition in found.items():
        how = "is" if category is None or not condition.negated else "is not"
        if how == "is not" and (j, how) in joined:
            condition = OneOf(j, (*joined[j, how].texts, category), True)
        joined[j, how] = condition
    kept = (c for (j, how), c in joined.items() if how == "is" or not isinstance(joined.get((j, "is")), OneOf))
    return (*kept, *made.values())


def wording(estimator, before):
    """A function from conditions on the features that `before` makes to words in the columns of the table."""
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
