"""Gates as C: each function gives constants and `static void choose(const float *x, int *tile, double *weight)`.

The rows of a gate are the macro that holds their number of features.
"""

import numpy as np

from svmosaic.export.c.curves import curves
from svmosaic.export.c.densities import log_joint
from svmosaic.export.c.tables import array, inside, number
from svmosaic.gates.trees import rounded_down


def _single_cell(target, arguments, rows):
    return _ONLY


def _distance(target, arguments, rows):
    coding, centers, width, scale, log_prior, factor = arguments
    if coding not in _WEIGHTS:
        raise target.error(f"the coding {coding!r} cannot be written as C")
    # As in the core: measured from the mean of the centers, in float32 throughout.
    mean = centers.mean(axis=0).astype(np.float32)
    shifted = centers.astype(np.float32) - mean
    parts = [f"#define WIDTH {width}\n", array("mean", mean), array("centers", shifted)]
    if width < len(centers):
        parts.append(array("half_norms", 0.5 * (shifted.astype(np.float64) ** 2).sum(axis=1)))
    if coding == "softmax":
        log_prior = np.zeros(len(centers)) if log_prior is None else np.maximum(log_prior, -1e300)
        parts.append(array("log_prior", log_prior, "double"))
    if factor is not None:
        parts.append(array("factor", factor, "double"))
    locality = _LOCALITY if coding == "llc" else ""
    weights = _WEIGHTS[coding].replace("@SCALE@", number(repr(float(scale)))).replace("@LOCALITY@", locality)
    steps = ("" if coding == "kernel" else _NORMALIZE) + ("" if factor is None else _MULTIPLY)
    parts += [_NEAREST, weights + _CHOOSE.replace("@STEPS@", steps)]
    return "\n".join(parts).replace("FEATURES", rows)


def _projected(target, arguments, rows):
    projection, inner = arguments
    text = inside(target.core_form(inner, "COMPONENTS"), "inner")
    table = array("projection", projection)
    wrapped = _PROJECT.replace("FEATURES", rows)
    return f"#define COMPONENTS {len(projection)}\n#define WIDTH WIDTH_inner\n\n{table}\n{text}{wrapped}"


def _curved(target, arguments, rows):
    center, scale, column, start, knot, _, projection, inner = arguments
    bend = inside(curves(center, scale, column, start, knot), "gate")
    text = inside(target.core_form(inner, "COMPONENTS"), "inner")
    table = array("projection", projection[:, :-1])  # without the values of a row of zeros
    sizes = f"#define COMPONENTS {len(projection)}\n#define WIDTH WIDTH_inner\n"
    return "\n".join([sizes, bend, table, text + _PROJECT_CURVES])


def _scaled(target, arguments, rows):
    center, factor, inner = arguments
    text = inside(target.core_form(inner, rows), "inner")
    tables = array("origin", np.zeros_like(factor) if center is None else center) + "\n" + array("unit", factor)
    return f"#define WIDTH WIDTH_inner\n\n{tables}\n{text}{_SCALE.replace('FEATURES', rows)}"


def _several(target, arguments, rows):
    forms, factors = arguments
    parts, calls, widths, first = [], [], [], 0
    for k, (form, factor) in enumerate(zip(forms, factors, strict=True)):
        n_tiles = _n_tiles(form)
        parts.append(f"#define TILES_{k} {n_tiles}\n{inside(target.core_form(form, rows), k, 'TILES')}")
        part = _PART.replace("@START@", " + ".join(widths) or "0").replace("@FIRST@", str(first))
        calls.append(part.replace("@K@", str(k)).replace("@FACTOR@", number(repr(float(factor)))))
        widths.append(f"WIDTH_{k}")
        first += n_tiles
    together = _TOGETHER.replace("@PARTS@", "".join(calls))
    return "\n".join([*parts, f"#define WIDTH ({' + '.join(widths)})\n", together])


