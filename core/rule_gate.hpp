// A gate of axis-aligned decision trees: each row goes to one leaf per tree, with weight one.
//
// Nodes of all trees stand in one array. An inner node sends a row to child + (x[feature] > threshold), so its two
// children stand side by side; a leaf sends a row to itself, because nothing is above its threshold of infinity. Rows
// of a block walk down a tree in step, without branches, until the deepest leaf is reached.
//
// Small trees answer a block of rows without walking. A bit stands for each leaf, from left to right; every node that
// sends a row to the right rules out the leaves of its left child; the leftmost leaf that remains is the row's. All
// nodes are asked, but of many rows at once, by vectors.
//
// A block of rows is first turned into columns of the features that the trees ask for: the only place that reads rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "gate.hpp"
#include "rows.hpp"
#include "simd.hpp"

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
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  static constexpr int64_t kMostLeaves = 8 * sizeof(Bits);
  std::vector<int32_t> column, child;  // by node: which of `used` it asks for, and where its left child is
  std::vector<T> threshold;            // by node
  std::vector<int32_t> tile;           // by node: of leaves
  std::vector<int32_t> root, depth;    // by tree
  std::vector<int32_t> used;           // the features that any node asks for
  std::vector<int32_t> column_of;      // by feature: its place in `used`, or -1
  // The nodes of small trees, from test[t] to test[t + 1]: what they ask, and the leaves that remain right of them.
  std::vector<int32_t> test, test_column;
  std::vector<T> test_threshold;
  std::vector<Bits> remaining;
  std::vector<int32_t> leaf_tile;  // [tree][leaf from the left]

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
    leaf_tile.resize(n_trees * kMostLeaves);
    test.push_back(0);
    for (int64_t t = 0; t < n_trees; ++t) {
      const size_t before = remaining.size();
      if (add_tests(t, root[t], 0) < 0) {
        test_column.resize(before);
        test_threshold.resize(before);
        remaining.resize(before);
      }
      test.push_back(static_cast<int32_t>(remaining.size()));
    }
  }

  bool has_tests(int64_t t) const { return test[t] < test[t + 1]; }

  bool adds() const override { return true; }
  void add(const DenseRows<T>& x, int64_t begin, int64_t n, typename Gate<T>::Scratch& scratch, const Numbers& numbers,
           double* out) const override;
  void add(const SparseRows<T>& x, int64_t begin, int64_t n, typename Gate<T>::Scratch& scratch, const Numbers& numbers,
           double* out) const override;

  int64_t cost() const override {
    int64_t steps = static_cast<int64_t>(used.size());
    for (int32_t d : depth) steps += 4 * d;
    return steps;
  }

 private:
  // Add the nodes below one whose leftmost leaf has this number; the number after its last leaf, or -1 if there are
  // too many leaves.
  int64_t add_tests(int64_t t, int32_t node, int64_t leaf) {
    if (leaf < 0 || leaf >= kMostLeaves) return -1;
    if (child[node] == node) {
      leaf_tile[t * kMostLeaves + leaf] = tile[node];
      return leaf + 1;
    }
    const size_t here = remaining.size();
    test_column.push_back(column[node]);
    test_threshold.push_back(threshold[node]);
    remaining.push_back(0);
    const int64_t middle = add_tests(t, child[node], leaf);
    if (middle < 0 || middle >= kMostLeaves) return -1;
    remaining[here] = ~(((Bits(1) << (middle - leaf)) - 1) << leaf);
    return add_tests(t, child[node] + 1, middle);
  }
};

// Rows are asked in groups of so many, four vectors of them, or one by one.
template <class T>
constexpr int64_t kRuleRows = 256 / sizeof(T);

template <class T>
struct RuleScratch : Gate<T>::Scratch {
  int64_t n_rows;          // of a group
  std::vector<T> columns;  // [used feature][row]
  std::vector<int32_t> node, tile;

  // One column at least: a leaf compares with the first.
  RuleScratch(const RuleGate<T>& gate, int64_t n)
      : n_rows(std::min(n, kRuleRows<T>)), columns(std::max<size_t>(1, gate.used.size()) * n_rows), node(n_rows),
        tile(n_rows) {}
};

