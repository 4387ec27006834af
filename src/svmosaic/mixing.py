r"""Scores of several classes recombined, so that each class learns from the scores of the others.

Tiles separate each class from the rest. Where a class lies between others no function of its family may do that, and
its scores are low everywhere, although those of its neighbors say where it is. With :math:`f'(x) = A f(x) + a`, fitted
to scores of rows that the model has not seen, they do. A mosaic whose outputs are mixed is a mosaic: tile by tile, its
weights are mixed.
"""

from dataclasses import dataclass, replace

import numpy as np

from svmosaic.blending import blend
from svmosaic.calibration import fit_odds, odds_losses
from svmosaic.gates import SeveralGates, SingleCell
from svmosaic.gates.placement import one_thread
from svmosaic.mosaic import Mosaic

# Classes up to which they are mixed: there is a number for each pair.
MOST_CLASSES = 40
# How much the priors of the matrix and of the offsets weigh, in rows (benchmarks/study_mixing.py, on training rows).
PRIOR, PRIOR_OF_OFFSETS = 5.0, 0.5
# Steps of the fit: the last ones hardly change a probability.
STEPS = 60
# Rows by which scores are mixed are not those that the matrix is fitted to: so many groups take turns.
GROUPS = 3


@dataclass(frozen=True, eq=False)
class Mixing:
    """What becomes of the scores of all outputs: `matrix @ scores + offset`.

    Attributes
    ----------
    matrix : ndarray of shape (n_outputs, n_outputs)
    offset : ndarray of shape (n_outputs,)
    """

    matrix: np.ndarray
    offset: np.ndarray

    def __call__(self, scores) -> np.ndarray:
        """Mixed scores, of shape (n_rows, n_outputs)."""
        return np.einsum("nc,dc->nd", scores, self.matrix) + self.offset  # the same bits on any number of threads

    def over(self, mosaic) -> Mosaic:
        """The mosaic whose scores are the mixed scores of another, with the identity link."""
        coef = np.einsum("dc,kcf->kdf", self.matrix, mosaic.coef).astype(mosaic.coef.dtype, copy=False)
        intercept = mosaic.intercept @ self.matrix.T
        if not self.offset.any():
            return replace(mosaic, coef=coef, intercept=intercept)
        several = isinstance(mosaic.gate, SeveralGates)
        gates, factors = (mosaic.gate.gates, mosaic.gate.factors) if several else ((mosaic.gate,), (1.0,))
        first = np.cumsum([0, *(gate.n_tiles for gate in gates)])
        for gate, factor, start in sorted(zip(gates, factors, first, strict=False), key=lambda one: one[0].n_tiles):
            if _weights_sum_to_one(gate) and factor:
                intercept[start : start + gate.n_tiles] += self.offset / factor
                return replace(mosaic, coef=coef, intercept=intercept)
        nothing = np.zeros((1, *coef.shape[1:]))
        constant = Mosaic(SingleCell(), nothing, self.offset[None], feature_map=mosaic.feature_map)
        return blend([replace(mosaic, coef=coef, intercept=intercept), constant], [1.0, 1.0])


def _weights_sum_to_one(gate) -> bool:
    """Whether the tiles of each row have this weight together, so that they can hold a constant."""
    gate = getattr(gate, "inner", gate)
    kernels = getattr(gate, "coding", None) == "kernel" or getattr(gate, "factor", None) is not None
    return getattr(gate, "n_choices", 1) == 1 and not kernels


def fit_mixing(scores, label, sample_weight=None) -> tuple[Mixing, np.ndarray]:
    r"""The mixing that makes the best log-odds of scores, and mixed scores of the same rows.

    Minimizes, from the odds of `fit_odds` on, the log-loss of the normalized odds plus a Gaussian prior on what is
    added to the identity. The more rows there are, the less the prior matters; of few rows, hardly anything is mixed.

    Parameters
    ----------
    scores : ndarray of shape (n_rows, n_classes)
        Of rows that the model has not seen, of more than two classes.
    label : ndarray of int
    sample_weight : ndarray, optional

    Returns
    -------
    mixing : Mixing
        Fitted to all rows.
    mixed : ndarray of shape (n_rows, n_classes)
        Each group of rows mixed as the others ask for it, as new rows will be.
    """
    n_rows, n_classes = scores.shape
    weight = np.ones(n_rows) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    center = scores.mean(axis=0)
    spread = float(np.std(scores - center))
    if not spread > 0:
        return Mixing(np.eye(n_classes), np.zeros(n_classes)), scores
    slope, offset = fit_odds(scores, label, weight)
    odds, features = slope * scores + offset, (scores - center) / spread
    group = np.random.RandomState(0).permutation(n_rows) % GROUPS
    with one_thread():  # sums over the rows have the same bits then
        whole = _correction(odds, features, label, weight, np.zeros((n_classes, n_classes + 1)))
        mixed = scores.copy()
        for g in range(GROUPS):
            others, here = group != g, group == g
            part = _correction(odds[others], features[others], label[others], weight[others], whole) / slope
            mixed[here] += features[here] @ part[:, :-1].T + part[:, -1]
    matrix = whole[:, :-1] / (slope * spread)
    return Mixing(np.eye(n_classes) + matrix, whole[:, -1] / slope - matrix @ center), mixed


def _correction(odds, features, label, weight, start):
    """What is added to the odds: a matrix over the features, and in its last column an offset per class."""
    from scipy.optimize import minimize

    n_rows, n_classes = odds.shape
    rows, total = np.arange(n_rows), weight.sum()
    if not total > 0:
        return start
    # As many equal rows as these are worth.
    prior = np.full(n_classes + 1, PRIOR)
    prior[-1] = PRIOR_OF_OFFSETS
    prior *= (weight @ weight) / total**2

    def loss_and_gradient(point):
        matrix = point.reshape(n_classes, n_classes + 1)
        losses, each, sums = odds_losses(odds + features @ matrix[:, :-1].T + matrix[:, -1], label)
        pull = (1.0 - each) * each / sums[:, None]
        pull[rows, label] -= 1.0 - each[rows, label]
        pull *= (weight / total)[:, None]
        slopes = np.column_stack([pull.T @ features, pull.sum(axis=0)]) + prior * matrix
        return weight @ losses / total + 0.5 * float((prior * matrix**2).sum()), slopes.ravel()

    found = minimize(loss_and_gradient, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
    return found.x.reshape(start.shape)
