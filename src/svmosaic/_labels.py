"""Labels: whether they are the target of a classification, and which classes they name."""

import numpy as np
from sklearn.utils._missing import is_scalar_nan
from sklearn.utils.multiclass import check_classification_targets

MOST_COUNTED = 10_000  # classes that are found by counting all integers between the least and the largest


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
        missing = np.array([type(label) is not str and _is_missing(label) for label in labels.ravel()], dtype=bool)
    elif labels.dtype.kind in "fM":
        missing = np.isnan(labels.ravel())
    else:
        return
    if labels.ndim and missing.any():
        raise ValueError(
            f"y contains NaN or None in place of a label for {missing.sum()} of {len(labels)} rows, first at position "
            f"{missing.argmax()}: leave these rows out"
        )
    require_text(np.asarray(of_plain_type(y)))


def check_labels(y):
    """Raise ValueError if y is no target of a classification."""
    require_text(y)
    check_classification_targets(y)


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


def of_plain_type(y):
    """Labels of a nullable type of pandas as NumPy's type: scikit-learn would make floats of truth values."""
    plain = getattr(getattr(y, "dtype", None), "numpy_dtype", None)
    return y if plain is None else np.asarray(y, dtype=plain)


def _is_missing(label):
    return label is None or is_scalar_nan(label) or type(label).__name__ in ("NAType", "NaTType")
