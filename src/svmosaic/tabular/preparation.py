"""From the columns of a table to rows of numbers, by an explicit pipeline that is kept with the model."""

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler

from svmosaic.export.preparation import BLANKS
from svmosaic.tabular.formats import TableError, is_number

NUMBER, TEXT = "number", "text"
LARGEST = 1e150  # the sum of the squares of 10^8 such numbers is still finite
MISSING = "(missing)"  # the category of text that is not there


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
    ndarray of float64, or, where there is text, a DataFrame of float64 and of objects ("": missing)
    """
    if sparse.issparse(X):
        return X
    if not isinstance(X, pd.DataFrame):
        for place, name in enumerate(names):
            _check_size(X[:, place], name, first_row)
        return X
    columns = {
        name: _numbers(X[name], first_row) if kind == NUMBER else _words(X[name], missing_texts)
        for name, kind in zip(names, kinds, strict=True)
    }
    if TEXT in kinds:
        return pd.DataFrame(columns, index=range(len(X)))
    return np.column_stack(list(columns.values()))


def _numbers(column, first_row):
    values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = np.isnan(values) & column.notna().to_numpy()
    if wrong.any():
        row = int(wrong.argmax())
        raise TableError(
            f"column {column.name!r} holds {column.iloc[row]!r} in row {first_row + row + 1}, which is no number"
        )
    _check_size(values, column.name, first_row)
    return values


def _check_size(values, name, first_row):
    """Refuse numbers whose squares would overflow in a variance or a norm."""
    wrong = np.abs(values) > LARGEST
    if wrong.any():
        row = int(wrong.argmax())
        if np.isinf(values[row]):
            raise TableError(f"column {name!r} holds an infinite number in row {first_row + row + 1}")
        raise TableError(
            f"column {name!r} holds {values[row]:.3g} in row {first_row + row + 1}, whose square overflows: divide the "
            "column by a constant"
        )


def _words(column, missing_texts):
    missing = column.isna().to_numpy()
    words = column.astype("str").to_numpy(dtype=object)
    words[missing] = ""
    if missing_texts is not None:
        words = np.array([word.strip(BLANKS) for word in words], dtype=object)
        words[np.isin(words, list(missing_texts))] = ""
    return words


def build_preparation(X, kinds, *, scale=True, max_categories=64, counts=None, dense=False):
    """The transformer for rows as `to_input` gives them, not fitted yet.

    Numbers: missing ones become the median; then mean 0 and variance 1. Text: missing is a category of its own, and
    every category a column of zeros and ones; categories that training did not see are all zeros. Sparse rows are
    divided by the largest absolute value of each column, which leaves zeros alone.

    Parameters
    ----------
    X : what `to_input` returns, or a sparse matrix
        The training rows: the categories of text are listed from them.
    kinds : list of str
    scale : bool, default=True
        False for a model that scales dense rows itself.
    max_categories : int, default=64
        Of a text column with more, only the so many most frequent get a column, none that occurs once.
    counts : list of Series, optional
        How often each text occurs, for every text column, where X is only a part of the rows. The rows that come out
        are then dense.
    dense : bool, default=False
        Whether the rows that come out are dense in any case.
    """
    if sparse.issparse(X):
        all_columns = [("scaled", MaxAbsScaler(), list(range(X.shape[1])))]
        return ColumnTransformer(all_columns, sparse_threshold=0.0) if dense else MaxAbsScaler()
    steps = [SimpleImputer(strategy="median", keep_empty_features=True)]
    numbers = make_pipeline(*steps, StandardScaler()) if scale else steps[0]
    places = [place for place, kind in enumerate(kinds) if kind == TEXT]
    if not places:
        return numbers
    found = [count_texts(X.iloc[:, place]) for place in places] if counts is None else counts
    as_dense = {"sparse_threshold": 0.0} if dense or counts is not None else {}
    words = make_pipeline(
        SimpleImputer(missing_values="", strategy="constant", fill_value=MISSING),
        OneHotEncoder(categories=[_categories(c, max_categories) for c in found], handle_unknown="ignore"),
    )
    others = [place for place, kind in enumerate(kinds) if kind == NUMBER]
    parts = ([("numbers", numbers, others)] if others else []) + [("text", words, places)]
    return ColumnTransformer(parts, verbose_feature_names_out=False, **as_dense)


def count_texts(column):
    """How often each text of a column occurs, as a Series."""
    return column.replace("", MISSING).value_counts()


def _categories(counts, most):
    """The categories worth a column, sorted."""
    if len(counts) > most:
        # Sorted by name first: of equally frequent ones the choice should not depend on the order of the rows.
        counts = counts.sort_index().sort_values(ascending=False, kind="stable")
        counts = counts[counts > 1].iloc[:most]
    return np.array(sorted(counts.index) or [MISSING], dtype=object)


def prepared_names(preparation, names) -> list[str]:
    """Names of the columns that a fitted preparation gives."""
    if isinstance(preparation, ColumnTransformer) and "scaled" not in preparation.named_transformers_:
        return [str(name) for name in preparation.get_feature_names_out()]
    return [str(name) for name in names]


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
                "this is for classes, not for quantities; `svmosaic train --task regression` predicts quantities"
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
            f"the label holds text, such as {str(known.to_numpy()[np.isnan(numbers)][0])!r}, which are no values to "
            "predict: pass --task classification, or name this text with --na if it marks missing values"
        )
    return numbers, there
