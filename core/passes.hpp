// The passes over the rows that certificates and the second-order solver are made of, in float64.
//
// Each is cut into pieces by the size of the problem alone, and partial sums are added in the order
// of the pieces: same bits whatever the number of threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "blend.hpp"
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

// Rows with curves use a line or two of what are stored as long rows, too far apart for the machine to foresee the
// next: it is told so many rows ahead.
constexpr int64_t kRowsAhead = 16;

// Rows of one block with weight one, which many passes are over, are taken several at a time.
constexpr int kRowsOfPass = 4;

#if defined(__GNUC__)
// out[r] = <(x_r, bias), v> of R dense rows given by their addresses; the same bits for any R. `tail` holds the last
// weights: of as many features as a vector has, those that whole vectors reach before being zero.
template <int R, class T>
inline void dots_of_rows(const T* const* x, int64_t n_features, const double* v, const double* tail, double constant,
                         double* out) {
  using Vector = ShortLanes<double>;
  typedef T Narrow __attribute__((vector_size(4 * sizeof(T))));
  Vector sum[R] = {};
  const auto add = [&](int64_t f, const Vector& weight) {
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) sum[r] += __builtin_convertvector(load_vector<Narrow>(x[r] + f), Vector) * weight;
  };
  int64_t f = 0;
  for (; f + 4 <= n_features; f += 4) add(f, load_vector<Vector>(v + f));
  if (f < n_features) add(n_features - 4, load_vector<Vector>(tail));
  for (int r = 0; r < R; ++r) out[r] = constant + ((sum[r][0] + sum[r][2]) + (sum[r][1] + sum[r][3]));
}
#endif

// Whether the problem rows from r on are two of each of kRowsOfPass data rows, such as the two sides of numbers.
inline bool in_pairs(const Design& design, int64_t r) {
  if (!design.index) return false;
  bool all = true;
  for (int t = 0; t < kRowsOfPass; ++t) all &= design.index[r + 2 * t] == design.index[r + 2 * t + 1];
  return all;
}

template <class Rows, class Touch>
inline void margins_of_rows(const Rows& x, const Design& design, Touch& touch, const int8_t* y, const double* v,
                            Piece piece, double* margins) {
#if defined(__GNUC__)
  if constexpr (kDense<Rows>)
    if (design.is_plain() && x.n_features >= 4) {
      const int64_t d = x.n_features;
      double tail[4];
      for (int64_t l = 0; l < 4; ++l) tail[l] = l < 4 - d % 4 ? 0.0 : v[d - 4 + l];
      // The dots of n data rows, each of `sides` neighboring problem rows.
      const auto rows = [&](auto dots_of, int64_t r, int n, auto sides) {
        const typename Rows::value_type* at[kRowsOfPass];
        double dots[kRowsOfPass];
        for (int t = 0; t < n; ++t) at[t] = x.data + design.row(r + t * sides) * x.stride;
        dots_of(at, d, v, tail, x.bias * v[d], dots);
        for (int t = 0; t < n * sides; ++t) margins[r + t] = y[r + t] * dots[t / sides];
      };
      const std::integral_constant<int, 1> one{};
      const std::integral_constant<int, 2> two{};
      for (int64_t r = piece.begin; r < piece.end;) {
        if (r + 2 * kRowsOfPass <= piece.end && in_pairs(design, r))
          rows(dots_of_rows<kRowsOfPass, typename Rows::value_type>, r, kRowsOfPass, two), r += 2 * kRowsOfPass;
        else if (r + kRowsOfPass <= piece.end)
          rows(dots_of_rows<kRowsOfPass, typename Rows::value_type>, r, kRowsOfPass, one), r += kRowsOfPass;
        else
          rows(dots_of_rows<1, typename Rows::value_type>, r, 1, one), ++r;
      }
      return;
    }
#endif
  for (int64_t r = piece.begin; r < piece.end; ++r) {
    if constexpr (!kPlain<Rows>)
      if (r + kRowsAhead < design.n_rows) x.prefetch(design.row(r + kRowsAhead));
    margins[r] = y[r] * touch.score(r, v);
  }
}

template <class Rows, class Touch>
void margins_of_piece(const Rows& x, const Design& design, Touch& touch, const int8_t* y, const double* v, Piece piece,
                      double* margins) {
  in_copies<Touch, margins_of_rows<Rows, Touch>>(x, design, touch, y, v, piece, margins);
}