def _n_tiles(form) -> int:
    if form is None:
        return 1
    kind, *made_of = form
    counts = {
        "DistanceGate": lambda: len(made_of[1]),
        "SoftmaxGate": lambda: len(made_of[5]),
        "GaussianGate": lambda: len(made_of[1]),
        "SplitTreeGate": lambda: len(made_of[0]) + 1,
        "RuleGate": lambda: made_of[4],
        "ProjectedGate": lambda: _n_tiles(made_of[1]),
        "CurvedGate": lambda: _n_tiles(made_of[7]),
        "ScaledGate": lambda: _n_tiles(made_of[2]),
        "SeveralGates": lambda: sum(_n_tiles(inner) for inner in made_of[0]),
    }
    return counts[kind]()


def _softmax_tree(target, arguments, rows):
    """Softmaxes among siblings, multiplied down a tree. In double but for expf."""
    plane, offset, origin, log_prior, parent, leaf, inside = arguments
    parts = [
        f"#define WIDTH TILES\n#define NODES {len(parent)}\n",
        array("origin", origin, "double"),
        array("plane", plane, "double"),
        array("node_offset", offset + log_prior if inside else offset, "double"),
        array("outside", np.ones(len(parent)) if inside else np.exp(log_prior), "double"),
        array("parent", parent, "int"),
        array("leaf", leaf, "int"),
        _TREE + _SETTLE,
    ]
    return "\n".join(parts).replace("FEATURES", rows)


def _gaussian(target, arguments, rows):
    """The posterior of a mixture of Gaussians. In double but for expf."""
    return f"#define WIDTH TILES\n\n{log_joint(*arguments)}{_POSTERIOR}{_SETTLE}".replace("FEATURES", rows)


def _split_tree(target, arguments, rows):
    (splits,) = arguments
    # A tree of one leaf asks nothing, but C has no empty tables.
    return _LEAF.replace("@SPLITS@", array("splits", splits if len(splits) else np.zeros((1, 1)))).replace(
        "FEATURES", rows
    )


def _rules(target, arguments, rows):
    feature, threshold, left, roots, _, _ = arguments
    tables = [
        array("asked", feature, "int"), array("threshold", rounded_down(threshold, np.float32)),
        array("left", left, "int"), array("root", roots, "int"),
    ]  # fmt: skip
    return f"#define WIDTH {len(roots)}\n\n" + "\n".join(tables) + _RULES


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

# ---- the text ----------------------------------------------------------------------------------------------------

_ONLY = """#define WIDTH 1

static void choose(const float *x, int *tile, double *weight) {
  (void)x;
  tile[0] = 0;
  weight[0] = 1;
}
"""

_NEAREST = """/* The WIDTH centers nearest to z, best first; of equals, the first. */
static void nearest(const float *z, int *tile) {
#if WIDTH == TILES
  (void)z;
  for (int j = 0; j < TILES; ++j) tile[j] = j;
#else
  float closeness[WIDTH];
  int n = 0;
  for (int j = 0; j < TILES; ++j) {
    const float close = dot(z, centers + (long)j * FEATURES, FEATURES) - half_norms[j];
    int at;
    if (n == WIDTH && !(close > closeness[WIDTH - 1])) continue;
    at = n < WIDTH ? n++ : WIDTH - 1;
    for (; at > 0 && close > closeness[at - 1]; --at) {
      closeness[at] = closeness[at - 1];
      tile[at] = tile[at - 1];
    }
    closeness[at] = close;
    tile[at] = j;
  }
#endif
}
"""

