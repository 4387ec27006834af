// Gates by distance to centres: which tiles a row belongs to, and how much.
//
// For row x and centres c_1 .. c_K the `width` nearest are chosen (of equals, the first), and weighed by
//
//   nearest   width 1, weight 1
//   inverse   1 / |x - c_j|                                          (van Gemert et al., 2008)
//   softmax   exp(-scale |x - c_j|^2 + log_prior_j)
//   llc       argmin_w |x - sum_j w_j c_j|^2 + scale sum_j (l_j w_j)^2 with sum w = 1, where
//             l_j = exp((|x - c_j| - max_j |x - c_j|) / max_j |x - c_j|)   (Wang et al., 2010)
//   lle       argmin_w |x - sum_j w_j c_j|^2 + scale * mean_j |x - c_j|^2 |w|^2 with sum w = 1
//             (Roweis and Saul, 2000, with the usual ridge)
//
// normalised to sum to one, then multiplied by factor_j where given. Distances are measured from the
// centres' mean, so that data far from the origin lose no digits; those of the chosen centres are
// computed anew from the differences, so that a row on a centre is at distance zero exactly.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "panels.hpp"
#include "rows.hpp"

namespace svmosaic {

enum class Coding { nearest, inverse, softmax, llc, lle };

template <class T>
struct Gate {
  Coding coding;
  int64_t n_tiles, n_features, width;
  double scale;
  std::vector<T> mean, centers;  // centers less the mean, row by row
  std::vector<T> half_norms;     // |c_j|^2 / 2 of the shifted centres
  std::vector<T> mean_products;  // <mean, c_j>
  std::vector<double> log_prior, factor;
  Panels<T> panels;

  Gate(Coding coding, const double* centers_in, int64_t n_tiles, int64_t n_features, int64_t width, double scale,
       const double* log_prior_in, const double* factor_in)
      : coding(coding), n_tiles(n_tiles), n_features(n_features), width(width), scale(scale) {
    std::vector<double> exact(n_features, 0.0);
    for (int64_t j = 0; j < n_tiles; ++j)
      for (int64_t f = 0; f < n_features; ++f) exact[f] += centers_in[j * n_features + f] / n_tiles;
    mean.assign(exact.begin(), exact.end());
    centers.resize(n_tiles * n_features);
    half_norms.resize(n_tiles);
    mean_products.resize(n_tiles);
    for (int64_t j = 0; j < n_tiles; ++j) {
      double norm = 0, product = 0;
      for (int64_t f = 0; f < n_features; ++f) {
        // The centre as T knows it, so that a row equal to it is at distance zero.
        const T c = static_cast<T>(centers_in[j * n_features + f]) - mean[f];
        centers[j * n_features + f] = c;
        norm += static_cast<double>(c) * c;
        product += static_cast<double>(c) * mean[f];
      }
      half_norms[j] = static_cast<T>(0.5 * norm);
      mean_products[j] = static_cast<T>(product);
    }
    if (log_prior_in) log_prior.assign(log_prior_in, log_prior_in + n_tiles);
    if (factor_in) factor.assign(factor_in, factor_in + n_tiles);
    panels = Panels<T>::pack(centers.data(), n_tiles, n_features, n_features);
  }
};

// Buffers of one thread, for up to kBlock rows at a time.
template <class T>
struct GateScratch {
  static constexpr int64_t kBlock = 16 * kRowsAtOnce;
  std::vector<T> shifted, products, differences;
  std::vector<const T*> row;
  std::vector<T*> product;
  std::vector<double> distance, system;

