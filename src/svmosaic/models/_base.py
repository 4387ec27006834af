"""What all mosaic classifiers share: validation, the way to the solver, prediction."""

from dataclasses import replace

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.callback import with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from svmosaic._validation import check_choice, check_real, validate_rows, validate_training
from svmosaic.calibration import cross_fit
from svmosaic.explain import count_regions, explain, regions_table
from svmosaic.heads import head_of
from svmosaic.losses import CLASSIFICATION_LOSSES, LOSSES
from svmosaic.models._all_or_nothing import all_or_nothing
from svmosaic.models._export import ExportMixin
from svmosaic.models._importances import ImportanceMixin
from svmosaic.models._probabilities import ProbabilityMixin
from svmosaic.models._progress import Fitting
from svmosaic.mosaic import Mosaic
from svmosaic.rows import Rows, bias_of, row_blocks, split_bias
from svmosaic.solvers import SOLVERS, Control, problems_of, solve, warn_if_unconverged


def _tiles_of(coupling, solutions, bias):
    """Weights (n_tiles, n_outputs, n_features) and intercepts of the tiles."""
    return split_bias(np.stack([coupling.tiles(s.weights) for s in solutions], axis=1), bias)


def _code(gate, X, n_jobs):
    """Codes of all rows, by blocks, so that an interrupt gets through."""
    blocks = row_blocks(X.shape[0], gate.n_tiles * X.shape[1])
    if len(blocks) == 1:
        return gate.code(X, n_jobs)
    tiles, weights = zip(*(gate.code(X[rows], n_jobs) for rows in blocks), strict=True)
    return np.concatenate(tiles), None if weights[0] is None else np.concatenate(weights)


