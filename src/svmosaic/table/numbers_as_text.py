"""Columns that are text because of a few values, or because of how their numbers are written."""

import re
from dataclasses import dataclass

import pandas as pd

from svmosaic.table.preparation import TEXT

_GROUPED = re.compile(r"[-+]?\d{1,3}(?:([., ' ])\d{3})+(?:[.,]\d+)?")
_COMMA = re.compile(r"[-+]?\d*,\d+(?:[eE][-+]?\d+)?")


@dataclass
class _Seen:
    values: int = 0
    numbers: int = 0
    row: int = 0
    text: str | None = None
    grouped: int = 0
    comma: int = 0
    example: str = ""


class NumbersAsText:
    """Counts numbers in columns of text, over one table or over its chunks, read in a dialect."""

    def __init__(self, dialect):
        self.dialect = dialect
        self.columns: dict[str, _Seen] = {}

    def add(self, X, kinds, first_row=0):
        """Look at some rows, before which the table has `first_row`; what is no frame has no text."""
        if not isinstance(X, pd.DataFrame):
            return
        for name, kind in zip(X.columns, kinds, strict=True):
            seen = self.columns.setdefault(str(name), _Seen())
            known = X[name].reset_index(drop=True).dropna()
            seen.values += len(known)
            if kind != TEXT:
                seen.numbers += len(known)
                continue
            others = known[pd.to_numeric(known, errors="coerce").isna()]
            seen.numbers += len(known) - len(others)
            if len(others) == 0:
                continue
            if seen.text is None:
                seen.row, seen.text = first_row + int(others.index[0]) + 1, str(others.iloc[0])
            grouped, comma = (others.str.fullmatch(mark) for mark in (_GROUPED, _COMMA))
            seen.grouped += int(grouped.sum())
            seen.comma += int(comma.sum())
            if not seen.example and (grouped | comma).any():
                seen.example = str(others[grouped | comma].iloc[0])

    def notes(self, names) -> dict:
        """A sentence for each of the columns that look like numbers."""
        notes = {}
        for name in names:
            seen = self.columns.get(name)
            if seen is None or seen.text is None:
                continue
            written = max(seen.grouped, seen.comma)
            if 2 * (seen.numbers + written) < seen.values:
                continue
            if written <= 0.5 * (seen.values - seen.numbers):
                notes[name] = (
                    f"column {name!r} is taken as text: {seen.numbers} of {seen.values} values are numbers; row "
                    f"{seen.row} is {seen.text!r} (--na {seen.text!r} makes it missing)"
                )
                continue
            remedy, mark = "pass --decimal ,", _GROUPED.fullmatch(seen.example)
            if mark is not None and seen.comma <= seen.grouped:
                both = " (or --decimal ,)" if _COMMA.fullmatch(seen.example) else ""
                remedy = f"pass --thousands '{mark[1]}'{both}"
            notes[name] = f"column {name!r} is taken as text, but holds numbers such as {seen.example!r}: {remedy}"
        return notes
