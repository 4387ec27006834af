// A gate of the projection P x of a row, in the rows' own precision.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gate.hpp"
#include "panels.hpp"
#include "rows.hpp"

namespace svmosaic {

template <class T>
struct ProjectedScratch;

template <class T>
struct ProjectedGate : GateOf<T, ProjectedGate, ProjectedScratch> {
  using Base = GateOf<T, ProjectedGate, ProjectedScratch>;
  using Base::n_features;
  Panels<T> projection;
  const Gate<T>& inner;  // kept alive by whoever made this

  ProjectedGate(const double* projection_in, int64_t n_components, int64_t n_features, const Gate<T>& inner)
      : Base(inner.n_tiles, n_features, inner.width, inner.posterior), inner(inner) {
    const std::vector<T> rounded(projection_in, projection_in + n_components * n_features);
    projection = Panels<T>::pack(rounded.data(), n_components, n_features, n_features);
  }

  int64_t cost() const override { return n_features * projection.n + inner.cost(); }
};

template <class T>
struct ProjectedScratch : Gate<T>::Scratch {
  std::vector<T> projected;
  std::vector<const T*> row;
  std::vector<T*> out;
  std::unique_ptr<typename Gate<T>::Scratch> inner;

  ProjectedScratch(const ProjectedGate<T>& gate, int64_t n_rows)
      : projected(n_rows * gate.projection.padded()), row(n_rows), out(n_rows), inner(gate.inner.scratch(n_rows)) {
    for (int64_t r = 0; r < n_rows; ++r) out[r] = projected.data() + r * gate.projection.padded();
  }
};

template <class T>
void project(const ProjectedGate<T>& gate, const DenseRows<T>& x, int64_t begin, int64_t n,
             ProjectedScratch<T>& scratch) {
  for (int64_t r = 0; r < n; ++r) scratch.row[r] = x.data + (begin + r) * x.stride;
  multiply_dense(scratch.row.data(), n, gate.projection, scratch.out.data());
}

template <class T>
void project(const ProjectedGate<T>& gate, const SparseRows<T>& x, int64_t begin, int64_t n,
             ProjectedScratch<T>& scratch) {
  multiply_sparse(x, begin, nullptr, n, gate.projection, scratch.out.data());
}

template <class T, class Rows>
void code_block(const ProjectedGate<T>& gate, const Rows& x, int64_t begin, int64_t n,
                ProjectedScratch<T>& scratch, int32_t* tile, double* weight) {
  project(gate, x, begin, n, scratch);
  const DenseRows<T> z{scratch.projected.data(), n, gate.projection.n, gate.projection.padded(), 0.0};
  gate.inner.code(z, 0, n, *scratch.inner, tile, weight);
}

}  // namespace svmosaic