template <class T>
inline void read_columns(const RuleGate<T>& gate, const DenseRows<T>& x, int64_t begin, int64_t n,
                         RuleScratch<T>& scratch) {
  const int64_t n_used = static_cast<int64_t>(gate.used.size()), stride = scratch.n_rows;
  const int32_t* used = gate.used.data();
  for (int64_t r = 0; r < n; ++r) {
    const T* row = x.data + (begin + r) * x.stride;
    T* to = scratch.columns.data() + r;
    for (int64_t u = 0; u < n_used; ++u) to[u * stride] = row[used[u]];
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

#if defined(__GNUC__)
// The leaves that remain of one tree for a whole group of rows, by vectors of so many bytes: comparisons of vectors
// that a machine does not have become scalar.
template <int Bytes, class T>
inline void remaining_by(const RuleGate<T>& gate, int64_t t, const T* values, typename RuleGate<T>::Bits* leaves) {
  typedef typename RuleGate<T>::Bits Bits __attribute__((vector_size(Bytes)));
  typedef T Values __attribute__((vector_size(Bytes)));
  constexpr int64_t w = Bytes / sizeof(T), at_once = 4;
  for (int64_t first = 0; first < kRuleRows<T>; first += at_once * w) {
    Bits left[at_once] = {~Bits{}, ~Bits{}, ~Bits{}, ~Bits{}};
    for (int32_t q = gate.test[t]; q < gate.test[t + 1]; ++q) {
      const T* column = values + gate.test_column[q] * kRuleRows<T> + first;
      const T threshold = gate.test_threshold[q];
#pragma GCC unroll 4
      for (int v = 0; v < at_once; ++v) {
        Values value;
        std::memcpy(&value, column + v * w, sizeof(value));
        left[v] = value > threshold ? left[v] & gate.remaining[q] : left[v];
      }
    }
    std::memcpy(leaves + first, left, sizeof(left));
  }
}

#if defined(SVMOSAIC_LONG_VECTORS)
template <class T>
SVMOSAIC_LONG_VECTORS void remaining_by_long(const RuleGate<T>& gate, int64_t t, const T* values,
                                             typename RuleGate<T>::Bits* leaves) {
  remaining_by<64>(gate, t, values, leaves);
}
#endif

template <class T>
inline void remaining_leaves(const RuleGate<T>& gate, int64_t t, const T* values, typename RuleGate<T>::Bits* leaves) {
#if defined(SVMOSAIC_LONG_VECTORS)
  if (SVMOSAIC_HAS_LONG_VECTORS) return remaining_by_long(gate, t, values, leaves);
#endif
  remaining_by<32>(gate, t, values, leaves);
}

inline int lowest_bit(uint32_t bits) { return __builtin_ctz(bits); }
inline int lowest_bit(uint64_t bits) { return __builtin_ctzll(bits); }
#endif

// Tiles of the n rows of a group in one tree, by walking.
template <class T>
inline void walk(const RuleGate<T>& gate, int64_t t, int64_t n, RuleScratch<T>& scratch) {
  const int32_t *column = gate.column.data(), *child = gate.child.data();
  const T *threshold = gate.threshold.data(), *values = scratch.columns.data();
  const int32_t stride = static_cast<int32_t>(scratch.n_rows), rows = static_cast<int32_t>(n);
  int32_t* node = scratch.node.data();
  std::fill(node, node + n, gate.root[t]);
  for (int32_t step = 0; step < gate.depth[t]; ++step)
    for (int32_t r = 0; r < rows; ++r) {
      const int32_t here = node[r];
      node[r] = child[here] + (values[column[here] * stride + r] > threshold[here] ? 1 : 0);
    }
  for (int64_t r = 0; r < n; ++r) scratch.tile[r] = gate.tile[node[r]];
}

// use(first row, rows, tree, tiles) for the trees in their order, of one group of rows after another.
template <class T, class Rows, class Use>
inline void find_leaves(const RuleGate<T>& gate, const Rows& x, int64_t begin, int64_t n, RuleScratch<T>& scratch,
                        const Use& use) {
  for (int64_t first = 0; first < n; first += scratch.n_rows) {
    const int64_t m = std::min(scratch.n_rows, n - first);
    read_columns(gate, x, begin + first, m, scratch);
    for (int64_t t = 0; t < gate.width; ++t) {
#if defined(__GNUC__)
      if (scratch.n_rows == kRuleRows<T> && gate.has_tests(t)) {
        const int32_t* leaf_tile = gate.leaf_tile.data() + t * RuleGate<T>::kMostLeaves;
        typename RuleGate<T>::Bits leaves[kRuleRows<T>];
        remaining_leaves(gate, t, scratch.columns.data(), leaves);
        use(first, m, t, [&](int64_t r) { return leaf_tile[lowest_bit(leaves[r])]; });
        continue;
      }
#endif
      walk(gate, t, m, scratch);
      use(first, m, t, [&](int64_t r) { return scratch.tile[r]; });
    }
  }
}

template <class T, class Rows>
SVMOSAIC_CLONES void code_block(const RuleGate<T>& gate, const Rows& x, int64_t begin, int64_t n,
                                RuleScratch<T>& scratch, int32_t* tile, double* weight) {
  std::fill(weight, weight + n * gate.width, 1.0);
  find_leaves(gate, x, begin, n, scratch, [&](int64_t first, int64_t m, int64_t t, const auto& tile_of) {
    int32_t* to = tile + first * gate.width + t;
    for (int64_t r = 0; r < m; ++r) to[r * gate.width] = tile_of(r);
  });
}

template <class T, class Rows>
SVMOSAIC_CLONES void add_block(const RuleGate<T>& gate, const Rows& x, int64_t begin, int64_t n,
                               RuleScratch<T>& scratch, const Numbers& numbers, double* out) {
  const double factor = numbers.factor, *number = numbers.number;
  const int64_t n_outputs = numbers.n_outputs;
  find_leaves(gate, x, begin, n, scratch, [&](int64_t first, int64_t m, int64_t, const auto& tile_of) {
    double* to = out + first * n_outputs;
    if (n_outputs == 1) {
      for (int64_t r = 0; r < m; ++r) to[r] += factor * number[tile_of(r)];
      return;
    }
    for (int64_t r = 0; r < m; ++r) {
      const double* from = number + tile_of(r) * n_outputs;
      for (int64_t c = 0; c < n_outputs; ++c) to[r * n_outputs + c] += factor * from[c];
    }
  });
}

template <class T>
void RuleGate<T>::add(const DenseRows<T>& x, int64_t begin, int64_t n, typename Gate<T>::Scratch& scratch,
                      const Numbers& numbers, double* out) const {
  add_block(*this, x, begin, n, static_cast<RuleScratch<T>&>(scratch), numbers, out);
}

template <class T>
void RuleGate<T>::add(const SparseRows<T>& x, int64_t begin, int64_t n, typename Gate<T>::Scratch& scratch,
                      const Numbers& numbers, double* out) const {
  add_block(*this, x, begin, n, static_cast<RuleScratch<T>&>(scratch), numbers, out);
}

}  // namespace svmosaic
