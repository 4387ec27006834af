"""The gates of the mixtures, and the models made of densities, as ONNX nodes in double precision."""

import numpy as np

LARGEST_EXPONENT = 700.0


def softmax_tree(graph, gate, rows):
    """Weights of the leaves: softmaxes among siblings, multiplied down the tree."""
    _, plane, offset, origin, log_prior, parent, leaf, inside = gate.core_arguments()
    z = graph.add("Sub", graph.cast(rows, np.float64), graph.constant(origin))
    logits = graph.add("MatMul", z, graph.constant(plane.T))
    logits = graph.add("Add", logits, graph.constant(offset + log_prior if inside else offset))
    groups = []
    first_of = {}
    for first in np.flatnonzero(np.diff(parent, prepend=-2)):
        nodes = np.flatnonzero(parent == parent[first])
        share = graph.add("Softmax", graph.add("Gather", logits, graph.integers(nodes), axis=1), axis=1)
        if not inside:
            share = graph.add("Mul", share, graph.constant(np.exp(log_prior[nodes])))
        if parent[first] >= 0:
            group, place = first_of[int(parent[first])]
            share = graph.add("Mul", share, graph.add("Gather", group, graph.integers([place]), axis=1))
        first_of.update({int(node): (share, place) for place, node in enumerate(nodes)})
        groups.append(share)
    every = groups[0] if len(groups) == 1 else graph.add("Concat", *groups, axis=1)
    return graph.add("Gather", every, graph.integers(leaf), axis=1)


def gaussian(graph, gate, rows):
    """The posterior of a mixture of Gaussians."""
    _, covariance, means, factors, log_weight = gate.core_arguments()
    return graph.add("Softmax", log_joint(graph, rows, covariance, means, factors, log_weight), axis=1)


def log_joint(graph, rows, covariance, means, factors, log_weight):
    """log_weight_j - |F_j^T (x - mu_j)|^2 / 2, of shape (n, n_densities)."""
    n, d = means.shape
    origin = means.mean(axis=0)
    moved = means - origin
    z = graph.add("Sub", graph.cast(rows, np.float64), graph.constant(origin))
    if covariance == "full":
        factors = factors.reshape(n, d, d)
        flat = np.swapaxes(factors, 0, 1).reshape(d, n * d)
        white = graph.add("MatMul", z, graph.constant(flat))
        white = graph.add("Sub", white, graph.constant(np.einsum("jf,jfq->jq", moved, factors).reshape(1, -1)))
        white = graph.add("Reshape", white, graph.integers([-1, n, d]))
    else:
        away = graph.add("Sub", graph.unsqueeze(z, 1), graph.constant(moved[None]))
        white = graph.add("Mul", away, graph.constant(factors.reshape(1, n, -1)))
    squared = graph.add("ReduceSum", graph.add("Mul", white, white), graph.integers([2]), keepdims=0)
    return graph.add(
        "Add", graph.add("Mul", squared, graph.constant(-0.5)), graph.constant(np.maximum(log_weight, -1e300))
    )


def class_log_joint(graph, mixture, rows):
    """log p(k) p(x|k) of a `GaussianMixtureClassifier`, of shape (n, n_classes)."""
    densities = mixture._densities
    terms = log_joint(graph, rows, *densities.gaussians())
    columns = []
    for k in range(densities.n_classes):
        mine = graph.add("Gather", terms, graph.integers(np.flatnonzero(densities.owner == k)), axis=1)
        top = graph.add("ReduceMax", mine, axes=[1], keepdims=1)
        total = graph.sum(graph.add("Exp", graph.add("Sub", mine, top)), 1)
        columns.append(graph.add("Add", top, graph.add("Log", total)))
    return graph.add("Concat", *columns, axis=1)


def gaussian_mixture(graph, model, rows):
    """Place of the winner, probabilities and scores, in double precision."""
    joint = class_log_joint(graph, model, rows)
    scores = joint if len(model.classes_) > 2 else _difference(graph, joint)
    return graph.add("ArgMax", joint, axis=1, keepdims=0), graph.add("Softmax", joint, axis=1), scores


def fused(graph, model, rows):
    """The same of a `FusedSVC`, without probabilities."""
    from svmosaic import mixture_to_svm

    weight, blend, two = float(model.weight_), model._blend, len(model.classes_) == 2
    scores = None
    if weight > 0:
        scores = _kernels(graph, mixture_to_svm(blend.svm), rows)
    if weight < 1:
        joint = class_log_joint(graph, blend.mixture, rows)
        if weight > 0:
            top = graph.add("ReduceMax", joint, axes=[1], keepdims=1)
            height = graph.add("Add", top, graph.constant(blend.log_ratio))
            height = graph.add("Exp", graph.add("Min", height, graph.constant(LARGEST_EXPONENT)))
            joint = graph.add("Mul", graph.add("Exp", graph.add("Sub", joint, top)), height)
        densities = _difference(graph, joint) if two else joint
        scores = densities if scores is None else _blended(graph, weight, scores, densities)
    if two:
        positive = graph.cast(graph.add("Greater", scores, graph.constant(0.0)), np.int64)
        return graph.add("Squeeze", positive, graph.integers([1])), None, scores
    return graph.add("ArgMax", scores, axis=1, keepdims=0), None, scores


def _blended(graph, weight, first, second):
    return graph.add(
        "Add", graph.add("Mul", first, graph.constant(weight)), graph.add("Mul", second, graph.constant(1 - weight))
    )


def _difference(graph, joint):
    """The second column less the first, of shape (n, 1)."""
    second, first = (graph.add("Gather", joint, graph.integers([k]), axis=1) for k in (1, 0))
    return graph.add("Sub", second, first)


def _kernels(graph, svm, rows):
    """sum_i a_ci exp(-gamma_i |x - v_i|^2) + b_c"""
    # The fused SVM comes from an RBF machine on the rows as they are, so there is no linear map in front of it.
    origin = svm.centers.mean(axis=0)
    moved, gamma = svm.centers - origin, svm.gamma
    z = graph.add("Sub", graph.cast(rows, np.float64), graph.constant(origin))
    products = graph.add("MatMul", z, graph.constant((2.0 * gamma[:, None] * moved).T))
    norm = graph.add("MatMul", graph.sum(graph.add("Mul", z, z), 1), graph.constant(gamma[None]))
    logs = graph.add("Sub", products, graph.add("Add", norm, graph.constant(gamma * (moved * moved).sum(axis=1))))
    values = graph.add("MatMul", graph.add("Exp", logs), graph.constant(svm.dual_coef_.T))
    return graph.add("Add", values, graph.constant(svm.intercept_))
