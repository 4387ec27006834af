"""Regression in k-means cells: independent cells, and cells pulled toward a global tile."""

from svmosaic.estimators._cells import ClusteredCells, KMeansCells
from svmosaic.estimators._composed import ComposedRegressor
from svmosaic.estimators._parameters import estimator


@estimator
class KMeansSVR(KMeansCells, ComposedRegressor):
    r"""k-means, then one linear support vector regression in each cell.

    Cell k gets the minimizer over its own samples of

    .. math:: \tfrac12 \lVert w_k \rVert^2
              + C \sum_{i \in k} s_i \, \text{loss}(y_i - \langle w_k, (x_i, \beta) \rangle)

    for each target, all on one partition. A cell without rows is left out: its region goes to its neighbors.

    See Also
    --------
    ClusteredSVR : Cells that are tied to a global tile.
    KMeansSVC : The same for classification.

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


@estimator
class ClusteredSVR(ClusteredCells, ComposedRegressor):
    r"""Clustered SVM for regression: one linear model per k-means cell, all pulled toward a global one.

    Minimizes over the global vector w and the cells' vectors (biases included)

    .. math:: \tfrac{\lambda}{2} \lVert w \rVert^2 + \tfrac12 \sum_k \lVert w_k - w \rVert^2
              + C \sum_k \sum_{i \in k} s_i \, \text{loss}(y_i - \langle w_k, (x_i, \beta) \rangle)

    with :math:`\lambda` the `global_reg`, for each target, all on one partition. :math:`\lambda \to \infty` gives
    independent cells (`KMeansSVR`); one cell is `LinearSVR` with C multiplied by :math:`(1 + \lambda) / \lambda`. A
    cell with few rows or none follows the global vector.

    References
    ----------
    Q. Gu and J. Han, Clustered Support Vector Machines, AISTATS 2013 (for classification).

    See Also
    --------
    KMeansSVR : Independent cells.
    ClusteredSVC : The same for classification.

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
