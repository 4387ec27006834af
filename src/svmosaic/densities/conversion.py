r"""RBF support vector machines written as Gaussian mixtures, and back, without changing a decision.

A sum of kernels and a Gaussian mixture with one covariance are the same function:

.. math:: \alpha_i e^{-\gamma \lVert x - v_i \rVert^2} = p(k) p(i|k) \, Z \, \mathcal N(x; v_i, \tfrac1{2\gamma} I),
          \qquad p(k) p(i|k) = |\alpha_i| (\pi / \gamma)^{D/2} / Z

with one Z for all. Three things need care (and are not as printed in the paper): the bias, the negative weights of
one-vs-rest machines, and the scale Z. See `svm_to_mixture`.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.metrics import accuracy_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted

from svmosaic._validation import DTYPES, check_choice, check_real
from svmosaic.densities.gaussian_mixture import GaussianMixtureClassifier
from svmosaic.densities.kernel_predictor import kernel_predictor
from svmosaic.densities.kernel_sums import kernel_bank, kernel_sums, squared_distances
from svmosaic.model.heads import Classify, contrast, count_outputs, head_of, in_columns

BIASES = ("class", "both", "wide")

# Squared radius of the wide density that may stand for a bias, in squared radii of the support vectors: the kernel is
# then within 1e-6 of one over the data.
_WIDE = 1e6

# Rows on which the reduced function is compared with the full one.
_MAX_ROWS = 4000

# Ridge of the least squares, as a share of the mean squared kernel column: keeps nearly equal kernels from cancelling.
_RIDGE = 1e-6


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


@dataclass(frozen=True)
class _KernelClassifier:
    """Kernels around centers, after an optional linear map; subclasses define the meaning of the coefficients."""

    classes_: np.ndarray
    centers: np.ndarray
    gamma: np.ndarray
    whitening: np.ndarray | None

    def _sums(self, X, coef, n_jobs):
        X = check_array(X, dtype=DTYPES).astype(np.float64, copy=False)
        if X.shape[1] != self.centers.shape[1]:
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(self).__name__} has centers of {self.centers.shape[1]}"
            )
        centers = self.centers
        if self.whitening is not None:
            X, centers = _mapped(X, self.whitening), _mapped(centers, self.whitening)
        return kernel_sums(np.ascontiguousarray(X), centers, self.gamma, coef, n_jobs)

    def predict(self, X, n_jobs=None):
        """Predict the class with the largest decision value."""
        return head_of(self).answers(in_columns(self.decision_function(X, n_jobs)))

    def predictor(self):
        """Return a `Predictor`: the function compiled for single rows and small batches."""
        return kernel_predictor(self.classes_, self.centers.shape[1], self.packed())

    def packed(self) -> tuple:
        """The kernels and their coefficients as `KernelScorer` takes them."""
        centers = self.centers if self.whitening is None else _mapped(self.centers, self.whitening)
        coef, intercept = self._machine()
        return self.whitening, kernel_bank(centers, self.gamma), np.ascontiguousarray(coef), intercept

    def _machine(self) -> tuple:
        """Coefficients of shape (n_outputs, n_centers) and intercepts of the decision values."""
        raise NotImplementedError

    def save(self, path):
        """Write it to a file that `svmosaic.load` opens without executing code from it.

        Parameters
        ----------
        path : str or path
        """
        from svmosaic.export.files import save

        save(self, path)

    def score(self, X, y):
        """Accuracy."""
        return accuracy_score(y, self.predict(X))


@dataclass(frozen=True)
class ConvertedSVM(_KernelClassifier):
    r"""An RBF SVM: :math:`f_c(x) = \sum_i a_{ci} \exp(-\gamma_i \lVert T x - T v_i \rVert^2) + b_c`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    centers : ndarray of shape (n_support, n_features)
        The support vectors v, also as `support_vectors_`.
    gamma : ndarray of shape (n_support,)
        All equal unless the machine came from one-vs-rest parts with different widths.
    whitening : ndarray of shape (n_features,) or (n_features, n_features), or None
        The linear map T, where the mixture had a covariance other than a multiple of the identity.
    dual_coef_ : ndarray of shape (1 or n_classes, n_support)
        a, one line for two classes.
    intercept_ : ndarray of shape (1 or n_classes,)
        b

    See Also
    --------
    mixture_to_svm : Creates it.
    """

    dual_coef_: np.ndarray
    intercept_: np.ndarray

    @property
    def support_vectors_(self):
        return self.centers

    def _machine(self):
        return self.dual_coef_, self.intercept_

    def decision_function(self, X, n_jobs=None):
        """Return f(x): of shape (n_samples,) for two classes, else (n_samples, n_classes)."""
        return head_of(self).shaped(self._sums(X, self.dual_coef_.T, n_jobs) + self.intercept_)


@dataclass(frozen=True)
class ConvertedMixture(_KernelClassifier):
    r"""A Gaussian mixture that decides as an SVM does.

    Class k has the score :math:`S_k(x) = \sum_i c_{ik} \exp(-\gamma_i \lVert T x - T \mu_i \rVert^2) + \beta_k`
    with c and :math:`\beta` not negative. Divided by exp(`log_scale_`) it is a mixture with the normalized `weights_`
    plus a constant.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    centers : ndarray of shape (m, n_features)
        Means of the densities, also as `means_`.
    gamma : ndarray of shape (m,)
        1 / (2 variance), after the linear map.
    whitening : ndarray of shape (n_features,) or (n_features, n_features), or None
        The linear map T.
    coef : ndarray of shape (m, n_classes)
        c, in units of the SVM's decision values.
    constants : ndarray of shape (n_classes,)
        beta, likewise.
    shared : ndarray of shape (m,)
        What was added to the SVM's coefficients of every class to make none of them negative.
    shared_constant : float
        What was added to every bias.

    See Also
    --------
    svm_to_mixture : Creates it.
    """

    coef: np.ndarray
    constants: np.ndarray
    shared: np.ndarray
    shared_constant: float

    @property
    def means_(self):
        return self.centers

    @property
    def variances_(self):
        """Variance of each density, shape (m,), after the linear map."""
        return 0.5 / self.gamma

    @property
    def weights_(self):
        """p(k) p(i|k), of shape (m, n_classes), summing to one; the constants are not part of the sum."""
        return np.exp(self._log_masses() - self.log_scale_)

    @property
    def log_scale_(self):
        """log Z: the scores are ``exp(log_scale_)`` times a normalized mixture."""
        return float(logsumexp(self._log_masses()))

    def _log_masses(self):
        # The integral of c exp(-gamma |T x|^2) is c (pi / gamma)^(D/2) / |det T|.
        log_det = 0.0
        if self.whitening is not None:
            vector = self.whitening.ndim == 1
            log_det = np.log(np.abs(self.whitening)).sum() if vector else np.linalg.slogdet(self.whitening)[1]
        volume = 0.5 * self.centers.shape[1] * np.log(np.pi / self.gamma) - log_det
        with np.errstate(divide="ignore"):
            return np.log(self.coef) + volume[:, None]

    def class_scores(self, X, n_jobs=None):
        """Return S_k(x), of shape (n_samples, n_classes), never negative."""
        return self._sums(X, self.coef, n_jobs) + self.constants

    def _machine(self):
        coef, intercept = self.coef - self.shared[:, None], self.constants - self.shared_constant
        return contrast(coef).T, contrast(intercept)

    def decision_function(self, X, n_jobs=None):
        """Return the SVM's decision values: S_1 - S_0 for two classes, else S_k minus what was added to every class."""
        if head_of(self).n_outputs == 1:
            return head_of(self).shaped(contrast(self.class_scores(X, n_jobs)))
        scores = self._sums(X, np.column_stack([self.coef, self.shared]), n_jobs)
        return scores[:, :-1] + self.constants - (scores[:, -1:] + self.shared_constant)


