"""Calibrations as C: each gives `@NAME@_probabilities`, which decides `@NAME@_predict`."""

import numpy as np

from svmosaic.export.c.tables import array, number
from svmosaic.model.calibration import TIE_BREAK, TOP_ODDS

_PROBABILITIES = """
void @NAME@_probabilities(const float *x, float *probabilities) {
  double exact[@CLASSES@];
  probabilities_of(x, exact);
  for (int c = 0; c < @CLASSES@; ++c) probabilities[c] = (float)exact[c];
}

int @NAME@_predict(const float *x) {
  double p[@CLASSES@];
  int best = 0;
  probabilities_of(x, p);
  for (int c = 1; c < @CLASSES@; ++c)
    if (p[c] > p[best]) best = c;
  return best;
}
"""

_SIGMOID = """
static double sigmoid(double s) {
  const double small = expf((float)(s < 0 ? s : -s));
  return (s < 0 ? small : 1.0) / (1.0 + small);
}
"""

_BINARY = (
    _SIGMOID
    + """
static void probabilities_of(const float *x, double *p) {
  double scores[OUTPUTS];
  scores_of(x, scores);
  (void)sigmoid;
  p[1] = @EXPRESSION@;
  p[0] = 1.0 - p[1];
}
"""
    + _PROBABILITIES
)

_EACH = (
    _SIGMOID
    + """
static void probabilities_of(const float *x, double *p) {
  double scores[OUTPUTS], total = 0;
  scores_of(x, scores);@FIRST@
  for (int c = 0; c < OUTPUTS; ++c) {
    p[c] = @EXPRESSION@;
    total += p[c];
  }
  for (int c = 0; c < OUTPUTS; ++c) p[c] = total > 0 ? p[c] / total : 1.0 / OUTPUTS;
}
"""
    + _PROBABILITIES
)

_SOFTMAX = (
    """static void probabilities_of(const float *x, double *p) {
  double scores[OUTPUTS], largest, total = 0;
  scores_of(x, scores);
  largest = scores[0];
  for (int c = 1; c < OUTPUTS; ++c)
    if (scores[c] > largest) largest = scores[c];
  for (int c = 0; c < OUTPUTS; ++c) {
    p[c] = expf((float)(@BETA@ * (scores[c] - largest)));
    total += p[c];
  }
  for (int c = 0; c < OUTPUTS; ++c) p[c] /= total;
}
"""
    + _PROBABILITIES
)

# The largest log-odds of a row are kept within bounds, so that sigmoids do not tie.
_TOP = """
  double top, moved;
  for (int c = 0; c < OUTPUTS; ++c) scores[c] = @SLOPE@ * scores[c] + @OFFSET@;
  top = scores[0];
  for (int c = 1; c < OUTPUTS; ++c)
    if (scores[c] > top) top = scores[c];
  moved = (top < @LOW@ ? @LOW@ : top > @HIGH@ ? @HIGH@ : top) - top;"""

_INTERPOLATE = """
/* The steps of class c at s: linear between, constant beyond. */
static double interpolate(int c, double s) {
  int low = step_start[c], high = step_start[c + 1] - 1;
  if (s <= step_x[low]) return step_y[low];
  if (s >= step_x[high]) return step_y[high];
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    if (step_x[middle] <= s) low = middle;
    else high = middle;
  }
  return step_y[low] + (step_y[high] - step_y[low]) * ((s - step_x[low]) / (step_x[high] - step_x[low]));
}
"""


def _each(expression, first=""):
    return _EACH.replace("@FIRST@", first).replace("@EXPRESSION@", expression)


def _temperature(target, calibration, scores):
    beta = number(repr(float(calibration.beta)))
    if target.n_outputs == 1:
        return _BINARY.replace("@EXPRESSION@", f"sigmoid(2.0 * {beta} * scores[0])")
    return _SOFTMAX.replace("@BETA@", beta)


def _odds(target, calibration, scores):
    numbers = (calibration.slope, calibration.offset, *TOP_ODDS)
    first = _TOP
    for name, value in zip(("SLOPE", "OFFSET", "LOW", "HIGH"), numbers, strict=True):
        first = first.replace(f"@{name}@", number(repr(float(value))))
    return _each("sigmoid(scores[c] + moved)", first)


def _sigmoid(target, calibration, scores):
    tables = array("slope", calibration.slope, "double") + array("offset", calibration.offset, "double")
    if target.n_outputs == 1:
        return tables + _BINARY.replace("@EXPRESSION@", "sigmoid(-(slope[0] * scores[0] + offset[0]))")
    return tables + _each("sigmoid(-(slope[c] * scores[c] + offset[c]))")


def _isotonic(target, calibration, scores):
    starts = np.concatenate([[0], np.cumsum([len(x) for x in calibration.x])])
    tables = (
        f"static const int step_start[{len(starts)}] = {{{', '.join(map(str, starts))}}};\n"
        + array("step_x", np.concatenate(calibration.x), "double")
        + array("step_y", np.concatenate(calibration.y), "double")
        + _INTERPOLATE
    )
    if target.n_outputs == 1:
        return tables + _BINARY.replace("@EXPRESSION@", "interpolate(0, scores[0])")
    return tables + _each(f"interpolate(c, scores[c]) + {TIE_BREAK!r} * sigmoid(scores[c])")


def _posterior(target, calibration, scores):
    if target.n_outputs == 1:
        return _BINARY.replace("@EXPRESSION@", "0.5 * (1.0 + scores[0])")
    return _each("((void)sigmoid, 0.5 * (1.0 + scores[c]))")


CALIBRATIONS = {
    "Temperature": _temperature, "Odds": _odds, "Sigmoid": _sigmoid, "Isotonic": _isotonic, "Posterior": _posterior,
}  # fmt: skip
