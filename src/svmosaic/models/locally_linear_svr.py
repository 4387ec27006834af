"""Locally linear support vector regression: the local codes of LL-SVM (Ladicky and Torr, ICML 2011), another loss."""

from svmosaic.models import _values
from svmosaic.models._anchors import LocallyLinearMixin
from svmosaic.models._composed import ComposedRegressor
from svmosaic.models._partial_fit import RegressorStreamMixin


class LocallyLinearSVR(RegressorStreamMixin, LocallyLinearMixin, ComposedRegressor):
    __doc__ = rf"""Locally linear support vector regression: a linear model that varies smoothly between anchors.

    With local codes :math:`\gamma(x)` over the anchors nearest to x, which sum to one, the model is

    .. math:: f(x) = \sum_v \gamma_v(x) (\langle w_v, \Phi(x) \rangle + b_v)

    and its tiles minimize, for each target on the same codes,

    .. math:: \tfrac12 \sum_v \lVert (w_v, b_v / \beta) \rVert^2 + C \sum_i s_i \, \text{{loss}}(y_i - f(x_i)) .

    :math:`\Phi` is the `feature_map`, the identity if not given, and :math:`\beta` the `intercept_scaling`. Standardize
    the features first: codes are by Euclidean distance.

    Parameters
    ----------
    n_anchors : int, default=100
        Number of anchors, and so of tiles.
    n_neighbors : int, default=16
        Anchors that share a row.
    coding : {{"softmax", "inverse", "llc", "lle", "soft"}}, default="softmax"
        How the nearest anchors share a row, as in `LocallyLinearSVC`.
    code_scale : float or None, default=None
        Sharpness of the softmax codes, or ridge of "llc" and "lle"; None: found from the data.
    anchors : {{"kmeans", "random"}}, array or clusterer, default="kmeans"
        "kmeans": k-means on a sample of the rows. "random": rows. An array or anything fitted with `cluster_centers_`:
        these anchors. Another clusterer: a clone of it is fitted.
    C : float, default=10.0
        Weight of the losses.
    {_values.loss_parameters("squared_epsilon_insensitive")}solver : {{"auto", "dual", "newton", "sgd"}}, default="auto"
        As in `LocallyLinearSVC`.
    {_values.TOL.replace("@TOL@", "1e-3")}max_iter : int, default=1000
        Largest number of epochs, or of Newton's steps.
    feature_map : transformer or None, default=None
        Finite-dimensional kernel map in front of the tiles, such as `sklearn.kernel_approximation.Nystroem`.
    code_space : {{"input", "features"}}, default="input"
        Where distances to anchors are measured if there is a feature map.
    rows_per_anchor : int or None, default=256
        k-means looks at a sample of this many rows per anchor; None for all rows.
    kmeans_iter : int, default=10
        Lloyd steps of k-means.
    {_values.INTERCEPT}{_values.COMMON}penalize_intercept : bool, default=True
        False leaves the biases out of the penalty; stochastic descent only.
    shuffle : bool, default=True
        For `fit` with stochastic descent: a new random order in every pass, or the rows as they come.
    average : bool, default=True
        Stochastic descent returns the average of its iterates, the t-th weighing t; False for the last iterate.
    t0 : float or None, default=None
        Offset of the step count of stochastic descent. None: found by trying first steps of several sizes.
    stream_length : int or None, default=None
        For `partial_fit`: the rows of the whole stream. None: the rows of `fit`, or of the first batch.
    pieces : int, sequence of arrays or None, default=None
        A curve per feature and anchor instead of a slope, as in `LinearSVC`. Not together with `feature_map`.

    Attributes
    ----------
    anchors_ : ndarray of shape (n_tiles, n_features)
    coef_ : ndarray of shape (n_tiles, n_targets, n_features)
        In units of y.
    intercept_ : ndarray of shape (n_tiles, n_targets)
        In units of y.
    code_scale_ : float
        The sharpness used.
    n_samples_seen_ : int
        Rows of `fit`, and of all batches since.
    {_values.ATTRIBUTES}
    References
    ----------
    L. Ladicky and P. H. S. Torr, Locally Linear Support Vector Machines, ICML 2011 (for classification).

    See Also
    --------
    LocallyLinearSVC : The same for classes.
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

    def __init__(
        self,
        n_anchors=100,
        *,
        n_neighbors=16,
        coding="softmax",
        code_scale=None,
        anchors="kmeans",
        C=10.0,
        loss="squared_epsilon_insensitive",
        epsilon=0.1,
        quantile=0.5,
        normalize_y=True,
        solver="auto",
        tol=1e-3,
        max_iter=1000,
        feature_map=None,
        code_space="input",
        rows_per_anchor=256,
        kmeans_iter=10,
        fit_intercept=True,
        intercept_scaling=1.0,
        n_jobs=None,
        random_state=None,
        verbose=0,
        max_time=None,
        penalize_intercept=True,
        shuffle=True,
        average=True,
        t0=None,
        stream_length=None,
        pieces=None,
    ):
        self.n_anchors = n_anchors
        self.n_neighbors = n_neighbors
        self.coding = coding
        self.code_scale = code_scale
        self.anchors = anchors
        self.C = C
        self.loss = loss
        self.epsilon = epsilon
        self.quantile = quantile
        self.normalize_y = normalize_y
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.feature_map = feature_map
        self.code_space = code_space
        self.rows_per_anchor = rows_per_anchor
        self.kmeans_iter = kmeans_iter
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.max_time = max_time
        self.penalize_intercept = penalize_intercept
        self.shuffle = shuffle
        self.average = average
        self.t0 = t0
        self.stream_length = stream_length
        self.pieces = pieces

    def _check_parameters(self):
        super()._check_parameters()
        if isinstance(self.anchors, str) and self.anchors == "class":
            raise ValueError("anchors='class' needs classes: pass 'kmeans' or 'random', an array or a clusterer")
