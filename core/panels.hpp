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

// out[r][at ..] (+)= <x_r, columns of the panel> over features [begin, end), for R rows and V vectors; `panel` has `lanes`
// numbers per feature
#if defined(__GNUC__)
template <class Vector, int R, int V, class T>
inline void dense_by_panel(const T* const* x, const T* panel, int64_t lanes, int64_t begin, int64_t end, T* const* out,
                           int64_t at) {
  constexpr int w = sizeof(Vector) / sizeof(T);
  Vector sum[R][V];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) sum[r][v] = begin == 0 ? Vector{} : load_vector<Vector>(out[r] + at + v * w);
  for (int64_t f = begin; f < end; ++f) {
    Vector column[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) column[v] = load_vector<Vector>(panel + f * lanes + v * w);
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
    for (int v = 0; v < V; ++v) store_vector(out[r] + at + v * w, sum[r][v]);
}

// V vectors of all panels at a time.
template <class Vector, int V, class T>
inline void multiply_by_panels(const T* const* x, int64_t n, const Panels<T>& panels, T* const* out) {
  constexpr int many = kRowsAtOnce * 2 / V;
  constexpr int64_t columns = V * static_cast<int64_t>(sizeof(Vector) / sizeof(T));
  const int64_t lanes = panels.lanes;
  for (int64_t at = 0; at < panels.padded(); at += columns) {
    const T* panel = panels.panel(at / lanes) + at % lanes;
    for (int64_t begin = 0; begin < panels.n_features; begin += kFeaturesAtOnce) {
      const int64_t end = std::min(panels.n_features, begin + kFeaturesAtOnce);
      int64_t r = 0;
      for (; r + many <= n; r += many) dense_by_panel<Vector, many, V>(x + r, panel, lanes, begin, end, out + r, at);
      for (; r + 3 <= n; r += 3) dense_by_panel<Vector, 3, V>(x + r, panel, lanes, begin, end, out + r, at);
      for (; r < n; ++r) dense_by_panel<Vector, 1, V>(x + r, panel, lanes, begin, end, out + r, at);
    }
  }
}

#endif

// out[r] = M x_r for n dense rows given by their addresses; out has panels.padded() numbers per row.
template <class T>
inline void multiply_dense(const T* const* x, int64_t n, const Panels<T>& panels, T* const* out) {
#if defined(__GNUC__)
  if (!has_long_registers())
    multiply_by_panels<ShortLanes<T>, 2>(x, n, panels, out);
  else if (panels.lanes == Panels<T>::kVector)
    multiply_by_panels<Lanes<T>, 1>(x, n, panels, out);
  else
    multiply_by_panels<Lanes<T>, 2>(x, n, panels, out);
#else
  for (int64_t r = 0; r < n; ++r)
    for (int64_t at = 0; at < panels.padded(); ++at) {
      const T* panel = panels.panel(at / panels.lanes) + at % panels.lanes;
      T sum = 0;
      for (int64_t f = 0; f < panels.n_features; ++f) sum += x[r][f] * panel[f * panels.lanes];
      out[r][at] = sum;
    }
#endif
}

#if defined(__GNUC__)
// As below, V vectors of all panels at a time.
template <class Vector, int V, class X, class T>
inline void multiply_sparse_by_panels(const SparseRows<X>& x, int64_t i, const Panels<T>& panels, T* out) {
  constexpr int w = sizeof(Vector) / sizeof(T);
  for (int64_t at = 0; at < panels.padded(); at += V * w) {
    const T* panel = panels.panel(at / panels.lanes) + at % panels.lanes;
    Vector sum[V] = {};
    for (int64_t p = x.indptr[i]; p < x.indptr[i + 1]; ++p) {
      const T* column = panel + static_cast<int64_t>(x.indices[p]) * panels.lanes;
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) sum[v] += static_cast<T>(x.data[p]) * load_vector<Vector>(column + v * w);
    }
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) store_vector(out + at + v * w, sum[v]);
  }
}

#endif

// out = M x for one sparse row, in the precision of M
template <class X, class T>
inline void multiply_sparse(const SparseRows<X>& x, int64_t i, const Panels<T>& panels, T* out) {
#if defined(__GNUC__)
  if (!has_long_registers())
    multiply_sparse_by_panels<ShortLanes<T>, 2>(x, i, panels, out);
  else if (panels.lanes == Panels<T>::kVector)
    multiply_sparse_by_panels<Lanes<T>, 1>(x, i, panels, out);
  else
    multiply_sparse_by_panels<Lanes<T>, 2>(x, i, panels, out);
#else
  std::fill(out, out + panels.padded(), T(0));
  for (int64_t p = x.indptr[i]; p < x.indptr[i + 1]; ++p)
    for (int64_t at = 0; at < panels.padded(); ++at)
      out[at] += static_cast<T>(x.data[p]) *
                 panels.panel(at / panels.lanes)[static_cast<int64_t>(x.indices[p]) * panels.lanes + at % panels.lanes];
#endif
}

}  // namespace svmosaic
