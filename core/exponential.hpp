// Many exponentials at once.
#pragma once

#include <cstdint>
#include <cstring>

namespace svmosaic {

// Numbers that are worked on together; buffers are padded to whole blocks.
constexpr int64_t kBlock = 8;

inline int64_t padded_width(int64_t n) { return (n + kBlock - 1) / kBlock * kBlock; }

// v[a] = exp(v[a]) for v[a] <= 0, to a few units in the last place; below -700 it stays at exp(-700). In a form that
// compilers turn into vector instructions, which a call of the library's function is not.
// Works on whole blocks of numbers: v has room for them.
inline void exp_all(double* v, int64_t n) {
  n = padded_width(n);
  constexpr double kShift = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer, kept in the low bits
  for (int64_t a = 0; a < n; ++a) {
    const double x = v[a] < -700.0 ? -700.0 : v[a];
    const double shifted = x * 1.4426950408889634 + kShift;
    const double k = shifted - kShift;
    const double r = (x - k * 0.6931471803691238) - k * 1.9082149292705877e-10;  // ln 2 in two parts
    double p = 1.0 / 479001600;
    p = p * r + 1.0 / 39916800;
    p = p * r + 1.0 / 3628800;
    p = p * r + 1.0 / 362880;
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    int64_t bits;
    std::memcpy(&bits, &shifted, sizeof(bits));
    bits = static_cast<int64_t>(static_cast<uint64_t>(bits + 1023) << 52);
    double power;
    std::memcpy(&power, &bits, sizeof(power));
    v[a] = p * power;
  }
}

}  // namespace svmosaic
