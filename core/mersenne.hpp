// The Mersenne Twister (Matsumoto and Nishimura, 1998), as NumPy's RandomState holds it, and that class's shuffle: the same
// draws and the same order, in a fraction of the time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace svmosaic {

struct MersenneTwister {
  static constexpr int64_t kWords = 624, kShift = 397;
  uint32_t* key;  // kWords words in the caller's hands
  int64_t place;  // of the next word; kWords: all are used up

  uint32_t next() {
    if (place >= kWords) refill();
    uint32_t y = key[place++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
  }

  // Item i, from the last to the first, changes places with one drawn from [0, i]: by numbers of as many bits as i has,
  // until one is no larger. Some are drawn ahead, and those that are too large written over: no branch waits for them.
  void shuffle(int32_t* items, int64_t n) {
    constexpr int64_t kAhead = 256;
    uint32_t drawn[kAhead];
    uint32_t mask = 1;
    while (static_cast<int64_t>(mask) < n - 1) mask = 2 * mask + 1;
    for (int64_t i = n - 1; i > 0;) {
      while (static_cast<int64_t>(mask >> 1) >= i) mask >>= 1;
      // As many as have this mask.
      const int64_t m = std::min<int64_t>(kAhead, i - static_cast<int64_t>(mask >> 1));
      for (int64_t k = 0; k < m;) {
        drawn[k] = next() & mask;
        k += static_cast<int64_t>(drawn[k]) <= i - k;
      }
      for (int64_t k = 0; k < m; ++k, --i) std::swap(items[i], items[drawn[k]]);
    }
  }

 private:
  void refill() {
    const auto mixed = [](uint32_t high, uint32_t low) {
      const uint32_t y = (high & 0x80000000u) | (low & 0x7fffffffu);
      return (y >> 1) ^ (low & 1 ? 0x9908b0dfu : 0u);
    };
    int64_t i = 0;
    for (; i < kWords - kShift; ++i) key[i] = key[i + kShift] ^ mixed(key[i], key[i + 1]);
    for (; i < kWords - 1; ++i) key[i] = key[i + kShift - kWords] ^ mixed(key[i], key[i + 1]);
    key[i] = key[i + kShift - kWords] ^ mixed(key[i], key[0]);
    place = 0;
  }
};

}  // namespace svmosaic
