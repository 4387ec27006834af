"""Gates as nodes: each function gives the weights of all tiles as doubles, (n, n_tiles), or None for a single tile.

Its arguments are the graph, the gate as `svmosaic.export.description` describes it, and the rows.
"""

import numpy as np
from onnx import numpy_helper

from svmosaic.export.onnx.densities import log_joint
from svmosaic.export.onnx.preparation import write_affine, write_ramps
from svmosaic.gates.trees import rounded_down
from svmosaic.maps.ramps import Ramps


def write_gate(graph, gate, rows):
    """The weights of the tiles of a gate."""
    return GATES[gate["kind"]](graph, gate, rows)


def _distance(graph, gate, rows):
    coding, centers, width, scale, factor = (gate[key] for key in ("coding", "centers", "width", "scale", "factor"))
    n_tiles = len(centers)
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
        squared, zero = _squared_distances(graph, z, closest), graph.constant(0.0)
        nearest = graph.reduce("ReduceMin", squared, 1)
        ratio = graph.add("Sqrt", graph.add("Div", nearest, squared))
        on_center = graph.cast(graph.add("LessOrEqual", squared, zero), np.float64)
        weight = graph.add("Where", graph.add("Greater", nearest, zero), ratio, on_center)
    elif coding == "softmax":
        logits = graph.add("Mul", closest, graph.constant(2.0 * scale))
        if gate["log_prior"] is not None:
            logits = graph.add("Add", logits, of_chosen(np.maximum(gate["log_prior"], -1e300)))
        weight = graph.add("Softmax", logits, axis=1)
    elif coding == "kernel":
        weight = graph.add("Exp", graph.add("Mul", _squared_distances(graph, z, closest), graph.constant(-scale)))
    else:
        weight = _reconstruction(graph, z, closest, chosen, of_chosen, shifted, width, scale, coding == "llc")
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
    return graph.add("Relu", graph.add("Sub", norm, graph.add("Mul", closest, graph.constant(2.0))))


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


def _behind(graph, gate, rows):
    """A gate that sees rows scaled, projected, or projected by curves."""
    if gate["kind"] == "ScaledGate":
        return write_gate(graph, gate["inner"], write_affine(graph, rows, gate["center"], gate["factor"]))
    projection = gate["projection"]
    if gate["kind"] == "CurvedGate":
        ramps = Ramps.of(projection, *(gate[key] for key in ("center", "scale", "column", "start", "knot")))
        projection, rows = ramps.coef, write_ramps(graph, rows, ramps)
    coef = graph.constant(np.ascontiguousarray(projection.T, dtype=graph.dtype), graph.dtype)
    return write_gate(graph, gate["inner"], graph.add("MatMul", rows, coef))


def _several(graph, gate, rows):
    weights = []
    for inner, factor in zip(gate["gates"], gate["factors"], strict=True):
        weight = write_gate(graph, inner, rows)
        if weight is None:
            weight = graph.ones_like(graph.sum(graph.cast(rows, np.float64), 1))
        weights.append(graph.add("Mul", weight, graph.constant(factor)))
    return graph.concat(weights)


def _softmax_tree(graph, gate, rows):
    """Softmaxes among siblings, multiplied down the tree."""
    offset, log_prior, parent, inside = (gate[key] for key in ("offset", "log_prior", "parent", "inside"))
    z = graph.add("Sub", graph.cast(rows, np.float64), graph.constant(gate["origin"]))
    logits = graph.add("MatMul", z, graph.constant(gate["plane"].T))
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
    return graph.add("Gather", graph.concat(groups), graph.integers(gate["leaf"]), axis=1)


def _rules(graph, gate, rows):
    """Ones in the columns of the leaves of each row: all trees are walked down in step, to the deepest leaf."""
    feature, threshold, left, roots = (gate[key] for key in ("feature", "threshold", "left", "roots"))
    n_tiles, leaf = gate["n_tiles"], feature < 0
    # A leaf sends a row to itself: nothing is above its threshold.
    asked = graph.integers(np.where(leaf, 0, feature))
    cut = graph.constant(np.where(leaf, np.inf, rounded_down(threshold, graph.dtype)), graph.dtype)
    child = graph.integers(np.where(leaf, np.arange(len(feature)), left))
    n_rows = graph.add("Slice", graph.add("Shape", rows), graph.integers([0]), graph.integers([1]))
    each_tree = graph.concat([n_rows, graph.integers([len(roots)])], axis=0)
    node = graph.add("Expand", graph.integers(roots[None]), each_tree)
    level = np.zeros(len(feature), dtype=np.int64)  # steps from the root; children come after their parents
    for parent in np.flatnonzero(~leaf):
        level[left[parent] : left[parent] + 2] = level[parent] + 1
    for _ in range(level.max()):
        value = graph.add("GatherElements", rows, graph.add("Gather", asked, node, axis=0), axis=1)
        right = graph.cast(graph.add("Greater", value, graph.add("Gather", cut, node, axis=0)), np.int64)
        node = graph.add("Add", graph.add("Gather", child, node, axis=0), right)
    tile = graph.add("Gather", graph.integers(np.where(leaf, left, 0)), node, axis=0)
    none = numpy_helper.from_array(np.zeros(1), "none")
    nowhere = graph.add("ConstantOfShape", graph.concat([n_rows, graph.integers([n_tiles])], axis=0), value=none)
    return graph.add("ScatterElements", nowhere, tile, graph.add("Expand", graph.constant(1.0), each_tree), axis=1)


GATES = {
    "SingleCell": lambda *_: None,
    "DistanceGate": _distance,
    "ProjectedGate": _behind,
    "CurvedGate": _behind,
    "SoftmaxGate": _softmax_tree,
    "GaussianGate": lambda graph, gate, rows: graph.add("Softmax", log_joint(graph, gate, rows), axis=1),
    "RuleGate": _rules,
    "ScaledGate": _behind,
    "SeveralGates": _several,
}
