// The gate by distance to centers: which tiles a row belongs to, and how much.
//
// For row x and centers c_1 .. c_K the `width` nearest are chosen (of equals, the first), and weighed by
//
//   nearest   width 1, weight 1
//   inverse   1 / |x - c_j|                                          (van Gemert et al., 2008)
//   softmax   exp(-scale |x - c_j|^2 + log_prior_j)
//   llc       argmin_w |x - sum_j w_j c_j|^2 + scale sum_j (l_j w_j)^2 with sum w = 1, where
//             l_j = exp(|x - c_j| / max_j |x - c_j| - 1)   (Wang et al., 2010)
//   lle       argmin_w |x - sum_j w_j c_j|^2 + scale * mean_j |x - c_j|^2 |w|^2 with sum w = 1
//             (Roweis and Saul, 2000, with the usual ridge)
//   kernel    exp(-scale |x - c_j|^2)
//
// normalized to sum to one, but for the kernel, then multiplied by factor_j where given. Distances are measured from the
// centers' mean, so that data far from the origin lose no digits. Those of the chosen centers are
// computed anew from the differences in double precision, so that a row on a center is at distance zero
// exactly; the softmax needs only |x - c_j|^2 - |x - c_1|^2 = <2x - c_1 - c_j, c_1 - c_j>, which keeps its
// digits however far the row is from all centers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "exponential.hpp"
#include "gate.hpp"
#include "panels.hpp"
#include "rows.hpp"

namespace svmosaic {

// Eight numbers of double precision, or one where the compiler has no vectors.
#if defined(__GNUC__)
using Wide = Lanes<double>;
constexpr int64_t kWide = kLanes<double>;
template <class T>
inline Wide widen(const T* p) {
  return load<double>(p);
}
struct WideSum {
  Wide lanes{};
  void add(const Wide& term) { lanes += term; }
  double total() const {
    return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
  }
};
#else
using Wide = double;
constexpr int64_t kWide = 1;
template <class T>
inline Wide widen(const T* p) {
  return *p;
}
struct WideSum {
  double sum = 0;
  void add(double term) { sum += term; }
  double total() const { return sum; }
};
#endif

enum class Coding { nearest, inverse, softmax, llc, lle, kernel };

template <class T>
struct DistanceScratch;

template <class T>
struct DistanceGate : GateOf<T, DistanceGate, DistanceScratch> {
  using Base = GateOf<T, DistanceGate, DistanceScratch>;
  using Base::n_tiles, Base::n_features, Base::width;
  Coding coding;
  int64_t stride;
  double scale;
  std::vector<T> mean, centers;  // centers less the mean, `stride` numbers each, padded with zeros
  std::vector<T> half_norms;     // |c_j|^2 / 2 of the shifted centers, padded
  std::vector<T> mean_products;  // <mean, c_j>
  std::vector<double> log_prior, factor;
  Panels<T> panels;

  DistanceGate(Coding coding, const double* centers_in, int64_t n_tiles, int64_t n_features, int64_t width,
               double scale, const double* log_prior_in, const double* factor_in)
      : Base(n_tiles, n_features, width), coding(coding), stride((n_features + kWide - 1) / kWide * kWide),
        scale(scale) {
    std::vector<double> exact(n_features, 0.0);
    for (int64_t j = 0; j < n_tiles; ++j)
      for (int64_t f = 0; f < n_features; ++f) exact[f] += centers_in[j * n_features + f] / n_tiles;
    mean.assign(exact.begin(), exact.end());
    centers.assign(n_tiles * stride, T(0));
    half_norms.resize(n_tiles);
    mean_products.resize(n_tiles);
    for (int64_t j = 0; j < n_tiles; ++j) {
      double norm = 0, product = 0;
      for (int64_t f = 0; f < n_features; ++f) {
        // The center as T knows it, so that a row equal to it is at distance zero.
        const T c = static_cast<T>(centers_in[j * n_features + f]) - mean[f];
        centers[j * stride + f] = c;
        norm += static_cast<double>(c) * c;
        product += static_cast<double>(c) * mean[f];
      }
      half_norms[j] = static_cast<T>(0.5 * norm);
      mean_products[j] = static_cast<T>(product);
    }
    if (log_prior_in) log_prior.assign(log_prior_in, log_prior_in + n_tiles);
    if (factor_in) factor.assign(factor_in, factor_in + n_tiles);
    // With all centers chosen there is nothing to choose by.
    if (width < n_tiles) panels = Panels<T>::pack(centers.data(), n_tiles, n_features, stride);
    // Padding is infinitely far.
    half_norms.resize(std::max(n_tiles, panels.padded()), std::numeric_limits<T>::infinity());
  }

