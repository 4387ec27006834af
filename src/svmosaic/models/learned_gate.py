"""Gates that learn: regions placed by the gradient of the loss, in a learnt low-dimensional metric."""

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state

from svmosaic._validation import Target, check_real, validate_training
from svmosaic.couplings import Coupling
from svmosaic.gates import DistanceGate, ProjectedGate, place_centers
from svmosaic.models._base import BaseMosaicClassifier
from svmosaic.models.local_coding import code_gate
from svmosaic.mosaic import Mosaic
from svmosaic.solvers import Rows
from svmosaic.solvers.learner import GateLearner, one_cycle

# Rows that the starting projection is computed from.
PROJECTION_SAMPLE = 20_000


class LearnedGateSVC(BaseMosaicClassifier):
    r"""Mosaic of linear SVMs whose regions are learnt with the tiles.

    .. math:: f_c(x) = \sum_{j \in N(x)} g_j(x) (\langle w_{jc}, x \rangle + b_{jc}) , \quad
              g = \text{softmax}_{j \in N(x)}(-\tau \lVert P x - v_j \rVert^2)

    with N(x) the `n_neighbors` anchors nearest to P x. Projection P, anchors v, sharpness :math:`\tau` and tiles are
    learnt together by minibatches of the squared hinge loss
    :math:`\sum_i s_i \sum_c \max(0, 1 - y_{ic} f_c(x_i))^2`, one against the rest, with Adam, a one-cycle schedule and
    weight decay on the tiles. Start: principal components, k-means in them, zero tiles. The problem is not convex, and
    there is no certificate for the gate; with `polish`, the tiles are then solved for with the gate frozen, to the
    certificate of `LocallyLinearSVC`, and the better of the two on a held-out part is kept.

    Standardise the features first. Computations are in float32.

    Parameters
    ----------
    n_tiles : int, default=100
        Number of anchors, and so of tiles.
    n_components : int or None, default=16
        Dimension of the projection, at most the number of features; None measures distances in x itself.
    n_neighbors : int, default=8
        Anchors that share a row.
    weight_decay : float, default=0.01
        Share of itself that a tile loses a step, times the learning rate.
    C : float, default=10.0
        Weight of the losses when the tiles are polished.
    max_iter : int, default=40
        Epochs.
    learning_rate : float, default=0.01
        Peak of the schedule, for tiles; the gate learns at 0.3 of it.
    batch_size : int, default=512
        Rows a step; smaller where there are few rows, so that an epoch has at least 16 steps.
    early_stopping : bool, default=False
        Score a held-out part after each epoch, stop after `n_iter_no_change` epochs without a better score, and keep
        the best.
    n_iter_no_change : int, default=10
    validation_fraction : float, default=0.1
        Size of the held-out part for `early_stopping` and `polish`.
    polish : bool, default=False
        Solve for the tiles with the gate frozen, and keep what is better on the held-out part. Worth its time where
        features are many and rows few.
    tol : float, default=1e-3
        Duality gap of the polished tiles, as a share of the objective at zero.
    warm_start : bool, default=False
        Start `fit` from the last fit's gate and tiles, where their shapes still fit.
    class_weight : dict, "balanced" or None, default=None
    n_jobs : int or None, default=None
        Threads. The result does not depend on it.
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
        1 prints the mean loss of each epoch.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    mosaic_ : Mosaic
        The fitted form.
    loss_curve_ : list of float
        Mean loss met during each epoch.
    validation_scores_ : list of float
        Accuracy on the held-out part after each epoch, with `early_stopping`.
    polished_ : bool
        Whether the tiles are the polished ones.
    n_iter_ : int
        Epochs.
    n_features_in_ : int
    feature_names_in_ : ndarray, where X had names

    Examples
    --------
    >>> from svmosaic import LearnedGateSVC
    >>> from svmosaic.datasets import make_xor
    >>> X, y = make_xor(random_state=0)
    >>> model = LearnedGateSVC(n_tiles=8, n_neighbors=2, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.98)
    True
    """

    def __init__(
        self,
        n_tiles=100,
        *,
        n_components=16,
        n_neighbors=8,
        weight_decay=0.01,
        C=10.0,
        max_iter=40,
        learning_rate=0.01,
        batch_size=512,
        early_stopping=False,
        n_iter_no_change=10,
        validation_fraction=0.1,
        polish=False,
        tol=1e-3,
        warm_start=False,
        class_weight=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.n_tiles = n_tiles
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.weight_decay = weight_decay
        self.C = C
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.early_stopping = early_stopping
        self.n_iter_no_change = n_iter_no_change
        self.validation_fraction = validation_fraction
        self.polish = polish
        self.tol = tol
        self.warm_start = warm_start
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # What the shared solver asks of an estimator when the tiles are polished.
    loss = "squared_hinge"
    solver = "auto"
    fit_intercept = True
    intercept_scaling = 1.0

    def fit(self, X, y, sample_weight=None):
        """Learn the gate and the tiles.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Weighs the loss of each row.

        Returns
        -------
        self
        """
        self._check_parameters()
        X, target = validate_training(self, X, y, sample_weight, self.class_weight)
        rng = check_random_state(self.random_state)
        X = X.astype(np.float32, copy=False)
        if not np.isfinite(X.data if sparse.issparse(X) else X).all():
            raise ValueError("X has values too large for float32; scale the features")
        parts = self._hold_out(X, target, rng) if self.early_stopping or self.polish else (X, target, None, None)
        learner = self._start(parts[0], target.n_outputs, rng)
        self._learn(learner, *parts, rng)
        self.classes_ = target.classes
        self.mosaic_ = _mosaic(learner)
        self._learner = learner
        self.polished_ = self.polish and self._polish(X, target, *parts, rng)
        return self

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """One pass over a batch of a stream, at a constant learning rate.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like, needed at the first call
            All classes that may ever come.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        self._check_parameters()
        first = not hasattr(self, "classes_")
        if first and classes is None:
            raise ValueError("classes must be given at the first call of partial_fit")
        known = np.unique(classes) if first else self.classes_
        if not first and classes is not None and not np.array_equal(known, np.unique(classes)):
            raise ValueError(f"classes={classes!r} differs from the classes of the first call, {known!r}")
        X, target = validate_training(
            self, X, y, sample_weight, self.class_weight, classes=known, reset=first
        )
        rng = check_random_state(self.random_state)
        X = X.astype(np.float32, copy=False)
        if first:
            self._learner = self._start(X, target.n_outputs, rng)
            self.classes_ = known
        batch = self._batch(X.shape[0])
        order = rng.permutation(X.shape[0]).astype(np.int32)
        rates = np.full(-(-len(order) // batch), float(self.learning_rate))
        self._epoch(self._learner, Rows(X), target, order, batch, rates)
        self.mosaic_ = _mosaic(self._learner)
        self.polished_ = False
        self.n_iter_ = 1
        return self

    def _check_parameters(self):
        check_real("n_tiles", self.n_tiles, at_least=1, integer=True)
        check_real("n_components", self.n_components, at_least=1, integer=True, optional=True)
        check_real("n_neighbors", self.n_neighbors, at_least=1, integer=True)
        check_real("weight_decay", self.weight_decay, at_least=0)
        check_real("C", self.C, above=0)
        check_real("max_iter", self.max_iter, at_least=1, integer=True)
        check_real("learning_rate", self.learning_rate, above=0)
        check_real("batch_size", self.batch_size, at_least=1, integer=True)
        check_real("n_iter_no_change", self.n_iter_no_change, at_least=1, integer=True)
        check_real("validation_fraction", self.validation_fraction, above=0, at_most=0.9)
        check_real("tol", self.tol, above=0)

    def _hold_out(self, X, target, rng):
        n_rows = X.shape[0]
        counts = np.bincount(target.label)
        stratify = target.label if counts[counts > 0].min() >= 2 and n_rows * self.validation_fraction >= len(counts) else None
        train, held = train_test_split(
            np.arange(n_rows), test_size=self.validation_fraction, random_state=rng, stratify=stratify
        )
        return X[train], _take(target, train), X[held], _take(target, held)

    def _start(self, X, n_outputs, rng) -> GateLearner:
        """The start: principal components, k-means in them, zero tiles; or the last fit."""
        if self.warm_start and hasattr(self, "_learner"):
            last = self._learner
            if last.tiles[0].shape[1] == n_outputs * (X.shape[1] + 1) and last.n_outputs == n_outputs:
                return last
        projection = self._projection(X, rng)
        z = X if projection is None else np.ascontiguousarray(X @ projection.T.astype(np.float32))
        anchors = place_centers(z, self.n_tiles, rng=rng)
        gate = code_gate(z, anchors, "softmax", self.n_neighbors, None, rng)
        return GateLearner(
            anchors, gate.scale, projection, n_features=X.shape[1], n_outputs=n_outputs, width=gate.width,
            decay=self.weight_decay,
        )  # fmt: skip

    def _projection(self, X, rng):
        if self.n_components is None:
            return None
        sample = X
        if X.shape[0] > PROJECTION_SAMPLE:
            sample = X[np.sort(rng.choice(X.shape[0], PROJECTION_SAMPLE, replace=False))]
        n_components = min(self.n_components, *sample.shape)
        if sparse.issparse(X):
            if n_components >= X.shape[1]:
                return np.eye(X.shape[1])
            return TruncatedSVD(n_components, random_state=rng).fit(sample).components_
        return PCA(n_components, random_state=rng).fit(sample).components_

    def _batch(self, n_rows):
        return max(1, min(self.batch_size, n_rows // 16))

    def _learn(self, learner, X, target, X_held, held, rng):
        rows, n_rows = Rows(X), X.shape[0]
        batch = self._batch(n_rows)
        n_batches = -(-n_rows // batch)
        rates = one_cycle(self.learning_rate, n_batches * self.max_iter)
        self.loss_curve_, self.validation_scores_ = [], []
        best = (-np.inf, None)
        for epoch in range(self.max_iter):
            order = rng.permutation(n_rows).astype(np.int32)
            here = rates[epoch * n_batches : (epoch + 1) * n_batches]
            self.loss_curve_.append(self._epoch(learner, rows, target, order, batch, here) / target.weight.sum())
            if not np.isfinite(self.loss_curve_[-1]):
                raise ValueError(
                    f"the loss diverged in epoch {epoch + 1} (learning_rate={self.learning_rate}); standardise the "
                    "features or lower learning_rate"
                )
            if self.verbose:
                print(f"[LearnedGateSVC] epoch {epoch + 1}/{self.max_iter}: mean loss {self.loss_curve_[-1]:.6g}")
            if self.early_stopping:
                score = _accuracy(_mosaic(learner), X_held, held, self.n_jobs)
                self.validation_scores_.append(score)
                if score > best[0]:
                    best = (score, learner.copy())
                recent = self.validation_scores_[-self.n_iter_no_change :]
                if len(self.validation_scores_) > self.n_iter_no_change and max(recent) < best[0]:
                    break
        self.n_iter_ = len(self.loss_curve_)
        if best[1] is not None:
            learner.restore(best[1])

    def _epoch(self, learner, rows, target, order, batch, rates):
        return learner.epoch(
            rows, target.label.astype(np.int32), target.weight, order, batch, rates,
            n_threads=effective_n_jobs(self.n_jobs),
        )  # fmt: skip

    def _polish(self, X, target, X_train, train, X_held, held, rng) -> bool:
        """Solve for the tiles with the gate frozen; keep them, refitted to all rows, if the held-out part agrees."""
        gate, learnt = self.mosaic_.gate, self.mosaic_
        coupling = Coupling.independent(gate.n_tiles)
        trained = self._solved(X_train, train, gate, coupling, rng)
        if _accuracy(trained, X_held, held, self.n_jobs) <= _accuracy(learnt, X_held, held, self.n_jobs):
            return False
        self.mosaic_ = self._solved(X, target, gate, coupling, rng)
        return True

    def _solved(self, X, target, gate, coupling, rng):
        epochs, self.max_iter_ = self.max_iter, 1000
        solutions, bias = self._solve(X, target, gate.code(X, self.n_jobs), coupling, rng)
        tiles = np.stack([s.weights for s in solutions], axis=1)
        return Mosaic(gate, tiles[:, :, :-1], bias * tiles[:, :, -1])


def _take(target, rows) -> Target:
    return Target(target.classes, target.label[rows], target.weight[rows])


def _accuracy(mosaic, X, target, n_jobs) -> float:
    scores = mosaic.decision_function(X, n_jobs)
    predicted = (scores[:, 0] > 0) if scores.shape[1] == 1 else scores.argmax(axis=1)
    return float(np.average(predicted == target.label, weights=target.weight))


def _mosaic(learner) -> Mosaic:
    """The fitted form of what has been learnt so far."""
    tiles = learner.tile_weights()
    gate = DistanceGate(learner.anchors[0].astype(np.float64), "softmax", learner.width, learner.tau)
    if learner.projection is not None:
        gate = ProjectedGate(learner.projection[0][:, :-1].astype(np.float64), gate)
    return Mosaic(gate, tiles[:, :, :-1], tiles[:, :, -1])
