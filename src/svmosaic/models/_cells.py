"""Cells of k-means as the regions of tiles: independent, in groups, or tied to a global tile."""

from functools import partial

import numpy as np

from svmosaic._validation import check_real
from svmosaic.couplings import Coupling
from svmosaic.gates import DistanceGate
from svmosaic.heads import head_of
from svmosaic.models._composed_fit import Solved, solve_outputs
from svmosaic.rows import split_bias
from svmosaic.solvers import SOLVERS

# How often weights and groups are fitted in turn where cells form groups: a few rounds settle the groups.
GROUP_ROUNDS = 5
# For the docstrings of classifiers and regressors.
SOLVER = """solver : {"auto", "dual", "newton", "sgd"}, default="auto"
        "dual": coordinate descent. "newton": second order, best if rows far outnumber features and the only one to
        converge on badly scaled data. "auto" chooses by cost. "sgd": averaged stochastic gradient descent, which has no
        certificate: `dual_gap_` is nan.
    """
CELLS = """max_iter : int, default=1000
        Largest number of epochs (dual) or steps (newton).
    clusterer : None, estimator or array of shape (n, n_features), default=None
        None: k-means. A fitted clusterer: its `cluster_centers_`. Another: a clone of it is fitted, and its
        `cluster_centers_` or the means of its `labels_` are the centers. An array: these centers.
    rows_per_cluster : int or None, default=256
        k-means looks at a sample of this many rows per cell; None for all rows.
    kmeans_iter : int, default=10
        Lloyd steps of k-means.
    """
PIECES = """pieces : int, sequence of arrays or None, default=None
        A curve per feature and cell instead of a slope, as in `LinearSVC`; the cells stay as they are without it.
    """


class CellsMixin:
    """k-means cells with one tile each, for a `ComposedModel`; how they are tied is up to the subclass."""

    _keeps_empty_cells = False
    _solvers: tuple[str, ...] = (*SOLVERS, "sgd")

    @property
    def coef_(self):
        return head_of(self).slopes(self.mosaic_.coef)

    @property
    def intercept_(self):
        return head_of(self).values(self.mosaic_.intercept)

    @property
    def cluster_centers_(self):
        return self.mosaic_.gate.centers

    def _check_parameters(self):
        super()._check_parameters()
        check_real("n_clusters", self.n_clusters, at_least=1, integer=True)
        check_real("rows_per_cluster", self.rows_per_cluster, at_least=1, integer=True, optional=True)
        check_real("kmeans_iter", self.kmeans_iter, at_least=1, integer=True)

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


class KMeansCells(CellsMixin):
    """Cells that know nothing of each other or, with a `coupling`, form groups of similar weights."""

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


class ClusteredCells(CellsMixin):
    """Cells that are pulled towards a global tile."""

    _keeps_empty_cells = True

    def _check_parameters(self):
        super()._check_parameters()
        check_real("global_reg", self.global_reg, above=0)

    def _couple(self, n_tiles):
        return Coupling.to_global(n_tiles, self.global_reg)

    def _attributes(self, head):
        common, bias, global_reg = super()._attributes(head), self._options().bias, self.global_reg

        def attributes(mosaic, coupling, weights):
            coef, intercept = split_bias(np.stack([w[-1] for w in weights]) / np.sqrt(global_reg), bias)
            return {**common(mosaic, coupling, weights), "global_coef_": coef, "global_intercept_": intercept}

        return attributes
