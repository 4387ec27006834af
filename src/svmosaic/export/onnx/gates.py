"""Gates as nodes: each function gives the weights of all tiles as doubles, (n, n_tiles), or None for a single tile."""

import numpy as np
from onnx import numpy_helper

from svmosaic.export.onnx.densities import log_joint
from svmosaic.export.onnx.preparation import write_affine, write_ramps
from svmosaic.export.preparation import Affine
from svmosaic.gates.trees import rounded_down
from svmosaic.maps.ramps import Ramps


def _single_cell(target, arguments, rows):
    return None


def _distance(target, arguments, rows):
    coding, centers, width, scale, log_prior, factor = arguments
    graph, n_tiles = target.graph, len(centers)
    # As in the core: rows and centers in their own precision, measured from the mean of the centers.
    mean = centers.mean(axis=0).astype(graph.dtype)
    shifted = (centers.astype(graph.dtype) - mean).astype(np.float64)
    squared_norms = (shifted**2).sum(axis=1)
    z = graph.cast(graph.add("Sub", rows, graph.constant(mean, graph.dtype)), np.float64)
    products = graph.add("MatMul", z, graph.constant(shifted.T))
    closeness = graph.add("Sub", products, graph.constant(0.5 * squared_norms))
    chosen = None
    if width < n_tiles:
        closest, chosen = graph.add("TopK", closeness, graph.integers([width]), n_outputs=2, axis=1)
    else:
        closest = closeness

    def of_chosen(table):
        """The entries of a table with one number per tile."""
        table = graph.constant(table)
        return table if chosen is None else graph.add("Gather", table, chosen, axis=0)

    if coding == "nearest":
        weight = graph.ones_like(closest)
    elif coding == "inverse":
        weight = _inverse(graph, z, closest)
    elif coding == "softmax":
        logits = graph.add("Mul", closest, graph.constant(2.0 * scale))
        if log_prior is not None:
            logits = graph.add("Add", logits, of_chosen(np.maximum(log_prior, -1e300)))
        weight = graph.add("Softmax", logits, axis=1)
    elif coding in ("llc", "lle"):
        weight = _reconstruction(graph, z, closest, chosen, of_chosen, shifted, width, scale, coding == "llc")
    elif coding == "kernel":
        weight = graph.add("Exp", graph.add("Mul", _squared_distances(graph, z, closest), graph.constant(-scale)))
    else:
        raise target.error(f"the coding {coding!r} cannot be written as ONNX")
    if coding != "kernel":
        weight = graph.add("Div", weight, graph.sum(weight, 1))
    if factor is not None:
        weight = graph.add("Mul", weight, of_chosen(factor))
    if chosen is None:
        return weight
    zero = numpy_helper.from_array(np.zeros(1), "zero")
    zeros = graph.add("ConstantOfShape", graph.add("Shape", closeness), value=zero)
    return graph.add("ScatterElements", zeros, chosen, weight, axis=1)


def _squared_distances(graph, z, closest):
    norm = graph.sum(graph.add("Mul", z, z), 1)
    return graph.relu(graph.add("Sub", norm, graph.add("Mul", closest, graph.constant(2.0))))


def _inverse(graph, z, closest):
    squared, zero = _squared_distances(graph, z, closest), graph.constant(0.0)
    nearest = graph.reduce("ReduceMin", squared, 1)
    ratio = graph.add("Sqrt", graph.add("Div", nearest, squared))
    on_center = graph.cast(graph.add("LessOrEqual", squared, zero), np.float64)
    return graph.add("Where", graph.add("Greater", nearest, zero), ratio, on_center)


