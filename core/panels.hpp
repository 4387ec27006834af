// Products of rows with a small dense matrix, the arithmetic under gates and tiles.
//
// The matrix M (m x d) is kept in panels of one or two vectors of columns of M^T, so that one feature of
// a row meets the whole panel in one or two vector multiply-adds. Rows are taken several at a time, which
// reuses each load of the panel, and features in runs that keep the panel in the first-level cache.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "rows.hpp"
#include "simd.hpp"

namespace svmosaic {

#if !defined(__GNUC__)
template <class T>
constexpr int kLanes = 64 / sizeof(T);
#endif

// Rows at a time, for panels two vectors wide; twice as many for one. Twelve accumulators fill the registers.
constexpr int kRowsAtOnce = 6;
constexpr int64_t kFeaturesAtOnce = 256;

template <class T>
struct Panels {
  int64_t n = 0, n_features = 0, n_panels = 0;
  int vectors = 2;      // a panel's width; one where the whole matrix fits into it
  std::vector<T> data;  // [panel][feature][lane]

  // From M with `stride` numbers a row.
  static Panels pack(const T* matrix, int64_t n, int64_t n_features, int64_t stride) {
    Panels p;
    p.n = n;
    p.n_features = n_features;
    p.vectors = n <= kLanes<T> ? 1 : 2;
    const int64_t lanes = p.lanes();
    p.n_panels = (n + lanes - 1) / lanes;
    p.data.assign(p.n_panels * n_features * lanes, T(0));
    for (int64_t j = 0; j < n; ++j)
      for (int64_t f = 0; f < n_features; ++f)
        p.data[((j / lanes) * n_features + f) * lanes + j % lanes] = matrix[j * stride + f];
    return p;
  }

  int64_t lanes() const { return vectors * kLanes<T>; }
  int64_t padded() const { return n_panels * lanes(); }
  const T* panel(int64_t q) const { return data.data() + q * n_features * lanes(); }
};

// out[r][0 .. lanes) += <x_r, columns of the panel> over d features of R dense rows
template <int R, int W, class T>
inline void dense_by_panel(const T* const* x, int64_t first, int64_t d, const T* panel, T* const* out) {
  constexpr int w = kLanes<T>, lanes = W * w;
#if defined(__GNUC__)
  // With few rows, several features at a time keep the multiply-add units busy.
  constexpr int U = R * W >= 8 ? 1 : (R * W >= 4 ? 2 : 4);
  Lanes<T> sum[U][R][W] = {};
  int64_t f = 0;
  for (; f + U <= d; f += U) {
#pragma GCC unroll 4
    for (int u = 0; u < U; ++u) {
      Lanes<T> column[W];
#pragma GCC unroll 2
      for (int v = 0; v < W; ++v) column[v] = load<T>(panel + (f + u) * lanes + v * w);
#pragma GCC unroll 12
      for (int r = 0; r < R; ++r) {
        const T value = x[r][first + f + u];
#pragma GCC unroll 2
        for (int v = 0; v < W; ++v) sum[u][r][v] += value * column[v];
      }
    }
  }
  for (; f < d; ++f)
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < W; ++v) sum[0][r][v] += x[r][first + f] * load<T>(panel + f * lanes + v * w);
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < W; ++v) {
      Lanes<T> total = sum[0][r][v];
#pragma GCC unroll 4
      for (int u = 1; u < U; ++u) total += sum[u][r][v];
      store<T>(out[r] + v * w, load<T>(out[r] + v * w) + total);
    }
#else
  for (int r = 0; r < R; ++r)
    for (int64_t f = 0; f < d; ++f)
      for (int l = 0; l < lanes; ++l) out[r][l] += x[r][first + f] * panel[f * lanes + l];
#endif
}

template <int R, int W, class T>
inline int64_t dense_rows_by_panel(const T* const* x, int64_t from, int64_t n, int64_t first, int64_t d, const T* panel,
                                   int64_t offset, T* const* out) {
  for (; from + R <= n; from += R) {
    T* at[R];
    for (int r = 0; r < R; ++r) at[r] = out[from + r] + offset;
    dense_by_panel<R, W, T>(x + from, first, d, panel, at);
  }
  return from;
}

// out[r] = M x_r for n dense rows given by their addresses; out has panels.padded() numbers a row.
template <class T>
inline void multiply_dense(const T* const* x, int64_t n, const Panels<T>& panels, T* const* out) {
  const int64_t lanes = panels.lanes(), padded = panels.padded();
  for (int64_t r = 0; r < n; ++r) std::fill(out[r], out[r] + padded, T(0));
  for (int64_t q = 0; q < panels.n_panels; ++q) {
    for (int64_t first = 0; first < panels.n_features; first += kFeaturesAtOnce) {
      const int64_t d = std::min(kFeaturesAtOnce, panels.n_features - first), offset = q * lanes;
      const T* panel = panels.panel(q) + first * lanes;
      int64_t r = 0;
      if (panels.vectors == 2) {
        r = dense_rows_by_panel<kRowsAtOnce, 2, T>(x, r, n, first, d, panel, offset, out);
        r = dense_rows_by_panel<3, 2, T>(x, r, n, first, d, panel, offset, out);
        dense_rows_by_panel<1, 2, T>(x, r, n, first, d, panel, offset, out);
      } else {
        r = dense_rows_by_panel<2 * kRowsAtOnce, 1, T>(x, r, n, first, d, panel, offset, out);
        r = dense_rows_by_panel<4, 1, T>(x, r, n, first, d, panel, offset, out);
        dense_rows_by_panel<1, 1, T>(x, r, n, first, d, panel, offset, out);
      }
    }
  }
}

// out = M x for one sparse row
template <class T>
inline void multiply_sparse(const SparseRows<T>& x, int64_t i, const Panels<T>& panels, T* out) {
  const int64_t lanes = panels.lanes();
  std::fill(out, out + panels.padded(), T(0));
  for (int64_t q = 0; q < panels.n_panels; ++q) {
    const T* panel = panels.panel(q);
    for (int64_t p = x.indptr[i]; p < x.indptr[i + 1]; ++p)
      axpy(x.data[p], panel + static_cast<int64_t>(x.indices[p]) * lanes, out + q * lanes, lanes);
  }
}

}  // namespace svmosaic
