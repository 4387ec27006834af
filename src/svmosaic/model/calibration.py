"""Probabilities from scores, fitted by scikit-learn's calibrators to scores of rows held out.

What is kept of a calibrator are plain numbers, so that a predictor, a file, an ONNX graph and a C file can hold them
too. This module needs numpy alone until something is fitted.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from svmosaic.model.heads import positive_class

METHODS = ("temperature", "odds", "sigmoid", "isotonic")
# These keep the order of the scores, so `predict` stays as it is; they need no row of each class.
KEEP_ORDER = ("temperature", "odds")
N_FOLDS = 5
# Bounds of the logarithm of the slope and of the offset of "odds"; below the lower offset it is a softmax.
ODDS_BOUNDS = ((-12.0, 12.0), (-8.0, 20.0))
# Rows that two numbers are first fitted to, if there are many.
ODDS_ROWS = 2000
# The largest log-odds of a row are kept within these.
TOP_ODDS = (-30.0, 12.0)
# On the steps of isotonic regression scores tie; this share of a sigmoid of the score keeps their order.
TIE_BREAK = 1e-6


def sigmoid(s):
    """1 / (1 + exp(-s)) without overflow."""
    small = np.exp(-np.abs(s))
    return np.where(s >= 0, 1.0, small) / (1.0 + small)


def _per_class(each):
    """Probabilities of all classes from those of the outputs, of shape (n_rows, n_outputs).

    One output: 1 - p and p. Several: rows divided by their sums; equal shares if all are zero.
    """
    if each.shape[1] == 1:
        return np.hstack([1.0 - each, each])
    return _shares(each)


def _shares(values):
    total = values.sum(axis=1, keepdims=True)
    return np.divide(values, total, out=np.full_like(values, 1.0 / values.shape[1]), where=total > 0)


@dataclass(frozen=True, eq=False)
class Temperature:
    r"""Softmax of the scores times `beta`; for two classes of (-s, s). The largest score stays the most probable."""

    method: ClassVar[str] = "temperature"
    beta: float

    def probabilities(self, scores):
        """(n_samples, n_classes) from scores of shape (n_samples, n_outputs)."""
        if scores.shape[1] == 1:
            return _per_class(sigmoid(2.0 * self.beta * scores))
        logits = self.beta * scores
        return _shares(np.exp(logits - logits.max(axis=1, keepdims=True)))


@dataclass(frozen=True, eq=False)
class Odds:
    r"""For more than two classes: :math:`1 / (1 + \exp(-(a s_c + b)))`, with one a and b for all, then normalized.

    The largest score stays the most probable: log-odds so large or small that sigmoids tie are moved together.
    """

    method: ClassVar[str] = "odds"
    slope: float
    offset: float

    def probabilities(self, scores):
        """(n_samples, n_classes) from scores of shape (n_samples, n_outputs)."""
        odds = self.slope * scores + self.offset
        top = odds.max(axis=1, keepdims=True)
        return _shares(sigmoid(odds - top + np.clip(top, *TOP_ODDS)))


@dataclass(frozen=True, eq=False)
class Sigmoid:
    r"""Platt's :math:`1 / (1 + \exp(a_c s_c + b_c))` for each output, then normalized over the classes."""

    method: ClassVar[str] = "sigmoid"
    slope: np.ndarray
    offset: np.ndarray

    def probabilities(self, scores):
        """(n_samples, n_classes) from scores of shape (n_samples, n_outputs)."""
        return _per_class(sigmoid(-(self.slope * scores + self.offset)))


@dataclass(frozen=True, eq=False)
class Isotonic:
    """A rising step function for each output, linear between `x` and constant beyond, then normalized."""

    method: ClassVar[str] = "isotonic"
    x: list
    y: list

    def probabilities(self, scores):
        """(n_samples, n_classes) from scores of shape (n_samples, n_outputs)."""
        each = np.column_stack([np.interp(s, x, y) for s, x, y in zip(scores.T, self.x, self.y, strict=True)])
        return _per_class(each if scores.shape[1] == 1 else each + TIE_BREAK * sigmoid(scores))


@dataclass(frozen=True, eq=False)
class Posterior:
    r"""The mixture's own probabilities: scores of the posterior link are :math:`p(+|x) - p(-|x)`.

    For more than two classes those of the outputs, each against the rest, are normalized.
    """

    method: ClassVar[str] = "posterior"

    def probabilities(self, scores):
        """(n_samples, n_classes) from scores of shape (n_samples, n_outputs)."""
        return _per_class(0.5 * (1.0 + scores))


