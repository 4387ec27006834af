// Tiles of a mosaic with curves that are straight themselves: linear in the straight terms of the columns,
//
//   z_f(x) = clip((x_f - center_f) * scale_f, -reach_f, reach_f) ,
//
// such as the linear leaves of trees next to a global tile with curves, or a model without curves in a blend. They need
// one number per column where a tile with curves needs one per knot.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "curves.hpp"
#include "rows.hpp"
#include "tiles.hpp"

namespace svmosaic {

template <class T>
struct FlatTiles {
  int64_t n_inputs;
  std::vector<T> center, scale, reach, zero;  // `zero`: the straight terms of a row of zeros
  Tiles<T> tiles;  // in the straight terms, and one more weight: the score of a row of zeros, for sparse rows

  // `coef`: [n_flat][output][column], of the tiles listed; intercepts are those of the mosaic, which adds them.
  FlatTiles(const double* coef, const int32_t* listed, int64_t n_flat, const double* center_in, const double* scale_in,
            const double* reach_in, int64_t n_inputs, int64_t n_tiles, int64_t n_outputs, int64_t width, bool posterior)
      : n_inputs(n_inputs), center(center_in, center_in + n_inputs), scale(scale_in, scale_in + n_inputs),
        reach(reach_in, reach_in + n_inputs), zero(zeros()),
        tiles(widened(coef, n_flat * n_outputs).data(), listed, n_flat, std::vector<double>(n_tiles * n_outputs).data(),
              n_tiles, n_outputs, n_inputs + 1, Link::identity, width, posterior) {}

  T term(int64_t f, T x) const { return std::min(std::max((x - center[f]) * scale[f], -reach[f]), reach[f]); }

  // Rows [begin, begin + n) as these tiles see them; the last column of dense ones is zero.
  DenseRows<T> seen(const DenseRows<T>& x, int64_t begin, int64_t n, CurveScratch<T>& s) const {
    const int64_t stride = n_inputs + 1;
    s.straight.resize(n * stride);
    for (int64_t r = 0; r < n; ++r) {
      const T* from = x.data + (begin + r) * x.stride;
      T* to = s.straight.data() + r * stride;
      for (int64_t f = 0; f < n_inputs; ++f) to[f] = term(f, from[f]);
      to[n_inputs] = 0;
    }
    return {s.straight.data(), n, stride, stride, 0.0};
  }

  SparseRows<T> seen(const SparseRows<T>& x, int64_t begin, int64_t n, CurveScratch<T>& s) const {
    s.data.clear();
    s.indices.clear();
    s.indptr.assign(1, 0);
    for (int64_t i = begin; i < begin + n; ++i) {
      for (int64_t p = x.indptr[i]; p < x.indptr[i + 1]; ++p) {
        s.indices.push_back(x.indices[p]);
        s.data.push_back(term(x.indices[p], x.data[p]) - zero[x.indices[p]]);
      }
      s.indices.push_back(static_cast<int32_t>(n_inputs));
      s.data.push_back(1);
      s.indptr.push_back(static_cast<int64_t>(s.data.size()));
    }
    return {s.data.data(), s.indices.data(), s.indptr.data(), n, n_inputs + 1, 0.0};
  }

 private:
  std::vector<T> zeros() const {
    std::vector<T> found(n_inputs);
    for (int64_t f = 0; f < n_inputs; ++f) found[f] = term(f, T(0));
    return found;
  }

  // Lines of weights, each followed by its score of a row of zeros.
  std::vector<double> widened(const double* coef, int64_t n) const {
    std::vector<double> wide;
    wide.reserve(n * (n_inputs + 1));
    for (int64_t k = 0; k < n; ++k, coef += n_inputs) {
      wide.insert(wide.end(), coef, coef + n_inputs);
      double sum = 0;
      for (int64_t f = 0; f < n_inputs; ++f) sum += coef[f] * static_cast<double>(zero[f]);
      wide.push_back(sum);
    }
    return wide;
  }
};

}  // namespace svmosaic
