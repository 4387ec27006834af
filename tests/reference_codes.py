"""Slow, obvious versions of the local codes, one row at a time."""

import numpy as np


def nearest(x, anchors, k):
    """Positions of the k nearest anchors, nearest first; of equals, the first."""
    return np.argsort(((anchors - x) ** 2).sum(axis=1), kind="stable")[:k]


def code(x, anchors, coding, k, scale):
    """The dense code of a row over all anchors."""
    chosen = nearest(x, anchors, k)
    distance = np.sqrt(((anchors[chosen] - x) ** 2).sum(axis=1))
    if coding == "inverse":
        weight = (distance == 0).astype(float) if (distance == 0).any() else 1 / distance
    elif coding == "softmax":
        weight = np.exp(-scale * (distance**2 - distance.min() ** 2))
    else:
        locality = np.ones(k)
        if coding == "llc":
            locality = np.exp((distance - distance.max()) / distance.max())
        weight = reconstruct(x, anchors[chosen], scale * (distance**2).mean() * locality**2)
    dense = np.zeros(len(anchors))
    dense[chosen] = weight / weight.sum()
    return dense


def reconstruct(x, anchors, ridge):
    """argmin_w |x - sum_j w_j anchor_j|^2 + sum_j ridge_j w_j^2 subject to sum w = 1, from its KKT system."""
    k = len(anchors)
    system = np.zeros((k + 1, k + 1))
    system[:k, :k] = 2 * (anchors @ anchors.T + np.diag(ridge))
    system[:k, k] = system[k, :k] = 1.0
    return np.linalg.solve(system, np.append(2 * anchors @ x, 1.0))[:k]
