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

#include "panels.hpp"
#include "pieces.hpp"
#include "rows.hpp"

namespace svmosaic {

template <class T>
struct Curves {
  Pieces<T> pieces;
  std::vector<int32_t> straight;  // the columns without a curve
  bool zero_is_zero;              // all curves are zero at zero
  std::vector<int32_t> slope;     // by column: its place in `straight`, or -1
  std::vector<int64_t> zero_hat;  // by curve: the knot left of zero, and the fraction towards the next
  std::vector<T> zero_fraction;

  Curves(Pieces<T>&& pieces_in, bool zero_is_zero)
      : pieces(std::move(pieces_in)), zero_is_zero(zero_is_zero), slope(pieces.n_inputs, -1) {
    for (int64_t f = 0; f < pieces.n_inputs; ++f) {
      if (pieces.curve[f] >= 0) continue;
      slope[f] = static_cast<int32_t>(straight.size());
      straight.push_back(static_cast<int32_t>(f));
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
  const T* fraction;     // [row][curve]
  int64_t n_straight, n_curves;

  T dot(int64_t i, const T* w) const {
    const int32_t* h = hat + i * n_curves;
    const T *t = fraction + i * n_curves, *values = w + n_straight;
    const auto at = [&](int64_t c) { return values[h[c]] + t[c] * (values[h[c] + 1] - values[h[c]]); };
    T sums[4] = {};  // of their own, to hide the latency of additions
    int64_t c = 0;
    for (; c + 4 <= n_curves; c += 4)
      for (int s = 0; s < 4; ++s) sums[s] += at(c + s);
    for (; c < n_curves; ++c) sums[0] += at(c);
    return svmosaic::dot(straight + i * n_straight, w, n_straight) + ((sums[0] + sums[1]) + (sums[2] + sums[3]));
  }
};

// A block of rows as the tiles see them, kept between blocks.
template <class T>
struct CurveScratch {
  std::vector<T> curved, straight, fraction;
  std::vector<int32_t> hat, indices;
  std::vector<T> data;
  std::vector<int64_t> indptr;
};

// Rows [begin, begin + n) as the tiles see them.
template <class T>
inline CurveRows<T> seen_by(const Curves<T>& curves, const DenseRows<T>& x, int64_t begin, int64_t n,
                            CurveScratch<T>& s) {
  const Pieces<T>& pieces = curves.pieces;
  const int64_t n_curves = pieces.n_curves, n_straight = curves.n_straight();
  s.curved.resize(pieces.padded());
  s.straight.resize(n * n_straight);
  s.hat.resize(n * n_curves);
  s.fraction.resize(n * n_curves);
  for (int64_t r = 0; r < n; ++r) {
    const T* row = x.data + (begin + r) * x.stride;
    T* straight = s.straight.data() + r * n_straight;
    for (int64_t f = 0; f < n_straight; ++f) {
      const int64_t column = curves.straight[f];
      straight[f] = (row[column] - pieces.center[column]) * pieces.scale[column];
    }
    for (int64_t c = 0; c < n_curves; ++c) s.curved[c] = row[pieces.column[c]];
    int32_t* hat = s.hat.data() + r * n_curves;
    T* fraction = s.fraction.data() + r * n_curves;
    find_bins(pieces, s.curved.data(), hat);
    for (int64_t c = 0; c < n_curves; ++c) {
      hat[c] += pieces.start[c];
      fraction[c] = pieces.fraction(hat[c], s.curved[c]);
    }
  }
  return {s.straight.data(), s.hat.data(), s.fraction.data(), n_straight, n_curves};
}

template <class T>
inline SparseRows<T> seen_by(const Curves<T>& curves, const SparseRows<T>& x, int64_t begin, int64_t n,
                             CurveScratch<T>& s) {
  const Pieces<T>& pieces = curves.pieces;
  const int64_t first = curves.n_straight(), last = first + pieces.n_hats;
  s.data.clear();
  s.indices.clear();
  s.indptr.assign(1, 0);
  const auto add = [&](int64_t f, T value) {
    s.indices.push_back(static_cast<int32_t>(f));
    s.data.push_back(value);
  };
  for (int64_t i = begin; i < begin + n; ++i) {
    for (int64_t p = x.indptr[i]; p < x.indptr[i + 1]; ++p) {
      const int64_t f = x.indices[p], c = pieces.curve[f];
      if (c < 0) {
        add(curves.slope[f], x.data[p] * pieces.scale[f]);
        continue;
      }
      const int64_t h = pieces.start[c] + pieces.bin(c, x.data[p]);
      const T t = pieces.fraction(h, x.data[p]);
      add(first + h, 1 - t);
      add(first + h + 1, t);
      if (curves.zero_is_zero) continue;
      add(first + curves.zero_hat[c], curves.zero_fraction[c] - 1);
      add(first + curves.zero_hat[c] + 1, -curves.zero_fraction[c]);
    }
    if (!curves.zero_is_zero) add(last, 1);
    s.indptr.push_back(static_cast<int64_t>(s.data.size()));
  }
  return {s.data.data(), s.indices.data(), s.indptr.data(), n, last + 1, 0.0};
}

// out[r][at ..] = the products of R rows from i on with the columns of a panel of V vectors
template <int R, int V, class T>
inline void curves_by_panel(const CurveRows<T>& x, const int32_t* rows, const T* panel, T* const* out, int64_t at) {
  constexpr int64_t w = Panels<T>::kVector, lanes = V * w;
#if defined(__GNUC__)
  Lanes<T> sum[R][V] = {};
  for (int64_t f = 0; f < x.n_straight; ++f)
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) sum[r][v] += x.straight[rows[r] * x.n_straight + f] * load<T>(panel + f * lanes + v * w);
  const T* values = panel + x.n_straight * lanes;
  for (int64_t c = 0; c < x.n_curves; ++c)
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const T t = x.fraction[rows[r] * x.n_curves + c], *left = values + x.hat[rows[r] * x.n_curves + c] * lanes;
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) {
        // One after the other, so that the compiler fuses both in the same way for any number of rows.
        sum[r][v] += (1 - t) * load<T>(left + v * w);
        sum[r][v] += t * load<T>(left + lanes + v * w);
      }
    }
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) store<T>(out[r] + at + v * w, sum[r][v]);
#else
  for (int r = 0; r < R; ++r)
    for (int64_t l = 0; l < lanes; ++l) {
      T sum = 0;
      for (int64_t f = 0; f < x.n_straight; ++f) sum += x.straight[rows[r] * x.n_straight + f] * panel[f * lanes + l];
      for (int64_t c = 0; c < x.n_curves; ++c) {
        const T t = x.fraction[rows[r] * x.n_curves + c];
        const T* left = panel + (x.n_straight + x.hat[rows[r] * x.n_curves + c]) * lanes + l;
        sum += (1 - t) * left[0] + t * left[lanes];
      }
      out[r][at + l] = sum;
    }
#endif
}

template <int V, class T>
inline void multiply_curves_by_panels(const CurveRows<T>& x, const int32_t* rows, int64_t n, const Panels<T>& panels,
                                      T* const* out) {
  for (int64_t q = 0; q < panels.n_panels; ++q) {
    int64_t r = 0;
    for (; r + 4 <= n; r += 4) curves_by_panel<4, V>(x, rows + r, panels.panel(q), out + r, q * panels.lanes);
    for (; r < n; ++r) curves_by_panel<1, V>(x, rows + r, panels.panel(q), out + r, q * panels.lanes);
  }
}

// out[r] = M x for the n rows listed; out has panels.padded() numbers per row.
template <class T>
inline void multiply_curves(const CurveRows<T>& x, const int32_t* rows, int64_t n, const Panels<T>& panels,
                            T* const* out) {
  if (panels.lanes == Panels<T>::kVector)
    multiply_curves_by_panels<1>(x, rows, n, panels, out);
  else
    multiply_curves_by_panels<2>(x, rows, n, panels, out);
}

}  // namespace svmosaic
