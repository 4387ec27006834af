"""What the mixture classifiers share: the way from data to the EM loop, and from its outcome to the fitted form."""

import warnings
from typing import Any, Literal

import numpy as np
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from svmosaic.estimators._em_fit import Plan, fit_em
from svmosaic.estimators._hold_out import hold_out
from svmosaic.estimators._parameters import Count, Fraction, Knots, NotNegative, Positive, check_parameters, parameters
from svmosaic.estimators._progress import Progress, all_or_nothing
from svmosaic.estimators.base import BaseMosaicClassifier
from svmosaic.estimators.data import Data, validate_training
from svmosaic.estimators.tiles import Options, describe
from svmosaic.losses import HINGE
from svmosaic.maps import Pieces
from svmosaic.model.calibration import METHODS, Posterior, cross_fit
from svmosaic.model.heads import Classify
from svmosaic.solvers import Solver


@parameters
class BaseMixtureClassifier(CallbackSupportMixin, BaseMosaicClassifier):
    """A mixture of linear SVMs fitted by EM.

    Subclasses give the gate's start (`_starting`), how the experts are tied (`_tasks`) and the options of the gate's
    M-step (`_gate_options`).

    Parameters
    ----------
    label_weight : float, default=1.0
        The rho of the objective: the weight of the labels relative to the positions. 1 is the value of the paper.
    max_iter : int, default=30
        Maximum number of EM iterations.
    tol : float, default=1e-4
        Stop when an iteration raises the objective by no more than this fraction of it.
    max_time : float or None, default=None
        Stop after about this many seconds: solves are cut short, and no further iteration is started. The result is the
        best model so far, with a warning.
    early_stopping : bool, default=False
        Hold out a part of the rows for validation, stop when its accuracy has not improved for `n_iter_no_change`
        iterations, and return the best iterate (which may be the k-means start).
    validation_fraction : float, default=0.1
        Fraction of the rows held out for validation.
    n_iter_no_change : int, default=5
    solver : {"auto", "dual", "newton"}, default="auto"
        For the experts; see `LinearSVC`.
    inner_tol : float, default=1e-3
        Duality gap to which the experts are solved in an iteration, relative to the objective at zero. Inexact
        solves are fine: new weights of an expert are kept only if they are better.
    inner_max_iter : int, default=1000
        Maximum number of epochs or steps of the solver in an iteration.
    rows_per_expert : int or None, default=256
        Size of the sample for the k-means start, in rows per expert; None for all rows.
    kmeans_iter : int, default=10
        Number of Lloyd steps of k-means.
    fit_intercept : bool, default=True
        Whether the experts have intercepts.
    intercept_scaling : "scale" or float, default="scale"
        The constant appended to each row for the intercepts of the experts, which are penalized like the other weights.
        "scale": the root mean square norm of the rows. An expert far from the origin needs an intercept of about
        ‖w‖ times its distance from the origin; with this constant, it costs no more than w itself.
    class_weight : dict, "balanced" or None, default=None
        Multiplies the weights of the rows of each class.
    calibration : {"temperature", "odds", "sigmoid", "isotonic", "posterior"} or None, default=None
        How `predict_proba` converts scores to probabilities. The first four work as in `LinearSVC`: they are fitted to
        scores of rows held out in five folds, with the gate and its responsibilities kept and the experts solved again.
        "posterior": the posterior of the mixture, sum_j g_j(x) p(y | x, j) with p(y | x, j) = exp(-h(y s_j)) /
        (exp(-h(s_j)) + exp(-h(-s_j))), normalized over the outputs if there are more than two classes. Decision values
        are then p(+ | x) - p(- | x) instead of the vote; the sign may differ if experts disagree, because the vote
        gives less weight to an expert with a small margin. With any of them, `predict` returns the most probable class.
        None: no `predict_proba`.
    n_jobs : int or None, default=None
        Number of threads. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        For k-means, the order of the coordinates and the validation rows.
    verbose : int, default=0
        1 prints one line per iteration.
    pieces : int, sequence of arrays or None, default=None
        A curve per feature and expert instead of a slope, as in `LinearSVC`. The gate uses the original features.

    Attributes
    ----------
    tile_coef_ : ndarray of shape (n_experts, 1 or n_classes, n_features)
    intercept_ : ndarray of shape (n_experts, 1 or n_classes)
    calibration_ : Temperature, Odds, Sigmoid, Isotonic, Posterior or None
    n_experts_ : int
        Number of experts after pruning.
    objective_ : ndarray of shape (n_iterations + 1,)
        The objective at the k-means start and after each iteration.
    experts_per_iter_, effective_experts_ : ndarray of shape (n_iterations + 1,)
        Number of live experts, and exp(entropy) of their shares of the rows.
    validation_score_ : ndarray, with `early_stopping`
        Accuracy on the validation rows.
    stop_reason_ : str
        "tol", "max_iter", "max_time", "early_stopping", "callback" or "objective fell".
    n_iter_ : int
        Number of EM iterations.
    """

    label_weight: Positive = 1.0
    max_iter: Count = 30
    tol: NotNegative = 1e-4
    max_time: Positive | None = None
    early_stopping: bool = False
    validation_fraction: Fraction = 0.1
    n_iter_no_change: Count = 5
    solver: Solver = "auto"
    inner_tol: Positive = 1e-3
    inner_max_iter: Count = 1000
    rows_per_expert: Count | None = 256
    kmeans_iter: Count = 10
    fit_intercept: bool = True
    intercept_scaling: Positive | Literal["scale"] = "scale"
    class_weight: dict | str | None = None
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0
    pieces: Knots | None = None

    _calibrations = (*METHODS, "posterior")

    @all_or_nothing
    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Fit gate and experts by EM.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Weighs the rows in k-means, in the gate and in the experts.

        Returns
        -------
        self
        """
        self._check_parameters()
        rows, target = validate_training(self, X, y, sample_weight, self.class_weight)
        rng = check_random_state(self.random_state)
        progress = Progress(self, self.max_time, X, y, sample_weight)
        with progress.called_back(self.max_iter):
            self._check_rows(rows)
            held_out = None
            if self.early_stopping:
                n_held = int(np.ceil(self.validation_fraction * rows.shape[0]))
                train, held = hold_out(rows.shape[0], n_held, rng, target.label)
                held_out = rows[held], target.take(held)
                rows, target = rows[train], target.take(train)
            bent = self.pieces is not None
            pieces = Pieces.fit(rows, self.pieces, target.sample_weight, rng, self.n_jobs) if bent else None
            self._fit_rows(Data.of(rows, target, pieces), rng, progress, held_out)
        return self

    def _fit_rows(self, rows, rng, progress, held_out=None):
        """From rows to the fitted attributes."""
        classes, plan = rows.target.classes, self._plan(rows, rng)

        def attributes(mixture):
            # The other calibrations come after the last iterate.
            calibration = Posterior() if plan.link == "posterior" else None
            mosaic = mixture.mosaic(plan.link, rows.feature_map)
            return {"classes_": classes, "mosaic_": mosaic, "calibration_": calibration}

        watch = _Watch(progress, attributes, self.n_jobs, held_out, self.n_iter_no_change)
        loop, mixture, trace = fit_em(rows, plan, rng, progress.deadline, watch)
        mixture = mixture if watch.best is None else watch.best
        found = attributes(mixture)
        if self.calibration not in (None, "posterior"):
            found["calibration_"] = _calibrate(self.calibration, loop, mixture, rows, plan, rng)
        _warn_of_max_time(progress, trace)
        rows.encode(mixture.gate, plan.options)
        head = Classify(classes, found["calibration_"])
        found["region_counts_"], sample = describe(rows, found["mosaic_"], head, self.n_jobs)
        vars(self).update(found)
        self._keep_region_sample(sample)
        self._remember(mixture, trace, plan)

    def _remember(self, mixture, trace, plan):
        """Keep what EM did."""
        self.objective_ = np.array(trace.objective)
        self.experts_per_iter_ = np.array(trace.n_experts)
        self.effective_experts_ = np.array(trace.effective_experts)
        if trace.validation_score:
            self.validation_score_ = np.array(trace.validation_score)
        self.n_iter_ = trace.n_iter
        self.stop_reason_ = trace.stop_reason

    @property
    def tile_coef_(self):
        return self.mosaic_.coef

    @property
    def intercept_(self):
        return self.mosaic_.intercept

    @property
    def n_experts_(self) -> int:
        return self.mosaic_.n_tiles

    def _plan(self, rows, rng) -> Plan:
        """The parameters of a fit to these rows."""
        return self._plan_from(self._starting(rows, rng), rows)

    def _plan_from(self, start, rows) -> Plan:
        return Plan(
            start, self._tasks(rows),
            # Per output: the losses of many outputs would drown the gate, and rows would be shared out by labels alone.
            self.label_weight / rows.target.n_outputs,
            Options(1.0, HINGE, 1.0, self.solver, self.inner_tol, self.inner_max_iter, self.n_jobs),
            (self.fit_intercept, self.intercept_scaling), self._gate_options(), self.tol, self.max_iter,
            "posterior" if self.calibration == "posterior" else "vote",
        )  # fmt: skip

    def _placement(self, n_experts) -> dict:
        """The arguments of `place` for the start."""
        return {
            "n_centers": n_experts, "source": "kmeans", "rows_per_center": self.rows_per_expert,
            "max_iter": self.kmeans_iter, "name": "centers",
        }  # fmt: skip

    def _gate_options(self):
        """A function from the total weight of the rows to options of the gate's M-step."""
        return lambda total: {}

    def _check_rows(self, X):
        """Look at validated rows before the fit."""

    def _check_parameters(self):
        check_parameters(self)
        self._check_calibration()


