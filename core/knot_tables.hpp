// Bins of a vector of rows at once: knots are searched, and what belongs to them is looked up, in registers.
//
// Machines with long vectors alone have the permutations for it. Helpers are functions with the attribute of their
// caller: a lambda would be compiled for machines with short vectors, and be slow.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "pieces.hpp"
#include "simd.hpp"

#if defined(SVMOSAIC_LONG_VECTORS)
#include <immintrin.h>
#endif

namespace svmosaic {

template <class T>
struct KnotTables {
  // Two vectors of inner knots are searched by permuting them; a curve with more of them is not.
  static constexpr int64_t kTable = 128 / static_cast<int64_t>(sizeof(T));

  std::vector<T> inner;          // [curve][kTable]: inner knots, padded with infinity
  std::vector<T> knot, inverse;  // by hat, as in `Pieces`; may be read beyond the last
  bool in_registers = true;

  explicit KnotTables(const Pieces<T>& pieces)
      : inner(pieces.n_curves * kTable, std::numeric_limits<T>::infinity()), knot(padded(pieces.knot)),
        inverse(padded(pieces.inverse)) {
    for (int64_t c = 0; c < pieces.n_curves; ++c) {
      const int64_t begin = pieces.start[c] + 1, n_inner = pieces.start[c + 1] - 1 - begin;
      in_registers = in_registers && n_inner <= kTable;
      if (in_registers) std::copy_n(pieces.knot.data() + begin, n_inner, inner.data() + c * kTable);
    }
  }

  // What a table of hats needs behind its end.
  static std::vector<T> padded(std::vector<T> of_hats) {
    of_hats.resize(of_hats.size() + kTable + 1);
    return of_hats;
  }

  // Whether so many rows are worth a vector.
  bool takes(int64_t n) const {
#if defined(SVMOSAIC_LONG_VECTORS)
    return in_registers && n >= kLanes<T> && SVMOSAIC_HAS_LONG_VECTORS;
#else
    return n < 0;
#endif
  }
};

#if defined(SVMOSAIC_LONG_VECTORS)
template <class T>
using Places = decltype(Lanes<T>{} > Lanes<T>{});

// Entry l is data[l * stride].
template <class T>
SVMOSAIC_LONG_VECTORS inline Lanes<T> spread(const T* data, int64_t stride) {
  Lanes<T> x;
  for (int64_t l = 0; l < kLanes<T>; ++l) x[l] = data[l * stride];
  return x;
}

// Bins below kTable, and whether they are kTable instead.
template <class T>
struct VectorOfBins {
  Places<T> bin, beyond;

  SVMOSAIC_LONG_VECTORS Places<T> whole() const { return beyond ? KnotTables<T>::kTable + Places<T>{} : bin; }
};

// The numbers of inner knots at or below x.
template <class T>
SVMOSAIC_LONG_VECTORS inline VectorOfBins<T> bins_of(const T* inner, const Lanes<T>& x) {
  constexpr int64_t w = kLanes<T>;
  const Lanes<T> near = load<T>(inner), far = load<T>(inner + w);
  Places<T> bin{};
  for (int step = w; step >= 1; step /= 2) {
    const Lanes<T> at = __builtin_shuffle(near, far, bin + (step - 1));
    bin += (x >= at) & (step + Places<T>{});
  }
  return {bin, x >= inner[2 * w - 1] + Lanes<T>{}};
}

// What belongs to the bins; the table may reach into what follows, whose entries are not asked for.
template <class T>
SVMOSAIC_LONG_VECTORS inline Lanes<T> looked_up(const T* table, const VectorOfBins<T>& of) {
  const Lanes<T> some = __builtin_shuffle(load<T>(table), load<T>(table + kLanes<T>), of.bin);
  return of.beyond ? table[2 * kLanes<T>] + Lanes<T>{} : some;
}

// Entry l is table[place[l]].
template <class T>
SVMOSAIC_LONG_VECTORS inline Lanes<T> gathered(const T* table, const Places<T>& place) {
  if constexpr (sizeof(T) == 4)
    return (Lanes<T>)_mm512_i32gather_ps((__m512i)place, table, 4);
  else
    return (Lanes<T>)_mm512_i64gather_pd((__m512i)place, table, 8);
}
#endif

}  // namespace svmosaic
