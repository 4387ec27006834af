// Threads that stay for many short loops.
//
// Starting threads costs tens of microseconds each, which is more than a phase of a minibatch takes. A team is started once
// for many loops, and joined when it goes out of scope, so that nothing is left running for a later fork to trip over. Tasks
// are cut by the size of the problem, never by the number of threads: the result has the same bits whatever that is.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace svmosaic {

class Team {
 public:
  explicit Team(int n_threads) {
    others_.reserve(std::max(0, n_threads - 1));
    try {
      for (int i = 1; i < n_threads; ++i) others_.emplace_back([this] { follow(); });
    } catch (const std::system_error&) {
      // No room for another thread: those that run share the tasks.
    }
  }

  ~Team() {
    announce([this] { leave_ = true; });
    for (auto& thread : others_) thread.join();
  }

  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // task(t) for t in [0, n_tasks), on all threads; returns when all are done.
  template <class Task>
  void run(int64_t n_tasks, const Task& task) {
    if (others_.empty() || n_tasks <= 1) {
      for (int64_t t = 0; t < n_tasks; ++t) task(t);
      return;
    }
    announce([&] {
      task_ = std::cref(task);
      n_tasks_ = n_tasks;
      next_.store(0, std::memory_order_relaxed);
      busy_.store(static_cast<int64_t>(others_.size()), std::memory_order_relaxed);
    });
    work();
    for (int spins = 0; busy_.load(std::memory_order_acquire) > 0;)
      if (++spins > kSpins) std::this_thread::yield();
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  // Looks at the next loop before a thread goes to sleep: a few microseconds.
  static constexpr int kSpins = 2000;

  template <class Change>
  void announce(const Change& change) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      change();
      loop_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
  }

  void work() {
    try {
      for (int64_t t; (t = next_.fetch_add(1, std::memory_order_relaxed)) < n_tasks_;) task_(t);
    } catch (...) {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!error_) error_ = std::current_exception();
      next_.store(n_tasks_, std::memory_order_relaxed);
    }
  }

  void follow() {
    for (int64_t seen = 0;;) {
      for (int spins = 0; spins < kSpins && loop_.load(std::memory_order_acquire) == seen; ++spins) {
      }
      if (loop_.load(std::memory_order_acquire) == seen) {
        std::unique_lock<std::mutex> lock(mutex_);
        wake_.wait(lock, [&] { return loop_.load(std::memory_order_relaxed) != seen; });
      }
      // `run` waits for all threads before the next loop, so none is missed.
      ++seen;
      if (leave_) return;
      work();
      busy_.fetch_sub(1, std::memory_order_release);
    }
  }

  std::vector<std::thread> others_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<int64_t> loop_{0}, next_{0}, busy_{0};
  std::function<void(int64_t)> task_;
  int64_t n_tasks_ = 0;
  bool leave_ = false;
  std::exception_ptr error_;
};

}  // namespace svmosaic
