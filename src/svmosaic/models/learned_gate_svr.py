"""Regression whose gates learn."""

import numpy as np
from sklearn.model_selection import train_test_split

from svmosaic.losses import LOSSES, REGRESSION_LOSSES, parameters_of
from svmosaic.models import _values
from svmosaic.models._all_or_nothing import all_or_nothing
from svmosaic.models._base import BaseMosaicRegressor
from svmosaic.models._learning import LearningMixin

# The losses of the learner, and the same of the solvers.
SOLVED = {
    "squared_error": "squared_epsilon_insensitive",
    **{name: name for name in REGRESSION_LOSSES},
}


class LearnedGateSVR(_values.ValuesMixin, LearningMixin, BaseMosaicRegressor):
    __doc__ = rf"""Mosaic of linear regressions whose regions are learned with the tiles.

    .. math:: f(x) = \frac{{1}}{{\sqrt{{M}}}} \sum_m \sum_{{j \in N_m(x)}} g_{{mj}}(x) (\langle w_j, x \rangle + b_j) ,
              \quad g_m = \text{{softmax}}_{{j \in N_m(x)}}(-\tau_m \lVert P_m x - v_j \rVert^2)

    with :math:`N_m(x)` the `n_neighbors` anchors of gate m nearest to :math:`P_m x`. Projections P, anchors v,
    sharpness :math:`\tau` and tiles are learned together by minibatches of the loss, as in `LearnedGateSVC`; several
    targets share the gate. With `polish`, the tiles are then solved for with the gate frozen; they minimize

    .. math:: \tfrac12 \sum_j \lVert (w_j, b_j) \rVert^2 + C \sum_i s_i \, \text{{loss}}(y_i - f(x_i))

    to a certified gap, and what is better on the held-out part is kept.

    Standardize the features first. Learning is in float32.

    Parameters
    ----------
    n_tiles : int, default=100
        Number of anchors of each gate, and so of its tiles.
    n_gates : int, default=1
        Number of gates. Several small gates are less a matter of the seed than a large one: 8 gates of 16 tiles with 2
        neighbors cost about as much as one of 128 tiles with 16.
    n_components : int or None, default=16
        Dimension of the projection of each gate, at most the number of features; None gives x itself to the gate.
    n_neighbors : int, default=8
        Anchors of each gate that share a row.
    loss : str, default="squared_error"
        With the error r = y - f(x) of a row, "squared_error": r^2; "epsilon_insensitive": max(0, \|r\| - epsilon), and
        "squared_epsilon_insensitive" its square; "quantile": q max(0, r) + (1 - q) max(0, -r) with q the `quantile`,
        and "expectile" the same with squares.
    {_values.VALUES}weight_decay : float, default=0.01
        Share of itself that a tile loses per step, times the learning rate. Raise it, up to 1, if the training rows are
        learned by heart.
    dropout : float, default=0.0
        Share of the features that the tiles do not see, at most 0.9, drawn anew for each row in each step; the gate
        sees all. Another remedy for learning by heart.
    C : float, default=10.0
        Weight of the losses when the tiles are polished.
    learn_gate : bool, default=True
        False keeps projection, anchors and sharpness as they start, and learns the tiles only.
    max_iter : int, default=40
        Epochs.
    learning_rate : float, default=0.03
        Peak of the schedule, for tiles; the gate learns at 0.3 of it.
    batch_size : int or None, default=None
        Rows per step. None takes a 400th of the rows, but at least 32 and at most 1024.
    max_time : float or None, default=None
        Seconds after which learning stops, between two batches, with what has been learned by then and a warning; the
        rate has not fallen yet, so that fewer epochs are the better way to a shorter fit.
    early_stopping : bool or "auto", default="auto"
        Score a held-out part after each epoch, stop after `n_iter_no_change` epochs without a better score, and keep
        the best. "auto" does so if the held-out part has at least 50 rows.
    n_iter_no_change : int, default=10
        Epochs without a better score after which `early_stopping` stops.
    validation_fraction : float, default=0.1
        Size of the part held out from training for `early_stopping` and `polish`.
    refit : bool or "auto", default="auto"
        After early stopping, learn once more from all rows, for the number of epochs that was best. "auto" does so for
        at most 50,000 rows. Never together with `polish`, which needs the held-out part.
    polish : bool, default=False
        Solve for the tiles with the gate frozen, and keep what is better on the held-out part. Worth its time if
        features are many and rows few.
    tol : float, default=1e-3
        Duality gap of the polished tiles, as a share of the objective at zero.
    warm_start : bool, default=False
        Start `fit` from the gate and tiles of the last one; anew if targets, features, loss, `n_tiles`, `n_gates`,
        `n_components` or `n_neighbors` have changed.
    device : {{"cpu", "gpu", "auto"}}, default="cpu"
        Where to learn, and to score 10,000 rows or more. "gpu" needs JAX and an accelerator, and dense rows; "auto" is
        the CPU if there is none. On the CPU results have the same bits whatever `n_jobs`; on an accelerator they are
        reproducible up to the order in which it adds numbers.
    n_jobs : int or None, default=None
        Threads. The result does not depend on it.
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
        1 prints the mean loss of each epoch.
    pieces : int, sequence of arrays or None, default=None
        A curve per feature and tile instead of a slope, as in `LinearSVC`; the gate measures distances in a projection
        of the same features, which starts from the principal components of the standardized columns (``n_components=
        None``: from these columns themselves). Features need not be standardized then. Learned on the CPU only.

    Attributes
    ----------
    head_ : Regress
        The mean and the standard deviation of y, `center` and `scale`, by which scores become values.
    mosaic_ : Mosaic
        The fitted form; its scores are values of the normalized y.
    regions_ : Table
        Rows, mean and spread of y, mean absolute error and strongest features of each tile, on the training data.
    loss_curve_ : list of float
        Mean loss met during each epoch, of the normalized y, dropout included; of the first run, with `refit`.
    validation_scores_ : list of float
        Minus the mean loss on the held-out part after each epoch, with `early_stopping`.
    best_iter_ : int
        Epochs that were best on the held-out part; `n_iter_` without early stopping.
    polish_scores_ : tuple of float
        With `polish`: minus the mean loss on the held-out part of the learned and of the polished tiles.
    polished_ : bool
        Whether the tiles are the polished ones.
    dual_gap_ : ndarray of shape (n_outputs,)
        With `polish`: certified gap of the polished tiles.
    n_iter_ : int
        Epochs, of both runs with `refit`.
    stop_reason_ : str
        "max_iter", "max_time", "early_stopping" or "callback".
    n_features_in_ : int
    feature_names_in_ : ndarray, if X had names

    See Also
    --------
    LearnedGateSVC : The same for classes.
    LocallyLinearSVR : Fixed anchors, and a convex problem.

    Examples
    --------
    >>> import numpy as np
    >>> from svmosaic import LearnedGateSVR
    >>> X = np.random.default_rng(0).uniform(-2, 2, size=(1000, 2))
    >>> y = np.sin(2 * X[:, 0]) * X[:, 1]
    >>> model = LearnedGateSVR(n_tiles=16, n_neighbors=4, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    _losses = tuple(SOLVED)

    def __init__(
        self,
        n_tiles=100,
        *,
        n_gates=1,
        n_components=16,
        n_neighbors=8,
        loss="squared_error",
        epsilon=0.1,
        quantile=0.5,
        normalize_y=True,
        weight_decay=0.01,
        dropout=0.0,
        C=10.0,
        learn_gate=True,
        max_iter=40,
        learning_rate=0.03,
        batch_size=None,
        max_time=None,
        early_stopping="auto",
        n_iter_no_change=10,
        validation_fraction=0.1,
        refit="auto",
        polish=False,
        tol=1e-3,
        warm_start=False,
        device="cpu",
        n_jobs=None,
        random_state=None,
        verbose=0,
        pieces=None,
    ):
        self.n_tiles = n_tiles
        self.n_gates = n_gates
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.loss = loss
        self.epsilon = epsilon
        self.quantile = quantile
        self.normalize_y = normalize_y
        self.weight_decay = weight_decay
        self.dropout = dropout
        self.C = C
        self.learn_gate = learn_gate
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_time = max_time
        self.early_stopping = early_stopping
        self.n_iter_no_change = n_iter_no_change
        self.validation_fraction = validation_fraction
        self.refit = refit
        self.polish = polish
        self.tol = tol
        self.warm_start = warm_start
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.pieces = pieces

    @all_or_nothing
    def partial_fit(self, X, y, sample_weight=None):
        """One pass over a batch of a stream, in minibatches at a constant learning rate.

        The first batch, unless `fit` came before, places the projection and the gate, and finds the mean and the
        standard deviation by which y is normalized. `regions_` is then about the rows of this batch.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional
            Weighs the loss of each row.

        Returns
        -------
        self
        """
        self._check_parameters()
        first = not hasattr(self, "mosaic_")
        X, target = self._validated(X, y, sample_weight, head=None if first else self.head_, reset=first)
        return self._take_batch(X, target, first)

    def _hold_out(self, X, target, n_held_out, rng):
        """Training part and held-out part."""
        parts = train_test_split(np.arange(X.shape[0]), test_size=n_held_out, random_state=rng)
        return [(X[rows], target.take(rows)) for rows in map(np.sort, parts)]

    def _judge(self, scores, target):
        """Minus the mean loss, summed over targets as the learner does."""
        total = 0.0
        loss, parameters = self._polished_loss()
        for c in range(target.n_outputs):
            rows = loss.rows(target.wanted(c), np.asarray(target.weight), **parameters(c))
            total += np.dot(rows.cost, loss.value(rows.sign * scores[rows.index, c], rows.threshold))
        return -float(total / target.weight.sum())

    def _asked_of(self, target):
        return np.shape(target.head.center)

    def _polished_loss(self):
        """The loss of the learner as the solvers know it, and its parameters for an output."""
        given = self._loss_parameters()
        if self.loss == "squared_error":
            given["epsilon"] = 0.0
        return LOSSES[SOLVED[self.loss]], lambda output: parameters_of(given, output)

    def _loss_parameter(self, n_outputs):
        name = "epsilon" if self.loss == "squared_error" else LOSSES[self.loss].parameters[0]
        return [parameters_of(self._loss_parameters(), c)[name] for c in range(n_outputs)]
