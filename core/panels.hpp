// Products of rows with a small dense matrix, the arithmetic under gates and tiles.
//
// The matrix M (m x d) is kept in panels of kPanelLanes columns of M^T, so that one feature of a row
// meets the whole panel in two vector multiply-adds. Rows are taken kRowsAtOnce at a time, which
// reuses each load of the panel; a panel of a few hundred features stays in the second-level cache.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "rows.hpp"
#include "simd.hpp"

namespace svmosaic {

constexpr int kRowsAtOnce = 6;

template <class T>
constexpr int kPanelLanes = 2 * 64 / static_cast<int>(sizeof(T));

template <class T>
struct Panels {
  int64_t n = 0, n_features = 0, n_panels = 0;
  std::vector<T> data;  // [panel][feature][lane]

  // From M with `stride` numbers a row.
  static Panels pack(const T* matrix, int64_t n, int64_t n_features, int64_t stride) {
    constexpr int lanes = kPanelLanes<T>;
    Panels p;
    p.n = n;
    p.n_features = n_features;
    p.n_panels = (n + lanes - 1) / lanes;
    p.data.assign(p.n_panels * n_features * lanes, T(0));
    for (int64_t j = 0; j < n; ++j)
      for (int64_t f = 0; f < n_features; ++f)
        p.data[((j / lanes) * n_features + f) * lanes + j % lanes] = matrix[j * stride + f];
    return p;
  }

  int64_t padded() const { return n_panels * kPanelLanes<T>; }
  const T* panel(int64_t q) const { return data.data() + q * n_features * kPanelLanes<T>; }
};

// out[r][0 .. lanes) = <x_r, columns of the panel> for R dense rows
template <int R, class T>
inline void dense_by_panel(const T* const* x, const T* panel, int64_t d, T* const* out) {
#if defined(__GNUC__)
  constexpr int w = kLanes<T>;
  Lanes<T> sum[R][2] = {};
  for (int64_t f = 0; f < d; ++f) {
    const Lanes<T> left = load<T>(panel + f * 2 * w), right = load<T>(panel + f * 2 * w + w);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const T value = x[r][f];
      sum[r][0] += value * left;
      sum[r][1] += value * right;
    }
  }
  for (int r = 0; r < R; ++r) {
    store<T>(out[r], sum[r][0]);
    store<T>(out[r] + w, sum[r][1]);
  }
#else
  constexpr int lanes = kPanelLanes<T>;
  for (int r = 0; r < R; ++r) {
    for (int l = 0; l < lanes; ++l) out[r][l] = 0;
    for (int64_t f = 0; f < d; ++f)
      for (int l = 0; l < lanes; ++l) out[r][l] += x[r][f] * panel[f * lanes + l];
  }
#endif
}

// out[r] = M x_r for n dense rows given by their addresses; out has panels.padded() numbers a row.
template <class T>
inline void multiply_dense(const T* const* x, int64_t n, const Panels<T>& panels, T* const* out) {
  constexpr int lanes = kPanelLanes<T>;
  for (int64_t q = 0; q < panels.n_panels; ++q) {
    const T* panel = panels.panel(q);
    int64_t r = 0;
    for (; r + kRowsAtOnce <= n; r += kRowsAtOnce) {
      T* at[kRowsAtOnce];
      for (int s = 0; s < kRowsAtOnce; ++s) at[s] = out[r + s] + q * lanes;
      dense_by_panel<kRowsAtOnce, T>(x + r, panel, panels.n_features, at);
    }
    for (; r < n; ++r) {
      T* at[1] = {out[r] + q * lanes};
      dense_by_panel<1, T>(x + r, panel, panels.n_features, at);
    }
  }
}

// out = M x for one sparse row
template <class T>
inline void multiply_sparse(const SparseRows<T>& x, int64_t i, const Panels<T>& panels, T* out) {
  constexpr int lanes = kPanelLanes<T>;
  for (int64_t q = 0; q < panels.n_panels; ++q) {
    const T* panel = panels.panel(q);
    T* at = out + q * lanes;
#if defined(__GNUC__)
    constexpr int w = kLanes<T>;
    Lanes<T> left{}, right{};
    for (int64_t p = x.indptr[i]; p < x.indptr[i + 1]; ++p) {
      const T* column = panel + static_cast<int64_t>(x.indices[p]) * lanes;
      left += x.data[p] * load<T>(column);
      right += x.data[p] * load<T>(column + w);
    }
    store<T>(at, left);
    store<T>(at + w, right);
#else
    for (int l = 0; l < lanes; ++l) at[l] = 0;
    for (int64_t p = x.indptr[i]; p < x.indptr[i + 1]; ++p)
      for (int l = 0; l < lanes; ++l) at[l] += x.data[p] * panel[static_cast<int64_t>(x.indices[p]) * lanes + l];
#endif
  }
}

}  // namespace svmosaic
