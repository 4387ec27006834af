// Bins of a vector of rows at once: knots are searched, and what belongs to them is looked up, in registers.
//
// Machines with long vectors alone have the permutations for it. Helpers are functions with the attribute of their
// caller: a lambda would be compiled for machines with short vectors, and be slow.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
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

// Four vectors of two numbers each, end to end.
SVMOSAIC_LONG_VECTORS inline __m512d end_to_end(__m128d a, __m128d b, __m128d c, __m128d d) {
  const __m256d low = _mm256_insertf128_pd(_mm256_castpd128_pd256(a), b, 1);
  const __m256d high = _mm256_insertf128_pd(_mm256_castpd128_pd256(c), d, 1);
  return _mm512_insertf64x4(_mm512_castpd256_pd512(low), high, 1);
}

// The two numbers from table[place[l]] on, for four, or for eight places.
template <class Place>
SVMOSAIC_LONG_VECTORS inline __m512d pairs_of(const double* table, const Place* place) {
  return end_to_end(_mm_loadu_pd(table + place[0]), _mm_loadu_pd(table + place[1]), _mm_loadu_pd(table + place[2]),
                    _mm_loadu_pd(table + place[3]));
}
template <class Place>
SVMOSAIC_LONG_VECTORS inline __m512d pairs_of(const float* table, const Place* place) {
  double pair[8];
  for (int l = 0; l < 8; ++l) std::memcpy(&pair[l], table + place[l], sizeof(double));
  return end_to_end(_mm_setr_pd(pair[0], pair[1]), _mm_setr_pd(pair[2], pair[3]), _mm_setr_pd(pair[4], pair[5]),
                    _mm_setr_pd(pair[6], pair[7]));
}

template <class T>
struct PairOfLanes {
  Lanes<T> first, second;
};

// Entries l are table[place[l]] and the one after it. Plain loads: gathering as many numbers takes several times as long
// on AMD processors, and on Intel's with some microcodes.
template <class T, class Place>
SVMOSAIC_LONG_VECTORS inline PairOfLanes<T> pairs_at(const T* table, const Place* place) {
  if constexpr (sizeof(T) == 4) {
    const __m512 low = (__m512)pairs_of(table, place), high = (__m512)pairs_of(table, place + 8);
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    return {(Lanes<T>)_mm512_permutex2var_ps(low, even, high), (Lanes<T>)_mm512_permutex2var_ps(low, odd, high)};
  } else {
    const __m512d low = pairs_of(table, place), high = pairs_of(table, place + 4);
    return {(Lanes<T>)_mm512_permutex2var_pd(low, _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14), high),
            (Lanes<T>)_mm512_permutex2var_pd(low, _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15), high)};
  }
}
#endif

}  // namespace svmosaic
