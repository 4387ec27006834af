"""All that the package exports and that can be fitted."""

import inspect

from sklearn.base import BaseEstimator

import svmosaic

EXPORTED = [getattr(svmosaic, name) for name in svmosaic.__all__]
ESTIMATORS = [thing for thing in EXPORTED if inspect.isclass(thing) and issubclass(thing, BaseEstimator)]
