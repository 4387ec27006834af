// A gate of the projection P phi(x) of a row, with phi its piecewise-linear features (pieces.hpp), folded as in curves.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "curves.hpp"
#include "gate.hpp"
#include "panels.hpp"
#include "rows.hpp"

namespace svmosaic {

template <class T>
struct CurvedScratch;

template <class T>
struct CurvedGate : GateOf<T, CurvedGate, CurvedScratch> {
  using Base = GateOf<T, CurvedGate, CurvedScratch>;
  Curves<T> curves;
  Panels<T> projection;
  const Gate<T>& inner;  // kept alive by whoever made this

  // The lines of the projection are like the weights of tiles: slopes, values at knots, the sum of all curves at zero.
  CurvedGate(Curves<T>&& curves_in, const double* projection_in, int64_t n_components, const Gate<T>& inner)
      : Base(inner.n_tiles, curves_in.pieces.n_inputs, inner.width, inner.posterior), curves(std::move(curves_in)),
        inner(inner) {
    const int64_t n = curves.n_features();
    const std::vector<T> rounded(projection_in, projection_in + n_components * n);
    projection = Panels<T>::pack(rounded.data(), n_components, n, n);
  }

  int64_t cost() const override { return curves.work() * (projection.n + 8) + inner.cost(); }
};

template <class T>
struct CurvedScratch : Gate<T>::Scratch {
  CurveScratch<T> seen;
  std::vector<T> projected;
  std::vector<T*> out;
  std::vector<int32_t> row;
  std::unique_ptr<typename Gate<T>::Scratch> inner;

  CurvedScratch(const CurvedGate<T>& gate, int64_t n_rows)
      : projected(n_rows * gate.projection.padded()), out(n_rows), row(n_rows), inner(gate.inner.scratch(n_rows)) {
    for (int64_t r = 0; r < n_rows; ++r) {
      out[r] = projected.data() + r * gate.projection.padded();
      row[r] = static_cast<int32_t>(r);
    }
  }
};

template <class T>
void multiply_seen(const CurveRows<T>& x, int64_t n, const Panels<T>& projection, CurvedScratch<T>& scratch) {
  multiply_curves(x, scratch.row.data(), n, projection, scratch.out.data());
}

template <class T>
void multiply_seen(const SparseRows<T>& x, int64_t n, const Panels<T>& projection, CurvedScratch<T>& scratch) {
  multiply_sparse(x, 0, nullptr, n, projection, scratch.out.data());
}

template <class T, class Rows>
void code_block(const CurvedGate<T>& gate, const Rows& x, int64_t begin, int64_t n, CurvedScratch<T>& scratch,
                int32_t* tile, double* weight) {
  multiply_seen(seen_by(gate.curves, x, begin, n, scratch.seen), n, gate.projection, scratch);
  const DenseRows<T> z{scratch.projected.data(), n, gate.projection.n, gate.projection.padded(), 0.0};
  gate.inner.code(z, 0, n, *scratch.inner, tile, weight);
}

}  // namespace svmosaic
