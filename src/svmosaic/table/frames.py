"""Columns of pandas, Polars and PyArrow frames, of object arrays and of dicts, as plain arrays of three kinds.

A column holds numbers (float64, NaN for missing), text (objects, None for missing) or dates (days since 1970-01-01 as
float64, NaN for missing). Truth values and durations (in days) are numbers.
"""

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from svmosaic.table.formats import TableError
from svmosaic.table.formats._dialect import MISSING_TEXTS

NUMBER, TEXT, DATE = "number", "text", "date"
LARGEST = 1e150  # the sum of the squares of 10^8 such numbers is still finite
CONTAINERS = (list, tuple, dict, set, bytes, np.ndarray)  # no values of a column
_DAY = timedelta(days=1)
_EPOCH = datetime(1970, 1, 1)
_SEVERAL = "X has several columns called {!r}, so none of them can be named: rename them"
DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)?", re.ASCII)


@dataclass(frozen=True, eq=False)
class Values:
    """The values of a column of numbers, text or dates."""

    name: str
    kind: str
    data: np.ndarray
    source: Any = None  # numbers and dates as given, of which categories are made: float64 merges large whole numbers
    levels: list | None = None  # the categories in order, if the column has an order of its own

    def read_as(self, kind) -> np.ndarray:
        """The values in the form of a kind, checked; text is converted if all of it is written so."""
        if kind == TEXT:
            if self.kind == TEXT:
                return self.data
            return texts_of(self.source if isinstance(self.source, list) else self.source.to_list())
        data = self.data
        if self.kind == TEXT:
            convert = number_of if kind == NUMBER else days_of
            data = np.empty(len(self.data))
            for i, value in enumerate(self.data):
                try:
                    data[i] = convert(value)
                except (ValueError, TypeError):
                    raise TableError(f"column {self.name!r} holds {value!r}, which is not a {kind}") from None
        elif self.kind != kind and not np.isnan(data).all():
            raise TableError(f"column {self.name!r} held {kind}s in training, and now holds {self.kind}s")
        check_numbers(data, self.name)
        return data


def is_frame(X) -> bool:
    """Whether X is a frame that narwhals reads: of pandas, Polars, PyArrow and the like."""
    if type(X).__name__ == "LazyFrame":
        raise TypeError("X is a lazy frame: pass X.collect()")
    if isinstance(X, dict) and not hasattr(X, "shape"):  # sparse rows by keys of SciPy are dicts too
        raise TypeError("X is a dict: pass pandas.DataFrame(X), or pandas.DataFrame([X]) if it is a single row")
    if isinstance(X, (list, tuple)) and len(X) and isinstance(X[0], dict):
        raise TypeError(f"X is a {type(X).__name__} of dicts: pass pandas.DataFrame(X)")
    if isinstance(X, np.ndarray) or not (hasattr(X, "columns") or hasattr(X, "column_names")):
        return False
    X = _whole(X)
    import narwhals.stable.v2 as nw

    try:
        return isinstance(nw.from_native(X, eager_only=True, pass_through=True), nw.DataFrame)
    except nw.exceptions.DuplicateError:
        names = [str(name) for name in getattr(X, "column_names", X.columns)]  # the columns of PyArrow are their data
        double = next(name for name in names if names.count(name) > 1)
        raise TableError(_SEVERAL.format(double)) from None


def is_complete_numbers(X) -> bool:
    """Whether all values of a frame are finite numbers, and none is missing: then it is a matrix with names."""
    import narwhals.stable.v2 as nw

    if hasattr(X, "column_names"):  # PyArrow's, which scikit-learn does not take
        return False
    frame = nw.from_native(X, eager_only=True)
    # scikit-learn takes no frame whose names are text for some columns only, and does not say where an infinity is.
    if not frame.shape[1] or len({isinstance(name, str) for name in frame.columns}) > 1:
        return False
    if hasattr(X, "sparse"):  # pandas with sparse columns alone, which have no narwhals type
        return True
    return all(
        frame[:, c].dtype.is_numeric() and np.isfinite(_floats(frame[:, c], nw)).all() for c in range(frame.shape[1])
    )


