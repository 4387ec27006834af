// The threaded parts of the second-order solver, as in threads.cpp.
#include <cstdio>
#include <cstdlib>

#include "newton.hpp"
#include "random.hpp"

using namespace svmosaic;

int main() {
  const int64_t n = 60000, d = 20, k = 3;
  uint64_t state[4] = {1, 2, 3, 4};
  Random random{state};
  std::vector<double> x(n * d), margin(n), change(n), cost(n, 1.0), center(n, 0.5);
  for (auto* values : {&x, &margin, &change})
    for (auto& v : *values) v = random.below(2001) / 1000.0 - 1.0;
  std::vector<int64_t> offsets{0, n / 2, n / 2, n};
  const DenseRows<double> rows{x.data(), n, d, d, 1.0};
  const Response response{center.data(), cost.data(), nullptr, 0.5};
  const auto everything = [&](int n_threads) {
    std::vector<double> alpha(n), curvature(n), hessians(k * (d + 1) * (d + 1));
    std::vector<double> moved = margin;
    const ResponseSums sums =
        respond(response, n, moved.data(), change.data(), 0.1, 0.1, alpha.data(), curvature.data(), n_threads);
    std::vector<int32_t> active(n);
    std::vector<int64_t> begin(k + 1);
    const int64_t n_active = active_members(curvature.data(), nullptr, offsets.data(), k, active.data(), begin.data(), n_threads);
    tile_hessians(rows, {nullptr, nullptr, nullptr, n, 1, k, k, Sight::all}, active.data(), begin.data(), k, curvature.data(), hessians.data(), n_threads);
    alpha.push_back(pull(response, n, margin.data(), change.data(), 0.3, n_threads));
    alpha.insert(alpha.end(), {sums.loss, sums.dual, sums.proximal});
    alpha.insert(alpha.end(), active.begin(), active.begin() + n_active);
    alpha.insert(alpha.end(), hessians.begin(), hessians.end());
    return alpha;
  };
  const bool same = everything(4) == everything(1);
  std::puts(same ? "threads_newton: ok" : "FAILED: four threads give other bits than one");
  return same ? EXIT_SUCCESS : EXIT_FAILURE;
}
