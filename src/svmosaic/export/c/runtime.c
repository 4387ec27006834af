/* Models exported to C: the functions that all of them share. C99, with expf and sqrtf of libm, and no memory but the
   stack.

   `to_c` writes this file with the sizes and tables of a model, "model" replaced by its name, and without the parts
   (#if HAS_...) that it has no use for. Sizes and tables that stand here are an example with one of everything, so
   that the file compiles by itself. */

/* ---- sizes ---- */
#include <math.h>
#include <stddef.h>
#include <string.h>

#ifndef HAS_CLASSES
#define HAS_CLASSES 1
#endif
#ifndef HAS_ONE_VALUE
#define HAS_ONE_VALUE 1
#endif
#define HAS_CALIBRATION 1
#define HAS_CENTERS 1
#define HAS_CLASS_DENSITIES 1
#define HAS_CLIPPED 1
#define HAS_CURVED_GATE 1
#define HAS_CURVES 1
#define HAS_DATES 1
#define HAS_DENSITIES 1
#define HAS_DISTANCE_GATE 1
#define HAS_DOT 1
#define HAS_EXPLAIN 1
#define HAS_GAUSSIAN_GATE 1
#define HAS_INTERVAL 1
#define HAS_INVERSE 1
#define HAS_ISOTONIC 1
#define HAS_KERNEL 1
#define HAS_MISSING_TEXTS 1
#define HAS_NEAREST 1
#define HAS_ODDS 1
#define HAS_PARTS 1
#define HAS_POSTERIOR 1
#define HAS_POSTERIOR_LINK 1
#define HAS_PREPARATION 1
#define HAS_PROJECTED_GATE 1
#define HAS_REBUILT 1
#define HAS_RULE_GATE 1
#define HAS_SCALED_GATE 1
#define HAS_SCALING 1
#define HAS_SETTLED 1
#define HAS_SEVERAL_GATES 1
#define HAS_SIGMOID 1
#define HAS_SIGMOIDS 1
#define HAS_SOFTMAX 1
#define HAS_SOFTMAX_GATE 1
#define HAS_SOME_WEIGHTS 1
#define HAS_STEPS 1
#define HAS_STRIPPED_TEXT 1
#define HAS_TEMPERATURE 1
#define HAS_TEMPERATURE_OF_SEVERAL 1
#define HAS_TEXT 1
#define HAS_TILES 1
#define HAS_VOTE_LINK 1

#define COLUMNS 1   /* of the rows that the functions take */
#define FEATURES 1  /* of the rows that gates and tiles take */
#define OUTPUTS 1   /* scores of a row */
#define CLASSES 2   /* 0 for values */
#define WIDTH 1     /* tiles of a row, at most */
#define WIDEST 1    /* features of the rows of all gates, those inside others too, at most */
#define FEATURES_OF(gate) FEATURES /* or (gate)->n_features, if there are gates of other rows */
#define REBUILT 1   /* centers that a row is rebuilt from, at most */
#define STRAIGHT 1  /* columns without a curve, at most */
#define CURVES 1    /* columns with a curve, at most */
#define NODES 1     /* of trees of softmaxes, at most */
#define DENSITIES 2 /* at most */
#define STEPS 1     /* of the preparation */
#define TEXTS 1     /* columns of text */
#define MISSING 1   /* texts that stand for a missing value */
#define MARGIN 0.0  /* of intervals */
#define TIE_BREAK 1e-9
#define LEAST_TOP_ODDS -30.0
#define MOST_TOP_ODDS 30.0

/* ---- types ---- */
#if HAS_CURVES
/* Columns without a curve, and the knots of those that have one. A tile's weights are the slopes of the first, and the
   values of the curves at their knots. */
typedef struct {
  int n_straight, n_curves, n_values;
  const int *straight_of, *curve_of, *start;
  const float *center, *factor, *knot, *knot_factor;
} Curves;

/* A row as curves take it: the columns without one, and where the others are between which knots. */
typedef struct {
  float straight[STRAIGHT + 1], part[CURVES + 1];
  int knot[CURVES + 1];
} Bent;
#endif

#if HAS_DENSITIES
/* Gaussians: the logarithms of their heights less half of |F (x - mean)|^2. */
typedef struct {
  enum { FULL, DIAG, ISOTROPIC } covariance;
  int n;
  const double *means, *factors, *log_weight;
} Densities;
#endif

