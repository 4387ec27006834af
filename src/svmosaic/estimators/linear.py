"""The linear SVM: one tile, the baseline of all."""

import numpy as np

from svmosaic.estimators._parameters import Knots, Positive, estimator, parameters, positional
from svmosaic.estimators.base import ComposedClassifier, ComposedRegressor
from svmosaic.gates import SingleCell
from svmosaic.model.heads import head_of


@parameters
class _SingleTile:
    """One tile, for a `ComposedModel`.

    Parameters
    ----------
    pieces : int, sequence of arrays or None, default=None
        Gives each feature a piecewise-linear curve instead of a slope. An integer is the maximum number of knots per
        feature, which are placed at quantiles and at frequent values; 8 to 32 is typical. A sequence contains the
        increasing knots of each feature; an empty array, or None, keeps that feature linear. Features with two values
        stay linear, and no feature needs to be scaled. See `curves_`.
    """

    C: Positive = positional(1.0)
    pieces: Knots | None = None

    @property
    def coef_(self):
        return head_of(self).slopes(self.mosaic_.coef)[0]

    @property
    def intercept_(self):
        return head_of(self).values(self.mosaic_.intercept)[0]

    def _gate(self, data, rng):
        return SingleCell()


@estimator
class LinearSVC(_SingleTile, ComposedClassifier):
    r"""Linear support vector classifier with a certificate.

    For two classes, it minimizes over w (intercept included)

    .. math:: \tfrac12 \lVert w \rVert^2 + C \sum_i s_i \, \text{loss}(y_i \langle w, (x_i, \beta) \rangle)

    with the loss max(0, 1 - m) or its square, the sample weights s (1 if not given) and :math:`\beta` the
    `intercept_scaling`. The intercept is penalized like the other weights; a larger :math:`\beta` penalizes it less.
    Several classes are handled one-vs-rest. The objective is the same as in scikit-learn's `LinearSVC`.

    Attributes
    ----------
    coef_ : ndarray of shape (1 or n_classes, n_features)
    intercept_ : ndarray of shape (1 or n_classes,)

    See Also
    --------
    LinearSVR : The same for regression.
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


@estimator
class LinearSVR(_SingleTile, ComposedRegressor):
    r"""Linear support vector regression with a certificate.

    It minimizes over w (intercept included)

    .. math:: \tfrac12 \lVert w \rVert^2 + C \sum_i s_i \, \text{loss}(y_i - \langle w, (x_i, \beta) \rangle)

    with the sample weights s (1 if not given) and :math:`\beta` the `intercept_scaling`, for each target. The intercept
    is penalized like the other weights; it refers to the normalized y, whose mean is zero. With ``normalize_y=False``,
    the objective is the same as in scikit-learn's `LinearSVR`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        In units of y: ``predict(X)`` is ``X @ coef_.T + intercept_`` without `pieces`.
    intercept_ : float or ndarray of shape (n_targets,)

    See Also
    --------
    LinearSVC : The same for classification.
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

    @property
    def coef_(self):
        coef = super().coef_
        return coef[0] if np.ndim(self.head_.center) == 0 else coef

    @property
    def intercept_(self):
        intercept = super().intercept_
        return float(intercept[0]) if np.ndim(self.head_.center) == 0 else intercept
