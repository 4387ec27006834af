"""Clustered SVM (Gu and Han, AISTATS 2013), and its baseline of independent cells."""

from svmosaic.estimators._cells import ClusteredCells, KMeansCells
from svmosaic.estimators._composed import ComposedClassifier
from svmosaic.estimators._parameters import Positive, estimator


@estimator
class KMeansSVC(KMeansCells, ComposedClassifier):
    r"""k-means, then one linear SVM in each cell.

    Cell k gets the minimizer over its own samples of

    .. math:: \tfrac12 \lVert w_k \rVert^2
              + C \sum_{i \in k} s_i \, \text{loss}(y_i \langle w_k, (x_i, \beta) \rangle)

    (one-vs-rest for more than two classes, all on the same partition). This is the papers' baseline: the cells are
    independent. A cell without rows is left out: its region goes to its neighbors.

    See Also
    --------
    ClusteredSVC : Cells that are tied to a global SVM.
    KMeansSVR : The same for regression.

    Examples
    --------
    >>> from svmosaic import KMeansSVC
    >>> from svmosaic.datasets import make_xor
    >>> X, y = make_xor(random_state=0)
    >>> model = KMeansSVC(n_clusters=4, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.98)
    True
    """


@estimator
class ClusteredSVC(ClusteredCells, ComposedClassifier):
    r"""Clustered SVM: one linear SVM per k-means cell, all pulled toward a global one.

    Minimizes over the global vector w and the cells' vectors (biases included)

    .. math:: \tfrac{\lambda}{2} \lVert w \rVert^2 + \tfrac12 \sum_k \lVert w_k - w \rVert^2
              + C \sum_k \sum_{i \in k} s_i \, \text{loss}(y_i \langle w_k, (x_i, \beta) \rangle)

    with :math:`\lambda` the `global_reg` (one-vs-rest for more than two classes, all on one partition).
    :math:`\lambda \to \infty` gives independent cells (`KMeansSVC`); one cell is `LinearSVC` with C multiplied by
    :math:`(1 + \lambda) / \lambda`. A cell with few rows, one class or none follows the global vector.

    References
    ----------
    Q. Gu and J. Han, Clustered Support Vector Machines, AISTATS 2013.

    See Also
    --------
    KMeansSVC : Independent cells.
    ClusteredSVR : The same for regression.
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

    tol: Positive = 1e-3
