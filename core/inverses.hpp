// Inverses of many small symmetric matrices, one per tile: (I + scale S_k)^-1 by Cholesky factors, or of the factors.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"

namespace svmosaic {

// out = (I + scale s)^-1 of size n, from the lower triangle of s, or L^-1 if only the inverse of the `factor` is asked for;
// false where I + scale s is not positive definite in float64.
// With I + scale s = L L^T, row i of L^-1 is (e_i - sum_{j < i} L_ij row_j) / L_ii, and the inverse the sum of the outer
// products of those rows. Rows are padded by zeros, so that sums go over whole vectors.
SVMOSAIC_CLONES inline bool invert(const double* s, int64_t n, double scale, bool of_factor, double* out) {
  constexpr int64_t w = 8;
  const int64_t stride = (n + w - 1) / w * w;
  std::vector<double> room(3 * n * stride, 0.0);
  double *factor = room.data(), *inverse = factor + n * stride, *sum = inverse + n * stride;
  for (int64_t i = 0; i < n; ++i) {
    double* row = factor + i * stride;
    for (int64_t j = 0; j <= i; ++j) {
      const double* other = factor + j * stride;
      // The entries of `other` from j on are zero, or not yet written where it is this row.
      const double rest = scale * s[i * n + j] + (i == j) - dot(row, other, i == j ? j : (j + w - 1) / w * w);
      if (i == j && !(rest > 0 && rest < std::numeric_limits<double>::infinity())) return false;
      row[j] = i == j ? std::sqrt(rest) : rest / other[j];
    }
    double* line = inverse + i * stride;
    for (int64_t j = 0; j < i; ++j) axpy(-row[j], inverse + j * stride, line, (j + w) / w * w);
    line[i] = 1;
    for (int64_t j = 0; j <= i; ++j) line[j] /= row[i];
    if (of_factor)
      for (int64_t j = 0; j < n; ++j) out[i * n + j] = line[j];
    else
      for (int64_t j = 0; j <= i; ++j) axpy(line[j], line, sum + j * stride, (j + w) / w * w);
  }
  if (of_factor) return true;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j <= i; ++j) out[i * n + j] = out[j * n + i] = sum[i * stride + j];
  return true;
}

// out[k] = (I + scale S_k)^-1, or the inverse of its factor, filled with NaN where that is not positive definite.
inline void tile_inverses(const double* matrices, int64_t n_tiles, int64_t size, double scale, bool of_factors, double* out,
                          int n_threads) {
  parallel_for(n_tiles, n_threads, [&](int64_t k) {
    double* to = out + k * size * size;
    if (!invert(matrices + k * size * size, size, scale, of_factors, to))
      std::fill(to, to + size * size, std::numeric_limits<double>::quiet_NaN());
  });
}

}  // namespace svmosaic