  GateScratch(const Gate<T>& gate, int64_t n_rows)
      : shifted(std::min(n_rows, kBlock) * gate.n_features),
        products(std::min(n_rows, kBlock) * gate.panels.padded()),
        differences(gate.width * gate.n_features),
        row(std::min(n_rows, kBlock)),
        product(row.size()),
        distance(gate.width),
        system(gate.width * gate.width) {
    for (size_t r = 0; r < row.size(); ++r) {
      row[r] = shifted.data() + r * gate.n_features;
      product[r] = products.data() + r * gate.panels.padded();
    }
  }
};

// The `width` largest of closeness_j = <z, c_j> - |c_j|^2 / 2 (= half of |z|^2 - |z - c_j|^2), best first.
template <class T>
inline void choose_nearest(const Gate<T>& gate, const T* product, int32_t* chosen) {
  const int64_t width = gate.width;
  if (width == 1) {
    T best = -std::numeric_limits<T>::infinity();
    chosen[0] = 0;
    for (int64_t j = 0; j < gate.n_tiles; ++j) {
      const T closeness = product[j] - gate.half_norms[j];
      if (closeness > best) {
        best = closeness;
        chosen[0] = static_cast<int32_t>(j);
      }
    }
    return;
  }
  if (width == gate.n_tiles) {
    for (int64_t j = 0; j < width; ++j) chosen[j] = static_cast<int32_t>(j);
    return;
  }
  int64_t n = 0;
  T worst = -std::numeric_limits<T>::infinity();
  for (int64_t j = 0; j < gate.n_tiles; ++j) {
    const T closeness = product[j] - gate.half_norms[j];
    if (n == width && !(closeness > worst)) continue;
    int64_t at = n < width ? n++ : width - 1;
    for (; at > 0; --at) {
      const int32_t before = chosen[at - 1];
      if (!(closeness > product[before] - gate.half_norms[before])) break;
      chosen[at] = before;
    }
    chosen[at] = static_cast<int32_t>(j);
    const int32_t last = chosen[n - 1];
    worst = product[last] - gate.half_norms[last];
  }
}

// Solve the symmetric positive definite system by Cholesky, in place; b becomes the solution.
inline void solve_small(double* a, double* b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      double sum = a[i * n + j];
      for (int64_t k = 0; k < j; ++k) sum -= a[i * n + k] * a[j * n + k];
      a[i * n + j] = i == j ? std::sqrt(std::max(sum, 1e-300)) : sum / a[j * n + j];
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < i; ++k) b[i] -= a[i * n + k] * b[k];
    b[i] /= a[i * n + i];
  }
  for (int64_t i = n - 1; i >= 0; --i) {
    for (int64_t k = i + 1; k < n; ++k) b[i] -= a[k * n + i] * b[k];
    b[i] /= a[i * n + i];
  }
}

// Weights of the chosen centres from their squared distances (and, for reconstruction, differences z - c_j).
template <class T>
inline void weigh(const Gate<T>& gate, const int32_t* chosen, const double* squared, const T* differences,
                  double* system, double* weight) {
  const int64_t width = gate.width;
  if (gate.coding == Coding::nearest) {
    weight[0] = 1;
  } else if (gate.coding == Coding::softmax) {
    double largest = -std::numeric_limits<double>::infinity();
    for (int64_t a = 0; a < width; ++a) {
      weight[a] = -gate.scale * squared[a] + (gate.log_prior.empty() ? 0 : gate.log_prior[chosen[a]]);
      largest = std::max(largest, weight[a]);
    }
    // All priors zero (-inf) or distances infinite: fall back on equal shares.
    for (int64_t a = 0; a < width; ++a) weight[a] = std::isfinite(largest) ? std::exp(weight[a] - largest) : 1.0;
  } else if (gate.coding == Coding::inverse) {
    double nearest = squared[0];
    for (int64_t a = 1; a < width; ++a) nearest = std::min(nearest, squared[a]);
    // On a centre the limit of the formula gives it everything; ties share.
    for (int64_t a = 0; a < width; ++a)
      weight[a] = nearest > 0 ? std::sqrt(nearest / squared[a]) : (squared[a] > 0 ? 0.0 : 1.0);
  } else {
    double mean = 0, farthest = 0;
    for (int64_t a = 0; a < width; ++a) {
      mean += squared[a] / width;
      farthest = std::max(farthest, squared[a]);
    }
    farthest = std::sqrt(farthest);
    for (int64_t a = 0; a < width; ++a) {
      for (int64_t b = 0; b <= a; ++b)
        system[a * width + b] =
            dot(differences + a * gate.n_features, differences + b * gate.n_features, gate.n_features);
      double ridge = gate.scale * mean;
      if (gate.coding == Coding::llc) {
        const double locality = farthest > 0 ? std::exp((std::sqrt(squared[a]) - farthest) / farthest) : 1.0;
        ridge = gate.scale * mean * locality * locality;
      }
      system[a * width + a] += ridge > 0 ? ridge : 1e-12;
      weight[a] = 1;
    }
    solve_small(system, weight, width);
  }
  double total = 0;
  for (int64_t a = 0; a < width; ++a) total += weight[a];
  for (int64_t a = 0; a < width; ++a) {
    weight[a] /= total;
    if (!gate.factor.empty()) weight[a] *= gate.factor[chosen[a]];
  }
}

