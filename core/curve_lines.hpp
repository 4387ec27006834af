// Curves of the one tile that sees a row, summed without writing down bins and fractions.
//
// Where rows see one tile each and outputs are few, the sum of its curves is found row by row:
//
//   sum_f (x_f - center_f) slope_f  +  sum_c value_c[b] + (x_c - knot_c[b]) rise_c[b] ,   b the bin of x_c, x_c clipped
//
// Machines with long vectors take a vector of rows at once, and look bins up in registers, and values too if there is only
// one tile with weights; others, and the last rows of a block, go value by value. Both do the same arithmetic in the same order, so that the bits agree.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "curves.hpp"
#include "knot_tables.hpp"
#include "pieces.hpp"
#include "rows.hpp"
#include "simd.hpp"

namespace svmosaic {

// Outputs of a tile that is summed so.
constexpr int64_t kMostLines = 4;

template <class T>
struct CurveLines {
  // So many columns without a curve are taken with the curves; more of them cost less as a dot product.
  static constexpr int64_t kFewColumns = 16;

  int64_t n_tiles, n_outputs, n_curves, n_hats;
  int64_t first = 0, n_span = 0;      // the columns from the first without a curve to the last
  std::vector<T> center, slope;       // [column of the span], [tile][output][column of the span]; zero for curves
  std::vector<int32_t> column;        // by curve
  std::vector<T> low, high;           // by curve: its ends
  std::vector<T> value, rise;         // [tile][output][hat]: at the knot, and the slope towards the next
  std::vector<int32_t> start;         // by curve: its first hat
  bool finite = true;

  // `coef` are the weights of the outputs of all tiles as curves.hpp says.
  CurveLines(const Curves<T>& curves, const T* coef, int64_t n_tiles, int64_t n_outputs)
      : n_tiles(n_tiles), n_outputs(n_outputs), n_curves(curves.pieces.n_curves), n_hats(curves.pieces.n_hats), column(curves.pieces.column),
        start(curves.pieces.start) {
    if (curves.n_straight() > 0) {
      first = curves.straight.front();
      n_span = curves.straight.back() - first + 1;
    }
    center.assign(n_span, T(0));
    slope.assign(n_tiles * n_outputs * n_span, T(0));
    value = rise = KnotTables<T>::padded(std::vector<T>(n_tiles * n_outputs * n_hats));
    for (int64_t s = 0; s < curves.n_straight(); ++s) {
      const int64_t at = curves.straight[s] - first;
      center[at] = curves.center[s];
      for (int64_t o = 0; o < n_tiles * n_outputs; ++o)
        slope[o * n_span + at] = coef[o * curves.n_features() + s] * curves.scale[s];
    }
    for (int64_t c = 0; c < n_curves; ++c) add_curve(curves, coef, c);
  }

  bool few_columns() const { return n_span <= kFewColumns; }

  T clipped(int64_t c, T x) const {
    const T above = x > low[c] ? x : low[c];
    return above < high[c] ? above : high[c];
  }

