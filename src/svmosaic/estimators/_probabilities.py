"""Probabilities and classes from scores, the same for every classifier with a `calibration`."""

from typing import ClassVar

from sklearn.exceptions import NotFittedError

from svmosaic._validation import check_choice
from svmosaic.estimators._parameters import parameters
from svmosaic.model.calibration import METHODS
from svmosaic.model.heads import head_of, in_columns


@parameters
class ProbabilityMixin:
    """`predict` and `predict_proba` from `decision_function` and, if there is one, `calibration_`.

    Parameters
    ----------
    calibration : {"temperature", "odds", "sigmoid", "isotonic"} or None, default=None
        How `predict_proba` converts scores to probabilities, fitted to scores of rows held out in five folds with the
        gate kept. "temperature" (one parameter) and "odds" (two parameters for all classes) do not change `predict`.
        "sigmoid": Platt scaling, two parameters per class. "isotonic": a step function per class, for large data. With
        any of them, `predict` returns the most probable class. None: no `predict_proba`.
    """

    calibration: str | None = None

    _calibrations: ClassVar[tuple[str, ...]] = METHODS

    @property
    def _scores_are_log_odds(self) -> bool:
        """Whether there are probabilities without a calibration being fitted."""
        return False

    def predict(self, X):
        """Predict the class with the largest score, or, with a calibration, the largest probability."""
        scores = self.decision_function(X)  # first: NotFittedError, not AttributeError
        return head_of(self).answers(in_columns(scores))

    @property
    def predict_proba(self):
        """Predict probabilities of shape (n_samples, n_classes); available only with a `calibration`."""
        # No `available_if`, whose error does not say what is lacking.
        if self.calibration is None and not self._scores_are_log_odds:
            others = " or ".join(repr(method) for method in self._calibrations if method != "temperature")
            raise AttributeError(
                f'{type(self).__name__} has no predict_proba without a calibration: pass calibration="temperature" '
                f"(or {others}) and fit it again"
            )
        return self._predict_proba

    def _predict_proba(self, X):
        """Probabilities of the rows of X, of shape (n_samples, n_classes)."""
        scores = self.decision_function(X)
        if getattr(self, "calibration_", None) is None:
            raise NotFittedError(
                f"this {type(self).__name__} was fitted without calibration; fit it again to have probabilities"
            )
        return head_of(self).probabilities(in_columns(scores))

    _predict_proba.__name__ = "predict_proba"  # by which scikit-learn's scorers know what they have called

    def _check_calibration(self):
        if self.calibration is not None:
            check_choice("calibration", self.calibration, self._calibrations)
