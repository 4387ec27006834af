// Stochastic gradient descent for the block-structured linear SVM
//
//   minimize   1/2 ||V||^2 + sum_r c_r loss(m_r) ,   m_r = s_r f_r ,   f_r = sum_a coef_ra <V[block_ra], (x_r, bias)>
//
// with the losses of loss.hpp, which, divided by C n with c_r = C w_r, is lambda / 2 ||V||^2 + 1/n sum_r w_r loss_r with
// lambda = 1 / (C n).
// Step t on row r, with the step size 1 / (lambda (t + t0)):
//
//   V += w_r / (lambda (t + t0)) * pull_r s_r (coef_r (x) x_r)
//   V *= 1 - skip / (t + t0)     every `skip` steps, so that the steps between touch only the row's own blocks
//
// reach[r] = w_r / lambda = n c_r stands in the place of the costs: it is all that the step needs of C, n and the sample weights. With `free_bias` the last
// weight of every block is not shrunk (the biases of the paper are not penalised).
// Ladicky and Torr, ICML 2011, Algorithm 1, after SVMSGD2 of Bordes, Bottou and Gallinari, JMLR 2009.
//
// Averaging: A is the mean of the iterates, the i-th weighing i (Lacoste-Julien, Schmidt and Bach, 2012: forgets the
// start, and needs no parameter). Weights are constant within a window of `skip` steps. At the start of a window A moves
// a share rho towards V; a change made j steps into the window is in the last skip - j of its skip iterates, and is added
// to A with that share of rho. So averaging, too, touches only the row's blocks between two shrinks. Until its window is
// full, a change counts as if the rest of the window brought no other.
#pragma once

#include <cstdint>

#include "design.hpp"
#include "loss.hpp"
#include "rows.hpp"

namespace svmosaic {

// Where a run stands, so that the next call goes on as if there had been one.
struct SgdState {
  int64_t t;        // steps made
  int64_t left;     // steps until the next shrink
  double averaged;  // sum of the weights of the iterates in A
  double share;     // rho of the current window
};

// One step on each of the rows order[begin .. end), or on the rows begin .. end themselves where `order` is null.
template <class Rows, class Real>
SVMOSAIC_CLONES void sgd_steps(const Rows& x, const Design& design, const Target& target, bool free_bias,
                               const int32_t* order, int64_t begin, int64_t end, double t0, int64_t skip,
                               SgdState& state, Real* v, Real* average) {
  const int64_t stride = x.n_features + 1;
  for (int64_t s = begin; s < end; ++s) {
    if (order && s + 2 < end) x.prefetch(design.row(order[s + 2]));
    if (average && state.left == skip) {
      const double weight = (state.t + 0.5 * (skip + 1)) * skip;
      state.averaged += weight;
      state.share = weight / state.averaged;
      const Real share = static_cast<Real>(state.share);
      for (int64_t i = 0; i < design.n_blocks * stride; ++i) average[i] += share * (v[i] - average[i]);
    }
    const int64_t r = order ? order[s] : s;
    const double margin = target.sign[r] * static_cast<double>(design.score(x, r, v));
    const double slack = slack_of(target.threshold_of(r), margin);
    if (slack > 0) {
      const double step = target.cost[r] / (state.t + t0) * target.sign[r] * target.loss.pull(slack);
      design.add(x, r, static_cast<Real>(step), v);
      if (average) design.add(x, r, static_cast<Real>(step * state.share * state.left / skip), average);
    }
    if (--state.left == 0) {
      const Real kept = static_cast<Real>(1 - skip / (state.t + t0));
      for (int64_t b = 0; b < design.n_blocks; ++b) {
        Real* block = v + b * stride;
        for (int64_t f = 0; f < stride - free_bias; ++f) block[f] *= kept;
      }
      state.left = skip;
    }
    ++state.t;
  }
}

}  // namespace svmosaic