#if HAS_TILES
/* A gate gives each row a fixed number of tiles, its width, and their weights. */
typedef struct Gate {
  enum { SINGLE, DISTANCE, PROJECTED, CURVED, SCALED, SEVERAL, SOFTMAX, GAUSSIAN, RULES } kind;
  int n_tiles, width, n_features; /* of the rows that it takes */
  const struct Gate *const *inner;
  const double *factor; /* of the weights: one per tile, or one per gate inside */
  const float *center, *unit, *projection;
#if HAS_CURVED_GATE
  const Curves *curves;
#endif
#if HAS_SEVERAL_GATES
  int n_inner;
#endif
#if HAS_DISTANCE_GATE
  enum { BY_NEAREST, BY_SOFTMAX, BY_INVERSE, BY_KERNEL, BY_LLC, BY_LLE } coding;
  double scale;
  const float *mean, *centers, *half_norms;
  const double *log_prior;
#endif
#if HAS_SOFTMAX_GATE
  int n_nodes;
  const double *plane, *node_offset, *origin, *outside;
  const int *parent, *leaf;
#endif
#if HAS_GAUSSIAN_GATE
  const Densities *densities;
#endif
#if HAS_RULE_GATE
  const int *asked, *left, *root;
  const float *threshold;
#endif
} Gate;

/* Scores are offset + sum over the tiles of a row of weight * link(<w, x> + intercept). */
typedef struct {
  const Gate *gate;
  int n_outputs;
  enum { IDENTITY, VOTE, BY_POSTERIOR } link;
  const double *offset;
  const float *intercept, *coef;
#if HAS_SOME_WEIGHTS
  const int *place; /* of a tile's weights in coef, -1 for a tile without; NULL: all have some */
#endif
#if HAS_SCALING
  const float *center, *factor;
#endif
#if HAS_CURVES
  const Curves *curves; /* NULL for tiles without */
#endif
#if HAS_CLIPPED
  /* Tiles next to those with curves that are linear in columns within their reach. */
  const float *clipped_coef, *clipped_center, *clipped_factor, *reach;
  const int *clipped_place;
#endif
} Mosaic;

/* A row as tiles take it. */
typedef struct {
  const float *x;
#if HAS_SCALING
  float scaled[FEATURES];
#endif
#if HAS_CURVES
  Bent bent;
#endif
#if HAS_CLIPPED
  float clipped[FEATURES];
#endif
} Seen;
#endif

#if HAS_STEPS
/* ((x, or fill if x is missing) - center) * factor; NULL for what is left out. */
typedef struct {
  const float *fill, *center, *factor;
} Step;
#endif

#if HAS_TEXT
/* A column of text: the texts that it knows, and a line of features for each; two more for missing and unknown text. */
typedef struct {
  int column, first, n_features, n_words;
  const float *lines;
  const char *const *words;
} Text;
#endif

#if HAS_CALIBRATION
typedef struct {
  enum { TEMPERATURE, TEMPERATURE_OF_SEVERAL, ODDS, SIGMOID, ISOTONIC, POSTERIOR } kind;
  const double *slope, *offset;
  const int *start; /* of the steps of each output */
  const double *x, *y;
} Calibration;
#endif

/* ---- tables ---- */
static const float floats[4] = {0, 0, 0, 0};
static const double doubles[4] = {0, 0, 0, 0};
static const int ints[4] = {0, 0, 0, 0};
static const char *const words[1] = {"word"};
static const Curves curves = {1, 1, 3, ints, ints, ints, floats, floats, floats, floats};
static const Densities densities = {FULL, 2, doubles, doubles, doubles};
static const int start[3] = {0, 1, 2};
static const Gate single = {.kind = SINGLE, .n_tiles = 1, .width = 1, .n_features = 1};
static const Gate *const inner[1] = {&single};
static const Gate gate = {
    .kind = SCALED, .n_tiles = 1, .width = 1, .n_features = 1, .inner = inner, .center = floats, .unit = floats};
static const Mosaic mosaic = {
    .gate = &gate, .n_outputs = 1, .link = VOTE, .offset = doubles, .intercept = floats, .coef = floats, .place = ints};
static const Mosaic interval = {
    .gate = &gate, .n_outputs = 2, .link = IDENTITY, .offset = doubles, .intercept = floats, .coef = floats,
    .curves = &curves};
static const int column_of[FEATURES] = {0};
static const int part_of[FEATURES] = {0};
static const Step steps[STEPS] = {{floats, floats, floats}};
static const Text texts[TEXTS] = {{0, 0, 1, 1, floats, words}};
static const char *const missing_texts[MISSING] = {"?"};
static const Calibration calibration = {SIGMOID, doubles, doubles, ints, doubles, doubles};
const char *const model_columns[COLUMNS] = {"x"};
const char *const model_classes[CLASSES] = {"no", "yes"};

