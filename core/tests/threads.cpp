// The threaded parts of the core without Python, for ThreadSanitizer: same answers on one thread and on several, at
// once from several callers. Run by tools/sanitize.
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "dual_descent.hpp"
#include "mixture.hpp"
#include "passes.hpp"
#include "random.hpp"
#include "distance_gate.hpp"
#include "score.hpp"
#include "seeding.hpp"

using namespace svmosaic;

namespace {

struct Data {
  static constexpr int64_t n = 20000, d = 30, k = 9;
  std::vector<float> x;
  std::vector<int32_t> block, indices;
  std::vector<int64_t> indptr;
  std::vector<int8_t> y;
  std::vector<double> weight, tiles, intercept, centers;

  Data() : x(n * d), block(n), indices(n * d), indptr(n + 1), y(n), weight(n), tiles(k * (d + 1)), intercept(k), centers(k * d) {
    uint64_t state[4] = {1, 2, 3, 4};
    Random random{state};
    const auto draw = [&] { return random.below(2001) / 1000.0 - 1.0; };
    for (auto& v : x) v = static_cast<float>(draw());
    for (auto& v : tiles) v = draw();
    for (auto& v : centers) v = draw();
    for (int64_t i = 0; i < n; ++i) {
      block[i] = static_cast<int32_t>(random.below(k));
      y[i] = random.below(2) ? 1 : -1;
      weight[i] = draw();
      indptr[i + 1] = (i + 1) * d;
      for (int64_t f = 0; f < d; ++f) indices[i * d + f] = static_cast<int32_t>(f);
    }
  }

  DenseRows<float> dense() const { return {x.data(), n, d, d, 1.0}; }
  SparseRows<float> sparse() const { return {x.data(), indices.data(), indptr.data(), n, d, 1.0}; }
  Design design() const { return {nullptr, block.data(), nullptr, n, 1, k}; }
};

int failures = 0;

void expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "FAILED: %s\n", what);
  ++failures;
}

// Every threaded pass, on `n_threads` threads; the results end to end.
template <class Rows>
std::vector<double> everything(const Data& data, const Rows& x, const Gate<float>& gate, const Tiles<float>& bank,
                               int n_threads) {
  const int64_t n = Data::n, d = Data::d, k = Data::k;
  std::vector<double> margin(n), sums(k * (d + 1)), norms(n), scores(n), log_likelihood(n);
  margins(x, data.design(), data.y.data(), data.tiles.data(), margin.data(), n_threads);
  accumulate(x, data.design(), data.y.data(), data.weight.data(), sums.data(), n_threads);
  squared_norms(x, norms.data(), n_threads);
  score_all(SplitGate<float>(&gate, bank.place), gate.cost(), bank, x, scores.data(), n_threads);
  std::vector<int32_t> tile(n * gate.width);
  std::vector<double> code(n * gate.width), again(n);
  code_all(gate, x, tile.data(), code.data(), n_threads);
  score_all(bank, x, tile.data(), code.data(), gate.width, again.data(), n_threads);
  const std::vector<double> given(n * k, -1.0);
  const Experts experts{Planes(data.tiles.data(), k, d, 1.0), k, 1, 1.0};
  const auto pieces =
      e_step(x, nullptr, given.data(), experts, data.y.data(), 1e-3, log_likelihood.data(), n_threads);
  // k-means++, of rows without bias; the last block of rows is not full.
  Rows plain = x;
  plain.bias = 0;
  plain.n_rows = n - 3;
  const std::vector<double> ones(n, 1.0), uniform(3 * (k - 1), 0.3);
  std::vector<int32_t> seed(k, 5);
  seed_centers(plain, ones.data(), uniform.data(), 3, k, seed.data(), n_threads);
  std::vector<double> seeds(seed.begin(), seed.end());
  std::vector<double> all;
  for (const auto* part : {&margin, &sums, &norms, &scores, &code, &again, &log_likelihood, &seeds})
    all.insert(all.end(), part->begin(), part->end());
  for (const auto& piece : pieces) all.insert(all.end(), piece.q.begin(), piece.q.end());
  return all;
}

}  // namespace

int main() {
  const Data data;
  const DistanceGate<float> gate(Coding::softmax, data.centers.data(), Data::k, Data::d, 3, 1.0, nullptr, nullptr);
  std::vector<double> coef(Data::k * Data::d, 0.25);
  const Tiles<float> bank(coef.data(), nullptr, Data::k, data.intercept.data(), Data::k, 1, Data::d, Link::identity,
                          gate.width, false);
  const auto one = everything(data, data.dense(), gate, bank, 1);
  expect(everything(data, data.dense(), gate, bank, 4) == one, "four threads give other bits than one");
  const auto sparse = everything(data, data.sparse(), gate, bank, 1);
  expect(everything(data, data.sparse(), gate, bank, 3) == sparse, "three threads give other bits than one (CSR)");

  // Callers of their own threads, on one model.
  std::vector<std::thread> callers;
  std::vector<std::vector<double>> found(4);
  for (int t = 0; t < 4; ++t)
    callers.emplace_back([&, t] { found[t] = everything(data, data.dense(), gate, bank, 2); });
  for (auto& caller : callers) caller.join();
  for (const auto& other : found) expect(other == one, "callers at once see other bits");

  // Callers that share a pool, with two threads that only help.
  Pool pool;
  std::vector<std::thread> members;
  std::vector<std::vector<double>> shared(3);
  std::atomic<int> n_entered{0};
  for (int t = 0; t < 3; ++t)
    members.emplace_back([&, t] {
      pool.enter();
      ++n_entered;
      Pool::current() = &pool;
      shared[t] = everything(data, data.dense(), gate, bank, 2);
      pool.leave();
      pool.serve();
    });
  while (n_entered < 3) std::this_thread::yield();
  for (int t = 0; t < 2; ++t) members.emplace_back([&] { pool.serve(); });
  for (auto& member : members) member.join();
  for (const auto& other : shared) expect(other == one, "callers of one pool see other bits");

  // A task that throws is rethrown in the caller, after the others have ended.
  bool thrown = false;
  try {
    parallel_for(100, 4, [](int64_t t) {
      if (t == 50) throw std::runtime_error("task");
    });
  } catch (const std::runtime_error&) {
    thrown = true;
  }
  expect(thrown, "an exception got lost");
  if (!failures) std::puts("threads: ok");
  return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
