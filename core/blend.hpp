// The scores of rows that touch several blocks, and rows added to these blocks: of dense rows
//
//   f_r = sum_a coef_ra <V[block_ra], x_r> = < sum_a coef_ra V[block_ra] , x_r >
//
// costs one sum over the features instead of one per block if the blocks are blended first. Blocks are padded to whole
// vectors for that, in a copy (`PaddedBlocks`), and so is the row at hand. Other rows go block by block (`PlainTouch`).
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "design.hpp"
#include "rows.hpp"
#include "simd.hpp"

namespace svmosaic {

// Zeros that begin where a line of the cache does.
template <class A>
class AlignedNumbers {
 public:
  explicit AlignedNumbers(int64_t n) : room(n + 64 / sizeof(A), A(0)) {
    const auto misplaced = reinterpret_cast<uintptr_t>(room.data()) % 64;
    start = room.data() + (misplaced ? (64 - misplaced) / sizeof(A) : 0);
  }
  AlignedNumbers(const AlignedNumbers&) = delete;
  AlignedNumbers& operator=(const AlignedNumbers&) = delete;

  A* begin() { return start; }
  const A* begin() const { return start; }

 private:
  std::vector<A> room;
  A* start;
};

// What passes over rows and descent do with a row: its score, and itself added to its blocks.
template <class Rows, class A>
struct PlainTouch {
  static constexpr int64_t kRegister = 0;  // bytes of a vector, if it has one of its own
  const Rows& x;
  const Design& design;

  // Numbers from one block to the next.
  int64_t stride() const { return x.n_features + 1; }
  // Turn to a row; `score` does so by itself.
  void see(int64_t) {}
  A score(int64_t r, const A* v) { return design.score(x, r, v); }
  // V += scale * (coef_r (x) x_r) of the row turned to
  void add(int64_t r, A scale, A* v) { design.add(x, r, scale, v); }
};

#if defined(__GNUC__)
// The sum of the lanes, by halves.
template <class A, class Vector>
inline A sum_of_lanes(const Vector& lanes) {
  if constexpr (sizeof(Vector) > 16) {
    typedef A Half __attribute__((vector_size(sizeof(Vector) / 2)));
    Half low, high;
    std::memcpy(&low, &lanes, sizeof(Half));
    std::memcpy(&high, reinterpret_cast<const char*>(&lanes) + sizeof(Half), sizeof(Half));
    return sum_of_lanes<A>(Half(low + high));
  } else if constexpr (sizeof(A) == 4) {
    return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
  } else {
    return lanes[0] + lanes[1];
  }
}

template <class Vector, class T, class A>
class BlendedTouch {
 public:
  static constexpr int64_t kRegister = sizeof(Vector);
  // Numbers per vector.
  static constexpr int64_t w = sizeof(Vector) / sizeof(A);
  // Vectors at a time: as many sums are kept in registers, several times over, to hide the latency of additions.
  static constexpr int kMost = 4;

  BlendedTouch(const DenseRows<T>& x, const Design& design)
      : x(x), design(design), n_vectors(x.n_features / w + 1), row(n_vectors * w), coef(design.width, A(1)) {
    row.begin()[x.n_features] = static_cast<A>(x.bias);
  }

  int64_t stride() const { return n_vectors * w; }

  void see(int64_t r) {
    const T* from = x.data + design.row(r) * x.stride;
    A* to = row.begin();
    const int64_t d = x.n_features;
    if constexpr (std::is_same_v<T, A>) {
      if (d >= w) {
        for (int64_t f = 0; f + w <= d; f += w) store_vector(to + f, load_vector<Vector>(from + f));
        store_vector(to + d - w, load_vector<Vector>(from + d - w));
      } else {
        for (int64_t f = 0; f < d; ++f) to[f] = from[f];
      }
    } else {
      for (int64_t f = 0; f < d; ++f) to[f] = static_cast<A>(from[f]);
    }
    block = design.block + r * design.width;
    if (design.coef)
      for (int64_t a = 0; a < design.width; ++a) coef[a] = static_cast<A>(design.coef[r * design.width + a]);
  }

  A score(int64_t r, const A* v) {
    see(r);
    Vector total{};
    in_chunks([&](int64_t f, auto n) { total += blend_and_multiply<decltype(n)::value>(v + f, row.begin() + f); });
    return sum_of_lanes<A>(total);
  }

  void add(int64_t, A scale, A* v) {
    in_chunks([&](int64_t f, auto n) { add_to_blocks<decltype(n)::value>(scale, row.begin() + f, v + f); });
  }

