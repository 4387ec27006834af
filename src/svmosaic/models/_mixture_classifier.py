"""What the mixture classifiers share: the way from data to the EM loop, and from its outcome to the fitted form."""

import warnings
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from svmosaic._validation import check_choice, check_real, validate_training
from svmosaic.calibration import METHODS, Posterior, cross_fit
from svmosaic.gates import DistanceGate, Responsibilities, place_centers
from svmosaic.models._all_or_nothing import all_or_nothing
from svmosaic.models._base import BaseMosaicClassifier
from svmosaic.models._em_loop import EM, Mixture
from svmosaic.models._experts import Experts
from svmosaic.models._hold_out import hold_out
from svmosaic.models._progress import Progress
from svmosaic.mosaic import Mosaic
from svmosaic.rows import bias_of, split_bias
from svmosaic.solvers import SOLVERS, Rows

EM_PARAMETERS = """label_weight : float, default={label_weight}
        The rho of the objective: how much labels count against positions. 1 is the paper's.
    max_iter : int, default={max_iter}
        Largest number of EM iterations.
    tol : float, default={tol}
        Stop when an iteration raises the objective by no more than this share of it.
    max_time : float or None, default=None
        Stop near this many seconds: solves are cut short, and no iteration is begun after it. The model is the best so
        far, and a warning says so.
    early_stopping : bool, default=False
        Keep a part of the rows for validation, stop when its accuracy has not risen for `n_iter_no_change`
        iterations, and return the iterate where it was best (which may be the k-means start).
    validation_fraction : float, default=0.1
        The part kept for validation.
    n_iter_no_change : int, default=5
    solver : {{"auto", "dual", "newton"}}, default="auto"
        For the experts; see `LinearSVC`.
    inner_tol : float, default=1e-3
        Duality gap to which the experts are solved in an iteration, relative to the objective at zero. Inexact
        solves are fine: an expert's new weights are kept only if they are better.
    inner_max_iter : int, default=1000
        Largest number of epochs or steps of the solver in an iteration.
    rows_per_expert : int or None, default={rows_per_expert}
        The k-means start looks at a sample of this many rows an expert; None for all rows.
    kmeans_iter : int, default=10
        Lloyd steps of k-means.
    fit_intercept : bool, default=True
    intercept_scaling : "scale" or float, default="scale"
        The constant appended to each row for the experts' biases, which are penalised like the other weights.
        "scale": the root mean square norm of the rows. An expert far from the origin needs a bias of the order of
        ‖w‖ times its distance from there; with this constant it costs no more than w itself, wherever the expert is.
    class_weight : dict, "balanced" or None, default=None
        Multiplies the weights of the rows of each class.
    calibration : {{"temperature", "sigmoid", "isotonic", "posterior"}} or None, default=None
        How `predict_proba` makes probabilities. The first three as in `LinearSVC`: fitted to scores of rows held out in
        five folds, with the gate and its responsibilities kept and the experts solved again. "posterior": the
        mixture's own, sum_j g_j(x) p(y | x, j) with p(y | x, j) = exp(-h(y s_j)) / (exp(-h(s_j)) + exp(-h(-s_j))), and
        for more than two classes the outputs' normalised; decision values are then p(+ | x) - p(- | x) in place of
        the vote, whose sign may differ where experts disagree (there the vote counts an expert of a small margin for
        less). With any, `predict` is the most probable class. None: no `predict_proba`.
    n_jobs : int or None, default=None
        Threads. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        For k-means, the order of the coordinates and the validation part.
    verbose : int, default=0
        1 prints a line an iteration.
    """

EM_ATTRIBUTES = """classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (n_experts, 1 or n_classes, n_features)
    intercept_ : ndarray of shape (n_experts, 1 or n_classes)
    calibration_ : Temperature, Sigmoid, Isotonic, Posterior or None
    mosaic_ : Mosaic
        The fitted form.
    n_experts_ : int
        Experts that are left.
    objective_ : ndarray of shape (n_iterations + 1,)
        The objective at the k-means start and after each iteration.
    experts_per_iter_, effective_experts_ : ndarray of shape (n_iterations + 1,)
        How many experts were alive, and exp(entropy) of the shares they answered for.
    validation_score_ : ndarray, with `early_stopping`
        Accuracy on the validation part.
    stop_reason_ : str
        "tol", "max_iter", "max_time", "early_stopping", "callback" or "objective fell".
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray, where X had names
    """


