// The gate of the mixtures of linear SVMs: a tree of softmaxes of distances to centroids.
//
// Node a shares a softmax with its siblings,
//
//   p(a | parent, x) = xi_a exp(-tau_a |x - v_a|^2) / sum_b xi_b exp(-tau_b |x - v_b|^2)
//
// (`inside`), or with xi outside, as the mixture paper prints it. The weight of a leaf, which is a tile, is the product
// along its path. Siblings share tau, so the |x|^2 cancels among them, which leaves planes: one matrix product for all
// nodes, in double precision whatever that of the rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "exponential.hpp"
#include "gate.hpp"
#include "panels.hpp"
#include "rows.hpp"

namespace svmosaic {

template <class T>
struct SoftmaxScratch;

template <class T>
struct SoftmaxGate : GateOf<T, SoftmaxGate, SoftmaxScratch> {
  using Base = GateOf<T, SoftmaxGate, SoftmaxScratch>;
  using Base::n_tiles, Base::n_features;
  int64_t n_nodes;
  bool inside;
  std::vector<double> origin, offset, log_prior, origin_products;
  std::vector<int32_t> parent, leaf;
  Panels<double> planes;

  // Planes and offsets are those of rows less the origin. Parents come before their children, and siblings are
  // neighbors; -1 at the top.
  SoftmaxGate(const double* planes_in, const double* offset_in, const double* origin_in, const double* log_prior_in,
              const int32_t* parent_in, const int32_t* leaf_in, int64_t n_nodes, int64_t n_leaves, int64_t n_features,
              bool inside)
      : Base(n_leaves, n_features, n_leaves, true), n_nodes(n_nodes), inside(inside),
        origin(origin_in, origin_in + n_features), offset(offset_in, offset_in + n_nodes),
        log_prior(log_prior_in, log_prior_in + n_nodes), origin_products(n_nodes, 0.0),
        parent(parent_in, parent_in + n_nodes), leaf(leaf_in, leaf_in + n_leaves),
        planes(Panels<double>::pack(planes_in, n_nodes, n_features, n_features)) {
    for (int64_t a = 0; a < n_nodes; ++a)
      for (int64_t f = 0; f < n_features; ++f) origin_products[a] += planes_in[a * n_features + f] * origin[f];
  }

  int64_t cost() const override { return n_features * n_nodes; }
};

template <class T>
struct SoftmaxScratch : Gate<T>::Scratch {
  MovedRows rows;
  std::vector<double> logits, local;
  std::vector<double*> logit;

  SoftmaxScratch(const SoftmaxGate<T>& gate, int64_t n_rows)
      : rows(n_rows, gate.n_features), logits(n_rows * gate.planes.padded()),
        local(padded_width(gate.n_nodes) + kBlock), logit(n_rows) {
    for (int64_t r = 0; r < n_rows; ++r) logit[r] = logits.data() + r * gate.planes.padded();
  }
};

template <class T>
void softmax_logits(const SoftmaxGate<T>& gate, const DenseRows<T>& x, int64_t begin, int64_t n,
                    SoftmaxScratch<T>& scratch) {
  scratch.rows.fill(x, begin, n, gate.origin.data());
  multiply_dense(scratch.rows.row.data(), n, gate.planes, scratch.logit.data());
}

template <class T>
void softmax_logits(const SoftmaxGate<T>& gate, const SparseRows<T>& x, int64_t begin, int64_t n,
                    SoftmaxScratch<T>& scratch) {
  multiply_sparse(x, begin, nullptr, n, gate.planes, scratch.logit.data());
  for (int64_t r = 0; r < n; ++r)
    for (int64_t a = 0; a < gate.n_nodes; ++a) scratch.logit[r][a] -= gate.origin_products[a];
}

// Logits become the weights of the paths down to their nodes.
template <class T>
inline void walk_down(const SoftmaxGate<T>& gate, double* node, double* local) {
  for (int64_t first = 0, end; first < gate.n_nodes; first = end) {
    double top = -std::numeric_limits<double>::infinity(), sum = 0;
    for (end = first; end < gate.n_nodes && gate.parent[end] == gate.parent[first]; ++end) {
      node[end] += gate.offset[end] + (gate.inside ? gate.log_prior[end] : 0.0);
      top = std::max(top, node[end]);
    }
    // Rows beyond all numbers: equal shares.
    for (int64_t a = first; a < end; ++a) local[a] = std::isfinite(top) ? node[a] - top : 0.0;
    exp_all(local + first, end - first);
    for (int64_t a = first; a < end; ++a) sum += local[a];
    const double above = (gate.parent[first] < 0 ? 1.0 : node[gate.parent[first]]) / sum;
    for (int64_t a = first; a < end; ++a)
      node[a] = local[a] * above * (gate.inside ? 1.0 : std::exp(gate.log_prior[a]));
  }
}

// Codes of n rows whose logits are in the scratch.
template <class T>
SVMOSAIC_CLONES void posterior_of(const SoftmaxGate<T>& gate, int64_t n, SoftmaxScratch<T>& scratch, int32_t* tile,
                                  double* weight) {
  for (int64_t r = 0; r < n; ++r, tile += gate.width, weight += gate.width) {
    walk_down(gate, scratch.logit[r], scratch.local.data());
    for (int64_t j = 0; j < gate.n_tiles; ++j) weight[j] = scratch.logit[r][gate.leaf[j]];
    settle_posterior<T>(gate.n_tiles, tile, weight);
  }
}

template <class T, class Rows>
void code_block(const SoftmaxGate<T>& gate, const Rows& x, int64_t begin, int64_t n, SoftmaxScratch<T>& scratch,
                int32_t* tile, double* weight) {
  softmax_logits(gate, x, begin, n, scratch);
  posterior_of(gate, n, scratch, tile, weight);
}

}  // namespace svmosaic
