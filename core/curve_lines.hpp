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
  // [tile][output][hat]: the value at the knot, and the slope towards the next. Of one tile all values, then all slopes,
  // which are looked up in registers; of several side by side, which are read from memory together.
  std::vector<T> line;
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
    slope.assign(n_tiles * n_outputs * n_span + 1, T(0));  // may be read beyond the last
    line.resize(2 * n_lines());
    for (int64_t s = 0; s < curves.n_straight(); ++s) {
      const int64_t at = curves.straight[s] - first;
      center[at] = curves.center[s];
      for (int64_t o = 0; o < n_tiles * n_outputs; ++o)
        slope[o * n_span + at] = coef[o * curves.n_features() + s] * curves.scale[s];
    }
    for (int64_t c = 0; c < n_curves; ++c) add_curve(curves, coef, c);
  }

  bool few_columns() const { return n_span <= kFewColumns; }

  // Numbers from one value to the next, and from a value to its slope.
  int64_t step() const { return n_tiles == 1 ? 1 : 2; }
  int64_t to_rise() const { return n_tiles == 1 ? n_lines() : 1; }

  T clipped(int64_t c, T x) const {
    const T above = x > low[c] ? x : low[c];
    return above < high[c] ? above : high[c];
  }

 private:
  // With what a table of hats needs behind its end.
  int64_t n_lines() const { return n_tiles * n_outputs * n_hats + KnotTables<T>::kTable + 1; }

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
        T* value = line.data() + (at + h) * step();
        value[0] = y[h];
        if (h == last) continue;
        const double width = static_cast<double>(knot[h + 1]) - knot[h];
        const T steep = static_cast<T>((static_cast<double>(y[h + 1]) - y[h]) / width);
        // Knots that are equal in this precision are a step, after which the curve goes on from the next one.
        if (width > 0 && std::isfinite(steep))
          value[to_rise()] = steep;
        else
          value[0] = y[h + 1];
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
  const int64_t n_outputs = lines.n_outputs, n_hats = lines.n_hats, to_rise = lines.to_rise();
  int64_t r = 0;
  for (; r + w <= n; r += w) {
    const T* rows = data + r * stride;
    Lanes<T> total[kMostLines] = {};
    Places<T> first_line{};  // of the tile of each row
    if (!kOneTile)
      for (int64_t l = 0; l < w; ++l) first_line[l] = static_cast<Place>(tile[r + l] * n_outputs);
    const Places<T> first_value = first_line * static_cast<Place>(2 * n_hats);
    alignas(64) Place at[w];
    if (!kOneTile) store<Place>(at, first_line * static_cast<Place>(lines.n_span));
    const int64_t n_span = lines.few_columns() ? lines.n_span : 0;
    for (int64_t f = 0; f < n_span; f += kOneTile ? 1 : 2) {
      const bool both = !kOneTile && f + 1 < n_span;
      const Lanes<T> away = spread(rows + lines.first + f, stride) - lines.center[f];
      const Lanes<T> next = both ? spread(rows + lines.first + f + 1, stride) - lines.center[f + 1] : Lanes<T>{};
      for (int64_t o = 0; o < n_outputs; ++o) {
        const T* slope = lines.slope.data() + o * lines.n_span + f;
        if constexpr (kOneTile) {
          total[o] += away * slope[0];
        } else {
          const PairOfLanes<T> slopes = pairs_at(slope, at);
          total[o] += away * slopes.first;
          if (both) total[o] += next * slopes.second;
        }
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
      if constexpr (kOneTile) {
        for (int64_t o = 0; o < n_outputs; ++o) {
          const T* value = lines.line.data() + o * n_hats + from;
          total[o] += looked_up(value, bins) + away * looked_up(value + to_rise, bins);
        }
      } else {
        store<Place>(at, first_value + 2 * bins.whole());
        for (int64_t o = 0; o < n_outputs; ++o) {
          const PairOfLanes<T> found = pairs_at(lines.line.data() + 2 * (o * n_hats + from), at);
          total[o] += found.first + away * found.second;
        }
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
  const int64_t step = lines.step(), to_rise = lines.to_rise();
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
    const T* line = lines.line.data() + at * step;
    for (int64_t o = 0; o < n_outputs; ++o)
      sum[r * n_outputs + o] += multiply_add(away, line[o * n_hats * step + to_rise], line[o * n_hats * step]);
  });
  if (lines.few_columns()) return;
  for (int64_t r = 0; r < n; ++r)
    for (int64_t o = 0; o < n_outputs; ++o)
      sum[r * n_outputs + o] +=
          centered_dot(data + r * x.stride, center, slope + (tile[r] * n_outputs + o) * n_span, n_span);
}

}  // namespace svmosaic
