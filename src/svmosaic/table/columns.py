"""Fitted columns of a table: the features of frames, and of rows given as dicts. Needs NumPy alone."""

import math
from dataclasses import dataclass

import numpy as np

from svmosaic.export.preparation import CATEGORY, GONE, TABLE, VALUE, known_texts, lines_of_features, part_of_date
from svmosaic.table.formats import TableError
from svmosaic.table.frames import CONTAINERS, DATE, NUMBER, TEXT, days_of, is_missing, number_of, read_frame, text_of

MISSING = "(missing)"  # the category of text that is not there


@dataclass(frozen=True, eq=False)
class Column:
    """A column, and how its values become features."""

    name: str
    kind: str  # "number", "text" or "date"
    features: list  # (form, detail) as in `Preparation`
    fill: list  # what each is if the value is missing; NaN for categories and tables, which know missing text

    @property
    def feature_names(self) -> list[str]:
        """Names of the features, after the column."""
        names = []
        for form, detail in self.features:
            level = detail[2] if form == TABLE else detail
            if form == GONE:
                names.append(f"{self.name} is missing")
            elif form in (VALUE, CATEGORY, TABLE):
                names.append(self.name if level is None else f"{self.name}_{level}")
            else:
                names.append(f"{self.name}: {form}")
        return names

    def features_of(self, data) -> np.ndarray:
        """The features of values, as `Values.read_as` returns them for the kind: shape (n_rows, n_features)."""
        if self.kind == TEXT:
            lines, otherwise = self.lines()
            place = {text: k for k, text in enumerate(lines)}
            place[None] = place[MISSING]
            codes = np.array([place.get(text, -1) for text in data], dtype=np.intp)
            return np.array([*lines.values(), otherwise])[codes]
        features, gone = np.empty((len(data), len(self.features))), np.isnan(data)
        for f, (form, _) in enumerate(self.features):
            if form == GONE:
                features[:, f] = gone
            else:
                values = data if form == VALUE else part_of_date(form, data, np.floor)
                features[:, f] = np.where(gone, self.fill[f], values) if gone.any() else values
        return features

    def lines(self) -> tuple[dict, np.ndarray]:
        """The features of each text that training saw, and those of any other."""
        texts = [*known_texts(self.features), MISSING]
        lines = lines_of_features(self.features, [*texts, None], MISSING)
        return dict(zip(texts, lines, strict=False)), lines[-1]


class PreparedColumns:
    """The one fitted form of a preparation: columns, and a scaling behind their features if there is one."""

    def __init__(self, columns, center=None, factor=None):
        self.columns_, self.center_, self.factor_ = columns, center, factor

    def features_of(self, X, names=None) -> np.ndarray:
        """The features of a table: a frame, or an array of objects whose columns have these names."""
        found = {values.name: values for values in read_frame(X, names or [column.name for column in self.columns_])}
        rows = np.empty((len(found[self.columns_[0].name].data), sum(len(column.features) for column in self.columns_)))
        if len(rows) == 0:
            raise TableError("X has no rows")
        end = 0
        for column in self.columns_:
            start, end = end, end + len(column.features)
            rows[:, start:end] = column.features_of(found[column.name].read_as(column.kind))
        return rows if self.center_ is None else (rows - self.center_) * self.factor_

    def row_function(self):
        """A function from a row, as a dict by column, to its features, without pandas and in a few microseconds."""
        center, factor = self.center_, self.factor_
        numbers, texts, dates, n_features = [], [], [], 0
        for column in self.columns_:
            place = slice(n_features, n_features + len(column.features))
            n_features = place.stop
            if column.kind == TEXT:
                texts.append((column.name, place, *column.lines()))
            elif column.kind == NUMBER:
                at = {form: place.start + f for f, (form, _) in enumerate(column.features)}
                fills = [v for v, (form, _) in zip(column.fill, column.features, strict=True) if form == VALUE]
                numbers.append((column.name, at.get(VALUE), at.get(GONE), fills[0] if fills else 0.0))
            else:
                dates.append((column.name, place, list(zip(column.features, column.fill, strict=True))))
        wanted = {NUMBER: "a number,", TEXT: "text,", DATE: "a date, text such as 2026-01-31"}

        def refuse(name, value, kind):
            raise ValueError(
                f"column {name!r} must be {wanted[kind]} or None for a missing value, got {value!r}"
            ) from None

        def features_of_row(row):
            x = np.zeros(n_features)
            try:
                for name, at, gone, fill in numbers:
                    value = row[name]
                    if type(value) is not float:
                        try:
                            value = number_of(value)
                        except (TypeError, ValueError):
                            refuse(name, value, NUMBER)
                    if value != value:
                        value = fill
                        if gone is not None:
                            x[gone] = 1.0
                    if at is not None:
                        x[at] = value
                for name, place, lines, otherwise in texts:
                    value = row[name]
                    if type(value) is not str or not value:
                        if isinstance(value, CONTAINERS):
                            refuse(name, value, TEXT)
                        value = MISSING if is_missing(value) else text_of(value)
                    x[place] = lines.get(value, otherwise)
                for name, place, features in dates:
                    try:
                        days = days_of(row[name])
                    except (TypeError, ValueError):
                        refuse(name, row[name], DATE)
                    if days != days:
                        x[place] = [1.0 if form == GONE else fill for (form, _), fill in features]
                    else:  # of a single number the floor of numpy takes ten times as long
                        x[place] = [
                            0.0 if form == GONE else part_of_date(form, days, math.floor) for (form, _), _ in features
                        ]
            except KeyError:
                named = {str(name): value for name, value in row.items()}  # of a frame whose columns are numbers, say
                if named.keys() != row.keys():
                    return features_of_row(named)
                lacking = [column.name for column in self.columns_ if column.name not in row]
                if not lacking:
                    raise
                raise ValueError(
                    f"the row lacks {', '.join(map(repr, lacking))}; pass None for a missing value"
                ) from None
            return x if center is None else (x - center) * factor

        return features_of_row
