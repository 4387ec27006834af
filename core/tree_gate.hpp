// A gate that is a binary tree of linear splits: each row goes to one leaf.
//
// K leaves and K - 1 inner nodes are numbered as in a heap: node i has children 2 i + 1 and 2 i + 2, leaf j is number
// K - 1 + j, for any K. A row goes right where <theta_i, x> + b_i > 0, so it costs depth x n_features multiply-adds.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel.hpp"
#include "passes.hpp"
#include "rows.hpp"

namespace svmosaic {

// Levels that have inner nodes.
inline int64_t tree_levels(int64_t n_leaves) {
  int64_t levels = 0;
  for (int64_t reach = n_leaves - 1; reach > 0; reach >>= 1) ++levels;
  return levels;
}

template <class T>
struct SplitTree {
  int64_t n_tiles, n_features;
  std::vector<T> splits;  // [node][feature + bias]

  SplitTree(const double* splits_in, int64_t n_nodes, int64_t n_features)
      : n_tiles(n_nodes + 1), n_features(n_features), splits(splits_in, splits_in + n_nodes * (n_features + 1)) {}

  // Rows carry no bias of their own here: the node's is added.
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

template <class T, class Rows>
SVMOSAIC_CLONES void find_leaves(const SplitTree<T>& tree, const Rows& x, Piece piece, int32_t* tile) {
  for (int64_t i = piece.begin; i < piece.end; ++i) tile[i] = tree.leaf(x, i);
}

template <class T, class Rows>
void find_all_leaves(const SplitTree<T>& tree, const Rows& x, int32_t* tile, int n_threads) {
  const int64_t n_pieces = pieces_of(x.n_rows, x.n_features * (1 + tree_levels(tree.n_tiles)));
  parallel_for(n_pieces, n_threads, [&](int64_t t) { find_leaves(tree, x, Piece(x.n_rows, n_pieces, t), tile); });
}

}  // namespace svmosaic
