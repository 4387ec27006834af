"""Kernel machines whose solution is a sum over anchors instead of all rows (Williams and Seeger, NIPS 2001)."""

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from svmosaic.couplings import Coupling
from svmosaic.estimators._anchors import ConstantTilesMixin, PlacedAnchorsMixin
from svmosaic.estimators._parameters import Count, Positive, estimator, parameters, positional
from svmosaic.estimators.base import ClassLoss, ComposedClassifier, ComposedRegressor, ValueLoss
from svmosaic.gates import DistanceGate, SeveralGates, SingleCell
from svmosaic.model.heads import head_of
from svmosaic.rows import total_variance

# Rows that gamma="scale" is found from.
SCALE_ROWS = 2000
# Directions of the kernel of the anchors below this share of the first are rounding, and would only give coefficients
# that cancel each other.
LEAST_EIGENVALUE = 1e-7


@parameters
class KernelMixin(ConstantTilesMixin, PlacedAnchorsMixin):
    """A constant for each anchor, weighted by the kernel between it and the row, for a `ComposedModel`.

    Parameters
    ----------
    n_anchors : int, default=512
        Number of anchors. Fitting needs memory for n_samples x n_anchors numbers, and the cost of prediction is
        proportional to n_anchors x n_features.
    gamma : {"scale"} or float, default="scale"
        Of the kernel exp(-gamma d^2). "scale": 1 / (the sum of the variances of the features), as in scikit-learn.

    Attributes
    ----------
    anchors_ : ndarray of shape (n_anchors, n_features)
    kernel_coef_ : ndarray of shape (n_anchors, n_outputs)
        Coefficients of the kernels; for regressors, in units of y.
    intercept_ : ndarray of shape (n_outputs,)
        For regressors, in units of y.
    gamma_ : float
        The gamma used.
    """

    n_anchors: Count = positional(512)
    gamma: Positive | Literal["scale"] = "scale"
    fit_intercept: bool = field(default=True, init=False)  # as in other kernel machines

    @property
    def anchors_(self):
        return self._kernels.centers

    @property
    def gamma_(self):
        return self._kernels.scale

    @property
    def kernel_coef_(self):
        return head_of(self).slopes(self.mosaic_.intercept[:-1, :, None])[..., 0]

    @property
    def intercept_(self):
        return head_of(self).values(self.mosaic_.intercept[-1])

    @property
    def _kernels(self):
        """The gate of the anchors, which is inside another if the rows are scaled first."""
        gate = self.mosaic_.gate
        gate = getattr(gate, "inner", gate).gates[0]
        return getattr(gate, "inner", gate)

    def _gate(self, data, rng):
        anchors = self._place(data, rng)
        gamma = self.gamma
        if gamma == "scale":
            X, target = data.sample(SCALE_ROWS, rng)
            gamma = 1.0 / total_variance(X, target.weight)
        kernels = DistanceGate(np.asarray(anchors, dtype=np.float64), "kernel", len(anchors), float(gamma))
        return SeveralGates((kernels, SingleCell()), np.ones(2))

    @property
    def _solving(self):
        return _solve_kernels


@estimator
class KernelSVC(KernelMixin, ComposedClassifier):
    r"""RBF kernel SVM with a solution over anchors: a mosaic whose tiles are numbers, weighted by kernels.

    The classifier is

    .. math:: H(x) = b + \sum_v \alpha_v k(x, a_v) , \qquad k(x, a) = \exp(-\gamma \lVert x - a \rVert^2) ,

    and its coefficients minimize (one-vs-rest for more than two classes, all on the same anchors)

    .. math:: \tfrac12 \alpha^T K \alpha + \tfrac12 (b / \beta)^2 + C \sum_i s_i \, \text{loss}(y_i H(x_i))

    with K the kernel between the anchors and :math:`\beta` the `intercept_scaling`. With all rows as anchors
    (`anchors=X`) this is the kernel SVM itself. With a few hundred anchors, predictions cost far less, their cost does
    not grow with the number of rows, and the accuracy is often close. Standardize the features first.

    References
    ----------
    C. K. I. Williams and M. Seeger, Using the Nyström Method to Speed Up Kernel Machines, NIPS 2001.

    See Also
    --------
    KernelSVR : The same for regression.
    LocallyLinearSVC : Linear tiles, blended by the anchors nearest to a row.
    LocalCodingSVC : Constants, blended by the anchors nearest to a row.

    Examples
    --------
    >>> from svmosaic import KernelSVC
    >>> from svmosaic.datasets import make_xor
    >>> X, y = make_xor(random_state=0)
    >>> model = KernelSVC(n_anchors=32, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.97)
    True
    """

    loss: ClassLoss = "squared_hinge"


@estimator
class KernelSVR(KernelMixin, ComposedRegressor):
    r"""RBF kernel support vector regression with a solution over anchors.

    The model is

    .. math:: f(x) = b + \sum_v \alpha_v k(x, a_v) , \qquad k(x, a) = \exp(-\gamma \lVert x - a \rVert^2) ,

    and its coefficients minimize, for each target on the same anchors,

    .. math:: \tfrac12 \alpha^T K \alpha + \tfrac12 (b / \beta)^2 + C \sum_i s_i \, \text{loss}(y_i - f(x_i))

    with K the kernel between the anchors and :math:`\beta` the `intercept_scaling`. Standardize the features first.

    References
    ----------
    C. K. I. Williams and M. Seeger, Using the Nyström Method to Speed Up Kernel Machines, NIPS 2001.

    See Also
    --------
    KernelSVC : The same for classification.
    LocallyLinearSVR : Linear tiles, blended by the anchors nearest to a row.

    Examples
    --------
    >>> import numpy as np
    >>> from svmosaic import KernelSVR
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(500, 2))
    >>> y = np.sin(X[:, 0]) * X[:, 1]
    >>> model = KernelSVR(n_anchors=64, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.98)
    True
    """

    loss: ValueLoss = "squared_epsilon_insensitive"


@dataclass(frozen=True)
class _KernelSum(Coupling):
    """One tile of an ordinary linear SVM that stands for a sum of kernels and a constant.

    Attributes
    ----------
    root : ndarray of shape (n_anchors, n_columns)
        Makes coefficients of kernels of its weights.
    bias : float
        The constant that its rows end with.
    n_features : int
        Of the rows that the tiles are scored with.
    """

    root: np.ndarray
    bias: float
    n_features: int

    def split(self, blocks, n_sighted=None):
        """No weights, the coefficients as intercepts, and no tile that has weights."""
        intercepts = np.append(self.root @ blocks[0, :-1] / self.bias, blocks[0, -1])  # they are multiplied by it
        return np.zeros((0, self.n_features)), intercepts, np.zeros(0, dtype=np.int32)


def _solve_kernels(data, coupling, options, progress, rng, start=None):
    """In the place of `Data.solve`: a linear SVM whose rows have the kernel of the anchors as their product."""
    # root root^T = K^-1, but for directions of the kernel K of the anchors that are no more than rounding.
    kernels = data.gate.gates[0]
    value, vector = np.linalg.eigh(kernels.code(kernels.centers)[1])
    kept = value > LEAST_EIGENVALUE * value[-1]
    root = vector[:, kept] / np.sqrt(value[kept])
    codes = np.zeros((data.n_rows, 1), dtype=np.int32), None
    coupling = _KernelSum(1.0, np.zeros((1, 0)), root, options.bias, data.tile_rows.shape[1])
    data = replace(data, tile_rows=data.codes[1][:, :-1] @ root, codes=codes)
    return data.solve(coupling, options, progress, rng, start)