def svm_to_mixture(svm, *, bias="class", max_densities=None, X=None, random_state=None):
    r"""Convert a fitted RBF SVM to a Gaussian mixture with the same decisions.

    Support vectors become means, :math:`\sigma^2 = 1/(2\gamma)`, and for two classes :math:`|\alpha_i|` becomes the
    weight of a density of the class of its sign. For one-vs-rest machines with coefficients :math:`a_{ki}` of either
    sign, :math:`-\min_k a_{ki}` is added to all classes of each support vector if that minimum is negative (and
    likewise to the biases): every class score grows by the same function, so no decision changes. Decision values
    are reproduced up to rounding.

    Parameters
    ----------
    svm : fitted classifier
        scikit-learn's `SVC` or `NuSVC` with the RBF kernel and two classes; `OneVsRestClassifier` of such; a search
        over either; a `ConvertedSVM`; or anything with `classes_`, `support_vectors_`, `dual_coef_` (one line for two
        classes, otherwise one per class), `intercept_` and `gamma_`. A multiclass `SVC` votes one-vs-one and cannot be
        converted.
    bias : {"class", "both", "wide"}, default="class"
        "class": the bias is a constant given to the class of its sign, outside of the normalized weights. "both": as
        printed in the paper's equations 2 and 5, the bias is added to both classes, where it cancels: the decisions
        are those of an SVM without bias. "wide": the paper's density with very high variance, given to the class of
        the sign; decisions hardly change, but it takes nearly all of the normalized weight.
    max_densities : int or None, default=None
        Reduce the mixture to at most this many densities: prediction becomes cheaper in proportion, but is no longer
        exact. The means are found by k-means on the support vectors and then moved to approximate the SVM, and the
        weights are solved for.
    X : array-like of shape (n_samples, n_features) or None, default=None
        Rows, in the coordinates of the support vectors, on which the reduced mixture should be close to the SVM. None:
        the support vectors.
    random_state : int, RandomState or None, default=None
        For the k-means of `max_densities`.

    Returns
    -------
    ConvertedMixture

    See Also
    --------
    mixture_to_svm : The reverse conversion.
    FusedSVC : A blend of both.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.svm import SVC
    >>> from svmosaic import svm_to_mixture
    >>> from svmosaic.datasets import make_xor
    >>> X, y = make_xor(random_state=0)
    >>> svm = SVC().fit(X, y)
    >>> mixture = svm_to_mixture(svm)
    >>> bool(np.abs(mixture.decision_function(X) - svm.decision_function(X)).max() < 1e-8)
    True
    """
    check_choice("bias", bias, BIASES)
    check_real("max_densities", max_densities, at_least=1, integer=True, optional=True)
    machine = as_svm(svm)
    if max_densities is not None and max_densities < len(machine.centers):
        if len(np.unique(machine.gamma)) > 1:
            raise ValueError("max_densities needs one gamma for all support vectors")
        rows = machine.centers if X is None else check_array(X, dtype=DTYPES).astype(np.float64, copy=False)
        centers, gamma, whitening = machine.centers, machine.gamma[0], machine.whitening
        if whitening is not None:
            rows, centers = _mapped(rows, whitening), _mapped(centers, whitening)
        centers, coef, intercept = reduce_expansion(
            centers, machine.dual_coef_.T, machine.intercept_, gamma, max_densities, rows, random_state
        )
        if whitening is not None:
            centers = centers / whitening if whitening.ndim == 1 else np.linalg.solve(whitening, centers.T).T
        machine = ConvertedSVM(machine.classes_, centers, np.full(len(centers), gamma), whitening, coef.T, intercept)
    coef, intercept = machine.dual_coef_.T, machine.intercept_
    if len(machine.classes_) == 2:
        # Half against half: adding what is missing to the negative half gives all to the class of the sign.
        coef, intercept = np.column_stack([-coef, coef]) / 2, np.concatenate([-intercept, intercept]) / 2
    shared = np.maximum(-coef.min(axis=1), 0.0)
    shared_constant = max(-float(intercept.min()), 0.0)
    centers, gamma, constants = machine.centers, machine.gamma, intercept + shared_constant
    coef = coef + shared[:, None]
    if bias == "both":
        if len(machine.classes_) != 2:
            raise ValueError(f"bias='both' is the printed form for two classes, got {len(machine.classes_)}")
        constants, shared_constant = np.repeat(np.abs(machine.intercept_), 2), 0.0
    if bias == "wide":
        middle = centers.mean(axis=0)
        spread = centers - middle if machine.whitening is None else _mapped(centers - middle, machine.whitening)
        wide = 1.0 / (_WIDE * max(float((spread**2).sum(axis=1).max()), np.finfo(np.float64).tiny))
        centers, gamma = np.vstack([centers, middle]), np.append(gamma, wide)
        coef, shared = np.vstack([coef, constants]), np.append(shared, shared_constant)
        constants, shared_constant = np.zeros_like(constants), 0.0
    return ConvertedMixture(
        machine.classes_, centers, gamma, machine.whitening, np.ascontiguousarray(coef), constants, shared,
        shared_constant,
    )  # fmt: skip


