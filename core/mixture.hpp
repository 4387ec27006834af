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

#include "parallel.hpp"
#include "passes.hpp"
#include "rows.hpp"

namespace svmosaic {

struct SoftmaxTree {
  const double* plane;      // (n_nodes, n_features + 1); the last column is zero, whatever the rows' bias
  const double* offset;     // (n_nodes)
  const double* log_prior;  // (n_nodes)
  const int32_t* parent;    // (n_nodes): parents come before their children, siblings are neighbours; -1 at the top
  const int32_t* leaf;      // (n_leaves): the node of each leaf
  int64_t n_nodes, n_leaves;
  bool inside;

  // local[a] = log softmax among siblings as the gradient sees it; path[a] = log weight of the path down to a.
  template <class Rows>
  void log_weights(const Rows& x, int64_t i, double* local, double* path) const {
    const int64_t stride = x.n_features + 1;
    for (int64_t first = 0, end; first < n_nodes; first = end) {
      double top = -std::numeric_limits<double>::infinity();
      for (end = first; end < n_nodes && parent[end] == parent[first]; ++end) {
        local[end] = x.dot(i, plane + end * stride) + offset[end] + (inside ? log_prior[end] : 0.0);
        top = std::max(top, local[end]);
      }
      double sum = 0;
      for (int64_t a = first; a < end; ++a) sum += std::exp(local[a] - top);
      const double normaliser = top + std::log(sum), above = parent[first] < 0 ? 0.0 : path[parent[first]];
      for (int64_t a = first; a < end; ++a) {
        local[a] -= normaliser;
        path[a] = above + local[a] + (inside ? 0.0 : log_prior[a]);
      }
    }
  }
};

template <class Rows>
SVMOSAIC_CLONES void gate_piece(const Rows& x, const SoftmaxTree& tree, Piece piece, double* out) {
  std::vector<double> local(tree.n_nodes), path(tree.n_nodes);
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

// An expert whose gate alone puts it this far below the best one cannot change a double: its scores are not computed.
constexpr double kOutOfSight = 40.0;

struct Experts {
  const double* tiles;  // (n_experts, n_outputs, n_features + 1)
  int64_t n_experts, n_outputs;
  double label_weight;
};

struct PairsOfPiece {
  std::vector<int32_t> expert, count;
  std::vector<double> q;
};

// Either `tree`, or the `given` log weights (n_rows, n_experts) of another kind of gate.
template <class Rows>
SVMOSAIC_CLONES void e_step_piece(const Rows& x, const SoftmaxTree* tree, const double* given, const Experts& experts,
                                  const int8_t* y, double drop, Piece piece, double* log_likelihood,
                                  PairsOfPiece& out) {
  const int64_t n_experts = experts.n_experts, n_outputs = experts.n_outputs, stride = x.n_features + 1;
  const int64_t n_nodes = tree ? tree->n_nodes : 0;
  const double nothing = -std::numeric_limits<double>::infinity();
  std::vector<double> local(n_nodes), path(n_nodes), gate(n_experts), joint(n_experts);
  for (int64_t i = piece.begin; i < piece.end; ++i) {
    if (tree) {
      tree->log_weights(x, i, local.data(), path.data());
      for (int64_t j = 0; j < n_experts; ++j) gate[j] = path[tree->leaf[j]];
    } else {
      std::copy(given + i * n_experts, given + (i + 1) * n_experts, gate.begin());
    }
    // The gate's favourite first: the further the best is up, the more of the others are out of sight.
    const int64_t favourite = std::max_element(gate.begin(), gate.end()) - gate.begin();
    double best = nothing;
    for (int64_t turn = -1; turn < n_experts; ++turn) {
      if (turn == favourite) continue;
      const int64_t j = turn < 0 ? favourite : turn;
      joint[j] = nothing;
      if (gate[j] < best - kOutOfSight) continue;
      double loss = 0;
      for (int64_t c = 0; c < n_outputs; ++c) {
        const double margin = y[i * n_outputs + c] * x.dot(i, experts.tiles + (j * n_outputs + c) * stride);
        if (margin < 1) loss += 1 - margin;
      }
      joint[j] = gate[j] - experts.label_weight * loss;
      best = std::max(best, joint[j]);
    }
    double sum = 0, kept = 0;
    for (int64_t j = 0; j < n_experts; ++j) sum += joint[j] = std::exp(joint[j] - best);
    log_likelihood[i] = best + std::log(sum);
    int32_t count = 0;
    for (int64_t j = 0; j < n_experts; ++j) {
      if (joint[j] == 0 || joint[j] < drop * sum) continue;
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

// What a residual below this adds to the gradient is lost in rounding long before it matters to L-BFGS.
constexpr double kResidual = 1e-9;

template <class Rows>
SVMOSAIC_CLONES double gate_slope_piece(const Rows& x, const SoftmaxTree& tree, const Pairs& pairs,
                                        const double* weight, Piece piece, double* slope) {
  const int64_t stride = x.n_features + 1, n_nodes = tree.n_nodes;
  std::vector<double> local(n_nodes), path(n_nodes), mass(n_nodes), total(n_nodes, 0.0);
  double value = 0;
  for (int64_t i = piece.begin; i < piece.end; ++i) {
    tree.log_weights(x, i, local.data(), path.data());
    std::fill(mass.begin(), mass.end(), 0.0);
    double whole = 0;  // 1, or 0 for a row whose experts were all removed
    for (int64_t p = pairs.offsets[i]; p < pairs.offsets[i + 1]; ++p) {
      const int32_t a = tree.leaf[pairs.expert[p]];
      mass[a] = pairs.q[p];
      whole += pairs.q[p];
      value -= weight[i] * pairs.q[p] * path[a];
    }
    for (int64_t a = n_nodes - 1; a >= 0; --a)
      if (tree.parent[a] >= 0) mass[tree.parent[a]] += mass[a];
    for (int64_t a = 0; a < n_nodes; ++a) {
      const double shared = tree.parent[a] < 0 ? whole : mass[tree.parent[a]];
      const double residual = weight[i] * (mass[a] - shared * std::exp(local[a]));
      if (std::fabs(residual) < kResidual * weight[i]) continue;
      x.add(i, -residual, slope + a * stride);
      total[a] -= residual;
    }
  }
  // The rows' own bias is not the gate's: the last column holds the slope of the offset.
  for (int64_t a = 0; a < n_nodes; ++a) slope[a * stride + x.n_features] = total[a];
  return value;
}

// The gate's share of the M-step: returns f = - sum_i weight_i sum_j q_ij log g_j(x_i), and writes its derivatives by
// the nodes' planes and offsets to `slope` (n_nodes, n_features + 1): with Q_ia the responsibility of the leaves
// below node a,  df/dl_a = - sum_i weight_i (Q_ia - Q_i,parent p(a | parent, x_i)) .
template <class Rows>
double gate_slope(const Rows& x, const SoftmaxTree& tree, const Pairs& pairs, const double* weight, double* slope,
                  int n_threads) {
  const int64_t size = tree.n_nodes * (x.n_features + 1);
  const int64_t n_pieces = std::min<int64_t>(16, pieces_of(x.n_rows, tree.n_nodes * x.n_features));
  std::vector<double> partial(n_pieces * size, 0.0), value(n_pieces, 0.0);
  parallel_for(n_pieces, n_threads, [&](int64_t t) {
    value[t] =
        gate_slope_piece(x, tree, pairs, weight, Piece(x.n_rows, n_pieces, t), partial.data() + t * size);
  });
  std::memset(slope, 0, size * sizeof(double));
  double sum = 0;
  for (int64_t t = 0; t < n_pieces; ++t) {
    sum += value[t];
    for (int64_t k = 0; k < size; ++k) slope[k] += partial[t * size + k];
  }
  return sum;
}

}  // namespace svmosaic
