// Piecewise-linear features: what rows look like to tiles that bend along each feature.
//
// Feature f of the input becomes a straight term and, if it has knots u_0 < ... < u_m, one hat function per knot:
//
//   z_f(x) = min(max((x - center_f) * scale_f, low_f), high_f)
//   hat_t(x) = 1 at u_t, 0 at the other knots, linear between, constant beyond u_0 and u_m
//
// The expanded row is (z_1 .. z_d, all hats of the first curve, all hats of the second, ...). Between two knots only
// their two hats are not zero, so a row is stored as it is, plus one byte per curve: the number of its bin. The
// expanded row is never formed, except one at a time where a solver unpacks it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "ones.hpp"
#include "simd.hpp"

namespace svmosaic {

template <class T>
struct Pieces {
  int64_t n_inputs, n_curves, n_hats;
  std::vector<T> center, scale, low, high;  // by input column
  std::vector<int32_t> column;              // by curve: its input column
  std::vector<int32_t> curve;               // by input column: its curve, or -1
  std::vector<int32_t> start;               // by curve: its first hat; and one more entry
  std::vector<T> knot, inverse;             // by hat: the knot, and 1 / the distance to the next one
  std::vector<T> kept;                      // by hat: 0 for the hat of an implicit zero, else 1

  // The inner knots, for finding the bins of kGroup curves at once: [group of curves][step][lane], padded with infinity.
  static constexpr int64_t kGroup = 32 / static_cast<int64_t>(sizeof(T));
  std::vector<int64_t> ladder_start;  // by group, and one more entry
  std::vector<T> ladder;
  std::vector<char> side_by_side;     // by group: whether it is whole, and its columns follow each other

  Pieces(const double* center_in, const double* scale_in, const double* low_in, const double* high_in,
         int64_t n_inputs, const int32_t* column_in, const int32_t* start_in, int64_t n_curves, const double* knot_in,
         const double* kept_in)
      : n_inputs(n_inputs), n_curves(n_curves), n_hats(start_in[n_curves]), center(center_in, center_in + n_inputs),
        scale(scale_in, scale_in + n_inputs), low(low_in, low_in + n_inputs), high(high_in, high_in + n_inputs),
        column(column_in, column_in + n_curves), curve(n_inputs, -1), start(start_in, start_in + n_curves + 1),
        knot(knot_in, knot_in + n_hats), inverse(n_hats, T(0)), kept(kept_in, kept_in + n_hats) {
    for (int64_t c = 0; c < n_curves; ++c) {
      curve[column[c]] = static_cast<int32_t>(c);
      for (int32_t h = start[c]; h + 1 < start[c + 1]; ++h) {
        // Halves, so that knots far apart do not overflow; knots that are equal in this precision have a steep hat.
        const T width = knot[h + 1] / 2 - knot[h] / 2, most = std::numeric_limits<T>::max();
        inverse[h] = width > T(0.5) / most ? T(0.5) / width : most;
      }
    }
    ladder_start.assign(n_groups() + 1, 0);
    for (int64_t g = 0; g < n_groups(); ++g) {
      const int64_t first = first_of(g), last = std::min(first + kGroup, n_curves);
      int64_t n_steps = 0;
      for (int64_t c = first; c < last; ++c) n_steps = std::max<int64_t>(n_steps, start[c + 1] - start[c] - 2);
      ladder_start[g + 1] = ladder_start[g] + n_steps * kGroup;
      ladder.resize(ladder_start[g + 1], std::numeric_limits<T>::infinity());
      for (int64_t c = first; c < last; ++c)
        for (int64_t s = 0; s < start[c + 1] - start[c] - 2; ++s)
          ladder[ladder_start[g] + s * kGroup + c - first] = knot[start[c] + 1 + s];
      side_by_side.push_back(last - first == kGroup && column[last - 1] - column[first] == kGroup - 1);
    }
  }

  int64_t n_groups() const { return (n_curves + kGroup - 1) / kGroup; }
  // The last group reaches back into the one before, so that it is whole if there are curves enough.
  int64_t first_of(int64_t g) const { return std::max<int64_t>(0, std::min(g * kGroup, n_curves - kGroup)); }

  int64_t n_features() const { return n_inputs + n_hats; }
  template <class A>
  A straight(int64_t f, A x) const {
    const A z = (x - static_cast<A>(center[f])) * static_cast<A>(scale[f]);
    const A above = z > static_cast<A>(low[f]) ? z : static_cast<A>(low[f]);
    return above < static_cast<A>(high[f]) ? above : static_cast<A>(high[f]);
  }

  // How far x is on its way from knot h to the next one, within [0, 1].
  template <class A>
  A fraction(int64_t h, A x) const {
    const A t = (x - static_cast<A>(knot[h])) * static_cast<A>(inverse[h]), above = t > 0 ? t : A(0);
    return above < 1 ? above : A(1);
  }

