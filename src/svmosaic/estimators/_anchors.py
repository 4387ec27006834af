"""Anchors and local codes over them as the regions of tiles."""

from typing import Any, Literal

import numpy as np
from scipy import sparse
from sklearn.base import clone, is_regressor

from svmosaic.estimators._composed_fit import solve_outputs
from svmosaic.estimators._importances import NO_WEIGHTS
from svmosaic.estimators._parameters import Count, Positive, parameters, positional
from svmosaic.gates import DistanceGate
from svmosaic.maps import TransformerMap
from svmosaic.model.heads import head_of

Coding = Literal["softmax", "inverse", "llc", "lle", "soft"]
# exp(-SHARPNESS d^2 / D^2), D the median distance to the farthest neighbor that is coded.
SHARPNESS = 4.0
# Rows that the scale of the codes is found from.
SCALE_ROWS = 2000
# Ridge of the reconstruction codes, as a share of the mean squared distance (the usual value of both papers).
RECONSTRUCTION_RIDGE = {"llc": 1e-4, "lle": 1e-3}


@parameters
class PlacedAnchorsMixin:
    """Anchors, for a `ComposedModel`.

    Parameters
    ----------
    n_anchors : int, default=100
        Number of anchors, and therefore of tiles.
    anchors : {"class", "kmeans", "random"}, array or clusterer, default="kmeans"
        "kmeans": k-means on a sample of the rows. "class": the same within each class, for classifiers. "random":
        random rows. An array, or a fitted object with `cluster_centers_`: these anchors, which may thus come from
        unlabeled data. An unfitted clusterer: a clone of it is fitted.
    rows_per_anchor : int or None, default=256
        Size of the sample for k-means, in rows per anchor; None for all rows.
    kmeans_iter : int, default=10
        Number of Lloyd steps of k-means.
    """

    n_anchors: Count = positional(100)
    anchors: Any = "kmeans"
    C: Positive = 10.0
    tol: Positive = 1e-3
    rows_per_anchor: Count | None = 256
    kmeans_iter: Count = 10

    def _check_parameters(self):
        super()._check_parameters()
        if isinstance(self.anchors, str) and self.anchors == "class" and is_regressor(self):
            raise ValueError("anchors='class' needs classes: pass 'kmeans' or 'random', an array or a clusterer")

    def _place(self, rows, rng):
        return rows.place(
            self.n_anchors, source=self.anchors, rows_per_center=self.rows_per_anchor, max_iter=self.kmeans_iter,
            rng=rng, name="anchors", n_jobs=self.n_jobs,
        )  # fmt: skip


class ConstantTilesMixin:
    """Tiles that are only a number."""

    @property
    def feature_importances_(self):
        """Not available: the tiles are constants, and features matter only through the distances to the anchors."""
        raise AttributeError(NO_WEIGHTS.format(type(self).__name__))


@parameters
class AnchorsMixin(PlacedAnchorsMixin):
    """Anchors and local codes, for a `ComposedModel`.

    Parameters
    ----------
    n_neighbors : int, default=16
        Number of nearest anchors that share a row. The paper uses 8, which halves the cost of solving, but is less
        accurate on average.
        The cost of prediction is proportional to `n_anchors` + `n_neighbors` x outputs.
    coding : {"softmax", "inverse", "llc", "lle", "soft"}, default="softmax"
        How the nearest anchors share a row. "softmax": exp(-code_scale d^2). "inverse": 1 / d, as in the paper.
        "llc": locality-constrained linear coding. "lle": reconstruction weights of locally linear embedding. "soft":
        softmax over all anchors.
    code_scale : float or None, default=None
        Sharpness of the softmax codes; None for 4 / (median squared distance to the `n_neighbors`-th anchor). For
        "llc" and "lle", the ridge as a fraction of the mean squared distance; None for 1e-4 and 1e-3.

    Attributes
    ----------
    anchors_ : ndarray of shape (n_tiles, n_features)
        The points to which the gate measures distances.
    intercept_ : ndarray of shape (n_tiles, n_outputs)
        For regressors, in units of y.
    code_scale_ : float
        The sharpness used.
    """

    n_neighbors: Count = 16
    coding: Coding = "softmax"
    code_scale: Positive | None = None

    @property
    def anchors_(self):
        return self._distances.centers

    @property
    def intercept_(self):
        return head_of(self).values(self.mosaic_.intercept)

    @property
    def code_scale_(self):
        return self._distances.scale

    @property
    def _distances(self):
        """The gate of the anchors, which is inside another if the columns are ranked first."""
        return getattr(self.mosaic_.gate, "inner", self.mosaic_.gate)

    def _fit_gate(self, rows, rng):
        anchors = self._place(rows, rng)
        scaled_by_rows = self.code_scale is None and self.coding in ("softmax", "soft")
        sample = rows.sample(SCALE_ROWS, rng) if scaled_by_rows else None
        return code_gate(sample, anchors, self.coding, self.n_neighbors, self.code_scale, rng)


