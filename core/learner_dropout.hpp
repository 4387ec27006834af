// Dropout of features: in each step, each feature of each row is set to zero with probability `rate`, and what stays is
// divided by 1 - rate. The bias stays.
//
// Whether a feature is dropped is a hash of (seed, step, data row, feature), so that it depends neither on threads nor on
// the order of the work, and so that another learner (learner/jax_step.py) drops the same.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "rows.hpp"

namespace svmosaic {

// The finalizer of MurmurHash3 (public domain): every bit of the input changes every bit of the output.
inline uint32_t mixed(uint32_t h) {
  h ^= h >> 16;
  h *= 0x85ebca6bu;
  h ^= h >> 13;
  h *= 0xc2b2ae35u;
  h ^= h >> 16;
  return h;
}

struct Dropout {
  double rate = 0;
  uint32_t seed = 0;

  uint32_t key_of_step(uint64_t step) const { return mixed(seed ^ mixed(static_cast<uint32_t>(step) + 0x9e3779b9u)); }
  static uint32_t key_of_row(uint32_t step_key, int64_t row) {
    return mixed(step_key ^ (static_cast<uint32_t>(row) * 0x9e3779b1u));
  }
  // A feature is dropped if its hash is below this.
  uint32_t threshold() const { return static_cast<uint32_t>(std::min(rate * 4294967296.0, 4294967295.0)); }
  static uint32_t hash(uint32_t row_key, int64_t feature) {
    return mixed(row_key ^ (static_cast<uint32_t>(feature) * 0x85ebca77u));
  }
};

// Rows as lists of their features.
template <class T>
struct ListedRows {
  struct Row {
    std::vector<int32_t> feature;
    std::vector<T> value;
  };
  std::vector<Row> row;
  int64_t n_features = 0;
  double bias = 0;

  T dot(int64_t r, const T* v) const {
    T sum = static_cast<T>(bias) * v[n_features];
    for (size_t p = 0; p < row[r].feature.size(); ++p) sum += row[r].value[p] * v[row[r].feature[p]];
    return sum;
  }
  void add(int64_t r, T scale, T* v) const {
    for (size_t p = 0; p < row[r].feature.size(); ++p) v[row[r].feature[p]] += scale * row[r].value[p];
    v[n_features] += scale * static_cast<T>(bias);
  }
};

// The rows of a batch after dropout, numbered by their position in the batch: lists of what is left ...
template <class T, class Rows>
struct Dropped {
  ListedRows<T> lists;

  void take(const Rows& x, int64_t n_rows) {
    if (static_cast<int64_t>(lists.row.size()) < n_rows) lists.row.resize(n_rows);
    lists.n_features = x.n_features;
    lists.bias = x.bias;
  }
  void fill(const Dropout& dropout, uint32_t step_key, const Rows& x, int64_t i, int64_t r) {
    const uint32_t key = Dropout::key_of_row(step_key, i), threshold = dropout.threshold();
    const double scale = 1 / (1 - dropout.rate);
    auto& to = lists.row[r];
    to.feature.clear();
    to.value.clear();
    x.each(i, [&](int64_t f, double value) {
      if (Dropout::hash(key, f) < threshold) return;
      to.feature.push_back(static_cast<int32_t>(f));
      to.value.push_back(static_cast<T>(scale * value));
    });
  }
  const ListedRows<T>& rows() const { return lists; }
};

// ... but of dense rows dense ones.
template <class T>
struct Dropped<T, DenseRows<T>> {
  std::vector<T> data;
  DenseRows<T> view{};

  void take(const DenseRows<T>& x, int64_t n_rows) {
    data.resize(n_rows * x.n_features);
    view = {data.data(), n_rows, x.n_features, x.n_features, x.bias};
  }
  void fill(const Dropout& dropout, uint32_t step_key, const DenseRows<T>& x, int64_t i, int64_t r) {
    const uint32_t key = Dropout::key_of_row(step_key, i), threshold = dropout.threshold();
    const T scale = static_cast<T>(1 / (1 - dropout.rate)), *from = x.data + i * x.stride;
    T* to = data.data() + r * x.n_features;
    for (int64_t f = 0; f < x.n_features; ++f) to[f] = Dropout::hash(key, f) < threshold ? T(0) : scale * from[f];
  }
  const DenseRows<T>& rows() const { return view; }
};

}  // namespace svmosaic
