"""From the description of a method to an estimator, and the properties of a fitted one."""

from collections.abc import Callable

import numpy as np
import sklearn.svm
from sklearn.kernel_approximation import AdditiveChi2Sampler
from sklearn.pipeline import make_pipeline

import svmosaic
from svmosaic.densities.one_vs_rest import OneVsRestMachine
from svmosaic.experiments.describe import Method

# Megabytes of kernel values that scikit-learn's SVM keeps; its default of 200 is for smaller sets.
CACHE = 1000


def _kernel_svm(**settings):
    return sklearn.svm.SVC(cache_size=CACHE, **settings)


def _fused(n_densities, **svm):
    mixture = svmosaic.GaussianMixtureClassifier(n_densities)
    return svmosaic.FusedSVC(_kernel_svm(**svm), mixture, weight=0.5)


def _additive(**settings):
    return make_pipeline(AdditiveChi2Sampler(), svmosaic.LinearSVC(**settings))


def _multi_task(C, label_weight=1.0, **settings):
    penalty = label_weight / (2 * C)
    return svmosaic.MultiTaskMixtureSVC(label_weight=label_weight, alpha=penalty, beta=penalty, **settings)


MODELS: dict[str, Callable] = {
    "LSVM-MTL": _multi_task,
    "kernel SVM": _kernel_svm,
    # libSVM's way with several classes.
    "one-vs-one linear SVM": lambda **settings: sklearn.svm.SVC(kernel="linear", **settings),
    "one-vs-rest kernel SVM": lambda **settings: OneVsRestMachine(_kernel_svm(**settings)),
    "fused": _fused,
    "additive SVM": _additive,
    # Eight neighbors unless a table says otherwise, as the paper has them; the library's default is sixteen.
    "LocallyLinearSVC": lambda n_neighbors=8, **settings: svmosaic.LocallyLinearSVC(
        n_neighbors=n_neighbors, **settings
    ),
    "locally additive SVM": lambda **settings: svmosaic.LocallyLinearSVC(feature_map=AdditiveChi2Sampler(), **settings),
}


def is_available(method: Method) -> bool:
    """Whether this version of the package has the method's estimator."""
    return method.model in MODELS or method.model in svmosaic.__all__


def build(method: Method, setting, seed, *, tuning=False):
    """The estimator of a method with the setting that was chosen."""
    parameters = {**method.settings, **(method.tune_settings if tuning else {}), **setting}
    make = MODELS.get(method.model) or getattr(svmosaic, method.model)
    model = make(**parameters)
    for part in getattr(model, "named_steps", {"": model}).values():
        if "random_state" in part.get_params(deep=False):
            part.set_params(random_state=seed)
    return model


def size_of(model) -> int | None:
    """Tiles, support vectors, boosted SVMs or densities; None if a model has nothing of this kind."""
    model = getattr(model, "steps", [(None, model)])[-1][1]
    if hasattr(model, "mosaic_"):
        return int(model.mosaic_.n_tiles)
    if hasattr(model, "n_support_"):
        return int(np.sum(model.n_support_))
    if isinstance(model, OneVsRestMachine):
        return len(np.unique(np.concatenate([machine.support_ for machine in model.estimators_])))
    if hasattr(model, "n_estimators_"):
        return int(model.n_estimators_)
    if hasattr(model, "svm_mixture_"):
        return len(model.svm_mixture_.centers) + len(model.mixture_.means_)
    if hasattr(model, "means_"):
        return len(model.means_)
    return None