 private:
  template <class Visit>
  void in_chunks(const Visit& visit) const {
    int64_t t = 0;
    for (; t + kMost <= n_vectors; t += kMost) visit(t * w, std::integral_constant<int, kMost>{});
    if (n_vectors - t == 3) visit(t * w, std::integral_constant<int, 3>{});
    if (n_vectors - t == 2) visit(t * w, std::integral_constant<int, 2>{});
    if (n_vectors - t == 1) visit(t * w, std::integral_constant<int, 1>{});
  }

  // Of n consecutive vectors of the blocks: their blend times those of the row.
  template <int n>
  Vector blend_and_multiply(const A* v, const A* x_part) const {
    constexpr int kSets = n <= 2 ? 4 : 2;
    const int64_t width = design.width, stride = n_vectors * w;
    const int32_t* const block = this->block;
    const A* const coef = this->coef.data();
    Vector sum[kSets][n] = {};
    int64_t a = 0;
    for (; a + kSets <= width; a += kSets)
#pragma GCC unroll 4
      for (int s = 0; s < kSets; ++s)
#pragma GCC unroll 4
        for (int t = 0; t < n; ++t) sum[s][t] += coef[a + s] * load_vector<Vector>(v + block[a + s] * stride + w * t);
    for (; a < width; ++a)
#pragma GCC unroll 4
      for (int t = 0; t < n; ++t) sum[0][t] += coef[a] * load_vector<Vector>(v + block[a] * stride + w * t);
    Vector total{};
#pragma GCC unroll 4
    for (int t = 0; t < n; ++t) {
      Vector blend = sum[0][t];
#pragma GCC unroll 4
      for (int s = 1; s < kSets; ++s) blend += sum[s][t];
      total += blend * load_vector<Vector>(x_part + w * t);
    }
    return total;
  }

  template <int n>
  void add_to_blocks(A scale, const A* x_part, A* v) const {
    const int64_t width = design.width, stride = n_vectors * w;
    const int32_t* const block = this->block;
    const A* const coef = this->coef.data();
    Vector part[n];
#pragma GCC unroll 4
    for (int t = 0; t < n; ++t) part[t] = scale * load_vector<Vector>(x_part + w * t);
    for (int64_t a = 0; a < width; ++a) {
      A* to = v + block[a] * stride;
#pragma GCC unroll 4
      for (int t = 0; t < n; ++t) store_vector(to + w * t, load_vector<Vector>(to + w * t) + coef[a] * part[t]);
    }
  }

  const DenseRows<T>& x;
  const Design& design;
  int64_t n_vectors;
  AlignedNumbers<A> row;
  std::vector<A> coef;
  const int32_t* block = nullptr;
};
#endif

// A function of a touch, in copies for the machines on which such touches are made (`with_touch`).
template <class Touch, auto kFunction, class... Args>
auto in_copies(Args&&... args) {
  if constexpr (Touch::kRegister == 64)
    return Compiled<kFunction>::for_long(std::forward<Args>(args)...);
  else if constexpr (Touch::kRegister == 32)
    return Compiled<kFunction>::for_short(std::forward<Args>(args)...);
  else
    return Compiled<kFunction>::for_all(std::forward<Args>(args)...);
}

// Blocks of weights as a touch reads and changes them: those given, or a copy with padding in between.
template <class A>
class PaddedBlocks {
 public:
  PaddedBlocks(const A* v, int64_t n_blocks, int64_t size, int64_t stride)
      : n_blocks(n_blocks), size(size), stride(stride), given(v), copy(stride == size ? 0 : n_blocks * stride) {
    if (stride != size)
      for (int64_t b = 0; b < n_blocks; ++b) std::copy_n(v + b * size, size, copy.begin() + b * stride);
  }

  const A* begin() const { return stride == size ? given : copy.begin(); }

  // To be changed, and then kept in v, which is what was given.
  A* begin_in(A* v) { return stride == size ? v : copy.begin(); }
  void keep_in(A* v) const {
    if (stride != size)
      for (int64_t b = 0; b < n_blocks; ++b) std::copy_n(copy.begin() + b * stride, size, v + b * size);
  }

 private:
  int64_t n_blocks, size, stride;
  const A* given;
  AlignedNumbers<A> copy;
};

// What use(touching) returns, where touching() makes a touch of weights of type A. A single block has nothing to blend,
// unless `single` says that it is to be read in whole vectors all the same.
template <class A, class Rows, class Use>
auto with_touch(const Rows& x, const Design& design, const Use& use, [[maybe_unused]] bool single = false) {
#if defined(__GNUC__)
  if constexpr (kDense<Rows>)
    if ((design.width > 1 || single) && design.rest == Sight::all) {
      using T = typename Rows::value_type;
      if (has_long_registers()) return use([&] { return BlendedTouch<Lanes<A>, T, A>(x, design); });
      return use([&] { return BlendedTouch<ShortLanes<A>, T, A>(x, design); });
    }
#endif
  return use([&] { return PlainTouch<Rows, A>{x, design}; });
}

}  // namespace svmosaic
