#include "engine/numeric/threads.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace shardproof {
namespace {

/// One step of the splitmix64 generator.
std::uint64_t next_random(std::uint64_t& state) {
  std::uint64_t z = state += 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

/// 0 ... n-1 in random order.
std::vector<std::int64_t> permutation(std::int64_t n, std::uint64_t& state) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto at = static_cast<std::size_t>(next_random(state) % (i + 1));
    order[i] = order[at];
    order[at] = static_cast<std::int64_t>(i);
  }
  return order;
}

}  // namespace

struct Threads::Pool {
  std::mutex mutex;
  std::condition_variable start, done;
  std::vector<std::thread> workers;
  const std::function<void(std::int64_t)>* body = nullptr;
  std::int64_t size = 0;
  std::atomic<std::int64_t> next{0};
  int busy = 0;
  std::uint64_t round = 0;
  bool stopping = false;
  std::exception_ptr failure;

  void drain() {
    for (std::int64_t i = next++; i < size; i = next++) {
      try {
        (*body)(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    }
  }

  void work() {
    std::uint64_t seen = 0;
    std::unique_lock lock(mutex);
    for (;;) {
      start.wait(lock, [&] { return stopping || round != seen; });
      if (stopping) return;
      seen = round;
      lock.unlock();
      drain();
      lock.lock();
      if (--busy == 0) done.notify_one();
    }
  }
};

Threads::Threads(int count) {
  if (count <= 1) return;
  pool_ = std::make_unique<Pool>();
  for (int i = 1; i < count; ++i) pool_->workers.emplace_back([this] { pool_->work(); });
}

Threads::~Threads() {
  if (!pool_) return;
  {
    const std::lock_guard lock(pool_->mutex);
    pool_->stopping = true;
  }
  pool_->start.notify_all();
  for (auto& worker : pool_->workers) worker.join();
}

void Threads::for_each(std::int64_t n, const std::function<void(std::int64_t)>& body) {
  if (!order_) {
    visit(n, body);
    return;
  }
  const std::vector<std::int64_t> order = permutation(n, *order_);
  visit(n, [&](std::int64_t i) { body(order[static_cast<std::size_t>(i)]); });
}

void Threads::visit(std::int64_t n, const std::function<void(std::int64_t)>& body) {
  if (!pool_ || n <= 1) {
    for (std::int64_t i = 0; i < n; ++i) body(i);
    return;
  }
  Pool& pool = *pool_;
  {
    const std::lock_guard lock(pool.mutex);
    pool.body = &body;
    pool.size = n;
    pool.next = 0;
    pool.busy = static_cast<int>(pool.workers.size());
    pool.failure = nullptr;
    ++pool.round;
  }
  pool.start.notify_all();
  pool.drain();
  std::unique_lock lock(pool.mutex);
  pool.done.wait(lock, [&] { return pool.busy == 0; });
  if (pool.failure) std::rethrow_exception(pool.failure);
}

int machine_threads() {
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

Threads& calling_thread() {
  static thread_local Threads one(1);
  return one;
}

}  // namespace shardproof
