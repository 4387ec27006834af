"""Sums of Gaussian kernels as the core holds them, for predictors.

This module needs numpy and the core only, and so does unpickling a `KernelScorer`.
"""

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from svmosaic import _core
from svmosaic.model.heads import contrast, count_outputs
from svmosaic.model.predictor import Predictor

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


def kernel_predictor(classes, n_features, machine=None, densities=None, *, calibration=None, **settings):
    """A `Predictor` of a model without tiles; the parameters are those of `KernelScorer` and of `Predictor`."""
    scorer = KernelScorer(len(classes), int(n_features), machine, densities, **settings)
    return Predictor(scorer, classes, calibration)


@dataclass(frozen=True, eq=False)
class KernelScorer:
    r"""Scores by sums of kernels, as the core holds them: what a `Predictor` of a model without tiles asks.

    Scores are :math:`w \, (\sum_i a_{ic} k_i(x) + b_c) + (1 - w) \, \rho \, p(c) p(x|c)`: the first part for a support
    vector machine, both for a fusion; for a Gaussian mixture classifier, the logarithm of its densities. Everything
    is computed in float64, as by the estimators; rows must be dense.

    Attributes
    ----------
    n_classes, n_features : int
    machine : tuple or None
        (map, arguments of the core's kernel bank, coef of shape (n_outputs, n_kernels), intercept)
    densities : list of tuples, or None
        (map, arguments of a kernel bank), whose densities are added, or ("full", arguments of the core's Gaussian
        gate, owner), which is alone.
    weight : float
        w; used only if there are both parts.
    log_ratio : float
        The logarithm of :math:`\rho`, likewise.
    posterior : bool
        Whether densities without a machine give probabilities by Bayes' rule.
    """

    n_classes: int
    n_features: int
    machine: tuple | None = None
    densities: list | None = None
    weight: float = 1.0
    log_ratio: float = 0.0
    posterior: bool = False

    def __getstate__(self):
        return {field.name: getattr(self, field.name) for field in fields(self)}  # without what the core holds

    @property
    def n_outputs(self) -> int:
        return count_outputs(self.n_classes)

    def decision_function(self, X, n_threads=1):
        """Scores of shape (n_rows, n_outputs)."""
        X = _float64(X)
        if self.machine is None:
            return contrast(self._joint(X, n_threads))
        linear, _, coef, intercept = self.machine
        scores = np.empty((len(X), len(coef)))
        self._bank.sums(_core.Rows.dense(_mapped(X, linear), 0.0), coef, scores, n_threads)
        scores += intercept
        if self.densities is None:
            return scores
        densities = scaled_densities(self._joint(X, n_threads), self.log_ratio)
        return self.weight * scores + (1 - self.weight) * densities

    def predict_proba(self, X, n_threads=1):
        """Probabilities by Bayes' rule, of shape (n_rows, n_classes)."""
        joint = self._joint(_float64(X), n_threads)
        top = joint.max(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            shares = np.exp(np.where(np.isfinite(top), joint - top, 0.0))
        return shares / shares.sum(axis=1, keepdims=True)

    @cached_property
    def _bank(self):
        return _core.KernelBank(*self.machine[1])

    @cached_property
    def _banks(self) -> list:
        return [
            (_core.GaussianGateF64 if isinstance(linear, str) else _core.KernelBank)(*arguments)
            for linear, arguments, *_ in self.densities or ()
        ]

    def _joint(self, X, n_threads):
        """log p(k) p(x|k), of shape (n_rows, n_classes)."""
        out = None
        for bank, (linear, _, *owner) in zip(self._banks, self.densities, strict=True):
            if isinstance(linear, str):
                terms = np.empty((len(X), len(owner[0])))
                bank.log_joint(_core.Rows.dense(X, 0.0), terms, n_threads)
                return log_sums(terms, owner[0], self.n_classes)
            found = np.empty((len(X), self.n_classes))
            bank.log_sums(_core.Rows.dense(_mapped(X, linear), 0.0), found, n_threads)
            out = found if out is None else np.logaddexp(out, found)
        return out


def _float64(X):
    if hasattr(X, "indptr"):
        raise TypeError("sparse rows are not supported: pass X.toarray()")
    return X.astype(np.float64, copy=False)


def _mapped(X, linear):
    if linear is None:
        return X
    return X * linear if linear.ndim == 1 else np.ascontiguousarray(X @ linear.T)
