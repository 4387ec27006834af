"""Checks of parameters and training data, with messages that name the argument and its value."""

import operator
import sys
import warnings
from numbers import Integral, Real

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse
from sklearn import get_config
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._missing import is_scalar_nan
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from svmosaic import _core
from svmosaic.packing import without_duplicates

DTYPES = [np.float64, np.float32]
MANY_VALUES = 1_000_000  # that are looked through for infinite ones on all threads
FAR_SAMPLE = 10_000  # rows whose distance from the origin stands for that of all
MOST_COUNTED = 10_000  # classes that are found by counting all integers between the least and the largest
UNKNOWN = ("NAType", "NaTType")  # types of what pandas has in place of a value
LEAVE_OUT = "Leave the rows without a known y out."
# A bin is one byte, and packing adds the two ends of the straight term to the knots.
MOST_KNOTS = 255
NO_WEIGHT = "sample_weight (times class_weight) is zero for every row: there is nothing to fit"


def check_real(
    name, value, *, above=None, at_least=None, at_most=None, below=None, integer=False, optional=False
):  # fmt: skip
    """Raise ValueError unless `value` is a number in the range."""
    if optional and value is None:
        return
    kind = Integral if integer else Real
    wanted = ["an integer" if integer else "a finite number"]
    largest = sys.float_info.max  # no integer is infinite, but it may be too large for a float
    ok = isinstance(value, kind) and not isinstance(value, (bool, np.bool_)) and bool(-largest <= value <= largest)
    for words, bound, holds in (
        ("above", above, operator.gt), ("at least", at_least, operator.ge),
        ("at most", at_most, operator.le), ("below", below, operator.lt),
    ):  # fmt: skip
        if bound is not None:
            wanted.append(f"{words} {bound}")
            ok = ok and holds(value, bound)
    if not ok:
        alternative = " or None" if optional else ""
        raise ValueError(f"{name} must be {', '.join(wanted)}{alternative}, got {plain(value)!r}")


def plain(value):
    """A scalar of NumPy as Python's, for messages: 0 and not np.int64(0)."""
    return value.item() if isinstance(value, np.generic) else value


def check_choice(name, value, choices, optional=False):
    """Raise ValueError unless `value` is one of `choices`."""
    if optional and value is None:
        return
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {plain(value)!r}")


