"""From the columns of a table to rows of numbers: the one preparation, of Python and of the command line."""

import warnings
from collections import Counter
from dataclasses import replace

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.preprocessing import LabelEncoder, TargetEncoder
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from svmosaic._validation import numbers_of
from svmosaic.export.preparation import CATEGORY, GONE, PARTS, TABLE, VALUE, Affine, Preparation, part_of_date
from svmosaic.table.columns import MISSING, Column, PreparedColumns
from svmosaic.table.formats import TableError
from svmosaic.table.frames import (
    DATE,
    DECIMAL,
    NUMBER,
    TEXT,
    Values,
    is_frame,
    list_columns,
    looks_like_dates,
    looks_like_numbers,
    read_frame,
    text_of,
)

# Text is an identifier if it has at least so many values, for more than such a share of the rows.
FEWEST_IDENTIFIERS, IDENTIFIER_SHARE = 10, 0.9
FOLDS = 5


class TablePreparation(PreparedColumns, TransformerMixin, BaseEstimator):
    """Converts columns of numbers, booleans, text, categories and dates to features, with missing values.

    - Numbers and booleans stay as they are. Missing values become the median, and if there were any in training, an
      extra feature marks them.
    - Text and categories: one feature of zeros and ones per category; missing text is a category of its own. With more
      than `max_categories`, the mean of the target for the category instead (for several classes, the share of each;
      for several targets, the mean of each), computed out of fold for the training rows.
    - Dates, also text such as 2026-01-31 or 2026-01-31 12:00: days elapsed since 1970-01-01, month, day, weekday, hour.
    - Ordered categories: their rank.
    - Features that are constant in training are left out, and so are, with a warning, identifiers: text with nearly as
      many values as rows.

    A category that did not occur in training has zeros for all categories, the mean of the target, or the median rank.

    Parameters
    ----------
    categorical : list of str, optional
        Columns to treat as categories, whatever their values, for example codes that are numbers.
    ordered : dict of str to list, or list of str, optional
        Columns whose categories have an order, from the lowest to the highest. A list of columns takes the order that
        the column has (of numbers and ordered categories of pandas, which need not be named) or else that of the text.
    drop : list of str, optional
        Columns to leave out.
    max_categories : int, default=64
        Maximum number of categories with a feature each.
    scale : bool, default=False
        Whether to standardize all features that are not zeros and ones.
    task : {"classification", "regression"}, optional
        The task; inferred from the target if not given.
    random_state : int, RandomState or None, default=None
        For the folds of the means of the target.

    Attributes
    ----------
    columns_ : list of Column
        The columns that features are computed from.
    dropped_ : dict of str to str
        Columns that are left out, and why.
    takes_arrays_ : bool
        Whether all columns of the training table were numbers.
    feature_names_in_ : ndarray of str
        All columns of the training table.
    n_features_in_ : int

    See Also
    --------
    svmosaic.MosaicClassifier : Contains one if it is fitted to a table.
    """

    def __init__(
        self,
        categorical=None,
        ordered=None,
        drop=None,
        *,
        max_categories=64,
        scale=False,
        task=None,
        random_state=None,
    ):
        self.categorical = categorical
        self.ordered = ordered
        self.drop = drop
        self.max_categories = max_categories
        self.scale = scale
        self.task = task
        self.random_state = random_state

    def fit(self, X, y=None):
        """Learn how to prepare a table.

        Parameters
        ----------
        X : frame of pandas, Polars or PyArrow, or array of objects
        y : array-like of shape (n_samples,), optional
            Needed where a text column has more than `max_categories` categories.
        """
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X, y=None):
        """Fit to a table, and return its features; means of the target are computed out of fold."""
        table = read_frame(X)
        names = [values.name for values in table]
        if not table or not len(table[0].data):
            raise TableError(f"X has no {'rows' if table else 'columns'}")
        for option in ("categorical", "ordered", "drop"):
            if isinstance(getattr(self, option), str):
                raise TypeError(f"{option} must be a list of columns, got {getattr(self, option)!r}")
            for name in getattr(self, option) or ():
                if str(name) not in names:
                    raise TableError(f"{option} names the column {name!r}, but X has {list_columns(names)}")
        self.feature_names_in_, self.n_features_in_ = np.array(names, dtype=object), len(names)
        self.takes_arrays_ = all(values.kind == NUMBER for values in table)
        self.dropped_: dict = {}
        self.columns_, parts = [], []
        for values in table:
            column, features = self._learn(values, y)
            if column is None:
                continue
            # A feature that never changes has nothing to say.
            kept = np.flatnonzero((features != features[0]).any(axis=0))
            if len(kept):
                features_of_it, fill = ([given[f] for f in kept] for given in (column.features, column.fill))
                self.columns_.append(replace(column, features=features_of_it, fill=fill))
                parts.append(features[:, kept])
            else:
                self.dropped_[values.name] = "constant"
        if not parts:
            reasons = ", ".join(f"{name!r} ({reason})" for name, reason in self.dropped_.items())
            raise TableError(f"X has no column to learn from: {reasons}")
        rows = np.concatenate(parts, axis=1)
        self.center_, self.factor_ = None, None
        if not self.scale:
            return rows
        self.center_, self.factor_ = self.scaling_of(rows.mean(axis=0), rows.std(axis=0))
        return (rows - self.center_) * self.factor_

    def transform(self, X):
        """Features of a table. Columns are matched by name: additional ones are ignored, and a missing one is an error.

        Parameters
        ----------
        X : frame, or array of objects with the columns of training in their order

        Returns
        -------
        ndarray of float64
        """
        check_is_fitted(self)
        return self.features_of(X, None if is_frame(X) else list(self.feature_names_in_))

    def shown(self, X) -> np.ndarray:
        """The values of the columns of `groups` as they stand in a table, as objects."""
        by_name, (names, _) = {column.name: column for column in self.columns_}, self.groups
        found = {v.name: v for v in read_frame(X, list(by_name) if is_frame(X) else list(self.feature_names_in_))}
        shown = np.full((len(next(iter(found.values())).data), len(names)), np.nan, dtype=object)
        for c, name in enumerate(names):
            if name in by_name:
                shown[:, c] = found[name].read_as(NUMBER if by_name[name].kind == NUMBER else TEXT)
        return shown

    def get_feature_names_out(self, input_features=None):
        """Names of the features."""
        check_is_fitted(self)
        return np.array([name for column in self.columns_ for name in column.feature_names], dtype=object)

    @property
    def source(self) -> np.ndarray:
        """The index in `columns_` of the column that each feature is made of."""
        return np.repeat(np.arange(len(self.columns_)), [len(column.features) for column in self.columns_])

    @property
    def groups(self) -> tuple[list, np.ndarray]:
        """Names of the columns that explanations and exports have, and which of them each feature is made of.

        These are the columns that features are made of or, if the whole table is numbers, all of its columns: then a
        row can be an array of them.
        """
        names = [column.name for column in self.columns_]
        if not self.takes_arrays_:
            return names, self.source
        every = [str(name) for name in self.feature_names_in_]
        return every, np.array([every.index(name) for name in names])[self.source]

    @property
    def columns(self) -> dict:
        """The indices of the features of each column, by its name."""
        return {c.name: np.flatnonzero(self.source == k).tolist() for k, c in enumerate(self.columns_)}

    def plain(self) -> Preparation:
        """What exporters write."""
        fill = np.array([value for column in self.columns_ for value in column.fill])
        steps = [Affine.of(len(fill), fill=fill)] if not np.isnan(fill).all() else []
        if self.center_ is not None:
            steps = [Affine(fill, self.center_, self.factor_)]
        names, source = self.groups
        kinds = {column.name: column.kind for column in self.columns_}
        return Preparation(
            names=names,
            kinds=[kinds.get(name, NUMBER) for name in names],
            source=source,
            features=[feature for column in self.columns_ for feature in column.features],
            missing={names.index(column.name): MISSING for column in self.columns_ if column.kind == TEXT},
            steps=steps,
            of_table=True,
        )

    def _learn(self, values, y):
        """A column with all features that it may have, and these for its values; None for a column left out."""
        name, given = values.name, self.ordered or {}
        is_named = name in map(str, self.categorical or ())
        if name in map(str, self.drop or ()):
            self.dropped_[name] = "dropped"
            return None, None
        levels = None if is_named else values.levels
        if name in map(str, given):
            if isinstance(given, dict):
                levels = [text_of(level) for level in next(v for k, v in given.items() if str(k) == name)]
            elif values.kind == TEXT:
                levels = values.levels or sorted({text for text in values.data if text is not None})
            else:
                levels = None
        if levels is not None:
            texts = values.read_as(TEXT)
            rank = {level: float(k) for k, level in enumerate(levels)}
            unknown = sorted({text for text in texts if text is not None and text not in rank})
            if unknown:
                raise TableError(
                    f"ordered does not list {unknown[0]!r}, a value of the column {name!r}: add it to the list"
                )
            ranks = [rank[text] for text in texts if text is not None]
            # A missing value has the median, and a feature that says so.
            middle = float(np.median(ranks)) if ranks else 0.0
            column = Column(name, TEXT, [(TABLE, (rank, middle, None)), (GONE, None)], [np.nan, np.nan])
            return column, column.features_of(texts)
        if is_named:
            return self._learn_text(name, values.read_as(TEXT), y, is_named)
        if values.kind == TEXT and looks_like_dates(values.data):
            values = Values(name, DATE, values.read_as(DATE))
        elif values.kind == TEXT and looks_like_numbers(values.data):
            values = Values(name, NUMBER, values.read_as(NUMBER))
        data = values.read_as(values.kind)
        if values.kind == TEXT:
            return self._learn_text(name, data, y, is_named)
        known = data[~np.isnan(data)]
        if values.kind == DATE:
            column = column_of_dates(name, *np.unique(known, return_counts=True), len(known) < len(data))
        else:
            median = float(np.median(known)) if len(known) else 0.0
            column = Column(name, NUMBER, [(VALUE, None), (GONE, None)], [median, np.nan])
        return column, column.features_of(data)

    def _learn_text(self, name, texts, y, is_named):
        counts = Counter(MISSING if text is None else text for text in texts)
        known, distinct = len(texts) - counts[MISSING], len(counts) - (MISSING in counts)
        if not is_named and is_identifier(distinct, known):
            self.dropped_[name] = "identifier"
            are_numbers = all(DECIMAL.fullmatch(text.strip()) for text in texts if text is not None)
            warnings.warn(
                f"column {name!r} is left out: it has {distinct} distinct values in {known} rows, so it looks like an "
                f"identifier; {'convert it if it is a number written as text, ' if are_numbers else ''}pass "
                f"categorical=[{name!r}] to use it anyway, or drop=[{name!r}] to silence this warning",
                UserWarning,
                stacklevel=2,
            )
            return None, None
        if len(counts) <= self.max_categories or y is None:
            column = column_of_categories(name, counts, self.max_categories)
            return column, column.features_of(texts)
        # The mean of the target for each category, out of fold for these rows.
        task = self.task or ("regression" if type_of_target(y).startswith("continuous") else "classification")
        if task == "classification":
            encoder = LabelEncoder().fit(np.asarray(y))
            targets, classes = [encoder.transform(np.asarray(y))], list(encoder.classes_)
            kind = "binary" if len(classes) == 2 else "multiclass"
        else:
            values = numbers_of("regression", y)
            targets, classes, kind = list(values.reshape(len(values), -1).T), [], "continuous"
        texts = np.array([[MISSING if t is None else t] for t in texts], dtype=object)
        most = int(np.bincount(targets[0]).max()) if classes else len(texts)
        folds = (StratifiedKFold if classes and most > 1 else KFold)(
            max(2, min(FOLDS, most)), shuffle=True, random_state=self.random_state
        )
        encoders = [TargetEncoder(target_type=kind, cv=folds).set_output(transform="default") for _ in targets]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a class with fewer rows than folds
            found = [encoder.fit_transform(texts, target) for encoder, target in zip(encoders, targets, strict=True)]
        features = np.concatenate(found, axis=1)
        texts = list(map(str, encoders[0].categories_[0]))
        levels = (classes or [f"y{c}" for c in range(len(targets))]) if features.shape[1] > 1 else [None]
        means = [mean for encoder in encoders for mean in np.atleast_1d(encoder.target_mean_)]
        lines = [line for encoder in encoders for line in encoder.encodings_]
        tables = [
            (TABLE, (dict(zip(texts, line.tolist(), strict=True)), float(mean), None if level is None else str(level)))
            for line, mean, level in zip(lines, means, levels, strict=True)
        ]
        return Column(name, TEXT, tables, [np.nan] * len(tables)), features

    def scaling_of(self, mean, spread):
        """Center and factor of the features, from their means and standard deviations; zeros and ones stay so."""
        scaled = np.array([form != CATEGORY for column in self.columns_ for form, _ in column.features])
        return np.where(scaled, mean, 0.0), np.where(scaled, 1.0 / np.maximum(spread, np.finfo(float).tiny), 1.0)


