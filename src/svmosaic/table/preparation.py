"""Tables as files give them, in the form that `TablePreparation` takes: columns of numbers and of text, checked."""

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.preprocessing import MaxAbsScaler

from svmosaic.export.preparation import BLANKS
from svmosaic.table.formats import TableError, is_number
from svmosaic.table.frames import NUMBER, TEXT, check_numbers
from svmosaic.table.table_preparation import TablePreparation


def kinds_of(X) -> list[str]:
    """Whether each column holds numbers or text."""
    if isinstance(X, pd.DataFrame):
        return [NUMBER if is_number(X[name]) else TEXT for name in X.columns]
    return [NUMBER] * X.shape[1]


def to_input(X, names, kinds, first_row=0, missing_texts=None):
    """Columns of a frame in the form that a preparation takes, with their values checked.

    Parameters
    ----------
    X : DataFrame with at least the columns `names`, or an ndarray of these, or a sparse matrix, which stays as it is
    names, kinds : list of str
    first_row : int, default=0
        Rows before these, for the number in an error.
    missing_texts : list of str, optional
        If given, text is stripped of blanks at both ends, and is missing if it is then one of these. None takes text as
        it is.

    Returns
    -------
    DataFrame of float64 (of whole numbers beyond 2^53: as they are) and of objects ("": missing)
    """
    if sparse.issparse(X):
        return X
    if not isinstance(X, pd.DataFrame):
        for place, name in enumerate(names):
            check_numbers(X[:, place], name, first_row)
        return pd.DataFrame(X, columns=names)
    columns = {}
    for name, kind in zip(names, kinds, strict=True):
        column, missing = X[name], X[name].isna().to_numpy()
        if kind == TEXT:
            words = column.astype("str").to_numpy(dtype=object)
            words[missing] = ""
            if missing_texts is not None:
                words = np.array([word.strip(BLANKS) for word in words], dtype=object)
                words[np.isin(words, list(missing_texts))] = ""
            columns[name] = words
            continue
        values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        wrong = np.isnan(values) & ~missing
        if wrong.any():
            row = int(wrong.argmax())
            raise TableError(
                f"column {name!r} holds {column.iloc[row]!r} in row {first_row + row + 1}, which is not a number"
            )
        check_numbers(values, name, first_row)
        # Whole numbers that float64 would merge stay as they are: they may be categories.
        is_exact = column.dtype.kind in "iu" and (np.abs(values) >= 2**53).any()
        columns[name] = column.to_numpy() if is_exact else values
    return pd.DataFrame(columns, index=range(len(X)))


def build_preparation(X, *, scale=True, max_categories=64, categorical=(), dense=False, task="classification"):
    """The transformer for rows as `to_input` gives them, not fitted yet.

    Sparse rows are divided by the largest absolute value of each column, which leaves zeros alone.

    Parameters
    ----------
    X : what `to_input` returns, or a sparse matrix
        The training rows.
    scale : bool, default=True
        False for a model that scales dense rows itself.
    max_categories, categorical
        As for `TablePreparation`.
    dense : bool, default=False
        Whether the rows that come out of sparse ones are dense.
    task : {"classification", "regression"}
        What the rows are prepared for.
    """
    if not sparse.issparse(X):
        return TablePreparation(categorical, max_categories=max_categories, scale=scale, task=task, random_state=0)
    if not dense:
        return MaxAbsScaler()
    from sklearn.compose import ColumnTransformer

    return ColumnTransformer([("scaled", MaxAbsScaler(), list(range(X.shape[1])))], sparse_threshold=0.0)


def clean_labels(y):
    """Labels as int64 or text, and which rows have one.

    Whole numbers stay numbers; truth values become "True" and "False", everything else text. Numbers with fractions are
    refused: they are not classes.
    """
    series = pd.Series(y)
    there = series.notna().to_numpy()
    known = series[there]
    if len(known) and (is_number(known) or all(isinstance(v, (int, float)) and v is not True for v in known[:1])):
        numbers = pd.to_numeric(known, errors="coerce").to_numpy(dtype=np.float64)
        if (np.abs(numbers) < 2**53).all():  # beyond, floats skip whole numbers: such labels are names
            if (numbers == np.round(numbers)).all():
                return numbers.astype(np.int64), there
            raise TableError(
                f"the labels are numbers with fractions, such as {numbers[numbers != np.round(numbers)][0]}: "
                "classes must be text or integers; to predict a quantity, use `svmosaic train --task regression`"
            )
    return known.astype("str").to_numpy(dtype=str), there


def clean_values(y):
    """Labels as float64, and which rows have one; text is refused."""
    series = pd.Series(y)
    there = series.notna().to_numpy()
    known = series[there]
    numbers = pd.to_numeric(known, errors="coerce").to_numpy(dtype=np.float64)
    if np.isnan(numbers).any():
        raise TableError(
            f"the label holds text, such as {str(known.to_numpy()[np.isnan(numbers)][0])!r}, which is not a "
            "number: pass --task classification, or name this text with --na if it marks missing values"
        )
    return numbers, there
