"""The linear SVM on local coordinates (Yu, Zhang and Gong, NIPS 2009), LL-SVM without its linear part."""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from svmosaic.couplings import Coupling
from svmosaic.models._anchors import AnchorsMixin
from svmosaic.models._composed import ComposedClassifier
from svmosaic.models._composed_fit import solve_outputs
from svmosaic.models._probabilities import CALIBRATION_PARAMETER


class LocalCodingSVC(AnchorsMixin, ComposedClassifier):
    __doc__ = rf"""Linear SVM on local coordinates: a constant per anchor, blended by the codes.

    With local codes :math:`\gamma(x)` over the anchors nearest to x, which sum to one, the classifier is

    .. math:: H(x) = \langle b, \gamma(x) \rangle

    and b minimizes (one against the rest for more than two classes, all on the same codes)

    .. math:: \tfrac12 \lVert b / \beta \rVert^2 + C \sum_i s_i \, \text{{loss}}(y_i H(x_i)) .

    It is `LocallyLinearSVC` with the weights held at zero (equation 15 of the LL-SVM paper), and needs more anchors for
    the same accuracy: its scores vary only as the codes do. There is no other intercept, as the codes sum to one.

    Parameters
    ----------
    n_anchors : int, default=100
        Number of anchors.
    n_neighbors : int, default=8
        Anchors that share a row.
    coding : {{"softmax", "inverse", "llc", "lle", "soft"}}, default="softmax"
        How the nearest anchors share a row, as in `LocallyLinearSVC`. "soft": softmax over all anchors.
    code_scale : float or None, default=None
        Sharpness of the softmax codes, or ridge of "llc" and "lle"; None: found from the data.
    anchors : {{"kmeans", "class", "random"}}, array or clusterer, default="kmeans"
        As in `LocallyLinearSVC`.
    C : float, default=10.0
        Weight of the losses.
    loss : {{"hinge", "squared_hinge"}}, default="hinge"
    solver : {{"auto", "dual", "sgd"}}, default="auto"
        "dual" (and "auto"): dual coordinate descent. "sgd": averaged stochastic gradient descent, which has no
        certificate: `dual_gap_` is nan.
    tol : float, default=1e-3
        Stop when the duality gap is below `tol` times the objective at zero, C times the sum of sample weights.
    max_iter : int, default=1000
        Largest number of epochs.
    rows_per_anchor : int or None, default=256
        k-means looks at a sample of this many rows per anchor; None for all rows.
    kmeans_iter : int, default=10
        Lloyd steps of k-means.
    intercept_scaling : float, default=1.0
        The :math:`\beta` above: the coordinates are multiplied by it.
    class_weight : dict, "balanced" or None, default=None
        Multiplies C for each class.
    {CALIBRATION_PARAMETER}n_jobs : int or None, default=None
        Threads, over classes in `fit` and over rows in coding and prediction. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        For the anchors and the order of the coordinates.
    verbose : int, default=0
        1 prints the objective, the gap and the live tiles (those whose weights are not all zero) of each output, on the
        way and at the end.
    max_time : float or None, default=None
        Seconds after which the solver stops with the best weights so far, and a warning that reports their gap. Outputs
        (and independent tiles) share the time that is left when they start; k-means is not cut short.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    anchors_ : ndarray of shape (n_tiles, n_features)
    intercept_ : ndarray of shape (n_tiles, 1 or n_classes)
        The b above.
    code_scale_ : float
    calibration_ : Temperature, Sigmoid, Isotonic or None
    mosaic_ : Mosaic
        The fitted form, with tiles of weight zero.
    objective_ : ndarray of shape (1 or n_classes,)
    dual_gap_ : ndarray of shape (1 or n_classes,)
        The certificate: no weights have an objective lower by more than this.
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray, where X had names

    References
    ----------
    K. Yu, T. Zhang and Y. Gong, Nonlinear Learning using Local Coordinate Coding, NIPS 2009.

    See Also
    --------
    LocallyLinearSVC : Codes that blend tiles.

    Examples
    --------
    >>> from svmosaic import LocalCodingSVC
    >>> from svmosaic.datasets import make_xor
    >>> X, y = make_xor(random_state=0)
    >>> model = LocalCodingSVC(n_anchors=32, n_neighbors=4, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.97)
    True
    """

    _solvers = ("auto", "dual", "sgd")
    fit_intercept = True  # the intercepts are all there is

    def __init__(
        self,
        n_anchors=100,
        *,
        n_neighbors=8,
        coding="softmax",
        code_scale=None,
        anchors="kmeans",
        C=10.0,
        loss="hinge",
        solver="auto",
        tol=1e-3,
        max_iter=1000,
        rows_per_anchor=256,
        kmeans_iter=10,
        intercept_scaling=1.0,
        class_weight=None,
        calibration=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
        max_time=None,
    ):
        self.n_anchors = n_anchors
        self.n_neighbors = n_neighbors
        self.coding = coding
        self.code_scale = code_scale
        self.anchors = anchors
        self.C = C
        self.loss = loss
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.rows_per_anchor = rows_per_anchor
        self.kmeans_iter = kmeans_iter
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.calibration = calibration
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.max_time = max_time

    @property
    def feature_importances_(self):
        """Not there: the tiles are constants, and features count through the distances to the anchors only."""
        raise AttributeError(f"{type(self).__name__} has no feature_importances_: its tiles have no weights")

    def _solving(self):
        return _solve_intercepts


@dataclass(frozen=True)
class _InterceptsOnly(Coupling):
    """Tiles of no weights but their intercepts.

    Attributes
    ----------
    n_features : int
        Of the rows that the tiles are scored with.
    """

    n_features: int

    def split(self, blocks, n_sighted=None):
        """No weights, the intercepts, and no tile that has weights."""
        return np.zeros((0, self.n_features)), self.tiles(blocks)[:, -1], np.zeros(0, dtype=np.int32)


def _solve_intercepts(rows, coupling, options, progress, rng, start=None):
    """In the place of `solve_outputs`: rows without features, but for the bias, which a row's codes share out."""
    n_features = rows.tile_rows.shape[1]
    empty = sparse.csr_array((rows.n_rows, 0), dtype=rows.tile_rows.dtype)
    coupling = _InterceptsOnly(coupling.own, coupling.shared, n_features)
    return solve_outputs(replace(rows, tile_rows=empty), coupling, options, progress, rng, start)