def is_identifier(distinct, known) -> bool:
    """Whether so many different texts in so many rows only name the rows."""
    return distinct >= FEWEST_IDENTIFIERS and distinct > IDENTIFIER_SHARE * known


def column_of_categories(name, counts, most) -> Column:
    """A text column with a feature for each of its categories; of more than `most`, for the frequent ones."""
    if len(counts) > most:
        # Of equally frequent ones the choice should not depend on the order of the rows.
        ranked = sorted(counts, key=lambda text: (-counts[text], text))
        counts = [text for text in ranked[:most] if counts[text] > 1]
    categories = [(CATEGORY, str(text)) for text in sorted(counts)]
    return Column(name, TEXT, categories, [np.nan] * len(categories))


def column_of_dates(name, days, counts, some_missing) -> Column:
    """A column of dates (those that occur, and how often) with its parts, those that never change excepted."""
    forms = ["days", *PARTS]
    parts = [part_of_date(form, days, np.floor) for form in forms]
    kept = [f for f, part in enumerate(parts) if len(part) and (part != part[0]).any()]
    features = [(forms[f], None) for f in kept] + [(GONE, None)] * some_missing
    # The median of a part over all rows, of which each date stands for several.
    fill, ranks = [], np.array([(counts.sum() - 1) // 2, counts.sum() // 2])
    for part in (parts[f] for f in kept):
        order = np.argsort(part, kind="stable")
        fill.append(float(np.mean(part[order][np.searchsorted(np.cumsum(counts[order]), ranks, side="right")])))
    return Column(name, DATE, features, fill + [np.nan] * some_missing)
