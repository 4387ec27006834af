// The curvature of dense rows with curves: S = sum_i weight_i (phi(x_i), bias) (phi(x_i), bias)^T.
//
// Of the features of such a row few are not zero: its straight terms, two hats per curve, and its ones (see ones.hpp).
// S is summed in an order of features that makes vectors of them:
//
//   (straight terms that are not listed, bias, zeros up to whole vectors | all hats | listed columns) .
//
// What a hat or a one meets is then the first part as a whole, both hats of a curve at once, and ones one by one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "pieces.hpp"
#include "simd.hpp"

namespace svmosaic {

template <class T>
class CurveHessian {
 public:
  // Whether that is cheaper than products of dense rows, whose matrices have `stride` numbers per row.
  static bool pays(const EncodedRows<T>& x, int64_t stride) {
    // A scattered multiply-add costs as much as so many dense ones.
    constexpr int64_t kScattered = 6;
    if (x.indptr) return false;
    const int64_t n = x.n_stored() / std::max<int64_t>(1, x.n_rows) + 1;
    return kScattered * n * n <= stride * stride;
  }

  explicit CurveHessian(const EncodedRows<T>& x) : x_(x), place_(x.n_features + 1, -1) {
    const Pieces<T>& pieces = *x.pieces;
    if (x.ones) {
      straight_ = x.ones->rest;
    } else {
      for (int64_t f = 0; f < pieces.n_inputs; ++f) straight_.push_back(static_cast<int32_t>(f));
    }
    const int64_t n_straight = static_cast<int64_t>(straight_.size());
    for (int64_t s = 0; s < n_straight; ++s) place_[straight_[s]] = static_cast<int32_t>(s);
    place_[x.n_features] = static_cast<int32_t>(n_straight);
    head_.assign((n_straight + kVector) / kVector * kVector, 0.0);
    head_[n_straight] = x.bias;
    int64_t n = static_cast<int64_t>(head_.size());
    for (int64_t h = 0; h < pieces.n_hats; ++h) place_[pieces.n_inputs + h] = static_cast<int32_t>(n++);
    for (int64_t f = 0; f < pieces.n_inputs; ++f)
      if (place_[f] < 0) place_[f] = static_cast<int32_t>(n++);
    stride_ = (n + kVector - 1) / kVector * kVector;
    sum_.assign(n * stride_, 0.0);
    hat_.resize(pieces.n_curves);
    part_.resize(2 * pieces.n_curves);
  }

  // S += weight (phi(x_i), bias) (phi(x_i), bias)^T
  void add(int64_t i, double weight) {
    const Pieces<T>& pieces = *x_.pieces;
    const T* x = x_.data + i * pieces.n_inputs;
    const uint8_t* bin = x_.bins + i * pieces.n_curves;
    const int64_t n_head = static_cast<int64_t>(head_.size()), n_straight = static_cast<int64_t>(straight_.size());
    for (int64_t s = 0; s < n_straight; ++s)
      head_[s] = pieces.template straight<double>(straight_[s], x[straight_[s]]);
    for (int64_t s = 0; s <= n_straight; ++s)
      add_head(weight * head_[s], s / kVector * kVector + kVector, sum_.data() + s * stride_);
    for (int64_t c = 0; c < pieces.n_curves; ++c) {
      const int64_t h = pieces.start[c] + bin[c];
      const double t = pieces.template fraction<double>(h, x[pieces.column[c]]);
      hat_[c] = static_cast<int32_t>(n_head + h);
      part_[2 * c] = 1 - t;
      part_[2 * c + 1] = t;
      for (int side = 0; side < 2; ++side)  // values that are knots have one hat
        if (part_[2 * c + side] != 0)
          add_hats(weight * part_[2 * c + side], c + 1, sum_.data() + (n_head + h + side) * stride_);
    }
    if (!x_.ones) return;
    const uint16_t *begin = x_.ones->begin(i), *end = x_.ones->end(i);
    for (const uint16_t* one = begin; one < end; ++one) {
      double* row = sum_.data() + place_[*one] * stride_;
      add_hats(weight, pieces.n_curves, row);
      for (const uint16_t* other = begin; other <= one; ++other) row[place_[*other]] += weight;
    }
  }

  // The lower triangle of S in the order of the features is added to `out`, with `size` numbers per row.
  void add_to(double* out, int64_t size) const {
    for (int64_t i = 0; i < size; ++i)
      for (int64_t j = 0; j <= i; ++j) {
        const int64_t high = std::max(place_[i], place_[j]), low = std::min(place_[i], place_[j]);
        out[i * size + j] += sum_[high * stride_ + low];
      }
  }

 private:
  static constexpr int64_t kVector = 4;

  // row += scale * (the first part of the features, up to `n`)
  void add_head(double scale, int64_t n, double* row) const {
#if defined(__GNUC__)
    using Vector = ShortLanes<double>;
    for (int64_t s = 0; s < n; s += kVector)
      store_vector(row + s, load_vector<Vector>(row + s) + scale * load_vector<Vector>(head_.data() + s));
#else
    for (int64_t s = 0; s < n; ++s) row[s] += scale * head_[s];
#endif
  }

  // row += scale * (the first part of the features, the hats of the first `n_curves` curves)
  void add_hats(double scale, int64_t n_curves, double* row) const {
    add_head(scale, static_cast<int64_t>(head_.size()), row);
    for (int64_t c = 0; c < n_curves; ++c) {
      double* pair = row + hat_[c];
#if defined(__GNUC__)
      typedef double Pair __attribute__((vector_size(16)));
      store_vector(pair, load_vector<Pair>(pair) + scale * load_vector<Pair>(part_.data() + 2 * c));
#else
      pair[0] += scale * part_[2 * c];
      pair[1] += scale * part_[2 * c + 1];
#endif
    }
  }

  const EncodedRows<T>& x_;
  std::vector<int32_t> straight_;  // the columns of the first part
  std::vector<int32_t> place_;     // by feature
  std::vector<int32_t> hat_;       // of a row, by curve: the place of the hat left of the value
  std::vector<double> head_, part_;  // of a row: the first part, and what both hats of each curve count for
  int64_t stride_;
  std::vector<double> sum_;
};

}  // namespace svmosaic
