// Loops over independent tasks on several threads.
//
// Tasks write to places of their own and are cut by the size of the problem, never by the number of threads, so the result
// has the same bits whatever that is. A `Pool` is shared by all that work on one call: each of its threads may run
// loops, and those that have nothing of their own to do help with the loops of the others. Seven outputs on sixteen
// threads are seven loops at a time, with sixteen threads in them. No thread outlives the call that started it, so that
// nothing is left running for a later fork to trip over.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace svmosaic {

// Tells the processor that a thread waits in a loop.
inline void relax() {
#if defined(__GNUC__) && defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

class Pool {
 public:
  // A thread between `enter` and `leave` has work of its own; the pool serves as long as there is one.
  void enter() { n_working_.fetch_add(1); }
  void leave() {
    n_working_.fetch_sub(1);
    announce();
  }

  // task(t) for t in [0, n_tasks), on this thread and those that serve; returns when all are done.
  template <class Task>
  void run(int64_t n_tasks, const Task& task) {
    if (n_tasks <= 1) {
      for (int64_t t = 0; t < n_tasks; ++t) task(t);
      return;
    }
    Loop loop([](const void* task, int64_t t) { (*static_cast<const Task*>(task))(t); }, &task, n_tasks);
    {
      Guard guard(open_lock_);
      open_.push_back(&loop);
    }
    announce();
    work(loop);
    {
      Guard guard(open_lock_);
      open_.erase(std::find(open_.begin(), open_.end(), &loop));
    }
    // Nobody can join any more; those inside are at their last tasks.
    for (int spins = 0; loop.n_helpers.load(std::memory_order_acquire) > 0; ++spins)
      spins < kSpins ? relax() : std::this_thread::yield();
    if (loop.error) std::rethrow_exception(loop.error);
  }

  // Help with loops until no thread has work of its own.
  void serve() {
    own_lane() = (n_served_.fetch_add(1) + 1) % kLanes;
    while (true) {
      const int64_t seen = n_announced_.load();
      if (Loop* loop = join()) {
        work(*loop);
        loop->n_helpers.fetch_sub(1, std::memory_order_release);
      } else if (n_working_.load() == 0) {
        return;
      } else {
        wait(seen);
      }
    }
  }

  // The pool whose loops the calling thread takes part in, or null.
  static Pool*& current() {
    static thread_local Pool* pool = nullptr;
    return pool;
  }

 private:
  // Tasks are dealt to lanes like cards. A thread begins with the lane of its own before it helps with others, so that
  // threads seldom count on the same cache line, and do with the same memory what they did in the loop before.
  static constexpr int64_t kLanes = 16;

  struct Loop {
    void (*call)(const void*, int64_t);
    const void* task;
    int64_t n_tasks;
    struct alignas(64) Lane {
      std::atomic<int64_t> next;
    } lane[kLanes];
    std::atomic<int64_t> n_helpers{0};
    std::atomic<bool> taken{false}, failed{false};  // taken: no task is left to begin
    std::exception_ptr error{};

    Loop(void (*call)(const void*, int64_t), const void* task, int64_t n_tasks)
        : call(call), task(task), n_tasks(n_tasks) {
      for (int64_t s = 0; s < kLanes; ++s) lane[s].next.store(s, std::memory_order_relaxed);
    }
  };

  // What it guards takes less time than putting a thread to sleep.
  struct Guard {
    std::atomic<bool>& lock;
    explicit Guard(std::atomic<bool>& lock) : lock(lock) {
      // Looked at before it is written to, which would take the cache line from all the others that wait.
      for (int spins = 0; lock.load(std::memory_order_relaxed) || lock.exchange(true, std::memory_order_acquire); ++spins)
        spins < kSpins ? relax() : std::this_thread::yield();
    }
    ~Guard() { lock.store(false, std::memory_order_release); }
  };

  // Looks out for another loop before a thread goes to sleep: some tens of microseconds without a break, then about a
  // millisecond in which others may have the processor. To wake all threads of a large machine takes nearly as long.
  static constexpr int kSpins = 1000, kYields = 2000;

  // The lane of the calling thread: 0, unless it serves.
  static int64_t& own_lane() {
    static thread_local int64_t lane = 0;
    return lane;
  }

  static void work(Loop& loop) {
    try {
      for (int64_t s = 0; s < kLanes; ++s) {
        std::atomic<int64_t>& next = loop.lane[(own_lane() + s) % kLanes].next;
        // Looked at first, since most lanes have nothing left for others: counting on takes the line from all of them.
        for (int64_t t; next.load(std::memory_order_relaxed) < loop.n_tasks &&
                        (t = next.fetch_add(kLanes, std::memory_order_relaxed)) < loop.n_tasks;) {
          if (loop.failed.load(std::memory_order_relaxed)) break;
          loop.call(loop.task, t);
        }
      }
    } catch (...) {
      if (!loop.failed.exchange(true)) loop.error = std::current_exception();
    }
    loop.taken.store(true, std::memory_order_relaxed);
  }

  // The open loop with the fewest helpers, joined; null if no task is left anywhere.
  Loop* join() {
    Guard guard(open_lock_);
    Loop* best = nullptr;
    for (Loop* loop : open_)
      if (!loop->taken.load(std::memory_order_relaxed) && (!best || loop->n_helpers < best->n_helpers)) best = loop;
    if (best) best->n_helpers.fetch_add(1, std::memory_order_relaxed);
    return best;
  }

  void announce() {
    n_announced_.fetch_add(1);
    if (n_sleeping_.load() == 0) return;
    { std::lock_guard<std::mutex> lock(mutex_); }  // whoever is about to sleep does so before the call
    wake_.notify_all();
  }

  void wait(int64_t seen) {
    for (int spins = 0; spins < kSpins; ++spins) {
      if (n_announced_.load(std::memory_order_relaxed) != seen) return;
      relax();
    }
    for (int yields = 0; yields < kYields; ++yields) {
      if (n_announced_.load(std::memory_order_relaxed) != seen) return;
      std::this_thread::yield();
    }
    n_sleeping_.fetch_add(1);
    {
      std::unique_lock<std::mutex> lock(mutex_);
      wake_.wait(lock, [&] { return n_announced_.load() != seen; });
    }
    n_sleeping_.fetch_sub(1);
  }

  std::atomic<bool> open_lock_{false};
  std::vector<Loop*> open_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<int64_t> n_working_{0}, n_served_{0}, n_sleeping_{0};
  alignas(64) std::atomic<int64_t> n_announced_{0};
};

// A pool for the loops of the calling thread, with threads that it starts and joins: worth it for many short loops.
class Team {
 public:
  explicit Team(int n_threads) {
    pool_.enter();
    others_.reserve(std::max(0, n_threads - 1));
    try {
      for (int i = 1; i < n_threads; ++i) others_.emplace_back([this] { pool_.serve(); });
    } catch (const std::system_error&) {
      // No room for another thread: those that run share the tasks.
    }
  }
  ~Team() {
    pool_.leave();
    for (auto& thread : others_) thread.join();
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  template <class Task>
  void run(int64_t n_tasks, const Task& task) {
    pool_.run(n_tasks, task);
  }

 private:
  Pool pool_;
  std::vector<std::thread> others_;
};

// One loop: on the pool of the calling thread, if it is in one, else on `n_threads` threads of its own.
template <class Task>
void parallel_for(int64_t n_tasks, int n_threads, const Task& task) {
  if (Pool* pool = Pool::current()) return pool->run(n_tasks, task);
  const int64_t n_workers = std::min<int64_t>(n_threads, n_tasks);
  if (n_workers > 1) return Team(static_cast<int>(n_workers)).run(n_tasks, task);
  for (int64_t t = 0; t < n_tasks; ++t) task(t);
}

// [begin, end) of piece `t` when `n` items are cut into `n_pieces` of nearly equal length.
struct Piece {
  int64_t begin, end;
  Piece(int64_t n, int64_t n_pieces, int64_t t) : begin(n * t / n_pieces), end(n * (t + 1) / n_pieces) {}
};

}  // namespace svmosaic
