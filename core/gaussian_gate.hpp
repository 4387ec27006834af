// The gate of the multi-task mixture: the posterior of a mixture of Gaussians,
//
//   g_j(x) = pi_j N(x; mu_j, Sigma_j) / p(x) ,     Sigma_j^-1 = F_j F_j^T ,
//
// from log joint_j = log pi_j + log det F_j - |F_j^T (x - mu_j)|^2 / 2, in double precision whatever that of the rows.
// F is a matrix, a vector (the inverse standard deviations) or a number per tile.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "exponential.hpp"
#include "gate.hpp"
#include "panels.hpp"
#include "parallel.hpp"
#include "passes.hpp"
#include "rows.hpp"

namespace svmosaic {

enum class Covariance { full, diag, isotropic };

template <class T>
struct GaussianScratch;

template <class T>
struct GaussianGate : GateOf<T, GaussianGate, GaussianScratch> {
  using Base = GateOf<T, GaussianGate, GaussianScratch>;
  using Base::n_tiles, Base::n_features;
  Covariance covariance;
  std::vector<double> origin, means, factors, log_weight;  // means less the origin
  std::vector<Panels<double>> panels;                      // full: F_j^T a tile
  std::vector<double> white_means;                         // full: F_j^T mu_j, padded like the panels

  GaussianGate(Covariance covariance, const double* means_in, const double* factors_in, const double* log_weight_in,
               int64_t n_tiles, int64_t n_features)
      : Base(n_tiles, n_features, n_tiles, true), covariance(covariance), origin(n_features, 0.0),
        means(means_in, means_in + n_tiles * n_features), log_weight(log_weight_in, log_weight_in + n_tiles) {
    for (int64_t j = 0; j < n_tiles; ++j)
      for (int64_t f = 0; f < n_features; ++f) origin[f] += means_in[j * n_features + f] / n_tiles;
    for (int64_t j = 0; j < n_tiles; ++j)
      for (int64_t f = 0; f < n_features; ++f) means[j * n_features + f] -= origin[f];
    if (covariance != Covariance::full) {
      factors.assign(factors_in, factors_in + n_tiles * (covariance == Covariance::diag ? n_features : 1));
      return;
    }
    std::vector<double> transposed(n_features * n_features);
    for (int64_t j = 0; j < n_tiles; ++j) {
      const double* factor = factors_in + j * n_features * n_features;
      for (int64_t f = 0; f < n_features; ++f)
        for (int64_t q = 0; q < n_features; ++q) transposed[q * n_features + f] = factor[f * n_features + q];
      panels.push_back(Panels<double>::pack(transposed.data(), n_features, n_features, n_features));
      white_means.resize((j + 1) * panels[j].padded(), 0.0);
      double* white = white_means.data() + j * panels[j].padded();
      for (int64_t q = 0; q < n_features; ++q)
        white[q] = dot(means.data() + j * n_features, transposed.data() + q * n_features, n_features);
    }
  }

  int64_t padded() const { return panels.empty() ? 0 : panels[0].padded(); }

  int64_t cost() const override {
    return n_features * n_tiles * (covariance == Covariance::full ? n_features : 2);
  }
};

template <class T>
struct GaussianScratch : Gate<T>::Scratch {
  MovedRows rows;
  std::vector<double> whites, joint;
  std::vector<double*> white;

