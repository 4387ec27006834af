// Seeds of k-means by k-means++ with several trials per center (Arthur and Vassilvitskii, 2007): a center is drawn with
// probability proportional to weight times squared distance from the centers so far, and of some such draws the one that
// leaves the smallest sum of these is kept. Rows are compared in pieces cut by their number alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "parallel.hpp"
#include "passes.hpp"

namespace svmosaic {

// closest[i] and the squared distances from all rows of the piece to some centers, whichever is less, one line of `n` per
// center; and the weighted sums of each line.
template <class Rows>
SVMOSAIC_CLONES void nearer_of_piece(const Rows& x, const double* norm, const double* weight, const double* centers,
                                     const double* center_norm, int64_t n_centers, const double* closest, Piece piece,
                                     double* nearer, double* sums) {
  const int64_t stride = x.n_features + 1;
  for (int64_t c = 0; c < n_centers; ++c) sums[c] = 0;
  for (int64_t i = piece.begin; i < piece.end; ++i)
    for (int64_t c = 0; c < n_centers; ++c) {
      const double away = std::max(0.0, norm[i] + center_norm[c] - 2 * x.dot(i, centers + c * stride));
      nearer[c * x.n_rows + i] = std::min(closest[i], away);
      sums[c] += weight[i] * nearer[c * x.n_rows + i];
    }
}

// chosen[0] is given; chosen[c] for c >= 1 is the best of the draws at the shares uniform[(c - 1) * n_trials ...] of the
// total. Rows without bias.
template <class Rows>
void seed_centers(const Rows& x, const double* weight, const double* uniform, int64_t n_trials, int64_t n_centers,
                  int32_t* chosen, int n_threads) {
  const int64_t n = x.n_rows, stride = x.n_features + 1;
  const int64_t n_pieces = pieces_of(n, 8 * (8 + x.n_features) * n_trials);
  Team team(static_cast<int>(std::min<int64_t>(n_threads, n_pieces)));
  // What the last center kept and what the next ones are compared in take turns.
  std::vector<double> norm(n), lines((2 * n_trials + 1) * n), centers(n_trials * stride), center_norm(n_trials),
      sums(n_pieces * n_trials), up_to(n_pieces);
  double *nearer = lines.data(), *other = nearer + n_trials * n;
  const double* closest = other + n_trials * n;
  std::fill_n(lines.data() + 2 * n_trials * n, n, std::numeric_limits<double>::infinity());
  for (int64_t i = 0; i < n; ++i) norm[i] = x.squared_norm(i);
  // The row at which the running sum of weight times squared distance reaches a share of its total.
  const auto draw = [&](double share) {
    const int64_t p = std::min<int64_t>(std::lower_bound(up_to.begin(), up_to.end(), share) - up_to.begin(), n_pieces - 1);
    const Piece piece(n, n_pieces, p);
    double sum = p == 0 ? 0 : up_to[p - 1];
    for (int64_t i = piece.begin; i < piece.end; ++i)
      if ((sum += weight[i] * closest[i]) >= share) return static_cast<int32_t>(i);
    return static_cast<int32_t>(piece.end - 1);
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
      center_norm[t] = norm[drawn[t]];
    }
    team.run(n_pieces, [&](int64_t p) {
      nearer_of_piece(x, norm.data(), weight, centers.data(), center_norm.data(), m, closest, Piece(n, n_pieces, p), nearer,
                      sums.data() + p * n_trials);
    });
    int64_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (int64_t t = 0; t < m; ++t) {
      double sum = 0;
      for (int64_t p = 0; p < n_pieces; ++p) sum += sums[p * n_trials + t];
      if (sum < least) least = sum, best = t;
    }
    chosen[c] = drawn[best];
    closest = nearer + best * n;
    std::swap(nearer, other);
    double total = 0;
    for (int64_t p = 0; p < n_pieces; ++p) up_to[p] = total += sums[p * n_trials + best];
  }
}

}  // namespace svmosaic