def mixture_to_svm(mixture):
    r"""Convert a Gaussian mixture with one covariance to an RBF SVM with the same decisions.

    Means become support vectors and :math:`p(k) p(i|k)` becomes :math:`|\alpha_i|`, with no bias; a covariance other
    than a multiple of the identity becomes a linear map of the inputs, with :math:`\gamma = 1/2` behind it. Decision
    values are class densities :math:`p(k) p(x|k)` (for two classes their difference), divided by the height
    :math:`(2\pi)^{-D/2} |\Sigma|^{-1/2}` of a Gaussian that all densities share and that would underflow in many
    dimensions.

    Parameters
    ----------
    mixture : fitted GaussianMixtureClassifier with pooling="all", or ConvertedMixture
        Mixtures with several covariances have no single kernel and are refused. A `ConvertedMixture` is converted back
        to its SVM.

    Returns
    -------
    ConvertedSVM

    See Also
    --------
    svm_to_mixture : The reverse conversion.
    GaussianMixtureClassifier : The mixture that is converted.
    """
    if isinstance(mixture, ConvertedMixture):
        return ConvertedSVM(mixture.classes_, mixture.centers, mixture.gamma, mixture.whitening, *mixture._machine())
    if not isinstance(mixture, GaussianMixtureClassifier):
        raise TypeError(
            f"mixture must be a GaussianMixtureClassifier or a ConvertedMixture, got {type(mixture).__name__}"
        )
    check_is_fitted(mixture)
    if len(mixture.covariances_) > 1:
        raise ValueError(
            f"this mixture has {len(mixture.covariances_)} covariances and an SVM has one kernel: fit "
            f"GaussianMixtureClassifier(pooling='all'), got pooling={mixture.pooling!r}"
        )
    covariance, owner, weights = mixture.covariances_[0], mixture.owner_, mixture.weights_
    gamma, whitening = 0.5, None
    if covariance.ndim == 0:
        gamma = 0.5 / float(covariance)
    elif covariance.ndim == 1:
        whitening = 1.0 / np.sqrt(covariance)
    else:
        whitening = np.linalg.inv(np.linalg.cholesky(covariance))
    dual = contrast(np.where(owner == np.arange(len(mixture.classes_))[:, None], weights, 0.0), axis=0)
    return ConvertedSVM(
        mixture.classes_, mixture.means_, np.full(len(weights), gamma), whitening, dual, np.zeros(len(dual))
    )