class _Watch:
    """Called with every iterate: validation, callbacks, a line of text.

    Parameters
    ----------
    progress : Progress
    attributes : callable
        From a mixture to the attributes with which an estimator predicts as it does.
    n_jobs : int or None
    held_out : (X, Target), optional
        Rows to judge iterates by.
    patience : int
        Iterations without a better score after which to stop.
    """

    def __init__(self, progress, attributes, n_jobs, held_out, patience):
        self.progress, self.attributes = progress, attributes
        self.n_jobs, self.held_out, self.patience = n_jobs, held_out, patience
        self.best = None
        self._best_at = 0

    def __call__(self, iteration, mixture, trace):
        if self.held_out is not None:
            self._validate(iteration, mixture, trace)
        if self.progress.verbose:
            score = f", validation {trace.validation_score[-1]:.4f}" if trace.validation_score else ""
            print(
                f"[{self.progress.name}] iteration {iteration}: objective {trace.objective[-1]:.6g}, "
                f"gap {trace.gap:.3g} in the experts, {trace.n_experts[-1]} of {trace.n_experts[0]} tiles live "
                f"({trace.effective_experts[-1]:.2f} effective){score}",
                flush=True,
            )
        if iteration > 0 and self.progress.step("EM iteration", lambda: self.attributes(mixture)):
            return "callback"
        if self.held_out is not None and iteration - self._best_at >= self.patience:
            return "early_stopping"
        return None

    def _validate(self, iteration, mixture, trace):
        X, target = self.held_out
        scores = self.attributes(mixture)["mosaic_"].decision_function(X, self.n_jobs)
        score = target.head.accuracy(scores, target.label, target.weight)
        if self.best is None or score > max(trace.validation_score):
            self.best, self._best_at = mixture, iteration
        trace.validation_score.append(score)


def _calibrate(method, loop, mixture, rows, plan, rng):
    """Fit a calibration with gate and responsibilities as they are: only the experts are solved again."""
    loop.e_step(mixture)

    def scores_without(weight):
        fold = loop.afresh(mixture, loop.rows.afresh(weight))
        return fold.mosaic(plan.link, rows.feature_map).decision_function(rows.gate_rows, plan.options.n_jobs)

    return cross_fit(method, rows.target, scores_without, rng)


def _warn_of_max_time(progress, trace):
    if trace.stop_reason == "max_time":
        warnings.warn(
            f"{progress.name}: EM stopped after max_time={progress.max_time} s and {trace.n_iter} iterations, "
            "before its objective converged. Increase max_time, or raise tol.",
            ConvergenceWarning,
            stacklevel=5,
        )
