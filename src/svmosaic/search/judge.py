"""Judges: what scores of held-out rows are worth, by the user's metric and by a proper loss."""

import warnings
from abc import ABC, abstractmethod
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer, get_scorer_names

from svmosaic._validation import plain
from svmosaic.losses import log_loss
from svmosaic.model.calibration import Odds, Temperature, fit_calibration, fit_odds, odds_losses
from svmosaic.model.heads import Classify, Regress, flattened, in_columns, signs_of
from svmosaic.search.mixing import MOST_CLASSES, Mixing, fit_mixing

# Groups of rows that are left out in turn for the standard error of a difference.
GROUPS = 20
# Rows that scores of several classes are calibrated on, in a search.
MOST_ROWS = 8000
# Probabilities are kept this far from zero in the log-loss.
SMALLEST = 1e-12
# Scores of perfect answers: half the log-odds, nearly.
SURE = 10.0
# Metrics of two classes, and what does the same for more.
OF_SEVERAL = {"roc_auc": "roc_auc_ovr", "average_precision": "neg_log_loss"} | {
    name: f"{name}_macro" for name in ("f1", "precision", "recall", "jaccard")
}
# What other libraries call a metric, and scikit-learn's scorer for it.
ELSEWHERE = {
    "auc": "roc_auc",
    "logloss": "neg_log_loss",
    "binary_logloss": "neg_log_loss",
    "multi_logloss": "neg_log_loss",
    "mae": "neg_mean_absolute_error",
    "mse": "neg_mean_squared_error",
    "rmse": "neg_root_mean_squared_error",
    "mape": "neg_mean_absolute_percentage_error",
    "mcc": "matthews_corrcoef",
}


class _Answers(BaseEstimator):
    """Stands in for a model whose scores are known: scorers ask it about the very rows that they are given."""

    def __init__(self, scores, head):
        self.scores = scores
        self.head = head

    def predict(self, X):
        return self.head.answers(self.scores)


class _Classes(ClassifierMixin, _Answers):
    @property
    def classes_(self):
        return self.head.classes

    def decision_function(self, X):
        return flattened(self.scores)

    def predict_proba(self, X):
        return self.head.probabilities(self.scores)


class _Values(RegressorMixin, _Answers):
    pass


class MetricError(TypeError, ValueError):
    """A metric cannot score these rows, or these answers for them.

    See Also
    --------
    svmosaic.MosaicClassifier : Has a parameter `metric`.
    svmosaic.MosaicRegressor : The same for numeric targets.
    """


