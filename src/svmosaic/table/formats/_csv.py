"""CSV and TSV, also compressed."""

import csv
import io
import warnings
from itertools import chain

import pandas as pd

from svmosaic.table.formats._table import TableError, check_names, find_column, is_number, opened, read_line, table_of

NO_HEADER = "if the first line is data, pass --no-header"


def csv_tables(path, name, rows, header, delimiter, dialect, text, kept, label, progress):
    """Tables of at most `rows` records, all in one if that is None; arguments as for `read_chunks`.

    Lines are counted and their values too, which is how a malformed one is found; pandas parses them. The delimiter, if
    not given, is the first of comma, semicolon and tab in the first line; the comma is last if it is in numbers.
    """
    with opened(path, progress) as (raw, report):
        file = io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")
        try:
            first = _line(file, name, 0)
            if not first:
                raise TableError(f"{name} is empty")
            marks = (";", "\t", ",") if dialect.decimal == "," else (",", ";", "\t")
            delimiter = delimiter or next((mark for mark in marks if mark in first), ",")
            records = _records(first, file, name, delimiter)
            content, n_columns, number = next(records)
            if header:
                line = next(csv.reader(io.StringIO(content), delimiter=delimiter, skipinitialspace=True), [])
                columns, contents = [field.strip() for field in line], []
                n_columns = len(columns)
                check_names(columns, name, f"; {NO_HEADER}" if any(map(dialect.is_number, columns)) else "")
            else:
                columns, contents = [f"x{i}" for i in range(n_columns)], [content]
            parse = _parser(columns, delimiter, dialect, text, kept, label, name)
            is_first = True

            def table(contents):
                frame, missing = parse("".join(contents))
                if header and is_first:
                    _check_header(frame, dialect, name)
                return table_of(frame, label, name, missing)

            for content, n_values, number in records:
                if not content.strip():
                    continue
                if n_values != n_columns:
                    raise TableError(f"{name}, line {number}: {n_values} values, but there are {n_columns} columns")
                contents.append(content)
                if len(contents) == rows:
                    yield table(contents)
                    contents, is_first = [], False
                    report()
            if contents:
                yield table(contents)
        finally:
            file.detach()  # or closing the wrapper would close the standard input


def _line(file, name, number) -> str:
    try:
        return read_line(file, name, number + 1)
    except UnicodeDecodeError as error:
        where = f"after line {number}" if number else "from its first line on"
        raise TableError(
            f"{name} is not text in UTF-8 ({where}): save it as UTF-8, for example by iconv -f LATIN1 -t UTF-8"
        ) from error


def _records(line, file, name, delimiter):
    """The text of each record, how many values it holds, and the number of its last line."""
    number, lines = 1, []

    def more():
        nonlocal number
        while line := _line(file, name, number):
            number += 1
            lines.append(line)
            yield line

    while line:
        n_values = line.count(delimiter) + 1
        if '"' in line:  # which may quote delimiters and ends of lines
            lines.clear()
            reader = csv.reader(chain([line], more()), delimiter=delimiter, strict=True, skipinitialspace=True)
            try:
                n_values = len(next(reader))
            except csv.Error as error:
                raise TableError(f"{name}, line {number}: {error}") from error
            line += "".join(lines)
        yield line if line.endswith("\n") else line + "\n", n_values, number
        line = _line(file, name, number)
        number += 1


def _check_header(frame, dialect, name):
    """Warn if the names of the columns look like values of theirs."""
    columns = list(frame.columns)
    if all(column.isdecimal() for column in columns) and int(columns[-1]) - int(columns[0]) == len(columns) - 1:
        return  # they are numbered
    if all(dialect.is_number(c) if is_number(frame[c]) else frame[c].isin([c]).any() for c in columns):
        shown = ", ".join(columns[:5]) + (", ..." if len(columns) > 5 else "")
        warnings.warn(f"{name}: the names of the columns look like values ({shown}); {NO_HEADER}", stacklevel=2)


def _parser(columns, delimiter, dialect, text, kept, label, name):
    """A function from the text of records to their frame, and how many rows hold each text missing in the label."""
    # A label is read as text: whether it holds numbers is decided by what is missing in it.
    label = None if label is None else find_column(columns, label, name)
    labels = set()
    for asked in kept:
        try:
            labels.add(find_column(columns, asked))
        except TableError:  # no fault of a table to classify
            continue
    as_text = {column for column in columns if column in text} | labels
    missing = {c: dialect.missing_labels if c in labels else dialect.missing for c in columns}
    options = dict(
        header=None, names=columns, delimiter=delimiter, index_col=False, low_memory=False, skipinitialspace=True,
        keep_default_na=False, decimal=dialect.decimal, thousands=dialect.thousands,
        na_values=missing if label is None else missing | {label: [""]},
    )  # fmt: skip

    def parse(content):
        try:
            frame = pd.read_csv(io.StringIO(content), **options, dtype=dict.fromkeys(as_text | ({label} - {None}), str))
            # pandas turns TRUE and true alike into True: such columns are text like any other.
            changed = [c for c in columns if not is_number(frame[c]) and not isinstance(frame[c].dtype, pd.StringDtype)]
            if changed:
                frame[changed] = pd.read_csv(io.StringIO(content), **options, usecols=changed, dtype=str)[changed]
        except (pd.errors.ParserError, ValueError, OverflowError) as error:
            raise TableError(f"{name} could not be read: {error}") from error
        if label is None:
            return frame, {}
        frame[label], missing = dialect.labels(frame[label], as_text=label in as_text)
        return frame, missing

    return parse
