"""Anchors and local codes over them as the regions of tiles."""

import numpy as np
from scipy import sparse
from sklearn.base import clone

from svmosaic._validation import check_choice, check_real
from svmosaic.gates import DistanceGate
from svmosaic.heads import head_of
from svmosaic.maps import TransformerMap
from svmosaic.models._composed_fit import solve_outputs

CODINGS = ("softmax", "inverse", "llc", "lle", "soft")
CODE_SPACES = ("input", "features")
# exp(-SHARPNESS d^2 / D^2), D the median distance to the farthest neighbor that is coded.
SHARPNESS = 4.0
# Rows that the scale of the codes is found from.
SCALE_ROWS = 2000
# Ridge of the reconstruction codes, as a share of the mean squared distance (the usual value of both papers).
RECONSTRUCTION_RIDGE = {"llc": 1e-4, "lle": 1e-3}


class AnchorsMixin:
    """Anchors and local codes, which the parameters of subclasses describe, for a `ComposedModel`."""

    @property
    def anchors_(self):
        return self.mosaic_.gate.centers

    @property
    def intercept_(self):
        return head_of(self).values(self.mosaic_.intercept)

    @property
    def code_scale_(self):
        return self.mosaic_.gate.scale

    def _check_parameters(self):
        super()._check_parameters()
        check_real("n_anchors", self.n_anchors, at_least=1, integer=True)
        check_real("n_neighbors", self.n_neighbors, at_least=1, integer=True)
        check_choice("coding", self.coding, CODINGS)
        check_real("code_scale", self.code_scale, above=0, optional=True)
        check_real("rows_per_anchor", self.rows_per_anchor, at_least=1, integer=True, optional=True)
        check_real("kmeans_iter", self.kmeans_iter, at_least=1, integer=True)

    def _fit_gate(self, rows, rng):
        anchors = rows.place(
            self.n_anchors, source=self.anchors, rows_per_center=self.rows_per_anchor, max_iter=self.kmeans_iter,
            rng=rng, name="anchors", n_jobs=self.n_jobs,
        )  # fmt: skip
        scaled_by_rows = self.code_scale is None and self.coding in ("softmax", "soft")
        sample = rows.sample(SCALE_ROWS, rng) if scaled_by_rows else None
        return code_gate(sample, anchors, self.coding, self.n_neighbors, self.code_scale, rng)


class LocallyLinearMixin(AnchorsMixin):
    """A tile for each anchor, behind a feature map if there is one; stochastic descent may leave biases free."""

    _solvers: tuple[str, ...] = ("auto", "dual", "newton", "sgd")

    @property
    def coef_(self):
        return head_of(self).slopes(self.mosaic_.coef)

    def _check_parameters(self):
        super()._check_parameters()
        check_choice("code_space", self.code_space, CODE_SPACES)
        if self.pieces is not None and self.feature_map is not None:
            raise ValueError(
                "pieces and feature_map are two ways to say what the tiles see: give one of them; to put a transformer "
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