def classes_and_labels(y):
    """The classes, sorted, and the position of each row's class; ValueError if y is no target of a classification.

    Small integers, of which many are equal, are what scikit-learn takes for classes too: these are counted, not sorted.
    """
    if y.ndim == 1 and y.dtype.kind in "iu" and len(y):
        low, high = int(y.min()), int(y.max())
        if high - low < min(len(y) // 2, MOST_COUNTED) and high < 2**63:
            place = y.astype(np.intp) - low
            is_class = np.bincount(place) > 0
            return (np.flatnonzero(is_class) + low).astype(y.dtype), (np.cumsum(is_class) - 1)[place]
    check_labels(y)
    classes = np.unique(y)
    return classes, np.searchsorted(classes, y)  # a quarter of the memory of unique's inverse


def require_labels(y):
    """Raise ValueError if labels are missing, whatever stands for that, or are objects that are no labels.

    scikit-learn's message would depend on what they are, and on where it first looks at them.
    """
    try:
        labels = np.asarray(y)
    except ValueError as error:
        raise ValueError(f"y must hold one label per row, text or a number: {error}") from error
    if labels.dtype.kind == "O":
        missing = np.array(
            [
                type(label) is not str and (label is None or is_scalar_nan(label) or type(label).__name__ in UNKNOWN)
                for label in labels.ravel()
            ],
            dtype=bool,
        )
    elif labels.dtype.kind in "fM":
        missing = np.isnan(labels.ravel())
    else:
        return
    if labels.ndim and missing.any():
        raise ValueError(
            f"y contains NaN or None in place of a label for {missing.sum()} of {len(labels)} rows, first at position "
            f"{missing.argmax()}: leave these rows out"
        )
    if labels.ndim:
        require_text(np.asarray(of_plain_type(y)))


def require_text(y):
    """Raise ValueError if y holds objects other than text, of which scikit-learn only says that they are unknown."""
    if y.dtype.kind == "O":
        types = sorted({"str" if isinstance(label, str) else type(label).__name__ for label in y.ravel()})
        if types != ["str"]:
            plain = types == ["bool"] or (types == ["int"] and all(abs(label) < 2**63 for label in y.ravel()))
            remedy = f"y.astype({types[0]})" if plain else "y.astype(str)"
            found = " and ".join(types)
            raise ValueError(
                f"Unknown label type: y is an array of objects of type {found}; for classes, pass {remedy}"
            )


def check_labels(y):
    """Raise ValueError if y is no target of a classification."""
    require_text(y)
    check_classification_targets(y)


def of_plain_type(y):
    """Labels of a nullable type of pandas as NumPy's type: scikit-learn would make floats of truth values."""
    plain = getattr(getattr(y, "dtype", None), "numpy_dtype", None)
    return y if plain is None else np.asarray(y, dtype=plain)


def check_pieces(name, pieces, optional=True):
    """Raise ValueError unless `pieces` is None, a number of knots, or a sequence of knots per column."""
    if pieces is None or (isinstance(pieces, Integral) and not isinstance(pieces, bool)):
        if pieces is not None and not 2 <= pieces <= MOST_KNOTS:
            raise ValueError(f"{name} must be None, between 2 and {MOST_KNOTS}, or knots per column, got {pieces!r}")
        return
    if isinstance(pieces, str) or not hasattr(pieces, "__len__"):
        raise ValueError(f"{name} must be None, an integer, or a sequence of knots per column, got {pieces!r}")
    for f, knots in enumerate(pieces):
        if knots is None:
            continue
        what = f"the knots of column {f} in {name} must"
        try:
            u = np.asarray(knots, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{what} be numbers, got {knots!r}") from error
        if u.ndim != 1:
            raise ValueError(f"{what} be a flat sequence, got one of shape {u.shape}")
        if len(u) == 1 or len(u) > MOST_KNOTS:
            raise ValueError(
                f"column {f} in {name} has {len(u)} knots: a curve needs between 2 and {MOST_KNOTS}; none (an empty "
                "sequence or None) leaves the column straight"
            )
        if not np.isfinite(u).all():
            raise ValueError(f"{what} be finite, got {knots!r}")
        if (np.diff(u) <= 0).any():
            raise ValueError(f"{what} increase, got {knots!r}")


def numbers_of(name, y):
    """y as float64, for the estimator of this name."""
    if np.asarray(y).dtype.kind in "mM":
        raise ValueError(
            f"y must hold numbers for {name}, got dates or durations: convert them, for example to days by "
            "(y - y.min()) / numpy.timedelta64(1, 'D')"
        )
    try:
        return np.asarray(y).astype(np.float64)
    except (TypeError, ValueError, ArithmeticError) as error:
        text = next((value for value in np.ravel(y).tolist() if isinstance(value, str)), None)
        shown = f"got {text!r}" if text is not None else str(error)
        raise ValueError(f"y must hold numbers for {name}, {shown}; for labels use a classifier") from error


def require_two_classes(estimator, classes, present):
    """Raise ValueError unless there are two classes, and two are present with a positive weight."""
    name = type(estimator).__name__
    if len(classes) < 2:
        raise ValueError(
            f"{name} needs samples of at least two classes, but the data contains only one class: {plain(classes[0])!r}"
        )
    if len(present) < 2:
        raise ValueError(f"{name} needs two classes with positive sample_weight, got only {present.tolist()!r}")


def check_weight(sample_weight, X):
    """Sample weights as float64, one per row, none negative; not given, all ones that take no memory."""
    if sample_weight is None:
        return np.broadcast_to(1.0, X.shape[0])
    try:
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, allow_all_zero_weights=True)
    except ValueError as error:
        if "could not convert" in str(error):
            raise ValueError(f"sample_weight must hold one number per row: {error}") from error
        raise
    if weight.min() < 0:
        raise ValueError(f"sample_weight must not be negative, got {weight.min()} for row {weight.argmin()}")
    return weight


def validate_rows(estimator, X):
    """Validated X for prediction."""
    return validate(estimator, X, reset=False)


def validate(estimator, X, *y, accept_sparse="csr", **check):
    """scikit-learn's validation, with the argument named where it does not, and what its own estimators do not ask for.

    Duplicate entries of sparse rows are summed, in a copy. Rows to train on (those with `y`) are refused if their
    squared norm overflows.
    """
    n_jobs = getattr(estimator, "n_jobs", None)
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(
            f"n_jobs must be a number of threads, or negative to leave some idle, or None, got {plain(n_jobs)!r}"
        )
    if y and is_classifier(estimator):
        require_labels(*y)
        y = (of_plain_type(y[0]),)
    # Of arrays that need no conversion, squares with a finite sum are of finite values, and those of a large array are
    # looked through on all threads: then scikit-learn need not look for others.
    plain_rows = type(X) is np.ndarray and X.dtype in DTYPES and X.flags.c_contiguous
    fits = bool(y) and plain_rows and X.dtype == np.float64 and _has_finite_square(X.ravel())
    finite = fits or (plain_rows and X.size >= MANY_VALUES and not get_config()["assume_finite"]
                      and _core.all_finite(X.ravel(), effective_n_jobs(n_jobs)))  # fmt: skip
    try:
        if sparse.issparse(X):
            X = _with_short_indices(X)
        found = validate_data(
            estimator, X, *y, accept_sparse=accept_sparse, dtype=DTYPES, order="C", accept_large_sparse=False,
            ensure_all_finite=not finite, **check,
        )  # fmt: skip
    except ArithmeticError as error:  # a whole number of more than 308 digits, or a decimal that no comparison takes
        for name, values in (("X", X), *(("y", values) for values in y)):
            try:
                np.asarray(values).astype(np.float64)
            except (ValueError, ArithmeticError) as why:
                raise ValueError(f"{name} must hold numbers that float64 can hold: {why}") from error
        raise
    except ValueError as error:
        if "could not convert" in str(error) or "cannot convert" in str(error):
            raise ValueError(f"X must be numeric: {error}") from error
        if "Found array with dim" in str(error):
            raise ValueError(f"X must have two dimensions, got an array of shape {np.shape(X)}") from error
        if str(error).startswith("Input X contains NaN"):
            searches = "MosaicRegressor" if is_regressor(estimator) else "MosaicClassifier"
            raise ValueError(
                f"Input X contains NaN. Impute missing values, or fit {searches} to a DataFrame, which does it for you."
                if y
                else f"Input X contains NaN, but this {type(estimator).__name__} was fitted to complete rows of "
                "numbers: impute missing values first."
            ) from error
        raise
    if not y:
        return without_duplicates(found)
    rows = without_duplicates(found[0])
    if not fits:
        check_norms(rows, getattr(estimator, "feature_names_in_", None))
    return rows, *found[1:]


def _has_finite_square(values) -> bool:
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.dot(values, values)))


