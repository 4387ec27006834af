// A gate as scoring uses it: parts all of whose tiles are only numbers add them up themselves, the rest names its tiles.
//
// The leaves of a forest with constant tiles are never written down: a row's numbers are added as its leaves are found.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "gate.hpp"
#include "rows.hpp"
#include "several_gates.hpp"

namespace svmosaic {

template <class T>
struct SplitGate {
  struct Summed {
    const Gate<T>* gate;
    int64_t first_tile;
    double factor;
  };
  std::vector<Summed> summed;
  const Gate<T>* rest;  // null if nothing is left, or if there is a single tile and no gate
  int64_t width;        // pairs per row of the rest
  std::unique_ptr<SeveralGates<T>> owned;

  struct Scratch {
    std::vector<std::unique_ptr<typename Gate<T>::Scratch>> summed;
    std::unique_ptr<typename Gate<T>::Scratch> rest;
  };

  // `place` is negative for tiles that are only numbers. Without a gate, all rows belong to the only tile.
  SplitGate(const Gate<T>* gate, const std::vector<int32_t>& place) : rest(gate), width(gate ? gate->width : 1) {
    const auto adds_up = [&](const Gate<T>* part, int64_t first) {
      return part && part->adds() && std::all_of(place.begin() + first, place.begin() + first + part->n_tiles,
                                                 [](int32_t p) { return p < 0; });
    };
    std::vector<const Gate<T>*> kept;
    std::vector<double> factor;
    std::vector<int64_t> first_tile;
    if (const auto* several = dynamic_cast<const SeveralGates<T>*>(gate)) {
      for (size_t m = 0; m < several->gates.size(); ++m) {
        const Gate<T>* part = several->gates[m];
        if (adds_up(part, several->first_tile[m])) {
          summed.push_back({part, several->first_tile[m], several->factor[m]});
          continue;
        }
        kept.push_back(part);
        factor.push_back(several->factor[m]);
        first_tile.push_back(several->first_tile[m]);
      }
    } else if (adds_up(gate, 0)) {
      summed.push_back({gate, 0, 1.0});
    }
    if (summed.empty()) return;
    if (!kept.empty()) {
      owned = std::make_unique<SeveralGates<T>>(std::move(kept), factor.data(), gate->n_features);
      owned->first_tile = std::move(first_tile);
    }
    rest = owned.get();
    width = rest ? rest->width : 0;
  }

  // Buffers for blocks of at most n rows.
  Scratch scratch(int64_t n) const {
    Scratch made;
    for (const Summed& part : summed) made.summed.push_back(part.gate->scratch(std::min(n, kGateBlock)));
    if (rest) made.rest = rest->scratch(std::min(n, kGateBlock));
    return made;
  }

  // Add to `out` what the parts that are summed give n rows, whose numbers are [tile][output] of all tiles, and write
  // down the pairs of the rest.
  template <class Rows>
  void code(const Rows& x, int64_t begin, int64_t n, Scratch& scratch, const std::vector<double>& number,
            int64_t n_outputs, int32_t* tile, double* weight, double* out) const {
    if (!rest && summed.empty()) {
      std::fill_n(tile, n, 0);
      std::fill_n(weight, n, 1.0);
    }
    for (int64_t r = 0; r < n; r += kGateBlock) {
      const int64_t m = std::min(kGateBlock, n - r);
      for (size_t p = 0; p < summed.size(); ++p)
        summed[p].gate->add(x, begin + r, m, *scratch.summed[p],
                            {number.data() + summed[p].first_tile * n_outputs, n_outputs, summed[p].factor},
                            out + r * n_outputs);
      if (rest) rest->code(x, begin + r, m, *scratch.rest, tile + r * width, weight + r * width);
    }
  }
};

}  // namespace svmosaic
