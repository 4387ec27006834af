// The Hessian of the losses times a vector, for conjugate gradients:
//
//   out = sum_r curvature_r f_r(v) (coef_r (x) x_r) ,   f_r(v) = sum_a coef_ra <v[block_ra], x_r> .
//
// One pass over the rows with curvature reads each of them once.
#pragma once

#include <cstdint>

#include "passes.hpp"

namespace svmosaic {

template <class Touch>
inline void curve_piece(Touch& touch, const double* curvature, const double* v, Piece piece, double* out) {
  for (int64_t r = piece.begin; r < piece.end; ++r)
    if (curvature[r] != 0) touch.add(r, curvature[r] * touch.score(r, v), out);
}

template <class Rows>
void curved_product(const Rows& x, const Design& design, const double* curvature, const double* v, double* out,
                    int n_threads) {
  const auto product = [&](const auto& touching) {
    const int64_t stride = touching().stride();
    const PaddedBlocks<double> blocks(v, design.n_blocks, x.n_features + 1, stride);
    add_pieces(x, design, stride, out, n_threads, [&](Piece piece, int64_t, double* sum) {
      auto touch = touching();
      using Touch = decltype(touch);
      in_copies<Touch, curve_piece<Touch>>(touch, curvature, blocks.begin(), piece, sum);
    });
  };
  with_touch<double>(x, design, product, true);
}

}  // namespace svmosaic
