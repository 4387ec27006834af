"""AdaBoost of linear SVMs: the baseline that the mixture papers compare with."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from svmosaic._validation import check_choice, validate_rows
from svmosaic.couplings import Coupling
from svmosaic.estimators._hold_out import can_stratify, hold_out
from svmosaic.estimators._importances import weighted_importances
from svmosaic.estimators._parameters import Count, Fraction, Positive, check_parameters, estimator, positional
from svmosaic.estimators._progress import Progress, all_or_nothing
from svmosaic.estimators.base import ProbabilityMixin, SaveMixin
from svmosaic.estimators.data import validate_training
from svmosaic.gates import SingleCell
from svmosaic.losses import CLASSIFICATION_LOSSES, LOSSES
from svmosaic.model.calibration import N_FOLDS, cross_fit
from svmosaic.model.heads import Classify, in_columns, winners
from svmosaic.rows import Rows, bias_of, split_bias
from svmosaic.solvers import Control, Solver, problems_of, solve, warn_if_unconverged

# Numbers of votes (rows times rounds times classes) held at a time in prediction.
_VOTES_AT_ONCE = 1 << 22


@estimator
class BoostedLinearSVC(CallbackSupportMixin, ProbabilityMixin, SaveMixin, ClassifierMixin, BaseEstimator):
    r"""AdaBoost (SAMME) of linear SVMs, with early stopping.

    Round m fits a linear SVM to the rows weighted by :math:`D_m`, which starts as the sample weights :math:`s` and
    always has the same sum. For two classes it minimizes over w (intercept included)

    .. math:: \tfrac12 \lVert w \rVert^2 + C \sum_i D_m(i) \, \text{loss}(y_i \langle w, (x_i, \beta) \rangle)

    (one-vs-rest for K > 2). With its predictions :math:`h_m` and their weighted error :math:`e_m`,

    .. math:: a_m = \nu \left( \log \frac{1 - e_m}{e_m} + \log (K - 1) \right) , \qquad
              D_{m+1}(i) \propto D_m(i) \exp(a_m [h_m(x_i) \ne y_i])

    with :math:`\nu` the `learning_rate`. The prediction is the class with the largest
    :math:`\sum_m a_m [h_m(x) = c]`. One round is `LinearSVC`.

    Boosting stops if an SVM makes no error on the training rows (it is then the last one), or is no better than
    chance, :math:`e_m \ge 1 - 1/K` (it is then left out). Votes are signs, as in the papers: a sum of margins would be
    a single linear function again. A sum of signs is not linear within regions that a gate could describe, so this
    model has no `mosaic_` to be exported or plotted; a prediction costs one product with each of the SVMs.

    Parameters
    ----------
    n_estimators : int, default=100
        Maximum number of rounds.
    C : float, default=1.0
        Weight of the losses.
    learning_rate : float, default=1.0
        Multiplies the weight of each vote.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        For a row with margin m: max(0, 1 - m), or its square.
    early_stopping : bool, default=False
        Hold out a part of the rows, stop when their score no longer improves, and keep the rounds up to the best.
    validation_fraction : float, default=0.1
        Fraction of the rows held out.
    n_iter_no_change : int, default=10
        Number of rounds without improvement after which to stop.
    solver : {"auto", "dual", "newton"}, default="auto"
        As in `LinearSVC`.
    tol : float, default=1e-4
        Each SVM stops when its duality gap is below `tol` times its objective at zero.
    max_iter : int, default=1000
        Maximum number of epochs or steps for each SVM.
    fit_intercept : bool, default=True
        Whether the SVMs have intercepts.
    intercept_scaling : float, default=1.0
        The constant :math:`\beta` appended to each row for the intercept, which is penalized like the other weights.
    class_weight : dict, "balanced" or None, default=None
        Multiplies the initial weights of each class.
    calibration : {"temperature", "odds", "sigmoid", "isotonic"} or None, default=None
        How `predict_proba` converts votes to probabilities; see `LinearSVC`. Fitted to the votes of as many rounds on
        rows held out in five folds, which costs five more fits. None: no `predict_proba`.
    n_jobs : int or None, default=None
        Number of threads, over classes. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        For the held-out rows and the order of the coordinates.
    verbose : int, default=0
        1 prints the error and the weight of each round.
    max_time : float or None, default=None
        After about this many seconds, the current SVM is cut short and no other is started, with a warning. With a
        `calibration`, boosting and the five fits of its folds get a sixth of the time each.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    estimator_coef_ : ndarray of shape (n_rounds, 1 or n_classes, n_features)
    intercept_ : ndarray of shape (n_rounds, 1 or n_classes)
    estimator_weights_ : ndarray of shape (n_rounds,)
        The weight :math:`a_m` of each vote.
    estimator_errors_ : ndarray of shape (n_rounds,)
        The weighted error :math:`e_m` of each SVM.
    n_estimators_ : int
        Number of rounds kept.
    stop_reason_ : {"n_estimators", "perfect", "chance", "validation", "max_time", "callback"}
        Why boosting stopped.
    validation_scores_ : ndarray or None
        With `early_stopping`: accuracy on the held-out rows after each round.
    dual_gap_ : ndarray of shape (n_rounds, 1 or n_classes)
        The certificate of each SVM.
    n_iter_ : int
        Largest number of epochs or steps of an SVM.
    n_features_in_ : int
        Number of features of the rows in `fit`.
    feature_names_in_ : ndarray, if X had names
        Names of these features.

    See Also
    --------
    MixtureSVC : The model that the paper compares with boosting.

    Notes
    -----
    If the first SVM is no better than chance, it is kept with weight 1 and a warning is issued: there is nothing to
    boost. A weighted error below machine precision counts as machine precision in :math:`a_m`.

    References
    ----------
    Y. Freund and R. E. Schapire, A Decision-Theoretic Generalization of On-Line Learning, JCSS 55, 1997.
    J. Zhu, H. Zou, S. Rosset and T. Hastie, Multi-class AdaBoost, Statistics and Its Interface 2, 2009.

    Examples
    --------
    >>> from svmosaic import BoostedLinearSVC
    >>> from svmosaic.datasets import make_circle_in_square
    >>> X, y = make_circle_in_square(random_state=0)
    >>> one = BoostedLinearSVC(1, random_state=0).fit(X, y).score(X, y)
    >>> bool(BoostedLinearSVC(100, random_state=0).fit(X, y).score(X, y) > one + 0.1)
    True
    """

    n_estimators: Count = positional(100)
    C: Positive = 1.0
    learning_rate: Positive = 1.0
    loss: str = "hinge"
    early_stopping: bool = False
    validation_fraction: Fraction = 0.1
    n_iter_no_change: Count = 10
    solver: Solver = "auto"
    tol: Positive = 1e-4
    max_iter: Count = 1000
    fit_intercept: bool = True
    intercept_scaling: Positive = 1.0
    class_weight: dict | str | None = None
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0
    max_time: Positive | None = None

    @all_or_nothing
    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Fit the SVMs, one per round, until a stopping rule applies.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            The initial weights of the rows. A row with weight k counts as k copies of the row.

        Returns
        -------
        self
        """
        check_parameters(self)
        check_choice("loss", self.loss, CLASSIFICATION_LOSSES)
        self._check_calibration()
        X, target = validate_training(self, X, y, sample_weight, self.class_weight)
        self.classes_ = target.classes
        rng = check_random_state(self.random_state)
        progress = Progress(self, self._time_of_a_fit, X, y, sample_weight)
        train = np.arange(len(target.label))
        held = train[:0]
        if self.early_stopping:
            n_held = int(np.ceil(self.validation_fraction * len(train)))
            if not can_stratify(target.label, n_held):
                raise ValueError(
                    f"early_stopping=True holds out validation_fraction={self.validation_fraction} of {len(train)} "
                    f"rows, which leaves too few of {len(self.classes_)} classes; give more rows or set "
                    "early_stopping=False"
                )
            train, held = map(np.sort, hold_out(len(train), n_held, rng.randint(2**31 - 1), target.label))
        with progress.called_back(self.n_estimators):
            solved = self._boost(X, target, train, held, rng, progress)
        if self.stop_reason_ == "max_time":
            n_rounds = self.n_estimators_ if self.validation_scores_ is None else len(self.validation_scores_)
            warnings.warn(
                f"{type(self).__name__}: boosting stopped after {self._time_of_a_fit:.3g} s of max_time="
                f"{self.max_time}, with {n_rounds} of n_estimators={self.n_estimators} rounds. "
                "Increase max_time, or lower n_estimators.",
                ConvergenceWarning,
                stacklevel=4,
            )
        else:
            warn_if_unconverged(solved, self.max_iter, type(self).__name__)
        self.calibration_ = None if self.calibration is None else self._calibrate(X, target, rng)
        return self

    def _boost(self, X, target, train, held, rng, progress):
        """Boost on some rows, judge by the others, and keep the rounds; returns the solutions of all SVMs."""
        name, n_classes, loss = type(self).__name__, len(target.classes), LOSSES[self.loss]
        bias = bias_of(self.fit_intercept, self.intercept_scaling)
        X, X_held, label = X[train], X[held], target.label[train]
        signs = [target.head.wanted(target.truth, c)[train] for c in range(target.n_outputs)]
        weight = target.weight[train]
        total, weight = weight.sum(), weight / weight.sum()
        problem = start = None
        solved, scores = [], []
        votes = np.zeros((len(held), n_classes))
        rounds: dict[str, list] = {
            name: []
            for name in ("estimator_coef_", "intercept_", "estimator_weights_", "estimator_errors_", "dual_gap_")
        }

        def attributes(kept):
            found = {name: np.array(values[:kept]) for name, values in rounds.items()}
            return {**found, "n_estimators_": kept, "calibration_": None}

        for _ in range(self.n_estimators):
            targets = [loss.rows(sign, self.C * total * weight) for sign in signs]
            if problem is None:
                codes = SingleCell().code(X, self.n_jobs)
                problem, *_ = problems_of(Rows(X, bias), codes, Coupling.independent(1), loss, targets)
            solutions = solve(
                [problem.with_target(t.sign, t.cost, t.threshold) for t in targets], solver=self.solver, tol=self.tol,
                max_iter=self.max_iter, n_jobs=self.n_jobs, seed=rng.randint(2**31 - 1), start=start,
                control=Control(progress.left),
            )  # fmt: skip
            solved += [replace(s, alpha=s.alpha[:0]) for s in solutions]  # for the report: duals are large
            coef, intercept = split_bias(np.stack([s.weights[0] for s in solutions]), bias)
            wrong = winners_of(X, coef[None], intercept[None])[:, 0] != label
            error = float(weight[wrong].sum())
            chance = error >= 1 - 1 / n_classes
            reason = "chance" if chance else None if wrong.any() else "perfect"
            first = not rounds["estimator_weights_"]
            if chance and first and not progress.late:
                warnings.warn(
                    f"{name}: the first SVM has a weighted error of {error:.3g}, no better than chance, so "
                    "boosting stops with this SVM alone. Try other features, another C, or a mosaic.",
                    ConvergenceWarning,
                    stacklevel=5,
                )
            if first or not chance:
                odds = max(error, np.finfo(np.float64).eps)
                vote = 1.0 if chance else self.learning_rate * (np.log((1 - odds) / odds) + np.log(n_classes - 1))
                found = coef, intercept, float(vote), error, [s.gap for s in solutions]
                for values, value in zip(rounds.values(), found, strict=True):
                    values.append(value)
                kept = len(rounds["estimator_weights_"])
                if self.verbose:
                    print(f"[{name}] round {kept}: weighted error {error:.4f}, weight {vote:.4f}")
                if len(held):
                    chosen = winners_of(X_held, coef[None], intercept[None])[:, 0]
                    votes[np.arange(len(held)), chosen] += vote
                    right = winners(votes) == target.label[held]
                    scores.append(float(np.average(right, weights=target.weight[held])))
                    if reason is None and len(scores) - 1 - int(np.argmax(scores)) >= self.n_iter_no_change:
                        reason = "validation"
                if progress.step("round", lambda kept=kept: attributes(kept)):
                    reason = reason or "callback"
            if progress.late and reason in (None, "chance"):  # an SVM cut short may do no better than chance
                reason = "max_time"
            if reason is not None:
                break
            # The largest weight grows by no more than it is normalized by, so nothing overflows.
            before, grown = weight, np.where(wrong, weight, weight * np.exp(-vote))
            weight = grown / grown.sum()
            # Duals scaled with their bounds are feasible, and near where the last SVM stopped.
            ratio = np.divide(weight, before, where=before > 0, out=np.ones_like(before))
            start = [s.alpha * ratio for s in solutions]
        self.stop_reason_ = reason or "n_estimators"
        vars(self).update(attributes(int(np.argmax(scores)) + 1 if scores else len(rounds["estimator_weights_"])))
        self.validation_scores_ = np.array(scores) if len(held) else None
        self.n_iter_ = max(s.n_iter for s in solved)
        return solved

    @property
    def _time_of_a_fit(self):
        """Seconds for boosting, and for each of the folds of a calibration."""
        if self.max_time is None or self.calibration is None:
            return self.max_time
        return self.max_time / (N_FOLDS + 1)

    @property
    def feature_importances_(self):
        """Mean absolute weight of each feature over rounds, by the weight of their votes, and outputs."""
        if not hasattr(self, "estimator_coef_"):
            raise AttributeError(f"this {type(self).__name__} has no feature_importances_ before it is fitted")
        coef = self.estimator_coef_
        return weighted_importances(coef, np.arange(len(coef)), self.estimator_weights_)

    def _calibrate(self, X, target, rng):
        def votes_without(weight):
            kept = np.flatnonzero(weight > 0)
            fewer = {"n_estimators": self.n_estimators_, "early_stopping": False, "verbose": 0}
            fixed = {"calibration": None, "class_weight": None, "random_state": rng.randint(2**31 - 1),
                     "max_time": self._time_of_a_fit}  # fmt: skip
            part = type(self)(**self.get_params() | fewer | fixed)
            with warnings.catch_warnings():  # the fit to all rows has already warned
                warnings.simplefilter("ignore", ConvergenceWarning)
                part.fit(X[kept], self.classes_[target.label[kept]], weight[kept])
            return in_columns(part.decision_function(X))

        return cross_fit(self.calibration, target, votes_without, rng)

    def decision_function(self, X):
        r"""The vote, between -1 and 1: :math:`\sum_m a_m h_m(x) / \sum_m a_m` with signs h for two classes.

        For K > 2, of shape (n_samples, n_classes): a vote counts 1 for its class and -1 / (K - 1) for every other
        class."""
        *_, last = self.staged_decision_function(X, first=None)
        return last

    def staged_decision_function(self, X, *, first=1):
        """Yield the votes after `first` rounds, after one more, and so on to the last (only the last for None).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        first : int or None, default=1

        Yields
        ------
        ndarray, as `decision_function` gives it
        """
        check_is_fitted(self)
        X = validate_rows(self, X)
        found = winners_of(X, self.estimator_coef_, self.intercept_)
        head, n_classes = Classify(self.classes_), len(self.classes_)
        rows = np.arange(len(found))
        votes = np.zeros((len(found), n_classes))
        total = 0.0
        for m, weight in enumerate(self.estimator_weights_):
            votes[rows, found[:, m]] += weight
            total += weight
            if m + 1 >= (self.n_estimators_ if first is None else first):
                # 1 for the class voted for, -1 / (K - 1) for the others: they sum to zero.
                share = (votes / total * n_classes - 1) / (n_classes - 1)
                yield head.shaped(share[:, head.positive])

    def staged_predict(self, X):
        """Yield the predictions after the first round, the second, and so on.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Yields
        ------
        ndarray of shape (n_samples,)
        """
        for scores in self.staged_decision_function(X):
            yield Classify(self.classes_).answers(in_columns(scores))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def winners_of(X, coef, intercept):
    """Indices of the classes that the SVM of each round answers with, of shape (n_rows, n_rounds)."""
    n_rounds, n_outputs, n_features = coef.shape
    flat = coef.reshape(-1, n_features).T.astype(X.dtype, copy=False)
    found = np.empty((X.shape[0], n_rounds), dtype=np.int32)
    step = max(1, _VOTES_AT_ONCE // flat.shape[1])
    for begin in range(0, X.shape[0], step):
        scores = safe_sparse_dot(X[begin : begin + step], flat, dense_output=True).reshape(-1, n_rounds, n_outputs)
        found[begin : begin + step] = winners(scores + intercept)
    return found
