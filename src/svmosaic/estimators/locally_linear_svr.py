"""Locally linear support vector regression: the local codes of LL-SVM (Ladicky and Torr, ICML 2011), another loss."""

from svmosaic.estimators._anchors import LocallyLinearMixin
from svmosaic.estimators._composed import ComposedRegressor
from svmosaic.estimators._parameters import estimator
from svmosaic.estimators._partial_fit import RegressorStreamMixin


@estimator
class LocallyLinearSVR(LocallyLinearMixin, RegressorStreamMixin, ComposedRegressor):
    r"""Locally linear support vector regression: a linear model that varies smoothly between anchors.

    With local codes :math:`\gamma(x)` over the anchors nearest to x, which sum to one, the model is

    .. math:: f(x) = \sum_v \gamma_v(x) (\langle w_v, \Phi(x) \rangle + b_v)

    and its tiles minimize, for each target on the same codes,

    .. math:: \tfrac12 \sum_v \lVert (w_v, b_v / \beta) \rVert^2 + C \sum_i s_i \, \text{loss}(y_i - f(x_i)) .

    :math:`\Phi` is the `feature_map`, by default the identity, and :math:`\beta` the `intercept_scaling`. Standardize
    the features first: codes depend on Euclidean distances.

    References
    ----------
    L. Ladicky and P. H. S. Torr, Locally Linear Support Vector Machines, ICML 2011 (for classification).

    See Also
    --------
    LocallyLinearSVC : The same for classification.
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

    loss: str = "squared_epsilon_insensitive"
