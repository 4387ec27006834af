// Columns that are zero or one throughout, such as those of one-hot texts: of each row, which of them are one.
//
// A row of a hundred such columns has a handful of ones. Passes over rows with curves then take a few look-ups instead of
// a product with all straight terms.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "simd.hpp"

namespace svmosaic {

struct Ones {
  // With fewer columns than this, or more ones than this share of them, products cost no more than lists.
  static constexpr int64_t kFewestColumns = 16, kShare = 4;

  std::vector<uint16_t> column;  // those that are one, row by row, increasing
  std::vector<uint32_t> start;   // by row: where its columns start; and one more entry
  std::vector<int32_t> rest;     // all columns that are not listed, increasing

  const uint16_t* begin(int64_t i) const { return column.data() + start[i]; }
  const uint16_t* end(int64_t i) const { return column.data() + start[i + 1]; }
  int64_t n_stored() const {
    return static_cast<int64_t>(column.size() + rest.size() * (start.size() - 1));
  }
};

// What one more row says of n columns: the value of the first that was not zero, and whether (1 or 0) there are others.
// Numbers of one type throughout, for the vector units.
template <class T>
SVMOSAIC_CLONES void see_values(const T* SVMOSAIC_RESTRICT x, const T* SVMOSAIC_RESTRICT zero, int64_t n,
                                T* SVMOSAIC_RESTRICT one, T* SVMOSAIC_RESTRICT other) {
  for (int64_t f = 0; f < n; ++f) {
    const T first = one[f] == zero[f] ? x[f] : one[f];
    one[f] = first;
    other[f] = (x[f] != zero[f]) & (x[f] != first) ? T(1) : other[f];
  }
}

// The columns of one row, among those asked for, that are not zero; without branches.
template <class T>
SVMOSAIC_CLONES int64_t list_row(const T* x, const T* zero, const uint8_t* asked, int64_t n, uint16_t* listed) {
  int64_t m = 0;
  for (int64_t f = 0; f < n; ++f) {
    listed[m] = static_cast<uint16_t>(f);
    m += (x[f] != zero[f]) & asked[f];
  }
  return m;
}

// Lists of n dense rows; none if they would not pay. `Pieces` says what the straight terms are.
template <class T, class Pieces>
std::optional<Ones> list_ones(const Pieces& pieces, const T* x, int64_t n) {
  const int64_t d = pieces.n_inputs;
  const std::vector<T>& zero = pieces.center;
  std::vector<T> one = zero, other(d, T(0));
  std::vector<uint8_t> asked(d);
  for (int64_t f = 0; f < d; ++f) asked[f] = pieces.curve[f] < 0;
  Ones ones;
  const auto pays = [&](int64_t n_rows) {
    int64_t n_asked = 0;
    for (const uint8_t a : asked) n_asked += a;
    return n_asked >= Ones::kFewestColumns &&
           static_cast<int64_t>(ones.column.size()) * Ones::kShare <= n_rows * n_asked;
  };
  if (!pays(n) || d > std::numeric_limits<uint16_t>::max() || n > std::numeric_limits<uint32_t>::max() / d)
    return std::nullopt;
  ones.start.reserve(n + 1);
  ones.start.push_back(0);
  std::vector<uint16_t> listed(d + 1);
  for (int64_t i = 0; i < n; ++i) {
    see_values(x + i * d, zero.data(), d, one.data(), other.data());
    const int64_t m = list_row(x + i * d, zero.data(), asked.data(), d, listed.data());
    ones.column.insert(ones.column.end(), listed.begin(), listed.begin() + m);
    ones.start.push_back(static_cast<uint32_t>(ones.column.size()));
    if (i >= 64 && (i & (i - 1)) == 0 && !pays(i)) return std::nullopt;  // now and then
  }
  // Columns that turned out to have other values, as rows may have that no knots were found from, are taken out. One
  // is what its straight term gives, but for rounding.
  for (int64_t f = 0; f < d; ++f) {
    const double z = one[f] == zero[f] ? 1 : pieces.template straight<double>(f, one[f]);
    if (other[f] != 0 || std::fabs(z - 1) > 2 * std::numeric_limits<T>::epsilon()) asked[f] = 0;
    if (!asked[f]) ones.rest.push_back(static_cast<int32_t>(f));
  }
  size_t kept = 0;
  for (int64_t i = 0, p = 0; i < n; ++i) {
    for (; p < ones.start[i + 1]; ++p)
      if (asked[ones.column[p]]) ones.column[kept++] = ones.column[p];
    ones.start[i + 1] = static_cast<uint32_t>(kept);
  }
  ones.column.resize(kept);
  if (!pays(n)) return std::nullopt;
  return ones;
}

}  // namespace svmosaic
