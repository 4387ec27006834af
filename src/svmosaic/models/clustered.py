"""Clustered SVM (Gu and Han, AISTATS 2013), and its baseline of independent cells."""

from svmosaic.models._cells import CELLS, GROUP_ROUNDS, PIECES, SOLVER, ClusteredCells, KMeansCells
from svmosaic.models._composed import ComposedClassifier
from svmosaic.models._probabilities import CALIBRATION_PARAMETER

_PARAMETERS = """n_clusters : int, default=8
        Number of cells. Fewer are used where there are fewer distinct rows.
    C : float, default=1.0
        Weight of the losses.
    """

_SHARED_PARAMETERS = f"""loss : {{"hinge", "squared_hinge"}}, default="hinge"
    {SOLVER}tol : float, default=1e-4
        Stop when the duality gap is below `tol` times the objective at zero, C times the sum of sample weights.
    {CELLS}fit_intercept : bool, default=True
    intercept_scaling : float, default=1.0
        The constant appended to each row for the bias, which is penalized like the other weights.
    class_weight : dict, "balanced" or None, default=None
        Multiplies C for each class.
    {CALIBRATION_PARAMETER}n_jobs : int or None, default=None
        Threads, over classes and cells. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        For k-means and the order of the coordinates.
    verbose : int, default=0
        1 prints the objective, the gap and the live tiles (those whose weights are not all zero) of each output, on the
        way and at the end.
    max_time : float or None, default=None
        Seconds after which the solver stops with the best weights so far, and a warning that reports their gap. Outputs
        (and independent tiles) share the time that is left when they start; k-means is not cut short.
    {PIECES}"""


class KMeansSVC(KMeansCells, ComposedClassifier):
    __doc__ = rf"""k-means, then one linear SVM in each cell.

    Cell k gets the minimizer over its own samples of

    .. math:: \tfrac12 \lVert w_k \rVert^2
              + C \sum_{{i \in k}} s_i \, \text{{loss}}(y_i \langle w_k, (x_i, \beta) \rangle)

    (one against the rest for more than two classes, all on one partition). The papers' baseline: cells know nothing
    of each other. A cell without rows is left out: its region goes to its neighbors.

    Parameters
    ----------
    {_PARAMETERS}coupling : ClusteredTasks or None, default=None
        None: independent cells. Otherwise cells form groups of similar weights: its penalty takes the place of
        :math:`\tfrac12 \lVert W \rVert^2`, and weights and groups are fitted in turn, {GROUP_ROUNDS} times.
    {_SHARED_PARAMETERS}
    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    cluster_centers_ : ndarray of shape (n_cells, n_features)
    coef_ : ndarray of shape (n_cells, 1 or n_classes, n_features)
    intercept_ : ndarray of shape (n_cells, 1 or n_classes)
    mosaic_ : Mosaic
        The fitted form.
    calibration_ : Temperature, Sigmoid, Isotonic or None
        From scores to probabilities.
    regions_ : Table
        Rows, classes, accuracy and strongest features of each tile, on the training data.
    objective_ : ndarray of shape (1 or n_classes,)
    dual_gap_ : ndarray of shape (1 or n_classes,)
        Sum of the cells' duality gaps.
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray, where X had names

    See Also
    --------
    ClusteredSVC : Cells that are tied to a global SVM.
    KMeansSVR : The same for values.

    Examples
    --------
    >>> from svmosaic import KMeansSVC
    >>> from svmosaic.datasets import make_xor
    >>> X, y = make_xor(random_state=0)
    >>> model = KMeansSVC(n_clusters=4, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.98)
    True
    """

    def __init__(
        self,
        n_clusters=8,
        *,
        C=1.0,
        coupling=None,
        loss="hinge",
        solver="auto",
        tol=1e-4,
        max_iter=1000,
        clusterer=None,
        rows_per_cluster=256,
        kmeans_iter=10,
        fit_intercept=True,
        intercept_scaling=1.0,
        class_weight=None,
        calibration=None,
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
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.clusterer = clusterer
        self.rows_per_cluster = rows_per_cluster
        self.kmeans_iter = kmeans_iter
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.calibration = calibration
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.max_time = max_time
        self.pieces = pieces


class ClusteredSVC(ClusteredCells, ComposedClassifier):
    __doc__ = rf"""Clustered SVM: one linear SVM per k-means cell, all pulled towards a global one.

    Minimizes over the global vector w and the cells' vectors (biases included)

    .. math:: \tfrac{{\lambda}}{{2}} \lVert w \rVert^2 + \tfrac12 \sum_k \lVert w_k - w \rVert^2
              + C \sum_k \sum_{{i \in k}} s_i \, \text{{loss}}(y_i \langle w_k, (x_i, \beta) \rangle)

    with :math:`\lambda` the `global_reg` (one against the rest for more than two classes, all on one partition).
    :math:`\lambda \to \infty` gives independent cells (`KMeansSVC`); one cell is `LinearSVC` with C multiplied by
    :math:`(1 + \lambda) / \lambda`. A cell with few rows, one class or none follows the global vector.

    Parameters
    ----------
    {_PARAMETERS}global_reg : float, default=1.0
        The paper's lambda: the larger, the more independent the cells.
    {_SHARED_PARAMETERS}
    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    cluster_centers_ : ndarray of shape (n_cells, n_features)
    coef_ : ndarray of shape (n_cells, 1 or n_classes, n_features)
    intercept_ : ndarray of shape (n_cells, 1 or n_classes)
    global_coef_ : ndarray of shape (1 or n_classes, n_features)
    global_intercept_ : ndarray of shape (1 or n_classes,)
    mosaic_ : Mosaic
        The fitted form.
    calibration_ : Temperature, Sigmoid, Isotonic or None
        From scores to probabilities.
    regions_ : Table
        Rows, classes, accuracy and strongest features of each tile, on the training data.
    objective_ : ndarray of shape (1 or n_classes,)
    dual_gap_ : ndarray of shape (1 or n_classes,)
        The certificate: no weights have an objective lower by more than this.
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray, where X had names

    References
    ----------
    Q. Gu and J. Han, Clustered Support Vector Machines, AISTATS 2013.

    See Also
    --------
    KMeansSVC : Cells that know nothing of each other.
    ClusteredSVR : The same for values.
    LocallyLinearSVC : Soft regions instead of cells.

    Examples
    --------
    >>> from svmosaic import ClusteredSVC
    >>> from svmosaic.datasets import make_xor
    >>> X, y = make_xor(random_state=0)
    >>> model = ClusteredSVC(n_clusters=4, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.98)
    True
    """

    def __init__(
        self,
        n_clusters=8,
        *,
        C=1.0,
        global_reg=1.0,
        loss="hinge",
        solver="auto",
        tol=1e-4,
        max_iter=1000,
        clusterer=None,
        rows_per_cluster=256,
        kmeans_iter=10,
        fit_intercept=True,
        intercept_scaling=1.0,
        class_weight=None,
        calibration=None,
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
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.clusterer = clusterer
        self.rows_per_cluster = rows_per_cluster
        self.kmeans_iter = kmeans_iter
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.calibration = calibration
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.max_time = max_time
        self.pieces = pieces