/* ---- functions ---- */
#if HAS_DOT
/* Eight partial sums: more exact than one, and a compiler can keep them in vectors. */
static float dot(const float *u, const float *v, int n) {
  float s[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  int f = 0;
  for (; f + 8 <= n; f += 8)
    for (int l = 0; l < 8; ++l) s[l] += u[f + l] * v[f + l];
  for (int l = 0; f < n; ++f, ++l) s[l] += u[f] * v[f];
  return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}
#endif

#if HAS_CURVES
static void bend(const Curves *to, const float *x, Bent *b) {
  const Curves c = *to;
  for (int f = 0; f < c.n_straight; ++f) b->straight[f] = (x[c.straight_of[f]] - c.center[f]) * c.factor[f];
  for (int f = 0; f < c.n_curves; ++f) {
    const float value = x[c.curve_of[f]];
    int k = c.start[f];
    float part;
    while (k + 2 < c.start[f + 1] && value >= c.knot[k + 1]) ++k;
    part = (value - c.knot[k]) * c.knot_factor[k];
    b->knot[f] = k;
    b->part[f] = part > 0 ? (part < 1 ? part : 1) : 0;
  }
}

static inline float curve(const Bent *b, const float *values, int f) {
  const float *v = values + b->knot[f];
  return v[0] + b->part[f] * (v[1] - v[0]);
}

/* The product of a row and the weights of a tile. */
static inline float bent_dot(const Curves *of, const Bent *b, const float *w) {
  const int n = of->n_curves, n_straight = of->n_straight;
  float s[4] = {0, 0, 0, 0};
  for (int f = 0; f < n; ++f) s[f % 4] += curve(b, w + n_straight, f);
  return dot(b->straight, w, n_straight) + ((s[0] + s[1]) + (s[2] + s[3]));
}
#endif

#if HAS_DENSITIES
static void log_joint(const Densities *of, const float *x, double *joint) {
  for (int j = 0; j < of->n; ++j) {
    const double *mean = of->means + (size_t)j * FEATURES;
    double squared = 0;
    for (int q = 0; q < FEATURES; ++q) {
      double white = 0;
      if (of->covariance == FULL) {
        const double *line = of->factors + ((size_t)j * FEATURES + q) * FEATURES;
        for (int f = 0; f < FEATURES; ++f) white += line[f] * ((double)x[f] - mean[f]);
      } else {
        const size_t at = of->covariance == DIAG ? (size_t)j * FEATURES + q : (size_t)j;
        white = of->factors[at] * ((double)x[q] - mean[q]);
      }
      squared += white * white;
    }
    joint[j] = of->log_weight[j] - 0.5 * squared;
  }
}
#endif

/* Gates. */
#if HAS_NEAREST
/* The centers nearest to z, best first; of equals, the first. */
static void nearest(const Gate *g, const float *z, int *tile) {
  const int width = g->width, n_features = FEATURES_OF(g);
  float closeness[WIDTH] = {0};
  int n = 0;
  for (int j = 0; j < g->n_tiles; ++j) {
    const float close = dot(z, g->centers + (size_t)j * n_features, n_features) - g->half_norms[j];
    int at;
    if (n == width && !(close > closeness[width - 1])) continue;
    at = n < width ? n++ : width - 1;
    for (; at > 0 && close > closeness[at - 1]; --at) {
      closeness[at] = closeness[at - 1];
      tile[at] = tile[at - 1];
    }
    closeness[at] = close;
    tile[at] = j;
  }
}
#endif

#if HAS_CENTERS
static inline const float *center_of(const Gate *g, int tile) { return g->centers + (size_t)tile * FEATURES_OF(g); }
#endif

#if HAS_SOFTMAX
static void weigh_by_softmax(const Gate *g, const float *z, const int *tile, double *weight) {
  const int width = g->width, n_features = FEATURES_OF(g);
  const float *from = center_of(g, tile[0]);
  double largest = 0;
  for (int a = 0; a < width; ++a) {
    /* |z - c|^2 less that of the first center, which keeps its digits far from all of them */
    const float *c = center_of(g, tile[a]);
    double beyond = 0;
    for (int f = 0; f < n_features; ++f)
      beyond += (((double)z[f] - from[f]) + ((double)z[f] - c[f])) * ((double)from[f] - c[f]);
    weight[a] = g->log_prior[tile[a]] - g->scale * beyond;
    if (a == 0 || weight[a] > largest) largest = weight[a];
  }
  for (int a = 0; a < width; ++a) weight[a] = expf((float)(weight[a] - largest));
}
#endif

#if HAS_INVERSE
static void weigh_by_inverse(const Gate *g, const float *z, const int *tile, double *weight) {
  const int width = g->width, n_features = FEATURES_OF(g);
  double smallest = 0;
  for (int a = 0; a < width; ++a) {
    const float *c = center_of(g, tile[a]);
    double squared = 0;
    for (int f = 0; f < n_features; ++f) squared += ((double)z[f] - c[f]) * ((double)z[f] - c[f]);
    weight[a] = squared;
    if (a == 0 || squared < smallest) smallest = squared;
  }
  /* on a center it takes all; ties share */
  for (int a = 0; a < width; ++a)
    weight[a] = smallest > 0 ? sqrtf((float)(smallest / weight[a])) : (weight[a] > 0 ? 0.0 : 1.0);
}
#endif

#if HAS_KERNEL
static void weigh_by_kernel(const Gate *g, const float *z, const int *tile, double *weight) {
  const int width = g->width, n_features = FEATURES_OF(g);
  const double scale = g->scale;
  for (int a = 0; a < width; ++a) {
    const float *c = center_of(g, tile[a]);
    double squared = 0;
    for (int f = 0; f < n_features; ++f) squared += ((double)z[f] - c[f]) * ((double)z[f] - c[f]);
    weight[a] = expf((float)(-scale * squared));
  }
}
#endif

#if HAS_REBUILT
/* The weights that rebuild z from its centers: (D D^T + ridge) w = 1, by elimination. */
static void weigh_by_rebuilding(const Gate *g, const float *z, const int *tile, double *weight) {
  const int width = g->width, n_features = FEATURES_OF(g);
  double system[REBUILT][REBUILT] = {{0}};
  double average = 0, farthest = 0;
  for (int a = 0; a < width; ++a) {
    const float *p = center_of(g, tile[a]);
    for (int b = 0; b <= a; ++b) {
      const float *q = center_of(g, tile[b]);
      double sum = 0;
      for (int f = 0; f < n_features; ++f) sum += ((double)z[f] - p[f]) * ((double)z[f] - q[f]);
      system[a][b] = system[b][a] = sum;
    }
    average += system[a][a] / width;
    if (system[a][a] > farthest) farthest = system[a][a];
  }
  for (int a = 0; a < width; ++a) {
    double ridge = g->scale * average;
    if (g->coding == BY_LLC && farthest > 0) {
      const double locality = expf(sqrtf((float)(system[a][a] / farthest)) - 1);
      ridge *= locality * locality;
    }
    system[a][a] += ridge > 0 ? ridge : 1e-12;
    weight[a] = 1;
  }
  for (int k = 0; k < width; ++k)
    for (int a = k + 1; a < width; ++a) {
      const double share = system[a][k] / system[k][k];
      for (int b = k; b < width; ++b) system[a][b] -= share * system[k][b];
      weight[a] -= share * weight[k];
    }
  for (int k = width - 1; k >= 0; --k) {
    for (int b = k + 1; b < width; ++b) weight[k] -= system[k][b] * weight[b];
    weight[k] /= system[k][k];
  }
}
#endif

#if HAS_DISTANCE_GATE
static void choose_by_distance(const Gate *g, const float *x, int *tile, double *weight) {
  const int width = g->width;
  float z[WIDEST];
  double total = 0;
  for (int f = 0; f < FEATURES_OF(g); ++f) z[f] = x[f] - g->mean[f];
#if HAS_NEAREST
  if (width < g->n_tiles)
    nearest(g, z, tile);
  else
#endif
    for (int j = 0; j < width; ++j) tile[j] = j;
  switch (g->coding) {
#if HAS_SOFTMAX
  case BY_SOFTMAX: weigh_by_softmax(g, z, tile, weight); break;
#endif
#if HAS_INVERSE
  case BY_INVERSE: weigh_by_inverse(g, z, tile, weight); break;
#endif
#if HAS_KERNEL
  case BY_KERNEL: weigh_by_kernel(g, z, tile, weight); break;
#endif
#if HAS_REBUILT
  case BY_LLC:
  case BY_LLE: weigh_by_rebuilding(g, z, tile, weight); break;
#endif
  default: weight[0] = 1;
  }
  if (g->coding != BY_KERNEL) {
    for (int a = 0; a < width; ++a) total += weight[a];
    for (int a = 0; a < width; ++a) weight[a] /= total;
  }
  for (int a = 0; g->factor != NULL && a < width; ++a) weight[a] *= g->factor[tile[a]];
}
#endif

#if HAS_SOFTMAX_GATE
/* Softmaxes among siblings, multiplied down a tree. */
static void weigh_by_softmaxes(const Gate *g, const float *x, double *weight) {
  double node[NODES] = {0};
  int end;
  for (int a = 0; a < g->n_nodes; ++a) {
    double sum = g->node_offset[a];
    for (int f = 0; f < FEATURES_OF(g); ++f)
      sum += g->plane[(size_t)a * FEATURES_OF(g) + f] * ((double)x[f] - g->origin[f]);
    node[a] = sum;
  }
  for (int first = 0; first < g->n_nodes; first = end) {
    double top = node[first], total = 0, above = 1;
    for (end = first; end < g->n_nodes && g->parent[end] == g->parent[first]; ++end)
      if (node[end] > top) top = node[end];
    for (int a = first; a < end; ++a) {
      node[a] = expf((float)(node[a] - top));
      total += node[a];
    }
    if (g->parent[first] >= 0) above = node[g->parent[first]];
    for (int a = first; a < end; ++a) node[a] *= above * g->outside[a] / total;
  }
  for (int j = 0; j < g->n_tiles; ++j) weight[j] = node[g->leaf[j]];
}
#endif

#if HAS_GAUSSIAN_GATE
/* The posterior of a mixture of Gaussians. */
static void weigh_by_densities(const Gate *g, const float *x, double *weight) {
  const int n = g->n_tiles;
  double top, total = 0;
  log_joint(g->densities, x, weight);
  top = weight[0];
  for (int j = 1; j < n; ++j)
    if (weight[j] > top) top = weight[j];
  for (int j = 0; j < n; ++j) {
    weight[j] = expf((float)(weight[j] - top));
    total += weight[j];
  }
  for (int j = 0; j < n; ++j) weight[j] /= total;
}
#endif

#if HAS_SETTLED
/* All tiles; weights below the rounding of float become zero, and their tiles are not computed. */
static void settle(const Gate *g, int *tile, double *weight) {
  double total = 0;
  for (int j = 0; j < g->n_tiles; ++j) total += weight[j];
  for (int j = 0; j < g->n_tiles; ++j) {
    tile[j] = j;
    if (weight[j] < 1.2e-7 * total) weight[j] = 0;
  }
}
#endif

#if HAS_TILES
static void choose(const Gate *g, const float *x, int *tile, double *weight) {
  (void)x;
  switch (g->kind) {
#if HAS_DISTANCE_GATE
  case DISTANCE: choose_by_distance(g, x, tile, weight); return;
#endif
#if HAS_PROJECTED_GATE
  case PROJECTED: {
    float z[WIDEST];
    for (int q = 0; q < g->inner[0]->n_features; ++q)
      z[q] = dot(x, g->projection + (size_t)q * FEATURES_OF(g), FEATURES_OF(g));
    choose(g->inner[0], z, tile, weight);
    return;
  }
#endif
#if HAS_CURVED_GATE
  case CURVED: {
    float z[WIDEST];
    Bent b;
    bend(g->curves, x, &b);
    for (int q = 0; q < g->inner[0]->n_features; ++q)
      z[q] = bent_dot(g->curves, &b, g->projection + (size_t)q * g->curves->n_values);
    choose(g->inner[0], z, tile, weight);
    return;
  }
#endif
#if HAS_SCALED_GATE
  case SCALED: {
    float z[WIDEST];
    for (int f = 0; f < FEATURES_OF(g); ++f) z[f] = (x[f] - g->center[f]) * g->unit[f];
    choose(g->inner[0], z, tile, weight);
    return;
  }
#endif
#if HAS_SEVERAL_GATES
  case SEVERAL:
    /* The tiles of all gates, one gate after another. */
    for (int i = 0, first = 0; i < g->n_inner; first += g->inner[i]->n_tiles, ++i) {
      const int width = g->inner[i]->width;
      choose(g->inner[i], x, tile, weight);
      for (int a = 0; a < width; ++a) {
        tile[a] += first;
        weight[a] *= g->factor[i];
      }
      tile += width;
      weight += width;
    }
    return;
#endif
#if HAS_SOFTMAX_GATE
  case SOFTMAX:
    weigh_by_softmaxes(g, x, weight);
    settle(g, tile, weight);
    return;
#endif
#if HAS_GAUSSIAN_GATE
  case GAUSSIAN:
    weigh_by_densities(g, x, weight);
    settle(g, tile, weight);
    return;
#endif
#if HAS_RULE_GATE
  case RULES: {
    /* The right child of a node stands after the left one; a leaf asks for -1 and names its tile. */
    const int width = g->width, *asked = g->asked, *left = g->left, *root = g->root;
    const float *threshold = g->threshold;
    for (int t = 0; t < width; ++t) {
      int node = root[t];
      while (asked[node] >= 0) node = left[node] + (x[asked[node]] > threshold[node]);
      tile[t] = left[node];
      weight[t] = 1;
    }
    return;
  }
#endif
  default: tile[0] = 0; weight[0] = 1;
  }
}

/* Tiles. */
static inline const float *weights_of(const Mosaic *m, int tile, int c) {
#if HAS_SOME_WEIGHTS
  if (m->place != NULL && (tile = m->place[tile]) < 0) return NULL;
#endif
#if HAS_CURVES
  if (m->curves != NULL) return m->coef + ((size_t)tile * m->n_outputs + c) * m->curves->n_values;
#endif
  return m->coef + ((size_t)tile * m->n_outputs + c) * FEATURES;
}

#if HAS_CLIPPED
static inline const float *clipped_weights_of(const Mosaic *m, int tile, int c) {
  if (m->clipped_place == NULL || m->clipped_place[tile] < 0) return NULL;
  return m->clipped_coef + ((size_t)m->clipped_place[tile] * m->n_outputs + c) * FEATURES;
}
#endif

static void see(const Mosaic *m, const float *x, Seen *seen) {
#if HAS_SCALING
  if (m->factor != NULL) {
    for (int f = 0; f < FEATURES; ++f) seen->scaled[f] = (x[f] - m->center[f]) * m->factor[f];
    x = seen->scaled;
  }
#endif
#if HAS_CURVES
  if (m->curves != NULL) bend(m->curves, x, &seen->bent);
#endif
#if HAS_CLIPPED
  for (int f = 0; m->clipped_place != NULL && f < FEATURES; ++f) {
    const float value = (x[f] - m->clipped_center[f]) * m->clipped_factor[f], reach = m->reach[f];
    seen->clipped[f] = value > reach ? reach : value < -reach ? -reach : value;
  }
#endif
  (void)m;
  seen->x = x;
}

static inline double margin_of(const Mosaic *m, const Seen *seen, int tile, int c) {
  const float *w = weights_of(m, tile, c);
  double margin = 0;
#if HAS_CURVES
  if (m->curves != NULL)
    margin = w != NULL ? bent_dot(m->curves, &seen->bent, w) : 0;
  else
#endif
    if (w != NULL) margin = dot(seen->x, w, FEATURES);
#if HAS_CLIPPED
  w = clipped_weights_of(m, tile, c);
  if (w != NULL) margin += dot(seen->clipped, w, FEATURES);
#endif
  return margin + m->intercept[(size_t)tile * m->n_outputs + c];
}

static inline double linked(const Mosaic *m, double s) {
#if HAS_VOTE_LINK
  if (m->link == VOTE) {
    const float against = s < 1 ? (float)(1 - s) : 0, in_favor = s > -1 ? (float)(1 + s) : 0;
    return (double)expf(-against) - (double)expf(-in_favor);
  }
#endif
#if HAS_POSTERIOR_LINK
  if (m->link == BY_POSTERIOR) {
    const double yes = expf(s < 1 ? (float)(s - 1) : 0), no = expf(s > -1 ? (float)(-1 - s) : 0);
    return (yes - no) / (yes + no);
  }
#endif
  (void)m;
  return s;
}

static void sums_of(const Mosaic *m, const float *x, double *scores) {
  const int n_outputs = m->n_outputs;
  int tile[WIDTH];
  double weight[WIDTH];
  Seen seen;
  see(m, x, &seen);
  choose(m->gate, seen.x, tile, weight);
  for (int a = m->gate->width; a < WIDTH; ++a) weight[a] = 0;
  for (int c = 0; c < n_outputs; ++c) scores[c] = m->offset[c];
  for (int a = 0; a < WIDTH; ++a) {
    if (weight[a] == 0) continue;
    for (int c = 0; c < n_outputs; ++c) scores[c] += weight[a] * linked(m, margin_of(m, &seen, tile[a], c));
  }
}
#endif

#if HAS_CLASS_DENSITIES
/* log v for v >= 1: v = 2^k m with m in [1, 2), log m = 2 atanh((m - 1) / (m + 1)) by its series. */
static double log_of(double v) {
  double sum = 0, t, power;
  while (v >= 2) {
    v *= 0.5;
    sum += 0.69314718055994531;
  }
  t = (v - 1) / (v + 1);
  power = 2 * t;
  for (int k = 1; k < 40; k += 2) {
    sum += power / k;
    power *= t * t;
  }
  return sum;
}

/* log p(k) p(x|k) of the classes, of two the second less the first. */
static void log_joint_of_classes(const float *x, double *scores) {
  double joint[DENSITIES], classes[CLASSES];
  log_joint(&densities, x, joint);
  for (int k = 0; k < CLASSES; ++k) {
    double top = joint[start[k]], total = 0;
    for (int j = start[k]; j < start[k + 1]; ++j)
      if (joint[j] > top) top = joint[j];
    for (int j = start[k]; j < start[k + 1]; ++j) total += expf((float)(joint[j] - top));
    classes[k] = top + log_of(total);
  }
  if (OUTPUTS == 1)
    scores[0] = classes[1] - classes[0];
  else
    for (int k = 0; k < CLASSES; ++k) scores[k] = classes[k];
}
#endif

/* Rows as they are given. */
#if HAS_DATES
static double floor_of(double value) {
  double whole;
  if (!(value > -9e15 && value < 9e15)) return value; /* NaN, or whole */
  whole = (double)(long long)value;
  return whole > value ? whole - 1 : whole;
}

enum { VALUE, GONE, MONTH, DAY, WEEKDAY, HOUR };

/* A part of a date, by the days since 1970-01-01. */
static float part_of_date(int part, double days) {
  const double whole = floor_of(days), monday = whole + 3, march = whole + 719468; /* since 0000-03-01 */
  const double cycle = march - floor_of(march / 146097) * 146097; /* days in 400 years, which begin in March */
  const double leap = floor_of(cycle / 36524) - floor_of(cycle / 1460) - floor_of(cycle / 146096);
  const double year = floor_of((cycle + leap) / 365);
  const double day = cycle - (year * 365 + floor_of(year / 4) - floor_of(year / 100));
  const double month = floor_of((day * 5 + 2) / 153);
  if (part == HOUR) return (float)((days - whole) * 24);
  if (part == WEEKDAY) return (float)(monday - floor_of(monday / 7) * 7);
  if (part == DAY) return (float)(day - floor_of((month * 153 + 2) / 5) + 1);
  return (float)(month + 3 - floor_of(month / 10) * 12);
}
#endif

#if HAS_TEXT
/* The line of a text: missing text and text that the model does not know come last. */
static int line_of(float value, int n) {
  if (value != value) return n;
  return value >= 0 && value < (float)n ? (int)value : n + 1;
}
#endif

#if HAS_PREPARATION
static void prepare(const float *given, float *x) {
  for (int f = 0; f < FEATURES; ++f) {
    const float value = given[column_of[f]];
    x[f] = value;
#if HAS_PARTS
    if (part_of[f] == 1) x[f] = value != value ? 1.0F : 0.0F;
#endif
#if HAS_DATES
    if (part_of[f] > 1) x[f] = part_of_date(part_of[f], value);
#endif
  }
#if HAS_TEXT
  for (int t = 0; t < TEXTS; ++t) {
    const Text *text = texts + t;
    const float *line = text->lines + (size_t)line_of(given[text->column], text->n_words) * text->n_features;
    for (int f = 0; f < text->n_features; ++f) x[text->first + f] = line[f];
  }
#endif
#if HAS_STEPS
  for (int s = 0; s < STEPS; ++s) {
    const Step *step = steps + s;
    for (int f = 0; step->fill != NULL && f < FEATURES; ++f)
      if (x[f] != x[f]) x[f] = step->fill[f];
    for (int f = 0; step->factor != NULL && f < FEATURES; ++f) x[f] = (x[f] - step->center[f]) * step->factor[f];
  }
#endif
}
#endif

static void scores_of(const float *given, double *scores) {
#if HAS_PREPARATION
  float x[FEATURES];
  prepare(given, x);
#else
  const float *x = given;
#endif
#if HAS_TILES
  sums_of(&mosaic, x, scores);
#endif
#if HAS_CLASS_DENSITIES
  log_joint_of_classes(x, scores);
#endif
}

void model_scores(const float *x, float *scores) {
  double exact[OUTPUTS];
  scores_of(x, exact);
  for (int c = 0; c < OUTPUTS; ++c) scores[c] = (float)exact[c];
}

#if HAS_EXPLAIN
void model_explain(const float *given, double *contributions, double *intercept) {
  int tile[WIDTH];
  double weight[WIDTH];
  float scores[OUTPUTS];
  Seen seen;
#if HAS_PREPARATION
  const int *column = column_of;
  float x[FEATURES];
  prepare(given, x);
#else
  int column[FEATURES];
  const float *x = given;
  for (int f = 0; f < FEATURES; ++f) column[f] = f;
#endif
  see(&mosaic, x, &seen);
  choose(mosaic.gate, seen.x, tile, weight);
  for (int a = mosaic.gate->width; a < WIDTH; ++a) weight[a] = 0;
  model_scores(given, scores);
  for (int k = 0; k < OUTPUTS * COLUMNS; ++k) contributions[k] = 0;
  for (int c = 0; c < OUTPUTS; ++c) {
    double *sum = contributions + (size_t)c * COLUMNS, total = 0;
    for (int a = 0; a < WIDTH; ++a) {
      const float *w = weights_of(&mosaic, tile[a], c);
      if (weight[a] == 0) continue;
#if HAS_CURVES
      if (mosaic.curves != NULL) {
        const Curves *of = mosaic.curves;
        for (int f = 0; w != NULL && f < of->n_straight; ++f)
          sum[column[of->straight_of[f]]] += weight[a] * ((double)w[f] * seen.bent.straight[f]);
        for (int f = 0; w != NULL && f < of->n_curves; ++f)
          sum[column[of->curve_of[f]]] += weight[a] * (double)curve(&seen.bent, w + of->n_straight, f);
        w = NULL;
      }
#endif
      for (int f = 0; w != NULL && f < FEATURES; ++f) sum[column[f]] += weight[a] * ((double)w[f] * seen.x[f]);
#if HAS_CLIPPED
      w = clipped_weights_of(&mosaic, tile[a], c);
      for (int f = 0; w != NULL && f < FEATURES; ++f) sum[column[f]] += weight[a] * ((double)w[f] * seen.clipped[f]);
#endif
    }
    for (int f = 0; f < COLUMNS; ++f) total += sum[f];
    intercept[c] = scores[c] - total;
  }
}
#endif

#if HAS_INTERVAL
void model_predict_interval(const float *given, float *ends) {
  double quantile[2], low, high, middle;
#if HAS_PREPARATION
  float x[FEATURES];
  prepare(given, x);
#else
  const float *x = given;
#endif
  sums_of(&interval, x, quantile);
  low = (quantile[0] < quantile[1] ? quantile[0] : quantile[1]) - (MARGIN);
  high = (quantile[0] < quantile[1] ? quantile[1] : quantile[0]) + (MARGIN);
  middle = 0.5 * (low + high);
  ends[0] = (float)(low < middle ? low : middle);
  ends[1] = (float)(high > middle ? high : middle);
}
#endif

/* Classes, or values. */
#if HAS_CALIBRATION
#if HAS_SIGMOIDS
static double sigmoid(double s) {
  const double small = expf((float)(s < 0 ? s : -s));
  return (s < 0 ? small : 1.0) / (1.0 + small);
}
#endif

#if HAS_ISOTONIC
/* The steps of output c at s: linear between, constant beyond. */
static double interpolate(int c, double s) {
  const double *x = calibration.x, *y = calibration.y;
  int low = calibration.start[c], high = calibration.start[c + 1] - 1;
  if (s <= x[low]) return y[low];
  if (s >= x[high]) return y[high];
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    if (x[middle] <= s)
      low = middle;
    else
      high = middle;
  }
  return y[low] + (y[high] - y[low]) * ((s - x[low]) / (x[high] - x[low]));
}
#endif

