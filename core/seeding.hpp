// Seeds of k-means by k-means++ with several trials per center (Arthur and Vassilvitskii, 2007): a center is drawn with
// probability proportional to weight times squared distance from the centers so far, and of some such draws the one that
// leaves the smallest sum of these is kept. Rows are compared in pieces cut by their number alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "parallel.hpp"
#include "passes.hpp"
#include "rows.hpp"

namespace svmosaic {

// Rows that are compared with a center at a time, one in each lane.
constexpr int64_t kSeedLanes = 8;

// Dense rows in blocks of kSeedLanes, feature by feature, and their squared norms; the last block is filled up with zeros.
template <class Rows>
struct SeedRows {
  const Rows& x;
  int64_t n_blocks;
  std::vector<double> value, norm;  // [block][feature][lane], [block][lane]

  explicit SeedRows(const Rows& x) : x(x), n_blocks((x.n_rows + kSeedLanes - 1) / kSeedLanes) {
    if (kDense<Rows>) value.resize(n_blocks * kSeedLanes * x.n_features);
    norm.resize(n_blocks * kSeedLanes);
  }

  void fill(Piece blocks) {
    for (int64_t i = blocks.begin * kSeedLanes; i < std::min(blocks.end * kSeedLanes, x.n_rows); ++i) {
      norm[i] = x.squared_norm(i);
      if constexpr (kDense<Rows>) {
        double* to = value.data() + i / kSeedLanes * kSeedLanes * x.n_features + i % kSeedLanes;
        x.each(i, [&](int64_t f, double v) { to[f * kSeedLanes] = v; });
      }
    }
  }
};

// The products of a block of rows with M centers.
template <int M>
inline void seed_products(const double* x, int64_t n_features, const double* centers, int64_t stride, double* out) {
#if defined(__GNUC__)
  using Vector = ShortLanes<double>;
  constexpr int w = sizeof(Vector) / sizeof(double), k = kSeedLanes / w;
  Vector sum[M][k] = {};
  for (int64_t f = 0; f < n_features; ++f) {
    Vector value[k];
    for (int part = 0; part < k; ++part) value[part] = load_vector<Vector>(x + f * kSeedLanes + part * w);
    for (int m = 0; m < M; ++m)
      for (int part = 0; part < k; ++part) sum[m][part] += value[part] * centers[m * stride + f];
  }
#else
  double sum[M][kSeedLanes] = {};
  for (int64_t f = 0; f < n_features; ++f)
    for (int m = 0; m < M; ++m)
      for (int64_t lane = 0; lane < kSeedLanes; ++lane)
        sum[m][lane] += x[f * kSeedLanes + lane] * centers[m * stride + f];
#endif
  std::memcpy(out, sum, sizeof(sum));
}

template <class Rows>
inline void seed_products(const SeedRows<Rows>& rows, int64_t block, const double* centers, int64_t n_centers,
                          double* out) {
  const int64_t d = rows.x.n_features, stride = d + 1;
  if constexpr (kDense<Rows>) {
    const double* x = rows.value.data() + block * kSeedLanes * d;
    int64_t c = 0;
    for (; c + 4 <= n_centers; c += 4) seed_products<4>(x, d, centers + c * stride, stride, out + c * kSeedLanes);
    for (; c < n_centers; ++c) seed_products<1>(x, d, centers + c * stride, stride, out + c * kSeedLanes);
  } else {
    for (int64_t c = 0; c < n_centers; ++c)
      for (int64_t lane = 0; lane < kSeedLanes; ++lane) {
        const int64_t i = block * kSeedLanes + lane;
        out[c * kSeedLanes + lane] = i < rows.x.n_rows ? rows.x.dot(i, centers + c * stride) : 0.0;
      }
  }
}

// closest[i] and the squared distances from all rows of the blocks to some centers, whichever is less, one line per
// center; and the weighted sums of each line.
template <class Rows>
SVMOSAIC_CLONES void nearer_of_piece(const SeedRows<Rows>& rows, const double* weight, const double* centers,
                                     const double* center_norm, int64_t n_centers, const double* closest, Piece blocks,
                                     double* nearer, double* sums) {
  const int64_t line = rows.n_blocks * kSeedLanes;
  std::vector<double> products(n_centers * kSeedLanes), by_lane(n_centers * kSeedLanes);
  for (int64_t block = blocks.begin; block < blocks.end; ++block) {
    const int64_t first = block * kSeedLanes;
    seed_products(rows, block, centers, n_centers, products.data());
    for (int64_t c = 0; c < n_centers; ++c) {
      double *to = nearer + c * line + first, *sum = by_lane.data() + c * kSeedLanes;
      const double *product = products.data() + c * kSeedLanes, *norm = rows.norm.data() + first;
      for (int64_t lane = 0; lane < kSeedLanes; ++lane) {
        const double away = std::max(0.0, norm[lane] + center_norm[c] - 2 * product[lane]);
        to[lane] = std::min(closest[first + lane], away);
        sum[lane] += weight[first + lane] * to[lane];
      }
    }
  }
  for (int64_t c = 0; c < n_centers; ++c) {
    sums[c] = 0;
    for (int64_t lane = 0; lane < kSeedLanes; ++lane) sums[c] += by_lane[c * kSeedLanes + lane];
  }
}

// chosen[0] is given; chosen[c] for c >= 1 is the best of the draws at the shares uniform[(c - 1) * n_trials ...] of the
// total. Rows without bias.
template <class Rows>
void seed_centers(const Rows& x, const double* row_weight, const double* uniform, int64_t n_trials, int64_t n_centers,
                  int32_t* chosen, int n_threads) {
  const int64_t n = x.n_rows, stride = x.n_features + 1;
  SeedRows<Rows> rows(x);
  const int64_t line = rows.n_blocks * kSeedLanes;
  const int64_t n_pieces = std::min(rows.n_blocks, pieces_of(n, 8 * (8 + x.n_features) * n_trials));
  Team team(static_cast<int>(std::min<int64_t>(n_threads, n_pieces)));
  // What the last center kept and what the next ones are compared in take turns.
  std::vector<double> weight(line), lines((2 * n_trials + 1) * line), centers(n_trials * stride), center_norm(n_trials),
      sums(n_pieces * n_trials), up_to(n_pieces);
  std::copy_n(row_weight, n, weight.data());
  double *nearer = lines.data(), *other = nearer + n_trials * line;
  const double* closest = other + n_trials * line;
  std::fill_n(lines.data() + 2 * n_trials * line, line, std::numeric_limits<double>::infinity());
  team.run(n_pieces, [&](int64_t p) { rows.fill(Piece(rows.n_blocks, n_pieces, p)); });
  // The row at which the running sum of weight times squared distance reaches a share of its total.
  const auto draw = [&](double share) {
    const int64_t p = std::min<int64_t>(std::lower_bound(up_to.begin(), up_to.end(), share) - up_to.begin(), n_pieces - 1);
    const Piece blocks(rows.n_blocks, n_pieces, p);
    const int64_t end = std::min(n, blocks.end * kSeedLanes);
    double sum = p == 0 ? 0 : up_to[p - 1];
    for (int64_t i = blocks.begin * kSeedLanes; i < end; ++i)
      if ((sum += weight[i] * closest[i]) >= share) return static_cast<int32_t>(i);
    return static_cast<int32_t>(end - 1);
  };
  std::vector<int32_t> drawn(n_trials);
  for (int64_t c = 0; c < n_centers; ++c) {
    const int64_t m = c == 0 ? 1 : n_trials;
    if (c == 0) {
      drawn[0] = chosen[0];
    } else {
      for (int64_t t = 0; t < m; ++t) drawn[t] = draw(uniform[(c - 1) * n_trials + t] * up_to.back());
    }
    for (int64_t t = 0; t < m; ++t) {
      x.unpack(drawn[t], 1.0, centers.data() + t * stride);
      center_norm[t] = rows.norm[drawn[t]];
    }
    team.run(n_pieces, [&](int64_t p) {
      nearer_of_piece(rows, weight.data(), centers.data(), center_norm.data(), m, closest,
                      Piece(rows.n_blocks, n_pieces, p), nearer, sums.data() + p * n_trials);
    });
    int64_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (int64_t t = 0; t < m; ++t) {
      double sum = 0;
      for (int64_t p = 0; p < n_pieces; ++p) sum += sums[p * n_trials + t];
      if (sum < least) least = sum, best = t;
    }
    chosen[c] = drawn[best];
    closest = nearer + best * line;
    std::swap(nearer, other);
    double total = 0;
    for (int64_t p = 0; p < n_pieces; ++p) up_to[p] = total += sums[p * n_trials + best];
  }
}

}  // namespace svmosaic
