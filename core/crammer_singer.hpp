// Dual coordinate descent for the multiclass SVM of Crammer and Singer over blocks of weights
//
//   minimize   P(V) = 1/2 sum_m ||V_m||^2 + sum_r c_r max_m (e_rm + f_rm - f_ry) ,   e_rm = [m != y_r]
//   maximize   D(a) = -1/2 sum_m ||V_m||^2 - sum_rm e_rm a_rm ,    V_m = sum_r a_rm (coef_r (x) x_r) ,
//              sum_m a_rm = 0 ,   a_rm <= c_r [m = y_r]
//
// with f_rm = sum_a coef_ra <V_m[block_ra], x_r>. All the duals of a row move at once. With G_m = e_rm + f_rm,
// q = |x_r|^2 |coef_r|^2, B_m = G_m - q a_m and the bounds C_m = c_r [m = y_r], the maximizer is
//
//   a_m = min(C_m, (beta - B_m) / q) ,   beta such that they sum to zero.
//
// Those below their bound are the m with D_m = B_m + q C_m > beta; as the bounds sum to c_r,
// beta = (sum of their D_m - q c_r) / their number: take the D_m from the largest down until the next is not above beta.
//
// With V tied to a, the duality gap is a sum of non-negative terms, one per row,
//   P - D = sum_r  c_r (max_m G_m - G_y) + sum_m a_rm G_m .
// Crammer and Singer, JMLR 2002; Keerthi et al., KDD 2008.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "design.hpp"
#include "random.hpp"
#include "rows.hpp"

namespace svmosaic {

// The duals of one row that answer the gradients G, the others held. `sorted` is scratch.
inline void answer_row(const double* gradient, double q, double cost, int64_t y, int64_t n_classes, const double* alpha,
                       double* sorted, double* moved) {
  if (q <= 0) {
    // Scores 0 whatever V is: the loss is paid in full, by the other classes alike.
    for (int64_t m = 0; m < n_classes; ++m) moved[m] = m == y ? cost : -cost / (n_classes - 1);
    return;
  }
  // In units of the duals, from the largest: u_m = (D_m - D_top) / q and tau = (beta - D_top) / q keep their digits
  // however small q is, and a_m = C_m + min(0, tau - u_m).
  int64_t top = 0;
  for (int64_t m = 0; m < n_classes; ++m) {
    moved[m] = gradient[m] - q * alpha[m] + (m == y ? q * cost : 0.0);
    if (moved[m] > moved[top]) top = m;
  }
  const double shift = (top == y ? cost : 0.0) - alpha[top];
  for (int64_t m = 0; m < n_classes; ++m)
    sorted[m] = moved[m] = (gradient[m] - gradient[top]) / q + ((m == y ? cost : 0.0) - alpha[m] - shift);
  std::sort(sorted, sorted + n_classes, std::greater<double>());
  double sum = sorted[0] - cost;
  int64_t n = 1;
  while (n < n_classes && sum < n * sorted[n]) sum += sorted[n++];
  const double tau = sum / n;
  double others = 0;
  for (int64_t m = 0; m < n_classes; ++m) {
    if (m == y) continue;
    moved[m] = std::min(0.0, tau - moved[m]);
    others -= moved[m];
  }
  // What rounding leaves of the sum, the row's own dual takes.
  moved[y] = std::min(cost, others);
  if (others > cost)
    for (int64_t m = 0; m < n_classes; ++m)
      if (m != y) moved[m] *= cost / others;
}

// One visit of every row; returns the estimated gap. V is class by class, alpha row by row.
template <class Rows, class Real>
SVMOSAIC_CLONES double crammer_singer_epoch(const Rows& x, const Design& design, const int32_t* y, const double* cost,
                                            const double* curvature, int64_t n_classes, const int32_t* order,
                                            int64_t n_order, double* scratch, double* alpha, Real* v) {
  const int64_t size = design.n_blocks * (x.n_features + 1);
  double *gradient = scratch, *sorted = scratch + n_classes, *moved = scratch + 2 * n_classes;
  double gap = 0;
  for (int64_t s = 0; s < n_order; ++s) {
    if (s + 2 < n_order) x.prefetch(design.row(order[s + 2]));
    const int64_t r = order[s];
    double* a = alpha + r * n_classes;
    double largest = -1e300, paid = 0;
    for (int64_t m = 0; m < n_classes; ++m) {
      gradient[m] = static_cast<double>(design.score(x, r, v + m * size)) + (m == y[r] ? 0.0 : 1.0);
      largest = std::max(largest, gradient[m]);
      paid += a[m] * gradient[m];
    }
    const double here = cost[r] * (largest - gradient[y[r]]) + paid;
    gap += here;
    if (here <= 1e-14 * cost[r]) continue;  // optimal already
    answer_row(gradient, curvature[r], cost[r], y[r], n_classes, a, sorted, moved);
    for (int64_t m = 0; m < n_classes; ++m) {
      if (moved[m] == a[m]) continue;
      design.add(x, r, static_cast<Real>(moved[m] - a[m]), v + m * size);
      a[m] = moved[m];
    }
  }
  return gap;
}

struct CrammerSingerReport {
  int64_t n_epochs;
  double gap;
};

// Epochs until the estimated gap is at most `target`, or `max_epochs`, or `max_seconds` have gone by.
template <class Rows, class Real>
CrammerSingerReport crammer_singer(const Rows& x, const Design& design, const int32_t* y, const double* cost,
                                   const double* curvature, int64_t n_classes, int32_t* order, int64_t n_order,
                                   uint64_t* random, double* alpha, Real* v, double target, int64_t max_epochs,
                                   double max_seconds) {
  using clock = std::chrono::steady_clock;
  const auto start = clock::now();
  std::vector<double> scratch(3 * n_classes);
  CrammerSingerReport report{0, 0};
  while (report.n_epochs < max_epochs) {
    Random{random}.shuffle(order, n_order);
    report.gap = crammer_singer_epoch(x, design, y, cost, curvature, n_classes, order, n_order, scratch.data(), alpha, v);
    ++report.n_epochs;
    if (report.gap <= target) break;
    if (std::chrono::duration<double>(clock::now() - start).count() > max_seconds) break;
  }
  return report;
}

}  // namespace svmosaic