@dataclass(frozen=True)
class TrainingData:
    """Rows with signs for every output, and weights."""

    X: object
    signs: np.ndarray
    weight: np.ndarray
    bias: float

    @classmethod
    def of(cls, X, target, bias) -> "TrainingData":
        signs = np.stack([target.signs(c) for c in range(target.n_outputs)], axis=1)
        return cls(X, np.ascontiguousarray(signs), target.weight, bias)

    @cached_property
    def rows(self):
        """The rows with the experts' bias."""
        return Rows(self.X, self.bias)

    @cached_property
    def gate_rows(self):
        """The rows with bias 1, for the gate."""
        return Rows(self.X, 1.0)


class BaseMixtureClassifier(CallbackSupportMixin, BaseMosaicClassifier):
    """A mixture of linear SVMs fitted by EM.

    Subclasses give the gate's start (`_start_gate`), how the experts are tied (`_tasks`) and the options of the
    gate's M-step (`_gate_options`).
    """

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
        X_valid, target = validate_training(self, X, y, sample_weight, self.class_weight)
        rng = check_random_state(self.random_state)
        progress = Progress(self, self.max_time, X, y, sample_weight)
        with progress.called_back(self.max_iter):
            held_out = None
            if self.early_stopping:
                X_valid, target, held_out = self._hold_out(X_valid, target, rng)
            self._fit_mixture(X_valid, target, rng, _Watch(self, target, progress, held_out))
            self._warn_of_max_time()
            codes = self.mosaic_.gate.code(X_valid, self.n_jobs)
            self.region_counts_ = self._count_regions(X_valid, target.label, codes)
        return self

    def _warn_of_max_time(self):
        if self.stop_reason_ == "max_time":
            warnings.warn(
                f"{type(self).__name__}: EM stopped after max_time={self.max_time} s and {self.n_iter_} iterations, "
                "before its objective settled. Increase max_time, or raise tol.",
                ConvergenceWarning,
                stacklevel=5,
            )

    def _fit_mixture(self, X, target, rng, watch):
        """Start, run EM, and keep its outcome."""
        deadline = watch.progress.deadline
        data = TrainingData.of(X, target, self._bias(X, target.weight))
        watch.bias = data.bias
        # Per output: the losses of many outputs would drown the gate, and rows would be shared out by labels alone.
        label_weight = self.label_weight / target.n_outputs
        gate, shares = self._start_gate(data, rng)
        experts = Experts(
            data.rows, data.signs, self._tasks(target.n_outputs), label_weight=label_weight, solver=self.solver,
            tol=self.inner_tol, max_iter=self.inner_max_iter, n_jobs=self.n_jobs, rng=rng, deadline=deadline,
        )  # fmt: skip
        loop = EM(
            data, experts, label_weight=label_weight, gate_options=self._gate_options(data), tol=self.tol,
            max_iter=self.max_iter, deadline=deadline, n_threads=effective_n_jobs(self.n_jobs),
        )  # fmt: skip
        mixture, trace = loop.run(Mixture(gate, experts.start(shares)), watch)
        mixture = watch.best if watch.best is not None else mixture
        for name, value in watch.fitted(mixture).items():
            setattr(self, name, value)
        self.objective_ = np.array(trace.objective)
        self.experts_per_iter_ = np.array(trace.n_experts)
        self.effective_experts_ = np.array(trace.effective_experts)
        if trace.validation_score:
            self.validation_score_ = np.array(trace.validation_score)
        self.n_iter_ = trace.n_iter
        self.stop_reason_ = trace.stop_reason
        self.calibration_ = self._calibrate_mixture(loop, mixture, target, rng)
        return mixture

    def _calibrate_mixture(self, loop, mixture, target, rng):
        """The calibration that was asked for, with gate and responsibilities as they are."""
        if self.calibration is None or self.calibration == "posterior":
            return self.calibration_  # as for every iterate
        _, shares = loop.e_step(mixture)
        loop.experts.deadline = None  # of EM, not of what comes after it

        def scores_without(weight):
            bank = loop.experts.afresh(mixture.bank, replace(shares, weight=weight))
            return self._mosaic_of(mixture.gate, bank, loop.data.bias).decision_function(loop.data.X, self.n_jobs)

        return cross_fit(self.calibration, target, scores_without, rng)

    def _mosaic_of(self, gate, bank, bias) -> Mosaic:
        """The fitted form of a gate and its experts."""
        link = "posterior" if self.calibration == "posterior" else "vote"
        coef, intercept = split_bias(bank.tiles, bias)
        return Mosaic(gate, coef.copy(), intercept, link)

    @property
    def coef_(self):
        return self.mosaic_.coef

    @property
    def intercept_(self):
        return self.mosaic_.intercept

    @property
    def n_experts_(self) -> int:
        return self.mosaic_.n_tiles

    def _gate_options(self, data):
        return {}

    def _place(self, data, rng, n_experts):
        """Centres of the k-means start that have rows, and the cell of each row."""
        gate = DistanceGate(
            place_centers(
                data.X, n_experts, sample_weight=data.weight, rows_per_center=self.rows_per_expert,
                max_iter=self.kmeans_iter, rng=rng,
            )
        )  # fmt: skip
        used, cell = np.unique(gate.code(data.X)[0][:, 0], return_inverse=True)
        return gate.centers[used].astype(np.float64), Responsibilities.hard(cell, data.weight, len(used))

    def _bias(self, X, weight) -> float:
        def mean_square():
            squares = X.multiply(X).sum(axis=1) if sparse.issparse(X) else np.einsum("if,if->i", X, X)
            return float(np.dot(np.asarray(squares).ravel(), weight) / weight.sum())

        return bias_of(self.fit_intercept, self.intercept_scaling, mean_square)

    def _hold_out(self, X, target, rng):
        """The rows without a validation part, and that part."""
        train, kept = hold_out(target.label, int(np.ceil(self.validation_fraction * X.shape[0])), rng)
        return X[train], target.take(train), (X[kept], target.label[kept], target.weight[kept])

    def _check_parameters(self):
        check_real("label_weight", self.label_weight, above=0)
        check_real("max_iter", self.max_iter, at_least=1, integer=True)
        check_real("tol", self.tol, at_least=0)
        check_real("max_time", self.max_time, above=0, optional=True)
        check_real("validation_fraction", self.validation_fraction, above=0, at_most=0.9)
        check_real("n_iter_no_change", self.n_iter_no_change, at_least=1, integer=True)
        check_real("inner_tol", self.inner_tol, above=0)
        check_real("inner_max_iter", self.inner_max_iter, at_least=1, integer=True)
        check_real("rows_per_expert", self.rows_per_expert, at_least=1, integer=True, optional=True)
        check_real("kmeans_iter", self.kmeans_iter, at_least=1, integer=True)
        check_choice("solver", self.solver, SOLVERS)
        self._check_calibration()
        if self.intercept_scaling != "scale":
            check_real("intercept_scaling", self.intercept_scaling, above=0)


