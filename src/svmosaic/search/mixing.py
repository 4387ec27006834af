r"""Scores moved and recombined, so that the threshold is right and each class learns from the scores of the others.

A tile weighs margins on both sides of zero alike, although a rare class is seldom far beyond it: for two classes,
:math:`f'(x) = f(x) + a`, with an offset fitted to scores of rows that the model has not seen.

Of several classes, tiles separate each from the rest. Where a class lies between others no function of its family may
do that, and its scores are low everywhere, although those of its neighbors say where it is. With
:math:`f'(x) = A f(x) + a` they do. A mosaic whose outputs are mixed is a mosaic: tile by tile, its weights are mixed.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from svmosaic._threads import one_thread
from svmosaic.gates import SeveralGates, SingleCell
from svmosaic.losses import log_loss
from svmosaic.model.blending import blend
from svmosaic.model.calibration import fit_odds, odds_losses, sigmoid
from svmosaic.model.heads import signs_of
from svmosaic.model.mosaic import Mosaic

# Classes up to which they are mixed: there is a number for each pair.
MOST_CLASSES = 40
# How much the priors of the matrix and of the offsets weigh, in rows (benchmarks/study_mixing.py, on training rows).
PRIOR, PRIOR_OF_OFFSETS = 5.0, 0.5
# Steps of the fit, and of those that start where it ended: the last ones hardly change a probability.
STEPS, FEWER_STEPS = 50, 15
# Rows by which scores are mixed are not those that the matrix is fitted to: so many groups take turns.
GROUPS = 3
# Rows that the numbers of a matrix are found from at most; the more classes, the fewer, since each step looks at all
# pairs of them.
MOST_ROWS, MOST_PAIRS = 4000, 2_000_000
# A constant is held by a gate whose tiles have at least this share of the weight of others: a forest that is nothing
# but leaves has a global tile with next to none.
LEAST_SHARE = 1e-3
# Bounds of the logarithm of the slope of two classes, for scores of spread one, and of the offset of their log-odds.
TWO_BOUNDS = ((-4.0, 8.0), (-12.0, 12.0))


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
        total = np.array([factor * _sum_of_weights(gate) for gate, factor in zip(gates, factors, strict=True)])
        able = np.flatnonzero(np.abs(total) > LEAST_SHARE * np.abs(total).max())
        if len(able):
            g = min(able, key=lambda g: gates[g].n_tiles)
            intercept[first[g] : first[g + 1]] += self.offset / total[g]
            return replace(mosaic, coef=coef, intercept=intercept)
        nothing = np.zeros((1, *coef.shape[1:]))
        constant = Mosaic(SingleCell(), nothing, self.offset[None], feature_map=mosaic.feature_map)
        return blend([replace(mosaic, coef=coef, intercept=intercept), constant], [1.0, 1.0])


def _sum_of_weights(gate) -> float:
    """The weight that the tiles of each row have together; 0 if it depends on the row: they hold no constant then."""
    gate = getattr(gate, "inner", gate)
    varies = getattr(gate, "coding", None) == "kernel" or getattr(gate, "factor", None) is not None
    return 0.0 if varies else float(getattr(gate, "n_choices", 1))


def fit_mixing(scores, label, sample_weight=None) -> tuple[Mixing, np.ndarray]:
    r"""The mixing that makes the best log-odds of scores, and mixed scores of the same rows.

    Minimizes, from the odds of `fit_odds` on, the log-loss of the normalized odds plus a Gaussian prior on what is
    added to the identity. The more rows there are, the less the prior matters; of few rows, hardly anything is mixed.
    A single output, of two classes, is only moved.

    Parameters
    ----------
    scores : ndarray of shape (n_rows, n_outputs)
        Of rows that the model has not seen.
    label : ndarray of int
    sample_weight : ndarray, optional

    Returns
    -------
    mixing : Mixing
        Fitted to all rows.
    mixed : ndarray of shape (n_rows, n_outputs)
        Each group of rows mixed as the others ask for it, as new rows will be.
    """
    n_rows, n_outputs = scores.shape
    weight = np.ones(n_rows) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    center = scores.mean(axis=0)
    spread = float(np.std(scores - center))
    if not spread > 0:
        return Mixing(np.eye(n_outputs), np.zeros(n_outputs)), scores
    order = np.random.RandomState(0).permutation(n_rows)[: min(MOST_ROWS, MOST_PAIRS // n_outputs**2)]
    units, features = scores / spread, (scores - center) / spread
    with one_thread():  # sums over the rows have the same bits then
        several = n_outputs > 1
        find = partial(_recombined, *fit_odds(units[order], label[order], weight[order])) if several else _moved
        whole = find(units[order], features[order], label[order], weight[order])
        added, moved = whole[:, :-1], spread * whole[:, -1]
        mixing = Mixing(np.eye(n_outputs) + added, moved - added @ center)
        mixed = mixing(scores)  # that of rows that the matrix was not fitted to stays
        for g in range(GROUPS):
            here = order[g::GROUPS]
            others = np.setdiff1d(order, here)
            part = find(units[others], features[others], label[others], weight[others], whole)
            mixed[here] = scores[here] + spread * (features[here] @ part[:, :-1].T + part[:, -1])
    return mixing, mixed


def _moved(units, features, label, weight, start=None):
    """What is added to a single score: a matrix of zero, and the offset that makes it log-odds with some slope."""
    signs, weight = signs_of(label, 0, 1), weight / max(weight.sum(), np.finfo(float).tiny)
    prior = PRIOR_OF_OFFSETS * (weight @ weight)

    def loss_and_gradient(point):
        slope = np.exp(point[0])
        margins = signs * (slope * units[:, 0] + point[1])
        pull = -signs * weight * sigmoid(-margins)
        loss = weight @ log_loss(margins) + 0.5 * prior * point[1] ** 2
        return loss, np.array([slope * (pull @ units[:, 0]), pull.sum() + prior * point[1]])

    begin = np.array([1.0, 0.0])
    found = _minimized(loss_and_gradient, begin, STEPS, TWO_BOUNDS)
    return np.array([[0.0, found[1] / np.exp(found[0])]])


def _recombined(slope, offset, units, features, label, weight, start=None):
    """What is added to the scores of several classes: a matrix over the features, and in its last column an offset."""
    n_rows, n_classes = units.shape
    rows, odds, weight = np.arange(n_rows), slope * units + offset, weight / max(weight.sum(), np.finfo(float).tiny)
    # As many equal rows as these are worth.
    prior = np.append(np.full(n_classes, PRIOR), PRIOR_OF_OFFSETS) * (weight @ weight)

    def loss_and_gradient(point):
        matrix = point.reshape(n_classes, n_classes + 1)
        losses, each, sums = odds_losses(odds + features @ matrix[:, :-1].T + matrix[:, -1], label)
        pull = (1.0 - each) * each / sums[:, None]
        pull[rows, label] -= 1.0 - each[rows, label]
        pull *= weight[:, None]
        slopes = np.column_stack([pull.T @ features, pull.sum(axis=0)]) + prior * matrix
        return weight @ losses + 0.5 * float((prior * matrix**2).sum()), slopes.ravel()

    begin = np.zeros(n_classes * (n_classes + 1)) if start is None else slope * start.ravel()
    found = _minimized(loss_and_gradient, begin, STEPS if start is None else FEWER_STEPS)
    return found.reshape(n_classes, n_classes + 1) / slope


def _minimized(loss_and_gradient, begin, steps, bounds=None):
    from scipy.optimize import minimize  # here: it takes a while to import

    options = {"maxiter": steps}
    return minimize(loss_and_gradient, begin, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
