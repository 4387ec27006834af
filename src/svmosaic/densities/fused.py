"""An RBF SVM and a Gaussian mixture classifier blended into one (Deselaers, Heigold and Ney, ICPR 2008)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold, check_cv
from sklearn.svm import SVC, NuSVC
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from svmosaic._validation import NO_WEIGHT, check_labels, check_real, check_weight, require_two_classes, validate
from svmosaic.densities.conversion import ConvertedMixture, OneVsRestMachine, mixture_to_svm, svm_to_mixture
from svmosaic.densities.gaussian_mixture import GaussianMixtureClassifier, unlabeled_rows
from svmosaic.densities.kernel_predictor import kernel_predictor, scaled_densities
from svmosaic.estimators._parameters import Count, check_parameters, estimator, positional
from svmosaic.estimators._progress import all_or_nothing
from svmosaic.estimators.base import ExportMixin, ProbabilityMixin
from svmosaic.estimators.data import Target
from svmosaic.model.calibration import cross_fit
from svmosaic.model.heads import Classify, flattened, in_columns

# The search of svm=None: C, and gamma in units of 1 / (n_features * variance of X).
_COSTS = (0.1, 1.0, 10.0, 100.0, 1000.0)
_WIDTHS = (1 / 64, 1 / 16, 1 / 4, 1.0, 4.0)


@dataclass(frozen=True)
class Blend:
    """weight * svm + (1 - weight) * exp(log_ratio) * mixture, in units of the SVM's decision values."""

    svm: ConvertedMixture
    mixture: GaussianMixtureClassifier
    log_ratio: float

    @classmethod
    def fit(cls, svm, mixture, X, sample_weight, scale):
        """Bring the two parts to a common scale on the rows X."""
        if scale == "raw":
            # Both as normalized mixtures, as printed: exp(log_scale_) turns densities into decision values.
            return cls(svm, mixture, svm.log_scale_)
        values = svm.decision_function(X)
        if values.ndim == 1:
            lead = np.abs(values)
        else:
            best = np.partition(values, -2, axis=1)[:, -2:]
            lead = best[:, 1] - best[:, 0]
        best = np.partition(mixture.predict_joint_log_proba(X), -2, axis=1)[:, -2:]
        with np.errstate(divide="ignore"):
            log_lead = best[:, 1] + np.log(-np.expm1(best[:, 0] - best[:, 1]))
        middle, log_middle = (
            np.quantile(v, 0.5, weights=sample_weight, method="inverted_cdf") for v in (lead, log_lead)
        )
        ratio = np.log(middle) - log_middle if middle > 0 else 0.0
        return cls(svm, mixture, float(ratio) if np.isfinite(ratio) else 0.0)

    def decision_function(self, X, weight, n_jobs=None):
        """The parts' own values at weight 0 and 1, else their blend."""
        if weight == 0:
            return self.mixture.decision_function(X)
        if weight == 1:
            return self.svm.decision_function(X, n_jobs)
        return weight * self.svm.decision_function(X, n_jobs) + (1 - weight) * self.scaled_densities(X)

    def scaled_densities(self, X):
        """exp(log_ratio) p(k) p(x|k), for two classes their difference; through logarithms, so nothing underflows."""
        return flattened(scaled_densities(self.mixture.predict_joint_log_proba(X), self.log_ratio))


@dataclass(frozen=True)
class Reduction:
    """What `max_densities` saves and costs, for the SVM part alone; accuracies are cross-validated."""

    n_support: int  # support vectors of the full SVM
    n_densities: int  # left
    accuracy_full: float
    accuracy_reduced: float
    # Share of the rows on which the two agree.
    agreement: float