static double probability_of(double s, int c) {
  (void)c;
  switch (calibration.kind) {
#if HAS_SIGMOID
  case SIGMOID: return sigmoid(-(calibration.slope[c] * s + calibration.offset[c]));
#endif
#if HAS_ISOTONIC
  case ISOTONIC: return interpolate(c, s) + (OUTPUTS == 1 ? 0 : TIE_BREAK * sigmoid(s));
#endif
#if HAS_POSTERIOR
  case POSTERIOR: return 0.5 * (1.0 + s);
#endif
#if HAS_TEMPERATURE
  case TEMPERATURE: return sigmoid(2.0 * calibration.slope[0] * s);
#endif
#if HAS_TEMPERATURE_OF_SEVERAL
  case TEMPERATURE_OF_SEVERAL: return expf((float)s);
#endif
#if HAS_ODDS
  case ODDS: return sigmoid(s);
#endif
  default: return 0;
  }
}

static void probabilities_of(const float *x, double *p) {
  double scores[OUTPUTS], total = 0;
  scores_of(x, scores);
#if HAS_ODDS
  /* The largest log-odds of a row are kept within bounds, so that sigmoids do not tie. */
  if (calibration.kind == ODDS) {
    double top, moved;
    for (int c = 0; c < OUTPUTS; ++c) scores[c] = calibration.slope[0] * scores[c] + calibration.offset[0];
    top = scores[0];
    for (int c = 1; c < OUTPUTS; ++c)
      if (scores[c] > top) top = scores[c];
    moved = (top < LEAST_TOP_ODDS ? LEAST_TOP_ODDS : top > MOST_TOP_ODDS ? MOST_TOP_ODDS : top) - top;
    for (int c = 0; c < OUTPUTS; ++c) scores[c] += moved;
  }
#endif
#if HAS_TEMPERATURE_OF_SEVERAL
  if (calibration.kind == TEMPERATURE_OF_SEVERAL) {
    double top = scores[0];
    for (int c = 1; c < OUTPUTS; ++c)
      if (scores[c] > top) top = scores[c];
    for (int c = 0; c < OUTPUTS; ++c) scores[c] = calibration.slope[0] * (scores[c] - top);
  }
#endif
  for (int c = 0; c < OUTPUTS; ++c) {
    p[c] = probability_of(scores[c], c);
    total += p[c];
  }
  if (OUTPUTS == 1) {
    p[1] = p[0];
    p[0] = 1.0 - p[1];
  } else {
    for (int c = 0; c < OUTPUTS; ++c) p[c] = total > 0 ? p[c] / total : 1.0 / OUTPUTS;
  }
}

