// The losses of the gate learner: value and slope of one row with all its outputs.
//
//   squared_hinge        sum_c max(0, 1 - y_c f_c)^2,  y_c = +1 for the row's class, else -1
//   log_loss             -log softmax(f)_label; of one output log(1 + exp(-y f))
//   squared_error        sum_c (f_c - t_c)^2
//   epsilon_insensitive  sum_c max(0, |f_c - t_c| - epsilon_c)
//   quantile             sum_c max(q_c (t_c - f_c), (q_c - 1) (t_c - f_c))
//
// A target is the position of the class, or one number per output.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace svmosaic {

enum class LearnerLoss { squared_hinge, log_loss, squared_error, epsilon_insensitive, quantile };

inline bool is_regression(LearnerLoss loss) { return loss != LearnerLoss::squared_hinge && loss != LearnerLoss::log_loss; }

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
    const double score = f[c];
    double value = 0, slope = 0;
    if (is_regression(loss)) {
      const double excess = score - target[c];
      if (loss == LearnerLoss::squared_error) {
        value = excess * excess;
        slope = 2 * excess;
      } else if (loss == LearnerLoss::epsilon_insensitive) {
        value = std::max(std::abs(excess) - parameter[c], 0.0);
        slope = value > 0 ? (excess > 0 ? 1 : -1) : 0;
      } else {
        slope = excess > 0 ? 1 - parameter[c] : excess < 0 ? -parameter[c] : 0;
        value = slope * excess;
      }
    } else {
      const double y = (n_outputs == 1 ? target[0] == 1 : target[0] == c) ? 1 : -1;
      if (loss == LearnerLoss::squared_hinge) {
        const double slack = std::max(1 - y * score, 0.0);  // in this order NaN stays NaN
        value = slack * slack;
        slope = -2 * y * slack;
      } else {
        const double far = std::exp(-std::abs(score));
        value = std::log1p(far) + std::max(0.0, -y * score);
        slope = -y * (y * score > 0 ? far : 1) / (1 + far);
      }
    }
    total += weight * value;
    f[c] = static_cast<T>(weight * slope);
  }
  return total;
}

}  // namespace svmosaic
