"""Anchors and local codes over them as the regions of tiles."""

from typing import Any, Literal

import numpy as np
from scipy import sparse
from sklearn.base import is_regressor

from svmosaic.estimators._importances import NO_WEIGHTS
from svmosaic.estimators._parameters import Count, Positive, parameters, positional
from svmosaic.gates import DistanceGate
from svmosaic.model.heads import head_of

Coding = Literal["softmax", "inverse", "llc", "lle"]
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
    """

    n_anchors: Count = positional(100)
    anchors: Any = "kmeans"
    C: Positive = 10.0
    tol: Positive = 1e-3

    def _check_parameters(self):
        super()._check_parameters()
        if isinstance(self.anchors, str) and self.anchors == "class" and is_regressor(self):
            raise ValueError("anchors='class' needs classes: pass 'kmeans' or 'random', an array or a clusterer")

    def _place(self, data, rng):
        return data.place(self.n_anchors, source=self.anchors, rng=rng, name="anchors", n_jobs=self.n_jobs)


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
    coding : {"softmax", "inverse", "llc", "lle"}, default="softmax"
        How the nearest anchors share a row. "softmax": exp(-code_scale d^2). "inverse": 1 / d, as in the paper.
        "llc": locality-constrained linear coding. "lle": reconstruction weights of locally linear embedding.
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

    def _gate(self, data, rng):
        anchors = self._place(data, rng)
        scaled_by_rows = self.code_scale is None and self.coding == "softmax"
        sample = data.sample(SCALE_ROWS, rng)[0] if scaled_by_rows else None
        return code_gate(sample, anchors, self.coding, self.n_neighbors, self.code_scale, rng)


def code_gate(X, anchors, coding, n_neighbors, scale, rng):
    """The gate of local codes; its scale, if not given, comes from rows X, or is that of the reconstruction codes."""
    n_neighbors = min(n_neighbors, len(anchors))
    if scale is None and coding == "softmax":
        if X.shape[0] > SCALE_ROWS:
            X = X[np.sort(rng.choice(X.shape[0], SCALE_ROWS, replace=False))]
        tile, _ = DistanceGate(anchors, "inverse", n_neighbors).code(X)
        rows = X.toarray() if sparse.issparse(X) else X
        distance = ((rows - anchors[tile[:, -1]]) ** 2).sum(axis=1, dtype=np.float64)
        scale = SHARPNESS / (float(np.median(distance)) or 1.0)
    elif scale is None:
        scale = RECONSTRUCTION_RIDGE.get(coding, 1.0)  # "inverse" uses none
    return DistanceGate(anchors, coding, n_neighbors, scale)
