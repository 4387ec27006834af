"""What all mosaic classifiers share: validation, the way to the solver, prediction."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from svmosaic._validation import check_choice, check_real, validate_rows, validate_training
from svmosaic.mosaic import Mosaic
from svmosaic.rows import Rows
from svmosaic.solvers import SOLVERS, Problem, solve, warn_if_unconverged

LOSSES = ("hinge", "squared_hinge")


class BaseMosaicClassifier(ClassifierMixin, BaseEstimator):
    """A classifier made of a gate, a coupling and the shared solver.

    Subclasses say how to fit a gate (`_fit_gate`) and how tiles share strength (`_couple`).
    """

    _solvers: tuple[str, ...] = SOLVERS

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
        X, target = validate_training(self, X, y, sample_weight, self.class_weight)
        rng = check_random_state(self.random_state)
        gate_rows, tile_rows, feature_map = self._map_features(X)
        gate = self._fit_gate(gate_rows, target, rng)
        codes = gate.code(gate_rows, self.n_jobs)
        coupling = self._couple(gate.n_tiles)
        solutions, bias = self._solve(tile_rows, target, codes, coupling, rng)
        self._keep(target.classes, gate, coupling, solutions, bias, feature_map)
        return self

    def decision_function(self, X):
        """Signed scores: of shape (n_samples,) for two classes, else (n_samples, n_classes)."""
        check_is_fitted(self)
        scores = self.mosaic_.decision_function(validate_rows(self, X), self.n_jobs)
        return scores.ravel() if len(self.classes_) == 2 else scores

    def predict(self, X):
        """The class with the largest score."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    def _check_parameters(self):
        check_real("C", self.C, above=0)
        check_real("tol", self.tol, above=0)
        check_real("max_iter", self.max_iter, at_least=1, integer=True)
        check_real("intercept_scaling", self.intercept_scaling, above=0)
        check_choice("loss", self.loss, LOSSES)
        check_choice("solver", self.solver, self._solvers)

    def _map_features(self, X):
        """Rows as the gate sees them, rows as the tiles see them, and the fitted map between, if any."""
        return X, X, None

    def _sgd_options(self):
        """How stochastic descent should go, or None for its defaults."""

    def _solve(self, X, target, codes, coupling, rng):
        """Solve for the tiles of every output with the codes held fixed."""
        bias = float(self.intercept_scaling) if self.fit_intercept else 0.0
        cost = self.C * target.weight
        first = Problem(Rows(X, bias), *codes, coupling, target.signs(0), cost, self.loss)
        problems = [first.with_target(target.signs(c), cost) for c in range(target.n_outputs)]
        solutions = solve(
            problems, solver=self.solver, tol=self.tol, max_iter=self.max_iter, seed=rng.randint(2**31 - 1),
            n_jobs=self.n_jobs, sgd=self._sgd_options(),
        )  # fmt: skip
        self._report(solutions)
        return solutions, bias

    def _keep(self, classes, gate, coupling, solutions, bias, feature_map):
        """Turn the solutions into the fitted form."""
        tiles = np.stack([coupling.tiles(s.weights) for s in solutions], axis=1)
        self.classes_ = classes
        self.mosaic_ = Mosaic(gate, tiles[:, :, :-1], bias * tiles[:, :, -1], feature_map=feature_map)
        self.objective_ = np.array([s.certificate.primal for s in solutions])
        self.dual_gap_ = np.array([s.gap for s in solutions])
        self.n_iter_ = max(s.n_iter for s in solutions)

    def _report(self, solutions):
        name = type(self).__name__
        if self.verbose:
            for c, s in enumerate(solutions):
                print(
                    f"[{name}] output {c + 1}/{len(solutions)}: objective {s.certificate.primal:.6g}, gap {s.gap:.3g} "
                    f"(asked for {s.target:.3g}), {s.n_iter} iterations ({s.solver})"
                )
        warn_if_unconverged(solutions, self.max_iter, name)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