def read_frame(X, names=None) -> list[Values]:
    """Columns of a frame, or of an array of objects (x0, x1, ...): all, or those named, in this order."""
    if not is_frame(X):
        X = np.asarray(X, dtype=object)
        if X.ndim != 2:
            raise TableError(
                f"X must have two dimensions, got an array of shape {X.shape}; for one row, pass frame[:1], or a dict "
                "to predictor()"
            )
        found = [f"x{f}" for f in range(X.shape[1])]
        if names is not None and len(names) != len(found):
            raise TableError(f"X has {len(found)} columns, but the model was trained on {len(names)}")
        return [read_objects(name, list(X[:, f])) for f, name in enumerate(found if names is None else names)]
    import narwhals.stable.v2 as nw

    frame = nw.from_native(_whole(X), eager_only=True)
    columns = [str(name) for name in frame.columns]
    double = sorted({name for name in columns if columns.count(name) > 1})
    if double:
        raise TableError(_SEVERAL.format(double[0]))
    if names is not None:
        lacking = [name for name in names if name not in columns]
        if lacking:
            raise TableError(f"X lacks {list_columns(lacking)}; the model was trained on {list_columns(names)}")
    wanted = columns if names is None else names
    return [_read_series(frame[:, columns.index(name)], name, nw) for name in wanted]


def _whole(X):
    """A batch of PyArrow, which narwhals does not read, as a table; others as they are."""
    if type(X).__name__ != "RecordBatch":
        return X
    import pyarrow

    return pyarrow.Table.from_batches([X])


def list_columns(names) -> str:
    """The names of columns for a message, of many the first ten."""
    shown = ", ".join(repr(str(name)) for name in names[:10])
    return f"the columns {shown}{f' and {len(names) - 10} more' if len(names) > 10 else ''}"


def _read_series(series, name, nw) -> Values:
    kind = series.dtype
    if kind.is_numeric() or kind == nw.Boolean:
        return Values(name, NUMBER, _floats(series, nw), series)
    if kind in (nw.Datetime, nw.Date):
        if getattr(kind, "time_zone", None) is not None:
            series = series.dt.replace_time_zone(None)  # parts are those of the local time
        return Values(name, DATE, _floats(series.dt.timestamp("us"), nw) / 86_400e6, series)
    if kind == nw.Duration:
        return Values(name, NUMBER, _floats(series.dt.total_microseconds(), nw) / 86_400e6, series)
    if kind in (nw.List, nw.Struct, nw.Array, nw.Binary):
        raise TableError(f"column {name!r} holds values of type {kind}, which are not numbers, text or dates: drop it")
    if str(getattr(series.to_native(), "dtype", "")).startswith("period["):  # of pandas alone
        return _read_series(nw.from_native(series.to_native().dt.to_timestamp(), series_only=True), name, nw)
    values = series.to_list()
    if kind in (nw.String, nw.Categorical, nw.Enum):
        # Of pandas alone an order is always meant: Polars has one for every Enum.
        native: Any = getattr(series.to_native(), "cat", None)
        levels = [text_of(v) for v in native.categories] if getattr(native, "ordered", False) else None
        return Values(name, TEXT, texts_of(values), levels=levels)
    return read_objects(name, values)


def _floats(series, nw) -> np.ndarray:
    try:
        values = series.cast(nw.Float64).to_numpy()
    except ValueError:  # PyArrow refuses whole numbers that would be rounded
        values = [np.nan if value is None else float(value) for value in series.to_list()]
    return np.ascontiguousarray(values, dtype=np.float64)


def read_objects(name, values) -> Values:
    """A column of Python objects: numbers, truth values, dates, or text if nothing else fits."""
    missing = np.array([is_missing(v) for v in values], dtype=bool)
    known = [v for v, gone in zip(values, missing.tolist(), strict=True) if not gone]
    odd = next((v for v in known if isinstance(v, CONTAINERS)), None)
    if odd is not None:
        raise TableError(f"column {name!r} holds a {type(odd).__name__}, which is not a number, text or date: drop it")
    for kinds, kind, convert in _CONVERSIONS:
        if known and all(isinstance(v, kinds) for v in known):
            data = np.full(len(values), np.nan)
            data[~missing] = [convert(v) for v in known]
            return Values(name, kind, data, values)
    return Values(name, TEXT, texts_of(values))


def texts_of(values) -> np.ndarray:
    """Values as text, None for missing."""
    texts = np.empty(len(values), dtype=object)
    texts[:] = [v if type(v) is str and v else None if is_missing(v) else text_of(v) for v in values]
    return texts


