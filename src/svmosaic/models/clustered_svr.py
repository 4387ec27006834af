"""Regression in k-means cells: independent cells, and cells pulled towards a global tile."""

from svmosaic.models import _values
from svmosaic.models._cells import CELLS, GROUP_ROUNDS, PIECES, SOLVER, ClusteredCells, KMeansCells
from svmosaic.models._composed import ComposedRegressor

_LOSS = _values.loss_parameters("epsilon_insensitive")
_SHARED = f"""{_LOSS}{SOLVER}{_values.TOL.replace("@TOL@", "1e-4")}{CELLS}{_values.INTERCEPT}{_values.COMMON}{PIECES}"""
_ATTRIBUTES = f"""cluster_centers_ : ndarray of shape (n_cells, n_features)
    coef_ : ndarray of shape (n_cells, n_targets, n_features)
        In units of y.
    intercept_ : ndarray of shape (n_cells, n_targets)
        In units of y.
    {_values.ATTRIBUTES}"""


class KMeansSVR(KMeansCells, ComposedRegressor):
    __doc__ = rf"""k-means, then one linear support vector regression in each cell.

    Cell k gets the minimizer over its own samples of

    .. math:: \tfrac12 \lVert w_k \rVert^2
              + C \sum_{{i \in k}} s_i \, \text{{loss}}(y_i - \langle w_k, (x_i, \beta) \rangle)

    for each target, all on one partition. A cell without rows is left out: its region goes to its neighbors.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of cells. Fewer are used if there are fewer distinct rows.
    C : float, default=1.0
        Weight of the losses.
    coupling : ClusteredTasks or None, default=None
        None: independent cells. Otherwise cells form groups of similar weights: its penalty takes the place of
        :math:`\tfrac12 \lVert W \rVert^2`, and weights and groups are fitted in turn, {GROUP_ROUNDS} times.
    {_SHARED}
    Attributes
    ----------
    {_ATTRIBUTES}
    See Also
    --------
    ClusteredSVR : Cells that are tied to a global tile.
    KMeansSVC : The same for classes.

    Examples
    --------
    >>> import numpy as np
    >>> from svmosaic import KMeansSVR
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(500, 1))
    >>> y = np.sin(X[:, 0])
    >>> model = KMeansSVR(n_clusters=8, C=10.0, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.98)
    True
    """

    def __init__(
        self,
        n_clusters=8,
        *,
        C=1.0,
        coupling=None,
        loss="epsilon_insensitive",
        epsilon=0.1,
        quantile=0.5,
        normalize_y=True,
        solver="auto",
        tol=1e-4,
        max_iter=1000,
        clusterer=None,
        rows_per_cluster=256,
        kmeans_iter=10,
        fit_intercept=True,
        intercept_scaling=1.0,
        n_jobs=None,
        random_state=None,
        verbose=0,
        max_time=None,
        pieces=None,
    ):
        self.n_clusters = n_clusters
        self.C = C
        self.coupling = coupling
        self.loss = loss
        self.epsilon = epsilon
        self.quantile = quantile
        self.normalize_y = normalize_y
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.clusterer = clusterer
        self.rows_per_cluster = rows_per_cluster
        self.kmeans_iter = kmeans_iter
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.max_time = max_time
        self.pieces = pieces


class ClusteredSVR(ClusteredCells, ComposedRegressor):
    __doc__ = rf"""Clustered SVM for regression: one linear model per k-means cell, all pulled towards a global one.

    Minimizes over the global vector w and the cells' vectors (biases included)

    .. math:: \tfrac{{\lambda}}{{2}} \lVert w \rVert^2 + \tfrac12 \sum_k \lVert w_k - w \rVert^2
              + C \sum_k \sum_{{i \in k}} s_i \, \text{{loss}}(y_i - \langle w_k, (x_i, \beta) \rangle)

    with :math:`\lambda` the `global_reg`, for each target, all on one partition. :math:`\lambda \to \infty` gives
    independent cells (`KMeansSVR`); one cell is `LinearSVR` with C multiplied by :math:`(1 + \lambda) / \lambda`. A
    cell with few rows or none follows the global vector.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of cells. Fewer are used if there are fewer distinct rows.
    C : float, default=1.0
        Weight of the losses.
    global_reg : float, default=1.0
        The :math:`\lambda` above: the larger, the more independent the cells.
    {_SHARED}
    Attributes
    ----------
    global_coef_ : ndarray of shape (n_targets, n_features)
        The global vector, in units of the normalized y.
    global_intercept_ : ndarray of shape (n_targets,)
    {_ATTRIBUTES}
    References
    ----------
    Q. Gu and J. Han, Clustered Support Vector Machines, AISTATS 2013 (for classification).

    See Also
    --------
    KMeansSVR : Cells that know nothing of each other.
    ClusteredSVC : The same for classes.

    Examples
    --------
    >>> import numpy as np
    >>> from svmosaic import ClusteredSVR
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(500, 1))
    >>> y = np.sin(X[:, 0])
    >>> model = ClusteredSVR(n_clusters=8, C=10.0, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.98)
    True
    """

    def __init__(
        self,
        n_clusters=8,
        *,
        C=1.0,
        global_reg=1.0,
        loss="epsilon_insensitive",
        epsilon=0.1,
        quantile=0.5,
        normalize_y=True,
        solver="auto",
        tol=1e-4,
        max_iter=1000,
        clusterer=None,
        rows_per_cluster=256,
        kmeans_iter=10,
        fit_intercept=True,
        intercept_scaling=1.0,
        n_jobs=None,
        random_state=None,
        verbose=0,
        max_time=None,
        pieces=None,
    ):
        self.n_clusters = n_clusters
        self.C = C
        self.global_reg = global_reg
        self.loss = loss
        self.epsilon = epsilon
        self.quantile = quantile
        self.normalize_y = normalize_y
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.clusterer = clusterer
        self.rows_per_cluster = rows_per_cluster
        self.kmeans_iter = kmeans_iter
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.max_time = max_time
        self.pieces = pieces
