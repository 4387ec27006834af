// A loop over independent tasks on short-lived threads.
//
// Threads are started for the call and joined before it returns: a few tens of microseconds, paid
// only where there is work for them, and nothing is left running for a later fork to trip over.
// Tasks write to places of their own and are cut by the size of the problem, never by the number of
// threads, so the result has the same bits whatever `n_threads` is.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace svmosaic {

template <class Task>
void parallel_for(int64_t n_tasks, int n_threads, const Task& task) {
  const int64_t n_workers = std::min<int64_t>(n_threads, n_tasks);
  if (n_workers <= 1) {
    for (int64_t t = 0; t < n_tasks; ++t) task(t);
    return;
  }
  std::atomic<int64_t> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr error;
  auto work = [&] {
    try {
      for (int64_t t; (t = next.fetch_add(1)) < n_tasks;) task(t);
    } catch (...) {
      if (!failed.exchange(true)) error = std::current_exception();
      next.store(n_tasks);
    }
  };
  std::vector<std::thread> others;
  others.reserve(n_workers - 1);
  try {
    for (int64_t i = 1; i < n_workers; ++i) others.emplace_back(work);
  } catch (const std::system_error&) {
    // No room for another thread: those that run share the tasks.
  }
  work();
  for (auto& thread : others) thread.join();
  if (error) std::rethrow_exception(error);
}

// [begin, end) of piece `t` when `n` items are cut into `n_pieces` of nearly equal length.
struct Piece {
  int64_t begin, end;
  Piece(int64_t n, int64_t n_pieces, int64_t t) : begin(n * t / n_pieces), end(n * (t + 1) / n_pieces) {}
};

}  // namespace svmosaic