  GaussianScratch(const GaussianGate<T>& gate, int64_t n_rows)
      : rows(n_rows, gate.n_features), whites(n_rows * gate.padded()), joint(n_rows * padded_width(gate.n_tiles)),
        white(n_rows) {
    for (int64_t r = 0; r < n_rows; ++r) white[r] = whites.data() + r * gate.padded();
  }
};

// sum_f ((z_f - m_f) s_f)^2, or with s_f = s for all f
template <bool each>
inline double scaled_distance(const double* z, const double* mean, const double* scale, int64_t n) {
  double sum[kBlock] = {};
  int64_t f = 0;
  for (; f + kBlock <= n; f += kBlock)
    for (int64_t l = 0; l < kBlock; ++l) {
      const double away = (z[f + l] - mean[f + l]) * (each ? scale[f + l] : scale[0]);
      sum[l] += away * away;
    }
  for (int64_t l = 0; f < n; ++f, ++l) {
    const double away = (z[f] - mean[f]) * (each ? scale[f] : scale[0]);
    sum[l] += away * away;
  }
  return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

// joint[r][j] = log pi_j N(x_r; mu_j, Sigma_j), up to a constant, for the rows in the scratch
template <class T>
SVMOSAIC_CLONES void log_joint(const GaussianGate<T>& gate, int64_t n, GaussianScratch<T>& scratch) {
  const int64_t d = gate.n_features, wide = gate.padded(), stride = padded_width(gate.n_tiles);
  for (int64_t j = 0; j < gate.n_tiles; ++j) {
    if (gate.covariance == Covariance::full)
      multiply_dense(scratch.rows.row.data(), n, gate.panels[j], scratch.white.data());
    for (int64_t r = 0; r < n; ++r) {
      const double one = 1.0, *z = scratch.rows.row[r], *mean = gate.means.data() + j * d;
      double squared = 0;
      if (gate.covariance == Covariance::full)
        squared = scaled_distance<false>(scratch.white[r], gate.white_means.data() + j * wide, &one, wide);
      else if (gate.covariance == Covariance::diag)
        squared = scaled_distance<true>(z, mean, gate.factors.data() + j * d, d);
      else
        squared = scaled_distance<false>(z, mean, gate.factors.data() + j, d);
      scratch.joint[r * stride + j] = gate.log_weight[j] - 0.5 * squared;
    }
  }
}

// The posterior, from what `log_joint` has put into the scratch.
template <class T>
SVMOSAIC_CLONES void posterior_of(const GaussianGate<T>& gate, int64_t n, GaussianScratch<T>& scratch, int32_t* tile,
                                  double* weight) {
  const int64_t n_tiles = gate.n_tiles, stride = padded_width(n_tiles);
  for (int64_t r = 0; r < n; ++r, tile += n_tiles, weight += n_tiles) {
    double* joint = scratch.joint.data() + r * stride;
    const double top = *std::max_element(joint, joint + n_tiles);
    double sum = 0;
    // Rows beyond all numbers: equal shares.
    for (int64_t j = 0; j < n_tiles; ++j) joint[j] = std::isfinite(top) ? joint[j] - top : 0.0;
    exp_all(joint, n_tiles);
    for (int64_t j = 0; j < n_tiles; ++j) sum += joint[j];
    for (int64_t j = 0; j < n_tiles; ++j) weight[j] = joint[j] / sum;
    settle_posterior<T>(n_tiles, tile, weight);
  }
}

template <class T, class Rows>
void code_block(const GaussianGate<T>& gate, const Rows& x, int64_t begin, int64_t n, GaussianScratch<T>& scratch,
                int32_t* tile, double* weight) {
  scratch.rows.fill(x, begin, n, gate.origin.data());
  log_joint(gate, n, scratch);
  posterior_of(gate, n, scratch, tile, weight);
}

template <class T, class Rows>
void log_joint_block(const GaussianGate<T>& gate, const Rows& x, int64_t begin, int64_t n,
                     GaussianScratch<T>& scratch, double* out) {
  scratch.rows.fill(x, begin, n, gate.origin.data());
  log_joint(gate, n, scratch);
  const int64_t stride = padded_width(gate.n_tiles);
  for (int64_t r = 0; r < n; ++r)
    std::copy_n(scratch.joint.data() + r * stride, gate.n_tiles, out + r * gate.n_tiles);
}

// out[i, j] = log_weight_j - |F_j^T (x_i - mu_j)|^2 / 2
template <class T, class Rows>
void log_joint_all(const GaussianGate<T>& gate, const Rows& x, double* out, int n_threads) {
  const int64_t n_pieces = pieces_of(x.n_rows, gate.cost());
  parallel_for(n_pieces, n_threads, [&](int64_t t) {
    const Piece piece(x.n_rows, n_pieces, t);
    GaussianScratch<T> scratch(gate, kGateBlock);
    for (int64_t begin = piece.begin; begin < piece.end; begin += kGateBlock)
      log_joint_block(gate, x, begin, std::min(kGateBlock, piece.end - begin), scratch, out + begin * gate.n_tiles);
  });
}

}  // namespace svmosaic