def fit_calibration(method, scores, label, sample_weight=None) -> Any:
    """Fit scikit-learn's calibrator to scores of rows that their model has not seen.

    Parameters
    ----------
    method : {"odds", "temperature", "sigmoid", "isotonic"}
    scores : ndarray of shape (n_samples, n_outputs), one output for two classes
    label : ndarray of int, places of the classes
    sample_weight : ndarray, optional
    """
    from sklearn.calibration import _SigmoidCalibration, _TemperatureScaling
    from sklearn.isotonic import IsotonicRegression

    if sample_weight is not None:
        sample_weight = np.ascontiguousarray(sample_weight)  # scikit-learn's loops want it so
    if method == "odds" and scores.shape[1] > 1:
        return Odds(*fit_odds(scores, label, sample_weight))
    if method in KEEP_ORDER:
        return Temperature(float(_TemperatureScaling().fit(scores, label, sample_weight).beta_))
    n_outputs = scores.shape[1]
    positive = [label == positive_class(c, n_outputs) for c in range(n_outputs)]
    if method == "sigmoid":
        fits = [_SigmoidCalibration().fit(s, p, sample_weight) for s, p in zip(scores.T, positive, strict=True)]
        return Sigmoid(np.array([f.a_ for f in fits]), np.array([f.b_ for f in fits]))
    fits = [
        IsotonicRegression(out_of_bounds="clip").fit(s, p.astype(float), sample_weight)
        for s, p in zip(scores.T, positive, strict=True)
    ]
    return Isotonic([f.X_thresholds_ for f in fits], [f.y_thresholds_ for f in fits])


def odds_losses(odds, label):
    """-log p of the labels, by log-odds of each class against the rest, and the sigmoids and their sums."""
    from scipy.special import expit, log_expit

    each = expit(odds)
    total = np.maximum(each.sum(axis=1), np.finfo(float).tiny)
    return np.log(total) - log_expit(odds[np.arange(len(label)), label]), each, total


def fit_odds(scores, label, sample_weight=None) -> tuple[float, float]:
    """Slope and offset, for all classes the same, that make scores of several classes log-odds against the rest.

    Probabilities are the sigmoids of these, normalized over the classes. Scores of the squared hinge are about
    2 p - 1, so those of classes that are out of the question are all near -1; a softmax, the limit of a low offset,
    cannot give them next to nothing without exaggerating the first.
    """
    weight = np.ones(len(label)) if sample_weight is None else np.asarray(sample_weight)
    spread = max(float(np.std(scores)), 1e-300)
    starts = [(np.clip(-np.log(spread), *ODDS_BOUNDS[0]), offset) for offset in (-1.0, ODDS_BOUNDS[1][0])]
    if len(label) > 2 * ODDS_ROWS:  # some rows say which start leads to the lower end, and nearly where it is
        some = slice(None, None, len(label) // ODDS_ROWS)
        starts = [_lowest_odds(starts, scores[some], label[some], weight[some])]
    best = _lowest_odds(starts, scores, label, weight)
    return float(np.exp(best[0])), float(best[1])


def _lowest_odds(starts, scores, label, weight):
    """The logarithm of the slope, and the offset, of the lowest loss that is found from these starts."""
    from scipy.optimize import minimize

    rows = np.arange(len(label))
    weight = weight / max(weight.sum(), np.finfo(float).tiny)

    def loss_and_gradient(point):
        slope = np.exp(point[0])
        losses, each, total = odds_losses(slope * scores + point[1], label)
        pull = (1.0 - each) * each / total[:, None]
        pull[rows, label] -= 1.0 - each[rows, label]
        pull *= weight[:, None]
        return weight @ losses, np.array([slope * np.vdot(pull, scores), pull.sum()])

    found = [minimize(loss_and_gradient, s, jac=True, method="L-BFGS-B", bounds=ODDS_BOUNDS) for s in starts]
    return min(found, key=lambda result: result.fun).x


def require_rows(method, classes, counts, at_least=2):
    """Raise ValueError unless there are enough rows of every class to hold some out."""
    rarest = int(counts.argmin())
    if counts[rarest] < at_least:
        raise ValueError(
            f"calibration={method!r} holds rows out and needs at least {'two' if at_least == 2 else at_least} of each "
            f"class, but class {str(classes[rarest])!r} has {counts[rarest]}; pass calibration=None"
        )


def cross_fit(method, target, scores_without, rng):
    """Calibrate on scores of rows held out in turn.

    Parameters
    ----------
    method : {"temperature", "sigmoid", "isotonic"}
    target : Target
    scores_without : callable
        Takes weights of the rows, zero for those held out, and returns scores of shape (n_rows, n_outputs) of all rows
        by tiles that were solved with these weights. The gate stays the one of the whole fit.
    rng : RandomState
    """
    from sklearn.model_selection import StratifiedKFold

    counts = np.bincount(target.label, minlength=len(target.classes))
    require_rows(method, target.classes, counts)
    folds = StratifiedKFold(
        min(N_FOLDS, int(counts.min())), shuffle=True, random_state=rng.randint(2**31 - 1)
    )  # fmt: skip
    scores = np.empty((len(target.label), target.n_outputs))
    for _, held_out in folds.split(scores, target.label):
        weight = target.weight.copy()
        weight[held_out] = 0.0
        scores[held_out] = scores_without(weight)[held_out]
    return fit_calibration(method, scores, target.label, target.sample_weight)
