"""Estimators that take the composed path: fit a gate, code the rows, solve for the tiles."""

from typing import Any, ClassVar, Literal

from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import check_random_state

from svmosaic._validation import check_choice, validate_training
from svmosaic.couplings import Coupling
from svmosaic.estimators._all_or_nothing import all_or_nothing
from svmosaic.estimators._base import BaseMosaicClassifier, BaseMosaicRegressor
from svmosaic.estimators._composed_fit import MemoryRows, Options, fit_composed, solve_outputs
from svmosaic.estimators._fit_rows import FitRowsMixin
from svmosaic.estimators._parameters import Count, Positive, check_parameters, parameters
from svmosaic.estimators._progress import Progress
from svmosaic.estimators._values import ValuesMixin
from svmosaic.losses import CLASSIFICATION_LOSSES, LOSSES, REGRESSION_LOSSES
from svmosaic.model.heads import Classify
from svmosaic.rows import bias_of
from svmosaic.solvers import Solver


@parameters
class ComposedModel(CallbackSupportMixin, FitRowsMixin):
    """An estimator made of a gate, a coupling and the shared solver; what its scores mean is up to its head.

    Subclasses say how to fit a gate (`_fit_gate`) and how tiles share strength (`_couple`). They may say what the tiles
    see (`_fit_map`), how tiles are solved for (`_solving`) and what else is kept of the weights (`_attributes`).
    `ComposedClassifier` and `ComposedRegressor` say what the rows are fitted to (`_validated`, `_validated_batch`) and
    how the head is completed (`_complete_head`).

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses relative to the penalty on the weights. Smaller values regularize more.
    solver : {"auto", "dual", "newton", "sgd"}, default="auto"
        "dual": coordinate descent, best for many features or sparse rows. "newton": second order, best if rows far
        outnumber features, and the only one that converges on badly scaled data. "auto" chooses by estimated cost.
        "sgd": averaged stochastic gradient descent, which has no certificate: `dual_gap_` is nan.
    tol : float, default=1e-4
        Stop when the duality gap is below `tol` times the objective at zero: for classifiers, C times the sum of sample
        weights; for regressors, the losses if every prediction were the mean.
    max_iter : int, default=1000
        Maximum number of epochs (dual) or steps (newton).
    fit_intercept : bool, default=True
        Whether the tiles have intercepts.
    intercept_scaling : float, default=1.0
        The constant appended to each row for the intercepts, which are penalized like the other weights.
    n_jobs : int or None, default=None
        Number of threads. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        For the regions and the order of the coordinates.
    verbose : int, default=0
        1 prints the objective, the gap and the number of live tiles (those whose weights are not all zero) of each
        output, during the fit and at the end.
    max_time : float or None, default=None
        Seconds after which the solver stops with the best weights so far and a warning that reports their gap. Each
        output (and each independent tile) gets a share of the remaining time when it starts. Finding the regions is
        not interrupted.

    Attributes
    ----------
    objective_ : ndarray of shape (n_outputs,)
        Objective of each output: one for two classes, otherwise one per class; for regressors, one per target, for the
        normalized y.
    dual_gap_ : ndarray of shape (n_outputs,)
        The certificate: no weights have an objective that is lower by more than this. nan after stochastic gradient
        descent, which has no dual solution.
    n_iter_ : int
        Number of epochs or steps; the largest if several problems were solved.
    """

    C: Positive = 1.0
    loss: str
    solver: Solver | Literal["sgd"] = "auto"
    tol: Positive = 1e-4
    max_iter: Count = 1000
    fit_intercept: bool = True
    intercept_scaling: Positive = 1.0
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0
    max_time: Positive | None = None

    _losses: ClassVar[tuple[str, ...]]

    @all_or_nothing
    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Fit the gate, then all tiles.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,); for regressors also (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional
            Multiplies C for each row. A row with weight k counts as k copies of the row.

        Returns
        -------
        self
        """
        self._check_parameters()
        progress = Progress(self, self.max_time, X, y, sample_weight)
        X, target = self._validated(X, y, sample_weight)
        rng = check_random_state(self.random_state)
        with progress.called_back(self._n_solves() * target.n_outputs):
            self._fit_rows(MemoryRows.of(X, target, self._fit_map(X, target, rng)), rng, progress)
        return self

    def _fit_rows(self, rows, rng, progress):
        """From rows to the fitted attributes."""
        gate = self._fit_gate(rows, rng)
        options, solve_tiles = self._options(), self._solving()
        fitted = fit_composed(
            rows, gate, self._couple(gate.n_tiles), options, progress, rng, solve_tiles=solve_tiles,
            show=self._attributes(rows.target.head),
        )  # fmt: skip
        head = self._complete_head(rows, fitted, solve_tiles, options, progress, rng)
        counts = rows.region_counts(fitted.mosaic, head, self.n_jobs)
        self._remember(head, fitted, rows.n_rows)
        self.region_counts_ = counts
        self._keep_region_sample(rows.region_sample(fitted.mosaic, counts))

    def _remember(self, head, fitted, n_rows):
        """Keep the outcome of a fit to so many rows."""
        solved = fitted.solved
        vars(self).update(self._attributes(head)(fitted.mosaic, solved.coupling, solved.weights))
        vars(self).update(solved.fitted_attributes)

    def _attributes(self, head):
        """A function from a mosaic, its coupling and its block weights to fitted attributes; it holds no estimator."""
        return lambda mosaic, coupling, weights: {**head.attributes, "mosaic_": mosaic}

    def _complete_head(self, rows, fitted, solve_tiles, options, progress, rng):
        """The head of the fitted model."""
        return rows.target.head

    def _options(self) -> Options:
        bias = bias_of(self.fit_intercept, self.intercept_scaling)
        return Options(
            self.C, LOSSES[self.loss], bias, self.solver, self.tol, self.max_iter, self.n_jobs, self._sgd_options(),
            self._loss_parameters(),
        )  # fmt: skip

    def _loss_parameters(self) -> dict:
        """What the loss is to know besides the rows."""
        return {}

    def _solving(self):
        """The function that solves for the tiles."""
        return solve_outputs

    def _n_solves(self) -> int:
        """How often it solves for the tiles of all outputs."""
        return 1

    def _couple(self, n_tiles) -> Coupling:
        """How so many tiles share strength."""
        return Coupling.independent(n_tiles)

    def _sgd_options(self):
        """How stochastic descent should go, or None for its defaults."""
        return None

    def _check_parameters(self):
        check_parameters(self)
        check_choice("loss", self.loss, self._losses)
        self._check_pieces()


@parameters
class ComposedClassifier(ComposedModel, BaseMosaicClassifier):
    """A composed model whose head classifies.

    Parameters
    ----------
    loss : {"hinge", "squared_hinge"}, default="hinge"
        For a row with margin m: max(0, 1 - m), or its square, which usually needs fewer steps.
    class_weight : dict, "balanced" or None, default=None
        Multiplies C for each class.
    """

    loss: str = "hinge"
    class_weight: dict | str | None = None

    _losses = CLASSIFICATION_LOSSES

    def _validated(self, X, y, sample_weight):
        return validate_training(self, X, y, sample_weight, self.class_weight)

    def _complete_head(self, rows, fitted, solve_tiles, options, progress, rng):
        if self.calibration is None:
            return rows.target.head
        calibration = rows.calibrate(self.calibration, fitted, solve_tiles, options, progress, rng)
        return Classify(rows.target.classes, calibration)

    def _check_parameters(self):
        super()._check_parameters()
        self._check_calibration()


@parameters
class ComposedRegressor(ValuesMixin, ComposedModel, BaseMosaicRegressor):
    r"""A composed model whose head gives values.

    Parameters
    ----------
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive", "quantile", "expectile"}, default=...
        With the residual r = y - f(x) of a row: max(0, \|r\| - epsilon), or its square; or q max(0, r) +
        (1 - q) max(0, -r) with q the `quantile`, or the same with squares ("expectile").
    """

    loss: str = "epsilon_insensitive"

    _losses = REGRESSION_LOSSES
