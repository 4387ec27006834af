"""Locally Linear SVM (Ladicky and Torr, ICML 2011)."""

from svmosaic._validation import check_choice
from svmosaic.models._anchors import LocallyLinearMixin
from svmosaic.models._composed import ComposedClassifier
from svmosaic.models._crammer_singer import solve_jointly
from svmosaic.models._partial_fit import ClassifierStreamMixin

MULTI_CLASS = ("ovr", "crammer_singer")


class LocallyLinearSVC(ClassifierStreamMixin, LocallyLinearMixin, ComposedClassifier):
    r"""Locally linear SVM: a linear classifier that varies smoothly between anchors.

    With local codes :math:`\gamma(x)` over the anchors nearest to x, which sum to one, the classifier is

    .. math:: H(x) = \sum_v \gamma_v(x) (\langle w_v, \Phi(x) \rangle + b_v)

    and its tiles minimize (one against the rest for more than two classes, all on the same codes)

    .. math:: \tfrac12 \sum_v \lVert (w_v, b_v / \beta) \rVert^2 + C \sum_i s_i \, \text{loss}(y_i H(x_i)) .

    This is the paper's :math:`\tfrac{\lambda}{2}\lVert W\rVert^2 + \tfrac1n \sum_i \text{hinge}` with
    :math:`C = 1 / (\lambda n)`, except that the paper leaves the biases free: :math:`\beta`, the `intercept_scaling`,
    large comes as close as one likes. :math:`\Phi` is the `feature_map`, the identity if not given.

    Standardize the features first (or scale the rows to unit norm, for images and counts): codes are by Euclidean
    distance.

    Parameters
    ----------
    n_anchors : int, default=100
        Number of anchors, and so of tiles.
    n_neighbors : int, default=16
        Anchors that share a row. The paper has 8: half the cost of solving, but less accurate on average.
        The cost of prediction is proportional to `n_anchors` + `n_neighbors` x classes.
    coding : {"softmax", "inverse", "llc", "lle", "soft"}, default="softmax"
        How the nearest anchors share a row. "softmax": exp(-code_scale d^2). "inverse": 1 / d, the paper's choice.
        "llc": locality-constrained linear coding. "lle": reconstruction weights of locally linear embedding. "soft":
        softmax over all anchors.
    code_scale : float or None, default=None
        Sharpness of the softmax codes; None for 4 / (median squared distance to the `n_neighbors`-th anchor). For
        "llc" and "lle" the ridge, as a share of the mean squared distance; None for 1e-4 and 1e-3.
    anchors : {"class", "kmeans", "random"}, array or clusterer, default="class"
        "kmeans": k-means on a sample of the rows. "class": the same within each class. "random": rows. An array or
        anything fitted with `cluster_centers_`: these anchors, which may so come from unlabeled data. Another
        clusterer: a clone of it is fitted.
    C : float, default=10.0
        Weight of the losses.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
    solver : {"auto", "dual", "newton", "sgd"}, default="auto"
        "dual": dual coordinate descent, on one thread per class. "newton": Newton's method on all threads, where the
        features are at most some hundreds. "auto": descent, which is handed to Newton's method if it drags on. "sgd":
        stochastic gradient descent, Algorithm 1 of the paper, with steps :math:`1 / (\lambda (t + t_0))`,
        :math:`\lambda = 1 / (C n)`; it has no certificate.
    tol : float, default=1e-3
        Stop when the duality gap is below `tol` times the objective at zero, C times the sum of sample weights;
        stochastic descent, when five passes together lower the objective by less than that.
    max_iter : int, default=1000
        Largest number of epochs, or of Newton's steps.
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
        One against the rest, or all classes in one problem: the loss of a row is then the largest of
        :math:`[m \ne y_i] + H_m(x_i) - H_{y_i}(x_i)` over the classes m (Crammer and Singer, 2002; hinge and dual
        descent only).
    feature_map : transformer or None, default=None
        Finite-dimensional kernel map in front of the tiles (section 3.2 of the paper), such as
        `sklearn.kernel_approximation.AdditiveChi2Sampler` or `Nystroem`.
    code_space : {"input", "features"}, default="input"
        Where distances to anchors are measured when there is a feature map.
    rows_per_anchor : int or None, default=256
        k-means looks at a sample of this many rows per anchor; None for all rows.
    kmeans_iter : int, default=10
        Lloyd steps of k-means.
    fit_intercept : bool, default=True
    intercept_scaling : float, default=1.0
    class_weight : dict, "balanced" or None, default=None
        Multiplies C for each class.
    calibration : {"temperature", "sigmoid", "isotonic"} or None, default=None
        How `predict_proba` turns scores into probabilities, fitted to scores of rows held out in five folds with the
        gate kept. "temperature": one number, `predict` stays as it is. "sigmoid": Platt's, two numbers per class.
        "isotonic": a step function per class, for large sets. With any, `predict` is the most probable class. None: no
        `predict_proba`.
    n_jobs : int or None, default=None
        Threads, over classes in `fit` and over rows in coding and prediction. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        For the anchors and the order of the coordinates.
    verbose : int, default=0
        1 prints the objective, the gap and the live tiles (those whose weights are not all zero) of each output, on the
        way and at the end.
    max_time : float or None, default=None
        Seconds after which the solver stops with the best weights so far, and a warning that reports their gap. Outputs
        (and independent tiles) share the time that is left when they start; k-means is not cut short.
    penalize_intercept : bool, default=True
        False leaves the biases out of the penalty, as the paper does; stochastic descent only. The steps of the biases
        are multiplied by the square of `intercept_scaling`: a few times 1 lets them reach large values sooner.
    shuffle : bool, default=True
        For `fit` with stochastic descent: a new random order in every pass, or the rows as they come. `partial_fit`
        always takes them as they come.
    average : bool, default=True
        Stochastic descent returns the average of its iterates, the t-th weighing t; False for the last iterate, as in
        the paper.
    t0 : float or None, default=None
        Offset of the step count of stochastic descent. None: found by trying first steps of several sizes on the first
        1000 rows.
    stream_length : int or None, default=None
        For `partial_fit`: the n of :math:`\lambda = 1 / (C n)`. None: the rows of `fit`, or of the first batch.
    pieces : int, sequence of arrays or None, default=None
        A curve per feature and anchor instead of a slope, as in `LinearSVC`; anchors and codes stay as they are without
        it. `partial_fit` takes the knots from the first batch. Not together with `feature_map`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    anchors_ : ndarray of shape (n_tiles, n_features)
    coef_ : ndarray of shape (n_tiles, 1 or n_classes, n_features)
    intercept_ : ndarray of shape (n_tiles, 1 or n_classes)
    code_scale_ : float
        The sharpness used.
    mosaic_ : Mosaic
        The fitted form.
    calibration_ : Temperature, Sigmoid, Isotonic or None
        From scores to probabilities.
    regions_ : Table
        Rows, classes, accuracy and strongest features of each tile, on the training data.
    objective_ : ndarray of shape (1 or n_classes,)
        The objective of each output; of shape (1,) for Crammer-Singer, nan after `partial_fit`.
    dual_gap_ : ndarray of the same shape
        The certificate: no weights have an objective lower by more than this. nan after stochastic descent, which has
        no dual point.
    n_iter_ : int
    n_samples_seen_ : int
        Rows of `fit`, and of all batches since.
    n_features_in_ : int
    feature_names_in_ : ndarray, where X had names

    References
    ----------
    L. Ladicky and P. H. S. Torr, Locally Linear Support Vector Machines, ICML 2011.

    See Also
    --------
    LocallyLinearSVR : The same for values.
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

    def __init__(
        self,
        n_anchors=100,
        *,
        n_neighbors=16,
        coding="softmax",
        code_scale=None,
        anchors="class",
        C=10.0,
        loss="squared_hinge",
        solver="auto",
        tol=1e-3,
        max_iter=1000,
        feature_map=None,
        code_space="input",
        rows_per_anchor=256,
        kmeans_iter=10,
        fit_intercept=True,
        intercept_scaling=1.0,
        class_weight=None,
        calibration=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
        max_time=None,
        multi_class="ovr",
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
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.feature_map = feature_map
        self.code_space = code_space
        self.rows_per_anchor = rows_per_anchor
        self.kmeans_iter = kmeans_iter
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.calibration = calibration
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.max_time = max_time
        self.multi_class = multi_class
        self.penalize_intercept = penalize_intercept
        self.shuffle = shuffle
        self.average = average
        self.t0 = t0
        self.stream_length = stream_length
        self.pieces = pieces

    def _check_parameters(self):
        super()._check_parameters()
        check_choice("multi_class", self.multi_class, MULTI_CLASS)

    def _solving(self):
        return solve_jointly if self.multi_class == "crammer_singer" else super()._solving()
