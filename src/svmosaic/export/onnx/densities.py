"""Densities and kernels as nodes in double precision."""

import numpy as np

LARGEST_EXPONENT = 700.0


def log_joint(graph, gaussians, rows):
    """log_weight_j - |F_j^T (x - mu_j)|^2 / 2, of shape (n, n_densities)."""
    means, factors = gaussians["means"], gaussians["factors"]
    n, d = means.shape
    origin = means.mean(axis=0)
    moved = means - origin
    z = graph.add("Sub", graph.cast(rows, np.float64), graph.constant(origin))
    if gaussians["covariance"] == "full":
        factors = factors.reshape(n, d, d)
        flat = np.swapaxes(factors, 0, 1).reshape(d, n * d)
        white = graph.add("MatMul", z, graph.constant(flat))
        white = graph.add("Sub", white, graph.constant(np.einsum("jf,jfq->jq", moved, factors).reshape(1, -1)))
        white = graph.add("Reshape", white, graph.integers([-1, n, d]))
    else:
        away = graph.add("Sub", graph.unsqueeze(z, 1), graph.constant(moved[None]))
        white = graph.add("Mul", away, graph.constant(factors.reshape(1, n, -1)))
    squared = graph.add("ReduceSum", graph.add("Mul", white, white), graph.integers([2]), keepdims=0)
    heights = graph.constant(np.maximum(gaussians["log_weight"], -1e300))
    return graph.add("Add", graph.add("Mul", squared, graph.constant(-0.5)), heights)


def write_densities(graph, form, rows):
    """The scores of a model without tiles: Gaussians, or a fusion with kernels."""
    weight, gaussians = form.get("weight", 0), form.get("densities", form)
    machine = None if weight == 0 else _kernels(graph, form, rows)
    if weight == 1:
        return machine
    joint = _class_log_joint(graph, gaussians, rows)
    if machine is None:
        return _contrast(graph, joint, gaussians)
    top = graph.reduce("ReduceMax", joint, 1)
    height = graph.add("Add", top, graph.constant(form["log_ratio"]))
    height = graph.add("Exp", graph.add("Min", height, graph.constant(LARGEST_EXPONENT)))
    joint = graph.add("Mul", graph.add("Exp", graph.add("Sub", joint, top)), height)
    parts = [(machine, weight), (_contrast(graph, joint, gaussians), 1 - weight)]
    return graph.add("Add", *(graph.add("Mul", part, graph.constant(share)) for part, share in parts))


def _class_log_joint(graph, gaussians, rows):
    """log p(k) p(x|k), of shape (n, n_classes)."""
    terms, owner = log_joint(graph, gaussians, rows), gaussians["owner"]
    columns = []
    for k in range(owner.max() + 1):
        mine = graph.add("Gather", terms, graph.integers(np.flatnonzero(owner == k)), axis=1)
        top = graph.reduce("ReduceMax", mine, 1)
        total = graph.sum(graph.add("Exp", graph.add("Sub", mine, top)), 1)
        columns.append(graph.add("Add", top, graph.add("Log", total)))
    return graph.concat(columns)


def _contrast(graph, classes, gaussians):
    """For two classes the second column less the first, of shape (n, 1)."""
    if gaussians["owner"].max() > 1:
        return classes
    second, first = (graph.add("Gather", classes, graph.integers([k]), axis=1) for k in (1, 0))
    return graph.add("Sub", second, first)


def _kernels(graph, form, rows):
    """sum_i a_ci exp(-gamma_i |x - v_i|^2) + b_c"""
    origin = form["centers"].mean(axis=0)
    moved, gamma = form["centers"] - origin, form["gamma"]
    z = graph.add("Sub", graph.cast(rows, np.float64), graph.constant(origin))
    products = graph.add("MatMul", z, graph.constant((2.0 * gamma[:, None] * moved).T))
    norm = graph.add("MatMul", graph.sum(graph.add("Mul", z, z), 1), graph.constant(gamma[None]))
    logs = graph.add("Sub", products, graph.add("Add", norm, graph.constant(gamma * (moved * moved).sum(axis=1))))
    values = graph.add("MatMul", graph.add("Exp", logs), graph.constant(form["coef"].T))
    return graph.add("Add", values, graph.constant(form["intercept"]))
