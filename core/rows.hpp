// The training rows. The only place, with pieces.hpp, that knows dense from compressed sparse rows.
//
// Row i stands for the augmented vector (x_i, bias): the last of its d + 1 features is the constant
// `bias`, zero for a model without intercept. A block of weights is an array of d + 1 numbers.
#pragma once

#include <cstdint>
#include <variant>

#include "pieces.hpp"
#include "simd.hpp"

namespace svmosaic {

template <class T>
struct DenseRows {
  using value_type = T;
  const T* data;
  int64_t n_rows, n_features, stride;
  double bias;

  template <class A>
  A dot(int64_t i, const A* v) const {
    return svmosaic::dot(data + i * stride, v, n_features) + static_cast<A>(bias) * v[n_features];
  }

  // v += scale * (x_i, bias)
  template <class A>
  void add(int64_t i, A scale, A* v) const {
    axpy(scale, data + i * stride, v, n_features);
    v[n_features] += scale * static_cast<A>(bias);
  }

  // Of the straight terms and the bias: here all there is.
  template <class A>
  A straight_dot(int64_t i, const A* v) const {
    return dot(i, v);
  }
  template <class A>
  void straight_add(int64_t i, A scale, A* v) const {
    add(i, scale, v);
  }
  double squared_straight_norm(int64_t i) const { return squared_norm(i); }

  // visit(f, value) for each stored feature, the bias excepted
  template <class Visit>
  void each(int64_t i, const Visit& visit) const {
    const T* x = data + i * stride;
    for (int64_t f = 0; f < n_features; ++f) visit(f, static_cast<double>(x[f]));
  }

  // out = scale * (x_i, bias), written over
  void unpack(int64_t i, double scale, double* out) const {
    const T* x = data + i * stride;
    for (int64_t f = 0; f < n_features; ++f) out[f] = scale * x[f];
    out[n_features] = scale * bias;
  }

  double squared_norm(int64_t i) const {
    const T* x = data + i * stride;
    double sum = bias * bias;
    for (int64_t f = 0; f < n_features; ++f) sum += static_cast<double>(x[f]) * x[f];
    return sum;
  }

  void prefetch(int64_t i) const {
    const char* start = reinterpret_cast<const char*>(data + i * stride);
    const char* end = start + n_features * sizeof(T);
    for (int lines = 0; start < end && lines < 16; start += 64, ++lines) svmosaic::prefetch(start);
  }

  int64_t n_stored() const { return n_rows * n_features; }
};

template <class T>
struct SparseRows {
  using value_type = T;
  const T* data;
  const int32_t* indices;
  const int64_t* indptr;
  int64_t n_rows, n_features;
  double bias;

  template <class A>
  A dot(int64_t i, const A* v) const {
    A sum = static_cast<A>(bias) * v[n_features];
    for (int64_t p = indptr[i]; p < indptr[i + 1]; ++p) sum += static_cast<A>(data[p]) * v[indices[p]];
    return sum;
  }

  template <class A>
  void add(int64_t i, A scale, A* v) const {
    for (int64_t p = indptr[i]; p < indptr[i + 1]; ++p) v[indices[p]] += scale * static_cast<A>(data[p]);
    v[n_features] += scale * static_cast<A>(bias);
  }

  template <class A>
  A straight_dot(int64_t i, const A* v) const {
    return dot(i, v);
  }
  template <class A>
  void straight_add(int64_t i, A scale, A* v) const {
    add(i, scale, v);
  }
  double squared_straight_norm(int64_t i) const { return squared_norm(i); }

  template <class Visit>
  void each(int64_t i, const Visit& visit) const {
    for (int64_t p = indptr[i]; p < indptr[i + 1]; ++p) visit(indices[p], static_cast<double>(data[p]));
  }

  void unpack(int64_t i, double scale, double* out) const {
    std::memset(out, 0, n_features * sizeof(double));
    for (int64_t p = indptr[i]; p < indptr[i + 1]; ++p) out[indices[p]] += scale * data[p];
    out[n_features] = scale * bias;
  }

  double squared_norm(int64_t i) const {
    double sum = bias * bias;
    for (int64_t p = indptr[i]; p < indptr[i + 1]; ++p) sum += static_cast<double>(data[p]) * data[p];
    return sum;
  }

  void prefetch(int64_t i) const {
    svmosaic::prefetch(data + indptr[i]);
    svmosaic::prefetch(indices + indptr[i]);
  }

  int64_t n_stored() const { return indptr[n_rows]; }
};

using AnyRows = std::variant<DenseRows<float>, DenseRows<double>, SparseRows<float>, SparseRows<double>,
                             EncodedRows<float>, EncodedRows<double>>;

// Whether rows hold the numbers themselves, which is what gates and scorers read.
template <class Rows>
constexpr bool kPlain = true;
template <class T>
constexpr bool kPlain<EncodedRows<T>> = false;
// Whether they hold all of them.
template <class Rows>
constexpr bool kDense = false;
template <class T>
constexpr bool kDense<DenseRows<T>> = true;

}  // namespace svmosaic
