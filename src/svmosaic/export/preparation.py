"""What happens to a row before a model sees it, as plain arrays that every exporter can write."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

# What is stripped from both ends of text that came from a text file. Not all that Unicode calls white space: this much
# means the same in Python, JavaScript and the regular expressions of ONNX.
BLANKS = " \t"
# What a feature is, by its form and a detail: the number itself; 1 if the value is missing; "days" or a part of a date;
# 1 if the text is a category, which is the detail; or a number looked up for the text, by a detail of (numbers by text,
# that of other text, the name of the number if a column has several).
VALUE, GONE, CATEGORY, TABLE = "value", "missing", "category", "table"

# A date column gives its days (the time elapsed) and these parts of the calendar.
PARTS = ("month", "day", "weekday", "hour")


class PreparationError(ValueError):
    """A step before the model cannot be exported.

    See Also
    --------
    svmosaic.export.onnx.to_onnx : Writes a model with the steps before it.
    """


@dataclass(frozen=True, eq=False)
class Affine:
    """z = ((x, or fill if x is missing) - center) * factor, feature by feature.

    Attributes
    ----------
    fill : ndarray of shape (n_features,)
        NaN if a missing value stays missing.
    center, factor : ndarray of shape (n_features,)
    """

    fill: np.ndarray
    center: np.ndarray
    factor: np.ndarray

    @classmethod
    def of(cls, n_features, *, fill=np.nan, center=0.0, factor=1.0) -> "Affine":
        """From arrays or numbers for all features, or nothing if nothing is done."""
        values = (np.broadcast_to(np.asarray(v, dtype=np.float64), (n_features,)) for v in (fill, center, factor))
        return cls(*values)

    @property
    def fills(self) -> bool:
        """Whether missing values are replaced."""
        return not np.isnan(self.fill).all()

    @property
    def moves(self) -> bool:
        """Whether a value that is there changes."""
        return bool((self.center != 0).any() or (self.factor != 1).any())


@dataclass(frozen=True, eq=False)
class Preparation:
    """Columns of a table, and the features that are made of them.

    Attributes
    ----------
    names : list of str
        Of the columns.
    kinds : list of {"number", "text", "date"}
        Of the columns. A date is given as its days since 1970-01-01, a number with a fraction for the time of day.
    source : ndarray of int, shape (n_features,)
        The column that each feature comes from.
    features : list of (form, detail)
        The features; see `VALUE` and what stands next to it.
    missing : dict of int to str
        What missing text of a column counts as.
    steps : list of Affine
        Over the features, one after another.
    missing_texts : list of str or None
        If given, text is stripped of `BLANKS`, and counts as missing if it is then one of these.
    of_table : bool
        Whether it is that of a `TablePreparation`, which knows what its columns hold.
    """

    names: list
    kinds: list
    source: np.ndarray
    features: list
    missing: dict = field(default_factory=dict)
    steps: list = field(default_factory=list)
    missing_texts: list | None = None
    of_table: bool = False

    @property
    def takes_columns_as_they_are(self) -> bool:
        """Whether the features are the columns, one by one, before the steps."""
        return (
            self.takes_numbers and are_values(self.features) and np.array_equal(self.source, np.arange(len(self.names)))
        )

    @property
    def takes_numbers(self) -> bool:
        """Whether all columns are numbers, so that a row is an array of them."""
        return set(self.kinds) <= {"number"}

    def lines_of_text(self, column) -> tuple[np.ndarray, list, np.ndarray]:
        """The features of a column of text: their places, the texts it knows, and a line of features for each.

        Two lines more are those of missing text and of text that it does not know.
        """
        places = np.flatnonzero(self.source == column)
        features, missing = [self.features[f] for f in places], self.missing.get(column)
        texts = known_texts(features)
        return places, texts, lines_of_features(features, [*texts, missing, None], missing)

    def features_of(self, column, values) -> np.ndarray:
        """The features of a column, before all steps, at some values: texts, or numbers with NaN for missing ones."""
        if self.kinds[column] == "text":
            _, texts, lines = self.lines_of_text(column)
            place = {text: k for k, text in enumerate([*texts, self.missing.get(column)])}
            return lines[[place.get(value, len(texts) + 1) for value in values]]
        values = np.asarray(values, dtype=np.float64)
        forms = [self.features[f][0] for f in np.flatnonzero(self.source == column)]
        found = {VALUE: values, GONE: np.isnan(values).astype(np.float64)}
        features = [found[form] if form in found else part_of_date(form, values, np.floor) for form in forms]
        return np.array(features).reshape(len(forms), len(values)).T  # none of a column that was left out


def are_values(features) -> bool:
    """Whether all features are the numbers of their columns."""
    return all(form == VALUE for form, _ in features)


def known_texts(features) -> list:
    """The texts that features of a column of text tell apart."""
    known = ([detail] if form == CATEGORY else detail[0] if form == TABLE else () for form, detail in features)
    return list(dict.fromkeys(text for texts in known for text in texts))


def lines_of_features(features, texts, missing) -> np.ndarray:
    """The features of a column at some texts, one line each; None is text that training did not see."""
    lines = np.zeros((len(texts), len(features)))
    for f, (form, detail) in enumerate(features):
        if form == TABLE:
            entries, otherwise, _ = detail
            lines[:, f] = [entries.get(text, otherwise) for text in texts]
        else:
            wanted = missing if form == GONE else detail
            lines[:, f] = [text is not None and text == wanted for text in texts]
    return lines


def part_of_date(part, days, floor):
    """Days since 1970-01-01 themselves ("days"), or a part of the date.

    Month and day count from 1, the weekday from 0 (Monday); the hour has a fraction. Exporters pass days that write
    the four operations down, and `floor` is that of their type.
    """
    if part == "days":
        return days
    whole = floor(days)
    if part == "hour":
        return (days - whole) * 24.0
    if part == "weekday":
        since = whole + 3.0  # 1970-01-01 was a Thursday
        return since - floor(since / 7.0) * 7.0
    # In years that begin in March, the day of the year alone says the month: leap days come last.
    since = whole + 719468.0  # since 0000-03-01
    cycle = since - floor(since / 146097.0) * 146097.0  # days in 400 years
    leap = floor(cycle / 36524.0) - floor(cycle / 1460.0) - floor(cycle / 146096.0)
    year = floor((cycle + leap) / 365.0)
    day = cycle - (year * 365.0 + floor(year / 4.0) - floor(year / 100.0))
    month = floor((day * 5.0 + 2.0) / 153.0)
    if part == "day":
        return day - floor((month * 153.0 + 2.0) / 5.0) + 1.0
    return month + 3.0 - floor(month / 10.0) * 12.0


def columns_as_features(names) -> Preparation:
    """Columns of numbers that are features as they are."""
    names = [str(name) for name in names]
    return Preparation(names, ["number"] * len(names), np.arange(len(names)), [(VALUE, None)] * len(names))


def read_preparation(step, names, kinds=None, *, missing_texts=None) -> Preparation:
    """The preparation that a fitted transformer is; a `PreparationError` names a step that is not known.

    Known are pipelines and column transformers of imputers, scalers and encoders. What the columns hold ("number" or
    "text") is found from the encoders if not given.
    """
    start = columns_as_features(names)
    read = _read(step, start)
    if read.of_table:
        return replace(read, missing_texts=missing_texts)
    if kinds is None:
        text = {int(column) for column, (form, _) in zip(read.source, read.features, strict=True) if form != VALUE}
        kinds = ["text" if column in text else "number" for column in range(len(names))]
    for column, kind in enumerate(kinds):
        places = np.flatnonzero(read.source == column)
        if kind == "text" and any(read.features[f][0] == VALUE for f in places):
            raise PreparationError(f"the column {start.names[column]!r} holds text that no step encodes")
        if kind == "text" and len(places) and places[-1] - places[0] >= len(places):
            raise PreparationError(f"the column {start.names[column]!r} is encoded by two steps with others in between")
    return replace(read, kinds=list(kinds), missing_texts=missing_texts)


def _read(step, start: Preparation) -> Preparation:
    """The preparation `start` with one more transformer behind it."""
    name = type(step).__name__
    if name == "Pipeline":
        for _, inner in step.steps:
            start = _read(inner, start)
        return start
    if isinstance(step, str):
        if step == "passthrough":
            return start
        raise PreparationError(f"the step {step!r} cannot be exported")
    if name not in _READERS:
        raise PreparationError(f"the preparation {name} cannot be exported; known are {', '.join(_READERS)}")
    return _READERS[name](step, start)


def _column_transformer(step, start) -> Preparation:
    if start.of_table:
        raise PreparationError("a ColumnTransformer behind a TablePreparation cannot be exported")
    parts = []
    for _, transformer, columns in step.transformers_:
        places = _places(columns, start.names)
        if not (isinstance(transformer, str) and transformer == "drop") and len(places):
            steps = [Affine(step.fill[places], step.center[places], step.factor[places]) for step in start.steps]
            features = [start.features[f] for f in places]
            parts.append(
                _read(transformer, replace(start, source=start.source[places], features=features, steps=steps))
            )
    if any(part.of_table for part in parts):
        raise PreparationError("a TablePreparation inside a ColumnTransformer cannot be exported")
    if not parts:
        raise PreparationError("the ColumnTransformer keeps no column")
    n_steps = max(len(part.steps) for part in parts)
    padded = [part.steps + [Affine.of(len(part.source))] * (n_steps - len(part.steps)) for part in parts]
    steps = [
        Affine(*(np.concatenate([getattr(s, name) for s in level]) for name in ("fill", "center", "factor")))
        for level in zip(*padded, strict=True)
    ]
    missing = {column: text for part in parts for column, text in part.missing.items()}
    source = np.concatenate([part.source for part in parts])
    features = [feature for part in parts for feature in part.features]
    return replace(start, source=source, features=features, missing=missing, steps=steps)


def _places(columns: Any, names) -> np.ndarray:
    """Places of columns given as places, names, a mask, a slice, or one of them."""
    if isinstance(columns, slice) and not any(isinstance(end, str) for end in (columns.start, columns.stop)):
        return np.arange(len(names))[columns]
    if isinstance(columns, slice) or callable(columns):
        raise PreparationError(f"the columns {columns!r} of the ColumnTransformer must be listed one by one")
    columns = np.atleast_1d(np.asarray(columns))
    if columns.dtype.kind == "b":
        return np.flatnonzero(columns)
    if columns.dtype.kind in "iu":
        return np.where(columns < 0, columns + len(names), columns)
    return np.array([names.index(str(column)) for column in columns], dtype=int)


def _imputer(step, start) -> Preparation:
    if step.add_indicator:
        raise PreparationError("SimpleImputer(add_indicator=True) cannot be exported")
    statistics = np.asarray(step.statistics_)
    if len(statistics) != len(start.source):
        raise PreparationError("the SimpleImputer drops columns: use keep_empty_features=True")
    if statistics.dtype.kind in "OU" and not all(isinstance(value, (int, float)) for value in statistics):
        texts = {int(column): str(text) for column, text in zip(start.source, statistics, strict=True)}
        return replace(start, missing={**start.missing, **texts})
    if not (isinstance(step.missing_values, float) and np.isnan(step.missing_values)):
        raise PreparationError(f"a SimpleImputer of numbers must have missing_values=NaN, got {step.missing_values!r}")
    statistics = statistics.astype(np.float64)
    if np.isnan(statistics).any():
        raise PreparationError("the SimpleImputer drops columns: use keep_empty_features=True")
    return _then(start, Affine.of(len(statistics), fill=statistics))


def _scaler(step, start) -> Preparation:
    if getattr(step, "clip", False):
        raise PreparationError("MinMaxScaler(clip=True) cannot be exported")
    name, factor = type(step).__name__, 1.0 if step.scale_ is None else 1.0 / step.scale_
    if name == "MinMaxScaler":
        center, factor = -step.min_ / step.scale_, step.scale_
    elif name == "StandardScaler":  # which may know a mean that it does not subtract
        center = step.mean_ if step.with_mean else 0.0
    else:
        center = getattr(step, "center_", None)
    return _then(start, Affine.of(len(start.source), center=0.0 if center is None else center, factor=factor))


def _then(start, step) -> Preparation:
    """With an affine step behind the others, joined with the last if that only replaces missing values."""
    if start.steps and not start.steps[-1].moves and not step.fills:
        joined = Affine(start.steps[-1].fill, step.center, step.factor)
        return replace(start, steps=[*start.steps[:-1], joined])
    return replace(start, steps=[*start.steps, step])


def _one_hot(step, start) -> Preparation:
    _check_encoder(step, start)
    if step.drop is not None or getattr(step, "_infrequent_enabled", False):
        raise PreparationError("OneHotEncoder with drop, min_frequency or max_categories cannot be exported")
    source = np.repeat(start.source, [len(categories) for categories in step.categories_]).astype(int)
    features = [(CATEGORY, str(text)) for categories in step.categories_ for text in categories]
    return replace(start, source=source, features=features)


def _ordinal(step, start) -> Preparation:
    _check_encoder(step, start)
    unknown = np.nan if step.unknown_value is None else float(step.unknown_value)
    if np.isnan(unknown):
        raise PreparationError(
            'an OrdinalEncoder needs handle_unknown="use_encoded_value" and a number as unknown_value for an export'
        )
    if getattr(step, "_infrequent_enabled", False):
        raise PreparationError("OrdinalEncoder with min_frequency or max_categories cannot be exported")
    ranks = ({str(text): float(rank) for rank, text in enumerate(categories)} for categories in step.categories_)
    return replace(start, features=[(TABLE, (entries, unknown, None)) for entries in ranks])


def _check_encoder(step, start):
    """Refuse an encoder that does not see columns as they are, or of categories that are not text."""
    if start.steps or not are_values(start.features):
        raise PreparationError(f"{type(step).__name__} behind a scaler or another encoder cannot be exported")
    for column, categories in zip(start.source, step.categories_, strict=True):
        if not all(isinstance(value, str) for value in categories):
            name = start.names[column]
            raise PreparationError(f"the {type(step).__name__} of {name!r} has categories that are not text")


def _table(step, start) -> Preparation:
    if not start.takes_columns_as_they_are or start.steps:
        raise PreparationError("a TablePreparation behind other steps cannot be exported")
    return step.plain()


def _function(step, start) -> Preparation:
    if step.func is not None:
        raise PreparationError("a FunctionTransformer with a function cannot be exported")
    return start


_READERS = {
    "ColumnTransformer": _column_transformer,
    "SimpleImputer": _imputer,
    "StandardScaler": _scaler,
    "MaxAbsScaler": _scaler,
    "RobustScaler": _scaler,
    "MinMaxScaler": _scaler,
    "OneHotEncoder": _one_hot,
    "OrdinalEncoder": _ordinal,
    "TablePreparation": _table,
    "FunctionTransformer": _function,  # what a ColumnTransformer makes of "passthrough"
}
