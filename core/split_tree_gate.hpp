// A gate that is a binary tree of linear splits: each row goes to one leaf, with weight one.
//
// K leaves and K - 1 inner nodes are numbered as in a heap: node i has children 2 i + 1 and 2 i + 2, leaf j is number
// K - 1 + j, for any K. A row goes right where <theta_i, x> + b_i > 0, so it costs depth x n_features multiply-adds.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gate.hpp"
#include "rows.hpp"

namespace svmosaic {

// Levels that have inner nodes.
inline int64_t tree_levels(int64_t n_leaves) {
  int64_t levels = 0;
  for (int64_t reach = n_leaves - 1; reach > 0; reach >>= 1) ++levels;
  return levels;
}

template <class T>
struct TreeScratch;

template <class T>
struct SplitTreeGate : GateOf<T, SplitTreeGate, TreeScratch> {
  using Base = GateOf<T, SplitTreeGate, TreeScratch>;
  using Base::n_features;
  using Base::n_tiles;
  std::vector<T> splits;  // [node][feature + bias]

  SplitTreeGate(const double* splits_in, int64_t n_nodes, int64_t n_features)
      : Base(n_nodes + 1, n_features, 1), splits(splits_in, splits_in + n_nodes * (n_features + 1)) {}

  int64_t cost() const override { return n_features * tree_levels(n_tiles); }

  // The rows' own bias is none of the gate's business: a node has its own.
  T margin(const DenseRows<T>& x, int64_t i, const T* theta) const {
    return dot(x.data + i * x.stride, theta, n_features) + theta[n_features];
  }
  T margin(const SparseRows<T>& x, int64_t i, const T* theta) const {
    T sum = theta[n_features];
    for (int64_t p = x.indptr[i]; p < x.indptr[i + 1]; ++p) sum += x.data[p] * theta[x.indices[p]];
    return sum;
  }

  template <class Rows>
  int32_t leaf(const Rows& x, int64_t i) const {
    int64_t node = 0;
    while (node < n_tiles - 1) node = 2 * node + (margin(x, i, splits.data() + node * (n_features + 1)) > 0 ? 2 : 1);
    return static_cast<int32_t>(node - (n_tiles - 1));
  }
};

// Nothing is kept from row to row.
template <class T>
struct TreeScratch : Gate<T>::Scratch {
  TreeScratch(const SplitTreeGate<T>&, int64_t) {}
};

template <class T, class Rows>
SVMOSAIC_CLONES void code_block(const SplitTreeGate<T>& gate, const Rows& x, int64_t begin, int64_t n, TreeScratch<T>&,
                                int32_t* tile, double* weight) {
  for (int64_t r = 0; r < n; ++r) {
    tile[r] = gate.leaf(x, begin + r);
    weight[r] = 1;
  }
}

}  // namespace svmosaic