def _with_short_indices(X):
    """Sparse rows with indices of 32 bits, where these are enough: SciPy keeps longer ones that it was given."""
    if max(X.nnz, *X.shape) >= 2**31:
        return X
    X = X.tocsr()
    if X.indices.dtype == X.indptr.dtype == np.int32:
        return X
    return type(X)((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)


def check_norms(X, names=None):
    """Raise ValueError if the squared norm of a row overflows, with the column of the largest value."""
    if X.dtype != np.float64 or _has_finite_square(np.ravel(X.data if sparse.issparse(X) else X)):
        return
    with np.errstate(over="ignore"):
        squares = np.asarray(abs(X).power(2) if sparse.issparse(X) else np.square(X)).sum(axis=1)
    if np.isfinite(squares).all():
        return
    size = abs(X).max(axis=0)
    size = size.toarray().ravel() if sparse.issparse(size) else size
    column = int(np.argmax(size))
    name = f"column {column}" if names is None else f"column {names[column]!r}"
    raise ValueError(
        f"X is too large: the squared norm of a row overflows float64; scale the features (the largest value, "
        f"{size[column]:.3g}, is in {name})"
    )


def distance_from_origin(X):
    """The mean of the rows, at most some thousands of them, and how many times their spread it is from the origin.

    Zero times if the rows have no spread.
    """
    X = X[:: max(1, X.shape[0] // FAR_SAMPLE)]
    mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    if sparse.issparse(X):
        squares = float(np.square(X.data, dtype=np.float64).sum()) / X.shape[0]
        spread = np.sqrt(max(squares - float(mean @ mean), 0.0))
    else:
        spread = np.sqrt(float(np.var(X, axis=0, dtype=np.float64).sum()))
    return mean, float(np.linalg.norm(mean) / spread) if spread > 0 else 0.0


def warn_if_far(estimator, X, limit):
    """Warn if the rows lie more than `limit` times their spread from the origin."""
    distance = distance_from_origin(X)[1]
    if distance > limit:
        name = type(estimator).__name__
        warnings.warn(
            f"{name}: the rows lie {distance:.3g} times their spread away from the origin. "
            "That is too far to learn from them reliably: center or standardize the features.",
            ConvergenceWarning,
            stacklevel=5,
        )