class Judge(ABC):
    """What classification and regression have in common.

    Parameters
    ----------
    X : validated rows
    target : Target
    metric : str or callable
        The name of a scorer of scikit-learn, or callable (estimator, X, y) -> float, larger is better.
    """

    stand_in: Any
    default: str
    task: str

    def __init__(self, X, target, metric):
        self.X, self.target, self.metric = X, target, metric
        self.scorer = metric if callable(metric) else scorer_of(metric, self.default)
        weight = target.sample_weight
        self.weight = None if weight is None or (weight == weight[0]).all() else weight

    def score(self, scores, rows) -> float:
        """The metric of the rows with these indices, from their scores of shape (n_rows, n_outputs)."""
        options = {}
        if self.weight is not None and not _plain_function(self.scorer):
            options["sample_weight"] = self.weight[rows]
        model = self.stand_in(scores, self.head_for(scores))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # a part without a class, or with a single row
                value = float(self.scorer(model, self.X[rows], self.truth[rows], **options))
        except (AttributeError, ValueError, TypeError) as error:
            raise MetricError(f"metric={self.metric!r} cannot score these rows: {error}{self.lack(rows)}") from error
        if not np.isfinite(value):
            raise MetricError(f"metric={self.metric!r} gave {value} on these rows{self.lack(rows)}")
        return value

    def score_or_least(self, scores, rows) -> float:
        """The same; minus infinity if the metric does not accept such scores."""
        try:
            return self.score(scores, rows)
        except MetricError:
            return -np.inf

    def check_metric(self):
        """Raise MetricError unless the metric can score perfect answers.

        A model whose answers it does not accept, such as negative values, is then a failed trial and no reason to stop.
        """
        try:
            self.score(self.perfect(), np.arange(self.X.shape[0]))
        except MetricError as error:
            hint = self.hint()
            raise MetricError(f"{error}; {hint}" if hint else str(error)) from error.__cause__

    def lack(self, rows) -> str:
        """What rows lack that some metrics need, as the end of a message."""
        return ""

    def hint(self) -> str:
        """What to use instead of the metric, if it is known."""
        return ""

    def error_of_difference(self, one, other, rows) -> float:
        """Standard error of the difference of the metric between two models, by leaving out groups of rows in turn.

        Parameters
        ----------
        one, other : ndarray of shape (n_rows, n_outputs)
        rows : ndarray of int
        """
        group = np.arange(len(rows)) % min(GROUPS, len(rows))
        differences = []
        for g in range(group.max() + 1):
            kept = group != g
            try:
                differences.append(self.score(one[kept], rows[kept]) - self.score(other[kept], rows[kept]))
            except MetricError:  # no row of a class is left
                continue
        n = len(differences)
        return float(np.sqrt((n - 1) * np.var(differences))) if n > 1 else 0.0

    truth: np.ndarray

    def suited(self, candidate):
        """The candidate with the loss that goes with the metric."""
        return candidate

    @abstractmethod
    def perfect(self) -> np.ndarray:
        """Scores of all rows that answer as is true."""

    @abstractmethod
    def head_for(self, scores) -> Any:
        """The head that turns scores into answers for the metric."""

    @abstractmethod
    def temper(self, scores, rows) -> tuple[float, float]:
        """The factor, and what is added afterwards, that make scores comparable with those of other models."""

    def tempered(self, scores, rows) -> np.ndarray:
        """Scores that are comparable with those of other models."""
        factor, shift = self.temper(scores, rows)
        return factor * scores + shift

    def mix(self, scores, rows) -> tuple[Mixing | None, np.ndarray]:
        """What a model gains from the scores of its other outputs, or None, and its mixed scores of these rows."""
        return None, scores

    @abstractmethod
    def losses(self, scores, rows) -> np.ndarray:
        """The loss of each row, by tempered scores."""

    def loss(self, scores, rows) -> float:
        """The mean loss, by tempered scores."""
        return float(np.average(self.losses(scores, rows), weights=self.target.weight[rows]))


