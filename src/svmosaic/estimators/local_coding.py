"""The linear SVM on local coordinates (Yu, Zhang and Gong, NIPS 2009), LL-SVM without its linear part."""

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from scipy import sparse

from svmosaic.couplings import Coupling
from svmosaic.estimators._anchors import AnchorsMixin, ConstantTilesMixin
from svmosaic.estimators._parameters import Count, estimator
from svmosaic.estimators.base import ComposedClassifier


@estimator
class LocalCodingSVC(ConstantTilesMixin, AnchorsMixin, ComposedClassifier):
    r"""Linear SVM on local coordinates: a constant per anchor, blended by the codes.

    With local codes :math:`\gamma(x)` over the anchors nearest to x, which sum to one, the classifier is

    .. math:: H(x) = \langle b, \gamma(x) \rangle

    and b minimizes (one-vs-rest for more than two classes, all with the same codes)

    .. math:: \tfrac12 \lVert b / \beta \rVert^2 + C \sum_i s_i \, \text{loss}(y_i H(x_i)) .

    It is `LocallyLinearSVC` with the weights fixed at zero (equation 15 of the LL-SVM paper), and needs more anchors
    for the same accuracy. There is no other intercept, because the codes sum to one.

    Parameters
    ----------
    solver : {"auto", "dual", "sgd"}, default="auto"
        "dual" (and "auto"): dual coordinate descent. "sgd": averaged stochastic gradient descent, which has no
        certificate: `dual_gap_` is nan.
    intercept_scaling : float, default=1.0
        The :math:`\beta` above: the coordinates are multiplied by it.

    Attributes
    ----------
    intercept_ : ndarray of shape (n_tiles, 1 or n_classes)
        The b above.
    mosaic_ : Mosaic
        The fitted form, with tiles of weight zero.

    References
    ----------
    K. Yu, T. Zhang and Y. Gong, Nonlinear Learning using Local Coordinate Coding, NIPS 2009.

    See Also
    --------
    LocallyLinearSVC : Codes that blend tiles.

    Examples
    --------
    >>> from svmosaic import LocalCodingSVC
    >>> from svmosaic.datasets import make_xor
    >>> X, y = make_xor(random_state=0)
    >>> model = LocalCodingSVC(n_anchors=32, n_neighbors=4, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.97)
    True
    """

    n_neighbors: Count = 8
    solver: Literal["auto", "dual", "sgd"] = "auto"
    fit_intercept: bool = field(default=True, init=False)  # the intercepts are all there is

    @property
    def _solving(self):
        return _solve_intercepts


@dataclass(frozen=True)
class _InterceptsOnly(Coupling):
    """Tiles of no weights but their intercepts.

    Attributes
    ----------
    n_features : int
        Of the rows that the tiles are scored with.
    """

    n_features: int

    def split(self, blocks, n_sighted=None):
        """No weights, the intercepts, and no tile that has weights."""
        return np.zeros((0, self.n_features)), self.tiles(blocks)[:, -1], np.zeros(0, dtype=np.int32)


def _solve_intercepts(data, coupling, options, progress, rng, start=None):
    """In the place of `Data.solve`: rows without features, but for the bias, which a row's codes share out."""
    n_features = data.tile_rows.shape[1]
    empty = sparse.csr_array((data.n_rows, 0), dtype=data.tile_rows.dtype)
    coupling = _InterceptsOnly(coupling.own, coupling.shared, n_features)
    return replace(data, tile_rows=empty).solve(coupling, options, progress, rng, start)
