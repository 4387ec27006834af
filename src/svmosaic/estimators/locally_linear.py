"""Locally Linear SVM (Ladicky and Torr, ICML 2011), for classes and for values, also over batches of a stream."""

from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from svmosaic._validation import check_real
from svmosaic.estimators._anchors import AnchorsMixin
from svmosaic.estimators._parameters import Count, Knots, estimator, parameters
from svmosaic.estimators._progress import all_or_nothing
from svmosaic.estimators.base import ClassLoss, ComposedClassifier, ComposedRegressor, ValueLoss
from svmosaic.estimators.data import Data
from svmosaic.estimators.tiles import mosaic_of
from svmosaic.losses import HINGE
from svmosaic.maps import TransformerMap
from svmosaic.model.heads import contrast, head_of
from svmosaic.solvers import Control, SgdOptions, StochasticDescent, solve_crammer_singer


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
class _LocallyLinear(AnchorsMixin):
    r"""A tile for each anchor, behind a feature map if there is one, and batches; for a `ComposedModel`.

    Parameters
    ----------
    solver : {"auto", "dual", "newton", "sgd"}, default="auto"
        "dual": dual coordinate descent, with one thread per output. "newton": Newton's method on all threads, for up
        to some hundreds of features. "auto": descent, which switches to Newton's method if it takes too long. "sgd":
        stochastic gradient descent, Algorithm 1 of the paper, with steps :math:`1 / (\lambda (t + t_0))`,
        :math:`\lambda = 1 / (C n)`, which stops when five passes together lower the objective by less than `tol`
        allows; it has no certificate.
    feature_map : transformer or None, default=None
        Finite-dimensional kernel map applied before the tiles (section 3.2 of the paper), such as
        `sklearn.kernel_approximation.AdditiveChi2Sampler` or `Nystroem`. Distances to anchors are those of the rows
        themselves.
    pieces : int, sequence of arrays or None, default=None
        A curve per feature and anchor instead of a slope, as in `LinearSVC`; anchors and codes do not change.
        `partial_fit` takes the knots from the first batch. Cannot be combined with `feature_map`.
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
    tile_coef_ : ndarray of shape (n_tiles, n_outputs, n_features)
        For regressors, in units of y.
    n_samples_seen_ : int
        Number of rows of `fit` and of all batches since.
    """

    feature_map: Any = None
    pieces: Knots | None = None
    penalize_intercept: bool = True
    shuffle: bool = True
    average: bool = True
    t0: Annotated[float, partial(check_real, at_least=1)] | None = None
    stream_length: Count | None = None

    @property
    def tile_coef_(self):
        return head_of(self).slopes(self.mosaic_.coef)

    def _check_parameters(self):
        super()._check_parameters()
        if self.pieces is not None and self.feature_map is not None:
            raise ValueError(
                "pieces and feature_map both define the input of the tiles: pass only one; to put a transformer "
                "in front of pieces, use a pipeline"
            )

    def _map(self, data, rng):
        if self.feature_map is None:
            return super()._map(data, rng)
        return TransformerMap(clone(self.feature_map).fit(data.gate_rows), "input")

    def _options(self):
        t0 = None if self.t0 is None else float(self.t0)
        sgd = SgdOptions(bool(self.shuffle), bool(self.average), not self.penalize_intercept, t0)
        return replace(super()._options(), sgd=sgd)

    @property
    def _solving(self):
        if not self.penalize_intercept and self.solver != "sgd":
            raise ValueError(
                f"penalize_intercept=False needs solver='sgd', got {self.solver!r}; "
                "for the dual solver make intercept_scaling large instead"
            )
        return None

    def _remember(self, head, fit, n_rows):
        super()._remember(head, fit, n_rows)
        self.n_samples_seen_, self._stream = n_rows, None

    def _take_batch(self, X, target, first):
        """One pass of stochastic descent over a validated batch, with its state carried from call to call."""
        options = self._options()
        data = Data.of(X, target, None if first else self.mosaic_.feature_map)
        if first:
            rng = check_random_state(self.random_state)
            data.map(self._map(data, rng))
            gate = self._gate(data, rng)
            self.n_samples_seen_, self._stream = getattr(self, "n_samples_seen_", 0), None
        else:
            gate = self.mosaic_.gate
        coupling = self._coupling(gate.n_tiles)
        if self._stream is not None and self._stream[0].last.dtype != data.tile_rows.dtype == np.float64:
            data.tile_rows = data.tile_rows.astype(np.float32)
        data.encode(gate, options)
        problems = data.problems(coupling, options)
        if self._stream is None:  # a descent for each output, from zero or from what `fit` left
            n_sides = problems[0].n_rows // data.n_rows  # rows of the problem per sample
            n_rows = n_sides * (self.stream_length or (data.n_rows if first else self.n_samples_seen_))
            start = np.zeros((target.n_outputs, gate.n_tiles, data.tile_rows.shape[1] + 1), dtype=data.tile_rows.dtype)
            if not first:
                start[:, :, :-1] = self.mosaic_.coef.transpose(1, 0, 2)
                if options.bias:
                    start[:, :, -1] = self.mosaic_.intercept.T / options.bias
            self._stream = [StochasticDescent(n_rows, options.sgd, weights) for weights in start]
        control = Control()
        control.run_all(
            lambda c: self._stream[c].run(problems[c], control=control.for_task((c, None), 0, 1)), len(problems),
            min(effective_n_jobs(self.n_jobs), len(problems)),
        )  # fmt: skip
        weights = [descent.weights for descent in self._stream]
        mosaic = mosaic_of(gate, data.feature_map, coupling, weights, options)
        vars(self).update(self._attributes(target.head)(mosaic, coupling, weights))
        self.objective_ = self.dual_gap_ = np.full(len(weights), np.nan)
        self.n_iter_ = 1
        self.n_samples_seen_ += data.n_rows
        return self