  // The bin of x on curve c: the number of inner knots at or below x.
  int64_t bin(int64_t c, T x) const {
    const T *inner = knot.data() + start[c] + 1, *end = knot.data() + start[c + 1] - 1;
    return std::upper_bound(inner, end, x) - inner;
  }
};

// The bins of group g of curves in R dense rows. Comparing with all knots at once takes no branches, and several rows
// share the loads of the knots.
template <class T, int R>
struct GroupOfBins {
  static constexpr int64_t w = Pieces<T>::kGroup;
  std::conditional_t<sizeof(T) == 4, int32_t, int64_t> bin[R][w];

  GroupOfBins(const Pieces<T>& pieces, int64_t g, const T* rows, int64_t stride) {
    const int64_t first = pieces.first_of(g);
    const T *step = pieces.ladder.data() + pieces.ladder_start[g], *end = pieces.ladder.data() + pieces.ladder_start[g + 1];
    T value[R][w];
    // Values that were written one by one are slow to read as a vector.
    if (!pieces.side_by_side[g])
      for (int64_t l = 0; l < w; ++l)
        for (int r = 0; r < R; ++r)
          value[r][l] = rows[r * stride + pieces.column[std::min(first + l, pieces.n_curves - 1)]];
#if defined(__GNUC__)
    // Half the width of other vectors: comparisons of wider ones become scalar where the machine has none.
    typedef T Values __attribute__((vector_size(32)));
    Values values[R], knots;
    for (int r = 0; r < R; ++r)
      std::memcpy(&values[r], pieces.side_by_side[g] ? rows + r * stride + pieces.column[first] : value[r], sizeof(knots));
    decltype(knots < knots) count[R] = {};
    for (; step < end; step += w) {
      std::memcpy(&knots, step, sizeof(knots));
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) count[r] -= values[r] >= knots;
    }
    std::memcpy(bin, count, sizeof(bin));
#else
    for (int r = 0; r < R; ++r)
      for (int64_t l = 0; l < w; ++l) {
        if (pieces.side_by_side[g]) value[r][l] = rows[r * stride + pieces.column[first] + l];
        bin[r][l] = 0;
      }
    for (; step < end; step += w)
      for (int r = 0; r < R; ++r)
        for (int64_t l = 0; l < w; ++l) bin[r][l] += value[r][l] >= step[l];
#endif
  }
};

// use(row, curve, bin, value) of all curves of the dense rows [begin, end).
template <class T, class Use>
inline void find_bins(const Pieces<T>& pieces, const T* data, int64_t stride, int64_t begin, int64_t end,
                      const Use& use) {
  constexpr int kRows = 4;
  const auto rows = [&](auto group_of, int64_t i, int n_rows) {
    for (int64_t g = 0; g < pieces.n_groups(); ++g) {
      const auto group = group_of(g, data + i * stride);
      const int64_t first = pieces.first_of(g), last = std::min(first + Pieces<T>::kGroup, pieces.n_curves);
      for (int r = 0; r < n_rows; ++r)
        for (int64_t c = g * Pieces<T>::kGroup; c < last; ++c)
          use(i + r, c, static_cast<int32_t>(group.bin[r][c - first]), data[(i + r) * stride + pieces.column[c]]);
    }
  };
  int64_t i = begin;
  for (; i + kRows <= end; i += kRows)
    rows([&](int64_t g, const T* x) { return GroupOfBins<T, kRows>(pieces, g, x, stride); }, i, kRows);
  for (; i < end; ++i) rows([&](int64_t g, const T* x) { return GroupOfBins<T, 1>(pieces, g, x, stride); }, i, 1);
}

// Rows of the expanded features, dense or compressed sparse, stored as the input rows and the bins of their curves.
// Sparse rows expand stored entries only: the map that goes with them sends zero to zero.
template <class T>
struct EncodedRows {
  using value_type = T;
  const Pieces<T>* pieces;
  const T* data;
  const uint8_t* bins;     // dense: [row][curve]; sparse: one per stored entry
  const int32_t* indices;  // null for dense rows
  const int64_t* indptr;
  int64_t n_rows, n_features;  // n_features of the expanded rows
  double bias;
  const Ones* ones = nullptr;  // of dense rows, if it pays to list them

  template <class A>
  A dot(int64_t i, const A* v) const {
    if (indptr) return stored_dot(i, v);
    const A constant = static_cast<A>(bias) * v[n_features];
    const A* hats = v + pieces->n_inputs;
    if (ones) return constant + listed_dot(i, v) + hats_dot(i, hats);
    return constant + straight_dot(data + i * pieces->n_inputs, v) + hats_dot(i, hats);
  }

