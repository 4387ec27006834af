r"""The multiclass SVM of Crammer and Singer over blocks: certificates in NumPy, and the driver.

.. math:: P(V) = \tfrac12 \sum_m \lVert V_m \rVert^2 + \sum_r c_r \max_m (e_{rm} + f_{rm} - f_{r y_r}) ,
          \qquad e_{rm} = [m \ne y_r]

and for any duals with :math:`\sum_m \alpha_{rm} = 0`, :math:`\alpha_{rm} \le c_r [m = y_r]`,

.. math:: D(\alpha) = -\tfrac12 \sum_m \lVert V_m(\alpha) \rVert^2 - \sum_{rm} e_{rm} \alpha_{rm} ,
          \qquad V_m(\alpha) = \sum_r \alpha_{rm} (\text{coef}_r \otimes x_r)

bounds the optimum from below.
"""

import numpy as np

from svmosaic import _core
from svmosaic.solvers.certificates import Certificate, Solution, shorten
from svmosaic.solvers.control import alone
from svmosaic.solvers.dual_descent import descend, start_weights


def reached(scores, label):
    """e_rm + f_rm of shape (n_rows, n_classes): the loss of a row is its largest less the score of the row's class."""
    out = scores + 1.0
    out[np.arange(len(label)), label] -= 1.0
    return out


def primal(weights, scores, label, cost) -> float:
    """P(V), from V and the scores of shape (n_rows, n_classes) it gives."""
    losses = reached(scores, label).max(axis=1) - scores[np.arange(len(label)), label]
    return float(0.5 * np.vdot(weights, weights) + np.dot(cost, losses))


def dual(weights, alpha, label) -> float:
    """D(alpha), from alpha and V(alpha)."""
    own = alpha[np.arange(len(label)), label]
    return float(-0.5 * np.vdot(weights, weights) - (alpha.sum() - own.sum()))


def certify(problem, alpha, label, n_threads=1) -> Certificate:
    """The certificate of a dual point, with V recomputed from it; weights of shape (n_classes, n_blocks, size)."""
    plus = np.ones(problem.n_rows, dtype=np.int8)
    weights = np.empty((alpha.shape[1], *problem.shape))
    for weight, column in zip(weights, alpha.T, strict=True):
        column = np.ascontiguousarray(column)
        _core.accumulate(problem.rows.core, problem.design, plus, column, weight, n_threads)
    scores = _scores(problem, weights, n_threads)
    return Certificate(weights, primal(weights, scores, label, problem.cost), dual(weights, alpha, label))


def _scores(problem, weights, n_threads):
    plus = np.ones(problem.n_rows, dtype=np.int8)
    out = np.empty((len(weights), problem.n_rows))
    for weight, score in zip(weights, out, strict=True):
        _core.margins(problem.rows.core, problem.design, plus, weight, score, n_threads)
    return out.T


def solve_crammer_singer(problem, label, n_classes, *, tol, max_iter, seed, n_threads=1, control=None) -> Solution:
    """Solve by dual descent over the rows (core/crammer_singer.hpp) to a duality gap of tol * P(0).

    Parameters
    ----------
    problem : Problem
        Its signs are not used, and its loss is the hinge.
    label : ndarray of int32, shape (n_rows,)
    n_classes : int
    tol : float
    max_iter : int
        The largest number of epochs.
    seed : int
        Orders the rows.
    n_threads : int
        For the certificates; descent itself is sequential.
    control : TaskControl, optional
        Asked between calls of the core whether to stop.

    Returns
    -------
    Solution
        With weights of shape (n_classes, n_blocks, n_features + 1) and duals of shape (n_rows, n_classes).
    """
    label = np.ascontiguousarray(label, dtype=np.int32)
    order = np.flatnonzero(problem.cost > 0).astype(np.int32)
    alpha = np.zeros((problem.n_rows, n_classes))
    random = np.random.SeedSequence(seed).generate_state(4, np.uint64)

    def epochs(weights, *limits):
        return _core.crammer_singer(
            problem.rows.core, problem.design, label, problem.cost, problem.curvature, order, random, alpha, weights,
            *limits,
        )  # fmt: skip

    certificate, n_iter, target = descend(
        problem, start_weights(problem, tol, n_classes), epochs, lambda: certify(problem, alpha, label, n_threads),
        tol=tol, max_iter=max_iter, control=control or alone(),
    )  # fmt: skip
    if certificate.primal > problem.primal_at_zero:
        weights, scores = certificate.weights, _scores(problem, certificate.weights, n_threads)
        own = np.take_along_axis(scores, label[:, None], axis=1)

        def value(t):
            return primal(t * weights, t * scores, label, problem.cost)

        def slope(t):
            worst = reached(t * scores, label).argmax(axis=1)[:, None]
            pull = np.take_along_axis(scores, worst, axis=1) - own
            return t * float(np.vdot(weights, weights)) + float(np.dot(problem.cost, pull[:, 0]))

        certificate = shorten(certificate, value, slope, problem.primal_at_zero)
    return Solution(**vars(certificate), alpha=alpha, n_iter=n_iter, target=target, solver="crammer_singer")
