// Columns that are zero or one throughout, such as those of one-hot texts: of each row, which of them are one.
//
// A row of a hundred such columns has a handful of ones. Passes over rows with curves then take a few look-ups instead of
// a product with all straight terms.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "simd.hpp"

namespace svmosaic {

// Columns that are listed at a time.
constexpr int64_t kMask = 64;

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

// The columns of one row, among those asked for, that are not zero, increasing. `differs` has room for the columns, and
// zeros up to whole words of a mask.
template <class T>
SVMOSAIC_CLONES int64_t list_row(const T* SVMOSAIC_RESTRICT x, const T* SVMOSAIC_RESTRICT zero,
                                 const uint8_t* SVMOSAIC_RESTRICT asked, int64_t n, uint8_t* SVMOSAIC_RESTRICT differs,
                                 uint16_t* SVMOSAIC_RESTRICT listed) {
  int64_t m = 0;
#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  for (int64_t f = 0; f < n; ++f) differs[f] = (x[f] != zero[f]) & asked[f];
  for (int64_t f = 0; f < n; f += kMask) {
    uint64_t mask = 0;
    for (int64_t b = 0; b < kMask; b += 8) {
      uint64_t bytes;
      std::memcpy(&bytes, differs + f + b, sizeof(bytes));
      mask |= (bytes * 0x0102040810204080u >> 56) << b;  // the lowest bits of eight bytes, side by side
    }
    for (; mask != 0; mask &= mask - 1) listed[m++] = static_cast<uint16_t>(f + __builtin_ctzll(mask));
  }
#else
  for (int64_t f = 0; f < n; ++f) {
    differs[f] = (x[f] != zero[f]) & asked[f];
    listed[m] = static_cast<uint16_t>(f);
    m += differs[f];
  }
#endif
  return m;
}

// Lists of n dense rows; none if they would not pay. `Pieces` says what the straight terms are.
template <class T, class Pieces>
std::optional<Ones> list_ones(const Pieces& pieces, const T* x, int64_t n) {
  const int64_t d = pieces.n_inputs;
  const std::vector<T>& zero = pieces.center;
  std::vector<T> one = zero;  // the first value of each column that is not zero
  std::vector<uint8_t> asked(d), other(d, 0);
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
  std::vector<uint8_t> differs((d + kMask - 1) / kMask * kMask, 0);
  for (int64_t i = 0; i < n; ++i) {
    const T* row = x + i * d;
    const int64_t m = list_row(row, zero.data(), asked.data(), d, differs.data(), listed.data());
    for (int64_t k = 0; k < m; ++k) {
      const uint16_t f = listed[k];
      if (one[f] == zero[f])
        one[f] = row[f];
      else if (row[f] != one[f])
        other[f] = 1;
    }
    ones.column.insert(ones.column.end(), listed.begin(), listed.begin() + m);
    ones.start.push_back(static_cast<uint32_t>(ones.column.size()));
    if (i >= 64 && (i & (i - 1)) == 0 && !pays(i)) return std::nullopt;  // now and then
    // Room for about as many as the first rows have, which takes less memory than to double it again and again.
    if (i == 1024) ones.column.reserve(ones.column.size() * (n / i + 1));
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
