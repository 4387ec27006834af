// How the rows of a problem touch the blocks of weights.
//
// Problem row r is data row index[r] (row r itself when `index` is null) and touches `width` blocks:
//
//   f_r = sum_a coef[r, a] <V[block[r, a]], (x, bias)> .
//
// A coefficient of zero pads rows that touch fewer. The expanded matrix, with width * (d + 1) numbers
// per row, is never formed.
//
// Blocks from `n_full` on may see less of a row than all of it: only its straight terms and the bias (what rows of
// piecewise-linear features have besides their hats), or only the bias. What they do not see stays zero in V.
#pragma once

#include <cstdint>

#include "simd.hpp"

namespace svmosaic {

enum class Sight { all, straight, bias };

struct Design {
  const int32_t* index;  // null: the identity
  const int32_t* block;
  const double* coef;  // null: all ones
  int64_t n_rows, width, n_blocks;
  int64_t n_full;     // blocks that see whole rows
  Sight rest;         // what the others see

  int64_t row(int64_t r) const { return index ? index[r] : r; }
  // Whether each row is its data row in the only block.
  bool is_plain() const { return n_blocks == 1 && width == 1 && !coef && (n_full > 0 || rest == Sight::all); }
  double coefficient(int64_t r, int64_t a) const { return coef ? coef[r * width + a] : 1.0; }

  void prefetch(int64_t r) const {
    svmosaic::prefetch(block + r * width);
    for (int64_t a = 0; coef && a < width; a += 8) svmosaic::prefetch(coef + r * width + a);
  }

  template <class Rows, class A>
  A score(const Rows& x, int64_t r, const A* v) const {
    const int64_t i = row(r), stride = x.n_features + 1;
    A sum = 0;
    for (int64_t a = 0; a < width; ++a) {
      const A c = static_cast<A>(coefficient(r, a));
      if (c != 0) sum += c * seen_dot(x, i, block[r * width + a], v + block[r * width + a] * stride);
    }
    return sum;
  }

  // V += scale * (coef_r (x) x_r)
  template <class Rows, class A>
  void add(const Rows& x, int64_t r, A scale, A* v) const {
    const int64_t i = row(r), stride = x.n_features + 1;
    for (int64_t a = 0; a < width; ++a) {
      const A c = static_cast<A>(coefficient(r, a));
      if (c != 0) add_seen(x, i, block[r * width + a], scale * c, v + block[r * width + a] * stride);
    }
  }

 private:
  template <class Rows, class A>
  A seen_dot(const Rows& x, int64_t i, int32_t b, const A* w) const {
    if (b < n_full || rest == Sight::all) return x.dot(i, w);
    return rest == Sight::bias ? static_cast<A>(x.bias) * w[x.n_features] : x.straight_dot(i, w);
  }

  template <class Rows, class A>
  void add_seen(const Rows& x, int64_t i, int32_t b, A scale, A* w) const {
    if (b < n_full || rest == Sight::all) return x.add(i, scale, w);
    if (rest == Sight::bias)
      w[x.n_features] += scale * static_cast<A>(x.bias);
    else
      x.straight_add(i, scale, w);
  }
};

}  // namespace svmosaic
