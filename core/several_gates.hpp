// Several gates as one: their codes side by side, each gate's tiles numbered after those of the gate before it.
//
//   f(x) = sum_m factor_m sum_j g_mj(x) s_mj(x)
//
// A model with several learned gates, and a weighted sum of models, is so a model with one gate.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gate.hpp"
#include "rows.hpp"
#include "simd.hpp"

namespace svmosaic {

template <class T>
struct SeveralScratch;

template <class T>
struct SeveralGates : GateOf<T, SeveralGates, SeveralScratch> {
  using Base = GateOf<T, SeveralGates, SeveralScratch>;
  // A null pointer is the gate of a single tile, which all rows belong to. Kept alive by whoever made this.
  std::vector<const Gate<T>*> gates;
  std::vector<double> factor;
  std::vector<int64_t> first_tile;  // by gate

  SeveralGates(std::vector<const Gate<T>*> gates_in, const double* factor_in, int64_t n_features)
      : Base(sum(gates_in, &Gate<T>::n_tiles), n_features, sum(gates_in, &Gate<T>::width), all_posterior(gates_in)),
        gates(std::move(gates_in)),
        factor(factor_in, factor_in + gates.size()) {
    int64_t first = 0;
    for (const Gate<T>* gate : gates) {
      first_tile.push_back(first);
      first += gate ? gate->n_tiles : 1;
    }
  }

  int64_t cost() const override {
    int64_t total = 0;
    for (const Gate<T>* gate : gates) total += gate ? gate->cost() : 0;
    return total;
  }

 private:
  static int64_t sum(const std::vector<const Gate<T>*>& gates, int64_t Gate<T>::*member) {
    int64_t total = 0;
    for (const Gate<T>* gate : gates) total += gate ? gate->*member : 1;
    return total;
  }
  // The pairs of a single tile are all its tiles in their order too.
  static bool all_posterior(const std::vector<const Gate<T>*>& gates) {
    for (const Gate<T>* gate : gates)
      if (gate && !gate->posterior) return false;
    return true;
  }
};

template <class T>
struct SeveralScratch : Gate<T>::Scratch {
  std::vector<std::unique_ptr<typename Gate<T>::Scratch>> inner;
  std::vector<int32_t> tile;
  std::vector<double> weight;

  SeveralScratch(const SeveralGates<T>& several, int64_t n_rows) {
    int64_t widest = 1;
    for (const Gate<T>* gate : several.gates) {
      inner.push_back(gate ? gate->scratch(n_rows) : nullptr);
      if (gate) widest = std::max(widest, gate->width);
    }
    tile.resize(n_rows * widest);
    weight.resize(n_rows * widest);
  }
};

template <class T, class Rows>
SVMOSAIC_CLONES void code_block(const SeveralGates<T>& several, const Rows& x, int64_t begin, int64_t n, SeveralScratch<T>& scratch,
                int32_t* tile, double* weight) {
  int64_t first_pair = 0;
  for (size_t m = 0; m < several.gates.size(); ++m) {
    const Gate<T>* gate = several.gates[m];
    const int64_t width = gate ? gate->width : 1;
    if (gate) {
      gate->code(x, begin, n, *scratch.inner[m], scratch.tile.data(), scratch.weight.data());
    } else {
      std::fill_n(scratch.tile.begin(), n, 0);
      std::fill_n(scratch.weight.begin(), n, 1.0);
    }
    const int32_t offset = static_cast<int32_t>(several.first_tile[m]);
    const double factor = several.factor[m];
    for (int64_t r = 0; r < n; ++r) {
      const int32_t* from = scratch.tile.data() + r * width;
      const double* weights = scratch.weight.data() + r * width;
      int32_t* to = tile + r * several.width + first_pair;
      double* scaled = weight + r * several.width + first_pair;
      for (int64_t a = 0; a < width; ++a) to[a] = from[a] + offset;
      for (int64_t a = 0; a < width; ++a) scaled[a] = factor * weights[a];
    }
    first_pair += width;
  }
}

}  // namespace svmosaic
