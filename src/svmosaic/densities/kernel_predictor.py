"""Prediction without ceremony for sums of Gaussian kernels: the counterpart of `Predictor` for models without tiles.

This module needs numpy and the core only, and so does unpickling a `KernelPredictor`.
"""

import numpy as np

from svmosaic import _core
from svmosaic.model.heads import contrast
from svmosaic.model.predictor import BasePredictor, checked

# exp of more than this overflows.
LARGEST_EXPONENT = 700.0


def log_sums(log_terms, owner, n_classes):
    """log sum_{i: owner_i = c} exp(log_terms[n, i]) for every class c, of shape (n_rows, n_classes)."""
    out = np.empty((len(log_terms), n_classes))
    for c in range(n_classes):
        mine = log_terms[:, owner == c]
        top = mine.max(axis=1, keepdims=True, initial=-np.inf)
        top = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            out[:, c] = np.log(np.exp(mine - top).sum(axis=1)) + top[:, 0]
    return out


def scaled_densities(joint, log_ratio):
    """exp(log_ratio) p(k) p(x|k) from log p(k) p(x|k), for two classes their difference, of shape (n_rows, n_outputs).

    Through logarithms, so that nothing underflows.
    """
    top = joint.max(axis=1, keepdims=True)
    scaled = np.exp(np.minimum(top + log_ratio, LARGEST_EXPONENT)) * np.exp(joint - top)
    return contrast(scaled)


class KernelPredictor(BasePredictor):
    r"""A compiled sum of kernels: one row or a batch, no checks beyond shape and dtype.

    Scores are :math:`w \, (\sum_i a_{ic} k_i(x) + b_c) + (1 - w) \, \rho \, p(c) p(x|c)`: the first part for a support
    vector machine, both for a fusion; for a Gaussian mixture classifier, the logarithm of its densities. Everything
    is computed in float64, as by the estimators; rows must be dense.

    Obtain one from `predictor()` of a `GaussianMixtureClassifier`, a `FusedSVC`, a `ConvertedSVM` or a
    `ConvertedMixture`.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
    n_features : int
    machine : tuple, optional
        (map, arguments of the core's kernel bank, coef of shape (n_outputs, n_kernels), intercept)
    densities : list of tuples, optional
        (map, arguments of a kernel bank), whose densities are added, or ("full", arguments of the core's Gaussian
        gate, owner), which is alone.
    weight : float, default=1.0
        w; used only if there are both parts.
    log_ratio : float, default=0.0
        The logarithm of :math:`\rho`, likewise.
    calibration : Calibration, optional
        Converts scores to probabilities; if given, `predict` returns the most probable class.
    posterior : bool, default=False
        Whether densities without a machine give probabilities by Bayes' rule.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
    n_features : int

    See Also
    --------
    svmosaic.model.predictor.Predictor : The predictor of models made of tiles.

    Examples
    --------
    >>> from svmosaic import GaussianMixtureClassifier
    >>> from svmosaic.datasets import make_xor
    >>> X, y = make_xor(random_state=0)
    >>> predictor = GaussianMixtureClassifier(n_densities=2, random_state=0).fit(X, y).predictor()
    >>> int(predictor(X[0])) == int(y[0])
    True
    >>> predictor(X).shape
    (400,)
    """

    def __init__(
        self,
        classes,
        n_features,
        machine=None,
        densities=None,
        *,
        weight=1.0,
        log_ratio=0.0,
        calibration=None,
        posterior=False,
    ):
        if machine is None and densities is None:
            raise ValueError("pass a machine, densities, or both")
        self.__setstate__(
            {
                "classes": np.asarray(classes),
                "n_features": int(n_features),
                "machine": machine,
                "densities": densities,
                "weight": float(weight),
                "log_ratio": float(log_ratio),
                "calibration": calibration,
                "posterior": bool(posterior),
            }
        )

    def __setstate__(self, state):
        self._keep(state)
        self.n_features = state["n_features"]
        self._machine = self._densities = None
        if state["machine"] is not None:
            linear, arguments, coef, intercept = state["machine"]
            self._machine = (linear, _core.KernelBank(*arguments), coef, intercept)
        if state["densities"] is not None:
            self._densities = [
                (linear, _core.GaussianGateF64(*arguments), *more)
                if isinstance(linear, str)
                else (linear, _core.KernelBank(*arguments))
                for linear, arguments, *more in state["densities"]
            ]

    def _probabilities(self, X, n_threads):
        if self._calibration is not None or self._machine is not None or not self._state["posterior"]:
            return super()._probabilities(X, n_threads)
        joint = self._joint(self._rows(X), n_threads)
        top = joint.max(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            shares = np.exp(np.where(np.isfinite(top), joint - top, 0.0))
        return shares / shares.sum(axis=1, keepdims=True)

    def _rows(self, X):
        """Return X as a batch of float64, or raise an error with the reason."""
        if hasattr(X, "indptr"):
            raise TypeError("sparse rows are not supported: pass X.toarray()")
        return checked(X, self.n_features).astype(np.float64, copy=False)

    def _scores(self, X, n_threads):
        X = self._rows(X)
        if self._machine is None:
            return contrast(self._joint(X, n_threads))
        linear, bank, coef, intercept = self._machine
        scores = np.empty((len(X), len(coef)))
        bank.sums(_handle(_mapped(X, linear)), coef, scores, n_threads)
        scores += intercept
        if self._densities is None:
            return scores
        weight, log_ratio = self._state["weight"], self._state["log_ratio"]
        return weight * scores + (1 - weight) * scaled_densities(self._joint(X, n_threads), log_ratio)

    def _joint(self, X, n_threads):
        """log p(k) p(x|k), of shape (n_rows, n_classes)."""
        out = None
        for linear, bank, *more in self._densities:
            if isinstance(linear, str):
                terms = np.empty((len(X), len(more[0])))
                bank.log_joint(_handle(X), terms, n_threads)
                return log_sums(terms, more[0], len(self.classes))
            found = np.empty((len(X), len(self.classes)))
            bank.log_sums(_handle(_mapped(X, linear)), found, n_threads)
            out = found if out is None else np.logaddexp(out, found)
        return out


def _mapped(X, linear):
    if linear is None:
        return X
    return X * linear if linear.ndim == 1 else np.ascontiguousarray(X @ linear.T)


def _handle(X):
    return _core.Rows.dense(X, 0.0)