  // v += scale * (phi(x_i), bias)
  template <class A>
  void add(int64_t i, A scale, A* v) const {
    if (indptr) return stored_add(i, scale, v);
    A* hats = v + pieces->n_inputs;
    if (ones)
      each_straight<A>(i, [&](int64_t f, A z) { v[f] += scale * z; });
    else
      straight_add(data + i * pieces->n_inputs, scale, v);
    each_curve<A>(i, [&](int64_t h, A t) {
      hats[h] += scale * (1 - t);
      hats[h + 1] += scale * t;
    });
    v[n_features] += scale * static_cast<A>(bias);
  }

  // The same of the straight terms and the bias alone.
  template <class A>
  A straight_dot(int64_t i, const A* v) const {
    A sum = static_cast<A>(bias) * v[n_features];
    each_straight<A>(i, [&](int64_t f, A z) { sum += z * v[f]; });
    return sum;
  }
  template <class A>
  void straight_add(int64_t i, A scale, A* v) const {
    each_straight<A>(i, [&](int64_t f, A z) { v[f] += scale * z; });
    v[n_features] += scale * static_cast<A>(bias);
  }
  double squared_straight_norm(int64_t i) const {
    double sum = bias * bias;
    each_straight<double>(i, [&](int64_t, double z) { sum += z * z; });
    return sum;
  }

  // visit(f, value) for each stored feature, the bias excepted
  template <class Visit>
  void each(int64_t i, const Visit& visit) const {
    const int64_t first = pieces->n_inputs;
    if (indptr)
      return each_entry<double>(i, visit, [&](int64_t h, double left, double right) {
        if (left != 0) visit(first + h, left);
        if (right != 0) visit(first + h + 1, right);
      });
    each_straight<double>(i, visit);
    each_curve<double>(i, [&](int64_t h, double t) {
      visit(first + h, 1 - t);
      if (t != 0) visit(first + h + 1, t);
    });
  }

  // out = scale * (phi(x_i), bias), written over
  void unpack(int64_t i, double scale, double* out) const {
    std::memset(out, 0, n_features * sizeof(double));
    each(i, [&](int64_t f, double value) { out[f] += scale * value; });
    out[n_features] = scale * bias;
  }

  double squared_norm(int64_t i) const {
    double sum = bias * bias;
    each(i, [&](int64_t, double value) { sum += value * value; });
    return sum;
  }

  void prefetch(int64_t i) const {
    if (indptr) {
      svmosaic::prefetch(data + indptr[i]);
      svmosaic::prefetch(indices + indptr[i]);
      svmosaic::prefetch(bins + indptr[i]);
      return;
    }
    const T* x = data + i * pieces->n_inputs;
    if (ones) svmosaic::prefetch(ones->begin(i));
    const int64_t first = ones && !ones->rest.empty() ? ones->rest.front() : 0;
    const int64_t last = !ones ? pieces->n_inputs : ones->rest.empty() ? 0 : ones->rest.back() + 1;
    const char *start = reinterpret_cast<const char*>(x + first), *end = reinterpret_cast<const char*>(x + last);
    for (int lines = 0; start < end && lines < 16; start += 64, ++lines) svmosaic::prefetch(start);
    svmosaic::prefetch(bins + i * pieces->n_curves);
  }

  int64_t n_stored() const {
    if (indptr) return 3 * indptr[n_rows];
    return (ones ? ones->n_stored() : n_rows * pieces->n_inputs) + n_rows * 2 * pieces->n_curves;
  }

 private:
  // Of sparse rows.
  template <class A>
  SVMOSAIC_CLONES A stored_dot(int64_t i, const A* v) const {
    const A* hats = v + pieces->n_inputs;
    A sum = static_cast<A>(bias) * v[n_features];
    each_entry<A>(i, [&](int64_t f, A z) { sum += z * v[f]; },
                  [&](int64_t h, A left, A right) { sum += left * hats[h] + right * hats[h + 1]; });
    return sum;
  }
  template <class A>
  SVMOSAIC_CLONES void stored_add(int64_t i, A scale, A* v) const {
    A* hats = v + pieces->n_inputs;
    each_entry<A>(i, [&](int64_t f, A z) { v[f] += scale * z; },
                  [&](int64_t h, A left, A right) {
                    hats[h] += scale * left;
                    hats[h + 1] += scale * right;
                  });
    v[n_features] += scale * static_cast<A>(bias);
  }

