"""Piecewise-linear tiles as C."""

import numpy as np

from svmosaic.export.c.tables import array


def curves(center, scale, column, start, knot):
    """Tables of the knots, and functions that bend a row and multiply it with a tile.

    A tile's weights are the slopes of the columns without a curve, and the values of the curves at their knots.
    """
    straight = np.setdiff1d(np.arange(len(center)), column)
    knot = knot.astype(np.float32)
    with np.errstate(divide="ignore"):  # knots that are equal in single precision, or of two curves
        inverse = np.minimum(1.0 / np.maximum(np.diff(knot.astype(np.float64), append=np.inf), 0.0), 3e38)
    none = np.zeros(1)  # C has no empty arrays
    tables = [
        array("straight_of", straight if len(straight) else none, "int"),
        array("straight_center", center[straight] if len(straight) else none),
        array("straight_factor", scale[straight] if len(straight) else none),
        array("curve_of", column if len(column) else none, "int"),
        array("curve_start", start, "int"),
        array("knot", knot if len(knot) else none),
        array("knot_factor", inverse if len(knot) else none),
    ]
    sizes = {"STRAIGHT": len(straight), "CURVES": len(column), "VALUES": len(straight) + len(knot)}
    return "\n".join(["".join(f"#define {name} {n}\n" for name, n in sizes.items()), *tables, _BEND])


def straight_tiles(flat, n_tiles):
    """Tables of the tiles without curves, `FlatTiles`, and functions for the terms in which they are linear."""
    center, scale, reach = flat.terms
    place = np.full(n_tiles, -1)
    place[flat.tiles] = np.arange(len(flat.tiles))
    tables = [
        array("term_center", center),
        array("term_factor", scale),
        array("term_reach", np.minimum(reach, 3e38)),
        array("flat_place_of", place, "int"),
        array("flat_coef", flat.coef),
    ]
    return "\n".join([*tables, _STRAIGHTEN])


_STRAIGHTEN = """/* The straight terms of a row, for tiles that have no curves. */
static void straighten(const float *x, float *z) {
  for (int f = 0; f < FEATURES; ++f) {
    const float value = (x[f] - term_center[f]) * term_factor[f];
    z[f] = value > term_reach[f] ? term_reach[f] : value < -term_reach[f] ? -term_reach[f] : value;
  }
}

static const float *flat_weights_of(int tile, int c) {
  return flat_place_of[tile] < 0 ? 0 : flat_coef + ((long)flat_place_of[tile] * OUTPUTS + c) * FEATURES;
}
"""

_BEND = """/* A row as the tiles see it: the columns without a curve, and where the others are between which knots. */
typedef struct {
  float straight[STRAIGHT + 1], part[CURVES + 1];
  int knot[CURVES + 1];
} Bent;

static void bend(const float *x, Bent *b) {
  for (int f = 0; f < STRAIGHT; ++f) b->straight[f] = (x[straight_of[f]] - straight_center[f]) * straight_factor[f];
  for (int f = 0; f < CURVES; ++f) {
    const float value = x[curve_of[f]];
    int k = curve_start[f];
    float part;
    while (k + 2 < curve_start[f + 1] && value >= knot[k + 1]) ++k;
    part = (value - knot[k]) * knot_factor[k];
    b->knot[f] = k;
    b->part[f] = part > 0 ? (part < 1 ? part : 1) : 0;
  }
}

static float curve(const Bent *b, const float *w, int f) {
  const float *v = w + STRAIGHT + b->knot[f];
  return v[0] + b->part[f] * (v[1] - v[0]);
}

static float bent(const Bent *b, const float *w) {
  float s[4] = {0, 0, 0, 0};
  for (int f = 0; f < CURVES; ++f) s[f % 4] += curve(b, w, f);
  return dot(b->straight, w, STRAIGHT) + ((s[0] + s[1]) + (s[2] + s[3]));
}
"""
