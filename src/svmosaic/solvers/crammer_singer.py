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
from svmosaic.solvers.certificates import Certificate, shorten
from svmosaic.solvers.control import alone
from svmosaic.solvers.dual_descent import FLOAT32_TOL, SECONDS_A_CALL
from svmosaic.solvers.solution import Solution


def primal(weights, scores, label, cost) -> float:
    """P(V), from V and the scores of shape (n_rows, n_classes) it gives."""
    rows = np.arange(len(label))
    reached = scores + 1.0
    reached[rows, label] -= 1.0
    return float(0.5 * np.vdot(weights, weights) + np.dot(cost, reached.max(axis=1) - scores[rows, label]))


def dual(weights, alpha, label) -> float:
    """D(alpha), from alpha and V(alpha)."""
    own = alpha[np.arange(len(label)), label]
    return float(-0.5 * np.vdot(weights, weights) - (alpha.sum() - own.sum()))


def certify(problem, alpha, label, n_threads=1) -> Certificate:
    """The certificate of a dual point, with V recomputed from it; weights of shape (n_classes, n_blocks, size)."""
    plus = np.ones(problem.n_rows, dtype=np.int8)
    weights = np.empty((alpha.shape[1], *problem.shape))
    scores = np.empty(alpha.shape[::-1])
    for m, weight in enumerate(weights):
        column = np.ascontiguousarray(alpha[:, m])
        _core.accumulate(problem.rows.core, problem.design, plus, column, weight, n_threads)
        _core.margins(problem.rows.core, problem.design, plus, weight, scores[m], n_threads)
    return Certificate(weights, primal(weights, scores.T, label, problem.cost), dual(weights, alpha, label))


def _shortened(problem, certificate, label, n_threads) -> Certificate:
    """As `certificates.shortened`."""
    plus, cost, rows = np.ones(problem.n_rows, dtype=np.int8), problem.cost, np.arange(problem.n_rows)
    scores = np.empty((len(certificate.weights), problem.n_rows))
    for weight, score in zip(certificate.weights, scores, strict=True):
        _core.margins(problem.rows.core, problem.design, plus, weight, score, n_threads)
    scores = scores.T - scores[label, rows][:, None]
    errors = (np.arange(scores.shape[1]) != label[:, None]).astype(float)
    square = float(np.vdot(certificate.weights, certificate.weights))

    def value(t):
        return 0.5 * t * t * square + float(np.dot(cost, (errors + t * scores).max(axis=1)))

    def slope(t):
        return t * square + float(np.dot(cost, scores[rows, (errors + t * scores).argmax(axis=1)]))

    return shorten(certificate, value, slope, problem.primal_at_zero)


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
    control = control or alone()
    label = np.ascontiguousarray(label, dtype=np.int32)
    order = np.flatnonzero(problem.cost > 0).astype(np.int32)
    alpha = np.zeros((problem.n_rows, n_classes))
    narrow = problem.rows.dtype == np.float32 and tol >= FLOAT32_TOL
    weights = np.zeros((n_classes, *problem.shape), dtype=np.float32 if narrow else np.float64)
    random = np.random.SeedSequence(seed).generate_state(4, np.uint64)
    target = aim = tol * problem.primal_at_zero
    n_iter = failures = 0
    while True:
        epochs, estimate = _core.crammer_singer(
            problem.rows.core, problem.design, label, problem.cost, problem.curvature, order, random, alpha, weights,
            aim, 1 if control.every_epoch else max_iter - n_iter, control.seconds(SECONDS_A_CALL),
        )  # fmt: skip
        n_iter += epochs
        control.check()
        over = control.over(n_iter, lambda: certify(problem, alpha, label, n_threads))
        if estimate > aim and n_iter < max_iter and not over:
            continue
        certificate = certify(problem, alpha, label, n_threads)
        if certificate.gap <= target or n_iter >= max_iter or over:
            if certificate.primal > problem.primal_at_zero:
                certificate = _shortened(problem, certificate, label, n_threads)
            return Solution(certificate, alpha, n_iter, target, "crammer_singer")
        # The estimate was too rosy: aim lower, and after a second failure stop trusting float32.
        failures += 1
        aim *= 0.5
        if failures == 2 and weights.dtype == np.float32:
            weights = np.empty(weights.shape)
        weights[...] = certificate.weights