_WEIGHTS = {
    "nearest": """static void weigh(const float *z, const int *tile, double *weight) {
  (void)z;
  (void)tile;
  weight[0] = 1;
}
""",
    "softmax": """static void weigh(const float *z, const int *tile, double *weight) {
  const float *from = centers + (long)tile[0] * FEATURES;
  double largest = 0;
  for (int a = 0; a < WIDTH; ++a) {
    /* |z - c|^2 less that of the first center, which keeps its digits far from all of them */
    const float *c = centers + (long)tile[a] * FEATURES;
    double beyond = 0;
    for (int f = 0; f < FEATURES; ++f)
      beyond += (((double)z[f] - from[f]) + ((double)z[f] - c[f])) * ((double)from[f] - c[f]);
    weight[a] = log_prior[tile[a]] - @SCALE@ * beyond;
    if (a == 0 || weight[a] > largest) largest = weight[a];
  }
  for (int a = 0; a < WIDTH; ++a) weight[a] = expf((float)(weight[a] - largest));
}
""",
    "inverse": """static void weigh(const float *z, const int *tile, double *weight) {
  double smallest = 0;
  for (int a = 0; a < WIDTH; ++a) {
    const float *c = centers + (long)tile[a] * FEATURES;
    weight[a] = 0;
    for (int f = 0; f < FEATURES; ++f) weight[a] += ((double)z[f] - c[f]) * ((double)z[f] - c[f]);
    if (a == 0 || weight[a] < smallest) smallest = weight[a];
  }
  /* on a center it takes all; ties share */
  for (int a = 0; a < WIDTH; ++a)
    weight[a] = smallest > 0 ? sqrtf((float)(smallest / weight[a])) : (weight[a] > 0 ? 0.0 : 1.0);
}
""",
}
_WEIGHTS["kernel"] = """static void weigh(const float *z, const int *tile, double *weight) {
  for (int a = 0; a < WIDTH; ++a) {
    const float *c = centers + (long)tile[a] * FEATURES;
    double squared = 0;
    for (int f = 0; f < FEATURES; ++f) squared += ((double)z[f] - c[f]) * ((double)z[f] - c[f]);
    weight[a] = expf((float)(-@SCALE@ * squared));
  }
}
"""
_WEIGHTS["llc"] = _WEIGHTS[
    "lle"
] = """/* The weights that rebuild z from its centers: (D D^T + ridge) w = 1, by elimination. */
static void weigh(const float *z, const int *tile, double *weight) {
  double system[WIDTH][WIDTH];
  double average = 0, farthest = 0;
  for (int a = 0; a < WIDTH; ++a) {
    const float *p = centers + (long)tile[a] * FEATURES;
    for (int b = 0; b <= a; ++b) {
      const float *q = centers + (long)tile[b] * FEATURES;
      double sum = 0;
      for (int f = 0; f < FEATURES; ++f) sum += ((double)z[f] - p[f]) * ((double)z[f] - q[f]);
      system[a][b] = system[b][a] = sum;
    }
    average += system[a][a] / WIDTH;
    if (system[a][a] > farthest) farthest = system[a][a];
  }
  for (int a = 0; a < WIDTH; ++a) {
    double ridge = @SCALE@ * average;
@LOCALITY@    system[a][a] += ridge > 0 ? ridge : 1e-12;
    weight[a] = 1;
  }
  for (int k = 0; k < WIDTH; ++k)
    for (int a = k + 1; a < WIDTH; ++a) {
      const double share = system[a][k] / system[k][k];
      for (int b = k; b < WIDTH; ++b) system[a][b] -= share * system[k][b];
      weight[a] -= share * weight[k];
    }
  for (int k = WIDTH - 1; k >= 0; --k) {
    for (int b = k + 1; b < WIDTH; ++b) weight[k] -= system[k][b] * weight[b];
    weight[k] /= system[k][k];
  }
}
"""
_LOCALITY = """    if (farthest > 0) {
      const double locality = expf(sqrtf((float)(system[a][a] / farthest)) - 1);
      ridge *= locality * locality;
    }
"""

_CHOOSE = """
static void choose(const float *x, int *tile, double *weight) {
  float z[FEATURES];
  for (int f = 0; f < FEATURES; ++f) z[f] = x[f] - mean[f];
  nearest(z, tile);
  weigh(z, tile, weight);
@STEPS@}
"""
_NORMALIZE = """  double total = 0;
  for (int a = 0; a < WIDTH; ++a) total += weight[a];
  for (int a = 0; a < WIDTH; ++a) weight[a] /= total;
"""
_MULTIPLY = "  for (int a = 0; a < WIDTH; ++a) weight[a] *= factor[tile[a]];\n"

