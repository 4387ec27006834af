// How the rows of a problem touch the blocks of weights.
//
// Problem row r is data row index[r] (row r itself when `index` is null) and touches `width` blocks:
//
//   f_r = sum_a coef[r, a] <V[block[r, a]], (x, bias)> .
//
// A coefficient of zero pads rows that touch fewer. The expanded matrix, with width * (d + 1) numbers
// a row, is never formed.
#pragma once

#include <cstdint>

namespace svmosaic {

struct Design {
  const int32_t* index;  // null: the identity
  const int32_t* block;
  const double* coef;  // null: all ones
  int64_t n_rows, width, n_blocks;

  int64_t row(int64_t r) const { return index ? index[r] : r; }
  double coefficient(int64_t r, int64_t a) const { return coef ? coef[r * width + a] : 1.0; }

  template <class Rows, class A>
  A score(const Rows& x, int64_t r, const A* v) const {
    const int64_t i = row(r), stride = x.n_features + 1;
    A sum = 0;
    for (int64_t a = 0; a < width; ++a) {
      const A c = static_cast<A>(coefficient(r, a));
      if (c != 0) sum += c * x.dot(i, v + block[r * width + a] * stride);
    }
    return sum;
  }

  // V += scale * (coef_r (x) x_r)
  template <class Rows, class A>
  void add(const Rows& x, int64_t r, A scale, A* v) const {
    const int64_t i = row(r), stride = x.n_features + 1;
    for (int64_t a = 0; a < width; ++a) {
      const A c = static_cast<A>(coefficient(r, a));
      if (c != 0) x.add(i, scale * c, v + block[r * width + a] * stride);
    }
  }
};

}  // namespace svmosaic
