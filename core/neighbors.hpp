// Many small linear SVMs, one (or one per class) for each query, on the query's nearest training rows.
//
// A query whose neighbors are of one class needs no SVM. Of two classes it needs one, of more one per class, against the
// rest. Scores of the classes present are those of the SVMs; a class that is absent is put one below the lowest
// of them, and at most at -1.
// Every problem starts its own random numbers from the same seed: a query's answer depends neither on the
// other queries nor on the number of threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "dual_descent.hpp"
#include "parallel.hpp"

namespace svmosaic {

struct SmallReport {
  int64_t n_iter = 0;          // epochs
  double worst = 0;            // largest duality gap, relative to the objective at zero
  int64_t n_problems = 0, n_late = 0;

  void add(const SmallReport& other) {
    n_iter = std::max(n_iter, other.n_iter);
    worst = std::max(worst, other.worst);
    n_problems += other.n_problems;
    n_late += other.n_late;
  }
};

// One thread's buffers.
struct SmallScratch {
  std::vector<int32_t> block, order, label, present;
  std::vector<int8_t> y;
  std::vector<double> cost, curvature, alpha, v;

  SmallScratch(int64_t k, int64_t n_features)
      : block(k, 0), order(k), label(k), y(k), cost(k), curvature(k), alpha(k), v(n_features + 1) {}
};

// P - D of the problem at hand, from V and alpha that belong together.
template <class Rows>
double exact_gap(const Rows& x, const Design& design, const Target& target, const SmallScratch& at) {
  double gap = 0;
  for (int64_t r = 0; r < design.n_rows; ++r) {
    const double margin = at.y[r] * design.score(x, r, at.v.data());
    gap += target.loss.gap(target.threshold_of(r), margin, at.cost[r], at.alpha[r]);
  }
  return gap;
}

// Solve for the signs in the scratch; V is left there.
template <class Rows>
SmallReport solve_small_problem(const Rows& x, const Design& design, Loss loss, double tol, int64_t max_epochs,
                                const uint64_t* seed, SmallScratch& at) {
  const int64_t k = design.n_rows;
  const Target target{at.y.data(), nullptr, at.cost.data(), loss};
  DescentState state{};
  std::copy(seed, seed + 4, state.random);
  state.n_active = k;
  double total = 0;
  for (int64_t r = 0; r < k; ++r) {
    at.order[r] = static_cast<int32_t>(r);
    at.alpha[r] = 0;
    total += at.cost[r] * loss.value(slack_of(target.threshold_of(r), 0));
  }
  std::fill(at.v.begin(), at.v.end(), 0.0);
  SmallReport report;
  report.n_problems = 1;
  double gap = 0, aim = tol * total;
  while (true) {
    // A few epochs at a time: looking at all rows again now and then saves more than shrinking for long.
    const DescentReport done =
        dual_descent(x, design, target, at.curvature.data(), at.order.data(), state, at.alpha.data(), at.v.data(), aim,
                     std::min<int64_t>(50, max_epochs - report.n_iter), 1e300);
    report.n_iter += done.n_epochs;
    gap = exact_gap(x, design, target, at);
    if (gap <= tol * total || report.n_iter >= max_epochs) break;
    if (done.gap <= aim) aim *= 0.5;
    state.unshrink(k);
  }
  report.worst = gap / total;
  report.n_late = gap > tol * total;
  return report;
}

// Scores of one query from its neighbors, training rows `index`; scores has one entry per class (one for two classes).
template <class Rows>
SmallReport score_query(const Rows& x, const Rows& queries, int64_t q, const int32_t* index, int64_t k,
                        const int32_t* label, const double* cost, const double* norm, int64_t n_classes, Loss loss,
                        double tol, int64_t max_epochs, const uint64_t* seed, SmallScratch& at, double* scores) {
  for (int64_t r = 0; r < k; ++r) {
    at.label[r] = label[index[r]];
    at.cost[r] = cost[index[r]];
    at.curvature[r] = norm[index[r]];
  }
  at.present.assign(at.label.begin(), at.label.end());
  std::sort(at.present.begin(), at.present.end());
  at.present.erase(std::unique(at.present.begin(), at.present.end()), at.present.end());
  const int64_t n_present = static_cast<int64_t>(at.present.size());
  SmallReport report;
  if (n_present == 1) {
    if (n_classes == 2) {
      scores[0] = at.present[0] == 1 ? 1.0 : -1.0;
    } else {
      std::fill(scores, scores + n_classes, -1.0);
      scores[at.present[0]] = 1.0;
    }
    return report;
  }
  const Design design{index, at.block.data(), nullptr, k, 1, 1, 0, Sight::all};
  double lowest = 0;
  for (int64_t p = n_present == 2 ? 1 : 0; p < n_present; ++p) {
    for (int64_t r = 0; r < k; ++r) at.y[r] = at.label[r] == at.present[p] ? 1 : -1;
    report.add(solve_small_problem(x, design, loss, tol, max_epochs, seed, at));
    const double score = queries.dot(q, at.v.data());
    lowest = std::min(lowest, n_present == 2 ? -std::fabs(score) : score);
    if (n_classes == 2) {
      scores[0] = score;
      return report;
    }
    scores[at.present[p]] = score;
    if (n_present == 2) scores[at.present[0]] = -score;
  }
  const double below = std::min(-1.0, lowest - 1.0);
  for (int64_t c = 0; c < n_classes; ++c)
    if (!std::binary_search(at.present.begin(), at.present.end(), static_cast<int32_t>(c))) scores[c] = below;
  return report;
}

}  // namespace svmosaic
