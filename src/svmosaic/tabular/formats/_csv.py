"""CSV and TSV, also gzipped."""

import csv
import io

import pandas as pd

from svmosaic.tabular.formats._table import TableError, check_names, is_number, name_of, opened


class _Lines:
    """Lines of a text, which keeps those of the records to come."""

    def __init__(self, file, name):
        self.file, self.name, self.kept, self.number = file, name, [], 0

    def __iter__(self):
        return self

    def __next__(self):
        try:
            line = next(self.file)
        except UnicodeDecodeError as error:
            raise TableError(f"{self.name} is not text in UTF-8 (after line {self.number})") from error
        self.number += 1
        if "\0" in line:
            raise TableError(f"{self.name} is not text: line {self.number} holds a zero byte")
        self.kept.append(line)
        return line


def csv_frames(path, rows, header, delimiter, text, progress=None):
    """Frames of at most `rows` records; all in one if that is None.

    The csv module cuts the text into records, which is what tells a malformed line and its number; pandas' parser
    then reads the text of the records.
    """
    name = name_of(path)
    with opened(path, progress) as (raw, report):
        wrapped = io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")
        try:
            lines = _Lines(wrapped, name)
            first = next(lines, None)
            if first is None:
                raise TableError(f"{name} is empty")
            delimiter = delimiter or _delimiter(first)
            reader = csv.reader(_again(lines), delimiter=delimiter, strict=True, skipinitialspace=True)
            columns = [field.strip() for field in _record(reader, lines)]
            if header:
                lines.kept.clear()
                check_names(columns, name)
            else:
                columns = [f"x{i}" for i in range(len(columns))]
            kept, count = ("".join(lines.kept), 1) if not header else ("", 0)
            lines.kept.clear()
            parts = [kept]
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
                    yield _parse_csv("".join(parts), columns, delimiter, text, name)
                    parts, count = [], 0
                    report()
            if count:
                yield _parse_csv("".join(parts), columns, delimiter, text, name)
        finally:
            wrapped.detach()  # or closing the wrapper would close the standard input


def _again(lines):
    """The lines, from the first, which has been looked at."""
    yield lines.kept[0]
    yield from lines


def _record(reader, lines):
    try:
        return next(reader, None)
    except csv.Error as error:
        raise TableError(f"{lines.name}, line {lines.number}: {error}") from error


def _delimiter(line):
    """Of a CSV file: a comma, unless its first line has none but a semicolon or a tab."""
    return next((mark for mark in (",", ";", "\t") if mark in line), ",")


def _parse_csv(content, columns, delimiter, text, name):
    def parse(**options):
        try:
            return pd.read_csv(
                io.StringIO(content), header=None, names=columns, delimiter=delimiter, index_col=False,
                low_memory=False, skipinitialspace=True, **options,
            )  # fmt: skip
        except (pd.errors.ParserError, ValueError, OverflowError) as error:
            raise TableError(f"{name} could not be read: {error}") from error

    frame = parse(dtype={column: str for column in columns if column in text})
    # pandas turns TRUE and true alike into True: such columns are text like any other.
    changed = [c for c in columns if not is_number(frame[c]) and not isinstance(frame[c].dtype, pd.StringDtype)]
    if changed:
        again = parse(usecols=changed, dtype=str)
        frame[changed] = again[changed]
    return frame
