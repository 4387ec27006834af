"""CSV and TSV, also compressed."""

import csv
import io
import warnings

import pandas as pd

from svmosaic.table.formats._table import TableError, check_names, find_column, is_number, name_of, opened, read_line


class _Lines:
    """Lines of a text, which keeps those of the records to come."""

    def __init__(self, file, name):
        self.file, self.name, self.kept, self.number = file, name, [], 0

    def __iter__(self):
        return self

    def __next__(self):
        try:
            line = read_line(self.file, self.name, self.number + 1)
        except UnicodeDecodeError as error:
            where = f"after line {self.number}" if self.number else "from its first line on"
            raise TableError(
                f"{self.name} is not text in UTF-8 ({where}): save it as UTF-8, for example by iconv -f LATIN1 -t UTF-8"
            ) from error
        if not line:
            raise StopIteration
        self.number += 1
        self.kept.append(line)
        return line


NO_HEADER = "if the first line is data, pass --no-header"


def csv_frames(path, rows, header, delimiter, dialect, text=(), kept=(), label=None, progress=None):
    """Frames of at most `rows` records (all in one if that is None), and the missing texts of the label.

    The csv module cuts the text into records, which is how a malformed line and its number are found; pandas' parser
    then reads the text of the records.

    Parameters
    ----------
    delimiter : str, optional
    dialect : Dialect
    text, kept, label
        As for `read_table`.
    """
    name = name_of(path)
    with opened(path, progress) as (raw, report):
        wrapped = io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")
        try:
            lines = _Lines(wrapped, name)
            first = next(lines, None)
            if first is None:
                raise TableError(f"{name} is empty")
            delimiter = delimiter or _delimiter(first, dialect.decimal)
            reader = csv.reader(_again(lines), delimiter=delimiter, strict=True, skipinitialspace=True)
            columns = [field.strip() for field in _record(reader, lines)]
            if header:
                lines.kept.clear()
                check_names(columns, name, f"; {NO_HEADER}" if any(map(dialect.is_number, columns)) else "")
            else:
                columns = [f"x{i}" for i in range(len(columns))]
            parse = _Parser(columns, delimiter, dialect, text, kept, label, name)
            parts, count = (["".join(lines.kept)], 1) if not header else ([], 0)
            lines.kept.clear()
            suspicious = header
            while (record := _record(reader, lines)) is not None:
                taken = "".join(lines.kept)
                lines.kept.clear()
                if not taken.strip():
                    continue
                if len(record) != len(columns):
                    raise TableError(
                        f"{name}, line {lines.number}: {len(record)} values, but there are {len(columns)} columns"
                    )
                parts.append(taken if taken.endswith("\n") else taken + "\n")
                count += 1
                if count == rows:
                    frame, missing = parse("".join(parts))
                    if suspicious:
                        _check_header(frame, dialect, name)
                    yield frame, missing
                    parts, count, suspicious = [], 0, False
                    report()
            if count:
                frame, missing = parse("".join(parts))
                if suspicious:
                    _check_header(frame, dialect, name)
                yield frame, missing
        finally:
            wrapped.detach()  # or closing the wrapper would close the standard input


def _again(lines):
    """All lines, including the first, which has already been read."""
    yield lines.kept[0]
    yield from lines


def _record(reader, lines):
    try:
        return next(reader, None)
    except csv.Error as error:
        raise TableError(f"{lines.name}, line {lines.number}: {error}") from error


def _delimiter(line, decimal):
    """The first of these in the first line: a comma (last if it is in numbers), a semicolon, a tab."""
    marks = (";", "\t", ",") if decimal == "," else (",", ";", "\t")
    return next((mark for mark in marks if mark in line), ",")


def _check_header(frame, dialect, name):
    """Warn if the names of the columns look like values of theirs."""
    columns = list(frame.columns)
    if all(column.isdecimal() for column in columns) and int(columns[-1]) - int(columns[0]) == len(columns) - 1:
        return  # they are numbered
    if all(dialect.is_number(c) if is_number(frame[c]) else frame[c].isin([c]).any() for c in columns):
        shown = ", ".join(columns[:5]) + (", ..." if len(columns) > 5 else "")
        warnings.warn(f"{name}: the names of the columns look like values ({shown}); {NO_HEADER}", stacklevel=2)


class _Parser:
    """Frames from the text of some records."""

    def __init__(self, columns, delimiter, dialect, text, kept, label, name):
        self.columns, self.dialect, self.name = columns, dialect, name
        # A label is read as text: whether it holds numbers is decided by what is missing in it.
        self.label = None if label is None else find_column(columns, label, name)
        labels = {column for column in map(self._find, kept) if column is not None}
        self.as_text = {column for column in columns if column in text} | labels
        self.options = dict(
            header=None, names=columns, delimiter=delimiter, index_col=False, low_memory=False, skipinitialspace=True,
            keep_default_na=False, decimal=dialect.decimal, thousands=dialect.thousands,
            na_values={c: dialect.missing_labels if c in labels else dialect.missing for c in columns},
        )  # fmt: skip
        if self.label is not None:
            self.options["na_values"][self.label] = [""]

    def _find(self, label):
        """The column of a label, by name or place; None if there is none, which is no fault of a table to classify."""
        try:
            return find_column(self.columns, label)
        except TableError:
            return None

    def __call__(self, content):
        """A frame, and how many rows hold each text that is missing in the label."""
        frame = self._parse(content, dtype=dict.fromkeys(self.as_text | ({self.label} - {None}), str))
        # pandas turns TRUE and true alike into True: such columns are text like any other.
        changed = [
            c for c in self.columns if not is_number(frame[c]) and not isinstance(frame[c].dtype, pd.StringDtype)
        ]
        if changed:
            again = self._parse(content, usecols=changed, dtype=str)
            frame[changed] = again[changed]
        if self.label is None:
            return frame, {}
        label, missing = self.dialect.labels(frame[self.label], as_text=self.label in self.as_text)
        frame[self.label] = label
        return frame, missing

    def _parse(self, content, **options):
        try:
            return pd.read_csv(io.StringIO(content), **self.options, **options)
        except (pd.errors.ParserError, ValueError, OverflowError) as error:
            raise TableError(f"{self.name} could not be read: {error}") from error
