"""The linear SVM: one tile, the baseline of all."""

import numpy as np

from svmosaic.gates import SingleCell
from svmosaic.heads import head_of
from svmosaic.models import _values
from svmosaic.models._composed import ComposedClassifier, ComposedRegressor
from svmosaic.solvers import SOLVERS


class _SingleTile:
    """One tile, for a `ComposedModel`."""

    _solvers: tuple[str, ...] = (*SOLVERS, "sgd")

    @property
    def coef_(self):
        return head_of(self).slopes(self.mosaic_.coef)[0]

    @property
    def intercept_(self):
        return head_of(self).values(self.mosaic_.intercept)[0]

    def _fit_gate(self, rows, rng):
        return SingleCell()


class LinearSVC(_SingleTile, ComposedClassifier):
    r"""Linear support vector classifier with a certificate.

    For two classes, minimizes over w (bias included)

    .. math:: \tfrac12 \lVert w \rVert^2 + C \sum_i s_i \, \text{loss}(y_i \langle w, (x_i, \beta) \rangle)

    with the loss max(0, 1 - m) or its square, the sample weights s (1 if not given) and :math:`\beta` the
    `intercept_scaling`. The bias is penalized like the other weights; a larger :math:`\beta` penalizes it less. More
    classes are taken one against the rest. The objective is that of scikit-learn's `LinearSVC`.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses against the margin.
    loss : {"hinge", "squared_hinge"}, default="hinge"
    solver : {"auto", "dual", "newton", "sgd"}, default="auto"
        "dual": coordinate descent, best for many features or sparse rows. "newton": second order, best where rows far
        outnumber features and the only one to converge on badly scaled data. "auto" chooses by cost. "sgd": averaged
        stochastic gradient descent, which has no certificate: `dual_gap_` is nan.
    tol : float, default=1e-4
        Stop when the duality gap is below `tol` times the objective at zero, C times the sum of sample weights.
    max_iter : int, default=1000
        Largest number of epochs (dual) or steps (newton).
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
        Threads, over classes or, for two classes, inside the second-order solver. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Orders the coordinates of descent.
    verbose : int, default=0
        1 prints the objective, the gap and the live tiles (those whose weights are not all zero) of each output, on the
        way and at the end.
    max_time : float or None, default=None
        Seconds after which the solver stops with the best weights so far, and a warning that reports their gap. Outputs
        (and independent tiles) share the time that is left when they start; k-means is not cut short.
    pieces : int, sequence of arrays or None, default=None
        Gives each feature a piecewise-linear curve instead of a slope. An integer is the largest number of knots per
        feature, which are placed at quantiles and at frequent values; 8 to 32 is usual. A sequence has the knots of
        each feature, increasing; an empty one, or None, leaves that feature straight. Features with two values stay
        straight, and no feature needs to be scaled. See `curves_`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1 or n_classes, n_features)
    intercept_ : ndarray of shape (1 or n_classes,)
    mosaic_ : Mosaic
        The fitted form, with one tile.
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

    See Also
    --------
    LinearSVR : The same for values.
    ClusteredSVC : One SVM per cell.
    LocallyLinearSVC : Tiles blended between anchors.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from svmosaic import LinearSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), LinearSVC(random_state=0)).fit(X, y)
    >>> bool(model.score(X, y) > 0.98)
    True
    """

    def __init__(
        self,
        C=1.0,
        *,
        loss="hinge",
        solver="auto",
        tol=1e-4,
        max_iter=1000,
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
        self.C = C
        self.loss = loss
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
        self.pieces = pieces


class LinearSVR(_SingleTile, ComposedRegressor):
    __doc__ = rf"""Linear support vector regression with a certificate.

    Minimizes over w (bias included)

    .. math:: \tfrac12 \lVert w \rVert^2 + C \sum_i s_i \, \text{{loss}}(y_i - \langle w, (x_i, \beta) \rangle)

    with the sample weights s (1 if not given) and :math:`\beta` the `intercept_scaling`, for each target. The bias is
    penalized like the other weights; it is that of the normalized y, whose mean is zero. With ``normalize_y=False``,
    the objective is that of scikit-learn's `LinearSVR`.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses against the size of the weights.
    {_values.loss_parameters("epsilon_insensitive")}solver : {{"auto", "dual", "newton", "sgd"}}, default="auto"
        "dual": coordinate descent, best for many features or sparse rows. "newton": second order, best if rows far
        outnumber features and the only one to converge on badly scaled data. "auto" chooses by cost. "sgd": averaged
        stochastic gradient descent, which has no certificate: `dual_gap_` is nan.
    {_values.TOL.replace("@TOL@", "1e-4")}max_iter : int, default=1000
        Largest number of epochs (dual) or steps (newton).
    {_values.INTERCEPT}{_values.COMMON}pieces : int, sequence of arrays or None, default=None
        Gives each feature a piecewise-linear curve instead of a slope, as in `LinearSVC`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        In units of y: ``predict(X)`` is ``X @ coef_.T + intercept_`` without `pieces`.
    intercept_ : float or ndarray of shape (n_targets,)
    {_values.ATTRIBUTES}
    See Also
    --------
    LinearSVC : The same for classes.
    LocallyLinearSVR : Tiles blended between anchors.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from svmosaic import LinearSVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), LinearSVR(random_state=0)).fit(X, y)
    >>> bool(model.score(X, y) > 0.5)
    True
    """

    def __init__(
        self,
        C=1.0,
        *,
        loss="epsilon_insensitive",
        epsilon=0.1,
        quantile=0.5,
        normalize_y=True,
        solver="auto",
        tol=1e-4,
        max_iter=1000,
        fit_intercept=True,
        intercept_scaling=1.0,
        n_jobs=None,
        random_state=None,
        verbose=0,
        max_time=None,
        pieces=None,
    ):
        self.C = C
        self.loss = loss
        self.epsilon = epsilon
        self.quantile = quantile
        self.normalize_y = normalize_y
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.max_time = max_time
        self.pieces = pieces

    @property
    def coef_(self):
        coef = super().coef_
        return coef[0] if np.ndim(self.head_.center) == 0 else coef

    @property
    def intercept_(self):
        intercept = super().intercept_
        return float(intercept[0]) if np.ndim(self.head_.center) == 0 else intercept
