"""Gaussian mixture density classifier (the generative part of Deselaers, Heigold and Ney, ICPR 2008)."""

import warnings
from operator import attrgetter
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from svmosaic._validation import NO_WEIGHT, check_labels, check_real, check_weight, require_two_classes, validate
from svmosaic.densities.growth import Covariance, Pooling, gather, maximize, one_each, split
from svmosaic.densities.kernel_predictor import kernel_predictor
from svmosaic.estimators._parameters import Count, NotNegative, Positive, check_parameters, estimator, positional
from svmosaic.estimators._progress import Progress, all_or_nothing
from svmosaic.estimators.base import ExportMixin
from svmosaic.model.heads import contrast, flattened, winners


@estimator
class GaussianMixtureClassifier(CallbackSupportMixin, ExportMixin, ClassifierMixin, BaseEstimator):
    r"""Bayes' rule over one Gaussian mixture per class, each grown by splitting.

    .. math:: p(k) \, p(x | k) = p(k) \sum_i p(i | k) \, \mathcal N(x; \mu_{ki}, \Sigma_{ki})

    predicts the class k for which this is largest. EM maximizes the joint log-likelihood

    .. math:: \sum_{n \text{ labeled}} s_n \log p(y_n) \, p(x_n | y_n)
              + \sum_{n \text{ unlabeled}} s_n \log \sum_k p(k) \, p(x_n | k)

    with the sample weights s (1 if not given), over covariances bounded from below. Every class starts as one
    Gaussian; all densities are split in two and re-estimated on the labeled rows until there are `n_densities`;
    densities with too few rows are deleted; then the unlabeled rows are added.

    scikit-learn's `GaussianMixture` covers the special case of one covariance per density (or one full
    covariance per class) with all rows labeled and of equal weight; there the two agree. It does not support
    `sample_weight`, labels, covariances pooled over several mixtures, or deletion, so the EM here is our own.

    Parameters
    ----------
    n_densities : int, default=1
        Number of densities per class. There are fewer if some were deleted, see `n_densities_`.
    covariance : {"spherical", "diag", "full"}, default="diag"
        One variance for all features, one per feature, or a matrix.
    pooling : {"all", "class", "none"}, default="all"
        Which densities share a covariance: all densities of all classes, the densities of each class, or none.
    floor : float, default=1e-3
        Smallest variance, relative to the feature's variance over all rows ("diag") or to the mean variance
        ("spherical"), or the smallest eigenvalue of a covariance of the standardized features ("full").
    min_count : float, default=2.0
        Densities with a smaller sum of sample weights are deleted; the heaviest of a class is always kept.
    split_step : float, default=0.5
        The two halves of a density start at its mean plus and minus this many of its standard deviations, along a
        random diagonal.
    tol : float, default=1e-3
        EM stops when the mean log-likelihood rises by less than this in a step.
    max_iter : int, default=100
        Maximum number of EM steps after each split.
    max_time : float or None, default=None
        No EM step is started after this many seconds. The result is the current mixture, possibly with fewer densities
        than requested and without the unlabeled rows, and a warning is issued.
    priors : array-like of shape (n_classes,) or None, default=None
        The p(k), in the order of the sorted labels. None: estimated.
    unlabeled : object, default=-1
        The label that marks unlabeled rows, which may belong to any class in EM. It is an ordinary class
        if fewer than two other labels remain, so that classes -1 and 1 can be used. None: every row is labeled.
        Rows with string labels are all labeled unless a string is given here. To give unlabeled rows less influence,
        give them a smaller `sample_weight`.
    n_jobs : int or None, default=None
        Number of threads in prediction, over rows. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        For the directions of the splits.
    verbose : int, default=0
        1 prints the log-likelihood and the number of densities after each EM step.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    class_prior_ : ndarray of shape (n_classes,)
    means_ : ndarray of shape (m, n_features)
        Means of the densities of all classes.
    owner_ : ndarray of int, shape (m,)
        Index in `classes_` of each density's class.
    weights_ : ndarray of shape (m,)
        p(k) p(i|k); they sum to one.
    covariances_ : ndarray of shape (g,), (g, n_features) or (g, n_features, n_features)
    covariance_group_ : ndarray of int, shape (m,)
        Which of the g covariances each density has.
    n_densities_ : ndarray of int, shape (n_classes,)
    log_likelihood_ : float
        The mean of the log-likelihood above over the rows.
    log_likelihood_path_ : list of list of float
        Its values, one list from each split or deletion to the next. Within a list, it never falls.
    n_iter_ : int
        Number of EM steps in all stages.
    stop_reason_ : {"tol", "max_iter", "max_time", "callback"}
        Why EM stopped in the last stage.
    n_features_in_ : int
        Number of features of the rows in `fit`.
    feature_names_in_ : ndarray, if X had names
        Names of these features.

    References
    ----------
    T. Deselaers, G. Heigold and H. Ney, SVMs, Gaussian Mixtures, and their Generative/Discriminative Fusion, ICPR 2008.

    See Also
    --------
    FusedSVC : Its fusion with an RBF SVM.
    mixture_to_svm : The same decisions as an SVM.

    Examples
    --------
    >>> from svmosaic import GaussianMixtureClassifier
    >>> from svmosaic.datasets import make_xor
    >>> X, y = make_xor(random_state=0)
    >>> model = GaussianMixtureClassifier(n_densities=2, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.98)
    True
    >>> few = y.copy()
    >>> few[20:] = -1  # all other rows are unlabeled
    >>> model = GaussianMixtureClassifier(n_densities=2, random_state=0).fit(X, few)
    >>> bool(model.score(X, y) > 0.98)
    True
    """

    n_densities: Count = positional(1)
    covariance: Covariance = "diag"
    pooling: Pooling = "all"
    floor: Positive = 1e-3
    min_count: NotNegative = 2.0
    split_step: Positive = 0.5
    tol: NotNegative = 1e-3
    max_iter: Count = 100
    priors: Any = None
    unlabeled: Any = -1
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0
    max_time: Positive | None = None

    @all_or_nothing
    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Fit the mixtures.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels; `unlabeled` marks unlabeled rows.
        sample_weight : array-like of shape (n_samples,), optional
            A row with weight k counts as k copies of the row.

        Returns
        -------
        self
        """
        check_parameters(self)
        X, y = validate(self, X, y, accept_sparse=False)
        check_labels(y)
        weight = check_weight(sample_weight, X)
        known = ~unlabeled_rows(y, self.unlabeled)
        self.classes_ = np.unique(y[known])
        label = np.where(known, np.searchsorted(self.classes_, np.where(known, y, self.classes_[0])), -1)
        kept = weight > 0
        if not kept.any():
            raise ValueError(NO_WEIGHT)
        present = np.bincount(label[kept & known], minlength=len(self.classes_)) > 0
        require_two_classes(self, self.classes_, self.classes_[present])
        if not present.all():
            raise ValueError(
                "GaussianMixtureClassifier needs rows of positive sample_weight in every class, but there are none in "
                f"{self.classes_[~present]!r}"
            )
        priors = self.priors
        if priors is not None:
            priors = np.asarray(priors, dtype=np.float64)
            if priors.shape != self.classes_.shape or not (priors > 0).all() or not np.isclose(priors.sum(), 1.0):
                raise ValueError(
                    f"priors must be {len(self.classes_)} positive numbers that sum to one, one for each of the labels "
                    f"{self.classes_!r}, got {self.priors!r}"
                )
            priors = priors / priors.sum()
        progress = Progress(self, self.max_time, X, y, sample_weight)
        with progress.called_back(None):
            self._grow(X[kept].astype(np.float64), label[kept], weight[kept], priors, progress)
        if self.stop_reason_ == "max_iter":
            message = (
                f"stopped after max_iter={self.max_iter} EM steps while its mean log-likelihood still rose by more "
                f"than tol={self.tol} a step; raise max_iter or tol"
            )
        elif self.stop_reason_ == "max_time":
            message = (
                f"stopped after max_time={self.max_time} s and {self.n_iter_} EM steps, with {self.n_densities_.max()} "
                f"of n_densities={self.n_densities} densities per class; raise max_time or tol"
            )
        else:
            return self
        warnings.warn(f"GaussianMixtureClassifier {message}", ConvergenceWarning, stacklevel=4)
        return self

    def _grow(self, X, label, weight, priors, progress):
        """From one Gaussian per class to all densities, by splitting and EM; label -1 marks unlabeled rows."""
        rng = check_random_state(self.random_state)
        middle = np.average(X, axis=0, weights=weight)
        scale = np.sqrt(np.average((X - middle) ** 2, axis=0, weights=weight))
        if self.covariance == "spherical":
            # One number for all features, or a sphere would become an ellipsoid.
            scale = np.full_like(scale, np.sqrt(np.mean(scale**2)))
        scale[scale <= 1e-12 * np.abs(middle)] = 1.0
        scale[scale == 0] = 1.0
        log_volume = np.log(scale).sum()
        everything = (X - middle) / scale, label, weight
        densities = one_each(*everything, len(self.classes_), self.covariance, self.pooling, self.floor, priors)
        limits = [1]
        while limits[-1] < self.n_densities:
            limits.append(min(2 * limits[-1], self.n_densities))
        # Splits look at the labeled rows alone: with few densities, unlabeled rows of one class are easily taken over
        # by another that is not yet fine enough, and never given back.
        known = label >= 0
        stages = [(limit, tuple(part[known] for part in everything)) for limit in limits]
        if not known.all():
            stages.append((1, everything))
        paths, n_iter, ended = [], 0, False
        for limit, rows in stages:
            if ended:
                break
            if limit > 1:
                densities = split(densities, gather(densities, *rows), limit, self.split_step, rng)
            paths.append([])
            reason = "max_iter"
            for _ in range(self.max_iter):
                sums = gather(densities, *rows)
                paths[-1].append(float(sums.log_likelihood / rows[2].sum() - log_volume))
                n_iter += 1
                if self.verbose:
                    print(
                        f"[GaussianMixtureClassifier] EM step {n_iter}: mean log-likelihood {paths[-1][-1]:.6g}, "
                        f"{len(densities.means)} densities",
                        flush=True,
                    )
                stopped = progress.step("EM step", lambda now=densities: {"_densities": now.moved(middle, scale)})
                ended = stopped or progress.late
                if ended:
                    reason = "callback" if stopped else "max_time"
                    break
                strong = sums.count >= self.min_count
                for k in range(densities.n_classes):  # the heaviest of each class always stays
                    here = np.flatnonzero(densities.owner == k)
                    strong[here[np.argmax(sums.count[here])]] = True
                if not strong.all():
                    densities = densities.without(~strong)
                    paths.append([])
                    continue
                if len(paths[-1]) > 1 and paths[-1][-1] - paths[-1][-2] < self.tol:
                    reason = "tol"
                    break
                densities = maximize(densities, sums, self.floor, priors)
        self._densities = densities.moved(middle, scale)
        self.log_likelihood_path_ = [path for path in paths if path]
        self.log_likelihood_ = self.log_likelihood_path_[-1][-1]
        self.n_iter_, self.stop_reason_ = n_iter, reason

    means_ = property(attrgetter("_densities.means"))
    owner_ = property(attrgetter("_densities.owner"))

    @property
    def weights_(self):
        return np.exp(self._densities.log_weight)

    covariances_ = property(attrgetter("_densities.covariance"))
    covariance_group_ = property(attrgetter("_densities.group"))

    @property
    def n_densities_(self):
        return np.bincount(self.owner_, minlength=len(self.classes_))

    @property
    def class_prior_(self):
        return np.bincount(self.owner_, self.weights_, minlength=len(self.classes_))

    def predict_joint_log_proba(self, X):
        """log p(k) p(x|k), of shape (n_samples, n_classes)."""
        check_is_fitted(self)
        X = validate(self, X, accept_sparse=False, reset=False)
        return self._densities.class_log_joint(X, self.n_jobs)

    def decision_function(self, X):
        """log p(1|x) - log p(0|x) of shape (n_samples,) for two classes, else log p(k) p(x|k) of all classes."""
        return flattened(contrast(self.predict_joint_log_proba(X)))

    def predict(self, X):
        """Predict the most probable class."""
        found = winners(self.predict_joint_log_proba(X))  # first: NotFittedError, not AttributeError
        return self.classes_[found]

    def predict_log_proba(self, X):
        """log p(k|x), of shape (n_samples, n_classes)."""
        joint = self.predict_joint_log_proba(X)
        # From the largest: added to values of -1e17, the logarithm of their number would be lost. Rows so far away that
        # all densities are zero in the log domain too are shared out evenly.
        top = joint.max(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            joint = np.where(np.isfinite(top), joint - top, 0.0)
        return joint - logsumexp(joint, axis=1, keepdims=True)

    def predict_proba(self, X):
        """p(k|x), of shape (n_samples, n_classes)."""
        return np.exp(self.predict_log_proba(X))

    def predictor(self):
        """Return a `Predictor`: the model compiled for single rows and small batches, without checks.

        Returns
        -------
        Predictor
        """
        check_is_fitted(self)
        densities = self._densities.packed()
        return kernel_predictor(self.classes_, self.n_features_in_, densities=densities, posterior=True)

    def _export_form(self):
        """The densities as exporters write them."""
        names = ("covariance", "means", "factors", "log_weight")
        gaussians = dict(zip(names, self._densities.gaussians(), strict=True))
        return {"kind": "Gaussians", **gaussians, "owner": self._densities.owner}

    def score_samples(self, X):
        """log p(x), of shape (n_samples,)."""
        return logsumexp(self.predict_joint_log_proba(X), axis=1)

    def sample(self, n_samples=1, *, random_state=None):
        """Draw rows from the mixture.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState or None, default=None

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        y : ndarray of shape (n_samples,)
            The class each row was drawn from.
        """
        check_is_fitted(self)
        check_real("n_samples", n_samples, at_least=1, integer=True)
        rng = check_random_state(random_state)
        weights = self.weights_
        which = rng.choice(len(weights), size=n_samples, p=weights / weights.sum())
        noise = rng.standard_normal((n_samples, self.means_.shape[1]))
        covariance, group = self.covariances_, self.covariance_group_[which]
        if covariance.ndim == 1:
            noise *= np.sqrt(covariance[group])[:, None]
        elif covariance.ndim == 2:
            noise *= np.sqrt(covariance[group])
        else:
            for g, factor in enumerate(np.linalg.cholesky(covariance)):
                noise[group == g] = noise[group == g] @ factor.T
        return self.means_[which] + noise, self.classes_[self.owner_[which]]


def unlabeled_rows(y, mark):
    """Which rows carry the mark for "no label"; none where the mark must be a class."""
    y = np.asarray(y)
    if mark is None or (isinstance(mark, str) != (y.dtype.kind in "OUS")):
        return np.zeros(len(y), dtype=bool)
    found = y == mark
    return found if len(np.unique(y[~found])) >= 2 else np.zeros(len(y), dtype=bool)
