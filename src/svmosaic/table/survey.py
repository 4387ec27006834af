"""A `TablePreparation`, learned from rows that come in chunks, several times over.

The result is that of a fit to all rows at once without labels: the same medians and categories, and the same means and
variances up to rounding. What is kept of the rows is a sample.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.preprocessing import StandardScaler

from svmosaic.table.columns import GONE, MISSING, VALUE, Column
from svmosaic.table.formats import TableError
from svmosaic.table.frames import NUMBER, TEXT, days_of, looks_like_dates
from svmosaic.table.table_preparation import TablePreparation, column_of_categories, column_of_dates, is_identifier

# Texts of a column that are counted at the same time; beyond, the rarest are forgotten.
MOST_TEXTS = 500_000
# A median lies between two values of the sample, so many standard deviations of its rank to either side.
DEVIATIONS = 5.0


@dataclass(frozen=True, eq=False)
class Survey:
    """What is known after the passes.

    Attributes
    ----------
    preparation : TablePreparation
    n_rows : int
    sample : ndarray or DataFrame, rows as `to_input` gives them, in the order of the table
    labels : ndarray, of the sample
    label_counts : Counter
        Rows of each label, if labels are classes.
    n_texts : dict of str to int, how many different texts each text column holds (at most about MOST_TEXTS)
    """

    preparation: Any
    n_rows: int
    sample: Any
    labels: np.ndarray
    label_counts: Counter
    n_texts: dict


def survey(chunks, names, kinds, *, scale, max_categories, sample_rows, seed, memory, categorical=()):
    """Learn the preparation, in three passes or four.

    Parameters
    ----------
    chunks : callable that returns an iterator over (rows as `to_input` gives them, labels), the same in every call
    names, kinds : list of str
        Of the columns.
    scale, max_categories, categorical
        As for `TablePreparation`. A column of many texts has its most frequent ones as categories.
    sample_rows : int
        Size of the sample, of all rows alike.
    seed : int
    memory : int
        Bytes for the values among which the medians are found.

    Returns
    -------
    Survey
    """
    sampler = _Sampler(sample_rows, np.random.default_rng(seed))
    n_numbers = kinds.count(NUMBER)
    label_counts: Counter = Counter()
    n_rows, known = 0, np.zeros(n_numbers, dtype=np.int64)
    low, high = np.full(n_numbers, np.inf), np.full(n_numbers, -np.inf)
    texts: list = [None] * kinds.count(TEXT)
    for X, y in chunks():
        n_rows += len(y)
        if np.asarray(y).dtype.kind != "f":  # values are not counted, there are too many of them
            label_counts.update(np.asarray(y).tolist())
        numbers = _numbers(X, kinds)
        known += (~np.isnan(numbers)).sum(axis=0)
        low, high = np.fmin(low, _fold(np.fmin, numbers)), np.fmax(high, _fold(np.fmax, numbers))
        for place, column in enumerate(_texts(X, kinds)):
            texts[place] = _added(texts[place], count_texts(column))
        sampler.add(X, y)
    sample, labels = sampler.taken()
    medians = np.zeros(n_numbers)
    if n_numbers:
        medians = _medians(lambda: (_numbers(X, kinds) for X, _ in chunks()), _numbers(sample, kinds), known, memory)
    preparation = TablePreparation(list(categorical), max_categories=max_categories, scale=scale)
    preparation.feature_names_in_, preparation.n_features_in_ = np.array(names, dtype=object), len(names)
    preparation.center_ = preparation.factor_ = None
    preparation.takes_arrays_ = TEXT not in kinds
    numbers = zip(medians, known, low < high, strict=True)
    counted = iter(texts)
    columns = [
        _number_column(name, n_rows, *next(numbers))
        if kind == NUMBER
        else _text_column(name, next(counted), max_categories, name in categorical)
        for name, kind in zip(names, kinds, strict=True)
    ]
    preparation.columns_ = [column for column in columns if column.features]
    distinct = (len(counts) for counts in texts)
    n_texts = {name: next(distinct) for name, kind in zip(names, kinds, strict=True) if kind == TEXT}
    preparation.dropped_ = {
        column.name: "constant" if n_texts.get(column.name, 0) < 2 else "identifier"
        for column in columns
        if not column.features
    }
    if not preparation.columns_:
        raise TableError("the table has no column to learn from: all are constant or identifiers")
    if scale:
        scaler = StandardScaler()
        for X, _ in chunks():
            scaler.partial_fit(preparation.transform(X))
        preparation.center_, preparation.factor_ = preparation.scaling_of(scaler.mean_, scaler.scale_)
    return Survey(preparation, n_rows, sample, labels, label_counts, n_texts)


def count_texts(column):
    """How often each text of a column occurs, as a Series."""
    return column.replace("", MISSING).value_counts()


def _fold(function, numbers):
    return function.reduce(numbers, axis=0) if len(numbers) else np.full(numbers.shape[1], np.nan)


def _number_column(name, n_rows, median, known, varies) -> Column:
    forms = [form for form, there in ((VALUE, varies), (GONE, 0 < known < n_rows)) if there]
    return Column(name, NUMBER, [(form, None) for form in forms], [median if f == VALUE else np.nan for f in forms])


def _text_column(name, counts, most, is_categorical) -> Column:
    distinct, known = len(counts) - (MISSING in counts), int(counts.sum() - counts.get(MISSING, 0))
    words = [text for text in counts.index if text != MISSING]
    if not is_categorical and looks_like_dates(words):
        days = np.array([days_of(text) for text in words])
        return column_of_dates(name, days, counts[words].to_numpy(), MISSING in counts)
    if len(counts) < 2 or (not is_categorical and is_identifier(distinct, known)):
        return Column(name, TEXT, [], [])
    return column_of_categories(name, counts.to_dict(), most)


def _numbers(X, kinds):
    return np.asarray(X.iloc[:, [place for place, kind in enumerate(kinds) if kind == NUMBER]], dtype=np.float64)


def _texts(X, kinds):
    return [X.iloc[:, place] for place, kind in enumerate(kinds) if kind == TEXT]


def _added(counts, more):
    if counts is None:
        return more
    counts = counts.add(more, fill_value=0).astype(np.int64)
    if len(counts) > MOST_TEXTS:
        counts = counts.sort_index().sort_values(ascending=False, kind="stable").iloc[: MOST_TEXTS // 2]
    return counts


class _Sampler:
    """Rows that drew the smallest random numbers."""

    def __init__(self, n_rows, rng):
        self.n_rows, self.rng = n_rows, rng
        self.key = np.empty(0)
        self.X, self.y = None, None

    def add(self, X, y):
        key = self.rng.random(len(y))
        if len(self.key) == self.n_rows:
            below = key < self.key.max()
            X, y, key = X[below], y[below], key[below]
        if self.X is not None:
            X = pd.concat([self.X, X]) if isinstance(X, pd.DataFrame) else np.concatenate([self.X, X])
            y, key = np.concatenate([self.y, y]), np.concatenate([self.key, key])
        if len(key) > self.n_rows:
            kept = np.sort(np.argpartition(key, self.n_rows)[: self.n_rows])
            X = X.iloc[kept] if isinstance(X, pd.DataFrame) else X[kept]
            y, key = y[kept], key[kept]
        self.X, self.y, self.key = X, y, key

    def taken(self):
        X = self.X.reset_index(drop=True) if isinstance(self.X, pd.DataFrame) else self.X
        return X, self.y


def _medians(chunks, sample, known, memory):
    """Exact medians of the columns: a sample gives the range to search; 0 if there are no values."""
    medians = np.zeros(len(known))
    ranges = []
    for f, n in enumerate(known):
        values = np.sort(sample[:, f][~np.isnan(sample[:, f])])
        if n == 0 or len(values) == n:
            medians[f] = np.median(values) if n else 0.0
            continue
        # Of m sampled values, the rank of the median is off by sqrt(m) / 2, in standard deviations. A column that the
        # sample missed altogether is kept whole.
        m, slack = len(values), DEVIATIONS * np.sqrt(len(values)) / 2 + 1
        first, last = int(np.floor(m / 2 - slack)), int(np.ceil(m / 2 + slack))
        ranges.append(_Range(f, n, values[first] if first >= 0 else -np.inf, values[last] if last < m else np.inf))
    share = min(1.0, (2 * DEVIATIONS * np.sqrt(len(sample)) / 2 + 2) / max(1, len(sample)))
    at_once = max(1, int(memory / (8 * share * max(1, known.max(initial=1)))))
    for start in range(0, len(ranges), at_once):
        looked_for = ranges[start : start + at_once]
        for X in chunks():
            for one in looked_for:
                one.look(X[:, one.feature])
        for one in looked_for:
            medians[one.feature] = one.median()
    return medians


class _Range:
    """Where the median of a column is looked for: values in between are kept, those up to the lower end counted."""

    def __init__(self, feature, n_known, low, high):
        self.feature, self.n_known, self.low, self.high = feature, int(n_known), low, high
        self.below = self.at_low = 0
        self.between = []

    def look(self, values):
        self.below += int((values < self.low).sum())
        self.at_low += int((values == self.low).sum())
        if self.high > self.low:
            self.between.append(values[(values > self.low) & (values < self.high)])

    def median(self) -> float:
        between = np.sort(np.concatenate(self.between)) if self.between else np.empty(0)
        return (self._at((self.n_known - 1) // 2, between) + self._at(self.n_known // 2, between)) / 2

    def _at(self, rank, between) -> float:
        rank -= self.below + self.at_low
        if rank < 0:
            return self.low  # also where the sample was unlucky, which is a matter of one in a million
        return float(between[rank]) if rank < len(between) else self.high