def text_of(value) -> str:
    """A value that is there as the text of a category, the same in frames and in dicts.

    1 and 1.0 are the same category, and so are a date and its midnight. Durations are in days, times in hours.
    """
    if isinstance(value, (date, np.datetime64)) or hasattr(value, "to_timestamp"):
        return (_EPOCH + timedelta(days=days_of(value))).isoformat().removesuffix("T00:00:00")
    if isinstance(value, (timedelta, time, Decimal)):
        value = number_of(value)
    elif isinstance(value, np.generic):
        value = value.item()
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def number_of(value) -> float:
    """A value as a number, NaN for missing: durations in days, times in hours; ValueError or TypeError if none."""
    if isinstance(value, timedelta):
        return np.nan if is_missing(value) else value / _DAY
    if isinstance(value, time):
        return value.hour + value.minute / 60 + (value.second + value.microsecond / 1e6) / 3600
    if is_missing(value):
        return np.nan
    if isinstance(value, str):
        text = value.strip()
        if text == "" or text in MISSING_TEXTS:
            return np.nan
        # Python would take 1_000, inf and the digits of other scripts too.
        if not DECIMAL.fullmatch(text) or np.isinf(float(text)):
            raise ValueError(value)
    try:
        return float(value)
    except OverflowError:  # a whole number of more than 308 digits
        raise ValueError(value) from None


def looks_like_numbers(texts) -> bool:
    """Whether text is numbers but for marks such as ? or NA, which stand for missing ones.

    Text without any mark is left alone: whoever wrote numbers as text meant it.
    """
    known = {text.strip() for text in texts if text is not None}
    marks = known.intersection(MISSING_TEXTS)
    try:
        return bool(marks) and len(known) > len(marks) and all(np.isfinite(float(text)) for text in known - marks)
    except ValueError:
        return False


def days_of(value) -> float:
    """A date, time stamp or text such as 2026-01-31T12:00 as days since 1970-01-01, NaN for missing."""
    if is_missing(value) or (isinstance(value, str) and value.strip() == ""):
        return np.nan
    if isinstance(value, str):
        if not _ISO.fullmatch(value.strip()):
            raise ValueError(value)
        value = np.datetime64(value.strip(), "us")
    if hasattr(value, "to_timestamp"):  # a period of pandas, which is its start
        value = value.to_timestamp()
    if isinstance(value, np.datetime64):
        return float(value.astype("datetime64[us]").astype(np.int64)) / 86_400e6
    if isinstance(value, datetime):
        return (value.replace(tzinfo=None) - _EPOCH) / _DAY
    if isinstance(value, date):
        return float(value.toordinal() - _EPOCH.toordinal())
    raise TypeError(type(value).__name__)


def looks_like_dates(texts) -> bool:
    """Whether all text that is there is a date as 2026-01-31, with or without a time."""
    known = [text for text in texts if text is not None]
    if not known or not all(_ISO.fullmatch(text) for text in known):
        return False
    try:
        np.array(known, dtype="datetime64[us]")
    except ValueError:  # such as the 31st of February
        return False
    return True


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT, pandas' NA or empty text."""
    if value is None or (isinstance(value, str) and value == ""):
        return True
    if isinstance(value, str):
        return False
    try:
        return bool(value != value)
    except ArithmeticError:  # a decimal that signals that it is no number
        return True
    except (TypeError, ValueError):
        return type(value).__name__ == "NAType"


def check_numbers(values, name, first_row=0):
    """Refuse numbers whose squares would overflow in a variance or a norm."""
    wrong = np.abs(values) > LARGEST
    if wrong.any():
        row = int(wrong.argmax())
        if np.isinf(values[row]):
            raise TableError(
                f"column {name!r} holds an infinite number in row {first_row + row + 1}: replace it by a finite number "
                "or a missing value"
            )
        raise TableError(
            f"column {name!r} holds {values[row]:.3g} in row {first_row + row + 1}, whose square overflows: divide the "
            "column by a constant"
        )


def _float_or_infinity(value) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number of more than 308 digits, which may still be a category
        return np.inf


_CONVERSIONS: tuple[Any, ...] = (
    ((Real, Decimal, np.bool_), NUMBER, _float_or_infinity),
    ((date, np.datetime64), DATE, days_of),
    ((time,), NUMBER, number_of),
    ((timedelta,), NUMBER, number_of),
)
