"""Checks of parameters and training data, with messages that name the argument and its value."""

import sys
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from svmosaic.heads import Classify

DTYPES = [np.float64, np.float32]
NO_WEIGHT = "sample_weight (times class_weight) is zero for every row: there is nothing to fit"


def check_real(name, value, *, above=None, at_least=None, at_most=None, integer=False, optional=False):
    """Raise ValueError unless `value` is a number in the range."""
    if optional and value is None:
        return
    kind = Integral if integer else Real
    wanted = ["an integer" if integer else "a finite number"]
    largest = sys.float_info.max  # no integer is infinite, but it may be too large for a float
    ok = isinstance(value, kind) and not isinstance(value, (bool, np.bool_)) and bool(-largest <= value <= largest)
    if above is not None:
        wanted.append(f"above {above}")
        ok = ok and value > above
    if at_least is not None:
        wanted.append(f"at least {at_least}")
        ok = ok and value >= at_least
    if at_most is not None:
        wanted.append(f"at most {at_most}")
        ok = ok and value <= at_most
    if not ok:
        alternative = " or None" if optional else ""
        raise ValueError(f"{name} must be {', '.join(wanted)}{alternative}, got {value!r}")


def check_choice(name, value, choices):
    """Raise ValueError unless `value` is one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


@dataclass(frozen=True)
class Target:
    """What the rows should be classified as, and how much each counts.

    Attributes
    ----------
    classes : ndarray, sorted
    label : ndarray of shape (n_rows,), positions in `classes`
    weight : ndarray of shape (n_rows,), sample weight times class weight, all positive
    sample_weight : ndarray of shape (n_rows,), the sample weight alone, or None for all ones
    """

    classes: np.ndarray
    label: np.ndarray
    weight: np.ndarray
    sample_weight: np.ndarray | None = None

    @property
    def head(self) -> Classify:
        """What scores for these classes mean, as long as nothing is calibrated."""
        return Classify(self.classes)

    @property
    def n_outputs(self) -> int:
        """One for two classes, else one per class (one-vs-rest)."""
        return self.head.n_outputs

    @property
    def truth(self):
        """What `Head.region_counts` takes as the target."""
        return self.label

    def take(self, rows) -> "Target":
        """The target of some of the rows."""
        sample_weight = None if self.sample_weight is None else self.sample_weight[rows]
        return Target(self.classes, self.label[rows], self.weight[rows], sample_weight)

    def signs(self, output):
        """+1 and -1 of the rows for one output, as int8."""
        return self.head.signs(self.label, output)


def validate_training(estimator, X, y, sample_weight=None, class_weight=None, **check):
    """Validated X and target, without the rows of weight zero."""
    X, y = validate(estimator, X, y, **check)
    check_classification_targets(y)
    classes = np.unique(y)
    label = np.searchsorted(classes, y)  # a quarter of the memory of unique's inverse
    X, target = _weigh(X, y, classes, label, sample_weight, class_weight)
    present = classes if len(target.label) == len(label) else classes[np.unique(target.label)]
    require_two_classes(estimator, classes, present)
    return X, target


def require_two_classes(estimator, classes, present):
    """Raise ValueError unless there are two classes, and two are present with a positive weight."""
    name = type(estimator).__name__
    if len(classes) < 2:
        raise ValueError(
            f"{name} needs samples of at least two classes, but the data contains only one class: {classes[0]!r}"
        )
    if len(present) < 2:
        raise ValueError(f"{name} needs two classes with positive sample_weight, got only {present!r}")


def validate_batch(estimator, X, y, known, announced, sample_weight=None, class_weight=None):
    """Validated X and target of one batch of a stream, without the rows of weight zero.

    `known` are the classes of earlier batches (None in the first), `announced` those given with this one.
    """
    name = type(estimator).__name__
    if known is None and announced is None:
        raise ValueError(f"classes must be given in the first call of {name}.partial_fit")
    classes = known if announced is None else np.unique(announced)
    if known is not None and not np.array_equal(classes, known):
        raise ValueError(f"classes={announced!r} is not the same as in the first call of partial_fit: {known!r}")
    if len(classes) < 2:
        raise ValueError(f"{name}.partial_fit needs at least two classes, got classes={classes!r}")
    if not (class_weight is None or isinstance(class_weight, dict)):
        raise ValueError(
            f"class_weight must be None or a dict for partial_fit, which never sees all rows, got {class_weight!r}"
        )
    X, y = validate(estimator, X, y, reset=known is None)
    check_classification_targets(y)
    unknown = np.setdiff1d(y, classes)
    if len(unknown):
        raise ValueError(f"y contains {unknown!r}, which is not among the classes announced: {classes!r}")
    return _weigh(X, y, classes, np.searchsorted(classes, y), sample_weight, class_weight)


def check_weight(sample_weight, X):
    """Sample weights as float64, one a row, none negative; not given, all ones that take no memory."""
    if sample_weight is None:
        return np.broadcast_to(1.0, X.shape[0])
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, allow_all_zero_weights=True)
    if weight.min() < 0:
        raise ValueError(f"sample_weight must not be negative, got {weight.min()} for row {weight.argmin()}")
    return weight


def _weigh(X, y, classes, label, sample_weight, class_weight):
    """The rows of positive weight, and their target."""
    weight = rows_weight = check_weight(sample_weight, X)
    if class_weight is not None:
        weight = weight * _class_weights(class_weight, classes, y, weight)[label]
    kept = weight > 0
    if not kept.any():
        raise ValueError(NO_WEIGHT)
    if not kept.all():
        X, label, weight, rows_weight = X[kept], label[kept], weight[kept], rows_weight[kept]
    return X, Target(classes, label, weight, rows_weight)


def _class_weights(class_weight, classes, y, sample_weight):
    if not (isinstance(class_weight, dict) or (isinstance(class_weight, str) and class_weight == "balanced")):
        raise ValueError(f"class_weight must be None, 'balanced' or a dict, got {class_weight!r}")
    weights = compute_class_weight(class_weight, classes=classes, y=y, sample_weight=sample_weight)
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError(f"class_weight must be finite and not negative, got {class_weight!r}")
    return weights


def validate_rows(estimator, X):
    """Validated X for prediction."""
    return validate(estimator, X, reset=False)


def validate(estimator, X, *y, accept_sparse="csr", **check):
    """scikit-learn's validation, with the argument named where it does not."""
    try:
        return validate_data(
            estimator, X, *y, accept_sparse=accept_sparse, dtype=DTYPES, order="C", accept_large_sparse=False, **check
        )
    except ValueError as error:
        if "could not convert" in str(error):
            raise ValueError(f"X must be numeric: {error}") from error
        if "Found array with dim" in str(error):
            raise ValueError(f"X must have two dimensions, got an array of shape {np.shape(X)}") from error
        raise
