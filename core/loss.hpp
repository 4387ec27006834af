// The one family of losses, of a row with margin m = s f, threshold t and cost c:
//
//   c max(0, t - m)^p ,   p = 1 or 2
//
//   p   value (of the slack u = max(0, t - m))   pull = -d value / d m   dual term, t a less   dual bounds
//   1   u                                        [u > 0]                 0                     0 <= a <= c
//   2   u^2                                      2 u                     a^2 / (4 c)           0 <= a
//
// The dual term is diag a^2 / 2 with diag = 1 / (2 c) for p = 2. Kernels take p as data and ask here for everything else.
#pragma once

#include <cstdint>
#include <limits>

namespace svmosaic {

inline double slack_of(double threshold, double margin) { return margin < threshold ? threshold - margin : 0; }

struct Loss {
  int power;

  double value(double slack) const { return power == 2 ? slack * slack : slack; }
  double pull(double slack) const { return power == 2 ? 2 * slack : slack > 0; }
  double diag(double cost) const { return power == 2 ? 0.5 / cost : 0; }
  double upper(double cost) const { return power == 2 ? std::numeric_limits<double>::infinity() : cost; }

  // What a row adds to the duality gap where V = V(a): the loss it pays, less what its dual earns.
  double gap(double threshold, double margin, double cost, double a) const {
    return cost * value(slack_of(threshold, margin)) - a * (threshold - margin) + 0.5 * diag(cost) * a * a;
  }
};

// What a problem asks of each row's score. Rows of cost zero pay nothing; they must not be visited by dual descent.
struct Target {
  const int8_t* sign;
  const double *threshold, *cost;  // threshold null: all ones
  Loss loss;

  double threshold_of(int64_t r) const { return threshold ? threshold[r] : 1.0; }
};

}  // namespace svmosaic
