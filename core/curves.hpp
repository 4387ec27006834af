// Packed curves: what scoring makes of piecewise-linear tiles.
//
// The hats and the straight term of a column are folded into the values of one curve at its knots, to which the ends of
// the clipped straight term belong. A tile is then, per column with a curve, two neighboring values and the fraction
// between them; bins and fractions are found once per row, for all tiles. Weights of a tile stand as
//
//   (a slope per column without a curve, the values of all curves at their knots, the sum of all curves at zero) .
//
// The last is for sparse rows: they start from the score of the zero row and change it by the entries that are stored.
#pragma once

#include <cstdint>
#include <vector>

#include "knot_tables.hpp"
#include "panels.hpp"
#include "pieces.hpp"
#include "rows.hpp"

namespace svmosaic {

template <class T>
struct Curves {
  Pieces<T> pieces;
  KnotTables<T> tables;
  std::vector<int32_t> straight;  // the columns without a curve
  bool zero_is_zero;              // all curves are zero at zero
  std::vector<int32_t> slope;     // by column: its place in `straight`, or -1
  // Columns without a curve that stand side by side, and what standardizes them in the order of `straight`.
  struct Run {
    int64_t place, column, n;
  };
  std::vector<Run> runs;
  std::vector<T> center, scale;
  std::vector<int64_t> zero_hat;  // by curve: the knot left of zero, and the fraction towards the next
  std::vector<T> zero_fraction;

  Curves(Pieces<T>&& pieces_in, bool zero_is_zero)
      : pieces(std::move(pieces_in)), tables(pieces), zero_is_zero(zero_is_zero), slope(pieces.n_inputs, -1) {
    for (int64_t f = 0; f < pieces.n_inputs; ++f) {
      if (pieces.curve[f] >= 0) continue;
      slope[f] = static_cast<int32_t>(straight.size());
      if (runs.empty() || runs.back().column + runs.back().n != f) runs.push_back({slope[f], f, 0});
      ++runs.back().n;
      straight.push_back(static_cast<int32_t>(f));
      center.push_back(pieces.center[f]);
      scale.push_back(pieces.scale[f]);
    }
    for (int64_t c = 0; c < pieces.n_curves; ++c) {
      zero_hat.push_back(pieces.start[c] + pieces.bin(c, T(0)));
      zero_fraction.push_back(pieces.fraction(zero_hat.back(), T(0)));
    }
  }

  int64_t n_straight() const { return static_cast<int64_t>(straight.size()); }
  int64_t n_features() const { return n_straight() + pieces.n_hats + 1; }
  // Multiply-adds of a dense row on one tile and output.
  int64_t work() const { return n_straight() + 2 * pieces.n_curves; }
};

// Dense rows with their bins and fractions found.
template <class T>
struct CurveRows {
  const T* straight;     // [row][column without a curve]
  const int32_t* hat;    // [row][curve]: the knot left of the value
  const T* part;         // [row][curve][2]: what that knot and the next one count for
  int64_t n_straight, n_curves;

  T dot(int64_t i, const T* w) const {
    const int32_t* h = hat + i * n_curves;
    const T *parts = part + 2 * i * n_curves, *values = w + n_straight;
    const T* x = straight + i * n_straight;
#if defined(__GNUC__)
    int64_t f = n_straight / kLanes<T> * kLanes<T>;
    T sum = svmosaic::dot(x, w, f);
    typedef T Pair __attribute__((vector_size(2 * sizeof(T))));
    const auto at = [&](int64_t c) { return load_vector<Pair>(values + h[c]) * load_vector<Pair>(parts + 2 * c); };
    Pair s0{}, s1{}, s2{}, s3{};  // of their own, to hide the latency of additions
    for (; f + 2 <= n_straight; f += 2) s3 += load_vector<Pair>(x + f) * load_vector<Pair>(w + f);
    if (f < n_straight) sum += x[f] * w[f];
    int64_t c = 0;
    for (; c + 4 <= n_curves; c += 4) {
      s0 += at(c);
      s1 += at(c + 1);
      s2 += at(c + 2);
      s3 += at(c + 3);
    }
    for (; c < n_curves; ++c) s0 += at(c);
    s0 = (s0 + s1) + (s2 + s3);
    return sum + (s0[0] + s0[1]);
#else
    T sum = svmosaic::dot(x, w, n_straight);
    for (int64_t c = 0; c < n_curves; ++c) sum += parts[2 * c] * values[h[c]] + parts[2 * c + 1] * values[h[c] + 1];
    return sum;
#endif
  }
};

// A block of rows as the tiles see them, kept between blocks.
template <class T>
struct CurveScratch {
  std::vector<T> straight, part;
  std::vector<int32_t> hat, indices;
  std::vector<T> data;
  std::vector<int64_t> indptr;
};

// Rows [begin, begin + n) as the tiles see them.
template <class T>
CurveRows<T> seen_by(const Curves<T>& curves, const DenseRows<T>& x, int64_t begin, int64_t n, CurveScratch<T>& s);
template <class T>
SparseRows<T> seen_by(const Curves<T>& curves, const SparseRows<T>& x, int64_t begin, int64_t n, CurveScratch<T>& s);

// out[r] = M x for the n rows listed; out has panels.padded() numbers per row.
template <class T>
void multiply_curves(const CurveRows<T>& x, const int32_t* rows, int64_t n, const Panels<T>& panels, T* const* out);

}  // namespace svmosaic
