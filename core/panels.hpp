// Products of rows with a small dense matrix, the arithmetic under gates and tiles.
//
// The matrix M (m x d) is kept in panels of columns of M^T, one or two vectors wide, so that one feature
// of a row meets the whole panel in one or two vector multiply-adds. Rows are taken several at a time,
// which reuses each load of the panel, and features in chunks, so that a panel's chunk stays in the
// first-level cache for all the rows of a call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "rows.hpp"
#include "simd.hpp"

namespace svmosaic {

// Rows at a time for a panel of two vectors: twelve accumulators. Of one vector: twice as many.
constexpr int kRowsAtOnce = 6;
// Features at a time: 16 kB of a panel of two vectors.
constexpr int64_t kFeaturesAtOnce = 128;

template <class T>
struct Panels {
  int64_t n = 0, n_features = 0, n_panels = 0, lanes = 0;
  std::vector<T> data;  // [panel][feature][lane]

  static constexpr int64_t kVector = 64 / static_cast<int64_t>(sizeof(T));

  // From M with `stride` numbers per row.
  static Panels pack(const T* matrix, int64_t n, int64_t n_features, int64_t stride) {
    Panels p;
    p.n = n;
    p.n_features = n_features;
    p.lanes = n <= kVector ? kVector : 2 * kVector;
    p.n_panels = (n + p.lanes - 1) / p.lanes;
    p.data.assign(p.n_panels * n_features * p.lanes, T(0));
    for (int64_t j = 0; j < n; ++j)
      for (int64_t f = 0; f < n_features; ++f)
        p.data[((j / p.lanes) * n_features + f) * p.lanes + j % p.lanes] = matrix[j * stride + f];
    return p;
  }

  // Another row j of M.
  void set(int64_t j, const T* row) {
    T* at = data.data() + (j / lanes) * n_features * lanes + j % lanes;
    for (int64_t f = 0; f < n_features; ++f) at[f * lanes] = row[f];
  }

  int64_t padded() const { return n_panels * lanes; }
  const T* panel(int64_t q) const { return data.data() + q * n_features * lanes; }
};

// out[r] = M x_r for n dense rows given by their addresses; out has panels.padded() numbers per row.
template <class T>
void multiply_dense(const T* const* x, int64_t n, const Panels<T>& panels, T* const* out);

// out[r] = M x_r in the precision of M, for n sparse rows: those listed, counted from `begin`, or (null) consecutive ones.
template <class X, class T>
void multiply_sparse(const SparseRows<X>& x, int64_t begin, const int32_t* rows, int64_t n, const Panels<T>& panels,
                     T* const* out);

}  // namespace svmosaic
