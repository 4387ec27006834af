// A gate of scaled rows, z = (x - center) * factor, in the rows' own precision.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "gate.hpp"
#include "rows.hpp"

namespace svmosaic {

template <class T>
struct ScaledScratch;

template <class T>
struct ScaledGate : GateOf<T, ScaledGate, ScaledScratch> {
  using Base = GateOf<T, ScaledGate, ScaledScratch>;
  using Base::n_features;
  std::vector<T> center, factor;  // no center: zeros stay zeros
  const Gate<T>& inner;           // kept alive by whoever made this

  ScaledGate(const double* center_in, const double* factor_in, const Gate<T>& inner)
      : Base(inner.n_tiles, inner.n_features, inner.width, inner.posterior),
        factor(factor_in, factor_in + inner.n_features), inner(inner) {
    if (center_in) center.assign(center_in, center_in + n_features);
  }

  int64_t cost() const override { return n_features + inner.cost(); }
  bool adds() const override { return inner.adds(); }
  void add(const DenseRows<T>& x, int64_t begin, int64_t n, typename Gate<T>::Scratch& scratch, const Numbers& numbers,
           double* out) const override {
    auto& buffers = static_cast<ScaledScratch<T>&>(scratch);
    inner.add(scaled_rows(*this, x, begin, n, buffers), 0, n, *buffers.inner, numbers, out);
  }
  void add(const SparseRows<T>& x, int64_t begin, int64_t n, typename Gate<T>::Scratch& scratch, const Numbers& numbers,
           double* out) const override {
    auto& buffers = static_cast<ScaledScratch<T>&>(scratch);
    inner.add(scaled_rows(*this, x, begin, n, buffers), 0, n, *buffers.inner, numbers, out);
  }
};

template <class T>
struct ScaledScratch : Gate<T>::Scratch {
  std::vector<T> scaled;
  std::vector<int64_t> indptr;
  std::unique_ptr<typename Gate<T>::Scratch> inner;

  ScaledScratch(const ScaledGate<T>& gate, int64_t n_rows)
      : scaled(n_rows * gate.n_features), indptr(n_rows + 1), inner(gate.inner.scratch(n_rows)) {}
};

// Rows [begin, begin + n) as the inner gate sees them.
template <class T>
DenseRows<T> scaled_rows(const ScaledGate<T>& gate, const DenseRows<T>& x, int64_t begin, int64_t n,
                         ScaledScratch<T>& scratch) {
  for (int64_t r = 0; r < n; ++r) {
    const T* from = x.data + (begin + r) * x.stride;
    T* to = scratch.scaled.data() + r * gate.n_features;
    for (int64_t f = 0; f < gate.n_features; ++f)
      to[f] = (gate.center.empty() ? from[f] : from[f] - gate.center[f]) * gate.factor[f];
  }
  return {scratch.scaled.data(), n, gate.n_features, gate.n_features, 0.0};
}

template <class T>
SparseRows<T> scaled_rows(const ScaledGate<T>& gate, const SparseRows<T>& x, int64_t begin, int64_t n,
                          ScaledScratch<T>& scratch) {
  if (!gate.center.empty())
    throw std::invalid_argument("this model was fitted to dense rows and centers them: pass X.toarray()");
  const int64_t first = x.indptr[begin], n_stored = x.indptr[begin + n] - first;
  if (static_cast<int64_t>(scratch.scaled.size()) < n_stored) scratch.scaled.resize(n_stored);
  for (int64_t q = 0; q < n_stored; ++q) scratch.scaled[q] = x.data[first + q] * gate.factor[x.indices[first + q]];
  for (int64_t r = 0; r <= n; ++r) scratch.indptr[r] = x.indptr[begin + r] - first;
  return {scratch.scaled.data(), x.indices + first, scratch.indptr.data(), n, gate.n_features, 0.0};
}

template <class T, class Rows>
void code_block(const ScaledGate<T>& gate, const Rows& x, int64_t begin, int64_t n, ScaledScratch<T>& scratch,
                int32_t* tile, double* weight) {
  gate.inner.code(scaled_rows(gate, x, begin, n, scratch), 0, n, *scratch.inner, tile, weight);
}

}  // namespace svmosaic
