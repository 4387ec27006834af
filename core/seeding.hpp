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
  std::vector<double> norm(n), closest(n, std::numeric_limits<double>::infinity()), nearer(n_trials * n), up_to(n),
      centers(n_trials * stride), center_norm(n_trials), sums(n_pieces * n_trials);
  for (int64_t i = 0; i < n; ++i) norm[i] = x.squared_norm(i);
  std::vector<int32_t> drawn(n_trials);
  for (int64_t c = 0; c < n_centers; ++c) {
    const int64_t m = c == 0 ? 1 : n_trials;
    if (c == 0) {
      drawn[0] = chosen[0];
    } else {
      double total = 0;
      for (int64_t i = 0; i < n; ++i) up_to[i] = total += weight[i] * closest[i];
      for (int64_t t = 0; t < m; ++t) {
        const double share = uniform[(c - 1) * n_trials + t] * total;
        const int64_t at = std::lower_bound(up_to.begin(), up_to.end(), share) - up_to.begin();
        drawn[t] = static_cast<int32_t>(std::min(at, n - 1));
      }
    }
    for (int64_t t = 0; t < m; ++t) {
      x.unpack(drawn[t], 1.0, centers.data() + t * stride);
      center_norm[t] = norm[drawn[t]];
    }
    team.run(n_pieces, [&](int64_t p) {
      nearer_of_piece(x, norm.data(), weight, centers.data(), center_norm.data(), m, closest.data(), Piece(n, n_pieces, p),
                      nearer.data(), sums.data() + p * n_trials);
    });
    int64_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (int64_t t = 0; t < m; ++t) {
      double sum = 0;
      for (int64_t p = 0; p < n_pieces; ++p) sum += sums[p * n_trials + t];
      if (sum < least) least = sum, best = t;
    }
    chosen[c] = drawn[best];
    std::copy_n(nearer.data() + best * n, n, closest.data());
  }
}

}  // namespace svmosaic
