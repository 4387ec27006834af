// Many exponentials at once.
#pragma once

#include <cstdint>

namespace svmosaic {

// Numbers that are worked on together; buffers are padded to whole blocks.
constexpr int64_t kBlock = 8;

inline int64_t padded_width(int64_t n) { return (n + kBlock - 1) / kBlock * kBlock; }

// v[a] = exp(v[a]) for v[a] <= 0, to a few units in the last place; below -700 it stays at exp(-700). In a form that
// compilers turn into vector instructions, which a call of the library's function is not.
// Works on whole blocks of numbers: v has room for them.
void exp_all(double* v, int64_t n);

}  // namespace svmosaic
