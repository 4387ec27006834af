// The passes over the rows that certificates and the second-order solver are made of, in float64.
//
// Each is cut into pieces by the size of the problem alone, and partial sums are added in the order
// of the pieces: same bits whatever the number of threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "design.hpp"
#include "parallel.hpp"
#include "rows.hpp"

namespace svmosaic {

// A piece worth a thread's while: about 100 microseconds of reading.
constexpr int64_t kValuesPerPiece = 1 << 18;

inline int64_t pieces_of(int64_t n_rows, int64_t values_per_row) {
  return std::max<int64_t>(1, std::min(n_rows, n_rows * values_per_row / kValuesPerPiece));
}

template <class Rows>
int64_t pieces_of(const Rows& x, const Design& design) {
  return pieces_of(design.n_rows, design.width * (8 + x.n_stored() / std::max<int64_t>(1, x.n_rows)));
}

template <class Rows>
SVMOSAIC_CLONES void margins_of_piece(const Rows& x, const Design& design, const int8_t* y, const double* v,
                                      Piece piece, double* margins) {
  for (int64_t r = piece.begin; r < piece.end; ++r) margins[r] = y[r] * design.score(x, r, v);
}

// margins[r] = y_r f_r
template <class Rows>
void margins(const Rows& x, const Design& design, const int8_t* y, const double* v, double* margins, int n_threads) {
  const int64_t n_pieces = pieces_of(x, design);
  parallel_for(n_pieces, n_threads, [&](int64_t t) {
    margins_of_piece(x, design, y, v, Piece(design.n_rows, n_pieces, t), margins);
  });
}

template <class Rows>
SVMOSAIC_CLONES void accumulate_piece(const Rows& x, const Design& design, const int8_t* y, const double* weight,
                                      Piece piece, double* v) {
  for (int64_t r = piece.begin; r < piece.end; ++r)
    if (weight[r] != 0) design.add(x, r, weight[r] * y[r], v);
}

// V = sum_r weight_r y_r (coef_r (x) x_r), written over
template <class Rows>
void accumulate(const Rows& x, const Design& design, const int8_t* y, const double* weight, double* v, int n_threads) {
  const int64_t size = design.n_blocks * (x.n_features + 1);
  // As many partial sums as keep their memory below that of the rows themselves.
  const int64_t n_pieces = std::max<int64_t>(
      1, std::min<int64_t>({64, pieces_of(x, design), design.n_rows * design.width / (4 * design.n_blocks)}));
  std::memset(v, 0, size * sizeof(double));
  if (n_pieces == 1) return accumulate_piece(x, design, y, weight, Piece(design.n_rows, 1, 0), v);
  std::vector<double> partial(n_pieces * size, 0.0);
  parallel_for(n_pieces, n_threads, [&](int64_t t) {
    accumulate_piece(x, design, y, weight, Piece(design.n_rows, n_pieces, t), partial.data() + t * size);
  });
  for (int64_t t = 0; t < n_pieces; ++t)
    for (int64_t i = 0; i < size; ++i) v[i] += partial[t * size + i];
}

// |(x_i, bias)|^2 of every data row, or that of its straight terms and the bias
template <class Rows>
void squared_norms(const Rows& x, double* out, int n_threads, bool straight = false) {
  const int64_t n_pieces = pieces_of(x.n_rows, x.n_features);
  parallel_for(n_pieces, n_threads, [&](int64_t t) {
    const Piece piece(x.n_rows, n_pieces, t);
    for (int64_t i = piece.begin; i < piece.end; ++i) out[i] = straight ? x.squared_straight_norm(i) : x.squared_norm(i);
  });
}

}  // namespace svmosaic
