"""Regions that are rules: tiles in the leaves of shallow trees, tied to one global tile."""

from svmosaic.models._composed import ComposedClassifier
from svmosaic.models._trees import TreesMixin


class TreeSVC(TreesMixin, ComposedClassifier):
    r"""A global tile, and a tile in each leaf of one or several shallow trees.

    .. math:: f(x) = \langle w, \phi(x) \rangle
              + \frac{1}{\sqrt M} \sum_m \langle v_{m, \text{leaf}_m(x)}, (1, x) \rangle

    The trees are grown first, as scikit-learn grows them; then all tiles minimize together, for each output,

    .. math:: \tfrac{\lambda}{2} \lVert w \rVert^2 + \tfrac12 \sum_{m,l} \lVert v_{ml} \rVert^2
              + C \sum_i s_i \, \text{loss}(y_i f(x_i)) ,

    one convex problem with a certificate. :math:`\phi` are the `pieces`, so that the global tile is an additive model;
    the leaves add what depends on several columns at once. With one tree, a region is a rule that can be read: see
    `rules_` and `export_text`.

    Parameters
    ----------
    n_trees : int, default=32
        1 gives the model that can be read. A single tree is grown on all rows, several on bootstrap samples of them.
    max_leaves : int, default=32
        Leaves per tree at most. 1 leaves the global tile alone.
    tiles : {"linear", "constant"}, default="linear"
        What a leaf adds: a linear function of the columns, or a number. Numbers are easier to read, faster, and often
        enough if most columns are categories.
    global_reg : float, default=1.0
        The :math:`\lambda` of the objective: the larger, the more the leaves count; very large values leave the leaves
        alone.
    pieces : int, sequence of arrays or None, default=16
        Knots per column of the curves of the global tile; see `LinearSVC`. None: the global tile is linear.
    C : float, default=0.1
        Weight of the losses.
    loss : {"hinge", "squared_hinge"}, default="squared_hinge"
    min_rows_per_leaf : int, default=20
        Rows that a leaf must hold when a tree is grown. Small leaves overfit.
    growth : {"forest", "extra", "boosted"}, default="forest"
        How trees are grown: on bootstrap samples, as a random forest does; on all rows with random thresholds, which
        suits columns of noisy numbers; or one after the other, each for what those before leave over. Boosted trees
        are grown for each class if there are more than two, `n_trees` of them together.
    trees : None, fitted tree or forest of scikit-learn, or sequence of fitted trees, default=None
        Trees to use instead of growing some. A model that is cloned, as by a search, needs them in a `FrozenEstimator`.
    solver : {"auto", "dual"}, default="auto"
        Dual coordinate descent.
    tol : float, default=1e-3
        Stop when the duality gap is below `tol` times the objective at zero, C times the sum of sample weights.
    max_iter : int, default=1000
        Largest number of epochs.
    fit_intercept : bool, default=True
    intercept_scaling : float, default=1.0
        The constant appended to each row for the biases, which are penalized like the other weights.
    class_weight : dict, "balanced" or None, default=None
        Multiplies C for each class.
    calibration : {"temperature", "sigmoid", "isotonic"} or None, default=None
        How `predict_proba` turns scores into probabilities, fitted to scores of rows held out in five folds with the
        trees kept; see `LinearSVC`. None: no `predict_proba`.
    n_jobs : int or None, default=None
        Threads, over trees and classes. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        For the bootstrap samples, the columns that a forest tries, and the order of the coordinates.
    verbose : int, default=0
        1 prints the objective and the gap of each output.
    max_time : float or None, default=None
        Seconds after which the solver stops with the best weights so far, and a warning that reports their gap. No
        more trees are grown after half of them.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    mosaic_ : Mosaic
        The fitted form: tile 0 is the global one, then come the leaves, tree by tree from left to right.
    global_coef_ : ndarray of shape (1 or n_classes, n_features that the tiles see)
    global_intercept_ : ndarray of shape (1 or n_classes,)
    rules_ : Table
        One line per leaf: tree, tile, rule, rows, shares of the classes, accuracy, and the number that it adds.
    calibration_ : Temperature, Sigmoid, Isotonic or None
    regions_ : Table
        Rows, classes, accuracy and strongest features of each tile, on the training data.
    objective_, dual_gap_ : ndarray of shape (1 or n_classes,)
        The certificate: no weights have an objective lower by more than the gap.
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray, if X had names

    See Also
    --------
    TreeSVR : The same for values.
    ClusteredSVC : Regions by distance instead of rules.
    svmosaic.interpretation.describe_regions : Rules for the regions of any model.

    Examples
    --------
    >>> from svmosaic import TreeSVC
    >>> from svmosaic.datasets import make_xor
    >>> X, y = make_xor(random_state=0)
    >>> model = TreeSVC(n_trees=1, max_leaves=4, tiles="linear", random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    def __init__(
        self,
        n_trees=32,
        *,
        max_leaves=32,
        tiles="linear",
        global_reg=1.0,
        pieces=16,
        C=0.1,
        loss="squared_hinge",
        min_rows_per_leaf=20,
        growth="forest",
        trees=None,
        solver="auto",
        tol=1e-3,
        max_iter=1000,
        fit_intercept=True,
        intercept_scaling=1.0,
        class_weight=None,
        calibration=None,
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
        self.min_rows_per_leaf = min_rows_per_leaf
        self.growth = growth
        self.trees = trees
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.calibration = calibration
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.max_time = max_time
