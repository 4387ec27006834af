"""Mixture of linear SVMs (Fu, Robles-Kelly and Zhou, IEEE TNN 2010)."""

from functools import partial
from typing import Annotated, Literal

from svmosaic._validation import check_real
from svmosaic.couplings import ClusteredTasks
from svmosaic.estimators._mixture_classifier import BaseMixtureClassifier
from svmosaic.estimators._parameters import Count, NotNegative, Positive, estimator, parameters, positional
from svmosaic.gates import RBFGate
from svmosaic.gates.softmax_tree import scale_of


@parameters
class SoftmaxMixture(BaseMixtureClassifier):
    """What the flat and the hierarchical mixture share: independent experts under a softmax gate.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses relative to the squared norm of the experts' weights.
    tau : "scale" or float, default="scale"
        Sharpness of the gate. "scale": 2 / D, with D the mean squared distance of the rows to
        their k-means centers, which makes the model independent of the units of X. A number: this value everywhere.
    nu : "scale" or float, default="scale"
        Experts with a total responsibility of at most this many rows (or this much sample weight) are removed, and the
        coefficients of the others are lowered by it: it controls the size of the model. "scale": 0.2 % of the rows. 0
        keeps all experts.
    gate : {"normalised", "paper"}, default="normalised"
        Whether the mixing coefficients are inside the softmax, or outside as printed in the paper, in which case the
        likelihood favors fewer experts until about one is left.
    gate_iter : int, default=10
        L-BFGS steps on the centroids per iteration. 0 keeps them at the k-means centers.
    """

    C: Positive = 1.0
    tau: Positive | Literal["scale"] = "scale"
    nu: NotNegative | Literal["scale"] = "scale"
    gate: Literal["normalised", "paper"] = "normalised"
    gate_iter: Annotated[int, partial(check_real, at_least=0, integer=True)] = 10

    def _tasks(self, rows):
        return ClusteredTasks(groups=None, beta=0.5 / (self.C * rows.target.n_outputs))

    def _gate_options(self):
        nu, max_iter = self.nu, self.gate_iter
        return lambda total: {"nu": 0.002 * total if nu == "scale" else float(nu), "max_iter": max_iter}


@estimator
class MixtureSVC(SoftmaxMixture):
    r"""Mixture of linear SVMs: a soft partition and its linear experts, learned together by EM.

    It maximizes over centroids v, mixing coefficients :math:`\xi` and experts w (intercepts included)

    .. math:: \sum_i s_i \log \sum_j g_j(x_i) \, e^{-\frac{\rho}{m} \sum_c \max(0, 1 - y_{ic} \langle w_{jc},
              (x_i, \beta) \rangle)} - \frac{1}{2Cm} \sum_{jc} \lVert w_{jc} \rVert^2 , \qquad
              g_j(x) = \frac{\xi_j e^{-\tau \lVert x - v_j \rVert^2}}
              {\sum_l \xi_l e^{-\tau \lVert x - v_l \rVert^2}} ,

    and predicts by the vote :math:`\sum_j g_j(x) (e^{-h(s_j)} - e^{-h(-s_j)})` of the experts' scores s, with the
    hinge h. There is m = 1 output for two classes; m > 2 classes are handled one-vs-rest in all experts, with
    one gate.

    Parameters
    ----------
    n_experts : int, default=20
        Initial number of experts; `nu` may remove some.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_experts, n_features)
        The centroids v.
    mixing_ : ndarray of shape (n_experts,)
        The coefficients xi.
    tau_ : float

    References
    ----------
    Z. Fu, A. Robles-Kelly and J. Zhou, Mixing Linear SVMs for Nonlinear Classification, IEEE Transactions on Neural
    Networks 21 (12), 2010.

    See Also
    --------
    HierarchicalMixtureSVC : A tree of gates.
    MultiTaskMixtureSVC : Gaussian gates, and experts that form groups.
    svmosaic.explain.displays.ConvergenceDisplay : Plots the convergence of EM.

    Examples
    --------
    >>> from svmosaic import MixtureSVC
    >>> from svmosaic.datasets import make_xor
    >>> X, y = make_xor(random_state=0)
    >>> model = MixtureSVC(n_experts=4, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.98)
    True
    """

    n_experts: Count = positional(20)

    @property
    def cluster_centers_(self):
        return self.mosaic_.gate.centers

    @property
    def mixing_(self):
        return self.mosaic_.gate.prior

    @property
    def tau_(self) -> float:
        return float(self.mosaic_.gate.tau[0])

    def _starting(self, rows, rng):
        placement, inside = self._placement(self.n_experts), self.gate == "normalised"
        return partial(_start, placement=placement, scale=self.tau, inside=inside)


def _start(rows, rng, *, placement, scale, inside):
    """The softmax gate of k-means cells."""
    centers = rows.deal(rows.place(rng=rng, **placement))
    tau = scale_of(rows.X, centers, rows.weight) if scale == "scale" else float(scale)
    mass = rows.shares.mass
    return RBFGate.from_centers(centers, tau, prior=mass / mass.sum(), inside=inside)