  bool reconstructs() const { return coding == Coding::llc || coding == Coding::lle; }

  int64_t cost() const override { return n_features * n_tiles; }
};

// |z - c|^2 in double precision, of vectors padded with zeros to whole lanes
template <class T>
inline double squared_distance(const T* z, const T* c, int64_t n) {
  WideSum sum;
  for (int64_t i = 0; i < n; i += kWide) {
    const Wide difference = widen(z + i) - widen(c + i);
    sum.add(difference * difference);
  }
  return sum.total();
}

// |z - c|^2 - |z - origin|^2 = <2 z - origin - c, origin - c>, likewise
template <class T>
inline double distance_beyond(const T* z, const T* origin, const T* c, int64_t n) {
  WideSum sum;
  for (int64_t i = 0; i < n; i += kWide) {
    const Wide row = widen(z + i), from = widen(origin + i), to = widen(c + i);
    sum.add(((row - from) + (row - to)) * (from - to));
  }
  return sum.total();
}

template <class T>
struct DistanceScratch : Gate<T>::Scratch {
  std::vector<T> shifted, products;
  std::vector<const T*> row;
  std::vector<T*> product;
  std::vector<int32_t> listed;
  std::vector<double> distance, differences, system;

  DistanceScratch(const DistanceGate<T>& gate, int64_t n_rows)
      : shifted(n_rows * gate.stride),
        products(n_rows * gate.panels.padded()),
        row(n_rows),
        product(row.size()),
        listed(gate.n_tiles + 1),
        distance(padded_width(gate.width)),
        differences(gate.reconstructs() ? gate.width * gate.stride : 0),
        system(gate.reconstructs() ? gate.width * gate.width : 0) {
    for (size_t r = 0; r < row.size(); ++r) {
      row[r] = shifted.data() + r * gate.stride;
      product[r] = products.data() + r * gate.panels.padded();
    }
  }
};

// The first of the largest of product_j - half_norm_j; n is a multiple of whole vectors.
template <class T>
inline int32_t closest_of(const T* product, const T* half_norms, int64_t n) {
#if defined(__GNUC__)
  constexpr int w = kLanes<T>;
  Lanes<T> best = load<T>(product) - load<T>(half_norms);
  decltype(best > best) at{}, step{};
  for (int64_t j = w; j < n; j += w) {
    const Lanes<T> closeness = load<T>(product + j) - load<T>(half_norms + j);
    step += 1;
    const auto better = closeness > best;
    best = better ? closeness : best;
    at = better ? step : at;
  }
  // Lanes in order, of equals the lower place.
  int64_t winner = at[0] * w;
  T largest = best[0];
  for (int lane = 1; lane < w; ++lane) {
    const int64_t place = at[lane] * w + lane;
    if (best[lane] > largest || (best[lane] == largest && place < winner)) {
      largest = best[lane];
      winner = place;
    }
  }
  return static_cast<int32_t>(winner);
#else
  int64_t winner = 0;
  for (int64_t j = 1; j < n; ++j)
    if (product[j] - half_norms[j] > product[winner] - half_norms[winner]) winner = j;
  return static_cast<int32_t>(winner);
#endif
}

// Of so many numbers the largest are found by comparing all with all, without branches, which would be taken by surprise.
constexpr int kContest = 16;
// Numbers as wide as T to count with, for the vector units.
template <class T>
using Count = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

// rank[l] = how many of the numbers are larger than number l, or equal and before it
template <class T>
inline void rank_all(const T* value, Count<T>* rank) {
  for (int l = 0; l < kContest; ++l) rank[l] = 0;
  for (int a = 0; a < kContest; ++a)
    for (int l = 0; l < kContest; ++l) rank[l] += (value[a] > value[l]) | ((value[a] == value[l]) & (a < l));
}

// largest[l] = the larger of it and value[l]
template <class T>
inline void keep_larger(const T* value, T* largest) {
#if defined(__GNUC__)
  // Vectors that all machines compare; of a loop the compiler makes branches.
  typedef T Short __attribute__((vector_size(16)));
  constexpr int w = sizeof(Short) / sizeof(T);
  for (int l = 0; l < kContest; l += w) {
    const Short now = load_vector<Short>(value + l), before = load_vector<Short>(largest + l);
    store_vector(largest + l, now > before ? now : before);
  }
#else
  for (int l = 0; l < kContest; ++l) largest[l] = std::max(largest[l], value[l]);
#endif
}

// The places of numbers among which the `width` largest of n are, increasing; at most half of kContest are asked for.
template <class T>
inline int64_t list_closest(const T* closeness, int64_t n, int64_t width, int32_t* listed) {
  // The largest of every kContest-th number: no more of the numbers than of these are above the last one chosen of these.
  T largest[kContest];
  Count<T> rank[kContest];
  std::copy_n(closeness, kContest, largest);
  int64_t j = kContest;
  for (; j + kContest <= n; j += kContest) keep_larger(closeness + j, largest);
  for (; j < n; ++j) largest[j % kContest] = std::max(largest[j % kContest], closeness[j]);
  rank_all(largest, rank);
  T least = largest[0];
  for (int l = 0; l < kContest; ++l) least = rank[l] == width - 1 ? largest[l] : least;
  int64_t m = 0;
  for (j = 0; j < n; ++j) {
    listed[m] = static_cast<int32_t>(j);
    m += closeness[j] >= least;
  }
  return m;
}

// The `width` largest of the m numbers listed, whose places increase, best first; of equals, the first.
template <class T>
inline void choose_listed(const T* closeness, const int32_t* listed, int64_t m, int64_t width, int32_t* chosen) {
  int64_t n = 0;
  T worst = -std::numeric_limits<T>::infinity();
  for (int64_t q = 0; q < m; ++q) {
    const T now = closeness[listed[q]];
    if (n == width && !(now > worst)) continue;
    int64_t at = n < width ? n++ : width - 1;
    for (; at > 0; --at) {
      const int32_t before = chosen[at - 1];
      if (!(now > closeness[before])) break;
      chosen[at] = before;
    }
    chosen[at] = listed[q];
    worst = closeness[chosen[n - 1]];
  }
}

// The `width` largest of closeness_j = <z, c_j> - |c_j|^2 / 2 (= half of |z|^2 - |z - c_j|^2), best first. The products
// become closenesses; `listed` has room for the number of every tile.
template <class T>
inline void choose_nearest(const DistanceGate<T>& gate, T* product, int32_t* listed, int32_t* chosen) {
  const int64_t width = gate.width, n = gate.n_tiles;
  if (width == n) {
    for (int64_t j = 0; j < width; ++j) chosen[j] = static_cast<int32_t>(j);
    return;
  }
  if (width == 1) {
    chosen[0] = closest_of(product, gate.half_norms.data(), gate.panels.padded());
    return;
  }
  for (int64_t j = 0; j < n; ++j) product[j] -= gate.half_norms[j];
  int64_t m = 0;
  if (2 * width <= kContest && n >= 2 * kContest) m = list_closest(product, n, width, listed);
  if (m >= width && m <= kContest) {
    T value[kContest];
    Count<T> rank[kContest];
    int32_t by_rank[kContest];
    for (int l = 0; l < kContest; ++l) value[l] = l < m ? product[listed[l]] : -std::numeric_limits<T>::infinity();
    rank_all(value, rank);
    for (int l = 0; l < m; ++l) by_rank[rank[l]] = listed[l];
    std::copy_n(by_rank, width, chosen);
    return;
  }
  if (m < width) {  // not asked for, or numbers that cannot be compared
    for (m = 0; m < n; ++m) listed[m] = static_cast<int32_t>(m);
  }
  choose_listed(product, listed, m, width, chosen);
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

// Weights of the centers chosen for one row z, less the mean.
template <class T>
inline void weigh(const DistanceGate<T>& gate, const T* z, const int32_t* chosen, DistanceScratch<T>& scratch, double* weight) {
  const int64_t width = gate.width, d = gate.stride;
  const T* centers = gate.centers.data();
  double* squared = scratch.distance.data();
  if (gate.coding == Coding::nearest) {
    weight[0] = 1;
  } else if (gate.coding == Coding::softmax) {
    const T* origin = centers + chosen[0] * d;
    double largest = -std::numeric_limits<double>::infinity();
    for (int64_t a = 0; a < width; ++a) {
      const double beyond = a == 0 ? 0.0 : distance_beyond(z, origin, centers + chosen[a] * d, d);
      weight[a] = -gate.scale * beyond + (gate.log_prior.empty() ? 0 : gate.log_prior[chosen[a]]);
      largest = std::max(largest, weight[a]);
    }
    // All priors zero (-inf), or rows beyond all numbers: fall back on equal shares.
    for (int64_t a = 0; a < width; ++a) weight[a] = std::isfinite(largest) ? std::exp(weight[a] - largest) : 1.0;
  } else if (gate.coding == Coding::inverse) {
    for (int64_t a = 0; a < width; ++a) squared[a] = squared_distance(z, centers + chosen[a] * d, d);
    const double nearest = *std::min_element(squared, squared + width);
    // On a center the limit of the formula gives it everything; ties share.
    for (int64_t a = 0; a < width; ++a)
      weight[a] = nearest > 0 ? std::sqrt(nearest / squared[a]) : (squared[a] > 0 ? 0.0 : 1.0);
  } else if (gate.coding == Coding::kernel) {
    for (int64_t a = 0; a < width; ++a) squared[a] = -gate.scale * squared_distance(z, centers + chosen[a] * d, d);
    exp_all(squared, width);
    std::copy_n(squared, width, weight);
  } else {
    double *differences = scratch.differences.data(), *system = scratch.system.data();
    double mean = 0, farthest = 0;
    for (int64_t a = 0; a < width; ++a) {
      for (int64_t f = 0; f < d; ++f)
        differences[a * d + f] = static_cast<double>(z[f]) - centers[chosen[a] * d + f];
      for (int64_t b = 0; b <= a; ++b) system[a * width + b] = dot(differences + a * d, differences + b * d, d);
      squared[a] = system[a * width + a];
      mean += squared[a] / width;
      farthest = std::max(farthest, squared[a]);
    }
    for (int64_t a = 0; a < width; ++a) {
      double ridge = gate.scale * mean;
      if (gate.coding == Coding::llc) {
        const double locality = farthest > 0 ? std::exp(std::sqrt(squared[a] / farthest) - 1) : 1.0;
        ridge *= locality * locality;
      }
      system[a * width + a] += ridge > 0 ? ridge : 1e-12;
      weight[a] = 1;
    }
    solve_small(system, weight, width);
  }
  double total = 0;
  for (int64_t a = 0; a < width; ++a) total += weight[a];
  if (gate.coding == Coding::kernel) total = 1;  // as they are
  for (int64_t a = 0; a < width; ++a) {
    weight[a] /= total;
    if (!gate.factor.empty()) weight[a] *= gate.factor[chosen[a]];
  }
}

// z_r = x_r - mean and <z_r, c_j> of n rows from `begin` on
template <class T>
SVMOSAIC_CLONES void shift_and_multiply(const DistanceGate<T>& gate, const DenseRows<T>& x, int64_t begin, int64_t n,
                                        DistanceScratch<T>& scratch) {
  for (int64_t r = 0; r < n; ++r) {
    const T* from = x.data + (begin + r) * x.stride;
    T* to = scratch.shifted.data() + r * gate.stride;
    for (int64_t f = 0; f < gate.n_features; ++f) to[f] = from[f] - gate.mean[f];
  }
  multiply_dense(scratch.row.data(), n, gate.panels, scratch.product.data());
}

template <class T>
SVMOSAIC_CLONES void shift_and_multiply(const DistanceGate<T>& gate, const SparseRows<T>& x, int64_t begin, int64_t n,
                                        DistanceScratch<T>& scratch) {
  // <x - mean, c> = <x, c> - <mean, c>: the product sees only what is stored.
  if (gate.panels.n > 0) multiply_sparse(x, begin, nullptr, n, gate.panels, scratch.product.data());
  for (int64_t r = 0; r < n; ++r) {
    if (gate.panels.n > 0)
      for (int64_t j = 0; j < gate.n_tiles; ++j) scratch.product[r][j] -= gate.mean_products[j];
    if (gate.coding == Coding::nearest) continue;
    T* z = scratch.shifted.data() + r * gate.stride;
    for (int64_t f = 0; f < gate.n_features; ++f) z[f] = -gate.mean[f];
    for (int64_t p = x.indptr[begin + r]; p < x.indptr[begin + r + 1]; ++p) z[x.indices[p]] += x.data[p];
  }
}

// Codes of n rows whose products with the centers are in the scratch.
template <class T>
SVMOSAIC_CLONES void choose_and_weigh(const DistanceGate<T>& gate, int64_t n, DistanceScratch<T>& scratch,
                                      int32_t* tile, double* weight) {
  for (int64_t r = 0; r < n; ++r) {
    choose_nearest(gate, scratch.product[r], scratch.listed.data(), tile + r * gate.width);
    weigh(gate, scratch.row[r], tile + r * gate.width, scratch, weight + r * gate.width);
  }
}

template <class T, class Rows>
void code_block(const DistanceGate<T>& gate, const Rows& x, int64_t begin, int64_t n, DistanceScratch<T>& scratch,
                int32_t* tile, double* weight) {
  shift_and_multiply(gate, x, begin, n, scratch);
  choose_and_weigh(gate, n, scratch, tile, weight);
}

}  // namespace svmosaic