def as_svm(svm):
    """A fitted RBF SVM, of whatever kind, as a `ConvertedSVM` with each support vector named once."""
    if isinstance(svm, ConvertedSVM):
        return svm
    svm = getattr(svm, "best_estimator_", svm)
    if hasattr(svm, "steps"):
        raise ValueError(
            "svm is a pipeline: convert its last step, and pass the mixture rows that the other steps have transformed "
            "(pipeline[:-1].transform)"
        )
    check_is_fitted(svm)
    if not hasattr(svm, "estimators_"):
        return _from_machine(svm)
    if not isinstance(svm, (OneVsRestClassifier, OneVsRestMachine)):
        raise ValueError(f"only one-vs-rest SVMs have a mixture form for several classes, got {type(svm).__name__}")
    parts = [_from_machine(getattr(part, "best_estimator_", part)) for part in svm.estimators_]
    # A support vector of several machines is one density with a weight for each class.
    rows = np.vstack([np.column_stack([part.centers, part.gamma]) for part in parts])
    unique, where = np.unique(rows, axis=0, return_inverse=True)
    dual = np.zeros((len(parts), len(unique)))
    start = 0
    for line, part in zip(dual, parts, strict=True):
        np.add.at(line, where.ravel()[start : start + len(part.centers)], part.dual_coef_[0])
        start += len(part.centers)
    return ConvertedSVM(
        np.asarray(svm.classes_), np.ascontiguousarray(unique[:, :-1]), unique[:, -1].copy(), None, dual,
        np.concatenate([part.intercept_ for part in parts]),
    )  # fmt: skip


