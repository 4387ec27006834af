"""Regression with regions that are rules: tiles in the leaves of shallow trees, tied to one global tile."""

from svmosaic.models import _values
from svmosaic.models._composed import ComposedRegressor
from svmosaic.models._trees import TreesMixin


class TreeSVR(TreesMixin, ComposedRegressor):
    __doc__ = rf"""A global tile, and a tile in each leaf of one or several shallow regression trees.

    .. math:: f(x) = \langle w, \phi(x) \rangle
              + \frac{{1}}{{\sqrt M}} \sum_m \langle v_{{m, \text{{leaf}}_m(x)}}, (1, x) \rangle

    The trees are grown first, as scikit-learn grows them; then all tiles minimize together, for each target,

    .. math:: \tfrac{{\lambda}}{{2}} \lVert w \rVert^2 + \tfrac12 \sum_{{m,l}} \lVert v_{{ml}} \rVert^2
              + C \sum_i s_i \, \text{{loss}}(y_i - f(x_i)) ,

    one convex problem with a certificate. :math:`\phi` are the `pieces`, so that the global tile is an additive model;
    the leaves add what depends on several columns at once. With one tree, a region is a rule that can be read: see
    `rules_` and `export_text`.

    Parameters
    ----------
    n_trees : int, default=32
        1 gives the model that can be read. A single tree is grown on all rows, several on bootstrap samples of them.
    max_leaves : int, default=32
        Leaves per tree at most. 1 leaves the global tile alone.
    tiles : {{"linear", "constant"}}, default="linear"
        What a leaf adds: a linear function of the columns, or a number. Numbers are easier to read, faster, and often
        enough if most columns are categories.
    global_reg : float, default=1.0
        The :math:`\lambda` of the objective: the larger, the more the leaves count.
    pieces : int, sequence of arrays or None, default=16
        Knots per column of the curves of the global tile; see `LinearSVC`. None: the global tile is linear.
    C : float, default=0.1
        Weight of the losses.
    {_values.loss_parameters("squared_epsilon_insensitive")}min_rows_per_leaf : int, default=20
        Rows that a leaf must hold when a tree is grown. Small leaves overfit.
    growth : {{"forest", "extra", "boosted"}}, default="forest"
        How trees are grown: on bootstrap samples, as a random forest does; on all rows with random thresholds, which
        suits columns of noisy numbers; or one after the other, each for what those before leave over. Boosted trees
        are grown for each target, `n_trees` of them together.
    trees : None, fitted tree or forest of scikit-learn, or sequence of fitted trees, default=None
        Trees to use instead of growing some. A model that is cloned, as by a search, needs them in a `FrozenEstimator`.
    solver : {{"auto", "dual"}}, default="auto"
        Dual coordinate descent.
    {_values.TOL.replace("@TOL@", "1e-3")}max_iter : int, default=1000
        Largest number of epochs.
    {_values.INTERCEPT}{_values.COMMON}
    Attributes
    ----------
    global_coef_ : ndarray of shape (n_targets, n_features that the tiles see)
        In units of y.
    global_intercept_ : ndarray of shape (n_targets,)
        In units of y, with the mean of y: the prediction for a row to which nothing else adds.
    rules_ : Table
        One line per leaf: tree, tile, rule, rows, mean and spread of y, mean absolute error, and the number that it
        adds.
    {_values.ATTRIBUTES}
    See Also
    --------
    TreeSVC : The same for classes.
    ClusteredSVR : Regions by distance instead of rules.

    Examples
    --------
    >>> import numpy as np
    >>> from svmosaic import TreeSVR
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(500, 2))
    >>> y = np.where(X[:, 0] > 0, X[:, 1], -X[:, 1])
    >>> model = TreeSVR(n_trees=1, max_leaves=4, tiles="linear", C=1.0, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    _regression = True

    def __init__(
        self,
        n_trees=32,
        *,
        max_leaves=32,
        tiles="linear",
        global_reg=1.0,
        pieces=16,
        C=0.1,
        loss="squared_epsilon_insensitive",
        epsilon=0.1,
        quantile=0.5,
        normalize_y=True,
        min_rows_per_leaf=20,
        growth="forest",
        trees=None,
        solver="auto",
        tol=1e-3,
        max_iter=1000,
        fit_intercept=True,
        intercept_scaling=1.0,
        n_jobs=None,
        random_state=None,
        verbose=0,
        max_time=None,
    ):
        self.n_trees = n_trees
        self.max_leaves = max_leaves
        self.tiles = tiles
        self.global_reg = global_reg
        self.pieces = pieces
        self.C = C
        self.loss = loss
        self.epsilon = epsilon
        self.quantile = quantile
        self.normalize_y = normalize_y
        self.min_rows_per_leaf = min_rows_per_leaf
        self.growth = growth
        self.trees = trees
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.max_time = max_time