void model_probabilities(const float *x, float *probabilities) {
  double exact[CLASSES];
  probabilities_of(x, exact);
  for (int c = 0; c < CLASSES; ++c) probabilities[c] = (float)exact[c];
}
#endif

#if HAS_CLASSES
int model_predict(const float *x) {
#if HAS_CALIBRATION
  double of_class[CLASSES];
  probabilities_of(x, of_class);
#else
  double of_class[CLASSES];
  scores_of(x, of_class);
  if (OUTPUTS == 1) return of_class[0] > 0;
#endif
  int best = 0;
  for (int c = 1; c < CLASSES; ++c)
    if (of_class[c] > of_class[best]) best = c;
  return best;
}
#else
#if HAS_ONE_VALUE
float model_predict(const float *x) {
  double value[OUTPUTS];
  scores_of(x, value);
  return (float)value[0];
}
#else
void model_predict(const float *x, float *values) { model_scores(x, values); }
#endif
#endif

#if HAS_TEXT
static int index_in(const char *const *list, int count, const char *text, size_t n) {
  for (int k = 0; k < count; ++k)
    if (strlen(list[k]) == n && memcmp(list[k], text, n) == 0) return k;
  return -1;
}

#if HAS_STRIPPED_TEXT
static int is_blank(char c) { return c == ' ' || c == '\t'; }
#endif

float model_text(int column, const char *text) {
  size_t n;
  if (text == NULL) return NAN;
#if HAS_STRIPPED_TEXT
  while (is_blank(*text)) ++text;
#endif
  n = strlen(text);
#if HAS_STRIPPED_TEXT
  while (n > 0 && is_blank(text[n - 1])) --n;
#endif
  if (n == 0) return NAN;
#if HAS_MISSING_TEXTS
  if (index_in(missing_texts, MISSING, text, n) >= 0) return NAN;
#endif
  for (int t = 0; t < TEXTS; ++t)
    if (texts[t].column == column) return (float)index_in(texts[t].words, texts[t].n_words, text, n);
  return -1;
}
#endif
