#pragma once

#include <algorithm>
#include <cstddef>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "weights/model/passes.h"

namespace shardproof {

/// A cache of the most recent answers, by key and passes. Safe to share between threads; a thread
/// that asks for an answer in computation waits for it.
template <class Known>
class Memo {
 public:
  explicit Memo(std::size_t kept) : kept_(kept) {}

  /// Returns the cached answer, or that of make(). Throws what make() throws, each time.
  template <class Make>
  std::shared_ptr<const Known> get(const std::string& key, const Passes& passes, Make&& make) {
    std::promise<std::shared_ptr<const Known>> promise;
    std::shared_future<std::shared_ptr<const Known>> answer = promise.get_future().share();
    bool asked = false;
    {
      const std::lock_guard lock(mutex_);
      const auto at = std::ranges::find_if(
          entries_, [&](const Entry& entry) { return entry.key == key && entry.passes == passes; });
      if (at != entries_.end()) {
        asked = true;
        answer = at->known;
        entries_.splice(entries_.begin(), entries_, at);
      } else {
        entries_.push_front({key, passes, answer});
        if (entries_.size() > kept_) entries_.pop_back();
      }
    }
    if (asked) return answer.get();
    try {
      promise.set_value(make());
    } catch (...) {
      promise.set_exception(std::current_exception());
    }
    return answer.get();
  }

 private:
  struct Entry {
    std::string key;  ///< what the answer depends on besides the passes
    Passes passes;
    std::shared_future<std::shared_ptr<const Known>> known;
  };
  std::size_t kept_;
  std::mutex mutex_;
  std::list<Entry> entries_;  // latest first
};

}  // namespace shardproof