class BaseMosaicClassifier(ProbabilityMixin, ImportanceMixin, ExportMixin, ClassifierMixin, BaseEstimator):
    """A classifier made of a gate, a coupling and the shared solver.

    Subclasses say how to fit a gate (`_fit_gate`) and how tiles share strength (`_couple`).
    """

    _solvers: tuple[str, ...] = SOLVERS

    @all_or_nothing
    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Fit the gate, then all tiles.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Multiplies C for each row. A row of weight k counts as k copies of it.

        Returns
        -------
        self
        """
        self._check_parameters()
        self._fitting = Fitting(getattr(self, "max_time", None), X, y, sample_weight)
        try:
            X, target = validate_training(self, X, y, sample_weight, self.class_weight)
            with self._fitting.called_back(self, self._n_solves() * target.n_outputs):
                self._fit(X, target)
        finally:
            del self._fitting
        return self

    def _fit(self, X, target):
        """From validated data to the fitted form."""
        rng = check_random_state(self.random_state)
        gate_rows, tile_rows, feature_map = self._map_features(X)
        gate = self._fit_gate(gate_rows, target, rng)
        codes = _code(gate, gate_rows, self.n_jobs)
        coupling = self._couple(gate.n_tiles)
        self._fitting.gate, self._fitting.feature_map = gate, feature_map
        solutions, bias = self._solve(tile_rows, target, codes, coupling, rng)
        self._keep(target.classes, gate, coupling, solutions, bias, feature_map)
        self._fitting.context = None  # the folds of the calibration are no steps of the model
        self.calibration_ = self._calibrate(tile_rows, target, codes, coupling, solutions, rng)
        self.region_counts_ = self._count_regions(tile_rows, target.label, codes)

    def _n_solves(self) -> int:
        """How often `_fit` solves for the tiles of all outputs."""
        return 1

    def decision_function(self, X):
        """Signed scores: of shape (n_samples,) for two classes, else (n_samples, n_classes)."""
        check_is_fitted(self)
        X = validate_rows(self, X)
        blocks = row_blocks(X.shape[0], self.mosaic_.n_bytes / 8)
        if len(blocks) == 1:
            scores = self.mosaic_.decision_function(X, self.n_jobs)
        else:  # so that an interrupt gets through
            scores = np.concatenate([self.mosaic_.decision_function(X[rows], self.n_jobs) for rows in blocks])
        return head_of(self).shaped(scores)

    def predictor(self):
        """A `Predictor`: the fitted model packed for many small calls, without scikit-learn's checks.

        Returns
        -------
        Predictor
        """
        check_is_fitted(self)
        return self.mosaic_.compile(self.classes_, getattr(self, "calibration_", None))

    def explain(self, X):
        """Take the scores of rows apart into tiles and features, exactly.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            A few rows: the result has a number for each row, tile that spoke, output and feature.

        Returns
        -------
        Explanation
            `features(top)` and `tiles()` are its tables, `to_frame(top)` the former for pandas.
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        return explain(self.mosaic_, validate_rows(self, X), head_of(self), names, self.n_jobs)

    @property
    def regions_(self):
        """What each tile is about, on the training data: a `Table` with one line a tile.

        A row counts for the tile that its gate gives most weight to; with several gates once for each gate, which a
        column names. Columns: rows, the most frequent class, accuracy,
        the share of each class, and the features with the largest weights (standardise the features if these are to be
        compared). `to_frame()` gives a pandas DataFrame.
        """
        if not hasattr(self, "region_counts_"):
            raise AttributeError(f"this {type(self).__name__} has no counts of its training rows: fit it first")
        names = getattr(self, "feature_names_in_", None)
        return regions_table(self.mosaic_, self.region_counts_, head_of(self), names)

    def summarise_regions(self, X, y):
        """The same as `regions_`, of other rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        """
        check_is_fitted(self)
        X = validate_rows(self, X)
        y = np.asarray(y)
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(f"y has classes that the model does not know: {unknown.tolist()!r}")
        if len(y) != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows, but y has {len(y)}")
        feature_map = self.mosaic_.feature_map
        gate_rows, tile_rows = (X, X) if feature_map is None else feature_map.rows(X)
        codes = self.mosaic_.gate.code(gate_rows, self.n_jobs)
        counts = self._count_regions(tile_rows, np.searchsorted(self.classes_, y), codes)
        names = getattr(self, "feature_names_in_", None)
        return regions_table(self.mosaic_, counts, head_of(self), names)

    def _check_parameters(self):
        check_real("C", self.C, above=0)
        check_real("tol", self.tol, above=0)
        check_real("max_iter", self.max_iter, at_least=1, integer=True)
        check_real("intercept_scaling", self.intercept_scaling, above=0)
        check_choice("loss", self.loss, CLASSIFICATION_LOSSES)
        check_choice("solver", self.solver, self._solvers)
        check_real("max_time", getattr(self, "max_time", None), above=0, optional=True)
        self._check_calibration()

    def _map_features(self, X):
        """Rows as the gate sees them, rows as the tiles see them, and the fitted map between, if any."""
        return X, X, None

    def _sgd_options(self):
        """How stochastic descent should go, or None for its defaults."""

    def _solve(self, X, target, codes, coupling, rng, start=None):
        """Solve for the tiles of every output with the codes held fixed, from duals where given."""
        bias = bias_of(self.fit_intercept, self.intercept_scaling)
        loss, cost = LOSSES[self.loss], self.C * target.weight
        targets = [loss.rows(target.signs(c), cost) for c in range(target.n_outputs)]
        problems = problems_of(Rows(X, bias), codes, coupling, loss, targets)
        solutions = solve(
            problems, solver=self.solver, tol=self.tol, max_iter=self.max_iter, seed=rng.randint(2**31 - 1),
            n_jobs=self.n_jobs, start=start, sgd=self._sgd_options(),
            control=self._control(problems, coupling, bias, target, target.n_outputs),
        )  # fmt: skip
        self._report(solutions, coupling)
        return solutions, bias

    def _control(self, problems, coupling, bias, target, n_outputs):
        """What limits and watches the solvers: nothing, outside of `fit`."""
        fitting = getattr(self, "_fitting", None)
        if fitting is None:
            return Control()
        fitting.last = fitting.control(self, problems, coupling, bias, target, n_outputs)
        return fitting.last

    def _keep(self, classes, gate, coupling, solutions, bias, feature_map):
        """Turn the solutions into the fitted form."""
        self.classes_ = classes
        self.mosaic_ = Mosaic(gate, *_tiles_of(coupling, solutions, bias), feature_map=feature_map)
        self.objective_ = np.array([s.certificate.primal for s in solutions])
        self.dual_gap_ = np.array([s.gap for s in solutions])
        self.n_iter_ = max(s.n_iter for s in solutions)

    def _calibrate(self, X, target, codes, coupling, solutions, rng):
        """The calibration that was asked for, with the gate as it is: only the tiles are solved again for each fold."""
        if getattr(self, "calibration", None) is None:
            return None

        def scores_without(weight):
            # The duals of the rows that stay are feasible without the others, and nearly optimal.
            start = [np.where(weight > 0, s.alpha, 0.0) for s in solutions]
            fold, bias = self._solve(X, replace(target, weight=weight), codes, coupling, rng, start)
            coef, intercept = _tiles_of(coupling, fold, bias)
            mosaic = replace(self.mosaic_, coef=coef, intercept=intercept)
            return mosaic.score_codes(X, *codes, self.n_jobs)

        return cross_fit(self.calibration, target, scores_without, rng)

    def _count_regions(self, tile_rows, label, codes):
        """Counts for `regions_`: one pass of scoring."""
        found = head_of(self).found(self.mosaic_.score_codes(tile_rows, *codes, self.n_jobs))
        return count_regions(self.mosaic_, head_of(self), codes, label, found)

    def _report(self, solutions, coupling=None):
        name = type(self).__name__
        if self.verbose:
            for c, s in enumerate(solutions):
                # Blocks are not tiles where tiles share some; all classes at once have one block a class and tile.
                tiles = s.weights.swapaxes(0, 1) if s.weights.ndim == 3 else s.weights
                if coupling is not None and s.weights.shape[0] == coupling.n_blocks:
                    tiles = coupling.tiles(s.weights)
                live = sum(bool(tile.any()) for tile in tiles)
                print(
                    f"[{name}] output {c + 1}/{len(solutions)}: objective {s.certificate.primal:.6g}, gap {s.gap:.3g} "
                    f"(asked for {s.target:.3g}), {live} of {len(tiles)} tiles live, {s.n_iter} iterations ({s.solver})"
                )
        fitting = getattr(self, "_fitting", None)
        late = fitting is not None and fitting.last is not None and fitting.last.out_of_time
        warn_if_unconverged(solutions, self.max_iter, name, self.max_time if late else None)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