class ClassJudge(Judge):
    """For classifiers: the loss is the log-loss of calibrated scores.

    Metrics given by name see classes as 0, 1, ... in the order of the sorted labels, so that those about one class ask
    for the second, or for `pos_label`.
    """

    task = "classification"
    stand_in = _Classes
    default = "accuracy"

    def __init__(self, X, target, metric, pos_label=None):
        super().__init__(X, target, metric)
        n_classes = len(target.classes)
        self.flipped = False
        if pos_label is not None:
            if pos_label not in target.classes:
                raise ValueError(f"pos_label must be one of the classes {target.classes.tolist()}, got {pos_label!r}")
            if n_classes != 2:
                raise ValueError(f"pos_label is for two classes, but y has {n_classes}; leave it out")
            self.flipped = pos_label == target.classes[0] and not callable(metric)
        names = target.classes if callable(metric) else np.arange(n_classes)
        self.names = names
        self.truth = names[1 - target.label if self.flipped else target.label]

    def perfect(self):
        label, n_outputs = self.target.label, self.target.n_outputs
        signs = [signs_of(label, c, n_outputs) for c in range(n_outputs)]
        return SURE * np.column_stack(signs)

    def lack(self, rows):
        classes = self.target.classes
        lacking = np.setdiff1d(np.arange(len(classes)), self.target.label[rows])
        if not len(lacking):
            return ""
        return (
            f" (held-out rows without the class {plain(classes[lacking[0]])!r}, which has too few rows to be held out: "
            "choose a metric that does not need all classes, or leave the class out)"
        )

    def hint(self):
        if len(self.target.classes) == 2 or self.metric not in OF_SEVERAL:
            return ""
        return f"for {len(self.target.classes)} classes, pass metric={OF_SEVERAL[self.metric]!r}"

    def scores_of(self, model, rows):
        """Scores of shape (n_rows, n_outputs) by a fitted model; classes that it has not seen come last."""
        scores = in_columns(model.decision_function(rows))
        classes = self.target.classes
        if len(model.classes_) == len(classes):
            return scores
        known = np.hstack([-scores, scores]) if scores.shape[1] == 1 else scores
        everything = np.repeat(known.min(axis=1, keepdims=True) - 1.0, len(classes), axis=1)
        everything[:, np.searchsorted(classes, model.classes_)] = known
        return everything

    def score(self, scores, rows):
        return super().score(-scores if self.flipped else scores, rows)

    def head_for(self, scores):
        # Tempered scores are half the log-odds for two classes, log-odds against the rest for more.
        return Classify(self.names, Temperature(1.0) if scores.shape[1] == 1 else Odds(1.0, 0.0))

    def temper(self, scores, rows):
        label, weight = self.target.label[rows], self.target.weight[rows]
        if len(np.unique(label)) < 2 or not np.ptp(scores):
            return 1.0, 0.0
        if scores.shape[1] > 1:
            some = slice(None, None, -(-len(rows) // MOST_ROWS))  # two numbers need no more
            return fit_odds(scores[some], label[some], weight[some])
        beta = fit_calibration("temperature", scores, label, weight).beta
        return float(beta) if np.isfinite(beta) and beta > 0 else 1.0, 0.0

    def mix(self, scores, rows):
        label, weight = self.target.label[rows], self.target.weight[rows]
        if scores.shape[1] > MOST_CLASSES or len(np.unique(label)) < 2:
            return None, scores
        return fit_mixing(scores, label, weight)

    def losses(self, scores, rows):
        label = self.target.label[rows]
        if scores.shape[1] == 1:
            each = log_loss(2.0 * signs_of(label, 0, 1) * scores[:, 0])
        else:
            each, _, _ = odds_losses(scores, label)
        return np.minimum(each, -np.log(SMALLEST))


class ValueJudge(Judge):
    """For regressors: the loss is the squared error of standardized values, or the absolute one if the metric is so."""

    task = "regression"
    stand_in = _Values
    default = "r2"

    def __init__(self, X, target, metric):
        super().__init__(X, target, metric)
        self.truth = target.truth
        self.head = Regress.of(target.truth, target.weight)
        self.wanted = self.head.targets(target.truth)
        self.absolute = isinstance(metric, str) and "absolute" in metric

    def suited(self, candidate):
        if candidate.family == "boosted":
            return candidate
        # Less than 3 shrinks the numbers of leaves toward the mean.
        C = max(3.0, candidate.C) if candidate.only_leaves else candidate.C
        return replace(candidate, smooth=not self.absolute, C=C)

    def perfect(self):
        return self.wanted

    def scores_of(self, model, rows):
        """Predictions of shape (n_rows, n_targets) by a model of standardized values."""
        return in_columns(model.predict(rows))

    def head_for(self, scores):
        return self.head

    def temper(self, scores, rows):
        return 1.0, 0.0

    def losses(self, scores, rows):
        errors = np.abs(scores - self.wanted[rows])
        return (errors if self.absolute else errors**2).mean(axis=1)


def scorer_of(metric, example):
    """The scorer of this name; ValueError that says where the names are listed if there is none."""
    try:
        if metric is None:
            raise ValueError("no metric")
        return get_scorer(metric)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"metric must be the name of a scorer, such as {example!r} (sklearn.metrics.get_scorer_names() lists "
            f"them), or callable with (estimator, X, y), got {metric!r}{_meant(metric)}"
        ) from error


def _meant(metric) -> str:
    """The scorer that a name which is none may stand for, as the end of a message."""
    if not isinstance(metric, str):
        return ""
    found = [ELSEWHERE.get(metric.lower()), *get_close_matches(metric.lower(), get_scorer_names(), n=1)]
    found = [name for name in found if name]
    return f": did you mean {found[0]!r}?" if found else ""


def _plain_function(scorer) -> bool:
    """Whether a scorer is the user's own function, which takes no weights."""
    return not hasattr(scorer, "_sign")
