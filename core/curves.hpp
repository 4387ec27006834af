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

#if defined(SVMOSAIC_LONG_VECTORS)
// hat and part of kLanes<T> rows at a time, as many as there are; returns how many rows were taken.
template <class T>
SVMOSAIC_LONG_VECTORS int64_t see_by_vectors(const Curves<T>& curves, const T* data, int64_t stride, int64_t n,
                                             int32_t* hat, T* part) {
  constexpr int64_t w = kLanes<T>, most = 16;  // curves whose vectors wait in the first-level cache
  const KnotTables<T>& tables = curves.tables;
  const int64_t n_curves = curves.pieces.n_curves;
  int64_t r = 0;
  for (; r + w <= n; r += w)
    for (int64_t first = 0; first < n_curves; first += most) {
      const int64_t m = std::min(most, n_curves - first);
      Places<T> bin[most];
      Lanes<T> fraction[most];
      for (int64_t q = 0; q < m; ++q) {
        const int64_t c = first + q, from = curves.pieces.start[c];
        const Lanes<T> x = spread(data + r * stride + curves.pieces.column[c], stride);
        const VectorOfBins<T> bins = bins_of(tables.inner.data() + c * tables.kTable, x);
        Lanes<T> t = (x - looked_up(tables.knot.data() + from, bins)) * looked_up(tables.inverse.data() + from, bins);
        t = t > 0 ? t : Lanes<T>{};
        fraction[q] = t < 1 ? t : 1 + Lanes<T>{};
        bin[q] = bins.whole();
      }
      for (int64_t l = 0; l < w; ++l)
        for (int64_t q = 0; q < m; ++q) {
          const int64_t at = (r + l) * n_curves + first + q;
          hat[at] = curves.pieces.start[first + q] + static_cast<int32_t>(bin[q][l]);
          part[2 * at] = 1 - fraction[q][l];
          part[2 * at + 1] = fraction[q][l];
        }
    }
  return r;
}
#endif

// Rows [begin, begin + n) as the tiles see them.
template <class T>
inline CurveRows<T> seen_by(const Curves<T>& curves, const DenseRows<T>& x, int64_t begin, int64_t n,
                            CurveScratch<T>& s) {
  const Pieces<T>& pieces = curves.pieces;
  const int64_t n_curves = pieces.n_curves, n_straight = curves.n_straight();
  s.straight.resize(n * n_straight);
  s.hat.resize(n * n_curves);
  s.part.resize(2 * n * n_curves);
  for (int64_t r = 0; r < n; ++r) {
    const T* row = x.data + (begin + r) * x.stride;
    T* straight = s.straight.data() + r * n_straight;
    for (const auto& run : curves.runs) {
      const T *from = row + run.column, *center = curves.center.data() + run.place, *scale = curves.scale.data() + run.place;
      T* to = straight + run.place;
      for (int64_t f = 0; f < run.n; ++f) to[f] = (from[f] - center[f]) * scale[f];
    }
  }
  int64_t done = 0;
#if defined(SVMOSAIC_LONG_VECTORS)
  if (curves.tables.takes(n))
    done = see_by_vectors(curves, x.data + begin * x.stride, x.stride, n, s.hat.data(), s.part.data());
#endif
  int32_t* hat = s.hat.data() - begin * n_curves;
  T* part = s.part.data() - 2 * begin * n_curves;
  find_bins(pieces, x.data, x.stride, begin + done, begin + n, [&](int64_t i, int64_t c, int32_t bin, T value) {
    const int32_t h = pieces.start[c] + bin;
    hat[i * n_curves + c] = h;
#if defined(__GNUC__)
    // In a vector, to be clipped without branches, which values beyond the last knot would take by surprise.
    typedef T Four __attribute__((vector_size(16)));
    Four t = Four{(value - pieces.knot[h]) * pieces.inverse[h]};
    t = t > 0 ? t : Four{};
    t = t < 1 ? t : Four{1};
    part[2 * (i * n_curves + c)] = 1 - t[0];
    part[2 * (i * n_curves + c) + 1] = t[0];
#else
    const T t = pieces.fraction(h, value);
    part[2 * (i * n_curves + c)] = 1 - t;
    part[2 * (i * n_curves + c) + 1] = t;
#endif
  });
  return {s.straight.data(), s.hat.data(), s.part.data(), n_straight, n_curves};
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

#if defined(__GNUC__)
// out[r][at ..] = the products of the R rows listed with V vectors of columns; `panel` has `lanes` numbers per feature
template <class Vector, int R, int V, class T>
inline void curves_by_panel(const CurveRows<T>& x, const int32_t* rows, const T* panel, int64_t lanes, T* const* out,
                            int64_t at) {
  constexpr int w = sizeof(Vector) / sizeof(T);
  Vector sum[R][V] = {};
  for (int64_t f = 0; f < x.n_straight; ++f)
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v)
        sum[r][v] += x.straight[rows[r] * x.n_straight + f] * load_vector<Vector>(panel + f * lanes + v * w);
  const T* values = panel + x.n_straight * lanes;
  for (int64_t c = 0; c < x.n_curves; ++c)
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const int64_t at_curve = rows[r] * x.n_curves + c;
      const T first = x.part[2 * at_curve], second = x.part[2 * at_curve + 1], *left = values + x.hat[at_curve] * lanes;
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) {
        // One after the other, so that the compiler fuses both in the same way for any number of rows.
        sum[r][v] += first * load_vector<Vector>(left + v * w);
        sum[r][v] += second * load_vector<Vector>(left + lanes + v * w);
      }
    }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) store_vector(out[r] + at + v * w, sum[r][v]);
}

