// Mixtures of linear experts: the gate and the E-step, in the log domain.
//
// A gate is a tree of softmaxes. Node a of the tree has a logit that is affine in x, and shares a softmax with its
// siblings:
//
//   l_a(x) = <plane_a, x> + offset_a ,     log p(a | parent, x) = l_a + log xi_a - log sum_b exp(l_b + log xi_b)
//
// (`inside`), or with xi outside, as the mixture paper prints it: log xi_a + l_a - log sum_b exp(l_b). The weight of a
// leaf is the product along its path. A tree of one level is the plain RBF gate: in -tau |x - v|^2 the |x|^2 is common
// to the siblings and cancels, which leaves plane = 2 tau v and offset = -tau |v|^2.
//
// The E-step joins the gate to the hinge losses of the experts' outputs,
//
//   log r_ij = log g_j(x_i) - rho sum_c max(0, 1 - y_ic <w_jc, (x_i, bias)>) ,     q_ij = r_ij / sum_l r_il ,
//
// and keeps the pairs (i, j) that matter.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "exponential.hpp"
#include "loss.hpp"
#include "parallel.hpp"
#include "passes.hpp"
#include "rows.hpp"

namespace svmosaic {

// ---- many planes against one row -----------------------------------------------------------------
//
// Planes are kept feature by feature, (n_features + 1, width) with the width padded to whole vectors, so that a row is
// read once for all of them and no sum across lanes is ever taken.

struct Planes {
  std::vector<double> table;
  int64_t n_planes, width, n_features;

  // From planes line by line, (n_planes, n_features + 1); the last of each belongs to the constant `bias`.
  Planes(const double* planes, int64_t n_planes, int64_t n_features, double bias)
      : table((n_features + 1) * padded_width(n_planes), 0.0),
        n_planes(n_planes),
        width(padded_width(n_planes)),
        n_features(n_features) {
    for (int64_t a = 0; a < n_planes; ++a)
      for (int64_t f = 0; f <= n_features; ++f)
        table[f * width + a] = planes[a * (n_features + 1) + f] * (f == n_features ? bias : 1.0);
  }

  // scores[a] = <plane_a, (x_i, bias)> for all `width` planes, the padding's being zero
  template <class Rows>
  SVMOSAIC_CLONES void scores(const Rows& x, int64_t i, double* scores) const {
    int64_t a = 0;
    for (; a + 4 * kBlock <= width; a += 4 * kBlock) score_blocks<4>(x, i, a, scores);
    const int64_t left = (width - a) / kBlock;
    if (left == 3) score_blocks<3>(x, i, a, scores);
    if (left == 2) score_blocks<2>(x, i, a, scores);
    if (left == 1) score_blocks<1>(x, i, a, scores);
  }

  template <int n, class Rows>
  void score_blocks(const Rows& x, int64_t i, int64_t a, double* scores) const {
    const double* column = table.data() + a;
    const int64_t stride = width;
#if defined(__GNUC__)
    Lanes<double> sum[n];
    for (int b = 0; b < n; ++b) sum[b] = load<double>(column + n_features * stride + b * kBlock);
    x.each(i, [&](int64_t f, double value) {
#pragma GCC unroll 4
      for (int b = 0; b < n; ++b) sum[b] += value * load<double>(column + f * stride + b * kBlock);
    });
    for (int b = 0; b < n; ++b) store<double>(scores + a + b * kBlock, sum[b]);
#else
    for (int64_t b = 0; b < n * kBlock; ++b) scores[a + b] = column[n_features * stride + b];
    x.each(i, [&](int64_t f, double value) {
      for (int64_t b = 0; b < n * kBlock; ++b) scores[a + b] += value * column[f * stride + b];
    });
#endif
  }
};

// ---- the gate ------------------------------------------------------------------------------------

// combine(v[0], combine(v[1], ...)), lane by lane and then across the lanes, in an order that depends on n alone.
template <class Combine>
inline double reduce(const double* v, int64_t n, double neutral, const Combine& combine) {
  double lane[kBlock];
  for (int64_t l = 0; l < kBlock; ++l) lane[l] = neutral;
  int64_t a = 0;
  for (; a + kBlock <= n; a += kBlock)
    for (int64_t l = 0; l < kBlock; ++l) lane[l] = combine(lane[l], v[a + l]);
  for (int64_t l = 0; a + l < n; ++l) lane[l] = combine(lane[l], v[a + l]);
  for (int64_t half = kBlock / 2; half > 0; half /= 2)
    for (int64_t l = 0; l < half; ++l) lane[l] = combine(lane[l], lane[l + half]);
  return lane[0];
}

struct SoftmaxTree {
  Planes planes;
  const double* offset;     // (n_nodes)
  const double* log_prior;  // (n_nodes)
  const int32_t* parent;    // (n_nodes): parents come before their children, siblings are neighbors; -1 at the top
  const int32_t* leaf;      // (n_leaves): the node of each leaf
  int64_t n_nodes, n_leaves;
  bool inside;

