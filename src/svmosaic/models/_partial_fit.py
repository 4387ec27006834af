"""Training over batches: the stochastic solver with its state carried from call to call."""

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from svmosaic._validation import check_real, validate_batch
from svmosaic.losses import LOSSES
from svmosaic.models._all_or_nothing import all_or_nothing
from svmosaic.rows import Rows, bias_of
from svmosaic.solvers import Control, SgdOptions, Solution, StochasticDescent, problems_of
from svmosaic.solvers.certificates import Certificate


def _can_stream(estimator):
    """Batches are for stochastic descent, one class against the rest."""
    name = type(estimator).__name__
    if estimator.solver not in ("auto", "sgd"):
        raise AttributeError(
            f"{name}.partial_fit is stochastic: solver must be 'auto' or 'sgd' for it, got {estimator.solver!r}"
        )
    if estimator.multi_class == "crammer_singer":
        raise AttributeError(f"{name}.partial_fit needs multi_class='ovr', got 'crammer_singer'")
    return True


class StreamMixin:
    """`partial_fit`, and the parameters of stochastic descent, for a classifier made by `BaseMosaicClassifier`."""

    @available_if(_can_stream)
    @all_or_nothing
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        r"""One pass of stochastic descent over a batch, in the order of its rows.

        The first batch places the anchors (unless they are given), finds the scale of the codes, fits the feature map
        and chooses the first step; later ones only move the tiles. After `fit`, descent goes on from what was fitted.
        Memory is that of the batch and the model, however long the stream is.

        The penalty is that of :math:`\lambda = 1 / (C n)` with n the `stream_length`; where that is None, n is the
        number of rows of `fit` or, without `fit`, of the first batch. Batches in turn then do exactly what
        ``fit(solver="sgd", shuffle=False, max_iter=1)`` does on all their `stream_length` rows at once, provided that
        anchors and `code_scale` are given, and `t0` too unless the first batch holds the 1000 rows it is found on.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like of shape (n_classes,), optional
            All classes that the stream will bring; needed in the first call.
        sample_weight : array-like of shape (n_samples,), optional
            Multiplies C for each row.

        Returns
        -------
        self
        """
        self._check_parameters()
        first = not hasattr(self, "mosaic_")
        X, target = validate_batch(
            self, X, y, None if first else self.classes_, classes, sample_weight, self.class_weight
        )
        bias = bias_of(self.fit_intercept, self.intercept_scaling)
        if first:
            rng = check_random_state(self.random_state)
            gate_rows, tile_rows, feature_map = self._map_features(X)
            gate = self._fit_gate(gate_rows, target, rng)
            self.n_samples_seen_ = 0
            self._stream = None
        else:
            gate, feature_map = self.mosaic_.gate, self.mosaic_.feature_map
            gate_rows, tile_rows = (X, X) if feature_map is None else feature_map.rows(X)
        coupling = self._couple(gate.n_tiles)
        if self._stream is None:
            self._stream = self._start_stream(target, coupling, tile_rows, bias, first)
        if self._stream[0].last.dtype == np.float32 and tile_rows.dtype == np.float64:
            tile_rows = tile_rows.astype(np.float32)
        loss, cost = LOSSES[self.loss], self.C * target.weight
        targets = [loss.rows(target.signs(c), cost) for c in range(target.n_outputs)]
        problems = problems_of(Rows(tile_rows, bias), gate.code(gate_rows, self.n_jobs), coupling, loss, targets)
        control = Control()
        control.run_all(
            lambda c: self._stream[c].run(problems[c], control=control.for_task((c, None), 0, 1)), len(problems),
            effective_n_jobs(self.n_jobs),
        )  # fmt: skip
        solutions = [
            Solution(Certificate(descent.weights, np.nan, np.nan), None, 1, np.nan, "sgd", True)
            for descent in self._stream
        ]
        self._keep(target.classes, gate, coupling, solutions, bias, feature_map)
        self.n_samples_seen_ += X.shape[0]
        return self

    def _start_stream(self, target, coupling, rows, bias, first):
        """A descent for each output, from zero or from what `fit` left."""
        n_rows = self.stream_length or self.n_samples_seen_ or rows.shape[0]
        shape = (target.n_outputs, coupling.n_tiles, rows.shape[1] + 1)
        weights = np.zeros(shape, dtype=rows.dtype)
        if not first:
            weights[:, :, :-1] = self.mosaic_.coef.transpose(1, 0, 2)
            if bias:
                weights[:, :, -1] = self.mosaic_.intercept.T / bias
        return [StochasticDescent(n_rows, self._sgd_options(), start) for start in weights]

    def _sgd_options(self):
        t0 = None if self.t0 is None else float(self.t0)
        return SgdOptions(bool(self.shuffle), bool(self.average), not self.penalize_intercept, t0)

    def _check_parameters(self):
        super()._check_parameters()
        check_real("t0", self.t0, at_least=1, optional=True)
        check_real("stream_length", self.stream_length, at_least=1, integer=True, optional=True)