def _from_machine(svm):
    name = type(svm).__name__
    if getattr(svm, "kernel", "rbf") != "rbf":
        raise ValueError(f"only the RBF kernel is a Gaussian, got {name} with kernel={svm.kernel!r}")
    # scikit-learn keeps the number that gamma="scale" stands for in _gamma.
    gamma = getattr(svm, "gamma_", getattr(svm, "_gamma", None))
    if gamma is None or not hasattr(svm, "support_vectors_"):
        raise TypeError(f"svm must be a fitted RBF support vector classifier, got {name}")
    vectors, dual = (
        a.toarray() if hasattr(a, "toarray") else np.asarray(a) for a in (svm.support_vectors_, svm.dual_coef_)
    )
    n_outputs = count_outputs(len(svm.classes_))
    if len(dual) != n_outputs or len(svm.intercept_) != n_outputs:
        raise ValueError(
            f"{name} with {len(svm.classes_)} classes votes one-vs-one, which has no mixture form: fit "
            "OneVsRestClassifier(SVC(...)) instead"
        )
    return ConvertedSVM(
        np.asarray(svm.classes_), vectors.astype(np.float64), np.full(len(vectors), float(gamma)), None,
        dual.astype(np.float64), np.asarray(svm.intercept_, dtype=np.float64),
    )  # fmt: skip


def _mapped(X, whitening):
    return X * whitening if whitening.ndim == 1 else X @ whitening.T


def reduce_expansion(centers, coef, intercept, gamma, n_centers, rows, random_state=None, *, max_iter=50):
    r"""Centers, coefficients and intercepts of an expansion of `n_centers` kernels close to the given one over `rows`.

    An expansion is :math:`\sum_i b_{ic} \exp(-\gamma \lVert x - z_i \rVert^2) + b_c`.

    Minimizes over centers z, coefficients b and intercepts

    .. math:: \frac1n \sum_n \lVert g(x_n) - f(x_n) \rVert^2 + \rho \lVert b \rVert^2

    from a start with z the k-means centers of the given ones, each counted by the size of its coefficients. For given
    z the rest is a linear least squares problem, so that the descent (L-BFGS) is over z alone.
    """
    from sklearn.cluster import KMeans  # here, since it takes a while to import

    rng = check_random_state(random_state)
    if len(rows) > _MAX_ROWS:
        rows = rows[rng.choice(len(rows), _MAX_ROWS, replace=False)]
    rows = np.asarray(rows, dtype=np.float64)
    size = np.abs(coef).sum(axis=1)
    distinct = len(np.unique(centers, axis=0))
    kmeans = KMeans(min(n_centers, distinct), n_init=1, random_state=rng).fit(centers, sample_weight=size)
    start = kmeans.cluster_centers_.astype(np.float64)
    target = np.exp(-gamma * squared_distances(rows, centers)) @ coef + intercept
    # A common unit, so that the stopping rule means the same for any SVM.
    unit = max(float(np.sqrt(np.mean((target - target.mean(axis=0)) ** 2))), np.finfo(np.float64).tiny)
    target = target / unit
    ridge = _RIDGE * float(np.mean(np.exp(-2 * gamma * squared_distances(rows, start))))
    found = minimize(
        lambda z: misfit(z.reshape(start.shape), rows, target, gamma, ridge),
        start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": max_iter},
    )  # fmt: skip
    z = found.x.reshape(start.shape)
    solution = fit_coefficients(z, rows, target, gamma, ridge)[1] * unit
    return z, solution[:-1], solution[-1]


def fit_coefficients(z, rows, target, gamma, ridge):
    """Kernel columns, ridge solution (the intercept last, hardly penalized), residuals and penalties at centers z."""
    kernel = np.exp(-gamma * squared_distances(rows, z))
    design = np.column_stack([kernel, np.ones(len(rows))])
    penalty = np.append(np.full(len(z), ridge), 1e-6 * ridge)
    gram = design.T @ design / len(rows) + np.diag(penalty)
    solution = np.linalg.solve(gram, design.T @ target / len(rows))
    return kernel, solution, design @ solution - target, penalty


def misfit(z, rows, target, gamma, ridge):
    """Half the objective at the best coefficients for the centers z, and its gradient."""
    kernel, solution, residual, penalty = fit_coefficients(z, rows, target, gamma, ridge)
    value = 0.5 * np.mean((residual**2).sum(axis=1)) + 0.5 * (penalty @ solution**2).sum()
    # The inner problem is solved exactly, so this is the gradient with the coefficients held.
    pull = kernel * (residual @ solution[:-1].T) / len(rows)
    return value, (2 * gamma * (pull.T @ rows - pull.sum(axis=0)[:, None] * z)).ravel()