 private:
  void add_curve(const Curves<T>& curves, const T* coef, int64_t c) {
    const std::vector<T>& knot = curves.pieces.knot;
    const int64_t begin = start[c], last = start[c + 1] - 1;
    low.push_back(knot[begin]);
    high.push_back(knot[last]);
    finite = finite && std::isfinite(knot[last] - knot[begin]);
    for (int64_t o = 0; o < n_tiles * n_outputs; ++o) {
      const T* y = coef + o * curves.n_features() + curves.n_straight();
      const int64_t at = o * n_hats;
      for (int64_t h = begin; h <= last; ++h) {
        value[at + h] = y[h];
        if (h == last) continue;
        const double width = static_cast<double>(knot[h + 1]) - knot[h];
        const T steep = static_cast<T>((static_cast<double>(y[h + 1]) - y[h]) / width);
        // Knots that are equal in this precision are a step, after which the curve goes on from the next one.
        if (width > 0 && std::isfinite(steep))
          rise[at + h] = steep;
        else
          value[at + h] = y[h + 1];
      }
    }
  }
};

// c + a * b, rounded as vectors of rows do it: in a loop over scalars compilers may fuse some of these and not others.
template <class T>
inline T multiply_add(T a, T b, T c) {
#if defined(__GNUC__)
  typedef T Short __attribute__((vector_size(16)));
  const Short x{a}, y{b}, z{c};
  return (z + x * y)[0];
#else
  return c + a * b;
#endif
}

// sum_f (x_f - center_f) slope_f
template <class T>
inline T centered_dot(const T* x, const T* center, const T* slope, int64_t n) {
  T sum = 0;
  int64_t i = 0;
#if defined(__GNUC__)
  constexpr int w = kLanes<T>;
  Lanes<T> s0{}, s1{};
  for (; i + 2 * w <= n; i += 2 * w) {
    s0 += (load<T>(x + i) - load<T>(center + i)) * load<T>(slope + i);
    s1 += (load<T>(x + i + w) - load<T>(center + i + w)) * load<T>(slope + i + w);
  }
  for (; i + w <= n; i += w) s0 += (load<T>(x + i) - load<T>(center + i)) * load<T>(slope + i);
  s0 += s1;
  if (n >= w)
    for (int half = w / 2; half >= 1; half /= 2)
      for (int lane = 0; lane < half; ++lane) s0[lane] += s0[lane + half];
  sum = s0[0];
#endif
  for (; i < n; ++i) sum = multiply_add(x[i] - center[i], slope[i], sum);
  return sum;
}

#if defined(SVMOSAIC_LONG_VECTORS)
// sum[row][output] of kLanes<T> rows at a time, as many as there are, on the tiles `tile`; returns how many rows were
// taken.
template <class T, bool kOneTile>
SVMOSAIC_LONG_VECTORS int64_t sum_by_vectors(const CurveLines<T>& lines, const KnotTables<T>& tables, const T* data,
                                             int64_t stride, const int32_t* tile, int64_t n, T* sum) {
  constexpr int64_t w = kLanes<T>;
  using Place = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  const int64_t n_outputs = lines.n_outputs, n_hats = lines.n_hats;
  int64_t r = 0;
  for (; r + w <= n; r += w) {
    const T* rows = data + r * stride;
    Lanes<T> total[kMostLines] = {};
    Places<T> first_line{};  // of the tile of each row
    if (!kOneTile)
      for (int64_t l = 0; l < w; ++l) first_line[l] = static_cast<Place>(tile[r + l] * n_outputs);
    for (int64_t f = 0; f < (lines.few_columns() ? lines.n_span : 0); ++f) {
      const Lanes<T> away = spread(rows + lines.first + f, stride) - lines.center[f];
      for (int64_t o = 0; o < n_outputs; ++o) {
        const T* slope = lines.slope.data() + o * lines.n_span + f;
        if constexpr (kOneTile)
          total[o] += away * slope[0];
        else
          total[o] += away * gathered(slope, first_line * static_cast<Place>(lines.n_span));
      }
    }
    for (int64_t c = 0; c < lines.n_curves; ++c) {
      Lanes<T> x = spread(rows + lines.column[c], stride);
      const Lanes<T> low = lines.low[c] + Lanes<T>{}, high = lines.high[c] + Lanes<T>{};
      x = x > low ? x : low;
      x = x < high ? x : high;
      const VectorOfBins<T> bins = bins_of(tables.inner.data() + c * tables.kTable, x);
      const int64_t from = lines.start[c];
      const Lanes<T> away = x - looked_up(tables.knot.data() + from, bins);
      const Places<T> at = first_line * static_cast<Place>(n_hats) + bins.whole();
      for (int64_t o = 0; o < n_outputs; ++o) {
        const T *value = lines.value.data() + o * n_hats + from, *rise = lines.rise.data() + o * n_hats + from;
        if constexpr (kOneTile)
          total[o] += looked_up(value, bins) + away * looked_up(rise, bins);
        else
          total[o] += gathered(value, at) + away * gathered(rise, at);
      }
    }
    for (int64_t o = 0; o < n_outputs; ++o)
      for (int64_t l = 0; l < w; ++l) sum[(r + l) * n_outputs + o] = total[o][l];
  }
  return r;
}
#endif

// score[row][output] of rows [begin, begin + n) on the tiles `tile`, one per row, without the intercepts.
template <class T>
inline void sum_curves(const CurveLines<T>& lines, const Curves<T>& curves, const DenseRows<T>& x, int64_t begin,
                       int64_t n, const int32_t* tile, std::vector<T>& score) {
  const int64_t n_outputs = lines.n_outputs, n_hats = lines.n_hats, n_span = lines.n_span;
  score.resize(n * n_outputs);
  T* sum = score.data();
  int64_t done = 0;
#if defined(SVMOSAIC_LONG_VECTORS)
  if (curves.tables.takes(n)) {
    const T* rows = x.data + begin * x.stride;
    done = lines.n_tiles == 1 ? sum_by_vectors<T, true>(lines, curves.tables, rows, x.stride, tile, n, sum)
                              : sum_by_vectors<T, false>(lines, curves.tables, rows, x.stride, tile, n, sum);
  }
#endif
  const T *data = x.data + begin * x.stride + lines.first, *center = lines.center.data(), *slope = lines.slope.data();
  for (int64_t r = done; r < n; ++r)
    for (int64_t o = 0; o < n_outputs; ++o) {
      const T* of_line = slope + (tile[r] * n_outputs + o) * n_span;
      T total = 0;
      for (int64_t f = 0; f < (lines.few_columns() ? n_span : 0); ++f)
        total = multiply_add(data[r * x.stride + f] - center[f], of_line[f], total);
      sum[r * n_outputs + o] = total;
    }
  find_bins(curves.pieces, x.data, x.stride, begin + done, begin + n, [&](int64_t i, int64_t c, int32_t bin, T value) {
    const int64_t r = i - begin, h = lines.start[c] + bin, at = tile[r] * n_outputs * n_hats + h;
    const T away = lines.clipped(c, value) - curves.pieces.knot[h];
    for (int64_t o = 0; o < n_outputs; ++o)
      sum[r * n_outputs + o] += multiply_add(away, lines.rise[at + o * n_hats], lines.value[at + o * n_hats]);
  });
  if (lines.few_columns()) return;
  for (int64_t r = 0; r < n; ++r)
    for (int64_t o = 0; o < n_outputs; ++o)
      sum[r * n_outputs + o] +=
          centered_dot(data + r * x.stride, center, slope + (tile[r] * n_outputs + o) * n_span, n_span);
}

}  // namespace svmosaic
