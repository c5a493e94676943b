#include "oracle/numeric/each.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace shardproof::oracle {

using std::size_t;

void each(size_t n, int threads, const std::function<void(size_t)>& body) {
  if (threads <= 1 || n <= 1) {
    for (size_t i = 0; i < n; ++i) body(i);
    return;
  }
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  size_t failed = n;  // the i that threw `failure`
  const auto work = [&] {
    for (size_t i = next++; i < n; i = next++) {
      try {
        body(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (i < failed) failed = i, failure = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> others;
    const size_t most = std::min(n, static_cast<size_t>(threads));
    for (size_t t = 1; t < most; ++t) others.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace shardproof::oracle
