// The losses of the gate learner: value and slope of one row with all its outputs.
//
//   squared_hinge        sum_c max(0, 1 - y_c f_c)^2,  y_c = +1 for the row's class, else -1
//   log_loss             -log softmax(f)_label; of one output log(1 + exp(-y f))
//   squared_error        sum_c (f_c - t_c)^2
//   epsilon_insensitive  sum_c max(0, |f_c - t_c| - epsilon_c), and squared_epsilon_insensitive its squares
//   quantile             sum_c max(q_c (t_c - f_c), (q_c - 1) (t_c - f_c))
//   expectile            sum_c q_c max(0, t_c - f_c)^2 + (1 - q_c) max(0, f_c - t_c)^2
//
// All but the log-loss are sums over rows of the family in loss.hpp. A target is the index of the class, or one number per
// output.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "loss.hpp"

namespace svmosaic {

enum class LearnerLoss {
  squared_hinge,
  log_loss,
  squared_error,
  epsilon_insensitive,
  squared_epsilon_insensitive,
  quantile,
  expectile
};

inline bool is_regression(LearnerLoss loss) { return loss != LearnerLoss::squared_hinge && loss != LearnerLoss::log_loss; }

// What the row r of the family (loss.hpp) with margin `margin` pays, and the slope of that by the margin.
struct Paid {
  double value, slope;
};

inline Paid paid(int power, double threshold, double margin, double cost) {
  const double slack = slack_of(threshold, margin);
  return {cost * Loss{power}.value(slack), -cost * Loss{power}.pull(slack)};
}

inline Paid log_loss(double margin) {
  const double far = std::exp(-std::abs(margin));
  return {std::log1p(far) + std::max(0.0, -margin), -(margin > 0 ? far : 1) / (1 + far)};
}

// f holds the scores, and then the slopes, both times weight; returns the loss. `parameter` is epsilon or q per output.
template <class T>
inline double loss_and_slopes(LearnerLoss loss, const double* parameter, const T* target, double weight, int64_t n_outputs,
                              T* f) {
  double total = 0;
  if (loss == LearnerLoss::log_loss && n_outputs > 1) {
    const int64_t label = static_cast<int64_t>(target[0]);
    const double most = *std::max_element(f, f + n_outputs), at_label = f[label];
    for (int64_t c = 0; c < n_outputs; ++c) total += std::exp(f[c] - most);
    for (int64_t c = 0; c < n_outputs; ++c)
      f[c] = static_cast<T>(weight * (std::exp(f[c] - most) / total - (c == label ? 1 : 0)));
    return weight * (std::log(total) + most - at_label);
  }
  for (int64_t c = 0; c < n_outputs; ++c) {
    double slope;
    if (is_regression(loss)) {
      const bool tilted = loss == LearnerLoss::quantile || loss == LearnerLoss::expectile;
      const int power = loss == LearnerLoss::quantile || loss == LearnerLoss::epsilon_insensitive ? 1 : 2;
      const double epsilon = tilted || loss == LearnerLoss::squared_error ? 0 : parameter[c];
      const Paid above = paid(power, target[c] - epsilon, f[c], tilted ? parameter[c] : 1),
                 below = paid(power, -target[c] - epsilon, -f[c], tilted ? 1 - parameter[c] : 1);
      total += weight * (above.value + below.value);
      slope = above.slope - below.slope;
    } else {
      const double y = (n_outputs == 1 ? target[0] == 1 : target[0] == c) ? 1 : -1;
      const Paid one = loss == LearnerLoss::log_loss ? log_loss(y * f[c]) : paid(2, 1, y * f[c], 1);
      total += weight * one.value;
      slope = y * one.slope;
    }
    f[c] = static_cast<T>(weight * slope);
  }
  return total;
}

}  // namespace svmosaic