// z_r = x_r - mean and <z_r, c_j> of n rows from `begin` on
template <class T>
inline void shift_and_multiply(const Gate<T>& gate, const DenseRows<T>& x, int64_t begin, int64_t n,
                               GateScratch<T>& scratch) {
  for (int64_t r = 0; r < n; ++r) {
    const T* from = x.data + (begin + r) * x.stride;
    T* to = scratch.shifted.data() + r * gate.n_features;
    for (int64_t f = 0; f < gate.n_features; ++f) to[f] = from[f] - gate.mean[f];
  }
  multiply_dense(scratch.row.data(), n, gate.panels, scratch.product.data());
}

template <class T>
inline void shift_and_multiply(const Gate<T>& gate, const SparseRows<T>& x, int64_t begin, int64_t n,
                               GateScratch<T>& scratch) {
  for (int64_t r = 0; r < n; ++r) {
    // <x - mean, c> = <x, c> - <mean, c>: the product sees only what is stored.
    multiply_sparse(x, begin + r, gate.panels, scratch.product[r]);
    for (int64_t j = 0; j < gate.n_tiles; ++j) scratch.product[r][j] -= gate.mean_products[j];
    if (gate.coding == Coding::nearest) continue;
    T* z = scratch.shifted.data() + r * gate.n_features;
    for (int64_t f = 0; f < gate.n_features; ++f) z[f] = -gate.mean[f];
    for (int64_t p = x.indptr[begin + r]; p < x.indptr[begin + r + 1]; ++p) z[x.indices[p]] += x.data[p];
  }
}

// Codes of n rows from `begin` on, n at most what the scratch was made for.
template <class T, class Rows>
inline void code_block(const Gate<T>& gate, const Rows& x, int64_t begin, int64_t n, GateScratch<T>& scratch,
                       int32_t* tile, double* weight) {
  const int64_t d = gate.n_features, width = gate.width;
  const bool reconstruct = gate.coding == Coding::llc || gate.coding == Coding::lle;
  shift_and_multiply(gate, x, begin, n, scratch);
  for (int64_t r = 0; r < n; ++r) {
    int32_t* chosen = tile + r * width;
    choose_nearest(gate, scratch.product[r], chosen);
    if (gate.coding != Coding::nearest) {
      for (int64_t a = 0; a < width; ++a) {
        const T *z = scratch.row[r], *c = gate.centers.data() + chosen[a] * d;
        T* difference = scratch.differences.data() + (reconstruct ? a * d : 0);
        for (int64_t f = 0; f < d; ++f) difference[f] = z[f] - c[f];
        scratch.distance[a] = dot(difference, difference, d);
      }
    }
    weigh(gate, chosen, scratch.distance.data(), scratch.differences.data(), scratch.system.data(), weight + r * width);
  }
}

}  // namespace svmosaic