@estimator
class FusedSVC(ProbabilityMixin, ExportMixin, ClassifierMixin, BaseEstimator):
    r"""A support vector machine and a Gaussian mixture, fused into one classifier.

    Class k has the score

    .. math:: w \, f_k(x) + (1 - w) \, \rho \, p(k) \, p(x | k)

    with f the decision values of an RBF SVM (one-vs-rest for more than two classes), which are those of a Gaussian
    mixture (`svm_to_mixture`), p the densities of a `GaussianMixtureClassifier`, w the `weight` of the SVM and
    :math:`\rho` a factor that brings both to one scale. For two classes the decision value is the difference of the two
    scores. The fusion is insurance rather than an improvement: the mixture adds nothing beyond noise to a well-tuned
    SVM, but it limits the damage of a poor one, and vice versa.

    Parameters
    ----------
    svm : classifier or None, default=None
        An RBF `SVC` or `NuSVC`, used one-vs-rest if there are more than two classes, or anything else that
        `svm_to_mixture` accepts once fitted. None: an `SVC` with C and gamma chosen by cross-validation from 25 pairs.
    mixture : GaussianMixtureClassifier or None, default=None
        None: diagonal covariances pooled over all densities; their number is chosen from `densities` if `weight` is
        "auto", and is otherwise one per class.
    weight : float in [0, 1] or "auto", default="auto"
        Weight of the SVM: 1 is exactly the SVM alone, and 0 the mixture alone. "auto": chosen by cross-validated
        accuracy among 0, 0.1, ..., 1. The better part alone is used unless a blend beats it by half a standard error.
    scale : {"median", "raw"}, default="median"
        "median": :math:`\rho` equalizes the training medians of the margins of the two parts, where a margin is the
        difference between a row's best and second-best class score. "raw": both parts as normalized mixtures, as
        printed in the paper. They then differ by many orders of magnitude, and `weight` has hardly any effect.
    max_densities : int or None, default=None
        Maximum number of densities that the SVM is reduced to, see `svm_to_mixture`; `reduction_` reports the cost.
        The densities of the mixture are not counted.
    densities : sequence of int, default=(1, 2, 4, 8, 16, 32)
        Numbers of densities per class to choose from, if `mixture` is None and `weight` is "auto".
    cv : int or splitter, default=5
        For all cross-validation. At most the number of rows of the smallest class.
    calibration : {"temperature", "odds", "sigmoid", "isotonic"} or None, default=None
        How `predict_proba` converts scores to probabilities; see `LinearSVC`. Fitted to scores of rows held out in five
        folds, for which both parts are fitted again. None: no `predict_proba`.
    n_jobs : int or None, default=None
        Number of processes for the cross-validation, and of threads in prediction.
    random_state : int, RandomState or None, default=None
        For the folds, the splits of the mixture and the clusters of `max_densities`.
    verbose : int, default=0
        1 prints what was chosen.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    calibration_ : Temperature, Odds, Sigmoid, Isotonic or None
    weight_ : float
        The weight in use.
    svm_ : classifier
        The fitted SVM.
    svm_mixture_ : ConvertedMixture
        The SVM as a mixture, reduced if `max_densities` is given.
    mixture_ : GaussianMixtureClassifier
        The fitted mixture.
    log_ratio_ : float
        The logarithm of :math:`\rho`.
    weights_ : ndarray
        What `weight="auto"` chose from.
    densities_ : ndarray
        What `weight="auto"` chose from.
    cv_accuracy_ : ndarray of shape (n_densities, n_weights)
        Cross-validated accuracies, if `weight` is "auto".
    reduction_ : Reduction
        If `max_densities` is given.
    n_features_in_ : int
        Number of features of the rows in `fit`.
    feature_names_in_ : ndarray, if X had names
        Names of these features.

    See Also
    --------
    GaussianMixtureClassifier : The generative part.
    svm_to_mixture : The SVM as a mixture.

    Notes
    -----
    Rows that are unlabeled for the mixture (see its `unlabeled`) are used to fit the mixture but not the SVM.

    References
    ----------
    T. Deselaers, G. Heigold and H. Ney, SVMs, Gaussian Mixtures, and their Generative/Discriminative Fusion, ICPR 2008.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from svmosaic import FusedSVC
    >>> from svmosaic.datasets import make_xor
    >>> X, y = make_xor(random_state=0)
    >>> bad = SVC(C=1000, gamma=1000)
    >>> model = FusedSVC(bad, densities=(1, 2), random_state=0).fit(X[:200], y[:200])
    >>> bool(model.score(X[200:], y[200:]) > bad.fit(X[:200], y[:200]).score(X[200:], y[200:]))
    True
    """

    svm: Any = positional(None)
    mixture: Any = positional(None)
    weight: float | str = "auto"
    scale: Literal["median", "raw"] = "median"
    max_densities: Count | None = None
    densities: Sequence[int] = (1, 2, 4, 8, 16, 32)
    cv: Any = 5
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    @all_or_nothing
    def fit(self, X, y, sample_weight=None):
        """Fit both parts, their scale and, with `weight="auto"`, their weight.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Passed to both parts.

        Returns
        -------
        self
        """
        if self.weight != "auto":
            if isinstance(self.weight, str):
                raise ValueError(f"weight must be a number in [0, 1] or 'auto', got {self.weight!r}")
            check_real("weight", self.weight, at_least=0, at_most=1)
        check_parameters(self)
        self._check_calibration()
        for n in self.densities:
            check_real("each of densities", n, at_least=1, integer=True)
        if len(self.densities) == 0:
            raise ValueError("densities must name at least one number of densities")
        if self.mixture is not None and not isinstance(self.mixture, GaussianMixtureClassifier):
            raise TypeError(f"mixture must be None or a GaussianMixtureClassifier, got {type(self.mixture).__name__}")
        X, y = validate(self, X, y, accept_sparse=False)
        check_labels(y)
        sample_weight = check_weight(sample_weight, X)
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        mixture = GaussianMixtureClassifier() if self.mixture is None else self.mixture
        mixture = clone(mixture).set_params(random_state=seed, n_jobs=self.n_jobs)
        known = ~unlabeled_rows(y, mixture.unlabeled)
        kept = sample_weight > 0
        if not kept.any():
            raise ValueError(NO_WEIGHT)
        self.classes_ = np.unique(y[known & kept])
        require_two_classes(self, np.unique(y[known]), self.classes_)
        data = _Data(X[known & kept], y[known & kept], sample_weight[known & kept],
                     X[~known & kept], y[~known & kept], sample_weight[~known & kept])  # fmt: skip
        svm = self._choose_svm(data, seed)
        choosing = isinstance(self.weight, str)
        self.weights_ = np.linspace(0, 1, 11) if choosing else np.array([float(self.weight)])
        several = choosing and self.mixture is None
        self.densities_ = np.array(self.densities if several else [mixture.n_densities])
        chosen, self.weight_ = self.densities_[0], self.weights_[0]
        if choosing or self.max_densities is not None:
            correct, agreed = zip(
                *Parallel(n_jobs=self.n_jobs)(
                    delayed(self._score_fold)(svm, mixture, data, train, test, seed)
                    for train, test in list(self._folds(data.y, seed).split(data.X, data.y))
                ),
                strict=True,
            )
            if choosing:
                self.cv_accuracy_ = sum(correct) / data.weight.sum()
                chosen, self.weight_ = self._best(len(data.y))
        self.svm_, full, self.svm_mixture_ = self._fit_svm(svm, data.X, data.y, data.weight, seed)
        self.mixture_ = data.fit_mixture(mixture.set_params(n_densities=int(chosen)), slice(None))
        self._blend = Blend.fit(self.svm_mixture_, self.mixture_, data.X, data.weight, self.scale)
        self.log_ratio_ = self._blend.log_ratio
        self.calibration_ = None if self.calibration is None else self._calibrate(svm, mixture, data, seed)
        if self.max_densities is not None:
            shares = (float(share) for share in sum(agreed) / data.weight.sum())
            self.reduction_ = Reduction(len(full.centers), len(self.svm_mixture_.centers), *shares)
        if self.verbose:
            print(f"[FusedSVC] weight {self.weight_:.2g} for the SVM with {len(self.svm_mixture_.centers)} densities, "
                  f"{self.mixture_.n_densities_.tolist()} densities in the mixture")  # fmt: skip
        return self

    def decision_function(self, X):
        """Return the blended scores, in units of the SVM's decision values; at weight 0, the mixture's log-densities.

        Of shape (n_samples,) for two classes, else (n_samples, n_classes).
        """
        check_is_fitted(self)
        X = validate(self, X, accept_sparse=False, reset=False)
        return self._blend.decision_function(X, self.weight_, self.n_jobs)

    def predictor(self):
        """Return a `Predictor`: the model compiled for single rows and small batches, without checks.

        Returns
        -------
        Predictor
        """
        check_is_fitted(self)
        blend, weight = self._blend, self.weight_
        machine = None if weight == 0 else blend.svm.packed()
        densities = None if weight == 1 else blend.mixture._densities.packed()
        return kernel_predictor(
            self.classes_, blend.svm.centers.shape[1], machine, densities, weight=weight, log_ratio=blend.log_ratio,
            calibration=self.calibration_,
        )  # fmt: skip

    def _export_form(self):
        """Kernels, densities and their weight as exporters write them."""
        # The fused SVM comes from an RBF machine on the rows as they are, so there is no linear map in front of it.
        svm = mixture_to_svm(self._blend.svm)
        return {
            "kind": "Fusion",
            "weight": float(self.weight_),
            "log_ratio": self._blend.log_ratio,
            "centers": svm.centers,
            "gamma": svm.gamma,
            "coef": svm.dual_coef_,
            "intercept": svm.intercept_,
            "densities": self._blend.mixture._export_form(),
        }

    def _folds(self, y, seed):
        if not isinstance(self.cv, (int, np.integer)):
            return check_cv(self.cv, y, classifier=True)
        smallest = int(np.unique(y, return_counts=True)[1].min())
        if min(self.cv, smallest) < 2:
            raise ValueError(
                f"cross-validation needs cv >= 2 and two rows of each class, got cv={self.cv} and a class with "
                f"{smallest} sample(s); give an svm and a number as weight to do without it"
            )
        return StratifiedKFold(min(self.cv, smallest), shuffle=True, random_state=seed)

    def _choose_svm(self, data, seed):
        """The SVM to fit, as an unfitted estimator."""
        if self.svm is not None:
            plain = isinstance(self.svm, (SVC, NuSVC))
            return OneVsRestMachine(clone(self.svm)) if plain and len(self.classes_) > 2 else clone(self.svm)
        spread = float(np.average((data.X - data.X.mean(axis=0)) ** 2)) * data.X.shape[1]
        unit = 1.0 / spread if spread > 0 else 1.0
        grid = {"estimator__C": _COSTS, "estimator__gamma": [width * unit for width in _WIDTHS]}
        search = GridSearchCV(
            OneVsRestMachine(SVC()), grid, cv=self._folds(data.y, seed), n_jobs=self.n_jobs, refit=False
        )
        search.fit(data.X, data.y, sample_weight=data.weight)
        best = OneVsRestMachine(SVC()).set_params(**search.best_params_)
        return best.estimator if len(self.classes_) == 2 else best

    def _fit_svm(self, svm, X, y, weight, seed):
        """The fitted SVM, its mixture, and the reduced mixture if there are too many densities."""
        if has_fit_parameter(svm, "sample_weight"):
            svm.fit(X, y, sample_weight=weight)
        elif (weight != weight[0]).any():
            raise ValueError(
                f"{type(svm).__name__} takes no sample_weight: give a plain SVC, or weights that are all equal"
            )
        else:
            svm.fit(X, y)
        full = reduced = svm_to_mixture(svm)
        if self.max_densities is not None:
            machine = mixture_to_svm(full)
            reduced = svm_to_mixture(machine, max_densities=self.max_densities, X=X, random_state=seed)
        return svm, full, reduced

    def _score_fold(self, svm, mixture, data, train, test, seed):
        """Sums of the weights of test rows: those that each candidate gets right, and those that the full SVM, the
        reduced one, and both alike do."""
        rows, weight = data.X[train], data.weight[train]
        _, full, reduced = self._fit_svm(clone(svm), rows, data.y[train], weight, seed)
        X, y, right = data.X[test], data.y[test], data.weight[test]
        values = reduced.decision_function(X)
        correct = np.zeros((len(self.densities_), len(self.weights_)))
        if isinstance(self.weight, str):
            for a, n in enumerate(self.densities_):
                part = data.fit_mixture(clone(mixture).set_params(n_densities=int(n)), train)
                blend = Blend.fit(reduced, part, rows, weight, self.scale)
                scaled, alone = blend.scaled_densities(X), part.decision_function(X)
                for b, w in enumerate(self.weights_):
                    # Weight 0 through the logarithms, as in prediction: there densities cannot underflow to a tie.
                    score = alone if w == 0 else w * values + (1 - w) * scaled
                    correct[a, b] = right @ (Classify(self.classes_).answers(in_columns(score)) == y)
        with_all, with_few = full.predict(X), reduced.predict(X)
        return correct, np.array([right @ same for same in (with_all == y, with_few == y, with_all == with_few)])

    def _calibrate(self, svm, mixture, data, seed):
        """Probabilities from scores of rows that neither part has seen; how the parts were chosen stays."""
        label = np.searchsorted(self.classes_, data.y)
        target = Target(Classify(self.classes_), label, data.weight, data.weight)

        def scores_without(weight):
            kept = weight > 0
            rows, part = data.X[kept], data.fit_mixture(clone(mixture), kept)
            *_, reduced = self._fit_svm(clone(svm), rows, data.y[kept], data.weight[kept], seed)
            blend = Blend.fit(reduced, part, rows, data.weight[kept], self.scale)
            return in_columns(blend.decision_function(data.X, self.weight_, self.n_jobs))

        return cross_fit(self.calibration, target, scores_without, np.random.RandomState(seed))

    def _best(self, n_rows):
        """The number of densities and the weight to use."""
        accuracy, best = self.cv_accuracy_, self.cv_accuracy_.max()
        # The table holds dozens of blends, and the best of them is partly luck: one has to earn its place.
        needed = best - 0.5 * np.sqrt(best * (1 - best) / n_rows)
        ends = (self.weights_ == 0) | (self.weights_ == 1)
        part = accuracy[:, ends].max()
        enough = (accuracy >= part - 1e-12) & ends if part >= needed else accuracy >= best - 1e-12
        # np.argmin takes the first: of equals the fewest densities, as they are in the order given.
        a, b = np.nonzero(enough)
        pick = np.argmin(np.abs(self.weights_[b] - 0.5))
        return self.densities_[a[pick]], self.weights_[b[pick]]


@dataclass(frozen=True)
class _Data:
    """Labeled rows, and apart from them the unlabeled ones."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    X_unlabeled: np.ndarray
    y_unlabeled: np.ndarray
    weight_unlabeled: np.ndarray

    def fit_mixture(self, mixture, rows):
        """Fit the mixture on some of the labeled rows and all unlabeled ones."""
        return mixture.fit(
            np.concatenate([self.X[rows], self.X_unlabeled]),
            np.concatenate([self.y[rows], self.y_unlabeled]),
            np.concatenate([self.weight[rows], self.weight_unlabeled]),
        )
