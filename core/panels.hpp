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

// out[r][at ..] (+)= <x_r, columns of the panel> over features [begin, end), for R rows and V vectors
template <int R, int V, class T>
inline void dense_by_panel(const T* const* x, const T* panel, int64_t begin, int64_t end, T* const* out, int64_t at) {
#if defined(__GNUC__)
  constexpr int w = kLanes<T>;
  Lanes<T> sum[R][V];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) sum[r][v] = begin == 0 ? Lanes<T>{} : load<T>(out[r] + at + v * w);
  for (int64_t f = begin; f < end; ++f) {
    Lanes<T> column[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) column[v] = load<T>(panel + (f * V + v) * w);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const T value = x[r][f];
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) sum[r][v] += value * column[v];
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) store<T>(out[r] + at + v * w, sum[r][v]);
#else
  constexpr int lanes = V * Panels<T>::kVector;
  for (int r = 0; r < R; ++r)
    for (int l = 0; l < lanes; ++l) {
      T sum = begin == 0 ? T(0) : out[r][at + l];
      for (int64_t f = begin; f < end; ++f) sum += x[r][f] * panel[f * lanes + l];
      out[r][at + l] = sum;
    }
#endif
}

template <int V, class T>
inline void multiply_by_panels(const T* const* x, int64_t n, const Panels<T>& panels, T* const* out) {
  constexpr int many = kRowsAtOnce * 2 / V;
  for (int64_t q = 0; q < panels.n_panels; ++q) {
    const T* panel = panels.panel(q);
    const int64_t at = q * panels.lanes;
    for (int64_t begin = 0; begin < panels.n_features; begin += kFeaturesAtOnce) {
      const int64_t end = std::min(panels.n_features, begin + kFeaturesAtOnce);
      int64_t r = 0;
      for (; r + many <= n; r += many) dense_by_panel<many, V>(x + r, panel, begin, end, out + r, at);
      for (; r + 3 <= n; r += 3) dense_by_panel<3, V>(x + r, panel, begin, end, out + r, at);
      for (; r < n; ++r) dense_by_panel<1, V>(x + r, panel, begin, end, out + r, at);
    }
  }
}

// out[r] = M x_r for n dense rows given by their addresses; out has panels.padded() numbers per row.
template <class T>
inline void multiply_dense(const T* const* x, int64_t n, const Panels<T>& panels, T* const* out) {
  if (panels.lanes == Panels<T>::kVector)
    multiply_by_panels<1>(x, n, panels, out);
  else
    multiply_by_panels<2>(x, n, panels, out);
}

template <int V, class X, class T>
inline void multiply_sparse_by_panels(const SparseRows<X>& x, int64_t i, const Panels<T>& panels, T* out) {
  for (int64_t q = 0; q < panels.n_panels; ++q) {
    const T* panel = panels.panel(q);
    T* at = out + q * panels.lanes;
#if defined(__GNUC__)
    constexpr int w = kLanes<T>;
    Lanes<T> sum[V] = {};
    for (int64_t p = x.indptr[i]; p < x.indptr[i + 1]; ++p) {
      const T* column = panel + static_cast<int64_t>(x.indices[p]) * (V * w);
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) sum[v] += static_cast<T>(x.data[p]) * load<T>(column + v * w);
    }
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) store<T>(at + v * w, sum[v]);
#else
    for (int64_t l = 0; l < panels.lanes; ++l) at[l] = 0;
    for (int64_t p = x.indptr[i]; p < x.indptr[i + 1]; ++p)
      for (int64_t l = 0; l < panels.lanes; ++l)
        at[l] += x.data[p] * panel[static_cast<int64_t>(x.indices[p]) * panels.lanes + l];
#endif
  }
}

// out = M x for one sparse row, in the precision of M
template <class X, class T>
inline void multiply_sparse(const SparseRows<X>& x, int64_t i, const Panels<T>& panels, T* out) {
  if (panels.lanes == Panels<T>::kVector)
    multiply_sparse_by_panels<1>(x, i, panels, out);
  else
    multiply_sparse_by_panels<2>(x, i, panels, out);
}

}  // namespace svmosaic
