"""Checks of parameters and training data, with messages that name the argument and its value."""

import sys
import warnings
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse
from sklearn import get_config
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import compute_class_weight
from sklearn.utils.validation import _check_sample_weight, validate_data

from svmosaic import _core
from svmosaic._labels import check_labels, classes_and_labels, of_plain_type, require_labels
from svmosaic.model.heads import Classify, Regress
from svmosaic.packing import without_duplicates

DTYPES = [np.float64, np.float32]
MANY_VALUES = 1_000_000  # that are looked through for infinite ones on all threads
FAR_SAMPLE = 10_000  # rows whose distance from the origin stands for that of all
LEAVE_OUT = "Leave the rows without a known y out."
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
    if above is not None:
        wanted.append(f"above {above}")
        ok = ok and value > above
    if at_least is not None:
        wanted.append(f"at least {at_least}")
        ok = ok and value >= at_least
    if at_most is not None:
        wanted.append(f"at most {at_most}")
        ok = ok and value <= at_most
    if below is not None:
        wanted.append(f"below {below}")
        ok = ok and value < below
    if not ok:
        alternative = " or None" if optional else ""
        raise ValueError(f"{name} must be {', '.join(wanted)}{alternative}, got {plain(value)!r}")


def plain(value):
    """A scalar of NumPy as Python's, for messages: 0 and not np.int64(0)."""
    return value.item() if isinstance(value, np.generic) else value


def check_choice(name, value, choices):
    """Raise ValueError unless `value` is one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {plain(value)!r}")


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

    def wanted(self, output):
        """What the scores of an output should be, as a loss takes it: signs."""
        return self.signs(output)

    @property
    def truth(self):
        """What `Head.region_counts` takes as the target."""
        return self.label

    @property
    def learned(self):
        """What the gate learner takes as the target: positions of the classes, in a column."""
        return self.label[:, None]

    def take(self, rows) -> "Target":
        """The target of some of the rows."""
        sample_weight = None if self.sample_weight is None else self.sample_weight[rows]
        return Target(self.classes, self.label[rows], self.weight[rows], sample_weight)

    def relative(self) -> "Target":
        """The same with sample weights relative to their mean, for models whose C is not the user's."""
        if self.sample_weight is None or self.sample_weight.mean() == 1:
            return self
        mean = self.sample_weight.mean()
        return Target(self.classes, self.label, self.weight / mean, self.sample_weight / mean)

    def signs(self, output):
        """+1 and -1 of the rows for one output, as int8."""
        return self.head.signs(self.label, output)


def validate_training(estimator, X, y, sample_weight=None, class_weight=None, **check):
    """Validated X and target, without the rows of weight zero."""
    X, y = validate(estimator, X, y, **check)
    classes, label = classes_and_labels(y)
    X, target = _weigh(X, y, classes, label, sample_weight, class_weight)
    present = classes if len(target.label) == len(label) else classes[np.unique(target.label)]
    require_two_classes(estimator, classes, present)
    return X, target


@dataclass(frozen=True)
class ValueTarget:
    """What values the rows should have, and how much each counts.

    Attributes
    ----------
    head : Regress
        From scores to values.
    y : ndarray of shape (n_rows,) or (n_rows, n_targets)
    weight : ndarray of shape (n_rows,), all positive
    """

    head: Regress
    y: np.ndarray
    weight: np.ndarray

    label = None  # there are no classes

    @property
    def sample_weight(self):
        """The weights: there are none of classes to multiply them."""
        return self.weight

    @property
    def n_outputs(self) -> int:
        return self.head.n_outputs

    @property
    def truth(self):
        """What `Head.region_counts` takes as the target."""
        return self.y

    @property
    def learned(self):
        """What the gate learner takes as the target: scores, of shape (n_rows, n_outputs)."""
        return self.head.targets(self.y)

    def wanted(self, output):
        """What the scores of an output should be, as a loss takes it: numbers."""
        return self.learned[:, output]

    def take(self, rows) -> "ValueTarget":
        """The target of some of the rows."""
        return ValueTarget(self.head, self.y[rows], self.weight[rows])

    def relative(self) -> "ValueTarget":
        """The same with weights relative to their mean, for models whose C is not the user's."""
        mean = self.weight.mean()
        return self if mean == 1 else ValueTarget(self.head, self.y, self.weight / mean)


