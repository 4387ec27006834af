"""A tree of splits for the exporters: its text in C, and its paths as a matrix for graphs without loops."""

import numpy as np

_CHOOSE = """#define WIDTH 1

@SPLITS@
/* Inner nodes and leaves are numbered as in a heap. */
static void choose(const float *x, int *tile, double *weight) {
  long node = 0;
  while (node < TILES - 1) {
    const float *theta = splits + node * (FEATURES + 1);
    node = 2 * node + (dot(x, theta, FEATURES) + theta[FEATURES] > 0 ? 2 : 1);
  }
  tile[0] = (int)(node - (TILES - 1));
  weight[0] = 1;
}
"""


def choice_in_c(gate, array) -> str:
    """The function `choose` for a `TreeGate`; `array(name, values)` writes a table."""
    # A tree of one leaf asks nothing, but C has no empty tables.
    splits = gate.splits if len(gate.splits) else np.zeros((1, 1))
    return _CHOOSE.replace("@SPLITS@", array("splits", splits))


def paths(n_leaves):
    """What each leaf asks of the inner nodes, of shape (n_leaves - 1, n_leaves): 1 right, -1 left, 0 nothing."""
    asked = np.zeros((n_leaves - 1, n_leaves))
    for leaf in range(n_leaves):
        child = n_leaves - 1 + leaf
        while child > 0:
            parent = (child - 1) // 2
            asked[parent, leaf] = 1 if child == 2 * parent + 2 else -1
            child = parent
    return asked


def leaves_in_graph(graph, gate, rows):
    """One in the column of the leaf of each row, in double precision; None for a single leaf."""
    if gate.n_tiles == 1:
        return None
    asked = paths(gate.n_tiles)
    dtype = graph.dtype
    theta = np.ascontiguousarray(gate.splits[:, :-1].T, dtype=dtype)
    margins = graph.add("MatMul", rows, graph.constant(theta, dtype))
    margins = graph.add("Add", margins, graph.constant(np.ascontiguousarray(gate.splits[:, -1]), dtype))
    right = graph.cast(graph.add("Greater", margins, graph.constant(np.zeros(1), dtype)), np.float64)
    turned = graph.add("Sub", graph.add("Mul", right, graph.constant(2.0)), graph.constant(1.0))
    agreed = graph.add("MatMul", turned, graph.constant(asked))
    # A row is in the leaf all of whose nodes it agrees with.
    return graph.cast(graph.add("Greater", agreed, graph.constant(np.abs(asked).sum(axis=0) - 0.5)), np.float64)
