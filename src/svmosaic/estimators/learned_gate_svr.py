"""Regression whose gates learn."""

import numpy as np

from svmosaic.estimators._all_or_nothing import all_or_nothing
from svmosaic.estimators._base import BaseMosaicRegressor
from svmosaic.estimators._learning import LearningMixin
from svmosaic.estimators._parameters import estimator
from svmosaic.estimators._values import ValuesMixin
from svmosaic.losses import LOSSES, REGRESSION_LOSSES, parameters_of

# The losses of the learner, and the same of the solvers.
SOLVED = {
    "squared_error": "squared_epsilon_insensitive",
    **{name: name for name in REGRESSION_LOSSES},
}


@estimator
class LearnedGateSVR(ValuesMixin, LearningMixin, BaseMosaicRegressor):
    r"""Mosaic of linear regressions whose regions are learned with the tiles.

    .. math:: f(x) = \frac{1}{\sqrt{M}} \sum_m \sum_{j \in N_m(x)} g_{mj}(x) (\langle w_j, x \rangle + b_j) ,
              \quad g_m = \text{softmax}_{j \in N_m(x)}(-\tau_m \lVert P_m x - v_j \rVert^2)

    with :math:`N_m(x)` the `n_neighbors` anchors of gate m nearest to :math:`P_m x`. Projections P, anchors v,
    sharpness :math:`\tau` and tiles are learned together by minibatches of the loss, as in `LearnedGateSVC`; several
    targets share the gate. With `polish`, the tiles are then solved for with the gate frozen; they minimize

    .. math:: \tfrac12 \sum_j \lVert (w_j, b_j) \rVert^2 + C \sum_i s_i \, \text{loss}(y_i - f(x_i))

    to a certified gap, and the tiles that are better on the held-out rows are kept.

    Standardize the features first; dense rows far from the origin are centered internally. Training uses float32.

    Parameters
    ----------
    loss : str, default="squared_error"
        With the residual r = y - f(x) of a row, "squared_error": r^2; "epsilon_insensitive": max(0, \|r\| - epsilon),
        and "squared_epsilon_insensitive" its square; "quantile": q max(0, r) + (1 - q) max(0, -r) with q the
        `quantile`, and "expectile" the same with squares.

    See Also
    --------
    LearnedGateSVC : The same for classification.
    LocallyLinearSVR : Fixed anchors, and a convex problem.

    Examples
    --------
    >>> import numpy as np
    >>> from svmosaic import LearnedGateSVR
    >>> X = np.random.default_rng(0).uniform(-2, 2, size=(1000, 2))
    >>> y = np.sin(2 * X[:, 0]) * X[:, 1]
    >>> model = LearnedGateSVR(n_tiles=16, n_neighbors=4, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    loss: str = "squared_error"

    _losses = tuple(SOLVED)

    @all_or_nothing
    def partial_fit(self, X, y, sample_weight=None):
        """Learn from a batch of a stream in one pass, in minibatches at a constant learning rate.

        The first batch, unless `fit` was called before, initializes the projection and the gate, and determines the
        mean and the standard deviation by which y is normalized. `regions_` then describes the rows of this batch.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional
            Weighs the loss of each row.

        Returns
        -------
        self
        """
        return self._fit_batch(X, y, sample_weight)

    def _judge(self, scores, target):
        """Minus the mean loss, summed over targets as the learner does."""
        total = 0.0
        loss, parameters = self._polished_loss()
        for c in range(target.n_outputs):
            rows = loss.rows(target.wanted(c), np.asarray(target.weight), **parameters(c))
            total += np.dot(rows.cost, loss.value(rows.sign * scores[rows.index, c], rows.threshold))
        return -float(total / target.weight.sum())

    def _asked_of(self, target):
        return np.shape(target.head.center)

    def _polished_loss(self):
        """The loss of the learner as the solvers know it, and its parameters for an output."""
        given = self._loss_parameters()
        if self.loss == "squared_error":
            given["epsilon"] = 0.0
        return LOSSES[SOLVED[self.loss]], lambda output: parameters_of(given, output)

    def _loss_parameter(self, n_outputs):
        name = "epsilon" if self.loss == "squared_error" else LOSSES[self.loss].parameters[0]
        return [parameters_of(self._loss_parameters(), c)[name] for c in range(n_outputs)]
