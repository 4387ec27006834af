"""Locally Linear SVM (Ladicky and Torr, ICML 2011)."""

from typing import Any, Literal

from svmosaic.estimators._anchors import LocallyLinearMixin
from svmosaic.estimators._composed import ComposedClassifier
from svmosaic.estimators._crammer_singer import solve_jointly
from svmosaic.estimators._parameters import estimator
from svmosaic.estimators._partial_fit import ClassifierStreamMixin


@estimator
class LocallyLinearSVC(LocallyLinearMixin, ClassifierStreamMixin, ComposedClassifier):
    r"""Locally linear SVM: a linear classifier that varies smoothly between anchors.

    With local codes :math:`\gamma(x)` over the anchors nearest to x, which sum to one, the classifier is

    .. math:: H(x) = \sum_v \gamma_v(x) (\langle w_v, \Phi(x) \rangle + b_v)

    and its tiles minimize (one-vs-rest for more than two classes, all with the same codes)

    .. math:: \tfrac12 \sum_v \lVert (w_v, b_v / \beta) \rVert^2 + C \sum_i s_i \, \text{loss}(y_i H(x_i)) .

    This is the paper's :math:`\tfrac{\lambda}{2}\lVert W\rVert^2 + \tfrac1n \sum_i \text{hinge}` with
    :math:`C = 1 / (\lambda n)`, except that the paper does not penalize the intercepts; a large :math:`\beta`, the
    `intercept_scaling`, approximates this. :math:`\Phi` is the `feature_map`, by default the identity.

    Standardize the features first (or scale the rows to unit norm, for images and counts): codes depend on Euclidean
    distances.

    Parameters
    ----------
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
        One-vs-rest, or all classes in one problem: the loss of a row is then the largest of
        :math:`[m \ne y_i] + H_m(x_i) - H_{y_i}(x_i)` over the classes m (Crammer and Singer, 2002; hinge and dual
        descent only).

    Attributes
    ----------
    objective_ : ndarray of shape (n_outputs,)
        The objective of each output; of shape (1,) for Crammer-Singer, nan after `partial_fit`.

    References
    ----------
    L. Ladicky and P. H. S. Torr, Locally Linear Support Vector Machines, ICML 2011.

    See Also
    --------
    LocallyLinearSVR : The same for regression.
    LearnedGateSVC : Anchors that are learned with the tiles.
    LocalCodingSVC : A linear SVM on the codes alone.

    Examples
    --------
    >>> from svmosaic import LocallyLinearSVC
    >>> from svmosaic.datasets import make_xor
    >>> X, y = make_xor(random_state=0)
    >>> model = LocallyLinearSVC(n_anchors=16, n_neighbors=4, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.98)
    True
    """

    anchors: Any = "class"
    loss: str = "squared_hinge"
    multi_class: Literal["ovr", "crammer_singer"] = "ovr"

    def _solving(self):
        return solve_jointly if self.multi_class == "crammer_singer" else super()._solving()