def _reconstruction(graph, z, closest, chosen, of_chosen, centers, width, scale, local):
    n_tiles = len(centers)
    squared, zero = _squared_distances(graph, z, closest), graph.constant(0.0)
    # All in units of the mean squared distance: then pivots are of the order of one, however far the row.
    mean = graph.reduce("ReduceMean", squared, 1)
    away = graph.add("Greater", mean, zero)
    unit = graph.add("Where", away, mean, graph.constant(1.0))
    ridge = graph.add("Mul", graph.ones_like(squared), graph.constant(scale))
    if local:
        farthest = graph.reduce("ReduceMax", squared, 1)
        share = graph.add("Sqrt", graph.add("Div", squared, farthest))
        locality = graph.add("Exp", graph.add("Sub", share, graph.constant(1.0)))
        ridge = graph.add("Mul", ridge, graph.add("Mul", locality, locality))
    ridge = graph.add("Where", away, ridge, graph.constant(1e-12))
    # <z - c_a, z - c_b> = |z|^2 - <z, c_a> - <z, c_b> + <c_a, c_b>
    products = graph.add("Add", closest, of_chosen(0.5 * (centers**2).sum(axis=1)))
    inner = graph.constant((centers @ centers.T)[None] if chosen is None else (centers @ centers.T).ravel())
    if chosen is not None:
        row = graph.add("Mul", graph.unsqueeze(chosen, 2), graph.integers(n_tiles))
        inner = graph.add("Gather", inner, graph.add("Add", row, graph.unsqueeze(chosen, 1)), axis=0)
    norm = graph.unsqueeze(graph.sum(graph.add("Mul", z, z), 1), 2)
    system = graph.add("Sub", norm, graph.unsqueeze(products, 2))
    system = graph.add("Add", graph.add("Sub", system, graph.unsqueeze(products, 1)), inner)
    diagonal = graph.add("Mul", graph.unsqueeze(ridge, 2), graph.constant(np.eye(width)[None]))
    system = graph.add("Add", graph.add("Div", system, graph.unsqueeze(unit, 2)), diagonal)
    # Gauss-Jordan on (system, 1): each step clears a column but for a one in its own row. The matrix is positive
    # definite, so no pivoting.
    system = graph.add("Concat", system, graph.unsqueeze(graph.ones_like(squared), 2), axis=2)
    for k in range(width):
        place = graph.integers([k])
        line = graph.add("Gather", system, place, axis=1)
        line = graph.add("Div", line, graph.add("Gather", line, place, axis=2))
        column = graph.add("Gather", system, place, axis=2)
        column = graph.add("Sub", column, graph.constant(np.eye(width)[None, :, k : k + 1]))
        system = graph.add("Sub", system, graph.add("Mul", column, line))
    return graph.add("Gather", system, graph.integers(width), axis=2)


def _projected(target, arguments, rows):
    projection, inner = arguments
    graph = target.graph
    projection = np.ascontiguousarray(projection.T, dtype=graph.dtype)
    return target.core_form(inner, graph.add("MatMul", rows, graph.constant(projection, graph.dtype)))


def _curved(target, arguments, rows):
    center, scale, column, start, knot, _, projection, inner = arguments
    graph, ramps = target.graph, Ramps.of(projection, center, scale, column, start, knot)
    coef = graph.constant(np.ascontiguousarray(ramps.coef.T), graph.dtype)
    return target.core_form(inner, graph.add("MatMul", write_ramps(graph, rows, ramps), coef))


def _scaled(target, arguments, rows):
    center, factor, inner = arguments
    step = Affine.of(len(factor), center=0.0 if center is None else center, factor=factor)
    return target.core_form(inner, write_affine(target.graph, rows, step))


def _several(target, arguments, rows):
    forms, factors = arguments
    graph, weights = target.graph, []
    for form, factor in zip(forms, factors, strict=True):
        weight = target.core_form(form, rows)
        if weight is None:
            weight = graph.ones_like(graph.sum(graph.cast(rows, np.float64), 1))
        weights.append(graph.add("Mul", weight, graph.constant(factor)))
    return graph.concat(weights)


def _softmax_tree(target, arguments, rows):
    """Softmaxes among siblings, multiplied down the tree."""
    plane, offset, origin, log_prior, parent, leaf, inside = arguments
    graph = target.graph
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
    return graph.add("Gather", graph.concat(groups), graph.integers(leaf), axis=1)


