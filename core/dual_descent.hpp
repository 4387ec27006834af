// Dual coordinate descent for the block-structured linear SVM
//
//   minimize   P(V) = 1/2 ||V||^2 + sum_r c_r loss(m_r) ,   m_r = s_r f_r ,   f_r = sum_a coef_ra <V[block_ra], x_r>
//   maximize   D(a) = sum_r t_r a_r - 1/2 ||V||^2 - 1/2 sum_r diag_r a_r^2 ,   0 <= a_r <= upper_r ,
//              V = sum_r a_r s_r (coef_r (x) x_r)
//
// with the losses max(0, t_r - m_r)^p, diag and upper of loss.hpp. Along coordinate r, the others held, the maximizer is
// the clipped Newton step
//   a_r - (m_r - t_r + diag_r a_r) / (|x_r|^2 |coef_r|^2 + diag_r) .
// Invariant: V equals its sum above before and after every step (to rounding).
//
// With V so tied to a, the duality gap is a sum of one non-negative term per row (Loss::gap), which an epoch adds up from
// the margins it computes anyway: an estimate of the gap for nothing.
//
// Hsieh et al., ICML 2008 (Algorithm 3 with shrinking), with one cost per row and block features.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>

#include "blend.hpp"
#include "design.hpp"
#include "loss.hpp"
#include "random.hpp"
#include "rows.hpp"

namespace svmosaic {

// What has to survive between two calls on the same problem.
struct DescentState {
  uint64_t random[4];
  int64_t n_active;         // rows order[0 .. n_active) are visited, the others are shrunk away
  double gradient_max = std::numeric_limits<double>::infinity();   // of the last epoch: the bounds
  double gradient_min = -std::numeric_limits<double>::infinity();  // past which a row is shrunk

  void unshrink(int64_t n) {
    n_active = n;
    gradient_max = std::numeric_limits<double>::infinity();
    gradient_min = -std::numeric_limits<double>::infinity();
  }
};

template <class Rows, class Touch, class Real>
inline double dual_epoch(const Rows& x, const Design& design, Touch& touch, const Target& target,
                         const double* curvature, int32_t* order, DescentState& state, double* alpha, Real* v) {
  Random{state.random}.shuffle(order, state.n_active);
  const double infinity = std::numeric_limits<double>::infinity();
  double gap = 0, gradient_max = -infinity, gradient_min = infinity;
  for (int64_t s = 0; s < state.n_active; ++s) {
    // The order is random: ask for what the coming visits need while this one computes.
    if (s + 8 < state.n_active) {
      const int32_t later = order[s + 8];
      prefetch(alpha + later);
      prefetch(target.cost + later);
      prefetch(curvature + later);
      prefetch(target.sign + later);
      if (target.threshold) prefetch(target.threshold + later);
      x.prefetch(design.row(order[s + 2]));
      design.prefetch(order[s + 2]);
    }
    const int64_t r = order[s];
    const double c = target.cost[r], a = alpha[r], t = target.threshold_of(r);
    const double diag = target.loss.diag(c), upper = target.loss.upper(c);
    const double margin = target.sign[r] * static_cast<double>(touch.score(r, v));
    const double gradient = margin - t + diag * a;
    gap += target.loss.gap(t, margin, c, a);

    double projected = gradient;
    bool shrink = false;
    if (a <= 0) {
      shrink = gradient > state.gradient_max;
      if (projected > 0) projected = 0;
    } else if (a >= upper) {
      shrink = gradient < state.gradient_min;
      if (projected < 0) projected = 0;
    }
    if (shrink) {
      --state.n_active;
      order[s] = order[state.n_active];
      order[state.n_active] = static_cast<int32_t>(r);
      --s;
      continue;
    }
    if (projected > gradient_max) gradient_max = projected;
    if (projected < gradient_min) gradient_min = projected;
    if (std::fabs(projected) < 1e-14) continue;

    // An all-zero row without bias has curvature 0 and margin 0 whatever V is: it pays its loss in
    // full, so its dual goes to a bound, which the clipping does for a huge step.
    double moved = a - gradient / (curvature[r] + diag > 1e-300 ? curvature[r] + diag : 1e-300);
    if (moved < 0) moved = 0;
    if (moved > upper) moved = upper;
    alpha[r] = moved;
    touch.add(r, static_cast<Real>((moved - a) * target.sign[r]), v);
  }
  // A bound that no row violates would shrink everything at once: lift it (as liblinear does).
  state.gradient_max = gradient_max > 0 ? gradient_max : infinity;
  state.gradient_min = gradient_min < 0 ? gradient_min : -infinity;
  return gap;
}

struct DescentReport {
  int64_t n_epochs;
  double gap;  // the last epoch's estimate, over the rows it visited
};

// Epochs until the estimated gap is at most `aim`, or `max_epochs`, or `max_seconds` have gone
// by (so that the caller can look for an interrupt).
template <class Rows, class Real>
DescentReport dual_descent(const Rows& x, const Design& design, const Target& target, const double* curvature,
                           int32_t* order, DescentState& state, double* alpha, Real* v, double aim, int64_t max_epochs,
                           double max_seconds) {
  using clock = std::chrono::steady_clock;
  const auto start = clock::now();
  return with_touch<Real>(x, design, [&](const auto& touching) {
    auto touch = touching();
    using Touch = decltype(touch);
    PaddedBlocks<Real> blocks(v, design.n_blocks, x.n_features + 1, touch.stride());
    DescentReport report{0, std::numeric_limits<double>::infinity()};
    while (report.n_epochs < max_epochs) {
      report.gap = in_copies<Touch, dual_epoch<Rows, Touch, Real>>(x, design, touch, target, curvature, order, state, alpha,
                                                                   blocks.begin_in(v));
      ++report.n_epochs;
      if (report.gap <= aim) break;
      if (std::chrono::duration<double>(clock::now() - start).count() > max_seconds) break;
    }
    blocks.keep_in(v);
    return report;
  });
}

}  // namespace svmosaic