// V vectors of all panels at a time.
template <class Vector, int V, class T>
inline void multiply_curves_by_panels(const CurveRows<T>& x, const int32_t* rows, int64_t n, const Panels<T>& panels,
                                      T* const* out) {
  constexpr int64_t columns = V * static_cast<int64_t>(sizeof(Vector) / sizeof(T));
  for (int64_t at = 0; at < panels.padded(); at += columns) {
    const T* panel = panels.panel(at / panels.lanes) + at % panels.lanes;
    int64_t r = 0;
    for (; r + 4 <= n; r += 4) curves_by_panel<Vector, 4, V>(x, rows + r, panel, panels.lanes, out + r, at);
    for (; r < n; ++r) curves_by_panel<Vector, 1, V>(x, rows + r, panel, panels.lanes, out + r, at);
  }
}
#endif

// out[r] = M x for the n rows listed; out has panels.padded() numbers per row.
template <class T>
inline void multiply_curves(const CurveRows<T>& x, const int32_t* rows, int64_t n, const Panels<T>& panels,
                            T* const* out) {
#if defined(__GNUC__)
  if (!has_long_registers())
    multiply_curves_by_panels<ShortLanes<T>, 2>(x, rows, n, panels, out);
  else if (panels.lanes == Panels<T>::kVector)
    multiply_curves_by_panels<Lanes<T>, 1>(x, rows, n, panels, out);
  else
    multiply_curves_by_panels<Lanes<T>, 2>(x, rows, n, panels, out);
#else
  for (int64_t r = 0; r < n; ++r)
    for (int64_t at = 0; at < panels.padded(); ++at) {
      const T* panel = panels.panel(at / panels.lanes) + at % panels.lanes;
      T sum = 0;
      for (int64_t f = 0; f < x.n_straight; ++f) sum += x.straight[rows[r] * x.n_straight + f] * panel[f * panels.lanes];
      for (int64_t c = 0; c < x.n_curves; ++c) {
        const int64_t at_curve = rows[r] * x.n_curves + c;
        const T* left = panel + (x.n_straight + x.hat[at_curve]) * panels.lanes;
        sum += x.part[2 * at_curve] * left[0] + x.part[2 * at_curve + 1] * left[panels.lanes];
      }
      out[r][at] = sum;
    }
#endif
}

}  // namespace svmosaic