@parameters
class LocallyLinearMixin(AnchorsMixin):
    r"""A tile for each anchor, behind a feature map if there is one; stochastic descent may leave biases free.

    Parameters
    ----------
    solver : {"auto", "dual", "newton", "sgd"}, default="auto"
        "dual": dual coordinate descent, with one thread per output. "newton": Newton's method on all threads, for up
        to some hundreds of features. "auto": descent, which switches to Newton's method if it takes too long. "sgd":
        stochastic gradient descent, Algorithm 1 of the paper, with steps :math:`1 / (\lambda (t + t_0))`,
        :math:`\lambda = 1 / (C n)`, which stops when five passes together lower the objective by less than `tol`
        allows; it has no certificate.
    feature_map : transformer or None, default=None
        Finite-dimensional kernel map applied before the tiles (section 3.2 of the paper), such as
        `sklearn.kernel_approximation.AdditiveChi2Sampler` or `Nystroem`.
    code_space : {"input", "features"}, default="input"
        Where distances to anchors are measured if there is a feature map.
    pieces : int, sequence of arrays or None, default=None
        A curve per feature and anchor instead of a slope, as in `LinearSVC`; anchors and codes do not change.
        `partial_fit` takes the knots from the first batch. Cannot be combined with `feature_map`.

    Attributes
    ----------
    tile_coef_ : ndarray of shape (n_tiles, n_outputs, n_features)
        For regressors, in units of y.
    """

    feature_map: Any = None
    code_space: Literal["input", "features"] = "input"
    pieces: Any = None

    @property
    def tile_coef_(self):
        return head_of(self).slopes(self.mosaic_.coef)

    def _check_parameters(self):
        super()._check_parameters()
        if self.pieces is not None and self.feature_map is not None:
            raise ValueError(
                "pieces and feature_map both define the input of the tiles: pass only one; to put a transformer "
                "in front of pieces, use a pipeline"
            )

    def _fit_map(self, X, target, rng):
        if self.feature_map is None:
            return super()._fit_map(X, target, rng)
        return TransformerMap(clone(self.feature_map).fit(X), self.code_space)

    def _solving(self):
        if not self.penalize_intercept and self.solver != "sgd":
            raise ValueError(
                f"penalize_intercept=False needs solver='sgd', got {self.solver!r}; "
                "for the dual solver make intercept_scaling large instead"
            )
        return solve_outputs


def code_gate(X, anchors, coding, n_neighbors, scale, rng):
    """The gate of local codes, with its scale found from rows if it is not given."""
    n_neighbors = min(n_neighbors, len(anchors))
    if scale is None:
        if coding in RECONSTRUCTION_RIDGE:
            scale = RECONSTRUCTION_RIDGE[coding]
        elif coding == "inverse":
            scale = 1.0  # not used
        else:
            scale = SHARPNESS / _neighbour_distance(X, anchors, n_neighbors, rng)
    if coding == "soft":
        return DistanceGate(anchors, "softmax", len(anchors), scale)
    return DistanceGate(anchors, coding, n_neighbors, scale)


def _neighbour_distance(X, anchors, n_neighbors, rng):
    """Median over a sample of rows of the squared distance to the n-th nearest anchor."""
    if X.shape[0] > SCALE_ROWS:
        X = X[np.sort(rng.choice(X.shape[0], SCALE_ROWS, replace=False))]
    tile, _ = DistanceGate(anchors, "inverse", n_neighbors).code(X)
    rows = X.toarray() if sparse.issparse(X) else X
    distance = ((rows - anchors[tile[:, -1]]) ** 2).sum(axis=1, dtype=np.float64)
    return float(np.median(distance)) or 1.0
