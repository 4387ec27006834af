"""Tables as files give them, in the form that `TablePreparation` takes: columns of numbers and of text, checked."""

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.preprocessing import MaxAbsScaler

from svmosaic.export.preparation import BLANKS
from svmosaic.table.formats import TableError, is_number
from svmosaic.table.frames import NUMBER, TEXT, check_numbers
from svmosaic.table.table_preparation import TablePreparation

# Whole numbers with at most so many different values are taken as classes.
FEW_NUMBERS = 20


def kinds_of(X) -> list[str]:
    """Whether each column holds numbers or text."""
    if isinstance(X, pd.DataFrame):
        return [NUMBER if is_number(X[name]) else TEXT for name in X.columns]
    return [NUMBER] * X.shape[1]


def to_input(X, names, kinds, first_row=0, missing_texts=None):
    """Columns in the form that a preparation takes: float64, whole numbers beyond 2^53, or objects ("": missing).

    An array has just these columns; sparse rows stay as they are. Errors count rows from `first_row`. With
    `missing_texts`, text is stripped of blanks at both ends, and missing if it is then one of these.
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
    """The transformer for rows as `to_input` gives them, not fitted yet; options as for `TablePreparation`.

    Sparse rows are divided by the largest absolute value of each column, which leaves zeros alone, and made dense if
    asked.
    """
    if not sparse.issparse(X):
        return TablePreparation(categorical, max_categories=max_categories, scale=scale, task=task, random_state=0)
    if not dense:
        return MaxAbsScaler()
    from sklearn.compose import ColumnTransformer

    return ColumnTransformer([("scaled", MaxAbsScaler(), list(range(X.shape[1])))], sparse_threshold=0.0)


def decide_task(y, asked) -> tuple[str, str]:
    """The task of a label column, and the reason for it; no reason if the user chose it."""
    if asked != "auto":
        return asked, ""
    known = pd.Series(y).dropna()
    if len(known) == 0 or not is_number(known):
        return "classification", ""
    distinct = np.unique(known.to_numpy(dtype=np.float64))
    if len(distinct) <= FEW_NUMBERS and (distinct == np.round(distinct)).all():
        return "classification", (
            f"the label holds {len(distinct)} different whole numbers, which are taken as classes "
            "(--task regression takes them as values)"
        )
    kind = "numbers with fractions" if (distinct != np.round(distinct)).any() else f"{len(distinct)} different numbers"
    return "regression", (
        f"the label holds {kind}, so values are predicted (--task classification takes them as classes)"
    )


def read_labels(y, task):
    """The labels of a task that are there, and which rows have one.

    Values are float64, and text is refused. Of classes, whole numbers are int64; truth values become "True" and
    "False", everything else text. Numbers with fractions are refused: they are not classes.
    """
    series = pd.Series(y)
    there = series.notna().to_numpy()
    known = series[there]
    looks_numeric = is_number(known) or all(isinstance(v, (int, float)) and v is not True for v in known[:1])
    if task == "classification" and not (len(known) and looks_numeric):
        return known.astype("str").to_numpy(dtype=str), there
    numbers = pd.to_numeric(known, errors="coerce").to_numpy(dtype=np.float64)
    if task == "regression":
        if np.isnan(numbers).any():
            raise TableError(
                f"the label holds text, such as {str(known.to_numpy()[np.isnan(numbers)][0])!r}, which is not a "
                "number: pass --task classification, or name this text with --na if it marks missing values"
            )
        if not np.isfinite(numbers).all():
            raise TableError("the label holds infinite values: leave these rows out, or mark them as missing with --na")
        return numbers, there
    if not (np.abs(numbers) < 2**53).all():  # beyond, floats skip whole numbers: such labels are names
        return known.astype("str").to_numpy(dtype=str), there
    if (numbers == np.round(numbers)).all():
        return numbers.astype(np.int64), there
    raise TableError(
        f"the labels are numbers with fractions, such as {numbers[numbers != np.round(numbers)][0]}: "
        "classes must be text or integers; to predict a quantity, use `svmosaic train --task regression`"
    )
