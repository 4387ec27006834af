"""Training over batches: the stochastic solver with its state carried from call to call."""

from functools import partial
from typing import Annotated

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from svmosaic._validation import check_real
from svmosaic.estimators._all_or_nothing import all_or_nothing
from svmosaic.estimators._composed_fit import MemoryRows, tiles_of
from svmosaic.estimators._parameters import Count, parameters
from svmosaic.model.mosaic import Mosaic
from svmosaic.solvers import Control, SgdOptions, StochasticDescent


def _can_stream(estimator):
    """Batches are for stochastic descent, one class against the rest."""
    name = type(estimator).__name__
    if estimator.solver not in ("auto", "sgd"):
        raise AttributeError(
            f"{name}.partial_fit is stochastic: solver must be 'auto' or 'sgd' for it, got {estimator.solver!r}"
        )
    if getattr(estimator, "multi_class", "ovr") == "crammer_singer":
        raise AttributeError(f"{name}.partial_fit needs multi_class='ovr', got 'crammer_singer'")
    return True


@parameters
class StreamMixin:
    r"""Batches, and the parameters of stochastic descent, for a `ComposedModel`.

    Parameters
    ----------
    penalize_intercept : bool, default=True
        False leaves the intercepts out of the penalty, as in the paper; stochastic gradient descent only. The steps of
        the intercepts are multiplied by the square of `intercept_scaling`: values above 1 let them grow faster.
    shuffle : bool, default=True
        For `fit` with stochastic gradient descent: visit the rows in a new random order in every pass. `partial_fit`
        always visits them in the given order.
    average : bool, default=True
        Stochastic gradient descent returns the average of its iterates, with weight t for iterate t; False returns the
        last iterate, as in the paper.
    t0 : float or None, default=None
        Offset of the step count of stochastic gradient descent. None: determined by trying initial steps of several
        sizes on the first 1000 rows.
    stream_length : int or None, default=None
        For `partial_fit`: the n of :math:`\lambda = 1 / (C n)`. None: the number of rows of `fit`, or of the first
        batch.

    Attributes
    ----------
    n_samples_seen_ : int
        Number of rows of `fit` and of all batches since.
    """

    penalize_intercept: bool = True
    shuffle: bool = True
    average: bool = True
    t0: Annotated[float, partial(check_real, at_least=1)] | None = None
    stream_length: Count | None = None

    def _take_batch(self, X, target, first):
        """One pass of stochastic descent over a validated batch."""
        options = self._options()
        if first:
            rng = check_random_state(self.random_state)
            rows = MemoryRows.of(X, target, self._fit_map(X, target, rng))
            gate = self._fit_gate(rows, rng)
            self.n_samples_seen_ = 0
            self._stream = None
        else:
            rows, gate = MemoryRows.of(X, target, self.mosaic_.feature_map), self.mosaic_.gate
        coupling = self._couple(gate.n_tiles)
        if self._stream is not None and self._stream[0].last.dtype != rows.tile_rows.dtype == np.float64:
            rows.tile_rows = rows.tile_rows.astype(np.float32)
        rows.encode(gate, options)
        problems = rows.problems(coupling, options)
        if self._stream is None:
            self._stream = self._start_stream(rows, coupling, options.bias, problems[0].n_rows // rows.n_rows, first)
        control = Control()
        control.run_all(
            lambda c: self._stream[c].run(problems[c], control=control.for_task((c, None), 0, 1)), len(problems),
            min(effective_n_jobs(self.n_jobs), len(problems)),
        )  # fmt: skip
        weights = [descent.weights for descent in self._stream]
        mosaic = Mosaic(gate, feature_map=rows.feature_map, **tiles_of(coupling, weights, options))
        vars(self).update(self._attributes(target.head)(mosaic, coupling, weights))
        self.objective_ = self.dual_gap_ = np.full(len(weights), np.nan)
        self.n_iter_ = 1
        self.n_samples_seen_ += rows.n_rows
        return self

    def _remember(self, head, fitted, n_rows):
        super()._remember(head, fitted, n_rows)
        self.n_samples_seen_, self._stream = n_rows, None

    def _start_stream(self, rows, coupling, bias, n_sides, first):
        """A descent for each output, from zero or from what `fit` left; a sample is `n_sides` rows of the problem."""
        n_rows = n_sides * (self.stream_length or self.n_samples_seen_ or rows.n_rows)
        shape = (rows.target.n_outputs, coupling.n_tiles, rows.tile_rows.shape[1] + 1)
        weights = np.zeros(shape, dtype=rows.tile_rows.dtype)
        if not first:
            weights[:, :, :-1] = self.mosaic_.coef.transpose(1, 0, 2)
            if bias:
                weights[:, :, -1] = self.mosaic_.intercept.T / bias
        return [StochasticDescent(n_rows, self._sgd_options(), start) for start in weights]

    def _sgd_options(self):
        t0 = None if self.t0 is None else float(self.t0)
        return SgdOptions(bool(self.shuffle), bool(self.average), not self.penalize_intercept, t0)


class ClassifierStreamMixin(StreamMixin):
    """`partial_fit` of a classifier."""

    @available_if(_can_stream)
    @all_or_nothing
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        r"""Learn from a batch in one pass of stochastic gradient descent, in the order of its rows.

        The first batch places the anchors (unless they are given), determines the scale of the codes, fits the feature
        map and chooses the initial step; later batches only update the tiles. After `fit`, training continues from the
        fitted model. It needs memory for the batch and the model, however long the stream is.

        The penalty is :math:`\lambda = 1 / (C n)` with n the `stream_length`; if that is None, n is the
        number of rows of `fit` or, without `fit`, of the first batch. Consecutive batches then do exactly what
        ``fit(solver="sgd", shuffle=False, max_iter=1)`` does on all their `stream_length` rows at once, provided that
        anchors and `code_scale` are given, and `t0` too unless the first batch has the 1000 rows used to determine it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like of shape (n_classes,), optional
            All classes that occur in the stream; required in the first call.
        sample_weight : array-like of shape (n_samples,), optional
            Multiplies C for each row.

        Returns
        -------
        self
        """
        return self._fit_batch(X, y, classes, sample_weight)


class RegressorStreamMixin(StreamMixin):
    """`partial_fit` of a regressor."""

    @available_if(_can_stream)
    @all_or_nothing
    def partial_fit(self, X, y, sample_weight=None):
        """One pass of stochastic gradient descent over a batch, as in `LocallyLinearSVC.partial_fit`.

        The first batch also determines the mean and the standard deviation by which y is normalized; it should be
        representative of the stream.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional
            Multiplies C for each row.

        Returns
        -------
        self
        """
        return self._fit_batch(X, y, sample_weight)
