"""Cells of k-means as the regions of tiles: independent, in groups, or tied to a global tile."""

from functools import partial
from typing import Any, ClassVar

import numpy as np

from svmosaic.couplings import ClusteredTasks, Coupling
from svmosaic.estimators._composed_fit import Solved, solve_outputs
from svmosaic.estimators._parameters import Count, Positive, parameters, positional
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
    rows_per_cluster : int or None, default=256
        Size of the sample for k-means, in rows per cell; None for all rows.
    kmeans_iter : int, default=10
        Number of Lloyd steps of k-means.
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
    rows_per_cluster: Count | None = 256
    kmeans_iter: Count = 10
    pieces: Any = None

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

    def _fit_gate(self, rows, rng):
        centers = rows.place(
            self.n_clusters, source="kmeans" if self.clusterer is None else self.clusterer,
            rows_per_center=self.rows_per_cluster, max_iter=self.kmeans_iter, rng=rng, name="clusterer",
            n_jobs=self.n_jobs,
        )  # fmt: skip
        gate = DistanceGate(centers)
        if self._keeps_empty_cells:
            return gate
        used = rows.used(gate, self.n_jobs)
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

    def _n_solves(self):
        return 1 if self.coupling is None else GROUP_ROUNDS

    def _solving(self):
        return solve_outputs if self.coupling is None else partial(_solve_in_groups, self.coupling)


def _solve_in_groups(tasks, rows, coupling, options, progress, rng, start=None) -> Solved:
    """Weights and groups of tiles in turn, in the place of `solve_outputs`."""
    following = tasks.start(coupling.n_tiles)
    for _ in range(GROUP_ROUNDS):
        solved = solve_outputs(rows, following, options, progress, rng, start)
        weights = np.concatenate([following.tiles(w) for w in solved.weights], axis=1)
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

    def _couple(self, n_tiles):
        return Coupling.to_global(n_tiles, self.global_reg)

    def _attributes(self, head):
        common, bias, global_reg = super()._attributes(head), self._options().bias, self.global_reg

        def attributes(mosaic, coupling, weights):
            coef, intercept = split_bias(np.stack([w[-1] for w in weights]) / np.sqrt(global_reg), bias)
            return {**common(mosaic, coupling, weights), "global_coef_": coef, "global_intercept_": intercept}

        return attributes
