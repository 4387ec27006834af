// The Hessian of the losses times a vector, for conjugate gradients:
//
//   out = sum_r curvature_r f_r(v) (coef_r (x) x_r) ,   f_r(v) = sum_a coef_ra <v[block_ra], x_r> .
//
// One pass over the rows with curvature reads each of them once. Of dense rows the blocks are blended first, so that a row
// of many blocks costs one product with x; blocks are padded to whole vectors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "passes.hpp"

namespace svmosaic {

template <class Rows>
SVMOSAIC_CLONES void curve_piece(const Rows& x, const Design& design, const double* curvature, const double* v,
                                 Piece piece, double* out) {
  for (int64_t r = piece.begin; r < piece.end; ++r)
    if (curvature[r] != 0) design.add(x, r, curvature[r] * design.score(x, r, v), out);
}

#if defined(__GNUC__)
// Some consecutive vectors of the blocks of a row: their blend times those of x ...
template <class Vector, int kVectors>
inline Vector blend_and_multiply(const double* v, int64_t stride, const int32_t* block, const double* coef, int64_t width,
                                 const double* x) {
  constexpr int w = sizeof(Vector) / sizeof(double);
  Vector sum[kVectors] = {};
  for (int64_t a = 0; a < width; ++a) {
    const double* from = v + block[a] * stride;
#pragma GCC unroll 8
    for (int t = 0; t < kVectors; ++t) sum[t] += coef[a] * load_vector<Vector>(from + w * t);
  }
  Vector total = sum[0] * load_vector<Vector>(x);
#pragma GCC unroll 8
  for (int t = 1; t < kVectors; ++t) total += sum[t] * load_vector<Vector>(x + w * t);
  return total;
}

// ... and x times `scale` added to the blocks.
template <class Vector, int kVectors>
inline void add_to_blocks(double scale, const double* x, const int32_t* block, const double* coef, int64_t width,
                          int64_t stride, double* out) {
  constexpr int w = sizeof(Vector) / sizeof(double);
  Vector part[kVectors];
#pragma GCC unroll 8
  for (int t = 0; t < kVectors; ++t) part[t] = scale * load_vector<Vector>(x + w * t);
  for (int64_t a = 0; a < width; ++a) {
    double* to = out + block[a] * stride;
#pragma GCC unroll 8
    for (int t = 0; t < kVectors; ++t)
      store_vector(to + w * t, load_vector<Vector>(to + w * t) + coef[a] * part[t]);
  }
}

template <class Vector, class T>
inline void curve_dense_rows(const DenseRows<T>& x, const Design& design, const double* curvature, const double* v,
                             int64_t stride, Piece piece, double* out) {
  // 32 numbers at a time, as long as there are as many, then 8.
  constexpr int w = sizeof(Vector) / sizeof(double), many = 32 / w, few = 8 / w;
  const int64_t width = design.width, whole = stride / 32 * 32;
  std::vector<double> row(stride, 0.0), ones(design.coef ? 0 : width, 1.0);
  for (int64_t r = piece.begin; r < piece.end; ++r) {
    if (curvature[r] == 0) continue;
    x.unpack(design.row(r), 1.0, row.data());
    const int32_t* block = design.block + r * width;
    const double* coef = design.coef ? design.coef + r * width : ones.data();
    Vector total{};
    int64_t f = 0;
    for (; f < whole; f += 32)
      total += blend_and_multiply<Vector, many>(v + f, stride, block, coef, width, row.data() + f);
    for (; f < stride; f += 8)
      total += blend_and_multiply<Vector, few>(v + f, stride, block, coef, width, row.data() + f);
    double score = 0;
    for (int lane = 0; lane < w; ++lane) score += total[lane];
    score *= curvature[r];
    for (f = 0; f < whole; f += 32)
      add_to_blocks<Vector, many>(score, row.data() + f, block, coef, width, stride, out + f);
    for (; f < stride; f += 8)
      add_to_blocks<Vector, few>(score, row.data() + f, block, coef, width, stride, out + f);
  }
}

template <class T>
SVMOSAIC_CLONES void curve_dense_piece(const DenseRows<T>& x, const Design& design, const double* curvature,
                                       const double* v, int64_t stride, Piece piece, double* out) {
  if (has_long_registers())
    curve_dense_rows<Lanes<double>>(x, design, curvature, v, stride, piece, out);
  else
    curve_dense_rows<ShortLanes<double>>(x, design, curvature, v, stride, piece, out);
}
#endif

template <class Rows>
void curved_product(const Rows& x, const Design& design, const double* curvature, const double* v, double* out,
                    int n_threads) {
  const int64_t size = x.n_features + 1, n_blocks = design.n_blocks;
#if defined(__GNUC__)
  const bool blended = kDense<Rows> && design.rest == Sight::all;
#else
  const bool blended = false;
#endif
  const int64_t stride = blended ? (size + 7) / 8 * 8 : size;
  // As many partial sums as keep their memory below that of the rows themselves.
  const int64_t n_pieces = std::max<int64_t>(
      1, std::min<int64_t>({64, pieces_of(x, design), design.n_rows * design.width / (4 * n_blocks)}));
  std::vector<double> padded(n_blocks * stride, 0.0), partial(n_pieces * n_blocks * stride, 0.0);
  for (int64_t b = 0; b < n_blocks; ++b) std::copy(v + b * size, v + (b + 1) * size, padded.data() + b * stride);
  parallel_for(n_pieces, n_threads, [&](int64_t t) {
    const Piece piece(design.n_rows, n_pieces, t);
    double* to = partial.data() + t * n_blocks * stride;
#if defined(__GNUC__)
    if constexpr (kDense<Rows>)
      if (blended) return curve_dense_piece(x, design, curvature, padded.data(), stride, piece, to);
#endif
    curve_piece(x, design, curvature, padded.data(), piece, to);
  });
  std::fill(out, out + n_blocks * size, 0.0);
  for (int64_t t = 0; t < n_pieces; ++t)
    for (int64_t b = 0; b < n_blocks; ++b) axpy(1.0, partial.data() + (t * n_blocks + b) * stride, out + b * size, size);
}

}  // namespace svmosaic
