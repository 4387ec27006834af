"""Several binary machines as one classifier."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone


class OneVsRestMachine(ClassifierMixin, BaseEstimator):
    """One binary SVM a class, or one for two classes; unlike scikit-learn's, it passes `sample_weight` on by itself."""

    def __init__(self, estimator):
        self.estimator = estimator

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        positive = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        self.estimators_ = [
            clone(self.estimator).fit(X, (y == c).astype(int), sample_weight=sample_weight) for c in positive
        ]
        return self

    def decision_function(self, X):
        values = np.column_stack([machine.decision_function(X) for machine in self.estimators_])
        return values.ravel() if len(self.classes_) == 2 else values

    def predict(self, X):
        values = self.decision_function(X)
        return self.classes_[(values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)]
