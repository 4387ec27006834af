"""One column of a table and the features that are made of it, once that is learned. Needs numpy alone."""

from dataclasses import dataclass, field

import numpy as np

from svmosaic.export.calendar import part_of_date
from svmosaic.table.frames import NUMBER, TEXT, check_numbers

MISSING = "(missing)"  # the category of text that is not there

# What a feature is: the number itself ("value"), 1 if it is missing ("missing"), days or a part of a date, 1 if the
# text is a category ("category", with the text), or a number looked up for the text ("table", with the index of it).
VALUE, GONE, CATEGORY, TABLE = "value", "missing", "category", "table"


@dataclass(frozen=True, eq=False)
class Column:
    """A column, and how its values become features.

    Attributes
    ----------
    name : str
    kind : {"number", "text", "date"}
    features : list of (form, detail)
        See above.
    fill : list of float
        What each feature is if the value is missing; NaN for categories and tables, which know missing text.
    table : dict of str to list of float
        Numbers looked up for text: shares of the target, or a rank.
    otherwise : list of float
        Those of text that training did not see.
    levels : list of str
        Names of these numbers, for the names of features; empty if there is one.
    """

    name: str
    kind: str
    features: list
    fill: list
    table: dict = field(default_factory=dict)
    otherwise: list = field(default_factory=list)
    levels: list = field(default_factory=list)

    @property
    def feature_names(self) -> list[str]:
        """Names of the features, after the column."""
        return [self._named(form, detail) for form, detail in self.features]

    def _named(self, form, detail):
        if form == VALUE or (form == TABLE and not self.levels):
            return self.name
        if form == GONE:
            return f"{self.name} is missing"
        if form in (CATEGORY, TABLE):
            return f"{self.name}_{detail if form == CATEGORY else self.levels[detail]}"
        return f"{self.name}: {form}"

    def read(self, values):
        """The values of the column in the form of its kind, validated."""
        if self.kind == TEXT:
            return values.as_text()
        data = values.as_numbers() if self.kind == NUMBER else values.as_dates()
        check_numbers(data, self.name)
        return data

    def transform(self, data, out):
        """Write the features of values, as `read` returns them, into `out`, of shape (n_rows, n_features)."""
        if self.kind != TEXT:
            gone = np.isnan(data)
            for f, (form, _) in enumerate(self.features):
                values = gone if form == GONE else data if form == VALUE else part_of_date(form, data, np.floor)
                out[:, f] = values if form == GONE or not gone.any() else np.where(gone, self.fill[f], values)
            return
        place = {text: k for k, text in enumerate(self.texts())}
        codes = np.fromiter((place.get(MISSING if t is None else t, -1) for t in data), dtype=np.intp, count=len(data))
        out[:] = self.lines()[codes]

    def texts(self) -> list[str]:
        """All texts that training saw."""
        categories = [detail for form, detail in self.features if form == CATEGORY]
        gone = [MISSING] if any(form == GONE for form, _ in self.features) else []
        return list(dict.fromkeys([*categories, *self.table, *gone]))

    def lines(self) -> np.ndarray:
        """The features of each of `texts`, and last those of text that training did not see."""
        texts = [*self.texts(), None]
        lines = np.zeros((len(texts), len(self.features)))
        for f, (form, detail) in enumerate(self.features):
            if form == CATEGORY:
                lines[texts.index(detail), f] = 1.0
            elif form == GONE:
                lines[texts.index(MISSING), f] = 1.0
            else:
                lines[:, f] = [self.table.get(text, self.otherwise)[detail] for text in texts]
        return lines
