"""Densities as C. All in double but for expf."""

import numpy as np

from svmosaic.export.c.tables import array


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


def _gaussians(target, form, rows):
    form, starts = form.by_class()
    target.n_tiles = len(form.means)
    joint = log_joint(form.covariance, form.means, form.factors, form.log_weight)
    target.sections += [joint, array("start", starts, "int"), target.prepared(_CLASSES)]


FORMS = {"Gaussians": _gaussians}

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

static void scores_of(const float *@GIVEN@, double *scores) {
@PREPARE@#if OUTPUTS == 1
  double classes[2];
  class_log_joint(x, classes);
  scores[0] = classes[1] - classes[0];
#else
  class_log_joint(x, scores);
#endif
}
"""
