"""Mosaics of linear SVMs: certified fits, microsecond predictions, exact explanations."""

from typing import TYPE_CHECKING

from svmosaic import estimators
from svmosaic._lazy import lazy
from svmosaic._version import __version__ as __version__

# ruff: noqa: F401, F403
if TYPE_CHECKING:
    from svmosaic.densities import FusedSVC, GaussianMixtureClassifier, mixture_to_svm, svm_to_mixture
    from svmosaic.estimators import *
    from svmosaic.search import MosaicClassifier, MosaicRegressor

# A pickled predictor needs numpy and the core, not scikit-learn.
__all__, __getattr__, __dir__ = lazy(
    globals(),
    {
        "estimators": estimators.__all__,
        "search": ["MosaicClassifier", "MosaicRegressor"],
        "densities": ["FusedSVC", "GaussianMixtureClassifier", "mixture_to_svm", "svm_to_mixture"],
        "export.files": ["load"],
    },
)
