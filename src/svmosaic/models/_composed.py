"""Estimators that take the composed path: fit a gate, code the rows, solve for the tiles."""

from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import check_random_state

from svmosaic._validation import check_choice, check_real, validate_training
from svmosaic.couplings import Coupling
from svmosaic.heads import Classify
from svmosaic.losses import CLASSIFICATION_LOSSES, LOSSES, REGRESSION_LOSSES
from svmosaic.models._all_or_nothing import all_or_nothing
from svmosaic.models._base import BaseMosaicClassifier, BaseMosaicRegressor
from svmosaic.models._composed_fit import MemoryRows, Options, fit_composed, solve_outputs
from svmosaic.models._fit_rows import FitRowsMixin
from svmosaic.models._progress import Progress
from svmosaic.models._values import ValuesMixin
from svmosaic.rows import bias_of
from svmosaic.solvers import SOLVERS


class ComposedModel(CallbackSupportMixin, FitRowsMixin):
    """An estimator made of a gate, a coupling and the shared solver; what its scores mean is up to its head.

    Subclasses say how to fit a gate (`_fit_gate`) and how tiles share strength (`_couple`). They may say what the tiles
    see (`_fit_map`), how tiles are solved for (`_solving`) and what else is kept of the weights (`_attributes`).
    `ComposedClassifier` and `ComposedRegressor` say what the rows are fitted to (`_validated`, `_validated_batch`) and
    how the head is completed (`_complete_head`).
    """

    _solvers: tuple[str, ...] = SOLVERS
    _losses: tuple[str, ...]

    @all_or_nothing
    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Fit the gate, then all tiles.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,); for regressors also (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional
            Multiplies C for each row. A row of weight k counts as k copies of it.

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
        check_real("C", self.C, above=0)
        check_real("tol", self.tol, above=0)
        check_real("max_iter", self.max_iter, at_least=1, integer=True)
        check_real("intercept_scaling", self.intercept_scaling, above=0)
        check_choice("loss", self.loss, self._losses)
        check_choice("solver", self.solver, self._solvers)
        self._check_pieces()
        check_real("max_time", self.max_time, above=0, optional=True)


class ComposedClassifier(ComposedModel, BaseMosaicClassifier):
    """A composed model whose head classifies."""

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


class ComposedRegressor(ValuesMixin, ComposedModel, BaseMosaicRegressor):
    """A composed model whose head gives values."""

    _losses = REGRESSION_LOSSES
