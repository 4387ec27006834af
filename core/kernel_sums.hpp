// Sums of Gaussian kernels, and of Gaussian densities in the log domain, in double precision.
//
// The logarithm of a kernel is affine in z = x - origin and its squares:
//
//   -gamma_i |z - c_i|^2         = offset_i + <(z, |z|^2), plane_i> ,    plane_i = (2 gamma_i c_i, -gamma_i)
//   -sum_f p_if (z_f - c_if)^2   = offset_i + <(z, z^2), plane_i> ,      plane_i = (2 p_i c_i, -p_i)
//
// so that all of them are one matrix product, by the panels that gates and tiles are computed with. Kernels are taken in
// chunks whose values for a block of rows stay in the cache, and belong to groups (classes), one after the other:
//
//   sums       out[r, c] = sum_i coef[i, c] exp(l_ri)
//   log sums   out[r, g] = log sum_{i in g} exp(l_ri)
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "exponential.hpp"
#include "gate.hpp"
#include "panels.hpp"
#include "parallel.hpp"
#include "passes.hpp"
#include "rows.hpp"

namespace svmosaic {

constexpr int64_t kKernelsAtOnce = 512;
constexpr int64_t kKernelRows = 8 * kRowsAtOnce;

struct KernelBank {
  struct Chunk {
    int64_t group, first;  // of its kernels
    Panels<double> planes;
  };

  int64_t n_kernels, n_features, n_groups;
  bool each;  // the squares of all features, or their sum
  std::vector<double> origin, offset;
  std::vector<Chunk> chunks;

  // Group g has the kernels [starts[g], starts[g + 1]).
  KernelBank(const double* planes, const double* offset_in, const double* origin_in, const int64_t* starts,
             int64_t n_kernels, int64_t n_features, int64_t n_groups, bool each)
      : n_kernels(n_kernels), n_features(n_features), n_groups(n_groups), each(each),
        origin(origin_in, origin_in + n_features), offset(offset_in, offset_in + n_kernels) {
    for (int64_t g = 0; g < n_groups; ++g)
      for (int64_t first = starts[g]; first < starts[g + 1]; first += kKernelsAtOnce) {
        const int64_t n = std::min(kKernelsAtOnce, starts[g + 1] - first);
        chunks.push_back({g, first, Panels<double>::pack(planes + first * n_inputs(), n, n_inputs(), n_inputs())});
      }
  }

  int64_t n_inputs() const { return n_features + (each ? n_features : 1); }
};

struct KernelScratch {
  MovedRows moved;
  std::vector<double> inputs, values;
  std::vector<const double*> input;
  std::vector<double*> value;

  explicit KernelScratch(const KernelBank& bank)
      : moved(kKernelRows, bank.n_features), inputs(kKernelRows * bank.n_inputs()),
        values(kKernelRows * (kKernelsAtOnce + kBlock)), input(kKernelRows), value(kKernelRows) {
    for (int64_t r = 0; r < kKernelRows; ++r) {
      input[r] = inputs.data() + r * bank.n_inputs();
      value[r] = values.data() + r * (kKernelsAtOnce + kBlock);
    }
  }
};

// (z, |z|^2) or (z, z^2) of the n rows in the scratch
inline SVMOSAIC_CLONES void kernel_inputs(const KernelBank& bank, int64_t n, KernelScratch& scratch) {
  const int64_t d = bank.n_features;
  for (int64_t r = 0; r < n; ++r) {
    const double* z = scratch.moved.row[r];
    double* to = scratch.inputs.data() + r * bank.n_inputs();
    std::copy(z, z + d, to);
    if (bank.each)
      for (int64_t f = 0; f < d; ++f) to[d + f] = z[f] * z[f];
    else
      to[d] = dot(z, z, d);
  }
}

// value[r][i] = log of kernel i of the chunk
inline void kernel_logs(const KernelBank& bank, const KernelBank::Chunk& chunk, int64_t n, KernelScratch& scratch) {
  multiply_dense(scratch.input.data(), n, chunk.planes, scratch.value.data());
  const double* offset = bank.offset.data() + chunk.first;
  for (int64_t r = 0; r < n; ++r)
    for (int64_t i = 0; i < chunk.planes.n; ++i) scratch.value[r][i] += offset[i];
}

// out[r][c] += sum_i coef[i][c] exp(l_ri), l at most zero but for rounding
inline SVMOSAIC_CLONES void kernel_sums_block(const KernelBank& bank, int64_t n,
                                       const double* coef_by_output, int64_t n_outputs, KernelScratch& scratch,
                                       double* out) {
  std::fill(out, out + n * n_outputs, 0.0);
  for (const auto& chunk : bank.chunks) {
    kernel_logs(bank, chunk, n, scratch);
    for (int64_t r = 0; r < n; ++r) {
      double* value = scratch.value[r];
      for (int64_t i = 0; i < chunk.planes.n; ++i) value[i] = std::min(value[i], 0.0);
      exp_all(value, chunk.planes.n);
      for (int64_t c = 0; c < n_outputs; ++c)
        out[r * n_outputs + c] += dot(value, coef_by_output + c * bank.n_kernels + chunk.first, chunk.planes.n);
    }
  }
}

// out[r][g] = log sum_{i in g} exp(l_ri), -inf for a group without kernels
inline SVMOSAIC_CLONES void kernel_log_sums_block(const KernelBank& bank, int64_t n,
                                           KernelScratch& scratch, double* out) {
  constexpr double kNothing = -std::numeric_limits<double>::infinity();
  std::fill(out, out + n * bank.n_groups, kNothing);
  for (const auto& chunk : bank.chunks) {
    kernel_logs(bank, chunk, n, scratch);
    for (int64_t r = 0; r < n; ++r) {
      double *value = scratch.value[r], &total = out[r * bank.n_groups + chunk.group], sum = 0;
      const double top = *std::max_element(value, value + chunk.planes.n);
      if (top == kNothing) continue;
      for (int64_t i = 0; i < chunk.planes.n; ++i) value[i] -= top;
      exp_all(value, chunk.planes.n);
      for (int64_t i = 0; i < chunk.planes.n; ++i) sum += value[i];
      const double here = top + std::log(sum), larger = std::max(total, here), smaller = std::min(total, here);
      total = larger + std::log1p(std::exp(smaller - larger));
    }
  }
}

// Call block(begin, n, scratch) for all rows, in pieces on threads; a row's bits depend on nothing but the row.
template <class Rows, class Block>
void for_kernel_rows(const KernelBank& bank, const Rows& x, int n_threads, const Block& block) {
  // An exponential costs about as much as twenty multiply-adds.
  const int64_t n_pieces = pieces_of(x.n_rows, bank.n_kernels * (bank.n_inputs() + 20));
  parallel_for(n_pieces, n_threads, [&](int64_t t) {
    const Piece piece(x.n_rows, n_pieces, t);
    if (piece.begin == piece.end) return;
    KernelScratch scratch(bank);
    for (int64_t begin = piece.begin; begin < piece.end; begin += kKernelRows) {
      const int64_t n = std::min(kKernelRows, piece.end - begin);
      scratch.moved.fill(x, begin, n, bank.origin.data());
      kernel_inputs(bank, n, scratch);
      block(begin, n, scratch);
    }
  });
}

}  // namespace svmosaic
