"""Probabilities and classes from scores, the same for every classifier with a `calibration`."""

from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if

from svmosaic._validation import check_choice
from svmosaic.calibration import METHODS

CALIBRATION_PARAMETER = """calibration : {"temperature", "sigmoid", "isotonic"} or None, default=None
        How `predict_proba` turns scores into probabilities, fitted to scores of rows held out in five folds with the
        gate kept. "temperature": one number, `predict` stays as it is. "sigmoid": Platt's, two numbers a class.
        "isotonic": a step function a class, for large sets. With any, `predict` is the most probable class. None: no
        `predict_proba`.
    """


def _has_calibration(estimator):
    if getattr(estimator, "calibration", None) is None and not estimator._scores_are_log_odds:
        choices = [repr(method) for method in estimator._calibrations]
        raise AttributeError(
            f"predict_proba of {type(estimator).__name__} needs calibration={', '.join(choices[:-1])} or "
            f"{choices[-1]}, got None"
        )
    return True


class ProbabilityMixin:
    """`predict` and `predict_proba` from `decision_function` and, where there is one, `calibration_`."""

    _calibrations: tuple[str, ...] = METHODS

    @property
    def _scores_are_log_odds(self) -> bool:
        """Whether there are probabilities without a calibration being fitted."""
        return False

    def predict(self, X):
        """The class with the largest score, or, with a calibration, the largest probability."""
        scores = self.decision_function(X)  # first: NotFittedError, not AttributeError
        return self.classes_[self._winners(scores.reshape(len(scores), -1))]

    @available_if(_has_calibration)
    def predict_proba(self, X):
        """Probabilities of shape (n_samples, n_classes); there with `calibration` only.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        """
        scores = self.decision_function(X)
        if getattr(self, "calibration_", None) is None:
            raise NotFittedError(
                f"this {type(self).__name__} was fitted without calibration; fit it again to have probabilities"
            )
        return self.calibration_.probabilities(scores.reshape(len(scores), -1))

    def _winners(self, scores):
        """Places of the classes that win, from scores of shape (n_samples, n_outputs)."""
        if getattr(self, "calibration_", None) is not None:
            return self.calibration_.probabilities(scores).argmax(axis=1)
        return (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)

    def _check_calibration(self):
        if getattr(self, "calibration", None) is not None:
            check_choice("calibration", self.calibration, self._calibrations)
