"""Regression with regions that are rules: tiles in the leaves of shallow trees, tied to one global tile."""

from typing import Literal

from svmosaic.estimators._composed import ComposedRegressor
from svmosaic.estimators._parameters import estimator
from svmosaic.estimators._trees import TreesMixin


@estimator
class TreeSVR(TreesMixin, ComposedRegressor):
    r"""A global tile, and a tile in each leaf of one or several shallow regression trees.

    .. math:: f(x) = \langle w, \phi(x) \rangle
              + \frac{1}{\sqrt M} \sum_m \langle v_{m, \text{leaf}_m(x)}, (1, x) \rangle

    The trees are grown first, by scikit-learn; then all tiles jointly minimize, for each target,

    .. math:: \tfrac{\lambda}{2} \lVert w \rVert^2 + \tfrac12 \sum_{m,l} \lVert v_{ml} \rVert^2
              + C \sum_i s_i \, \text{loss}(y_i - f(x_i)) ,

    one convex problem with a certificate. :math:`\phi` are the `pieces`, so the global tile is an additive model;
    the leaves add interactions between columns. With one tree, each region is a readable rule: see
    `rules_` and `export_text`.

    See Also
    --------
    TreeSVC : The same for classification.
    ClusteredSVR : Regions by distance instead of rules.

    Examples
    --------
    >>> import numpy as np
    >>> from svmosaic import TreeSVR
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(500, 2))
    >>> y = np.where(X[:, 0] > 0, X[:, 1], -X[:, 1])
    >>> model = TreeSVR(n_trees=1, max_leaves=4, tiles="linear", C=1.0, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    loss: str = "squared_epsilon_insensitive"
    solver: Literal["auto", "dual"] = "auto"

    _regression = True
