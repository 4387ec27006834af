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

from svmosaic.export.preparation import GONE, VALUE
from svmosaic.table.columns import MISSING, Column
from svmosaic.table.formats import TableError
from svmosaic.table.frames import NUMBER, TEXT, days_of, looks_like_dates, texts_of
from svmosaic.table.table_preparation import TablePreparation, column_of_categories, column_of_dates, is_identifier

# Texts of a column that are counted at the same time; beyond, the rarest are forgotten.
MOST_TEXTS = 500_000
# A median lies between two values of the sample, so many standard deviations of its rank to either side.
DEVIATIONS = 5.0


@dataclass(frozen=True, eq=False)
class Survey:
    """What is known after the passes."""

    preparation: Any
    n_rows: int
    sample: Any  # rows as `to_input` gives them, in the order of the table
    labels: np.ndarray  # of the sample
    label_counts: Counter  # rows of each label, if labels are classes
    n_texts: dict  # how many different texts each text column holds, at most about MOST_TEXTS


def survey(chunks, names, kinds, *, scale, max_categories, sample_rows, seed, memory, categorical=()):
    """The preparation of a table, in three passes or four over its chunks.

    `chunks()` iterates over (rows as `to_input` gives them, labels), the same in every call. A column of many texts has
    its most frequent ones as categories. The medians are found among values of at most `memory` bytes.
    """
    rng, numeric = np.random.default_rng(seed), [place for place, kind in enumerate(kinds) if kind == NUMBER]
    counted = [place for place, name in enumerate(names) if kinds[place] == TEXT or name in categorical]
    label_counts: Counter = Counter()
    n_rows, known = 0, np.zeros(len(numeric), dtype=np.int64)
    low, high = np.full(len(numeric), np.inf), np.full(len(numeric), -np.inf)
    texts: dict = {}
    sample: Any = None
    for X, y in chunks():
        n_rows += len(y)
        if np.asarray(y).dtype.kind != "f":  # values are not counted, there are too many of them
            label_counts.update(np.asarray(y).tolist())
        numbers = np.asarray(X.iloc[:, numeric], dtype=np.float64)
        known += (~np.isnan(numbers)).sum(axis=0)
        low = np.fmin(low, np.fmin.reduce(numbers, axis=0, initial=np.inf))
        high = np.fmax(high, np.fmax.reduce(numbers, axis=0, initial=-np.inf))
        for place in counted:
            name, column = names[place], X.iloc[:, place]
            if kinds[place] == NUMBER:
                column = pd.Series(texts_of(column.tolist()), dtype=object).fillna("")
            counts = column.replace("", MISSING).value_counts()
            if name in texts:
                counts = texts[name].add(counts, fill_value=0).astype(np.int64)
            if len(counts) > MOST_TEXTS:
                counts = counts.sort_index().sort_values(ascending=False, kind="stable").iloc[: MOST_TEXTS // 2]
            texts[name] = counts
        sample = _sampled(sample, X, y, sample_rows, rng)
    sample, labels, _ = sample
    sample = sample.reset_index(drop=True) if isinstance(sample, pd.DataFrame) else sample

    def numbers_of(X):
        return np.asarray(X.iloc[:, numeric], dtype=np.float64)

    medians = _medians(lambda: (numbers_of(X) for X, _ in chunks()), numbers_of(sample), known, memory)
    preparation = TablePreparation(list(categorical), max_categories=max_categories, scale=scale)
    preparation.feature_names_in_, preparation.n_features_in_ = np.array(names, dtype=object), len(names)
    preparation.center_ = preparation.factor_ = None
    preparation.takes_arrays_ = TEXT not in kinds
    preparation.columns_, preparation.dropped_ = [], {}
    found = zip(medians, known, low < high, strict=True)
    for name, kind in zip(names, kinds, strict=True):
        median, n_known, varies = next(found) if kind == NUMBER else (0.0, 0, False)
        if name in texts:
            counts, is_category = texts[name], name in categorical
            words = [text for text in counts.index if text != MISSING]
            if not is_category and looks_like_dates(words):
                days = np.array([days_of(text) for text in words])
                column = column_of_dates(name, days, counts[words].to_numpy(), MISSING in counts)
            elif len(counts) < 2 or (not is_category and is_identifier(len(words), int(counts[words].sum()))):
                column = Column(name, TEXT, [], [])
            else:
                column = column_of_categories(name, counts.to_dict(), max_categories)
        else:
            forms = [form for form, there in ((VALUE, varies), (GONE, 0 < n_known < n_rows)) if there]
            fill = [median if form == VALUE else np.nan for form in forms]
            column = Column(name, NUMBER, [(form, None) for form in forms], fill)
        if column.features:
            preparation.columns_.append(column)
        else:
            preparation.dropped_[name] = "constant" if len(texts.get(name, ())) < 2 else "identifier"
    if not preparation.columns_:
        raise TableError("the table has no column to learn from: all are constant or identifiers")
    if scale:
        scaler = StandardScaler()
        for X, _ in chunks():
            scaler.partial_fit(preparation.transform(X))
        preparation.center_, preparation.factor_ = preparation.scaling_of(scaler.mean_, scaler.scale_)
    n_texts = {name: len(texts[name]) for name, kind in zip(names, kinds, strict=True) if kind == TEXT}
    return Survey(preparation, n_rows, sample, labels, label_counts, n_texts)


def _sampled(sample, X, y, n_rows, rng):
    """The rows that drew the smallest random numbers, their labels and these numbers, with some more rows."""
    key = rng.random(len(y))
    if sample is not None:
        if len(sample[2]) == n_rows:
            below = key < sample[2].max()
            X, y, key = X[below], y[below], key[below]
        together = pd.concat if isinstance(X, pd.DataFrame) else np.concatenate
        X, y, key = together([sample[0], X]), np.concatenate([sample[1], y]), np.concatenate([sample[2], key])
    if len(key) > n_rows:
        kept = np.sort(np.argpartition(key, n_rows)[:n_rows])
        X, y, key = X.iloc[kept] if isinstance(X, pd.DataFrame) else X[kept], y[kept], key[kept]
    return X, y, key


def _medians(chunks, sample, known, memory):
    """Exact medians of the columns: a sample gives the range to search; 0 if there are no values."""
    medians, sought = np.zeros(len(known)), []
    for f, n in enumerate(known):
        values = np.sort(sample[:, f][~np.isnan(sample[:, f])])
        if n == 0 or len(values) == n:
            medians[f] = np.median(values) if n else 0.0
            continue
        # Of m sampled values, the rank of the median is off by sqrt(m) / 2, in standard deviations. A column that the
        # sample missed altogether is kept whole.
        m, slack = len(values), DEVIATIONS * np.sqrt(len(values)) / 2 + 1
        first, last = int(np.floor(m / 2 - slack)), int(np.ceil(m / 2 + slack))
        sought.append((f, values[first] if first >= 0 else -np.inf, values[last] if last < m else np.inf))
    share = min(1.0, (2 * DEVIATIONS * np.sqrt(len(sample)) / 2 + 2) / max(1, len(sample)))
    at_once = max(1, int(memory / (8 * share * max(1, known.max(initial=1)))))
    for start in range(0, len(sought), at_once):
        some = sought[start : start + at_once]
        # Values up to the lower end are counted, those in between are kept.
        below, between = np.zeros(len(some), dtype=np.int64), [[np.empty(0)] for _ in some]
        for X in chunks():
            for k, (f, low, high) in enumerate(some):
                below[k] += (X[:, f] <= low).sum()
                between[k].append(X[(X[:, f] > low) & (X[:, f] < high), f])
        for k, (f, low, high) in enumerate(some):
            values = np.sort(np.concatenate(between[k]))
            ranks = [int(rank - below[k]) for rank in ((known[f] - 1) // 2, known[f] // 2)]
            # Below the range or beyond it only where the sample was unlucky, which is a matter of one in a million.
            medians[f] = sum(low if r < 0 else values[r] if r < len(values) else high for r in ranks) / 2
    return medians