// margins[r] = y_r f_r
template <class Rows>
void margins(const Rows& x, const Design& design, const int8_t* y, const double* v, double* margins, int n_threads) {
  const int64_t n_pieces = pieces_of(x, design);
  with_touch<double>(x, design, [&](const auto& touching) {
    const PaddedBlocks<double> blocks(v, design.n_blocks, x.n_features + 1, touching().stride());
    parallel_for(n_pieces, n_threads, [&](int64_t t) {
      auto touch = touching();
      margins_of_piece(x, design, touch, y, blocks.begin(), Piece(design.n_rows, n_pieces, t), margins);
    });
  });
}

// v += sum_t scale_t (x_t, bias) of kRowsOfPass dense rows: v is read and written once for all.
template <class T>
inline void add_rows(const T* const* x, const double* scale, int64_t n_features, double bias, double* SVMOSAIC_RESTRICT v) {
  const T *x0 = x[0], *x1 = x[1], *x2 = x[2], *x3 = x[3];
  const double s0 = scale[0], s1 = scale[1], s2 = scale[2], s3 = scale[3];
  for (int64_t f = 0; f < n_features; ++f) v[f] += (s0 * x0[f] + s1 * x1[f]) + (s2 * x2[f] + s3 * x3[f]);
  v[n_features] += bias * ((s0 + s1) + (s2 + s3));
}

template <class Rows, class Touch>
inline void accumulate_rows(const Rows& x, const Design& design, Touch& touch, const int8_t* y, const double* weight,
                            Piece piece, double* v) {
  if constexpr (kDense<Rows>)
    if (design.is_plain()) {
      const typename Rows::value_type* at[kRowsOfPass];
      double scale[kRowsOfPass];
      int n = 0;
      for (int64_t r = piece.begin; r < piece.end; ++r) {
        // Without a branch, which would be taken by surprise.
        at[n] = x.data + design.row(r) * x.stride;
        scale[n] = weight[r] * y[r];
        n += weight[r] != 0;
        if (n == kRowsOfPass) n = 0, add_rows(at, scale, x.n_features, x.bias, v);
      }
      for (int t = n; n > 0 && t < kRowsOfPass; ++t) at[t] = at[0], scale[t] = 0;
      if (n > 0) add_rows(at, scale, x.n_features, x.bias, v);
      return;
    }
  for (int64_t r = piece.begin; r < piece.end; ++r)
    if (weight[r] != 0) touch.see(r), touch.add(r, weight[r] * y[r], v);
}

template <class Rows, class Touch>
void accumulate_piece(const Rows& x, const Design& design, Touch& touch, const int8_t* y, const double* weight,
                      Piece piece, double* v) {
  in_copies<Touch, accumulate_rows<Rows, Touch>>(x, design, touch, y, weight, piece, v);
}

// As many partial sums as keep their memory below that of the rows themselves.
template <class Rows>
int64_t partial_sums_of(const Rows& x, const Design& design) {
  return std::max<int64_t>(
      1, std::min<int64_t>({64, pieces_of(x, design), design.n_rows * design.width / (4 * design.n_blocks)}));
}

// V = the sum of what add(piece, its number, sum) adds to a sum of its own for each piece of the rows, written over. Sums
// have blocks of `stride` numbers, of which V has those that are not padding.
template <class Rows, class Add>
void add_pieces(const Rows& x, const Design& design, int64_t stride, double* v, int n_threads, const Add& add) {
  const int64_t size = x.n_features + 1, n_blocks = design.n_blocks, n_pieces = partial_sums_of(x, design);
  std::memset(v, 0, n_blocks * size * sizeof(double));
  if (n_pieces == 1 && stride == size) return add(Piece(design.n_rows, 1, 0), 0, v);
  AlignedNumbers<double> partial(n_pieces * n_blocks * stride);
  parallel_for(n_pieces, n_threads, [&](int64_t t) {
    add(Piece(design.n_rows, n_pieces, t), t, partial.begin() + t * n_blocks * stride);
  });
  for (int64_t t = 0; t < n_pieces; ++t)
    for (int64_t b = 0; b < n_blocks; ++b) axpy(1.0, partial.begin() + (t * n_blocks + b) * stride, v + b * size, size);
}

// V = sum_r weight_r y_r (coef_r (x) x_r), written over
template <class Rows>
void accumulate(const Rows& x, const Design& design, const int8_t* y, const double* weight, double* v, int n_threads) {
  with_touch<double>(x, design, [&](const auto& touching) {
    add_pieces(x, design, touching().stride(), v, n_threads, [&](Piece piece, int64_t, double* sum) {
      auto touch = touching();
      accumulate_piece(x, design, touch, y, weight, piece, sum);
    });
  });
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