def validate_values(estimator, X, y, sample_weight=None, *, head=None, normalize=True, copies=1, reset=True):
    """Validated X and target of a regression, without the rows of weight zero.

    Parameters
    ----------
    estimator : estimator
    X, y, sample_weight : what was given to fit
    head : Regress, optional
        That of earlier rows; found from these if not given.
    normalize : bool
        Whether the head standardizes y.
    copies : int
        How many outputs are asked for of each y of one dimension; more than one makes it so many equal targets.
    reset : bool
        Whether these are the first rows.
    """
    name = type(estimator).__name__
    if sparse.issparse(y):
        raise ValueError(f"y must be dense for {name}, got a sparse matrix: pass y.toarray()")
    if getattr(y, "ndim", 0) > 2:
        raise ValueError(f"y must have one or two dimensions for {name}, got shape {np.shape(y)}")
    try:
        with np.errstate(invalid="ignore"):  # sums by which scikit-learn looks for NaN may overflow
            X, y = validate(estimator, X, y, multi_output=True, reset=reset)
    except ValueError as error:
        if str(error).startswith("Input y contains"):
            raise ValueError(f"{error} {LEAVE_OUT}") from error
        raise
    y = numbers_of(name, y)
    if np.isnan(y).any():  # None among objects
        raise ValueError(f"Input y contains NaN. {LEAVE_OUT}")
    if copies > 1:
        _require_one_target(y.shape)
        y = np.repeat(y[:, None], copies, axis=1)
    weight = check_weight(sample_weight, X)
    kept = weight > 0
    if not kept.any():
        raise ValueError(NO_WEIGHT)
    if not kept.all():
        X, y, weight = X[kept], y[kept], weight[kept]
    if head is None:
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused
            head = Regress.of(y, weight) if normalize else Regress.plain(y)
        if not (np.isfinite(head.center).all() and np.isfinite(head.scale).all()):
            raise ValueError(f"y is too large: its spread overflows float64 (largest {np.abs(y).max():.3g}); scale it")
    elif y.shape[1:] != np.shape(head.center):
        raise ValueError(f"y has shape {y.shape}, but the rows before had {np.shape(head.center)} after the first axis")
    return X, ValueTarget(head, y, weight)


def _require_one_target(shape):
    if len(shape) > 1:
        raise ValueError(
            f"several quantiles need a one-dimensional y, got y of shape {shape}: fit a model for each target, or "
            "give one quantile"
        )


def repeated(head, copies) -> Regress:
    """The head of so many equal targets, made of that of one."""
    if copies == 1:
        return head
    _require_one_target(("n_rows", *np.shape(head.center)))
    return Regress(np.full(copies, head.center), np.full(copies, head.scale))


def numbers_of(name, y):
    """y as float64, for the estimator of this name."""
    if np.asarray(y).dtype.kind in "mM":
        raise ValueError(
            f"y must hold numbers for {name}, got dates or durations: convert them, for example to days by "
            "(y - y.min()) / numpy.timedelta64(1, 'D')"
        )
    try:
        return np.asarray(y).astype(np.float64)
    except (TypeError, ValueError) as error:
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
    check_labels(y)
    unknown = np.setdiff1d(y, classes)
    if len(unknown):
        raise ValueError(
            f"y contains {unknown.tolist()!r}, which is not among the classes announced: {classes.tolist()!r}"
        )
    return _weigh(X, y, classes, np.searchsorted(classes, y), sample_weight, class_weight)


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
        y = tuple(map(of_plain_type, y))
    fits = bool(y) and _norms_fit(X)  # finite squares are of finite values, which scikit-learn need not look for
    try:
        X = _with_short_indices(X)
        found = validate_data(
            estimator, X, *y, accept_sparse=accept_sparse, dtype=DTYPES, order="C", accept_large_sparse=False,
            ensure_all_finite=not (fits or _is_finite(estimator, X)), **check,
        )  # fmt: skip
    except ValueError as error:
        if "could not convert" in str(error):
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


def _norms_fit(X) -> bool:
    """Whether X is an array that needs no conversion, and its squares have a finite sum."""
    return _is_plain(X) and X.dtype == np.float64 and _has_finite_square(X.ravel())


def _is_finite(estimator, X) -> bool:
    """Whether X is a large array of finite values; False if that is left to scikit-learn, which looks on one thread."""
    if not _is_plain(X) or X.size < MANY_VALUES or get_config()["assume_finite"]:
        return False
    return _core.all_finite(X.ravel(), effective_n_jobs(getattr(estimator, "n_jobs", None)))


def _is_plain(X) -> bool:
    return type(X) is np.ndarray and X.dtype in DTYPES and X.flags.c_contiguous


def _has_finite_square(values) -> bool:
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.dot(values, values)))


def _with_short_indices(X):
    """Sparse rows with indices of 32 bits, where these are enough: SciPy keeps longer ones that it was given."""
    if not sparse.issparse(X) or max(X.nnz, *X.shape) >= 2**31:
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