  int64_t room() const { return planes.width + kBlock; }

  // Whether all nodes are siblings.
  bool flat() const { return parent[n_nodes - 1] < 0; }

  // path[a] = log weight of the path down to node a, and local[a] = the softmax among its siblings as the gradient
  // sees it; both have room for the planes' padding and one block more.
  template <class Rows>
  void log_weights(const Rows& x, int64_t i, double* local, double* path) const {
    planes.scores(x, i, path);
    for (int64_t a = 0; a < n_nodes; ++a) path[a] += offset[a];
    if (inside)
      for (int64_t a = 0; a < n_nodes; ++a) path[a] += log_prior[a];
    for (int64_t first = 0, end; first < n_nodes; first = end) {
      end = flat() ? n_nodes : first + 1;
      while (end < n_nodes && parent[end] == parent[first]) ++end;
      const double top = reduce(path + first, end - first, -std::numeric_limits<double>::infinity(),
                                [](double p, double q) { return p < q ? q : p; });
      for (int64_t a = first; a < end; ++a) local[a] = path[a] - top;
      exp_all(local + first, end - first);
      const double sum = reduce(local + first, end - first, 0.0, [](double p, double q) { return p + q; });
      const double share = 1.0 / sum, above = parent[first] < 0 ? 0.0 : path[parent[first]];
      const double change = above - (top + std::log(sum));
      for (int64_t a = first; a < end; ++a) local[a] *= share;
      for (int64_t a = first; a < end; ++a) path[a] += change;
      if (!inside)
        for (int64_t a = first; a < end; ++a) path[a] += log_prior[a];
    }
  }
};

template <class Rows>
SVMOSAIC_CLONES void gate_piece(const Rows& x, const SoftmaxTree& tree, Piece piece, double* out) {
  std::vector<double> local(tree.room()), path(tree.room());
  for (int64_t i = piece.begin; i < piece.end; ++i) {
    tree.log_weights(x, i, local.data(), path.data());
    for (int64_t j = 0; j < tree.n_leaves; ++j) out[i * tree.n_leaves + j] = path[tree.leaf[j]];
  }
}

// out[i, j] = log g_j(x_i)
template <class Rows>
void gate_log_weights(const Rows& x, const SoftmaxTree& tree, double* out, int n_threads) {
  const int64_t n_pieces = pieces_of(x.n_rows, tree.n_nodes * x.n_features);
  parallel_for(n_pieces, n_threads, [&](int64_t t) { gate_piece(x, tree, Piece(x.n_rows, n_pieces, t), out); });
}

// Row i's pairs are expert[offsets[i] .. offsets[i + 1]) with responsibilities q, which sum to 1.
struct Pairs {
  const int64_t* offsets;
  const int32_t* expert;
  const double* q;
};

struct Experts {
  Planes tiles;  // expert by expert, and output by output within
  int64_t n_experts, n_outputs;
  double label_weight;
};

// A responsibility below this is lost in rounding; it is what a `drop` of zero leaves out.
constexpr double kInvisible = 1e-17;

struct PairsOfPiece {
  std::vector<int32_t> expert, count;
  std::vector<double> q;
};

// Either `tree`, or the `given` log weights (n_rows, n_experts) of another kind of gate.
template <class Rows>
SVMOSAIC_CLONES void e_step_piece(const Rows& x, const SoftmaxTree* tree, const double* given, const Experts& experts,
                                  const int8_t* y, double drop, Piece piece, double* log_likelihood,
                                  PairsOfPiece& out) {
  const int64_t n_experts = experts.n_experts, n_outputs = experts.n_outputs;
  const int64_t room = tree ? tree->room() : 0;
  std::vector<double> local(room), path(room), scores(experts.tiles.width), joint(padded_width(n_experts));
  for (int64_t i = piece.begin; i < piece.end; ++i) {
    if (tree) tree->log_weights(x, i, local.data(), path.data());
    experts.tiles.scores(x, i, scores.data());
    const int8_t* signs = y + i * n_outputs;
    double best = -std::numeric_limits<double>::infinity();
    for (int64_t j = 0; j < n_experts; ++j) {
      double loss = 0;
      for (int64_t c = 0; c < n_outputs; ++c) loss += slack_of(1, signs[c] * scores[j * n_outputs + c]);
      joint[j] = (tree ? path[tree->leaf[j]] : given[i * n_experts + j]) - experts.label_weight * loss;
      best = std::max(best, joint[j]);
    }
    for (int64_t j = 0; j < n_experts; ++j) joint[j] -= best;
    exp_all(joint.data(), n_experts);
    double sum = 0, kept = 0;
    for (int64_t j = 0; j < n_experts; ++j) sum += joint[j];
    log_likelihood[i] = best + std::log(sum);
    const double least = std::max(drop, kInvisible) * sum;
    int32_t count = 0;
    for (int64_t j = 0; j < n_experts; ++j) {
      if (joint[j] < least) continue;
      out.expert.push_back(static_cast<int32_t>(j));
      out.q.push_back(joint[j]);
      kept += joint[j];
      ++count;
    }
    for (auto q = out.q.end() - count; q != out.q.end(); ++q) *q /= kept;
    out.count.push_back(count);
  }
}

template <class Rows>
std::vector<PairsOfPiece> e_step(const Rows& x, const SoftmaxTree* tree, const double* given, const Experts& experts,
                                 const int8_t* y, double drop, double* log_likelihood, int n_threads) {
  const int64_t n_pieces = pieces_of(x.n_rows, experts.n_experts * (1 + experts.n_outputs) * x.n_features);
  std::vector<PairsOfPiece> pieces(n_pieces);
  parallel_for(n_pieces, n_threads, [&](int64_t t) {
    e_step_piece(x, tree, given, experts, y, drop, Piece(x.n_rows, n_pieces, t), log_likelihood, pieces[t]);
  });
  return pieces;
}

// Rows whose residuals are added to the slope together, so that it is read and written once for all of them.
constexpr int kSlopeRows = 4;

// slope[f, a] += sum_r x_rf residual[r, a] over the rows first .. first + n, and over the line of the offsets
template <class Rows>
inline void add_residuals(const Rows& x, int64_t first, int64_t n, const double* residual, int64_t width,
                          double* slope) {
  for (int64_t r = 0; r < n; ++r) {
    const double* mine = residual + r * width;
    x.each(first + r, [&](int64_t f, double feature) {
      double* line = slope + f * width;
      for (int64_t a = 0; a < width; ++a) line[a] += feature * mine[a];
    });
    for (int64_t a = 0; a < width; ++a) slope[x.n_features * width + a] += mine[a];
  }
}

#if defined(__GNUC__)
template <class T>
inline void add_residuals(const DenseRows<T>& x, int64_t first, int64_t n, const double* residual, int64_t width,
                          double* slope) {
  const T* row[kSlopeRows];
  for (int64_t r = 0; r < kSlopeRows; ++r) row[r] = x.data + (first + std::min(r, n - 1)) * x.stride;
  for (int64_t a = 0; a < width; a += kBlock) {
    Lanes<double> mine[kSlopeRows];
    for (int64_t r = 0; r < kSlopeRows; ++r) mine[r] = r < n ? load<double>(residual + r * width + a) : Lanes<double>{};
    double* line = slope + a;
    for (int64_t f = 0; f < x.n_features; ++f, line += width) {
      Lanes<double> sum = load<double>(line);
#pragma GCC unroll 4
      for (int r = 0; r < kSlopeRows; ++r) sum += static_cast<double>(row[r][f]) * mine[r];
      store<double>(line, sum);
    }
    Lanes<double> sum = load<double>(line);
    for (int r = 0; r < kSlopeRows; ++r) sum += mine[r];
    store<double>(line, sum);
  }
}
#endif

// slope[f, a] += the derivative by feature f of node a's plane, feature by feature like the planes themselves; the line
// after the last feature is that of the offsets.
template <class Rows>
SVMOSAIC_CLONES double gate_slope_piece(const Rows& x, const SoftmaxTree& tree, const Pairs& pairs,
                                        const double* weight, Piece piece, double* slope) {
  const int64_t n_nodes = tree.n_nodes, width = tree.planes.width;
  std::vector<double> local(tree.room()), path(tree.room()), mass(width), residuals(kSlopeRows * width, 0.0);
  double value = 0;
  for (int64_t first = piece.begin; first < piece.end; first += kSlopeRows) {
    const int64_t n = std::min<int64_t>(kSlopeRows, piece.end - first);
    for (int64_t i = first; i < first + n; ++i) {
      double* residual = residuals.data() + (i - first) * width;
      tree.log_weights(x, i, local.data(), path.data());
      std::fill(mass.begin(), mass.end(), 0.0);
      double whole = 0;  // 1, or 0 for a row whose experts were all removed
      for (int64_t p = pairs.offsets[i]; p < pairs.offsets[i + 1]; ++p) {
        const int32_t a = tree.leaf[pairs.expert[p]];
        mass[a] = pairs.q[p];
        whole += pairs.q[p];
        value -= weight[i] * pairs.q[p] * path[a];
      }
      if (tree.flat()) {
        for (int64_t a = 0; a < n_nodes; ++a) residual[a] = weight[i] * (whole * local[a] - mass[a]);
        continue;
      }
      for (int64_t a = n_nodes - 1; a >= 0; --a)
        if (tree.parent[a] >= 0) mass[tree.parent[a]] += mass[a];
      for (int64_t a = 0; a < n_nodes; ++a) {
        const double shared = tree.parent[a] < 0 ? whole : mass[tree.parent[a]];
        residual[a] = weight[i] * (shared * local[a] - mass[a]);
      }
    }
    add_residuals(x, first, n, residuals.data(), width, slope);
  }
  return value;
}

// The gate's share of the M-step: returns f = - sum_i weight_i sum_j q_ij log g_j(x_i), and writes its derivatives by
// the nodes' planes and offsets to `slope` (n_nodes, n_features + 1): with Q_ia the responsibility of the leaves
// below node a,  df/dl_a = - sum_i weight_i (Q_ia - Q_i,parent p(a | parent, x_i)) .
template <class Rows>
double gate_slope(const Rows& x, const SoftmaxTree& tree, const Pairs& pairs, const double* weight, double* slope,
                  int n_threads) {
  const int64_t width = tree.planes.width, n_lines = x.n_features + 1, size = width * n_lines;
  const int64_t n_pieces = std::min<int64_t>(16, pieces_of(x.n_rows, tree.n_nodes * x.n_features));
  std::vector<double> partial(n_pieces * size, 0.0), value(n_pieces, 0.0);
  parallel_for(n_pieces, n_threads, [&](int64_t t) {
    value[t] = gate_slope_piece(x, tree, pairs, weight, Piece(x.n_rows, n_pieces, t), partial.data() + t * size);
  });
  double sum = 0;
  for (int64_t t = 0; t < n_pieces; ++t) sum += value[t];
  for (int64_t a = 0; a < tree.n_nodes; ++a)
    for (int64_t f = 0; f < n_lines; ++f) {
      double total = 0;
      for (int64_t t = 0; t < n_pieces; ++t) total += partial[t * size + f * width + a];
      slope[a * n_lines + f] = total;
    }
  return sum;
}

}  // namespace svmosaic
