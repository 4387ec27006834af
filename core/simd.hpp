// Vector arithmetic on plain arrays, written once and compiled for every instruction set.
//
// SVMOSAIC_CLONES asks the compiler for one copy of a function per x86-64 level and lets the loader
// pick the best one on the machine at hand. `flatten` pulls every helper below into each copy, so
// that they are compiled for that level too; what several of these functions share is such a function itself, so that it
// is compiled once per level. Code that is written for one length of registers has no copies for the others:
// SVMOSAIC_LONG and SVMOSAIC_SHORT.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__) && \
    !defined(SVMOSAIC_NO_CLONES)  // the sanitizers cannot look into functions chosen by the loader
#define SVMOSAIC_CLONES \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), flatten, noinline))
#define SVMOSAIC_LONG __attribute__((target("arch=x86-64-v4"), flatten, noinline))
#define SVMOSAIC_SHORT __attribute__((target_clones("arch=x86-64-v3", "default"), flatten, noinline))
#else
#define SVMOSAIC_CLONES
#define SVMOSAIC_LONG
#define SVMOSAIC_SHORT
#endif

// Functions that only machines with long vectors run: in one copy if there are several, else if all code is for them.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__) && \
    !defined(SVMOSAIC_NO_CLONES)
#define SVMOSAIC_LONG_VECTORS __attribute__((target("arch=x86-64-v4")))
#define SVMOSAIC_HAS_LONG_VECTORS __builtin_cpu_supports("x86-64-v4")
#elif defined(__GNUC__) && defined(__AVX512VL__) && defined(__AVX512DQ__)
#define SVMOSAIC_LONG_VECTORS
#define SVMOSAIC_HAS_LONG_VECTORS true
#endif

namespace svmosaic {

#if defined(__GNUC__)
template <class T>
struct LanesOf {
  typedef T type __attribute__((vector_size(64)));
};
template <class T>
using Lanes = typename LanesOf<T>::type;
template <class T>
constexpr int kLanes = 64 / sizeof(T);

// Load kLanes<A> consecutive numbers of type T as numbers of type A.
template <class A, class T>
inline Lanes<A> load(const T* p) {
  if constexpr (sizeof(A) == sizeof(T)) {
    Lanes<A> lanes;
    std::memcpy(&lanes, p, sizeof(lanes));
    return lanes;
  } else {
    typedef T Narrow __attribute__((vector_size(kLanes<A> * sizeof(T))));
    Narrow narrow;
    std::memcpy(&narrow, p, sizeof(narrow));
    return __builtin_convertvector(narrow, Lanes<A>);
  }
}

template <class A>
inline void store(A* p, const Lanes<A>& lanes) {
  std::memcpy(p, &lanes, sizeof(lanes));
}

// Vectors as long as the registers of AVX2. Of products of longer ones with a single number the compiler makes code that
// is tens of times slower if registers are shorter, so the hottest loops exist for both lengths.
template <class T>
struct ShortLanesOf {
  typedef T type __attribute__((vector_size(32)));
};
template <class T>
using ShortLanes = typename ShortLanesOf<T>::type;

// The same by the type of the vector.
template <class Vector, class T>
inline Vector load_vector(const T* p) {
  Vector lanes;
  std::memcpy(&lanes, p, sizeof(lanes));
  return lanes;
}

template <class Vector, class T>
inline void store_vector(T* p, const Vector& lanes) {
  std::memcpy(p, &lanes, sizeof(lanes));
}
#endif

// Whether this machine has registers as long as `Lanes`.
inline bool has_long_registers() {
#if defined(__AVX512F__)
  return true;
#elif defined(__GNUC__) && defined(__x86_64__) && !defined(SVMOSAIC_NO_CLONES)
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return has;
#else
  return false;
#endif
}

// A function, compiled for all machines or for those with one length of registers.
template <auto kFunction>
struct Compiled;
template <class Result, class... Args, Result (*kFunction)(Args...)>
struct Compiled<kFunction> {
  static SVMOSAIC_CLONES Result for_all(Args... args) { return kFunction(args...); }
  static SVMOSAIC_LONG Result for_long(Args... args) { return kFunction(args...); }
  static SVMOSAIC_SHORT Result for_short(Args... args) { return kFunction(args...); }
};

// <x, v>, accumulated in the precision of v.
template <class T, class A>
inline A dot(const T* x, const A* v, int64_t n) {
  A sum = 0;
  int64_t i = 0;
#if defined(__GNUC__)
  constexpr int w = kLanes<A>;
  // Four accumulators hide the latency of the fused multiply-add.
  Lanes<A> s0{}, s1{}, s2{}, s3{};
  for (; i + 4 * w <= n; i += 4 * w) {
    s0 += load<A>(x + i) * load<A>(v + i);
    s1 += load<A>(x + i + w) * load<A>(v + i + w);
    s2 += load<A>(x + i + 2 * w) * load<A>(v + i + 2 * w);
    s3 += load<A>(x + i + 3 * w) * load<A>(v + i + 3 * w);
  }
  for (; i + w <= n; i += w) s0 += load<A>(x + i) * load<A>(v + i);
  s0 += s1;
  s2 += s3;
  s0 += s2;
  for (int lane = 0; lane < w; ++lane) sum += s0[lane];
#endif
  for (; i < n; ++i) sum += static_cast<A>(x[i]) * v[i];
  return sum;
}

#if defined(__GNUC__)
#define SVMOSAIC_RESTRICT __restrict__
#else
#define SVMOSAIC_RESTRICT
#endif

// v += scale * x; they do not overlap. The compiler makes vectors of the plain loop, of the length that suits the machine.
template <class T, class A>
inline void axpy(A scale, const T* SVMOSAIC_RESTRICT x, A* SVMOSAIC_RESTRICT v, int64_t n) {
  for (int64_t i = 0; i < n; ++i) v[i] += scale * static_cast<A>(x[i]);
}

inline void prefetch(const void* p) {
#if defined(__GNUC__)
  __builtin_prefetch(p);
#endif
}

}  // namespace svmosaic