@estimator
class LocallyLinearSVC(_LocallyLinear, ComposedClassifier):
    r"""Locally linear SVM: a linear classifier that varies smoothly between anchors.

    With local codes :math:`\gamma(x)` over the anchors nearest to x, which sum to one, the classifier is

    .. math:: H(x) = \sum_v \gamma_v(x) (\langle w_v, \Phi(x) \rangle + b_v)

    and its tiles minimize (one-vs-rest for more than two classes, all with the same codes)

    .. math:: \tfrac12 \sum_v \lVert (w_v, b_v / \beta) \rVert^2 + C \sum_i s_i \, \text{loss}(y_i H(x_i)) .

    This is the paper's :math:`\tfrac{\lambda}{2}\lVert W\rVert^2 + \tfrac1n \sum_i \text{hinge}` with
    :math:`C = 1 / (\lambda n)`, except that the paper does not penalize the intercepts; a large :math:`\beta`, the
    `intercept_scaling`, approximates this. :math:`\Phi` is the `feature_map`, by default the identity.

    Standardize the features first (or scale the rows to unit norm, for images and counts): codes depend on Euclidean
    distances.

    Parameters
    ----------
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
        One-vs-rest, or all classes in one problem: the loss of a row is then the largest of
        :math:`[m \ne y_i] + H_m(x_i) - H_{y_i}(x_i)` over the classes m (Crammer and Singer, 2002; hinge and dual
        descent only).

    Attributes
    ----------
    objective_ : ndarray of shape (n_outputs,)
        The objective of each output; of shape (1,) for Crammer-Singer, nan after `partial_fit`.

    References
    ----------
    L. Ladicky and P. H. S. Torr, Locally Linear Support Vector Machines, ICML 2011.

    See Also
    --------
    LocallyLinearSVR : The same for regression.
    LearnedGateSVC : Anchors that are learned with the tiles.
    LocalCodingSVC : A linear SVM on the codes alone.

    Examples
    --------
    >>> from svmosaic import LocallyLinearSVC
    >>> from svmosaic.datasets import make_xor
    >>> X, y = make_xor(random_state=0)
    >>> model = LocallyLinearSVC(n_anchors=16, n_neighbors=4, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.98)
    True
    """

    anchors: Any = "class"
    loss: ClassLoss = "squared_hinge"
    multi_class: Literal["ovr", "crammer_singer"] = "ovr"

    @property
    def _solving(self):
        return _solve_jointly if self.multi_class == "crammer_singer" else super()._solving

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


@estimator
class LocallyLinearSVR(_LocallyLinear, ComposedRegressor):
    r"""Locally linear support vector regression: a linear model that varies smoothly between anchors.

    With local codes :math:`\gamma(x)` over the anchors nearest to x, which sum to one, the model is

    .. math:: f(x) = \sum_v \gamma_v(x) (\langle w_v, \Phi(x) \rangle + b_v)

    and its tiles minimize, for each target on the same codes,

    .. math:: \tfrac12 \sum_v \lVert (w_v, b_v / \beta) \rVert^2 + C \sum_i s_i \, \text{loss}(y_i - f(x_i)) .

    :math:`\Phi` is the `feature_map`, by default the identity, and :math:`\beta` the `intercept_scaling`. Standardize
    the features first: codes depend on Euclidean distances.

    References
    ----------
    L. Ladicky and P. H. S. Torr, Locally Linear Support Vector Machines, ICML 2011 (for classification).

    See Also
    --------
    LocallyLinearSVC : The same for classification.
    LearnedGateSVR : Anchors that are learned with the tiles.

    Examples
    --------
    >>> import numpy as np
    >>> from svmosaic import LocallyLinearSVR
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(500, 2))
    >>> y = np.sin(X[:, 0]) * X[:, 1]
    >>> model = LocallyLinearSVR(n_anchors=32, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.98)
    True
    """

    loss: ValueLoss = "squared_epsilon_insensitive"

    @available_if(_can_stream)
    @all_or_nothing
    def partial_fit(self, X, y, sample_weight=None):
        """One pass of stochastic gradient descent over a batch, as in `LocallyLinearSVC.partial_fit`.

        The first batch also determines the mean and the standard deviation by which y is normalized; it should be
        representative of the stream. As long as y has one value, as in a batch of one row, this is the prediction, and
        the next batch is the first again.

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


def _solve_jointly(data, coupling, options, progress, rng, start=None):
    """The Crammer-Singer problem of rows in memory, in the place of `Data.solve`; it takes no start.

    For two classes the output is the difference of the two.
    """
    if options.loss is not HINGE:
        raise ValueError(f"{progress.name}: multi_class='crammer_singer' needs loss='hinge', got {options.loss.name!r}")
    if options.solver not in ("auto", "dual") or (options.sgd is not None and options.sgd.free_bias):
        raise ValueError(f"{progress.name}: multi_class='crammer_singer' needs solver='dual' and a penalized intercept")
    problem, target = data.problems(coupling, options)[0], data.target
    control = progress.control(1, coupling, problem.shape, problem.separable, target.n_outputs)
    place = (0, None)
    solution = solve_crammer_singer(
        problem, target.label, len(target.classes), tol=options.tol, max_iter=options.max_iter,
        seed=rng.randint(2**31 - 1), n_threads=effective_n_jobs(options.n_jobs), control=control.for_task(place, 0, 1),
    )  # fmt: skip
    if control.finished is not None:
        control.finished(place, solution)
    progress.report([solution], coupling, options.max_iter, control)
    return coupling, list(contrast(solution.weights, axis=0)), [solution]
