"""The gates of the mixtures, and the Gaussian mixture classifier, as C. All in double but for expf."""

import numpy as np

from svmosaic.export._c_tables import array


def softmax_tree(gate, n_features):
    """Softmaxes among siblings, multiplied down a tree."""
    _, plane, offset, origin, log_prior, parent, leaf, inside = gate.core_arguments()
    return "\n".join(
        [
            f"#define WIDTH TILES\n#define NODES {len(parent)}\n",
            array("origin", origin, "double"),
            array("plane", plane, "double"),
            array("node_offset", offset + log_prior if inside else offset, "double"),
            array("outside", np.ones(len(parent)) if inside else np.exp(log_prior), "double"),
            array("parent", parent, "int"),
            array("leaf", leaf, "int"),
            _TREE + _SETTLE,
        ]
    )


def gaussian(gate, n_features):
    """The posterior of a mixture of Gaussians."""
    _, covariance, means, factors, log_weight = gate.core_arguments()
    joint = log_joint(covariance, means, factors, log_weight)
    return f"#define WIDTH TILES\n\n{joint}{_POSTERIOR}{_SETTLE}"


def log_joint(covariance, means, factors, log_weight):
    """`static void log_joint(const float *x, double *joint)` over all TILES densities."""
    n, d = means.shape
    if covariance == "full":
        # Line q of tile j: column q of its factor.
        factors = np.swapaxes(factors.reshape(n, d, d), 1, 2)
    return "\n".join(
        [
            array("means", means, "double"),
            array("factors", factors, "double"),
            array("log_weight", np.maximum(log_weight, -1e300), "double"),
            _LOG_JOINT[covariance],
        ]
    )


def gaussian_mixture(model):
    """Everything between the tables' top and the names of the classes, for a `GaussianMixtureClassifier`."""
    densities = model._densities
    order = np.argsort(densities.owner, kind="stable")
    kind, means, factors, log_weight = densities.gaussians()
    factors = factors.reshape(len(means), -1)[order].ravel()
    starts = np.searchsorted(densities.owner[order], np.arange(densities.n_classes + 1))
    return "\n".join(
        [
            log_joint(kind, means[order], factors, log_weight[order]),
            array("start", starts, "int"),
            _CLASSES,
        ]
    )


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

_FACTORED = """static void log_joint(const float *x, double *joint) {
  for (int j = 0; j < TILES; ++j) {
    const double *mean = means + (long)j * FEATURES;
    double squared = 0;
@SQUARED@
    joint[j] = log_weight[j] - 0.5 * squared;
  }
}

"""
_LOG_JOINT = {
    "full": _FACTORED.replace(
        "@SQUARED@",
        """    for (int q = 0; q < FEATURES; ++q) {
      const double *line = factors + ((long)j * FEATURES + q) * FEATURES;
      double white = 0;
      for (int f = 0; f < FEATURES; ++f) white += line[f] * ((double)x[f] - mean[f]);
      squared += white * white;
    }""",
    ),
    "diag": _FACTORED.replace(
        "@SQUARED@",
        """    for (int f = 0; f < FEATURES; ++f) {
      const double white = factors[(long)j * FEATURES + f] * ((double)x[f] - mean[f]);
      squared += white * white;
    }""",
    ),
    "isotropic": _FACTORED.replace(
        "@SQUARED@",
        """    for (int f = 0; f < FEATURES; ++f) {
      const double white = factors[j] * ((double)x[f] - mean[f]);
      squared += white * white;
    }""",
    ),
}

_CLASSES = """/* log v for v >= 1: v = 2^k m with m in [1, 2), log m = 2 atanh((m - 1) / (m + 1)) by its series. */
static double log_of(double v) {
  double sum = 0, t, power;
  for (; v >= 2; v *= 0.5) sum += 0.69314718055994531;
  t = (v - 1) / (v + 1);
  power = 2 * t;
  for (int k = 1; k < 40; k += 2) {
    sum += power / k;
    power *= t * t;
  }
  return sum;
}

/* log p(k) p(x|k) of the classes. */
static void class_log_joint(const float *x, double *classes) {
  double joint[TILES];
  log_joint(x, joint);
  for (int k = 0; k < @CLASSES@; ++k) {
    double top = joint[start[k]], total = 0;
    for (int j = start[k]; j < start[k + 1]; ++j)
      if (joint[j] > top) top = joint[j];
    for (int j = start[k]; j < start[k + 1]; ++j) total += expf((float)(joint[j] - top));
    classes[k] = top + log_of(total);
  }
}

void @NAME@_scores(const float *x, float *scores) {
  double classes[@CLASSES@];
  class_log_joint(x, classes);
#if OUTPUTS == 1
  scores[0] = (float)(classes[1] - classes[0]);
#else
  for (int k = 0; k < @CLASSES@; ++k) scores[k] = (float)classes[k];
#endif
}

void @NAME@_probabilities(const float *x, float *probabilities) {
  double classes[@CLASSES@], top, total = 0;
  class_log_joint(x, classes);
  top = classes[0];
  for (int k = 1; k < @CLASSES@; ++k)
    if (classes[k] > top) top = classes[k];
  for (int k = 0; k < @CLASSES@; ++k) {
    classes[k] = expf((float)(classes[k] - top));
    total += classes[k];
  }
  for (int k = 0; k < @CLASSES@; ++k) probabilities[k] = (float)(classes[k] / total);
}

int @NAME@_predict(const float *x) {
  double classes[@CLASSES@];
  int best = 0;
  class_log_joint(x, classes);
  for (int k = 1; k < @CLASSES@; ++k)
    if (classes[k] > classes[best]) best = k;
  return best;
}
"""
