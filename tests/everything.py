"""All that the package exports and that can be fitted."""

import inspect

from sklearn.base import BaseEstimator, is_regressor

import svmosaic

EXPORTED = [getattr(svmosaic, name) for name in svmosaic.__all__]
ESTIMATORS = [thing for thing in EXPORTED if inspect.isclass(thing) and issubclass(thing, BaseEstimator)]
REGRESSORS = [estimator for estimator in ESTIMATORS if is_regressor(estimator())]
CLASSIFIERS = [estimator for estimator in ESTIMATORS if estimator not in REGRESSORS]
