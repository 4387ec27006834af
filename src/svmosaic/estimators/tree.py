"""Regions that are rules: tiles in the leaves of shallow trees, tied to one global tile."""

from typing import Literal

from svmosaic.estimators._composed import ComposedClassifier
from svmosaic.estimators._parameters import estimator
from svmosaic.estimators._trees import TreesMixin


@estimator
class TreeSVC(TreesMixin, ComposedClassifier):
    r"""A global tile, and a tile in each leaf of one or several shallow trees.

    .. math:: f(x) = \langle w, \phi(x) \rangle
              + \frac{1}{\sqrt M} \sum_m \langle v_{m, \text{leaf}_m(x)}, (1, x) \rangle

    The trees are grown first, by scikit-learn; then all tiles jointly minimize, for each output,

    .. math:: \tfrac{\lambda}{2} \lVert w \rVert^2 + \tfrac12 \sum_{m,l} \lVert v_{ml} \rVert^2
              + C \sum_i s_i \, \text{loss}(y_i f(x_i)) ,

    one convex problem with a certificate. :math:`\phi` are the `pieces`, so the global tile is an additive model;
    the leaves add interactions between columns. With one tree, each region is a readable rule: see
    `rules_` and `export_text`.

    Parameters
    ----------
    n_trees : int, default=32
        Number of trees. One tree gives readable rules, many trees are usually more accurate. A single tree is grown
        on all rows, several on bootstrap samples.

    See Also
    --------
    TreeSVR : The same for regression.
    ClusteredSVC : Regions by distance instead of rules.
    svmosaic.explain.describe_regions : Rules for the regions of any model.

    Examples
    --------
    >>> from svmosaic import TreeSVC
    >>> from svmosaic.datasets import make_xor
    >>> X, y = make_xor(random_state=0)
    >>> model = TreeSVC(n_trees=1, max_leaves=4, tiles="linear", random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    loss: str = "squared_hinge"
    solver: Literal["auto", "dual"] = "auto"