  template <class A, class Visit>
  void each_straight(int64_t i, const Visit& visit) const {
    if (indptr) {
      for (int64_t p = indptr[i]; p < indptr[i + 1]; ++p)
        visit(int64_t{indices[p]}, pieces->template straight<A>(indices[p], data[p]));
      return;
    }
    const T* x = data + i * pieces->n_inputs;
    if (!ones) {
      for (int64_t f = 0; f < pieces->n_inputs; ++f) visit(f, pieces->template straight<A>(f, x[f]));
      return;
    }
    const uint16_t *one = ones->begin(i), *end = ones->end(i);
    for (const int32_t f : ones->rest) {
      for (; one < end && *one < f; ++one) visit(int64_t{*one}, A(1));
      visit(int64_t{f}, pieces->template straight<A>(f, x[f]));
    }
    for (; one < end; ++one) visit(int64_t{*one}, A(1));
  }

  // The straight terms of a row with lists.
  template <class A>
  A listed_dot(int64_t i, const A* v) const {
    const T* x = data + i * pieces->n_inputs;
    A sum = 0, listed = 0;
    for (const int32_t f : ones->rest) sum += pieces->template straight<A>(f, x[f]) * v[f];
    for (const uint16_t *one = ones->begin(i), *end = ones->end(i); one < end; ++one) listed += v[*one];
    return sum + listed;
  }

  // Dense: visit(hat left of x, fraction towards the next) for each curve.
  template <class A, class Visit>
  void each_curve(int64_t i, const Visit& visit) const {
    const T* x = data + i * pieces->n_inputs;
    const uint8_t* bin = bins + i * pieces->n_curves;
    for (int64_t c = 0; c < pieces->n_curves; ++c) {
      const int64_t h = pieces->start[c] + bin[c];
      visit(h, pieces->template fraction<A>(h, x[pieces->column[c]]));
    }
  }

  // Sparse: on_value(f, z) for each stored entry, and on_hats(hat left of x, its value, value of the next) if curved.
  template <class A, class OnValue, class OnHats>
  void each_entry(int64_t i, const OnValue& on_value, const OnHats& on_hats) const {
    for (int64_t p = indptr[i]; p < indptr[i + 1]; ++p) {
      const int64_t f = indices[p], c = pieces->curve[f];
      on_value(f, pieces->template straight<A>(f, data[p]));
      if (c < 0) continue;
      const int64_t h = pieces->start[c] + bins[p];
      const A t = pieces->template fraction<A>(h, data[p]);
      on_hats(h, static_cast<A>(pieces->kept[h]) * (1 - t), static_cast<A>(pieces->kept[h + 1]) * t);
    }
  }

  template <class A>
  A hats_dot(int64_t i, const A* hats) const {
    const T* x = data + i * pieces->n_inputs;
    const uint8_t* bin = bins + i * pieces->n_curves;
    const int32_t *start = pieces->start.data(), *column = pieces->column.data();
    A sums[4] = {};  // of their own, to hide the latency of additions
    const auto curve = [&](int64_t c) {
      const int64_t h = start[c] + bin[c];
      return hats[h] + pieces->template fraction<A>(h, x[column[c]]) * (hats[h + 1] - hats[h]);
    };
    int64_t c = 0;
    for (; c + 4 <= pieces->n_curves; c += 4)
      for (int s = 0; s < 4; ++s) sums[s] += curve(c + s);
    for (; c < pieces->n_curves; ++c) sums[0] += curve(c);
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }

#if defined(__GNUC__)
  template <class A>
  Lanes<A> straight_lanes(const T* x, int64_t f) const {
    const Lanes<A> z = (load<A>(x + f) - load<A>(pieces->center.data() + f)) * load<A>(pieces->scale.data() + f);
    const Lanes<A> low = load<A>(pieces->low.data() + f), high = load<A>(pieces->high.data() + f);
    const Lanes<A> above = z > low ? z : low;
    return above < high ? above : high;
  }
#endif

  template <class A>
  A straight_dot(const T* x, const A* v) const {
    A sum = 0;
    int64_t f = 0;
#if defined(__GNUC__)
    constexpr int w = kLanes<A>;
    Lanes<A> sums{};
    for (; f + w <= pieces->n_inputs; f += w) sums += straight_lanes<A>(x, f) * load<A>(v + f);
    for (int lane = 0; lane < w; ++lane) sum += sums[lane];
#endif
    for (; f < pieces->n_inputs; ++f) sum += pieces->template straight<A>(f, x[f]) * v[f];
    return sum;
  }

  template <class A>
  void straight_add(const T* x, A scale, A* v) const {
    int64_t f = 0;
#if defined(__GNUC__)
    constexpr int w = kLanes<A>;
    for (; f + w <= pieces->n_inputs; f += w) store<A>(v + f, load<A>(v + f) + scale * straight_lanes<A>(x, f));
#endif
    for (; f < pieces->n_inputs; ++f) v[f] += scale * pieces->template straight<A>(f, x[f]);
  }
};

}  // namespace svmosaic
