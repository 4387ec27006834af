"""Clustered SVM (Gu and Han, AISTATS 2013), and its baseline of independent k-means cells."""

from functools import partial
from typing import Any, ClassVar

import numpy as np

from svmosaic.couplings import ClusteredTasks, Coupling
from svmosaic.estimators._parameters import Count, Knots, Positive, estimator, parameters, positional
from svmosaic.estimators.base import ComposedClassifier, ComposedRegressor
from svmosaic.gates import DistanceGate
from svmosaic.model.heads import head_of
from svmosaic.rows import split_bias

# How often weights and groups are fitted in turn where cells form groups: a few rounds settle the groups.
GROUP_ROUNDS = 5


@parameters
class CellsMixin:
    """k-means cells with one tile each, for a `ComposedModel`; how they are tied is up to the subclass.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of cells. Fewer are used if there are fewer distinct rows.
    clusterer : None, estimator or array of shape (n, n_features), default=None
        None: k-means. A fitted clusterer: its `cluster_centers_`. An unfitted clusterer: a clone of it is fitted, and
        its `cluster_centers_` or the means of its `labels_` are the centers. An array: these centers.
    pieces : int, sequence of arrays or None, default=None
        A curve per feature and cell instead of a slope, as in `LinearSVC`; the cells do not change.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_cells, n_features)
    tile_coef_ : ndarray of shape (n_cells, n_outputs, n_features)
        For regressors, in units of y.
    intercept_ : ndarray of shape (n_cells, n_outputs)
        For regressors, in units of y.
    """

    n_clusters: Count = positional(8)
    clusterer: Any = None
    pieces: Knots | None = None

    _keeps_empty_cells: ClassVar = False

    @property
    def tile_coef_(self):
        return head_of(self).slopes(self.mosaic_.coef)

    @property
    def intercept_(self):
        return head_of(self).values(self.mosaic_.intercept)

    @property
    def cluster_centers_(self):
        gate = self.mosaic_.gate
        return getattr(gate, "inner", gate).centers  # inside another if the columns are ranked first

    def _gate(self, data, rng):
        source = "kmeans" if self.clusterer is None else self.clusterer
        gate = DistanceGate(data.place(self.n_clusters, source=source, rng=rng, name="clusterer", n_jobs=self.n_jobs))
        if self._keeps_empty_cells:
            return gate
        used = data.used(gate, self.n_jobs)
        return gate if used.all() else DistanceGate(gate.centers[used])


@parameters
class KMeansCells(CellsMixin):
    r"""Cells that know nothing of each other or, with a `coupling`, form groups of similar weights.

    Parameters
    ----------
    coupling : ClusteredTasks or None, default=None
        None: independent cells. Otherwise, cells form groups of similar weights: the penalty of the coupling replaces
        :math:`\tfrac12 \lVert W \rVert^2`, and weights and groups are fitted alternately, five times.
    """

    coupling: ClusteredTasks | None = None

    def _check_parameters(self):
        super()._check_parameters()
        if self.coupling is not None and not hasattr(self.coupling, "start"):
            raise ValueError(f"coupling must be None or a ClusteredTasks, got {self.coupling!r}")

    def _n_tasks(self, target):
        return target.n_outputs * (1 if self.coupling is None else GROUP_ROUNDS)

    @property
    def _solving(self):
        return None if self.coupling is None else partial(_solve_in_groups, self.coupling)


def _solve_in_groups(tasks, data, coupling, options, progress, rng, start=None):
    """Weights and groups of tiles in turn, in the place of `Data.solve`."""
    following = tasks.start(coupling.n_tiles)
    for _ in range(GROUP_ROUNDS):
        solved = data.solve(following, options, progress, rng, start)
        weights = np.concatenate([following.tiles(w) for w in solved[1]], axis=1)
        following = tasks.fit(weights, following)
    return solved


@parameters
class ClusteredCells(CellsMixin):
    r"""Cells that are pulled toward a global tile.

    Parameters
    ----------
    global_reg : float, default=1.0
        The :math:`\lambda` of the objective: larger values make the cells more independent.

    Attributes
    ----------
    global_coef_ : ndarray of shape (n_outputs, n_features)
        The global weights; for regressors, in units of the normalized y.
    global_intercept_ : ndarray of shape (n_outputs,)
    """

    global_reg: Positive = 1.0

    _keeps_empty_cells = True

    def _coupling(self, n_tiles):
        return Coupling.to_global(n_tiles, self.global_reg)

    def _attributes(self, head):
        common, bias, global_reg = super()._attributes(head), self._options().bias, self.global_reg

        def attributes(mosaic, coupling, weights):
            coef, intercept = split_bias(np.stack([w[-1] for w in weights]) / np.sqrt(global_reg), bias)
            return {**common(mosaic, coupling, weights), "global_coef_": coef, "global_intercept_": intercept}

        return attributes


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
