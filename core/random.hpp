// xoshiro256++ (Blackman and Vigna, public domain), with its state in the caller's hands, so that a
// run can stop and go on with the same stream.
#pragma once

#include <cstdint>

namespace svmosaic {

struct Random {
  uint64_t* s;  // four words

  static uint64_t rotate(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

  uint64_t next() {
    const uint64_t result = rotate(s[0] + s[3], 23) + s[0], t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
  }

  // Uniform in [0, n), n < 2^31, by multiplication (the bias of 2^-32 n is of no consequence here).
  int64_t below(int64_t n) { return static_cast<int64_t>(((next() >> 32) * static_cast<uint64_t>(n)) >> 32); }

  void shuffle(int32_t* items, int64_t n) {
    for (int64_t i = n - 1; i > 0; --i) {
      const int64_t j = below(i + 1);
      const int32_t kept = items[i];
      items[i] = items[j];
      items[j] = kept;
    }
  }
};

}  // namespace svmosaic