def _gaussian(target, arguments, rows):
    """The posterior of a mixture of Gaussians."""
    return target.graph.add("Softmax", log_joint(target.graph, rows, *arguments), axis=1)


def _split_tree(target, arguments, rows):
    """One in the column of the leaf of each row; None for a single leaf."""
    (splits,) = arguments
    if len(splits) == 0:
        return None
    graph, asked = target.graph, paths(len(splits) + 1)
    theta = np.ascontiguousarray(splits[:, :-1].T)
    margins = graph.add("MatMul", rows, graph.constant(theta, graph.dtype))
    margins = graph.add("Add", margins, graph.constant(splits[:, -1], graph.dtype))
    right = graph.cast(graph.add("Greater", margins, graph.constant(np.zeros(1), graph.dtype)), np.float64)
    turned = graph.add("Sub", graph.add("Mul", right, graph.constant(2.0)), graph.constant(1.0))
    agreed = graph.add("MatMul", turned, graph.constant(asked))
    # A row is in the leaf all of whose nodes it agrees with.
    return graph.cast(graph.add("Greater", agreed, graph.constant(np.abs(asked).sum(axis=0) - 0.5)), np.float64)


def _rules(target, arguments, rows):
    """Ones in the columns of the leaves of each row: all trees are walked down in step, to the deepest leaf."""
    feature, threshold, left, roots, n_tiles, _ = arguments
    graph, leaf = target.graph, feature < 0
    # A leaf sends a row to itself: nothing is above its threshold.
    asked = graph.integers(np.where(leaf, 0, feature))
    cut = graph.constant(np.where(leaf, np.inf, rounded_down(threshold, graph.dtype)), graph.dtype)
    child = graph.integers(np.where(leaf, np.arange(len(feature)), left))
    n_rows = graph.add("Slice", graph.add("Shape", rows), graph.integers([0]), graph.integers([1]))
    each_tree = graph.concat([n_rows, graph.integers([len(roots)])], axis=0)
    node = graph.add("Expand", graph.integers(roots[None]), each_tree)
    for _ in range(tree_depth(feature, left)):
        value = graph.add("GatherElements", rows, graph.add("Gather", asked, node, axis=0), axis=1)
        right = graph.cast(graph.add("Greater", value, graph.add("Gather", cut, node, axis=0)), np.int64)
        node = graph.add("Add", graph.add("Gather", child, node, axis=0), right)
    tile = graph.add("Gather", graph.integers(np.where(leaf, left, 0)), node, axis=0)
    none = numpy_helper.from_array(np.zeros(1), "none")
    nowhere = graph.add("ConstantOfShape", graph.concat([n_rows, graph.integers([n_tiles])], axis=0), value=none)
    return graph.add("ScatterElements", nowhere, tile, graph.add("Expand", graph.constant(1.0), each_tree), axis=1)


def tree_depth(feature, left) -> int:
    """Steps from a root to the deepest leaf; children come after their parents."""
    level = np.zeros(len(feature), dtype=np.int64)
    for node in np.flatnonzero(feature >= 0):
        level[left[node] : left[node] + 2] = level[node] + 1
    return int(level.max())


def paths(n_leaves):
    """The path to each leaf, of shape (n_leaves - 1, n_leaves): at inner nodes 1 right, -1 left, 0 not on the path."""
    asked = np.zeros((n_leaves - 1, n_leaves))
    for leaf in range(n_leaves):
        child = n_leaves - 1 + leaf
        while child > 0:
            parent = (child - 1) // 2
            asked[parent, leaf] = 1 if child == 2 * parent + 2 else -1
            child = parent
    return asked


GATES = {
    "SingleCell": _single_cell,
    "DistanceGate": _distance,
    "ProjectedGate": _projected,
    "CurvedGate": _curved,
    "SoftmaxGate": _softmax_tree,
    "GaussianGate": _gaussian,
    "SplitTreeGate": _split_tree,
    "RuleGate": _rules,
    "ScaledGate": _scaled,
    "SeveralGates": _several,
}
