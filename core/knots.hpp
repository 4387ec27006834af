// Where the knots of a column go, and how its straight term is scaled.
//
// With at most T knots per column:
//   one or two distinct values: no knots, the straight term says it all;
//   at most T distinct values:  a knot at each;
//   more:                       a knot at each value that holds more than 1/T of the weight (zeros of counts, caps of
//                               sensors); the same again among the other values with the knots that are left, until
//                               none is as heavy; then the quantiles, from least to largest, of what remains.
// Without the third rule a column that is mostly zeros gets no knots where its information is, and several quantiles
// would fall on one value.
//
// Sparse columns have a knot at zero, and T - 1 by the same rule over the values that are stored.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "simd.hpp"

namespace svmosaic {

struct Weighted {
  double value, weight;
};

struct Column {
  std::vector<double> knots;
  double center = 0, scale = 1;
  double reach = std::numeric_limits<double>::infinity();  // the straight term is clipped to [-reach, reach]
};

// Merge equal values if there are at most a few hundred different ones, which is faster than to sort all; false, and
// nothing done, if there are more.
inline bool merge_few(std::vector<Weighted>& values) {
  constexpr size_t kSlots = 2048, kMost = 512;
  std::vector<int32_t> slot(kSlots, -1);  // position among the different values
  std::vector<Weighted> different;
  for (const Weighted& v : values) {
    const double value = v.value + 0.0;  // there is one zero
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    size_t at = (bits * 0x9E3779B97F4A7C15u) >> 53;
    while (slot[at] >= 0 && different[slot[at]].value != value) at = (at + 1) % kSlots;
    if (slot[at] >= 0) {
      different[slot[at]].weight += v.weight;
      continue;
    }
    if (different.size() == kMost) return false;
    slot[at] = static_cast<int32_t>(different.size());
    different.push_back({value, v.weight});
  }
  values.swap(different);
  return true;
}

// Sort by value, byte by byte of what orders numbers as their values do. Bytes that all values share, as those of whole
// numbers do, cost nothing. Equal values stay in their order.
inline void sort_by_bytes(std::vector<Weighted>& values) {
  constexpr int kBytes = sizeof(double), kDigits = 256;
  const auto key = [](double value) {
    value += 0.0;  // there is one zero
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    constexpr uint64_t sign = uint64_t{1} << 63;
    return bits & sign ? ~bits : bits | sign;
  };
  std::vector<std::array<uint32_t, kDigits>> count(kBytes);
  for (auto& of_byte : count) of_byte.fill(0);
  for (const Weighted& v : values)
    for (int b = 0; b < kBytes; ++b) ++count[b][key(v.value) >> (8 * b) & (kDigits - 1)];
  std::vector<Weighted> other(values.size());
  for (int b = 0; b < kBytes; ++b) {
    uint32_t begin = 0;
    bool shared = false;
    for (uint32_t& n : count[b]) {
      shared = shared || n == values.size();
      const uint32_t end = begin + n;
      n = begin;
      begin = end;
    }
    if (shared) continue;
    for (const Weighted& v : values) other[count[b][key(v.value) >> (8 * b) & (kDigits - 1)]++] = v;
    values.swap(other);
  }
}

// Sort by value and merge equal ones.
inline void merge_equal(std::vector<Weighted>& values) {
  constexpr size_t kMany = 1024;  // from which sorting by bytes is faster
  merge_few(values);
  if (values.size() >= kMany && values.size() <= std::numeric_limits<uint32_t>::max())
    sort_by_bytes(values);
  else
    std::sort(values.begin(), values.end(), [](const Weighted& a, const Weighted& b) { return a.value < b.value; });
  size_t n = 0;
  for (const Weighted& v : values) {
    if (n > 0 && values[n - 1].value == v.value)
      values[n - 1].weight += v.weight;
    else
      values[n++] = v;
  }
  values.resize(n);
}

// At most n_knots of the distinct values, by the rule above.
inline std::vector<double> choose_knots(const std::vector<Weighted>& values, int64_t n_knots) {
  std::vector<double> knots;
  if (static_cast<int64_t>(values.size()) <= n_knots) {
    for (const Weighted& v : values) knots.push_back(v.value);
    return knots;
  }
  std::vector<Weighted> light = values;
  double rest = 0;
  for (size_t before = light.size() + 1; light.size() < before;) {
    before = light.size();
    rest = 0;
    for (const Weighted& v : light) rest += v.weight;
    const double limit = rest / static_cast<double>(n_knots - static_cast<int64_t>(knots.size()));
    size_t n = 0;
    for (const Weighted& v : light)
      if (v.weight > limit)
        knots.push_back(v.value);
      else
        light[n++] = v;
    light.resize(n);
  }
  const int64_t m = n_knots - static_cast<int64_t>(knots.size());
  double below = 0;
  int64_t j = 0;
  for (const Weighted& v : light) {
    below += v.weight;
    // Sums of weights are rounded; a quantile must not move to the next value because of it.
    const auto level = [&] { return (m == 1 ? 0.5 : static_cast<double>(j) / (m - 1)) * rest * (1 - 1e-12); };
    if (j >= m || below < level()) continue;
    knots.push_back(v.value);
    while (j < m && below >= level()) ++j;
  }
  std::sort(knots.begin(), knots.end());
  return knots;
}

// What stays of a standard deviation (or a root mean square) as a factor; 0 where it overflows, so that the straight
// term vanishes instead of turning into NaN.
inline double inverse_or_zero(double deviation) {
  const double inverse = 1 / deviation;
  return std::isfinite(deviation) && std::isfinite(inverse) ? inverse : 0;
}

// Standard deviations to which straight terms are clipped.
constexpr double kReach = 3;

// The rule for a dense column of one or two values: it becomes 0 and 1, or always 0.
inline Column binary_column(double least, double largest) {
  Column column;
  column.center = least;
  column.scale = largest > least ? inverse_or_zero(largest - least) : 1;
  return column;
}

// The least and the largest value of n columns, and whether (1 or 0) there are others, after one more row. Numbers of one
// type throughout, for the vector units.
template <class T>
SVMOSAIC_CLONES void see_row(const T* SVMOSAIC_RESTRICT x, int64_t n, T* SVMOSAIC_RESTRICT least,
                             T* SVMOSAIC_RESTRICT largest, T* SVMOSAIC_RESTRICT others) {
  for (int64_t f = 0; f < n; ++f) {
    const T low = least[f], high = largest[f], now = x[f];
    others[f] = (low < high) & (now != low) & (now != high) ? T(1) : others[f];
    least[f] = now < low ? now : low;
    largest[f] = now > high ? now : high;
  }
}

// The rule for a dense column of more than two values; `values` is used up.
inline Column dense_column(std::vector<Weighted>& values, int64_t n_knots) {
  Column column;
  double total = 0;
  for (const Weighted& v : values) total += v.weight;
  merge_equal(values);
  column.knots = choose_knots(values, n_knots);
  double mean = 0, square = 0;
  for (const Weighted& v : values) mean += v.value * (v.weight / total);
  for (const Weighted& v : values) square += (v.value - mean) * (v.value - mean) * (v.weight / total);
  column.scale = inverse_or_zero(std::sqrt(square));
  column.center = column.scale > 0 ? mean : 0;
  column.reach = kReach;
  return column;
}

// The rule for the stored values of a sparse column: zero stays zero.
inline Column sparse_column(std::vector<Weighted>& values, int64_t n_knots) {
  Column column;
  values.erase(std::remove_if(values.begin(), values.end(), [](const Weighted& v) { return v.value == 0; }),
               values.end());
  if (values.empty()) return column;
  merge_equal(values);
  if (values.size() == 1) {
    column.scale = inverse_or_zero(values[0].value);
    return column;
  }
  column.knots = choose_knots(values, n_knots - 1);
  column.knots.insert(std::lower_bound(column.knots.begin(), column.knots.end(), 0.0), 0.0);
  double total = 0, square = 0;
  for (const Weighted& v : values) total += v.weight;
  for (const Weighted& v : values) square += v.value * v.value * (v.weight / total);
  column.scale = inverse_or_zero(std::sqrt(square));
  column.reach = kReach;
  return column;
}

}  // namespace svmosaic
