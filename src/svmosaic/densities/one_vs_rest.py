"""Several binary machines as one classifier."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from svmosaic.model.heads import Classify, head_of, in_columns


class OneVsRestMachine(ClassifierMixin, BaseEstimator):
    """One binary SVM per class, or one for two classes.

    Unlike scikit-learn's, it passes `sample_weight` on by itself.
    """

    def __init__(self, estimator):
        self.estimator = estimator

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        positive = self.classes_[Classify(self.classes_).positive]
        self.estimators_ = [
            clone(self.estimator).fit(X, (y == c).astype(int), sample_weight=sample_weight) for c in positive
        ]
        return self

    def decision_function(self, X):
        values = np.column_stack([machine.decision_function(X) for machine in self.estimators_])
        return head_of(self).shaped(values)

    def predict(self, X):
        return head_of(self).answers(in_columns(self.decision_function(X)))
