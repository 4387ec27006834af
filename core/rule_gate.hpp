// A gate of axis-aligned decision trees: each row goes to one leaf per tree, with weight one.
//
// Nodes of all trees stand in one array. An inner node sends a row to child + (x[feature] > threshold), so its two
// children stand side by side; a leaf sends a row to itself, because nothing is above its threshold of infinity. Rows
// of a block walk down a tree in step, without branches, until the deepest leaf is reached.
//
// A block of rows is first turned into columns of the features that the trees ask for: the only place that reads rows.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "gate.hpp"
#include "rows.hpp"

namespace svmosaic {

// The largest number of type T that is not above the threshold: x <= threshold has the same answer for every T x.
template <class T>
inline T round_down(double threshold) {
  T rounded = static_cast<T>(threshold);
  if (static_cast<double>(rounded) > threshold) rounded = std::nextafter(rounded, -std::numeric_limits<T>::infinity());
  return rounded;
}

template <class T>
struct RuleScratch;

template <class T>
struct RuleGate : GateOf<T, RuleGate, RuleScratch> {
  using Base = GateOf<T, RuleGate, RuleScratch>;
  std::vector<int32_t> column, child;  // by node: which of `used` it asks for, and where its left child is
  std::vector<T> threshold;            // by node
  std::vector<int32_t> tile;           // by node: of leaves
  std::vector<int32_t> root, depth;    // by tree
  std::vector<int32_t> used;           // the features that any node asks for
  std::vector<int32_t> column_of;      // by feature: its place in `used`, or -1

  // `feature` is -1 for leaves, whose `left` is their tile; checked by the caller.
  RuleGate(const int32_t* feature, const double* threshold_in, const int32_t* left, int64_t n_nodes,
           const int32_t* roots, int64_t n_trees, int64_t n_tiles, int64_t n_features)
      : Base(n_tiles, n_features, n_trees), column(n_nodes), child(n_nodes), threshold(n_nodes), tile(n_nodes, 0),
        root(roots, roots + n_trees), depth(n_trees), column_of(n_features, -1) {
    for (int64_t i = 0; i < n_nodes; ++i) {
      if (feature[i] < 0) {
        column[i] = 0;
        child[i] = static_cast<int32_t>(i);
        threshold[i] = std::numeric_limits<T>::infinity();
        tile[i] = left[i];
        continue;
      }
      int32_t& place = column_of[feature[i]];
      if (place < 0) {
        place = static_cast<int32_t>(used.size());
        used.push_back(feature[i]);
      }
      column[i] = place;
      child[i] = left[i];
      threshold[i] = round_down<T>(threshold_in[i]);
    }
    std::vector<int32_t> level(n_nodes, 0);  // children come after their parents
    for (int64_t t = 0; t < n_trees; ++t) {
      const int64_t end = t + 1 < n_trees ? root[t + 1] : n_nodes;
      for (int64_t i = root[t]; i < end; ++i) {
        depth[t] = std::max(depth[t], level[i]);
        if (feature[i] >= 0) level[left[i]] = level[left[i] + 1] = level[i] + 1;
      }
    }
  }

  int64_t cost() const override {
    int64_t steps = static_cast<int64_t>(used.size());
    for (int32_t d : depth) steps += 4 * d;
    return steps;
  }
};

template <class T>
struct RuleScratch : Gate<T>::Scratch {
  int64_t n_rows;
  std::vector<T> columns;  // [used feature][row]
  std::vector<int32_t> node;

  // One column at least: a leaf compares with the first.
  RuleScratch(const RuleGate<T>& gate, int64_t n_rows)
      : n_rows(n_rows), columns(std::max<size_t>(1, gate.used.size()) * n_rows), node(n_rows) {}
};

template <class T>
inline void read_columns(const RuleGate<T>& gate, const DenseRows<T>& x, int64_t begin, int64_t n,
                         RuleScratch<T>& scratch) {
  for (int64_t r = 0; r < n; ++r) {
    const T* row = x.data + (begin + r) * x.stride;
    for (size_t u = 0; u < gate.used.size(); ++u) scratch.columns[u * scratch.n_rows + r] = row[gate.used[u]];
  }
}

template <class T>
inline void read_columns(const RuleGate<T>& gate, const SparseRows<T>& x, int64_t begin, int64_t n,
                         RuleScratch<T>& scratch) {
  std::fill(scratch.columns.begin(), scratch.columns.end(), T(0));
  for (int64_t r = 0; r < n; ++r)
    for (int64_t p = x.indptr[begin + r]; p < x.indptr[begin + r + 1]; ++p) {
      const int32_t place = gate.column_of[x.indices[p]];
      if (place >= 0) scratch.columns[place * scratch.n_rows + r] = x.data[p];
    }
}

template <class T, class Rows>
SVMOSAIC_CLONES void code_block(const RuleGate<T>& gate, const Rows& x, int64_t begin, int64_t n,
                                RuleScratch<T>& scratch, int32_t* tile, double* weight) {
  read_columns(gate, x, begin, n, scratch);
  const int32_t *column = gate.column.data(), *child = gate.child.data();
  const T *threshold = gate.threshold.data(), *values = scratch.columns.data();
  const int32_t stride = static_cast<int32_t>(scratch.n_rows), rows = static_cast<int32_t>(n);
  int32_t* node = scratch.node.data();
  for (int64_t t = 0; t < gate.width; ++t) {
    std::fill(node, node + n, gate.root[t]);
    for (int32_t step = 0; step < gate.depth[t]; ++step)
      for (int32_t r = 0; r < rows; ++r) {
        const int32_t here = node[r];
        node[r] = child[here] + (values[column[here] * stride + r] > threshold[here] ? 1 : 0);
      }
    for (int64_t r = 0; r < n; ++r) {
      tile[r * gate.width + t] = gate.tile[node[r]];
      weight[r * gate.width + t] = 1;
    }
  }
}

}  // namespace svmosaic