class _Watch:
    """Looks at every iterate: validation, callbacks, a line of text."""

    def __init__(self, estimator, target, progress, held_out=None):
        self.estimator = estimator
        self.target = target
        self.progress = progress
        self.held_out = held_out
        self.bias = 1.0
        self.best = None
        self._best_at = 0

    def __call__(self, iteration, mixture, trace):
        if self.held_out is not None:
            self._validate(iteration, mixture, trace)
        if self.estimator.verbose:
            score = f", validation {trace.validation_score[-1]:.4f}" if trace.validation_score else ""
            print(
                f"[{type(self.estimator).__name__}] iteration {iteration}: objective {trace.objective[-1]:.6g}, "
                f"gap {trace.gap:.3g} in the experts, {trace.n_experts[-1]} of {trace.n_experts[0]} tiles live "
                f"({trace.effective_experts[-1]:.2f} effective){score}",
                flush=True,
            )
        if iteration > 0 and self.progress.step("EM iteration", lambda: self.fitted(mixture)):
            return "callback"
        if self.held_out is not None and iteration - self._best_at >= self.estimator.n_iter_no_change:
            return "early_stopping"
        return None

    def fitted(self, mixture) -> dict:
        """The attributes with which an estimator predicts as this mixture does."""
        mosaic = self.estimator._mosaic_of(mixture.gate, mixture.bank, self.bias)
        # The other calibrations come after the last iterate.
        calibration = Posterior() if mosaic.link == "posterior" else None
        return {"classes_": self.target.classes, "mosaic_": mosaic, "calibration_": calibration}

    def _validate(self, iteration, mixture, trace):
        X, label, weight = self.held_out
        scores = self.fitted(mixture)["mosaic_"].decision_function(X, self.estimator.n_jobs)
        score = self.target.head.accuracy(scores, label, weight)
        if self.best is None or score > max(trace.validation_score):
            self.best, self._best_at = mixture, iteration
        trace.validation_score.append(score)