_PROJECT = """
static void choose(const float *x, int *tile, double *weight) {
  float z[COMPONENTS];
  for (int q = 0; q < COMPONENTS; ++q) z[q] = dot(x, projection + (long)q * FEATURES, FEATURES);
  choose_inner(z, tile, weight);
}
"""

_PROJECT_CURVES = """
static void choose(const float *x, int *tile, double *weight) {
  float z[COMPONENTS];
  Bent_gate b;
  bend_gate(x, &b);
  for (int q = 0; q < COMPONENTS; ++q) z[q] = bent_gate(&b, projection + (long)q * VALUES_gate);
  choose_inner(z, tile, weight);
}
"""

_SCALE = """
static void choose(const float *x, int *tile, double *weight) {
  float z[FEATURES];
  for (int f = 0; f < FEATURES; ++f) z[f] = (x[f] - origin[f]) * unit[f];
  choose_inner(z, tile, weight);
}
"""

_TOGETHER = """/* The tiles of all gates, one gate after another. */
static void choose(const float *x, int *tile, double *weight) {
@PARTS@}
"""

_PART = """  choose_@K@(x, tile + (@START@), weight + (@START@));
  for (int a = (@START@); a < (@START@) + WIDTH_@K@; ++a) {
    tile[a] += @FIRST@;
    weight[a] *= @FACTOR@;
  }
"""

_TREE = """static void weigh_tiles(const float *x, double *weight) {
  double node[NODES];
  int first, end;
  for (int a = 0; a < NODES; ++a) {
    node[a] = node_offset[a];
    for (int f = 0; f < FEATURES; ++f) node[a] += plane[(long)a * FEATURES + f] * ((double)x[f] - origin[f]);
  }
  for (first = 0; first < NODES; first = end) {
    double top = node[first], total = 0, above = 1;
    for (end = first; end < NODES && parent[end] == parent[first]; ++end)
      if (node[end] > top) top = node[end];
    for (int a = first; a < end; ++a) {
      node[a] = expf((float)(node[a] - top));
      total += node[a];
    }
    if (parent[first] >= 0) above = node[parent[first]];
    for (int a = first; a < end; ++a) node[a] *= above * outside[a] / total;
  }
  for (int j = 0; j < TILES; ++j) weight[j] = node[leaf[j]];
}
"""

_POSTERIOR = """static void weigh_tiles(const float *x, double *weight) {
  double top, total = 0;
  log_joint(x, weight);
  top = weight[0];
  for (int j = 1; j < TILES; ++j)
    if (weight[j] > top) top = weight[j];
  for (int j = 0; j < TILES; ++j) {
    weight[j] = expf((float)(weight[j] - top));
    total += weight[j];
  }
  for (int j = 0; j < TILES; ++j) weight[j] /= total;
}
"""

_SETTLE = """
/* All tiles; weights below the rounding of float become zero, and their tiles are not computed. */
static void choose(const float *x, int *tile, double *weight) {
  double total = 0;
  weigh_tiles(x, weight);
  for (int j = 0; j < TILES; ++j) total += weight[j];
  for (int j = 0; j < TILES; ++j) {
    tile[j] = j;
    if (weight[j] < 1.2e-7 * total) weight[j] = 0;
  }
}
"""

_LEAF = """#define WIDTH 1

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

_RULES = """
/* The right child of a node stands after the left one; a leaf asks for -1 and names its tile. */
static void choose(const float *x, int *tile, double *weight) {
  for (int t = 0; t < WIDTH; ++t) {
    int node = root[t];
    while (asked[node] >= 0) node = left[node] + (x[asked[node]] > threshold[node]);
    tile[t] = left[node];
    weight[t] = 1;
  }
}
"""
