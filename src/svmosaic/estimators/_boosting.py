"""Rounds of boosting: SVMs on weighted rows, and the votes they have."""

import warnings
from dataclasses import replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.extmath import safe_sparse_dot

from svmosaic.couplings import Coupling
from svmosaic.gates import SingleCell
from svmosaic.losses import LOSSES
from svmosaic.model.heads import winners
from svmosaic.rows import Rows, bias_of, split_bias
from svmosaic.solvers import Control, problems_of, solve

# Numbers of votes (rows times rounds times classes) held at a time in prediction.
_VOTES_AT_ONCE = 1 << 22


class Rounds:
    """The state of boosting: the weights of the rows, and the SVMs so far."""

    def __init__(self, model, X, target, train, rng, progress):
        self.model, self.X, self.target, self.rng, self.progress = model, X, target, rng, progress
        self.label = target.label[train]
        self.signs = [target.signs(c)[train] for c in range(target.n_outputs)]
        weight = target.weight[train]
        self.total, self.weight = weight.sum(), weight / weight.sum()
        self.bias = bias_of(model.fit_intercept, model.intercept_scaling)
        codes = SingleCell().code(X, model.n_jobs)
        self.loss = LOSSES[model.loss]
        self.problem, *_ = problems_of(Rows(X, self.bias), codes, Coupling.independent(1), self.loss, self._targets())
        self.start, self.solved = None, []
        self.coef, self.intercept, self.weights, self.errors, self.gaps = [], [], [], [], []
        self.n_iter = 0

    def boost(self):
        """One round; the reason to stop, or None."""
        model = self.model
        solutions = self._solve()
        coef, intercept = split_bias(np.stack([s.weights[0] for s in solutions]), self.bias)
        wrong = winners_of(self.X, coef[None], intercept[None])[:, 0] != self.label
        error = float(self.weight[wrong].sum())
        n_classes = len(self.target.classes)
        chance = error >= 1 - 1 / n_classes
        name = type(model).__name__
        if chance and self.weights:
            return "chance"
        if chance and not self.progress.late:
            warnings.warn(
                f"{name}: the first SVM has a weighted error of {error:.3g}, no better than chance, so "
                "boosting stops with this SVM alone. Try other features, another C, or a mosaic.",
                ConvergenceWarning,
                stacklevel=4,
            )
        perfect = not wrong.any()
        odds = max(error, np.finfo(np.float64).eps)
        weight = 1.0 if chance else model.learning_rate * (np.log((1 - odds) / odds) + np.log(n_classes - 1))
        self.coef.append(coef)
        self.intercept.append(intercept)
        self.weights.append(float(weight))
        self.errors.append(error)
        self.gaps.append([s.gap for s in solutions])
        if model.verbose:
            print(f"[{name}] round {len(self.weights)}: weighted error {error:.4f}, weight {weight:.4f}")
        if chance or perfect:
            return "chance" if chance else "perfect"
        before = self.weight
        # The largest weight grows by no more than it is normalized by, so nothing overflows.
        grown = np.where(wrong, before, before * np.exp(-weight))
        self.weight = grown / grown.sum()
        # Duals scaled with their bounds are feasible, and near where the last SVM stopped.
        self.start = [s.alpha * np.divide(self.weight, before, where=before > 0, out=np.ones_like(before))
                      for s in solutions]  # fmt: skip
        return None

    def _targets(self):
        cost = self.model.C * self.total * self.weight
        return [self.loss.rows(signs, cost) for signs in self.signs]

    def _solve(self):
        model = self.model
        problems = [self.problem.with_target(t.sign, t.cost, t.threshold) for t in self._targets()]
        solutions = solve(
            problems, solver=model.solver, tol=model.tol, max_iter=model.max_iter, n_jobs=model.n_jobs,
            seed=self.rng.randint(2**31 - 1), start=self.start, control=Control(self.progress.left),
        )  # fmt: skip
        self.solved += [replace(s, alpha=s.alpha[:0]) for s in solutions]  # for the report: duals are large
        self.n_iter = max(self.n_iter, *(s.n_iter for s in solutions))
        return solutions


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
